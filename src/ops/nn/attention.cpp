// Attention: softmax(scale * Q K^T + bias) V over heads, K and V shared by groups of them, with
// masks and a cache.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/nn/attention_plan.h"
#include "ops/nn/nn_util.h"
#include "ops/nn/reals.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

using nn::AttentionSizes;

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// ---- Inference ----------------------------------------------------------------------------------

Status check_attributes(const Attributes& attributes) {
  const std::int64_t mode = attributes.get_int("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) {
    return attribute_error("qk_matmul_output_mode",
                           fmt::format("expected a value from 0 to 3, found {}", mode));
  }
  for (const char* name : {"left_window_size", "right_window_size"}) {
    const std::int64_t size = attributes.get_int(name, nn::kUnboundedWindow);
    if (size < nn::kUnboundedWindow)
      return attribute_error(name, fmt::format("expected -1 or more, found {}", size));
  }
  return {};
}

Status infer(InferContext& context) {
  TESSERA_TRY(check_attributes(context.attributes));
  for (const std::size_t index : {nn::kAttentionQuery, nn::kAttentionKey, nn::kAttentionValue})
    TESSERA_TRY(tensor_input(context, index).map([](const auto*) {}));
  std::vector<const Shape*> shapes;
  for (const InferInput& input : context.inputs)
    shapes.push_back(input.present && input.type.shape ? &*input.type.shape : nullptr);
  const DType key = context.inputs[nn::kAttentionKey].type.dtype;
  const DType value = context.inputs[nn::kAttentionValue].type.dtype;
  const DType query = context.inputs[nn::kAttentionQuery].type.dtype;
  std::optional<AttentionSizes> sizes;
  if (shapes[0] != nullptr && shapes[1] != nullptr && shapes[2] != nullptr) {
    TESSERA_ASSIGN(sizes, nn::attention_sizes(context.attributes, shapes));
  }
  const auto shape = [&](Shape (AttentionSizes::*of)() const) {
    return sizes ? std::optional(((*sizes).*of)()) : std::nullopt;
  };
  set_output(context, 0, query, shape(&AttentionSizes::output));
  set_output(context, 1, key, shape(&AttentionSizes::present_key));
  set_output(context, 2, value, shape(&AttentionSizes::present_value));
  set_output(context, 3, query, shape(&AttentionSizes::scores));
  return {};
}

// ---- Kernel -------------------------------------------------------------------------------------

std::int64_t number(const Dim& dim) {
  return dim.constant().value();
}

// Sizes as numbers, and all operands in double as [batch, heads, length, size].
struct Call {
  std::int64_t batch, query_heads, key_heads, queries, keys, past, total, head, value;
  std::vector<double> q, k, v;
  double scale = 1;
  double softcap = 0;
  bool causal = false;
  std::int64_t left_window = nn::kUnboundedWindow;   // keys before that of the query
  std::int64_t right_window = nn::kUnboundedWindow;  // and behind it
  std::int64_t nan_rows = 0;
  std::int64_t mode = 0;
};

// [batch, heads, total, size] of an operand behind its past.
std::vector<double> gather_heads(const TensorView& view, const TensorView* past, bool flat,
                                 std::int64_t batch, std::int64_t heads, std::int64_t length,
                                 std::int64_t past_length, std::int64_t size) {
  const nn::Reals<double> now(view);
  const nn::Reals<double> before(past == nullptr ? TensorView{DType::kFp64, {0}, nullptr} : *past);
  const std::int64_t total = past_length + length;
  std::vector<double> out(static_cast<std::size_t>(batch * heads * total * size));
  for (std::int64_t at = 0; at < batch * heads; ++at) {
    const std::int64_t b = at / heads;
    const std::int64_t h = at % heads;
    double* to = out.data() + at * total * size;
    if (past != nullptr)
      std::copy_n(before.data() + at * past_length * size, past_length * size, to);
    to += past_length * size;
    for (std::int64_t row = 0; row < length; ++row) {
      const std::int64_t from =
          flat ? ((b * length + row) * heads + h) * size : (at * length + row) * size;
      std::copy_n(now.data() + from, size, to + row * size);
    }
  }
  return out;
}

