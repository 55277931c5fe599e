// Between a tensor and the sequence of its pieces: SplitToSequence and ConcatFromSequence.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/movement/movement_util.h"
#include "ops/schema_util.h"
#include "ops/sequence/sequence_util.h"

namespace tessera::ops {
namespace {

// Packed types have no pieces of their own.
constexpr DTypeSet kPieceTypes = kAllTypes & ~kPackedTypes;

// An axis of a tensor without elements may be far longer than memory could hold pieces.
constexpr std::int64_t kMaxPieces = std::int64_t{1} << 22;

// ---- SplitToSequence
// -------------------------------------------------------------------------------------------------

// The size of all pieces along the axis where it is one number.
std::optional<std::int64_t> common_piece(const InferInput& split, const Dim& size) {
  const auto values = known_ints(split);
  const auto known = known_value(split);
  if (!values || values->empty() || !known) return std::nullopt;
  const std::int64_t first = values->front();
  if (known->scalar) {
    const auto whole = size.constant();
    return first > 0 && whole && *whole % first == 0 ? std::optional(first) : std::nullopt;
  }
  const bool equal = std::all_of(values->begin(), values->end(),
                                 [first](std::int64_t value) { return value == first; });
  return equal ? std::optional(first) : std::nullopt;
}

Status check_split_type(const InferContext& context) {
  TESSERA_TRY(require_dtype(context, 1, kIndexTypes));
  const ValueType& type = context.inputs[1].type;
  if (type.shape && type.shape->size() > 1)
    return input_error(context, 1, fmt::format("expected rank 0 or 1, found {}", type.to_string()));
  const auto values = known_ints(context.inputs[1]);
  if (!values) return {};
  for (const std::int64_t value : *values) {
    if (value < 0 || (value == 0 && type.shape && type.shape->empty())) {
      return input_error(
          context, 1,
          fmt::format("expected sizes of {} or more, found {}", value < 0 ? 0 : 1, value));
    }
  }
  return {};
}

Status infer_split(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* input, tensor_input(context, 0));
  const bool has_split = has_input(context, 1);
  if (has_split) TESSERA_TRY(check_split_type(context));
  ValueType element = input->type;
  if (element.shape) {
    TESSERA_ASSIGN(
        const std::int64_t axis,
        normalize_axis(context.attributes.get_int("axis", 0),
                       static_cast<std::int64_t>(element.shape->size()), "attribute 'axis'"));
    const auto at = element.shape->begin() + axis;
    if (has_split) {
      const auto piece = common_piece(context.inputs[1], *at);
      *at = piece ? Dim(*piece) : context.fresh_symbol("piece");
    } else if (context.attributes.get_int("keepdims", 1) != 0) {
      *at = Dim(1);
    } else {
      element.shape->erase(at);
    }
  }
  if (!context.outputs.empty()) context.outputs[0] = ValueType::sequence(std::move(element));
  return {};
}

// A number stands for pieces of that size and a smaller rest; a list for the pieces themselves.
Result<Dims> piece_sizes(const TensorView* split, std::int64_t size) {
  Dims sizes = split == nullptr ? Dims{1} : to_int64_vector(*split);
  if (split == nullptr || split->dims.empty()) {
    const std::int64_t piece = sizes.front();
    if (piece < 1) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("SplitToSequence: input 'split': expected a size of 1 or more, "
                              "found {}",
                              piece));
    }
    if (size / piece > kMaxPieces) {
      return fail(ErrorCode::kOutOfRange,
                  fmt::format("SplitToSequence: expected at most {} pieces, found {}", kMaxPieces,
                              size / piece));
    }
    sizes.assign(static_cast<std::size_t>(size / piece), piece);
    if (size % piece != 0) sizes.push_back(size % piece);
    return sizes;
  }
  std::int64_t rest = size;
  bool sound = split->dims.size() == 1;
  for (const std::int64_t piece : sizes) {
    sound = sound && piece >= 0 && piece <= rest;
    if (sound) rest -= piece;
  }
  if (sound && rest == 0) return sizes;
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("SplitToSequence: input 'split': expected sizes of 0 or more whose sum "
                          "is {}, found [{}]",
                          size, fmt::join(sizes, ", ")));
}

Status split_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const std::int64_t axis, kernel_axis(context, "axis", 0, input->dims.size()));
  const AxisSplit all = split_at(input->dims, axis);
  TESSERA_ASSIGN(const Dims sizes, piece_sizes(context.input(1), all.size));
  const bool drop_axis =
      context.input(1) == nullptr && context.attributes().get_int("keepdims", 1) == 0;
  std::vector<RunValue> pieces;
  std::int64_t begin = 0;
  for (const std::int64_t size : sizes) {
    Dims dims = input->dims;
    dims[static_cast<std::size_t>(axis)] = size;
    if (drop_axis) dims.erase(dims.begin() + axis);
    TESSERA_ASSIGN(Tensor piece, Tensor::zeros(input->dtype, dims));
    const std::int64_t row = size * all.inner;
    TESSERA_TRY(copy_rows(context, *input, piece.mutable_view(),
                          {all.outer, row, begin, all.size * all.inner, 0, row}));
    begin += row;
    pieces.push_back(RunValue::of(std::move(piece)));
  }
  return context.set_value(0, RunValue::sequence(std::move(pieces)));
}

