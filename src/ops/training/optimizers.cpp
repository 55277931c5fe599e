// Adagrad, Adam and Momentum of ai.onnx.preview.training: one step of an optimiser.

#include <fmt/format.h>

#include <cmath>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/kernel_util.h"
#include "ops/nn/reals.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

// Inputs are R, T and then, for each of n tensors: all X, all gradients, all of each state. Outputs
// are all new X, all of each new state.
constexpr std::size_t kScalars = 2;

Result<std::size_t> tensor_count(std::size_t inputs, std::size_t states) {
  const std::size_t kinds = 2 + states;
  if (inputs > kScalars && (inputs - kScalars) % kinds == 0) return (inputs - kScalars) / kinds;
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("expected 2 inputs and {} for each tensor, found {}", kinds, inputs));
}

template <std::size_t kStates>
Status infer(InferContext& context) {
  TESSERA_ASSIGN(const std::size_t count, tensor_count(context.inputs.size(), kStates));
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t kind = 0; kind < 2 + kStates; ++kind) {
      const std::size_t input = kScalars + kind * count + i;
      TESSERA_TRY(require_dtype(context, input, dtype_set({DType::kFp32, DType::kFp64})));
      if (kind == 1) continue;  // no output is a gradient
      const ValueType& type = context.inputs[input].type;
      set_output(context, (kind == 0 ? 0 : kind - 1) * count + i, type.dtype, type.shape);
    }
  }
  return {};
}

struct Step {
  double rate = 0;
  std::int64_t number = 0;  // T: how many steps went before
  const Attributes* attributes = nullptr;
  [[nodiscard]] double real(const char* name, float fallback) const {
    return static_cast<double>(attributes->get_float(name, fallback));
  }
};

// rule(step, x, gradient, states) updates x and states, one element each.
template <std::size_t kStates, typename Rule>
Status run(KernelContext& context, const Rule& rule) {
  TESSERA_ASSIGN(const std::size_t count, tensor_count(context.input_count(), kStates));
  TESSERA_ASSIGN(const TensorView* rate, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* number, kernel_input(context, 1));
  if (rate->numel() != 1 || number->numel() != 1)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("expected scalars R and T, found {} and {}", to_string(rate->dims),
                            to_string(number->dims)));
  const Step step{nn::Reals<double>(*rate)[0], to_int64_vector(*number)[0], &context.attributes()};
  for (std::size_t i = 0; i < count; ++i) {
    TESSERA_ASSIGN(const TensorView* x, kernel_input(context, kScalars + i));
    TESSERA_ASSIGN(const TensorView* gradient, kernel_input(context, kScalars + count + i));
    std::vector<std::vector<double>> columns;  // x, then the states
    std::vector<MutableTensorView> outputs;
    for (std::size_t kind = 0; kind <= kStates; ++kind) {
      TESSERA_ASSIGN(const TensorView* old,
                     kernel_input(context, kScalars + (kind == 0 ? 0 : kind + 1) * count + i));
      if (old->dims != x->dims || gradient->dims != x->dims)
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("expected tensors of {}, found {} and {}", to_string(x->dims),
                                to_string(old->dims), to_string(gradient->dims)));
      const nn::Reals<double> values(*old);
      columns.emplace_back(values.data(), values.data() + old->numel());
      TESSERA_ASSIGN(const MutableTensorView output,
                     context.output(kind * count + i, old->dtype, old->dims));
      outputs.push_back(output);
    }
    const nn::Reals<double> gradients(*gradient);
    for (std::size_t at = 0; at < columns[0].size(); ++at) {
      std::array<double, kStates> states;
      for (std::size_t s = 0; s < kStates; ++s) states[s] = columns[s + 1][at];
      rule(step, columns[0][at], gradients[static_cast<std::int64_t>(at)], states);
      for (std::size_t s = 0; s < kStates; ++s) columns[s + 1][at] = states[s];
    }
    for (std::size_t kind = 0; kind <= kStates; ++kind)
      cast_elements({DType::kFp64, x->dims, columns[kind].data()}, outputs[kind], true);
  }
  return {};
}