// What is added to the scores of one query.
class Bias {
 public:
  static Result<Bias> of(KernelContext& context, const Call& call) {
    Bias bias;
    if (const TensorView* mask = context.input(nn::kAttentionMask)) {
      bias.is_bool_ = mask->dtype == DType::kBool;
      if (bias.is_bool_) {
        bias.values_.assign(mask->as<bool>(), mask->as<bool>() + mask->numel());
      } else {
        const nn::Reals<double> reals(*mask);
        bias.values_.assign(reals.data(), reals.data() + mask->numel());
      }
      Dims target = {call.batch, call.query_heads, call.queries, mask->dims.back()};
      bias.strides_ = broadcast_strides(mask->dims, target);
      bias.columns_ = mask->dims.back();
    }
    if (const TensorView* valid = context.input(nn::kAttentionValidKeys))
      bias.valid_.assign(valid->as<std::int64_t>(), valid->as<std::int64_t>() + valid->numel());
    if (!bias.valid_.empty() && static_cast<std::int64_t>(bias.valid_.size()) != call.batch) {
      return nn::op_error("Attention",
                          fmt::format("input 'nonpad_kv_seqlen': expected {} elements, found {}",
                                      call.batch, bias.valid_.size()));
    }
    return bias;
  }

  void row(const Call& call, std::int64_t b, std::int64_t h, std::int64_t query,
           std::vector<double>& out) const {
    std::int64_t first = 0;
    std::int64_t last = call.total;  // the first key that is not seen
    if (!valid_.empty()) last = std::min(last, valid_[static_cast<std::size_t>(b)]);
    const std::int64_t before =
        valid_.empty() ? call.past : valid_[static_cast<std::size_t>(b)] - call.queries;
    const std::int64_t own = query + before;  // the key at the place of the query
    if (call.causal) last = std::min(last, own + 1);
    if (call.left_window >= 0) first = own > call.left_window ? own - call.left_window : 0;
    if (call.right_window >= 0 && call.right_window < last - own)
      last = own + call.right_window + 1;
    for (std::int64_t key = 0; key < call.total; ++key)
      out[static_cast<std::size_t>(key)] =
          first <= key && key < last ? from_mask(b, h, query, key) : kMinusInfinity;
  }

 private:
  [[nodiscard]] double from_mask(std::int64_t b, std::int64_t h, std::int64_t query,
                                 std::int64_t key) const {
    if (strides_.empty()) return 0;
    if (key >= columns_) return kMinusInfinity;
    const double value = values_[static_cast<std::size_t>(b * strides_[0] + h * strides_[1] +
                                                          query * strides_[2] + key * strides_[3])];
    return !is_bool_ ? value : value != 0 ? 0 : kMinusInfinity;
  }

  std::vector<double> values_;
  Dims strides_;  // empty: no mask
  std::int64_t columns_ = 0;
  bool is_bool_ = false;
  std::vector<std::int64_t> valid_;  // by batch; empty: all
};

// Scores become weights; `seen` (where it is not null) gets what qk_matmul_output asks for.
void weights_of(const Call& call, const std::vector<double>& bias, std::vector<double>& scores,
                double* seen) {
  const auto keep = [&](std::int64_t mode) {
    if (seen != nullptr && call.mode == mode) std::copy(scores.begin(), scores.end(), seen);
  };
  keep(0);
  for (double& score : scores)
    if (call.softcap != 0) score = call.softcap * std::tanh(score / call.softcap);
  keep(1);
  bool masked = call.nan_rows == nn::kMaskedRowsAreZero;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    masked = masked && bias[i] == kMinusInfinity;
    scores[i] += bias[i];
  }
  keep(2);
  if (masked) {
    std::fill(scores.begin(), scores.end(), 0.0);
  } else {
    double top = kMinusInfinity;
    for (const double score : scores) top = score > top || std::isnan(score) ? score : top;
    double sum = 0;
    for (double& score : scores) sum += score = std::exp(score - top);
    for (double& score : scores) {
      score /= sum;
      if (call.nan_rows == nn::kNanIsZero && std::isnan(score)) score = 0;
    }
  }
  keep(3);
}

