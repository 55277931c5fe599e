// Activation functions.

#include <fmt/format.h>

#include <type_traits>

#include "base/truncate.h"
#include "ops/elementwise/elementwise_util.h"
#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/nn/nn_util.h"
#include "ops/schema_util.h"
#include "ops/upgrade_util.h"

namespace tessera::ops {
namespace {

Status relu_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  if (is_float(input->dtype)) return float_unary_kernel<ScalarFunction::kRelu>(context);
  return dispatch(SignedTypes{}, input->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    return map_unary<T, T>(context, [](T x) { return x < T{0} ? T{0} : x; });
  });
}

// In double for integers, then cut back to the dtype (the standard leaves the rounding open).
Status shrink_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  if (is_float(input->dtype)) return float_unary_kernel<ScalarFunction::kShrink>(context);
  const ScalarParams params = scalar_params(ScalarFunction::kShrink, context.attributes());
  return dispatch(IntegerTypes{}, input->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    return map_unary<T, T>(context, [&](T x) {
      const auto wide = static_cast<double>(x);
      return static_cast<T>(
          saturating_truncate<std::int64_t>(Scalar<ScalarFunction::kShrink>::apply(&wide, params)));
    });
  });
}

Status gelu_kernel(KernelContext& context) {
  if (context.attributes().get_string("approximate", "none") == "tanh")
    return float_unary_kernel<ScalarFunction::kGeluTanh>(context);
  return float_unary_kernel<ScalarFunction::kGelu>(context);
}

Status infer_gelu(InferContext& context) {
  const std::string approximate = context.attributes.get_string("approximate", "none");
  if (approximate != "none" && approximate != "tanh") {
    return attribute_error("approximate",
                           fmt::format("expected 'none' or 'tanh', found '{}'", approximate));
  }
  return infer_same_as_first(context);
}

Status infer_celu(InferContext& context) {
  if (context.attributes.get_float("alpha", 1.0F) == 0.0F)
    return attribute_error("alpha", "expected a number other than 0, found 0");
  return infer_same_as_first(context);
}

Status prelu_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const Operands operands, same_type_operands(context));
  TESSERA_ASSIGN(const Dims dims, broadcast_dims(operands.a->dims, operands.b->dims));
  if (dims != operands.a->dims) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("PRelu: slope {} does not broadcast to {}", to_string(operands.b->dims),
                            to_string(operands.a->dims)));
  }
  return binary_kernel<NumericTypes>(context, [](auto x, auto slope) {
    using T = decltype(x);
    if (!(x < T{0})) return x;
    if constexpr (std::is_floating_point_v<T>) {
      return slope * x;
    } else {  // integers wrap around
      return static_cast<T>(static_cast<std::uint64_t>(slope) * static_cast<std::uint64_t>(x));
    }
  });
}

Status infer_prelu(InferContext& context) {
  TESSERA_TRY(require_same_dtype(context, 1, 0));
  TESSERA_TRY(broadcast_inputs(context, 0, 2).map([](const auto&) {}));
  const auto& x = context.inputs[0].type.shape;
  const auto& slope = context.inputs[1].type.shape;
  if (x && slope && slope->size() > x->size()) {
    return input_error(context, 1,
                       fmt::format("expected rank {} or less, found rank {}: {}", x->size(),
                                   slope->size(), to_string(*slope)));
  }
  return infer_same_as_first(context);
}

// Before version 7 a slope of one dim belongs to the channels, axis 1.
Status upgrade_prelu(UpgradeNode& node, int /*opset*/, UpgradeBuilder& builder) {
  erase_attributes(node, {"consumed_inputs"});
  if (node.inputs.size() < 2) return {};
  const auto rank = known_rank(builder, node.inputs[0]);
  const ValueType* slope = builder.type(node.inputs[1]);
  if (slope == nullptr || !slope->is_tensor() || !slope->shape) {
    return fail(
        ErrorCode::kUnimplemented,
        "PRelu: the shape of input 'slope' is not known, and the upgrade from version 6 needs it");
  }
  if (slope->shape->size() != 1 || slope->shape->front() == Dim(1)) return {};
  if (!rank)
    return fail(
        ErrorCode::kUnimplemented,
        "PRelu: the rank of input 'X' is not known, and the upgrade from version 6 needs it");
  if (*rank <= 2) return {};
  std::vector<std::int64_t> axes;
  for (std::int64_t axis = 1; axis + 1 < *rank; ++axis) axes.push_back(axis);
  node.inputs[1] =
      builder.node("Unsqueeze", {}, {node.inputs[1], constant_ints(builder, axes)}, 1)[0];
  return {};
}

// Version 1 rounds the constants of the paper to four digits.
Status upgrade_selu(UpgradeNode& node, int /*opset*/, UpgradeBuilder& /*builder*/) {
  erase_attributes(node, {"consumed_inputs"});
  if (!node.attributes.has("alpha")) node.attributes.set("alpha", 1.6732F);
  if (!node.attributes.has("gamma")) node.attributes.set("gamma", 1.0507F);
  return {};
}

struct Row {
  std::string_view name;
  std::vector<int> versions;
  KernelFn kernel;
  std::vector<FormalAttr> attributes = {};
  DTypeSet types = kFloatTypes;
  InferFn infer = infer_same_as_first;
  std::string_view unspecified = {};
};

// oneDNN takes the larger of x and 0, or computes 1 / (1 + exp(-x)), without a look at NaN.
constexpr std::string_view kNanInsideOfOneDnn =
    "a NaN stays, but can become 0 where oneDNN computes it inside a convolution or product";

