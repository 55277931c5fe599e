// "simd.attention": Attention in fp32, a block of queries at a time: scores by a product, scale,
// bias and softmax over each row while it is in the cache, and a product with V.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "backends/cpu/run/attention_spec.h"
#include "backends/cpu/run/kernels.h"
#include "backends/cpu/run/product_simd.h"
#include "backends/cpu/run/softmax_row.h"
#include "ops/nn/attention_plan.h"

namespace tessera::backends::cpu {
namespace {

using ops::nn::AttentionSizes;

constexpr std::int64_t kQueryBlock = 64;  // rows of scores that are held at once
constexpr std::int64_t kAlign = 16;       // floats
// Up to so many rows of a group, packing keys and values costs more than it gains.
constexpr std::int64_t kFewRows = 8;

class AttentionKernel final : public LoadedKernel {
 public:
  AttentionKernel(artefact::KernelSpec spec, Constants constants, KeyOrder keys)
      : spec_(std::move(spec)), constants_(constants.begin(), constants.end()), keys_(keys) {}
  Result<std::unique_ptr<KernelInstance>> instantiate(const InstanceDims& dims,
                                                      int threads) const override;

 private:
  friend class AttentionInstance;
  artefact::KernelSpec spec_;
  std::vector<std::span<const std::byte>> constants_;
  KeyOrder keys_;
};

std::int64_t rounded(std::int64_t floats_count) {
  return (floats_count + kAlign - 1) / kAlign * kAlign;
}

class AttentionInstance final : public KernelInstance {
 public:
  explicit AttentionInstance(const AttentionKernel& kernel) : kernel_(kernel) {}
  Status build(const InstanceDims& dims, int threads);
  [[nodiscard]] std::int64_t scratch_bytes() const override {
    return chunk_floats_ * static_cast<std::int64_t>(sizeof(float)) * chunks_;
  }
  Status execute(const ExecuteArgs& args) override;

 private:
  // Queries [begin, end) of all that read head `group` of K, counted over the heads that share it.
  struct Job {
    std::int64_t batch, group, begin, end;
  };
  struct Scratch {
    float *scores, *keys, *values, *results, *key_panels, *value_panels;
  };

  void read_sizes(const AttentionSizes& sizes);
  void read_mask(const InstanceDims& dims);
  void make_jobs();
  void lay_out_scratch();
  [[nodiscard]] Scratch scratch_of(const ExecuteArgs& args, std::int64_t chunk) const;
  [[nodiscard]] const std::byte* operand(std::size_t index, const ExecuteArgs& args) const;
  void run_job(const Job& job, const Scratch& scratch, const ExecuteArgs& args) const;
  void score_block(const float* const* queries, const float* keys, std::int64_t count,
                   const Scratch& scratch) const;
  void sum_block(const float* values, float* to, std::int64_t count, const Scratch& scratch) const;
  // All keys or values of a group in one piece, copied where they are not; written to the cache
  // where there is one.
  const float* whole(std::size_t input, std::size_t past, std::size_t present, const Job& job,
                     std::int64_t size, float* packed, const ExecuteArgs& args) const;
  void weigh_row(const Job& job, std::int64_t row, float* scores, const ExecuteArgs& args) const;
  bool add_mask(const Job& job, std::int64_t row, float* scores, const ExecuteArgs& args) const;
  // The memory of the operator's output `index`; null where nobody reads it.
  [[nodiscard]] float* result(std::size_t index, const ExecuteArgs& args) const {
    const auto& numbers = kernel_.spec_.output_operands;
    const auto number = result_number(kernel_.spec_, kernel_.spec_.steps.size() - 1) +
                        static_cast<std::int32_t>(index);
    const auto found = std::find(numbers.begin(), numbers.end(), number);
    return found == numbers.end()
               ? nullptr
               : floats(args.outputs[static_cast<std::size_t>(found - numbers.begin())]);
  }
  [[nodiscard]] bool has_past() const { return operand_at(ops::nn::kAttentionPastKey) >= 0; }
  [[nodiscard]] std::int32_t operand_at(std::size_t index) const {
    return attention_operand(kernel_.spec_, index);
  }
  [[nodiscard]] bool is_turned() const { return kernel_.keys_ == KeyOrder::kTurned; }
  [[nodiscard]] bool has_few_rows() const { return rows() <= kFewRows && !is_turned(); }
  // Rows of one head do not follow one another.
  [[nodiscard]] bool packs() const { return flat_ && query_heads_ > 1; }
  [[nodiscard]] std::int64_t rows() const { return shared_ * queries_; }