void run_row(const Call& call, const Bias& bias, std::int64_t row, double* y, double* seen) {
  const std::int64_t query = row % call.queries;
  const std::int64_t head = row / call.queries % call.query_heads;
  const std::int64_t b = row / call.queries / call.query_heads;
  const std::int64_t group = b * call.key_heads + head / (call.query_heads / call.key_heads);
  const double* q = call.q.data() + row * call.head;
  const double* k = call.k.data() + group * call.total * call.head;
  const double* v = call.v.data() + group * call.total * call.value;
  std::vector<double> scores(static_cast<std::size_t>(call.total));
  std::vector<double> added(scores.size());
  for (std::int64_t key = 0; key < call.total; ++key) {
    double sum = 0;
    for (std::int64_t i = 0; i < call.head; ++i) sum += q[i] * k[key * call.head + i];
    scores[static_cast<std::size_t>(key)] = sum * call.scale;
  }
  bias.row(call, b, head, query, added);
  weights_of(call, added, scores, seen);
  std::fill_n(y, call.value, 0.0);
  for (std::int64_t key = 0; key < call.total; ++key) {
    const double weight = scores[static_cast<std::size_t>(key)];
    for (std::int64_t i = 0; i < call.value; ++i) y[i] += weight * v[key * call.value + i];
  }
}

Result<Call> read_call(KernelContext& context, const AttentionSizes& sizes) {
  const Attributes& attributes = context.attributes();
  Call call{number(sizes.batch),
            number(sizes.query_heads),
            number(sizes.key_heads),
            number(sizes.query_length),
            number(sizes.key_length),
            number(sizes.past_length),
            number(sizes.total_length),
            number(sizes.head_size),
            number(sizes.value_size),
            {},
            {},
            {}};
  call.scale = attributes.has("scale") ? static_cast<double>(attributes.get_float("scale", 1))
                                       : 1 / std::sqrt(static_cast<double>(call.head));
  call.softcap = static_cast<double>(attributes.get_float("softcap", 0));
  call.causal = attributes.get_int("is_causal", 0) != 0;
  call.left_window = attributes.get_int("left_window_size", nn::kUnboundedWindow);
  call.right_window = attributes.get_int("right_window_size", nn::kUnboundedWindow);
  call.nan_rows = attributes.get_int("nan_rows", nn::kMaskedRowsAreZero);
  call.mode = attributes.get_int("qk_matmul_output_mode", 0);
  TESSERA_ASSIGN(const TensorView* q, kernel_input(context, nn::kAttentionQuery));
  TESSERA_ASSIGN(const TensorView* k, kernel_input(context, nn::kAttentionKey));
  TESSERA_ASSIGN(const TensorView* v, kernel_input(context, nn::kAttentionValue));
  call.q = gather_heads(*q, nullptr, sizes.flat, call.batch, call.query_heads, call.queries, 0,
                        call.head);
  call.k = gather_heads(*k, context.input(nn::kAttentionPastKey), sizes.flat, call.batch,
                        call.key_heads, call.keys, call.past, call.head);
  call.v = gather_heads(*v, context.input(nn::kAttentionPastValue), sizes.flat, call.batch,
                        call.key_heads, call.keys, call.past, call.value);
  return call;
}

Status store_present(KernelContext& context, std::size_t index, const Shape& shape, DType dtype,
                     const std::vector<double>& elements) {
  if (context.output_count() <= index) return {};
  TESSERA_ASSIGN(const MutableTensorView view, context.output(index, dtype, *constant_dims(shape)));
  nn::RealResult<double> out(view);
  std::copy(elements.begin(), elements.end(), out.data());
  out.finish();
  return {};
}

Status kernel(KernelContext& context) {
  TESSERA_TRY(check_attributes(context.attributes()));
  std::vector<Shape> shapes(context.input_count());
  std::vector<const Shape*> present(context.input_count(), nullptr);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (context.input(i) == nullptr) continue;
    shapes[i] = to_shape(context.input(i)->dims);
    present[i] = &shapes[i];
  }
  TESSERA_ASSIGN(const AttentionSizes sizes, nn::attention_sizes(context.attributes(), present));
  TESSERA_ASSIGN(const Call call, read_call(context, sizes));
  TESSERA_ASSIGN(const Bias bias, Bias::of(context, call));
  const DType query = context.input(nn::kAttentionQuery)->dtype;
  TESSERA_ASSIGN(const MutableTensorView y_view,
                 context.output(0, query, *constant_dims(sizes.output())));
  nn::RealResult<double> y(y_view);
  const std::int64_t rows = call.batch * call.query_heads * call.queries;
  std::vector<double> seen(context.output_count() > 3 ? static_cast<std::size_t>(rows * call.total)
                                                      : 0);
  const std::int64_t work = std::max<std::int64_t>(1, call.total * (call.head + call.value));
  context.parallel_for(
      rows, std::max<std::int64_t>(1, kGrain / work), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          const std::int64_t query_at = row % call.queries;
          const std::int64_t head = row / call.queries % call.query_heads;
          const std::int64_t b = row / call.queries / call.query_heads;
          const std::int64_t to =
              sizes.flat ? (b * call.queries + query_at) * call.query_heads + head : row;
          run_row(call, bias, row, y.data() + to * call.value,
                  seen.empty() ? nullptr : seen.data() + row * call.total);
        }
      });
  y.finish();
  TESSERA_TRY(store_present(context, 1, sizes.present_key(),
                            context.input(nn::kAttentionKey)->dtype, call.k));
  TESSERA_TRY(store_present(context, 2, sizes.present_value(),
                            context.input(nn::kAttentionValue)->dtype, call.v));
  return store_present(context, 3, sizes.scores(), query, seen);
}

