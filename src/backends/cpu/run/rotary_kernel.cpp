// "cpu.rotary_embedding": pairs of elements of each head turned by the angle of their position.

#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/run/kernels.h"
#include "backends/cpu/run/rotary_plan.h"

namespace tessera::backends::cpu {
namespace {

constexpr std::int64_t kGrain = 8192;

// Follows a table through views to the operand that holds it.
Result<RotaryTable> follow_table(const artefact::KernelSpec& spec, Constants constants,
                                 std::int32_t number) {
  RotaryTable table;
  for (OperandRef ref = operand_ref(spec, number); ref.kind == OperandRef::Kind::kResult;
       ref = operand_ref(spec, number)) {
    const auto& step = spec.steps[ref.index];
    const bool is_view = step.op_type == "Squeeze" || step.op_type == "Unsqueeze";
    if (!is_view && step.op_type != "Slice")
      return bad_spec(spec, fmt::format("expected a view of a table, found {}", step.op_type));
    number = step_input(step, 0);
    if (is_view) continue;
    const auto* decl = operand_decl(spec, number);
    TESSERA_ASSIGN(const auto starts, constant_ints(spec, constants, step_input(step, 1)));
    TESSERA_ASSIGN(const auto ends, constant_ints(spec, constants, step_input(step, 2)));
    TESSERA_ASSIGN(const auto axes, constant_ints(spec, constants, step_input(step, 3)));
    const auto rank = decl == nullptr ? 0 : static_cast<std::int64_t>(decl->shape.size());
    const bool halves = rank > 0 && starts == std::vector<std::int64_t>{0} && ends.size() == 1 &&
                        decl->shape.back() == Dim(2 * ends[0]) &&
                        axes == std::vector<std::int64_t>{rank - 1};
    if (!halves) return bad_spec(spec, "expected the first half of a table's last axis");
    table.row_is_twice = true;
  }
  table.operand = number;
  const auto* decl = operand_decl(spec, number);
  if (decl == nullptr || decl->dtype != DType::kFp32)
    return fail(ErrorCode::kUnimplemented, "RotaryEmbedding: expected tables of fp32");
  return table;
}

class RotaryKernel final : public LoadedKernel {
 public:
  RotaryKernel(artefact::KernelSpec spec, Constants constants, const RotaryPlan& plan)
      : spec_(std::move(spec)), constants_(constants.begin(), constants.end()), plan_(plan) {}
  Result<std::unique_ptr<KernelInstance>> instantiate(const InstanceDims& dims,
                                                      int threads) const override;

 private:
  friend class RotaryInstance;
  [[nodiscard]] Dims dims_of(std::int32_t number, const InstanceDims& dims) const {
    const OperandRef ref = operand_ref(spec_, number);
    return ref.kind == OperandRef::Kind::kInput ? dims.inputs[ref.index]
                                                : *constant_dims(spec_.constants[ref.index].shape);
  }
  [[nodiscard]] const std::byte* data(std::int32_t number, const ExecuteArgs& args) const {
    const OperandRef ref = operand_ref(spec_, number);
    return ref.kind == OperandRef::Kind::kInput ? args.inputs[ref.index]
                                                : constants_[ref.index].data();
  }

  artefact::KernelSpec spec_;
  std::vector<std::span<const std::byte>> constants_;
  RotaryPlan plan_;
};

class RotaryInstance final : public KernelInstance {
 public:
  RotaryInstance(const RotaryKernel& kernel, const InstanceDims& dims, int threads)
      : kernel_(kernel) {
    const auto& attributes = kernel.spec_.steps[kernel.plan_.step].attributes;
    const Dims x = kernel.dims_of(kernel.plan_.input, dims);
    flat_ = x.size() == 3;
    batch_ = x[0];
    heads_ = flat_ ? std::max<std::int64_t>(1, attributes.get_int("num_heads", 1)) : x[1];
    length_ = flat_ ? x[1] : x[2];
    size_ = flat_ ? x[2] / heads_ : x[3];
    const std::int64_t turned = attributes.get_int("rotary_embedding_dim", 0);
    half_ = (turned == 0 ? size_ : turned) / 2;
    table_rows_ = kernel.plan_.positions < 0 ? batch_ * length_
                                             : kernel.dims_of(kernel.plan_.cosine.operand, dims)[0];
    const std::int64_t lines = batch_ * heads_ * length_;
    chunks_ =
        std::min(chunk_count(lines * size_, kGrain, threads), std::max<std::int64_t>(lines, 1));
  }