  const AttentionKernel& kernel_;
  bool flat_ = false;
  std::int64_t batch_ = 0, query_heads_ = 0, groups_ = 0, shared_ = 0, queries_ = 0, keys_ = 0,
               past_ = 0, total_ = 0, head_ = 0, value_ = 0;
  float scale_ = 1;
  float softcap_ = 0;
  bool causal_ = false;
  std::int64_t nan_rows_ = 0;
  Dims mask_strides_;  // empty: no mask
  std::int64_t mask_columns_ = 0;
  bool mask_is_bool_ = false;
  std::vector<Job> jobs_;
  std::int64_t chunks_ = 0;
  std::int64_t keys_at_ = 0, values_at_ = 0, results_at_ = 0, key_panels_at_ = 0,
               value_panels_at_ = 0;
  std::int64_t chunk_floats_ = 0;
};

// ---- Building -----------------------------------------------------------------------------------

void AttentionInstance::read_sizes(const AttentionSizes& sizes) {
  const auto number = [](const Dim& dim) { return dim.constant().value(); };
  flat_ = sizes.flat;
  batch_ = number(sizes.batch);
  query_heads_ = number(sizes.query_heads);
  groups_ = number(sizes.key_heads);
  shared_ = groups_ == 0 ? 0 : query_heads_ / groups_;
  queries_ = number(sizes.query_length);
  keys_ = number(sizes.key_length);
  past_ = number(sizes.past_length);
  total_ = number(sizes.total_length);
  head_ = number(sizes.head_size);
  value_ = number(sizes.value_size);
  const auto& attributes = kernel_.spec_.steps.back().attributes;
  scale_ = attributes.get_float("scale", 1 / std::sqrt(static_cast<float>(head_)));
  softcap_ = attributes.get_float("softcap", 0);
  causal_ = attributes.get_int("is_causal", 0) != 0;
  nan_rows_ = attributes.get_int("nan_rows", ops::nn::kMaskedRowsAreZero);
}

void AttentionInstance::read_mask(const InstanceDims& dims) {
  const OperandRef ref = operand_ref(kernel_.spec_, operand_at(ops::nn::kAttentionMask));
  if (ref.kind == OperandRef::Kind::kOmitted) return;
  const bool is_input = ref.kind == OperandRef::Kind::kInput;
  const Dims own =
      is_input ? dims.inputs[ref.index] : *constant_dims(kernel_.spec_.constants[ref.index].shape);
  mask_is_bool_ =
      (is_input ? kernel_.spec_.inputs : kernel_.spec_.constants)[ref.index].dtype == DType::kBool;
  mask_columns_ = own.back();
  mask_strides_.assign(4, 0);
  std::int64_t stride = 1;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const std::int64_t size = own[own.size() - 1 - i];
    mask_strides_[3 - i] = size == 1 && i > 0 ? 0 : stride;
    stride *= size;
  }
}

void AttentionInstance::make_jobs() {
  // Where keys are copied first, one job has all queries of a group.
  const bool copies = has_past() || packs() || kernel_.keys_ == KeyOrder::kHeadsBehindRows;
  const std::int64_t step = copies ? std::max<std::int64_t>(rows(), 1) : kQueryBlock;
  for (std::int64_t batch = 0; batch < batch_; ++batch)
    for (std::int64_t group = 0; group < groups_; ++group)
      for (std::int64_t begin = 0; begin < std::max<std::int64_t>(rows(), copies ? 1 : 0);
           begin += step)
        jobs_.push_back({batch, group, begin, std::min(begin + step, rows())});
}

void AttentionInstance::lay_out_scratch() {
  const std::int64_t block = std::min(kQueryBlock, rows());
  const bool copies_keys = packs() || has_past() || kernel_.keys_ == KeyOrder::kHeadsBehindRows;
  std::int64_t at = rounded(block * total_);
  const auto next = [&](bool used, std::int64_t count) {
    const std::int64_t begin = at;
    if (used) at += rounded(count);
    return begin;
  };
  keys_at_ = next(copies_keys, total_ * head_);
  values_at_ = next(packs() || has_past(), total_ * value_);
  results_at_ = next(packs(), block * value_);
  key_panels_at_ = next(!has_few_rows(), panel_elements(head_, total_));
  value_panels_at_ = next(!has_few_rows(), panel_elements(total_, value_));
  chunk_floats_ = at;
}

Status AttentionInstance::build(const InstanceDims& dims, int threads) {
  const auto& step = kernel_.spec_.steps.back();
  std::vector<Shape> shapes(step.inputs.size());
  std::vector<const Shape*> present(step.inputs.size(), nullptr);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const OperandRef ref = operand_ref(kernel_.spec_, operand_at(i));
    if (ref.kind == OperandRef::Kind::kOmitted) continue;
    shapes[i] = ref.kind == OperandRef::Kind::kInput ? to_shape(dims.inputs[ref.index])
                                                     : kernel_.spec_.constants[ref.index].shape;
    if (i == ops::nn::kAttentionKey) shapes[i] = in_operator_order(shapes[i], kernel_.keys_);
    present[i] = &shapes[i];
  }
  TESSERA_ASSIGN(const AttentionSizes sizes, ops::nn::attention_sizes(step.attributes, present));
  read_sizes(sizes);
  read_mask(dims);
  make_jobs();
  const auto count = static_cast<std::int64_t>(jobs_.size());
  const std::int64_t work = rows() * batch_ * groups_ * total_;
  chunks_ = std::max<std::int64_t>(1, std::min(count, chunk_count(work, 4096, threads)));
  lay_out_scratch();
  return {};
}