// ---- ConcatFromSequence
// -------------------------------------------------------------------------------------------------

Status infer_concat(InferContext& context) {
  TESSERA_ASSIGN(const ValueType element, sequence_element(context, 0));
  if (!element.is_tensor())
    return input_error(context, 0,
                       fmt::format("expected a sequence of tensors, found {}",
                                   context.inputs[0].type.to_string()));
  std::optional<Shape> shape = taken_element(context, element, "size").shape;
  if (shape) {
    const bool is_new = context.attributes.get_int("new_axis", 0) != 0;
    const auto rank = static_cast<std::int64_t>(shape->size()) + (is_new ? 1 : 0);
    TESSERA_ASSIGN(const std::int64_t axis,
                   normalize_axis(context.attributes.get_int("axis", 0), rank, "attribute 'axis'"));
    const Dim size = context.fresh_symbol("joined");
    if (is_new) {
      shape->insert(shape->begin() + axis, size);
    } else {
      (*shape)[static_cast<std::size_t>(axis)] = size;
    }
  }
  set_output(context, 0, element.dtype, std::move(shape));
  return {};
}

struct Joined {
  DType dtype = DType::kUndefined;
  Dims dims;
  std::int64_t axis = 0;
};

// What the elements make together. Errors: none is there, they do not fit, an axis out of range.
Result<Joined> join(const KernelContext& context, const RunValue& sequence) {
  if (sequence.elements.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "ConcatFromSequence: expected a sequence with an element, found an empty one");
  }
  const Tensor& first = sequence.elements[0].tensor;
  const bool is_new = context.attributes().get_int("new_axis", 0) != 0;
  Joined joined{first.dtype(), first.dims(), 0};
  TESSERA_ASSIGN(joined.axis,
                 kernel_axis(context, "axis", 0, first.dims().size() + (is_new ? 1 : 0)));
  const auto at = static_cast<std::size_t>(joined.axis);
  std::int64_t total = 0;
  for (std::size_t i = 0; i < sequence.elements.size(); ++i) {
    const RunValue& element = sequence.elements[i];
    Dims expected = first.dims();
    if (!is_new && element.tensor.dims().size() == expected.size())
      expected[at] = element.tensor.dims()[at];
    if (!element.is_tensor() || element.tensor.dtype() != joined.dtype ||
        element.tensor.dims() != expected) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("ConcatFromSequence: element {}: expected {}{}{}, found {}", i,
                              to_string(joined.dtype), to_string(first.dims()),
                              is_new ? "" : fmt::format(" but for axis {}", joined.axis),
                              found_kind(&element)));
    }
    total += is_new ? 1 : expected[at];
  }
  if (is_new) joined.dims.insert(joined.dims.begin() + joined.axis, total);
  joined.dims[at] = total;
  return joined;
}

Status concat_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const RunValue* sequence, sequence_input(context, 0, "ConcatFromSequence"));
  TESSERA_ASSIGN(const Joined joined, join(context, *sequence));
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, joined.dtype, joined.dims));
  const AxisSplit all = split_at(joined.dims, joined.axis);
  const bool is_new = context.attributes().get_int("new_axis", 0) != 0;
  std::int64_t begin = 0;
  for (const RunValue& element : sequence->elements) {
    const std::int64_t size = is_new ? 1 : split_at(element.tensor.dims(), joined.axis).size;
    const std::int64_t row = size * all.inner;
    TESSERA_TRY(copy_rows(context, element.tensor.view(), output,
                          {all.outer, row, 0, row, begin, all.size * all.inner}));
    begin += row;
  }
  return {};
}

}  // namespace

std::vector<OpSchema> sequence_split_ops() {
  OpSchema split;
  split.name = "SplitToSequence";
  split.versions = {11, 24};
  split.unspecified =
      "a size of 0 is one of a list, but an error as the one number; at most 2^22 pieces";
  split.inputs = {required("input", "T"), optional("split", "I")};
  split.outputs = {required("output_sequence", "")};
  split.attributes = {attr("axis", AttrType::kInt), attr("keepdims", AttrType::kInt)};
  split.type_variables = {{"T", kPieceTypes}, {"I", kIndexTypes}};
  split.structure = Structure::kMovement;
  split.infer = infer_split;
  split.kernel = split_kernel;
  split.shape_inputs = {1};

  OpSchema concat;
  concat.name = "ConcatFromSequence";
  concat.versions = {11};
  concat.unspecified = "an empty sequence is an error";
  concat.inputs = {required("input_sequence", "")};
  concat.outputs = {required("concat_result", "T")};
  concat.attributes = {required_attr("axis", AttrType::kInt), attr("new_axis", AttrType::kInt)};
  concat.type_variables = {{"T", kPieceTypes}};
  concat.structure = Structure::kMovement;
  concat.infer = infer_concat;
  concat.kernel = concat_kernel;
  concat.data_dependent_shape = true;
  return {split, concat};
}

}  // namespace tessera::ops