  Status execute(const ExecuteArgs& args) override {
    const RotaryPlan& plan = kernel_.plan_;
    const auto* positions =
        plan.positions < 0
            ? nullptr
            : reinterpret_cast<const std::int64_t*>(kernel_.data(plan.positions, args));
    for (std::int64_t i = 0; positions != nullptr && i < batch_ * length_; ++i) {
      if (positions[i] < 0 || positions[i] >= table_rows_)
        return fail(ErrorCode::kOutOfRange,
                    fmt::format("RotaryEmbedding: input 'position_ids': expected values from 0 to "
                                "{}, found {}",
                                table_rows_ - 1, positions[i]));
    }
    const auto run = [&](std::int64_t chunk) { run_lines(chunk, positions, args); };
    args.parallel->run(chunks_, run);
    return {};
  }

 private:
  void run_lines(std::int64_t chunk, const std::int64_t* positions, const ExecuteArgs& args) const {
    const RotaryPlan& plan = kernel_.plan_;
    const float* x = floats(kernel_.data(plan.input, args));
    const float* cosine = floats(kernel_.data(plan.cosine.operand, args));
    const float* sine = floats(kernel_.data(plan.sine.operand, args));
    float* y = floats(args.outputs[0]);
    const ChunkRange range = chunk_range(batch_ * heads_ * length_, chunks_, chunk);
    for (std::int64_t line = range.begin; line < range.end; ++line) {
      std::int64_t row =
          flat_ ? line / heads_ : line / (heads_ * length_) * length_ + line % length_;
      if (positions != nullptr) row = positions[row];
      turn(x + line * size_, cosine + row * half_ * (plan.cosine.row_is_twice ? 2 : 1),
           sine + row * half_ * (plan.sine.row_is_twice ? 2 : 1), y + line * size_);
    }
  }

  void turn(const float* x, const float* cosine, const float* sine, float* y) const {
    const std::int64_t step = kernel_.plan_.interleaved ? 2 : 1;
    const std::int64_t other = kernel_.plan_.interleaved ? 1 : half_;
    for (std::int64_t i = 0; i < half_; ++i) {
      const float a = x[i * step];
      const float b = x[i * step + other];
      y[i * step] = cosine[i] * a - sine[i] * b;
      y[i * step + other] = sine[i] * a + cosine[i] * b;
    }
    std::copy(x + 2 * half_, x + size_, y + 2 * half_);
  }

  const RotaryKernel& kernel_;
  bool flat_ = false;
  std::int64_t batch_ = 0, heads_ = 0, length_ = 0, size_ = 0, half_ = 0, table_rows_ = 0;
  std::int64_t chunks_ = 1;
};

Result<std::unique_ptr<KernelInstance>> RotaryKernel::instantiate(const InstanceDims& dims,
                                                                  int threads) const {
  return std::unique_ptr<KernelInstance>(std::make_unique<RotaryInstance>(*this, dims, threads));
}

}  // namespace

Result<RotaryPlan> plan_rotary(const artefact::KernelSpec& spec, Constants constants) {
  if (spec.steps.empty() || spec.steps.back().op_type != "RotaryEmbedding" ||
      spec.outputs.size() != 1)
    return bad_spec(spec, "expected RotaryEmbedding last and one output");
  RotaryPlan plan;
  plan.step = spec.steps.size() - 1;
  const auto& step = spec.steps.back();
  plan.input = step_input(step, 0);
  const auto* x = operand_decl(spec, plan.input);
  if (x == nullptr || x->dtype != DType::kFp32)
    return fail(ErrorCode::kUnimplemented, "RotaryEmbedding: expected an input of fp32");
  TESSERA_ASSIGN(plan.cosine, follow_table(spec, constants, step_input(step, 1)));
  TESSERA_ASSIGN(plan.sine, follow_table(spec, constants, step_input(step, 2)));
  plan.positions = step_input(step, 3);
  plan.interleaved = step.attributes.get_int("interleaved", 0) != 0;
  return plan;
}

Result<std::unique_ptr<LoadedKernel>> load_rotary(const artefact::KernelSpec& spec,
                                                  Constants constants) {
  TESSERA_ASSIGN(const RotaryPlan plan, plan_rotary(spec, constants));
  return std::unique_ptr<LoadedKernel>(new RotaryKernel(spec, constants, plan));
}

}  // namespace tessera::backends::cpu
