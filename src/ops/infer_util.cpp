#include "ops/infer_util.h"

#include <fmt/format.h>

#include <algorithm>

namespace tessera::ops {
namespace {

// Longer tensors are data, not shapes.
constexpr std::int64_t kMaxKnownElements = 1024;

std::string names_of(DTypeSet allowed) {
  std::string out;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if ((allowed & dtype_bit(dtype)) == 0) continue;
    if (!out.empty()) out += ", ";
    out += to_string(dtype);
  }
  return out;
}

}  // namespace

bool has_input(const InferContext& context, std::size_t index) {
  return index < context.inputs.size() && context.inputs[index].present;
}

std::string input_name(const OpSchema& op, std::size_t index) {
  if (op.inputs.empty()) return fmt::format("{}", index);
  const std::size_t last = op.inputs.size() - 1;
  if (op.inputs[last].arity == FormalParam::Arity::kVariadic && index >= last)
    return fmt::format("{}[{}]", op.inputs[last].name, index - last);
  return index <= last ? std::string(op.inputs[index].name) : fmt::format("{}", index);
}

tl::unexpected<Error> input_error(const InferContext& context, std::size_t index,
                                  std::string message) {
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("input '{}': {}", input_name(context.op, index), message));
}

tl::unexpected<Error> attribute_error(std::string_view name, std::string message) {
  return fail(ErrorCode::kInvalidArgument, fmt::format("attribute '{}': {}", name, message));
}

Result<const InferInput*> tensor_input(const InferContext& context, std::size_t index) {
  if (!has_input(context, index))
    return input_error(context, index, "expected a tensor, found none");
  const InferInput& input = context.inputs[index];
  if (!input.type.is_tensor())
    return input_error(context, index,
                       fmt::format("expected a tensor, found {}", input.type.to_string()));
  return &input;
}

Status require_dtype(const InferContext& context, std::size_t index, DTypeSet allowed) {
  TESSERA_ASSIGN(const InferInput* input, tensor_input(context, index));
  if ((allowed & dtype_bit(input->type.dtype)) != 0) return {};
  const bool one = (allowed & (allowed - 1)) == 0;
  return input_error(context, index,
                     fmt::format("expected {}{}, found {}", one ? "" : "one of ", names_of(allowed),
                                 to_string(input->type.dtype)));
}

Status require_same_dtype(const InferContext& context, std::size_t index, std::size_t as) {
  TESSERA_ASSIGN(const InferInput* input, tensor_input(context, index));
  TESSERA_ASSIGN(const InferInput* model, tensor_input(context, as));
  if (input->type.dtype == model->type.dtype) return {};
  return input_error(
      context, index,
      fmt::format("expected {} as input '{}' has, found {}", to_string(model->type.dtype),
                  input_name(context.op, as), to_string(input->type.dtype)));
}

Status require_rank(const InferContext& context, std::size_t index, std::int64_t rank) {
  TESSERA_ASSIGN(const InferInput* input, tensor_input(context, index));
  if (!input->type.shape || static_cast<std::int64_t>(input->type.shape->size()) == rank) return {};
  return input_error(context, index,
                     fmt::format("expected rank {}, found rank {}: {}", rank,
                                 input->type.shape->size(), to_string(*input->type.shape)));
}

Status require_rank_at_least(const InferContext& context, std::size_t index, std::int64_t rank) {
  TESSERA_ASSIGN(const InferInput* input, tensor_input(context, index));
  if (!input->type.shape || static_cast<std::int64_t>(input->type.shape->size()) >= rank) return {};
  return input_error(context, index,
                     fmt::format("expected rank {} or more, found rank {}: {}", rank,
                                 input->type.shape->size(), to_string(*input->type.shape)));
}

Result<std::int64_t> normalize_axis(std::int64_t axis, std::int64_t rank, std::string_view what) {
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  if (rank == 0)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: a tensor of rank 0 has no axis {}", what, axis));
  return fail(
      ErrorCode::kInvalidArgument,
      fmt::format("{}: expected a value from {} to {}, found {}", what, -rank, rank - 1, axis));
}

Result<std::vector<std::int64_t>> normalize_axes(const std::vector<std::int64_t>& axes,
                                                 std::int64_t rank, std::string_view what) {
  std::vector<std::int64_t> out;
  for (const std::int64_t axis : axes) {
    TESSERA_ASSIGN(const std::int64_t at, normalize_axis(axis, rank, what));
    if (std::find(out.begin(), out.end(), at) != out.end()) {
      return fail(ErrorCode::kInvalidArgument, fmt::format("{}: axis {} stands twice", what, at));
    }
    out.push_back(at);
  }
  return out;
}

Result<Dim> merge_dim(const Dim& a, const Dim& b, std::string_view what) {
  if (a == b) return a;
  const auto left = a.constant();
  const auto right = b.constant();
  if (left && right)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: expected {}, found {}", what, *left, *right));
  return right ? b : a;
}

Result<std::optional<Shape>> broadcast_inputs(const InferContext& context, std::size_t first,
                                              std::size_t count) {
  Shape shape;
  bool known = true;
  for (std::size_t i = first; i < first + count; ++i) {
    TESSERA_ASSIGN(const InferInput* input, tensor_input(context, i));
    if (!input->type.shape) {
      known = false;
      continue;
    }
    TESSERA_ASSIGN(shape, broadcast_shapes(shape, *input->type.shape));
  }
  return known ? std::optional<Shape>(std::move(shape)) : std::nullopt;
}

std::optional<DimTensor> known_value(const InferInput& input) {
  if (!input.present) return std::nullopt;
  if (input.value) return input.value;
  if (input.constant == nullptr || input.constant->data() == nullptr) return std::nullopt;
  const Tensor& tensor = *input.constant;
  const bool shape_like = tensor.dtype() == DType::kInt32 || tensor.dtype() == DType::kInt64 ||
                          tensor.dtype() == DType::kBool;
  if (!shape_like || tensor.dims().size() > 1 || tensor.numel() > kMaxKnownElements)
    return std::nullopt;
  DimTensor value;
  value.scalar = tensor.dims().empty();
  for (const std::int64_t element : to_int64_vector(tensor.view()))
    value.elements.emplace_back(element);
  return value;
}

std::optional<std::vector<std::int64_t>> known_ints(const InferInput& input) {
  const auto value = known_value(input);
  if (!value) return std::nullopt;
  std::vector<std::int64_t> out;
  for (const Dim& element : value->elements) {
    const auto number = element.constant();
    if (!number) return std::nullopt;
    out.push_back(*number);
  }
  return out;
}

void set_output(InferContext& context, std::size_t index, DType dtype, std::optional<Shape> shape) {
  if (index < context.outputs.size())
    context.outputs[index] = ValueType::tensor(dtype, std::move(shape));
}

void set_value(InferContext& context, std::size_t index, std::optional<DimTensor> value) {
  if (index < context.output_values.size()) context.output_values[index] = std::move(value);
}

Status infer_same_as_first(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* input, tensor_input(context, 0));
  set_output(context, 0, input->type.dtype, input->type.shape);
  return {};
}

}  // namespace tessera::ops
