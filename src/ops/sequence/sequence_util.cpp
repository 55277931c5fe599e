#include "ops/sequence/sequence_util.h"

#include <fmt/format.h>

#include "ops/infer_util.h"
#include "ops/kernel_util.h"

namespace tessera::ops {
namespace {

bool has_no_type(const ValueType& type) {
  return type.is_tensor() && type.dtype == DType::kUndefined && !type.shape;
}

}  // namespace

Result<ValueType> sequence_element(const InferContext& context, std::size_t index) {
  if (!has_input(context, index))
    return input_error(context, index, "expected a sequence, found none");
  const ValueType& type = context.inputs[index].type;
  if (has_no_type(type)) return ValueType::tensor(DType::kUndefined, std::nullopt);
  if (type.kind != ValueType::Kind::kSequence)
    return input_error(context, index,
                       fmt::format("expected a sequence, found {}", type.to_string()));
  return *type.element;
}

ValueType joined_element(const InferContext& context, const ValueType& a, const ValueType& b) {
  if (!a.is_tensor() || !b.is_tensor()) return a;
  const DType dtype = a.dtype == DType::kUndefined ? b.dtype : a.dtype;
  if (!a.shape || !b.shape || a.shape->size() != b.shape->size())
    return ValueType::tensor(dtype, std::nullopt);
  Shape shape = *a.shape;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const Dim& other = (*b.shape)[d];
    // A symbol that is there already stands for any size.
    if (!shape[d].constant() || shape[d] == other) continue;
    shape[d] = other.constant() ? context.fresh_symbol("element") : other;
  }
  return ValueType::tensor(dtype, std::move(shape));
}

ValueType taken_element(const InferContext& context, ValueType element, std::string_view hint) {
  if (!element.is_tensor() || !element.shape) return element;
  for (Dim& dim : *element.shape) {
    if (!dim.constant()) dim = context.fresh_symbol(hint);
  }
  return element;
}

std::string found_kind(const RunValue* value) {
  if (value == nullptr) return "none";
  if (value->is_tensor())
    return fmt::format("{}{}", to_string(value->tensor.dtype()), to_string(value->tensor.dims()));
  return std::string(kind_text(value->kind));
}

Result<const RunValue*> sequence_input(const KernelContext& context, std::size_t index,
                                       std::string_view op) {
  const RunValue* value = context.value(index);
  if (value != nullptr && value->kind == ValueType::Kind::kSequence) return value;
  const TensorView* tensor = context.input(index);
  const std::string found =
      value == nullptr && tensor != nullptr
          ? fmt::format("{}{}", to_string(tensor->dtype), to_string(tensor->dims))
          : found_kind(value);
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("{}: input {}: expected a sequence, found {}", op, index, found));
}

Result<RunValue> owned_input(const KernelContext& context, std::size_t index) {
  if (const RunValue* value = context.value(index)) return *value;
  TESSERA_ASSIGN(const TensorView* view, kernel_input(context, index));
  TESSERA_ASSIGN(Tensor copy, Tensor::zeros(view->dtype, view->dims));
  copy_elements(*view, copy.mutable_view());
  return RunValue::of(std::move(copy));
}

Status give_tensor(KernelContext& context, const Tensor& tensor) {
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, tensor.dtype(), tensor.dims()));
  copy_elements(tensor.view(), output);
  return {};
}

Status give_value(KernelContext& context, const RunValue& value) {
  return value.is_tensor() ? give_tensor(context, value.tensor) : context.set_value(0, value);
}

Result<std::size_t> checked_position(const TensorView& position, std::size_t count,
                                     std::int64_t beyond, std::string_view op) {
  if (position.numel() != 1) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: input 'position': expected one element, found {}{}", op,
                            to_string(position.dtype), to_string(position.dims)));
  }
  const auto size = static_cast<std::int64_t>(count);
  const std::int64_t at = to_int64_vector(position).front();
  if (at >= -size && at < size + beyond) return static_cast<std::size_t>(at < 0 ? at + size : at);
  if (size + beyond == 0) {
    return fail(ErrorCode::kOutOfRange,
                fmt::format("{}: input 'position': index {} is out of range: the sequence is empty",
                            op, at));
  }
  return fail(ErrorCode::kOutOfRange,
              fmt::format("{}: input 'position': index out of range: expected a value from {} to "
                          "{} for a sequence of {}, found {}",
                          op, -size, size + beyond - 1, size, at));
}

}  // namespace tessera::ops
