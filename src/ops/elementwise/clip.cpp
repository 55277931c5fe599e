// Clip: limits as inputs; a NaN stays, as an element or a limit, and max wins where min is above
// it.

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "ops/elementwise/elementwise_util.h"
#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/schema_util.h"
#include "ops/upgrade_util.h"

namespace tessera::ops {
namespace {

// A limit, or `fallback` where the input is omitted.
template <typename T>
Result<Compute<T>> limit(const KernelContext& context, std::size_t index, DType dtype,
                         Compute<T> fallback) {
  const TensorView* input = context.input(index);
  if (input == nullptr) return fallback;
  if (input->dtype != dtype) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("input {}: expected {}, found {}", index, to_string(dtype),
                            to_string(input->dtype)));
  }
  if (input->numel() != 1) {
    return fail(ErrorCode::kInvalidArgument, fmt::format("input {}: expected a scalar, found {}",
                                                         index, to_string(input->dims)));
  }
  return load(*input->as<T>());
}

Status clip_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  return dispatch(NumericTypes{}, input->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    using Limits = std::numeric_limits<C>;
    const C lowest = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    const C highest = Limits::has_infinity ? Limits::infinity() : Limits::max();
    TESSERA_ASSIGN(const C low, limit<T>(context, 1, input->dtype, lowest));
    TESSERA_ASSIGN(const C high, limit<T>(context, 2, input->dtype, highest));
    const auto is_nan = [](C x) {
      return x != x;  // NOLINT(misc-redundant-expression): integers have none
    };
    return map_unary<T, T>(context, [&](C x) {
      const C raised = x < low || is_nan(low) ? low : x;
      return raised > high || is_nan(high) ? high : raised;
    });
  });
}

Status infer_clip(InferContext& context) {
  for (const std::size_t index : {std::size_t{1}, std::size_t{2}}) {
    if (!has_input(context, index)) continue;
    TESSERA_TRY(require_same_dtype(context, index, 0));
    const auto& shape = context.inputs[index].type.shape;
    const auto dims = shape ? constant_dims(*shape) : std::nullopt;
    if (dims && numel(*dims) != 1)
      return input_error(context, index,
                         fmt::format("expected a scalar, found {}", to_string(*dims)));
  }
  TESSERA_TRY(infer_same_as_first(context));
  const auto value = known_value(context.inputs[0]);
  if (!value) return {};
  DimTensor clipped = *value;
  for (const std::size_t index : {std::size_t{1}, std::size_t{2}}) {
    if (!has_input(context, index)) continue;
    const auto bound = known_value(context.inputs[index]);
    if (!bound || bound->elements.size() != 1) return {};
    for (Dim& element : clipped.elements)
      element = index == 1 ? max(element, bound->elements[0]) : min(element, bound->elements[0]);
  }
  set_value(context, 0, std::move(clipped));
  return {};
}

// Attributes `min` and `max` become scalars of the input's dtype.
Status upgrade_clip(UpgradeNode& node, int /*opset*/, UpgradeBuilder& builder) {
  TESSERA_TRY(upgrade_consumed_inputs(node, 0, builder));
  const std::pair<std::string_view, std::size_t> limits[] = {{"min", 1}, {"max", 2}};
  for (const auto& [name, index] : limits) {
    if (!node.attributes.has(name)) continue;
    TESSERA_ASSIGN(const float value, old_float(node, name, 0));
    TESSERA_ASSIGN(
        const DType dtype,
        known_dtype(builder, node.inputs.empty() ? kNoOperand : node.inputs[0], "input"));
    if (!is_float(dtype)) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("input 'input': expected a float dtype, found {}", to_string(dtype)));
    }
    set_input(node, index, constant_float(builder, dtype, value));
    node.attributes.erase(name);
  }
  return {};
}

}  // namespace

std::vector<OpSchema> clip_ops() {
  OpSchema clip;
  clip.name = "Clip";
  clip.unspecified =
      "a NaN stays, but becomes a bound where oneDNN computes it inside a convolution or product; "
      "a NaN as a bound makes every element NaN; max wins where min is above it";
  clip.versions = {1, 6, 11, 12, 13};
  clip.inputs = {required("input", "T"), optional("min", "T"), optional("max", "T")};
  clip.outputs = {required("output", "T")};
  clip.type_variables = {{"T", kNumericTypes}};
  clip.structure = Structure::kElementwise;
  clip.infer = infer_clip;
  clip.kernel = clip_kernel;
  clip.upgrades = {{1, 6, upgrade_clip}};
  clip.in_place_inputs = {0};
  return {clip};
}

}  // namespace tessera::ops