OpSchema prelu() {
  OpSchema op;
  op.name = "PRelu";
  op.unspecified = "a NaN stays";
  op.versions = {1, 6, 7, 9, 16};
  op.inputs = {required("X", "T"), required("slope", "T")};
  op.outputs = {required("Y", "T")};
  op.type_variables = {{"T", kNumericTypes}};
  op.structure = Structure::kElementwise;
  op.infer = infer_prelu;
  op.kernel = prelu_kernel;
  op.upgrades = {{1, 6, upgrade_prelu}};
  op.in_place_inputs = {0};
  return op;
}

// x * sigmoid(alpha x) under the name that com.microsoft gives it, with a default of its own.
OpSchema quick_gelu() {
  OpSchema op;
  op.domain = "com.microsoft";
  op.name = "QuickGelu";
  op.versions = {1};
  op.inputs = {required("X", "T")};
  op.outputs = {required("Y", "T")};
  op.attributes = {attr("alpha", AttrType::kFloat)};
  op.type_variables = {{"T", kFloatTypes}};
  op.structure = Structure::kElementwise;
  op.infer = infer_same_as_first;
  op.kernel = float_unary_kernel<ScalarFunction::kQuickGelu>;
  op.in_place_inputs = {0};
  return op;
}

// Swish(A) * B: import makes these two of it.
Status expand_swiglu(UpgradeNode& node, int /*opset*/, UpgradeBuilder& builder) {
  TESSERA_TRY(nn::require_inputs(node, 2));
  const auto gate = builder.node("Swish", node.attributes, {node.inputs[0]}, 1);
  node.replacement = builder.node("Mul", {}, {gate[0], node.inputs[1]}, 1);
  return {};
}

// No broadcasting.
Status infer_swiglu(InferContext& context) {
  TESSERA_TRY(require_same_dtype(context, 1, 0));
  return infer_same_as_first(context);
}

OpSchema swiglu() {
  OpSchema op;
  op.name = "SwiGLU";
  op.versions = {28};
  op.inputs = {required("A", "T"), required("B", "T")};
  op.outputs = {required("Y", "T")};
  op.attributes = {attr("alpha", AttrType::kFloat)};
  op.type_variables = {{"T", kFloatTypes}};
  op.structure = Structure::kElementwise;
  op.infer = infer_swiglu;
  op.upgrades = {{28, 28, expand_swiglu}};
  return op;
}

}  // namespace

std::vector<OpSchema> activation_ops() {
  using S = ScalarFunction;
  const FormalAttr alpha = attr("alpha", AttrType::kFloat);
  const Row rows[] = {
      {"Relu",
       {1, 6, 13, 14},
       relu_kernel,
       {},
       kFloatTypes | kSignedTypes,
       infer_same_as_first,
       kNanInsideOfOneDnn},
      {"LeakyRelu", {1, 6, 16}, float_unary_kernel<S::kLeakyRelu>, {alpha}},
      {"Elu", {1, 6, 22}, float_unary_kernel<S::kElu>, {alpha}},
      {"Selu", {1, 6, 22}, float_unary_kernel<S::kSelu>, {alpha, attr("gamma", AttrType::kFloat)}},
      {"Celu", {12, 28}, float_unary_kernel<S::kCelu>, {alpha}, kFloatTypes, infer_celu},
      {"ThresholdedRelu",
       {10, 22},
       float_unary_kernel<S::kThresholdedRelu>,
       {alpha},
       kFloatTypes,
       infer_same_as_first,
       "a NaN becomes 0"},
      {"Shrink",
       {9},
       shrink_kernel,
       {attr("bias", AttrType::kFloat), attr("lambd", AttrType::kFloat)},
       kNumericTypes,
       infer_same_as_first,
       "a NaN becomes 0; integers are computed in fp64, cut towards zero and wrapped around"},
      {"Sigmoid",
       {1, 6, 13},
       float_unary_kernel<S::kSigmoid>,
       {},
       kFloatTypes,
       infer_same_as_first,
       kNanInsideOfOneDnn},
      {"HardSigmoid",
       {1, 6, 22},
       float_unary_kernel<S::kHardSigmoid>,
       {alpha, attr("beta", AttrType::kFloat)},
       kFloatTypes,
       infer_same_as_first,
       kNanInsideOfOneDnn},
      {"HardSwish", {14, 22}, float_unary_kernel<S::kHardSwish>},
      {"Softplus", {1, 22}, float_unary_kernel<S::kSoftplus>},
      {"Softsign", {1, 22}, float_unary_kernel<S::kSoftsign>},
      {"Mish", {18, 22}, float_unary_kernel<S::kMish>},
      {"Gelu",
       {20},
       gelu_kernel,
       {attr("approximate", AttrType::kString)},
       kFloatTypes,
       infer_gelu},
      {"Swish", {24}, float_unary_kernel<S::kSwish>, {alpha}},
  };
  std::vector<OpSchema> ops;
  for (const Row& row : rows) {
    OpSchema& op = ops.emplace_back();
    op.name = row.name;
    op.versions = row.versions;
    op.inputs = {required(row.name == "Shrink" || row.name == "Softsign" ? "input" : "X", "T")};
    op.outputs = {required("Y", "T")};
    op.attributes = row.attributes;
    op.type_variables = {{"T", row.types}};
    op.structure = Structure::kElementwise;
    op.infer = row.infer;
    op.kernel = row.kernel;
    op.unspecified = row.unspecified;
    if (row.versions.front() == 1)
      op.upgrades = {{1, 1, row.name == "Selu" ? upgrade_selu : upgrade_consumed_inputs}};
    op.in_place_inputs = {0};
  }
  ops.push_back(prelu());
  ops.push_back(quick_gelu());
  ops.push_back(swiglu());
  return ops;
}

}  // namespace tessera::ops
