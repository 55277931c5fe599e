#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "backends/cpu/run/conv_plan.h"
#include "backends/cpu/run/physical.h"

namespace tessera::backends::cpu {
namespace {

// Walks the steps behind an anchor as a chain of post-ops.
class EpilogueReader {
 public:
  EpilogueReader(const artefact::KernelSpec& spec, Constants constants, bool accepts_bias,
                 std::size_t channel)
      : spec_(spec), constants_(constants), accepts_bias_(accepts_bias), channel_(channel) {}

  std::vector<EpiloguePlan> read() {
    std::vector<EpiloguePlan> cuts = {plan_};
    current_ = result_number(spec_, 0);
    for (std::size_t at = 1; at < spec_.steps.size();) {
      const EpiloguePlan before = plan_;
      const std::size_t taken = take(at);
      if (taken == 0 || repeats_eltwise()) {
        plan_ = before;
        break;
      }
      at += taken;
      current_ = result_number(spec_, at - 1);
      plan_.steps = at - 1;
      cuts.push_back(plan_);
    }
    std::reverse(cuts.begin(), cuts.end());
    return cuts;
  }

 private:
  // How many steps from `at` on became post-ops.
  std::size_t take(std::size_t at) {
    if (const std::size_t steps = take_gate(at); steps > 0) return steps;
    const auto& step = spec_.steps[at];
    if (step.output_count != 1 || !step.domain.empty() || step_input(step, 0) < 0) return 0;
    const bool taken = step.inputs.size() == 2 && (step.op_type == "Add" || step.op_type == "Mul" ||
                                                   step.op_type == "Sub" || step.op_type == "Div")
                           ? take_binary(step)
                           : take_unary(step);
    return taken ? 1 : 0;
  }

  // oneDNN 2.6.3 (jit_1x1:avx2 with three output blocks) computes wrong values where one algorithm
  // stands twice in a chain.
  [[nodiscard]] bool repeats_eltwise() const {
    for (std::size_t i = 0; i < plan_.post_ops.size(); ++i) {
      for (std::size_t j = i + 1; j < plan_.post_ops.size(); ++j) {
        if (!plan_.post_ops[i].op.binary && !plan_.post_ops[j].op.binary &&
            plan_.post_ops[i].op.eltwise == plan_.post_ops[j].op.eltwise)
          return true;
      }
    }
    return false;
  }

  // A post-op; a linear one joins a linear one before it.
  void eltwise(Eltwise kind, float alpha = 0, float beta = 0) {
    if (kind == Eltwise::kLinear && !plan_.post_ops.empty() && !plan_.post_ops.back().op.binary &&
        plan_.post_ops.back().op.eltwise == Eltwise::kLinear) {
      PostOp& last = plan_.post_ops.back().op;
      last.beta = alpha * last.beta + beta;
      last.alpha *= alpha;
      return;
    }
    PlannedPostOp planned;
    planned.op.eltwise = kind;
    planned.op.alpha = alpha;
    planned.op.beta = beta;
    plan_.post_ops.push_back(planned);
  }

  bool take_unary(const artefact::KernelStep& step) {
    if (step.inputs[0] != current_) return false;
    const auto& op = step.op_type;
    if (op == "Relu") {
      // The library's plain code multiplies what is below 0 by the slope: minus infinity by 0.
      eltwise(Eltwise::kClip, 0, HUGE_VALF);
    } else if (op == "LeakyRelu") {
      eltwise(Eltwise::kRelu, step.attributes.get_float("alpha", 0.01F));
    } else if (op == "Clip") {
      const auto low =
          step_input(step, 1) < 0 ? -HUGE_VALF : constant_scalar(spec_, constants_, step.inputs[1]);
      const auto high =
          step_input(step, 2) < 0 ? HUGE_VALF : constant_scalar(spec_, constants_, step.inputs[2]);
      if (!low || !high || std::isnan(*low) || std::isnan(*high)) return false;
      eltwise(Eltwise::kClip, *low, *high);
    } else if (op == "Sigmoid") {
      eltwise(Eltwise::kSigmoid);
    } else if (op == "Tanh") {
      eltwise(Eltwise::kTanh);
    } else if (op == "Elu") {
      eltwise(Eltwise::kElu, step.attributes.get_float("alpha", 1));
    } else if (op == "HardSwish") {
      eltwise(Eltwise::kHardSwish);
    } else if (op == "HardSigmoid") {
      eltwise(Eltwise::kLinear, step.attributes.get_float("alpha", 0.2F),
              step.attributes.get_float("beta", 0.5F));
      eltwise(Eltwise::kClip, 0, 1);
    } else if (op == "Gelu") {
      eltwise(step.attributes.get_string("approximate", "none") == "tanh" ? Eltwise::kGeluTanh
                                                                          : Eltwise::kGeluErf);
    } else {
      return false;
    }
    return true;
  }

