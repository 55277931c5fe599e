// Sequences: made, changed, and asked for their elements and length.

#include <fmt/format.h>

#include <algorithm>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/kernel_util.h"
#include "ops/schema_util.h"
#include "ops/sequence/sequence_util.h"

namespace tessera::ops {
namespace {

void set_sequence(InferContext& context, ValueType element) {
  if (!context.outputs.empty()) context.outputs[0] = ValueType::sequence(std::move(element));
}

// Positions are single numbers; exporters write them with and without a dim of 1.
Status check_position_type(const InferContext& context, std::size_t index) {
  TESSERA_TRY(require_dtype(context, index, kIndexTypes));
  const auto& shape = context.inputs[index].type.shape;
  if (!shape) return {};
  const auto is_other = [](const Dim& dim) { return dim.constant().value_or(1) != 1; };
  if (std::none_of(shape->begin(), shape->end(), is_other)) return {};
  return input_error(
      context, index,
      fmt::format("expected one element, found {}", context.inputs[index].type.to_string()));
}

// ---- SequenceConstruct, SequenceEmpty
// -------------------------------------------------------------------------------------------------

Status infer_construct(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* first, tensor_input(context, 0));
  ValueType element = first->type;
  for (std::size_t i = 1; i < context.inputs.size(); ++i) {
    TESSERA_TRY(require_same_dtype(context, i, 0));
    element = joined_element(context, element, context.inputs[i].type);
  }
  set_sequence(context, std::move(element));
  return {};
}

Status construct_kernel(KernelContext& context) {
  std::vector<RunValue> elements;
  for (std::size_t i = 0; i < context.input_count(); ++i) {
    TESSERA_ASSIGN(RunValue element, owned_input(context, i));
    elements.push_back(std::move(element));
  }
  return context.set_value(0, RunValue::sequence(std::move(elements)));
}

Status infer_empty(InferContext& context) {
  const std::int64_t code =
      context.attributes.get_int("dtype", static_cast<std::int64_t>(DType::kFp32));
  if (code <= 0 || code >= kDTypeCount)
    return attribute_error("dtype", fmt::format("expected a known element type, found {}", code));
  set_sequence(context, ValueType::tensor(static_cast<DType>(code), std::nullopt));
  return {};
}

Status empty_kernel(KernelContext& context) {
  return context.set_value(0, RunValue::sequence({}));
}

// ---- SequenceInsert, SequenceErase
// -------------------------------------------------------------------------------------------------

Status infer_insert(InferContext& context) {
  TESSERA_ASSIGN(const ValueType element, sequence_element(context, 0));
  TESSERA_ASSIGN(const InferInput* tensor, tensor_input(context, 1));
  if (has_input(context, 2)) TESSERA_TRY(check_position_type(context, 2));
  const DType dtype = element.dtype;
  if (element.is_tensor() && dtype != DType::kUndefined && tensor->type.dtype != dtype &&
      tensor->type.dtype != DType::kUndefined) {
    return input_error(context, 1,
                       fmt::format("expected {} as the elements of input 'input_sequence' have, "
                                   "found {}",
                                   to_string(dtype), to_string(tensor->type.dtype)));
  }
  set_sequence(context, joined_element(context, element, tensor->type));
  return {};
}

Status check_same_dtype(const RunValue& sequence, const RunValue& tensor) {
  if (sequence.elements.empty() || !sequence.elements[0].is_tensor()) return {};
  const DType expected = sequence.elements[0].tensor.dtype();
  if (tensor.tensor.dtype() == expected) return {};
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("SequenceInsert: input 'tensor': expected {} as the elements of the "
                          "sequence have, found {}",
                          to_string(expected), to_string(tensor.tensor.dtype())));
}

Status insert_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const RunValue* sequence, sequence_input(context, 0, "SequenceInsert"));
  TESSERA_ASSIGN(RunValue tensor, owned_input(context, 1));
  TESSERA_TRY(check_same_dtype(*sequence, tensor));
  std::size_t at = sequence->elements.size();
  if (const TensorView* position = context.input(2)) {
    TESSERA_ASSIGN(at, checked_position(*position, at, 1, "SequenceInsert"));
  }
  std::vector<RunValue> elements = sequence->elements;
  elements.insert(elements.begin() + static_cast<std::ptrdiff_t>(at), std::move(tensor));
  return context.set_value(0, RunValue::sequence(std::move(elements)));
}