Work attention_work(const Attributes& attributes, std::span<const TensorSpec> inputs,
                    std::span<const TensorSpec> outputs) {
  Work work = nn::operand_traffic(inputs, outputs);
  std::vector<Shape> shapes(inputs.size());
  std::vector<const Shape*> present(inputs.size(), nullptr);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    shapes[i] = to_shape(inputs[i].dims);
    if (inputs[i].present) present[i] = &shapes[i];
  }
  const auto sizes = nn::attention_sizes(attributes, present);
  if (!sizes) return work;
  const auto scores = static_cast<double>(numel(*constant_dims(sizes->scores())));
  work.flops = scores * static_cast<double>(2 * number(sizes->head_size) +
                                            2 * number(sizes->value_size) + 5);
  return work;
}

// Attention whose scores and weights bodies change; import makes its parts of it.
Status infer_flex(InferContext& context) {
  for (std::size_t i = 0; i < 3; ++i) TESSERA_TRY(require_rank(context, i, 4));
  const auto& q = context.inputs[0].type;
  const auto& v = context.inputs[2].type.shape;
  std::optional<Shape> output = q.shape;
  if (output) output->back() = v ? v->back() : context.fresh_symbol("head");
  set_output(context, 0, q.dtype, std::move(output));
  return {};
}

OpSchema flex_attention() {
  OpSchema op;
  op.domain = "ai.onnx.preview";
  op.name = "FlexAttention";
  op.versions = {1};
  op.inputs = {required("Q", "T1"), required("K", "T1"), required("V", "T1")};
  op.outputs = {required("Y", "T1")};
  op.attributes = {attr("prob_mod", AttrType::kGraph), attr("scale", AttrType::kFloat),
                   attr("score_mod", AttrType::kGraph), attr("softmax_precision", AttrType::kInt)};
  op.type_variables = {{"T1", kFloatTypes}};
  op.structure = Structure::kControlFlow;
  op.infer = infer_flex;
  return op;
}

}  // namespace

std::vector<OpSchema> attention_ops() {
  OpSchema op;
  op.name = "Attention";
  op.versions = {23, 24, 25};
  op.inputs = {required("Q", "T1"),
               required("K", "T1"),
               required("V", "T2"),
               optional("attn_mask", "U"),
               optional("past_key", "T1"),
               optional("past_value", "T2"),
               optional("nonpad_kv_seqlen", "I")};
  op.outputs = {required("Y", "T1"), optional("present_key", "T1"), optional("present_value", "T2"),
                optional("qk_matmul_output", "T1")};
  // nan_rows is none of the standard's (attention_plan.h).
  op.attributes = {
      attr("is_causal", AttrType::kInt),         attr("kv_num_heads", AttrType::kInt),
      attr("left_window_size", AttrType::kInt),  attr("nan_rows", AttrType::kInt),
      attr("q_num_heads", AttrType::kInt),       attr("qk_matmul_output_mode", AttrType::kInt),
      attr("right_window_size", AttrType::kInt), attr("scale", AttrType::kFloat),
      attr("softcap", AttrType::kFloat),         attr("softmax_precision", AttrType::kInt)};
  op.type_variables = {{"T1", kFloatTypes},
                       {"T2", kFloatTypes},
                       {"U", kNumericTypes | kBoolType},
                       {"I", kInt64Type}};
  op.structure = Structure::kContraction;
  op.infer = infer;
  op.kernel = kernel;
  op.work = attention_work;
  return {op, flex_attention()};
}

}  // namespace tessera::ops
