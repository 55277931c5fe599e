// Concat and Split.

#include <fmt/format.h>

#include <numeric>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/movement/movement_util.h"
#include "ops/schema_util.h"
#include "ops/upgrade_util.h"

namespace tessera::ops {
namespace {

// ---- Concat
// -------------------------------------------------------------------------------------------------

// The elements of all inputs, where each is known and of rank 1.
std::optional<DimTensor> concat_values(const InferContext& context) {
  DimTensor result;
  for (const InferInput& input : context.inputs) {
    const auto value = known_value(input);
    if (!value || value->scalar) return std::nullopt;
    result.elements.insert(result.elements.end(), value->elements.begin(), value->elements.end());
  }
  return result;
}

Status infer_concat(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* first, tensor_input(context, 0));
  std::optional<Shape> shape = first->type.shape;
  std::int64_t axis = 0;
  if (shape) {
    TESSERA_ASSIGN(axis,
                   normalize_axis(context.attributes.get_int("axis", 0),
                                  static_cast<std::int64_t>(shape->size()), "attribute 'axis'"));
  }
  for (std::size_t i = 1; i < context.inputs.size(); ++i) {
    TESSERA_TRY(require_same_dtype(context, i, 0));
    const auto& other = context.inputs[i].type.shape;
    if (!shape || !other) {
      shape.reset();
      continue;
    }
    TESSERA_TRY(require_rank(context, i, static_cast<std::int64_t>(shape->size())));
    for (std::size_t d = 0; d < shape->size(); ++d) {
      Dim& dim = (*shape)[d];
      if (static_cast<std::int64_t>(d) == axis) {
        dim = dim + (*other)[d];
      } else {
        TESSERA_ASSIGN(dim,
                       merge_dim(dim, (*other)[d],
                                 fmt::format("input '{}': dim {}", input_name(context.op, i), d)));
      }
    }
  }
  set_output(context, 0, first->type.dtype, std::move(shape));
  set_value(context, 0, concat_values(context));
  return {};
}

// Inputs agree but for the axis; gives the dims of the output.
Result<Dims> concat_dims(const KernelContext& context, std::int64_t axis) {
  TESSERA_ASSIGN(const TensorView* first, kernel_input(context, 0));
  Dims dims = first->dims;
  for (std::size_t i = 1; i < context.input_count(); ++i) {
    TESSERA_ASSIGN(const TensorView* input, kernel_input(context, i));
    Dims expected = dims;
    if (input->dims.size() == dims.size())
      expected[static_cast<std::size_t>(axis)] = input->dims[static_cast<std::size_t>(axis)];
    if (input->dims != expected || input->dtype != first->dtype) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("Concat: input {}: expected {} {} but for axis {}, found {} {}", i,
                              to_string(first->dtype), to_string(first->dims), axis,
                              to_string(input->dtype), to_string(input->dims)));
    }
    dims[static_cast<std::size_t>(axis)] += input->dims[static_cast<std::size_t>(axis)];
  }
  return dims;
}

Status concat_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* first, kernel_input(context, 0));
  TESSERA_ASSIGN(const std::int64_t axis, kernel_axis(context, "axis", 0, first->dims.size()));
  TESSERA_ASSIGN(const Dims dims, concat_dims(context, axis));
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, first->dtype, dims));
  const AxisSplit all = split_at(dims, axis);
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < context.input_count(); ++i) {
    const std::int64_t row = split_at(context.input(i)->dims, axis).size * all.inner;
    TESSERA_TRY(copy_rows(context, *context.input(i), output,
                          {all.outer, row, 0, row, begin, all.size * all.inner}));
    begin += row;
  }
  return {};
}

// Version 1 joins along axis 1 where it does not say.
Status upgrade_concat(UpgradeNode& node, int /*opset*/, UpgradeBuilder& /*builder*/) {
  if (!node.attributes.has("axis")) node.attributes.set("axis", std::int64_t{1});
  return {};
}

// ---- Split
// -------------------------------------------------------------------------------------------------

// Sizes of the parts of a whole that is not split by input `split`: equal ones, the last one
// smaller.
Dims equal_parts(std::int64_t size, std::int64_t count) {
  const std::int64_t part = count == 0 ? 0 : (size + count - 1) / count;
  Dims parts;
  for (std::int64_t i = 0; i < count; ++i)
    parts.push_back(std::clamp<std::int64_t>(size - i * part, 0, part));
  return parts;
}

Status check_part_count(const Attributes& attributes, std::size_t outputs) {
  const std::int64_t count = attributes.get_int("num_outputs", static_cast<std::int64_t>(outputs));
  if (count == static_cast<std::int64_t>(outputs)) return {};
  return attribute_error(
      "num_outputs", fmt::format("expected {}, the number of outputs, found {}", outputs, count));
}