Status infer_erase(InferContext& context) {
  TESSERA_ASSIGN(ValueType element, sequence_element(context, 0));
  if (has_input(context, 1)) TESSERA_TRY(check_position_type(context, 1));
  set_sequence(context, std::move(element));
  return {};
}

Status erase_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const RunValue* sequence, sequence_input(context, 0, "SequenceErase"));
  std::vector<RunValue> elements = sequence->elements;
  if (elements.empty()) {
    return fail(ErrorCode::kOutOfRange,
                "SequenceErase: expected a sequence with an element, found an empty one");
  }
  std::size_t at = elements.size() - 1;
  if (const TensorView* position = context.input(1)) {
    TESSERA_ASSIGN(at, checked_position(*position, elements.size(), 0, "SequenceErase"));
  }
  elements.erase(elements.begin() + static_cast<std::ptrdiff_t>(at));
  return context.set_value(0, RunValue::sequence(std::move(elements)));
}

// ---- SequenceAt, SequenceLength
// -------------------------------------------------------------------------------------------------

Status infer_at(InferContext& context) {
  TESSERA_ASSIGN(ValueType element, sequence_element(context, 0));
  TESSERA_TRY(check_position_type(context, 1));
  if (!context.outputs.empty())
    context.outputs[0] = taken_element(context, std::move(element), "element");
  return {};
}

Status at_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const RunValue* sequence, sequence_input(context, 0, "SequenceAt"));
  TESSERA_ASSIGN(const TensorView* position, kernel_input(context, 1));
  TESSERA_ASSIGN(const std::size_t at,
                 checked_position(*position, sequence->elements.size(), 0, "SequenceAt"));
  return give_value(context, sequence->elements[at]);
}

Status infer_length(InferContext& context) {
  TESSERA_ASSIGN(const ValueType element, sequence_element(context, 0));
  set_output(context, 0, DType::kInt64, Shape{});
  return {};
}

Status length_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const RunValue* sequence, sequence_input(context, 0, "SequenceLength"));
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, DType::kInt64, {}));
  *output.as<std::int64_t>() = static_cast<std::int64_t>(sequence->elements.size());
  return {};
}

// ---- Schemas
// -------------------------------------------------------------------------------------------------

// Sequences bind no dtype; inference checks them.
OpSchema sequence_op(std::string_view name, std::vector<FormalParam> inputs, FormalParam output,
                     InferFn infer, KernelFn kernel) {
  OpSchema op;
  op.name = name;
  op.versions = {11};
  op.inputs = std::move(inputs);
  op.outputs = {output};
  op.type_variables = {{"T", kAllTypes}, {"I", kIndexTypes}};
  op.infer = infer;
  op.kernel = kernel;
  return op;
}

}  // namespace

std::vector<OpSchema> sequence_ops() {
  const FormalParam sequence = required("input_sequence", "");
  const FormalParam result = required("output_sequence", "");
  std::vector<OpSchema> ops;
  ops.push_back(sequence_op("SequenceConstruct", {variadic("inputs", "T")}, result, infer_construct,
                            construct_kernel));
  ops.push_back(
      sequence_op("SequenceEmpty", {}, required("output", ""), infer_empty, empty_kernel));
  ops.back().attributes = {attr("dtype", AttrType::kInt)};
  ops.push_back(sequence_op("SequenceInsert",
                            {sequence, required("tensor", "T"), optional("position", "I")}, result,
                            infer_insert, insert_kernel));
  ops.push_back(sequence_op("SequenceErase", {sequence, optional("position", "I")}, result,
                            infer_erase, erase_kernel));
  ops.push_back(sequence_op("SequenceAt", {sequence, required("position", "I")},
                            required("tensor", "T"), infer_at, at_kernel));
  ops.back().data_dependent_shape = true;
  ops.push_back(sequence_op("SequenceLength", {sequence}, required("length", "L"), infer_length,
                            length_kernel));
  ops.back().type_variables = {{"L", kInt64Type}};
  return ops;
}

}  // namespace tessera::ops