// ---- Running ------------------------------------------------------------------------------------

const std::byte* AttentionInstance::operand(std::size_t index, const ExecuteArgs& args) const {
  const OperandRef ref = operand_ref(kernel_.spec_, operand_at(index));
  return ref.kind == OperandRef::Kind::kInput ? args.inputs[ref.index]
                                              : kernel_.constants_[ref.index].data();
}

AttentionInstance::Scratch AttentionInstance::scratch_of(const ExecuteArgs& args,
                                                         std::int64_t chunk) const {
  float* base = floats(args.scratch) + chunk * chunk_floats_;
  return {base,
          base + keys_at_,
          base + values_at_,
          base + results_at_,
          base + key_panels_at_,
          base + value_panels_at_};
}

const float* AttentionInstance::whole(std::size_t input, std::size_t past, std::size_t present,
                                      const Job& job, std::int64_t size, float* packed,
                                      const ExecuteArgs& args) const {
  const float* from = floats(operand(input, args));
  const std::int64_t head = job.batch * groups_ + job.group;
  const KeyOrder order =
      input == ops::nn::kAttentionKey ? kernel_.keys_ : KeyOrder::kHeadsBeforeRows;
  const bool is_behind = packs() || order == KeyOrder::kHeadsBehindRows;
  if (!is_behind && !has_past()) return from + head * keys_ * size;
  float* to = packed;
  // The cache is an output in the very order that the product wants.
  if (float* cache = has_past() ? result(present, args) : nullptr)
    to = cache + head * total_ * size;
  if (has_past()) std::copy_n(floats(operand(past, args)) + head * past_ * size, past_ * size, to);
  for (std::int64_t key = 0; key < keys_; ++key) {
    const std::int64_t row =
        is_behind ? (job.batch * keys_ + key) * groups_ + job.group : head * keys_ + key;
    std::copy_n(from + row * size, size, to + (past_ + key) * size);
  }
  return to;
}

// Adds minus infinity, which leaves a NaN one.
void hide(float* scores, std::int64_t count) {
  run_simd(SimdOp::kScaleShift, scores, nullptr, scores, static_cast<std::size_t>(count), 1,
           -HUGE_VALF);
}

// Adds the mask and what is not seen; whether every key is masked.
bool AttentionInstance::add_mask(const Job& job, std::int64_t row, float* scores,
                                 const ExecuteArgs& args) const {
  const std::int64_t query = row % queries_;
  const std::int64_t head = job.group * shared_ + row / queries_;
  std::int64_t seen = causal_ ? std::min(total_, query + past_ + 1) : total_;
  if (!mask_strides_.empty()) {
    seen = std::min(seen, mask_columns_);
    const std::int64_t at =
        job.batch * mask_strides_[0] + head * mask_strides_[1] + query * mask_strides_[2];
    const std::byte* mask = operand(ops::nn::kAttentionMask, args);
    if (mask_is_bool_) {
      for (std::int64_t key = 0; key < seen; ++key)
        if (mask[at + key] == std::byte{0}) scores[key] -= HUGE_VALF;
    } else {
      run_simd(SimdOp::kAdd, scores, floats(mask) + at, scores, static_cast<std::size_t>(seen), 0,
               0);
    }
    hide(scores + seen, total_ - seen);
    if (nan_rows_ != ops::nn::kMaskedRowsAreZero) return false;
    bool masked = true;
    for (std::int64_t key = 0; key < seen && masked; ++key)
      masked =
          mask_is_bool_ ? mask[at + key] == std::byte{0} : floats(mask)[at + key] == -HUGE_VALF;
    return masked;
  }
  hide(scores + seen, total_ - seen);
  return seen <= 0;
}