// The size of each part along the axis.
Result<Shape> part_sizes(const InferContext& context, const Dim& size) {
  const std::size_t count = context.outputs.size();
  if (has_input(context, 1)) {
    const auto parts = known_value(context.inputs[1]);
    if (!parts) {
      Shape fresh;
      for (std::size_t i = 0; i < count; ++i) fresh.push_back(context.fresh_symbol("split"));
      return fresh;
    }
    if (parts->elements.size() != count) {
      return input_error(context, 1,
                         fmt::format("expected {} sizes, one for each output, found {}", count,
                                     parts->elements.size()));
    }
    for (const Dim& part : parts->elements) {
      if (part.constant().value_or(0) < 0)
        return input_error(context, 1,
                           fmt::format("expected sizes of 0 or more, found {}", part.to_string()));
    }
    const Dim sum = std::accumulate(parts->elements.begin(), parts->elements.end(), Dim(0));
    if (sum.constant() && size.constant() && sum != size) {
      return input_error(context, 1,
                         fmt::format("expected sizes whose sum is {}, found {}", size.to_string(),
                                     sum.to_string()));
    }
    return parts->elements;
  }
  TESSERA_TRY(check_part_count(context.attributes, count));
  if (const auto constant = size.constant())
    return to_shape(equal_parts(*constant, static_cast<std::int64_t>(count)));
  const Dim number = static_cast<std::int64_t>(count);
  if (const auto exact = size.exact_div(number)) return Shape(count, *exact);
  const Dim part = ceildiv(size, number);
  Shape sizes;
  for (std::size_t i = 0; i < count; ++i) {
    const Dim rest = size - part * Dim(static_cast<std::int64_t>(i));
    sizes.push_back(i == 0 ? part : min(part, max(rest, 0)));
  }
  return sizes;
}

// Gives each output its piece of the known elements.
void split_value(InferContext& context, const DimTensor& value, const Shape& parts) {
  auto rest = std::span(value.elements);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::int64_t count = parts[i].constant().value_or(-1);
    if (count < 0 || count > static_cast<std::int64_t>(rest.size())) return;
    const auto piece = rest.first(static_cast<std::size_t>(count));
    set_value(context, i, DimTensor{false, {piece.begin(), piece.end()}});
    rest = rest.subspan(piece.size());
  }
}

Status infer_split(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* input, tensor_input(context, 0));
  if (has_input(context, 1)) TESSERA_TRY(require_dtype(context, 1, kInt64Type));
  const auto& shape = input->type.shape;
  if (!shape) {
    for (std::size_t i = 0; i < context.outputs.size(); ++i)
      set_output(context, i, input->type.dtype, std::nullopt);
    return {};
  }
  TESSERA_ASSIGN(const std::int64_t axis,
                 normalize_axis(context.attributes.get_int("axis", 0),
                                static_cast<std::int64_t>(shape->size()), "attribute 'axis'"));
  TESSERA_ASSIGN(const Shape parts, part_sizes(context, (*shape)[static_cast<std::size_t>(axis)]));
  for (std::size_t i = 0; i < context.outputs.size(); ++i) {
    Shape own = *shape;
    own[static_cast<std::size_t>(axis)] = parts[i];
    set_output(context, i, input->type.dtype, std::move(own));
  }
  if (const auto value = known_value(*input)) split_value(context, *value, parts);
  return {};
}

Status split_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const std::int64_t axis, kernel_axis(context, "axis", 0, input->dims.size()));
  const AxisSplit all = split_at(input->dims, axis);
  if (context.input(1) == nullptr)
    TESSERA_TRY(check_part_count(context.attributes(), context.output_count()));
  const auto count = static_cast<std::int64_t>(context.output_count());
  const Dims parts = context.input(1) != nullptr ? to_int64_vector(*context.input(1))
                                                 : equal_parts(all.size, count);
  const bool sound = std::all_of(parts.begin(), parts.end(),
                                 [&](std::int64_t part) { return part >= 0 && part <= all.size; });
  if (!sound || parts.size() != context.output_count() ||
      std::accumulate(parts.begin(), parts.end(), std::int64_t{0}) != all.size) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("Split: expected {} sizes whose sum is {}, found [{}]",
                            context.output_count(), all.size, fmt::join(parts, ", ")));
  }
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Dims dims = input->dims;
    dims[static_cast<std::size_t>(axis)] = parts[i];
    TESSERA_ASSIGN(const MutableTensorView output, context.output(i, input->dtype, dims));
    const std::int64_t row = parts[i] * all.inner;
    TESSERA_TRY(
        copy_rows(context, *input, output, {all.outer, row, begin, all.size * all.inner, 0, row}));
    begin += row;
  }
  return {};
}

// Before version 13 the sizes are an attribute; without sizes the number of parts is the number of
// outputs.
Status upgrade_split(UpgradeNode& node, int /*opset*/, UpgradeBuilder& builder) {
  TESSERA_TRY(ints_to_input(node, builder, "split", 1));
  if (!has_input(node, 1))
    node.attributes.set("num_outputs", static_cast<std::int64_t>(node.output_count));
  return {};
}

}  // namespace

std::vector<OpSchema> concat_ops() {
  OpSchema concat;
  concat.name = "Concat";
  concat.versions = {1, 4, 11, 13};
  concat.inputs = {variadic("inputs", "T")};
  concat.outputs = {required("concat_result", "T")};
  concat.attributes = {required_attr("axis", AttrType::kInt)};
  concat.type_variables = {{"T", kAllTypes}};
  concat.structure = Structure::kMovement;
  concat.infer = infer_concat;
  concat.kernel = unpacked<concat_kernel>;
  concat.work = movement_work;
  concat.upgrades = {{1, 1, upgrade_concat}};

  OpSchema split;
  split.name = "Split";
  split.versions = {1, 2, 11, 13, 18};
  split.unspecified =
      "parts that do not come out even are rounded up, so that the last ones are smaller or empty";
  split.inputs = {required("input", "T"), optional("split", "I")};
  split.outputs = {variadic("outputs", "T")};
  split.attributes = {attr("axis", AttrType::kInt), attr("num_outputs", AttrType::kInt)};
  split.type_variables = {{"T", kAllTypes}, {"I", kInt64Type}};
  split.structure = Structure::kMovement;
  split.infer = infer_split;
  split.kernel = unpacked<split_kernel>;
  split.work = movement_work;
  split.upgrades = {{1, 13, upgrade_split}};
  split.shape_inputs = {1};
  return {concat, split};
}

}  // namespace tessera::ops
