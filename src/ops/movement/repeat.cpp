// Tile and Expand: elements more than once.

#include <fmt/format.h>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/movement/movement_util.h"
#include "ops/schema_util.h"
#include "ops/upgrade_util.h"

namespace tessera::ops {
namespace {

constexpr std::int64_t kMaxKnownElements = 1024;

// A shape of as many fresh sizes as the rank-1 input `index` has elements; nothing where even that
// is unknown.
std::optional<Shape> fresh_shape(const InferContext& context, std::size_t index,
                                 std::string_view hint) {
  const auto& shape = context.inputs[index].type.shape;
  const auto count = shape && shape->size() == 1 ? shape->front().constant() : std::nullopt;
  if (!count) return std::nullopt;
  Shape fresh;
  for (std::int64_t i = 0; i < *count; ++i) fresh.push_back(context.fresh_symbol(hint));
  return fresh;
}

// ---- Expand
// -------------------------------------------------------------------------------------------------

Status infer_expand(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* input, tensor_input(context, 0));
  TESSERA_TRY(require_dtype(context, 1, kInt64Type));
  TESSERA_TRY(require_rank(context, 1, 1));
  const auto target = known_value(context.inputs[1]);
  std::optional<Shape> shape =
      target ? std::optional<Shape>(target->elements) : fresh_shape(context, 1, "expand");
  if (target) {
    for (const Dim& dim : *shape) {
      if (dim.constant().value_or(0) < 0)
        return input_error(context, 1,
                           fmt::format("expected sizes of 0 or more, found {}", dim.to_string()));
    }
  }
  if (shape && input->type.shape && target) {
    TESSERA_ASSIGN(shape, broadcast_shapes(*shape, *input->type.shape));
  } else if (shape && input->type.shape && input->type.shape->size() > shape->size()) {
    while (shape->size() < input->type.shape->size())
      shape->insert(shape->begin(), context.fresh_symbol("expand"));
  } else if (!input->type.shape) {
    shape.reset();
  }
  // One known element, repeated.
  const auto value = known_value(*input);
  const std::int64_t count =
      shape && shape->size() == 1 ? shape->front().constant().value_or(-1) : -1;
  if (value && value->elements.size() == 1 && count >= 0 && count <= kMaxKnownElements) {
    set_value(
        context, 0,
        DimTensor{false, std::vector<Dim>(static_cast<std::size_t>(count), value->elements[0])});
  } else if (value && shape &&
             (shape->empty() ||
              (!value->scalar && count == static_cast<std::int64_t>(value->elements.size())))) {
    set_value(context, 0, value);
  }
  set_output(context, 0, input->type.dtype, std::move(shape));
  return {};
}

Status expand_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* shape, kernel_input(context, 1));
  const Dims target = to_int64_vector(*shape);
  TESSERA_TRY(checked_numel(target).map([](std::int64_t) {}));
  auto dims = broadcast_dims(input->dims, target);
  if (!dims) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("Expand: {} cannot be expanded to {}", to_string(input->dims),
                            to_string(target)));
  }
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, input->dtype, *dims));
  return copy_strided(context, *input, 0, broadcast_strides(input->dims, *dims), output);
}

// ---- Tile
// -------------------------------------------------------------------------------------------------

Status infer_tile(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* input, tensor_input(context, 0));
  TESSERA_TRY(require_dtype(context, 1, kInt64Type));
  TESSERA_TRY(require_rank(context, 1, 1));
  set_output(context, 0, input->type.dtype, std::nullopt);
  if (!input->type.shape) return {};
  Shape shape = *input->type.shape;
  const auto repeats = known_value(context.inputs[1]);
  if (repeats && repeats->elements.size() != shape.size()) {
    return input_error(context, 1,
                       fmt::format("expected {} values, one for each dim, found {}", shape.size(),
                                   repeats->elements.size()));
  }
  for (std::size_t d = 0; d < shape.size(); ++d) {
    shape[d] = repeats ? shape[d] * repeats->elements[d] : context.fresh_symbol("tile");
    if (shape[d].constant().value_or(0) < 0)
      return input_error(
          context, 1,
          fmt::format("expected values of 0 or more, found {}", repeats->elements[d].to_string()));
  }
  const auto value = known_value(*input);
  const std::int64_t count = shape.size() == 1 ? shape[0].constant().value_or(-1) : -1;
  if (value && !value->scalar && count >= 0 && count <= kMaxKnownElements) {
    DimTensor result;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
      result.elements.push_back(value->elements[i % value->elements.size()]);
    set_value(context, 0, std::move(result));
  }
  set_output(context, 0, input->type.dtype, std::move(shape));
  return {};
}