void AttentionInstance::weigh_row(const Job& job, std::int64_t row, float* scores,
                                  const ExecuteArgs& args) const {
  const auto count = static_cast<std::size_t>(total_);
  const float factor = softcap_ == 0 ? scale_ : scale_ / softcap_;
  run_simd(SimdOp::kScaleShift, scores, nullptr, scores, count, factor, 0);
  if (softcap_ != 0) {
    run_simd(SimdOp::kTanh, scores, nullptr, scores, count, 0, 0);
    run_simd(SimdOp::kScaleShift, scores, nullptr, scores, count, softcap_, 0);
  }
  if (add_mask(job, row, scores, args)) {
    std::fill_n(scores, count, 0.0F);
    return;
  }
  softmax_row(scores, scores, count, false);
  if (nan_rows_ != ops::nn::kNanIsZero) return;
  std::replace_if(
      scores, scores + count, [](float weight) { return std::isnan(weight); }, 0.0F);
}

// Rows by packed columns, to dense rows.
void packed_product(const float* const* rows, std::int64_t count, const float* panels,
                    std::int64_t depth, std::int64_t columns, float* to) {
  PanelProduct product;
  product.a = rows;
  product.rows = count;
  product.depth = depth;
  product.panels = panels;
  product.panel_stride = depth * kProductColumns;
  product.columns = columns;
  product.c = to;
  product.c_stride = columns;
  panel_rows_product(product);
}

void AttentionInstance::score_block(const float* const* queries, const float* keys,
                                    std::int64_t count, const Scratch& scratch) const {
  if (!has_few_rows())
    return packed_product(queries, count, scratch.key_panels, head_, total_, scratch.scores);
  for (std::int64_t i = 0; i < count; ++i)
    simd_dots(queries[i], keys, static_cast<std::size_t>(total_), static_cast<std::size_t>(head_),
              scratch.scores + i * total_);
}

void AttentionInstance::sum_block(const float* values, float* to, std::int64_t count,
                                  const Scratch& scratch) const {
  if (!has_few_rows()) {
    std::array<const float*, kQueryBlock> rows{};
    for (std::int64_t i = 0; i < count; ++i)
      rows[static_cast<std::size_t>(i)] = scratch.scores + i * total_;
    return packed_product(rows.data(), count, scratch.value_panels, total_, value_, to);
  }
  const auto width = static_cast<std::size_t>(value_);
  std::fill_n(to, count * value_, 0.0F);
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t key = 0; key < total_; ++key)
      simd_accumulate_scaled(values + key * value_, to + i * value_, width,
                             scratch.scores[i * total_ + key]);
}

void AttentionInstance::run_job(const Job& job, const Scratch& scratch,
                                const ExecuteArgs& args) const {
  const float* keys =
      whole(ops::nn::kAttentionKey, ops::nn::kAttentionPastKey, 1, job, head_, scratch.keys, args);
  const float* values = whole(ops::nn::kAttentionValue, ops::nn::kAttentionPastValue, 2, job,
                              value_, scratch.values, args);
  if (!has_few_rows()) {
    pack_panels(keys, is_turned() ? total_ : 1, is_turned() ? 1 : head_, head_, total_,
                scratch.key_panels);
    pack_panels(values, value_, 1, total_, value_, scratch.value_panels);
  }
  const float* query = floats(operand(ops::nn::kAttentionQuery, args));
  float* y = result(0, args);
  const std::int64_t first = (job.batch * groups_ + job.group) * rows();
  // Row of the flat order that holds row `row` of this group.
  const auto flat_row = [&](std::int64_t row) {
    return (job.batch * queries_ + row % queries_) * query_heads_ + job.group * shared_ +
           row / queries_;
  };
  for (std::int64_t begin = job.begin; begin < job.end; begin += kQueryBlock) {
    const std::int64_t count = std::min(kQueryBlock, job.end - begin);
    std::array<const float*, kQueryBlock> rows{};
    for (std::int64_t i = 0; i < count; ++i)
      rows[static_cast<std::size_t>(i)] =
          query + (packs() ? flat_row(begin + i) : first + begin + i) * head_;
    float* to = packs() ? scratch.results : y + (first + begin) * value_;
    score_block(rows.data(), keys, count, scratch);
    for (std::int64_t i = 0; i < count; ++i)
      weigh_row(job, begin + i, scratch.scores + i * total_, args);
    sum_block(values, to, count, scratch);
    for (std::int64_t i = 0; packs() && i < count; ++i)
      std::copy_n(scratch.results + i * value_, value_, y + flat_row(begin + i) * value_);
  }
}