  bool take_binary(const artefact::KernelStep& step) {
    const bool first = step.inputs[0] == current_;
    if (first == (step.inputs[1] == current_)) return false;  // neither, or both
    const std::int32_t other = step.inputs[first ? 1 : 0];
    const auto& op = step.op_type;
    if (!first && (op == "Sub" || op == "Div")) return false;
    if (const auto scalar = constant_scalar(spec_, constants_, other))
      return take_scalar(op, *scalar);
    const auto* decl = operand_decl(spec_, other);
    if (decl == nullptr || decl->dtype != DType::kFp32 ||
        decl->shape.size() != spec_.outputs[0].shape.size())
      return false;
    if (op == "Add" && accepts_bias_ && !plan_.bias && plan_.post_ops.empty() &&
        is_constant(spec_, other) && per_channel(*decl)) {
      plan_.bias = other;
      return true;
    }
    PlannedPostOp planned;
    planned.op.binary = op == "Add"   ? Binary::kAdd
                        : op == "Sub" ? Binary::kSub
                        : op == "Mul" ? Binary::kMul
                                      : Binary::kDiv;
    planned.operand = other;
    plan_.post_ops.push_back(planned);
    return true;
  }

  bool take_scalar(const std::string& op, float scalar) {
    if (op == "Add") eltwise(Eltwise::kLinear, 1, scalar);
    if (op == "Sub") eltwise(Eltwise::kLinear, 1, -scalar);
    if (op == "Mul") eltwise(Eltwise::kLinear, scalar, 0);
    if (op == "Div") {
      // Exact only where the reciprocal is: powers of two. Others are a rounding away, as fused
      // code is everywhere.
      if (scalar == 0) return false;
      eltwise(Eltwise::kLinear, 1 / scalar, 0);
    }
    return true;
  }

  // Every size 1 but that of the channel, which is the result's.
  [[nodiscard]] bool per_channel(const artefact::TensorDecl& decl) const {
    for (std::size_t d = 0; d < decl.shape.size(); ++d) {
      if (d == channel_ ? !(decl.shape[d] == spec_.outputs[0].shape[d])
                        : decl.shape[d].constant() != 1)
        return false;
    }
    return true;
  }

  // x * gate(x): swish and hardswish, spelled with a step of their own for the gate.
  std::size_t take_gate(std::size_t at) {
    const auto is = [&](std::size_t i, std::string_view op) {
      return i < spec_.steps.size() && spec_.steps[i].op_type == op;
    };
    const auto& gate = spec_.steps[at];
    if (step_input(gate, 0) != current_ && step_input(gate, 1) != current_) return 0;
    if (is(at, "Sigmoid") && is_product(at + 1, current_, result_number(spec_, at))) {
      eltwise(Eltwise::kSwish, 1);
      return 2;
    }
    if (is(at, "HardSigmoid") &&
        std::abs(gate.attributes.get_float("alpha", 0.2F) - 1.0F / 6) < 1e-6F &&
        gate.attributes.get_float("beta", 0.5F) == 0.5F &&
        is_product(at + 1, current_, result_number(spec_, at))) {
      eltwise(Eltwise::kHardSwish);
      return 2;
    }
    if (is_scalar_step(at, "Add", current_, 3) && is(at + 1, "Clip") &&
        clips(at + 1, result_number(spec_, at), 0, 6) &&
        is_product(at + 2, current_, result_number(spec_, at + 1)) &&
        (is_scalar_step(at + 3, "Div", result_number(spec_, at + 2), 6) ||
         is_scalar_step(at + 3, "Mul", result_number(spec_, at + 2), 1.0F / 6))) {
      eltwise(Eltwise::kHardSwish);
      return 4;
    }
    return 0;
  }