// The output seen with two dims for each: repeat (stride 0) and size.
Status tile_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* repeats_input, kernel_input(context, 1));
  const std::vector<std::int64_t> repeats = to_int64_vector(*repeats_input);
  if (repeats.size() != input->dims.size()) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("Tile: expected {} repeats, one for each dim, found {}",
                            input->dims.size(), repeats.size()));
  }
  const Dims own = row_major_strides(input->dims);
  Dims dims;
  Dims split;
  Dims strides;
  for (std::size_t d = 0; d < repeats.size(); ++d) {
    if (repeats[d] < 0)
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("Tile: expected repeats of 0 or more, found {}", repeats[d]));
    TESSERA_TRY(checked_numel({input->dims[d], repeats[d]}).map([](std::int64_t) {}));
    dims.push_back(input->dims[d] * repeats[d]);
    split.insert(split.end(), {repeats[d], input->dims[d]});
    strides.insert(strides.end(), {0, own[d]});
  }
  TESSERA_ASSIGN(MutableTensorView output, context.output(0, input->dtype, dims));
  output.dims = split;
  return copy_strided(context, *input, 0, strides, output);
}

// Version 1 takes the number of tiles and the axis, each a scalar input.
Status upgrade_tile(UpgradeNode& node, int /*opset*/, UpgradeBuilder& builder) {
  const auto rank = node.inputs.empty() ? std::nullopt : known_rank(builder, node.inputs[0]);
  if (!rank || node.inputs.size() != 3) {
    return fail(
        ErrorCode::kUnimplemented,
        "Tile: version 1 needs its three inputs and the rank of the first, and they are not known");
  }
  // ones, with `tiles` at `axis`: ScatterElements(ones[rank], axis[1], tiles[1]).
  const Operand ones =
      constant_ints(builder, std::vector<std::int64_t>(static_cast<std::size_t>(*rank), 1));
  const auto as_vector = [&](Operand operand) {
    Attributes to_int64;
    to_int64.set("to", static_cast<std::int64_t>(DType::kInt64));
    const Operand cast = builder.node("Cast", to_int64, {operand}, 1)[0];
    return builder.node("Reshape", {}, {cast, constant_ints(builder, {1})}, 1)[0];
  };
  const Operand repeats = builder.node(
      "ScatterElements", {}, {ones, as_vector(node.inputs[2]), as_vector(node.inputs[1])}, 1)[0];
  node.inputs = {node.inputs[0], repeats};
  return {};
}

}  // namespace

std::vector<OpSchema> repeat_ops() {
  OpSchema expand;
  expand.name = "Expand";
  expand.versions = {8, 13};
  expand.unspecified = "a size below 0 is an error";
  expand.inputs = {required("input", "T"), required("shape", "I")};
  expand.outputs = {required("output", "T")};
  expand.type_variables = {{"T", kAllTypes}, {"I", kInt64Type}};
  expand.structure = Structure::kMovement;
  expand.infer = infer_expand;
  expand.kernel = unpacked<expand_kernel>;
  expand.work = movement_work;
  expand.shape_inputs = {1};

  OpSchema tile = expand;
  tile.name = "Tile";
  tile.versions = {1, 6, 13};
  tile.unspecified = "a repeat below 0 is an error";
  tile.inputs = {required("input", "T"), required("repeats", "I")};
  tile.infer = infer_tile;
  tile.kernel = unpacked<tile_kernel>;
  tile.upgrades = {{1, 1, upgrade_tile}};
  return {expand, tile};
}

}  // namespace tessera::ops