Status AttentionInstance::execute(const ExecuteArgs& args) {
  const bool is_empty = rows() == 0 || total_ == 0 || head_ == 0 || value_ == 0;
  if (is_empty && total_ != 0 && rows() != 0 && value_ != 0)
    return fail(ErrorCode::kUnimplemented, "Attention: expected heads of 1 element or more");
  if (is_empty) {
    std::fill_n(result(0, args), batch_ * query_heads_ * queries_ * value_, 0.0F);
    // The cache is written all the same.
    for (const Job& job : jobs_) {
      const Scratch scratch = scratch_of(args, 0);
      whole(ops::nn::kAttentionKey, ops::nn::kAttentionPastKey, 1, job, head_, scratch.keys, args);
      whole(ops::nn::kAttentionValue, ops::nn::kAttentionPastValue, 2, job, value_, scratch.values,
            args);
    }
    return {};
  }
  const auto one = [&](std::int64_t i) {
    const ChunkRange range = chunk_range(static_cast<std::int64_t>(jobs_.size()), chunks_, i);
    for (std::int64_t job = range.begin; job < range.end; ++job)
      run_job(jobs_[static_cast<std::size_t>(job)], scratch_of(args, i), args);
  };
  args.parallel->run(chunks_, one);
  return {};
}

Result<std::unique_ptr<KernelInstance>> AttentionKernel::instantiate(const InstanceDims& dims,
                                                                     int threads) const {
  auto instance = std::make_unique<AttentionInstance>(*this);
  TESSERA_TRY(instance->build(dims, threads));
  return std::unique_ptr<KernelInstance>(std::move(instance));
}

}  // namespace

Result<KeyOrder> key_order(const artefact::KernelSpec& spec) {
  const auto& last = spec.steps.back();
  if (spec.steps.size() == 1) return KeyOrder::kHeadsBeforeRows;
  const auto& step = spec.steps[0];
  const auto perm = step.attributes.get_ints("perm");
  const bool is_key = spec.steps.size() == 2 && step.op_type == "Transpose" &&
                      step_input(last, ops::nn::kAttentionKey) == result_number(spec, 0) &&
                      step_input(last, ops::nn::kAttentionPastKey) < 0;
  if (is_key && perm == std::vector<std::int64_t>{0, 1, 3, 2}) return KeyOrder::kTurned;
  if (is_key && perm == std::vector<std::int64_t>{0, 2, 1, 3}) return KeyOrder::kHeadsBehindRows;
  return fail(ErrorCode::kUnimplemented,
              fmt::format("Attention: expected its operands as they are, or keys turned, found {} "
                          "before it",
                          step.op_type));
}

std::int32_t attention_operand(const artefact::KernelSpec& spec, std::size_t index) {
  const std::int32_t number = step_input(spec.steps.back(), index);
  const bool is_turned = operand_ref(spec, number).kind == OperandRef::Kind::kResult;
  return is_turned ? step_input(spec.steps[0], 0) : number;
}

Shape in_operator_order(const Shape& keys, KeyOrder order) {
  if (keys.size() != 4 || order == KeyOrder::kHeadsBeforeRows) return keys;
  return order == KeyOrder::kTurned ? Shape{keys[0], keys[1], keys[3], keys[2]}
                                    : Shape{keys[0], keys[2], keys[1], keys[3]};
}

Result<std::unique_ptr<LoadedKernel>> load_attention(const artefact::KernelSpec& spec,
                                                     Constants constants) {
  if (spec.steps.empty() || spec.steps.back().inputs.size() < 3 || spec.outputs.empty())
    return bad_spec(spec, "expected a step of three inputs or more, and an output");
  TESSERA_ASSIGN(const KeyOrder keys, key_order(spec));
  for (std::size_t i = 0; i < spec.steps.back().inputs.size(); ++i) {
    if (operand_ref(spec, attention_operand(spec, i)).kind == OperandRef::Kind::kResult)
      return bad_spec(spec, "expected operands from outside");
  }
  return std::unique_ptr<LoadedKernel>(new AttentionKernel(spec, constants, keys));
}

}  // namespace tessera::backends::cpu