  [[nodiscard]] bool is_product(std::size_t at, std::int32_t a, std::int32_t b) const {
    if (at >= spec_.steps.size() || spec_.steps[at].op_type != "Mul") return false;
    const auto& inputs = spec_.steps[at].inputs;
    return (inputs[0] == a && inputs[1] == b) || (inputs[0] == b && inputs[1] == a);
  }

  [[nodiscard]] bool is_scalar_step(std::size_t at, std::string_view op, std::int32_t x,
                                    float scalar) const {
    if (at >= spec_.steps.size() || spec_.steps[at].op_type != op ||
        spec_.steps[at].inputs.size() != 2)
      return false;
    const auto& inputs = spec_.steps[at].inputs;
    const auto matches = [&](std::int32_t number) {
      const auto value = constant_scalar(spec_, constants_, number);
      return value && std::abs(*value - scalar) <= 1e-6F * std::abs(scalar);
    };
    return (inputs[0] == x && matches(inputs[1])) ||
           (op != "Div" && inputs[1] == x && matches(inputs[0]));
  }

  [[nodiscard]] bool clips(std::size_t at, std::int32_t x, float low, float high) const {
    const auto& step = spec_.steps[at];
    return step_input(step, 0) == x &&
           constant_scalar(spec_, constants_, step_input(step, 1)) == low &&
           constant_scalar(spec_, constants_, step_input(step, 2)) == high;
  }

  const artefact::KernelSpec& spec_;
  Constants constants_;
  bool accepts_bias_;
  std::size_t channel_;
  std::int32_t current_ = 0;
  EpiloguePlan plan_;
};

}  // namespace

std::vector<EpiloguePlan> plan_epilogue(const artefact::KernelSpec& spec, Constants constants,
                                        bool accepts_bias, std::size_t channel) {
  return EpilogueReader(spec, constants, accepts_bias, channel).read();
}

Dims operand_dims(const artefact::KernelSpec& spec, const InstanceDims& dims, std::int32_t number) {
  const OperandRef ref = operand_ref(spec, number);
  if (ref.kind == OperandRef::Kind::kInput) return dims.inputs[ref.index];
  TESSERA_CHECK(ref.kind == OperandRef::Kind::kConstant);
  return *constant_dims(spec.constants[ref.index].shape);
}

Status set_post_op_operands(const artefact::KernelSpec& spec, const EpiloguePlan& epilogue,
                            const InstanceDims& dims, const Dims& piece,
                            std::vector<PostOp>& post_ops) {
  const Dims& dst = dims.outputs[0];
  for (std::size_t i = 0; i < post_ops.size(); ++i) {
    if (!post_ops[i].binary) continue;
    const std::int32_t number = epilogue.post_ops[i].operand;
    const Dims own = operand_dims(spec, dims, number);
    const Layout& layout = operand_decl(spec, number)->layout;
    Dims seen(own.size());
    if (own.size() != dst.size())
      return fail(ErrorCode::kUnimplemented, fmt::format("expected an operand of rank {}, found {}",
                                                         dst.size(), to_string(own)));
    // oneDNN 2.6.3 computes wrong values there.
    const bool spatial =
        std::any_of(own.begin() + 2, own.end(), [](auto size) { return size != 1; });
    if (is_channels_last(layout, own.size()) && own[1] == 1 && dst[1] != 1 && spatial)
      return fail(
          ErrorCode::kUnimplemented,
          fmt::format("expected an operand with channels in nhwc, found {}", to_string(own)));
    for (std::size_t d = 0; d < own.size(); ++d)
      seen[d] = own[d] == 1 && dst[d] != 1 ? 1 : piece[d];
    if (padded_dims(layout, seen) != seen) {
      return fail(ErrorCode::kUnimplemented,
                  fmt::format("expected an operand in whole blocks of {}, found {}",
                              layout.to_string(), to_string(own)));
    }
    post_ops[i].operand = {seen, layout, false};
  }
  return {};
}

}  // namespace tessera::backends::cpu