Status adagrad_kernel(KernelContext& context) {
  return run<1>(context, [](const Step& step, double& x, double gradient, auto& states) {
    const double rate =
        step.rate / (1 + static_cast<double>(step.number) * step.real("decay_factor", 0));
    const double g = step.real("norm_coefficient", 0) * x + gradient;
    states[0] += g * g;
    x -= rate * g / (std::sqrt(states[0]) + step.real("epsilon", 0));
  });
}

Status adam_kernel(KernelContext& context) {
  return run<2>(context, [](const Step& step, double& x, double gradient, auto& states) {
    const double alpha = step.real("alpha", 0.9F);
    const double beta = step.real("beta", 0.999F);
    const double g = step.real("norm_coefficient", 0) * x + gradient;
    states[0] = alpha * states[0] + (1 - alpha) * g;
    states[1] = beta * states[1] + (1 - beta) * g * g;
    const auto number = static_cast<double>(step.number);
    const double rate = step.number > 0 ? step.rate * std::sqrt(1 - std::pow(beta, number)) /
                                              (1 - std::pow(alpha, number))
                                        : step.rate;
    x -= rate * states[0] / (std::sqrt(states[1]) + step.real("epsilon", 0));
    x *= 1 - step.real("norm_coefficient_post", 0);
  });
}

Result<bool> is_nesterov(const Attributes& attributes) {
  const std::string mode = attributes.get_string("mode", "");
  if (mode == "standard" || mode == "nesterov") return mode == "nesterov";
  return attribute_error("mode",
                         fmt::format("expected 'standard' or 'nesterov', found '{}'", mode));
}

Status momentum_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const bool nesterov, is_nesterov(context.attributes()));
  return run<1>(context, [nesterov](const Step& step, double& x, double gradient, auto& states) {
    const double alpha = step.real("alpha", 0);
    const double g = step.real("norm_coefficient", 0) * x + gradient;
    states[0] = alpha * states[0] + (step.number > 0 ? step.real("beta", 0) : 1) * g;
    x -= step.rate * (nesterov ? g + alpha * states[0] : states[0]);
  });
}

Status infer_momentum(InferContext& context) {
  TESSERA_TRY(is_nesterov(context.attributes).map([](bool) {}));
  return infer<1>(context);
}

OpSchema optimizer(std::string_view name, InferFn infer, KernelFn kernel) {
  OpSchema op;
  op.domain = "ai.onnx.preview.training";
  op.name = name;
  op.versions = {1};
  op.inputs = {required("R", "T1"), required("T", "T2"), variadic("inputs", "")};
  op.outputs = {variadic("outputs", "")};
  op.type_variables = {{"T1", dtype_set({DType::kFp32, DType::kFp64})}, {"T2", kInt64Type}};
  op.structure = Structure::kElementwise;
  op.infer = infer;
  op.kernel = kernel;
  return op;
}

}  // namespace

std::vector<OpSchema> optimizer_ops() {
  const FormalAttr norm = attr("norm_coefficient", AttrType::kFloat);
  const FormalAttr epsilon = attr("epsilon", AttrType::kFloat);
  OpSchema adagrad = optimizer("Adagrad", infer<1>, adagrad_kernel);
  adagrad.attributes = {attr("decay_factor", AttrType::kFloat), epsilon, norm};
  OpSchema adam = optimizer("Adam", infer<2>, adam_kernel);
  adam.attributes = {attr("alpha", AttrType::kFloat), attr("beta", AttrType::kFloat), epsilon, norm,
                     attr("norm_coefficient_post", AttrType::kFloat)};
  OpSchema momentum = optimizer("Momentum", infer_momentum, momentum_kernel);
  momentum.attributes = {required_attr("alpha", AttrType::kFloat),
                         required_attr("beta", AttrType::kFloat),
                         required_attr("mode", AttrType::kString),
                         required_attr("norm_coefficient", AttrType::kFloat)};
  return {adagrad, adam, momentum};
}

}  // namespace tessera::ops
