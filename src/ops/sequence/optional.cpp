// Optionals: made, asked for their element, and opened.

#include <fmt/format.h>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/kernel_util.h"
#include "ops/schema_util.h"
#include "ops/sequence/sequence_util.h"

namespace tessera::ops {
namespace {

using Kind = ValueType::Kind;

// ---- Optional
// -------------------------------------------------------------------------------------------------

// The attribute, which the verifier has checked to be a type; null where it is absent.
const ValueType* declared_element(const Attributes& attributes) {
  const AttributeValue* value = attributes.find("type");
  return value == nullptr ? nullptr : std::get_if<ValueType>(value);
}

// Kinds and dtypes are the same all the way down; an unknown dtype agrees with all.
bool agree(const ValueType& a, const ValueType& b) {
  if (a.kind != b.kind) return false;
  if (!a.is_tensor()) return agree(*a.element, *b.element);
  return a.dtype == b.dtype || a.dtype == DType::kUndefined || b.dtype == DType::kUndefined;
}

Status infer_optional(InferContext& context) {
  const ValueType* declared = declared_element(context.attributes);
  if (!has_input(context, 0) && declared == nullptr)
    return attribute_error("type", "expected the type of the element, as there is no input");
  const ValueType& element = has_input(context, 0) ? context.inputs[0].type : *declared;
  if (element.kind == Kind::kOptional) {
    const std::string message =
        fmt::format("expected a tensor or a sequence, found {}", element.to_string());
    return has_input(context, 0) ? Status(input_error(context, 0, message))
                                 : Status(attribute_error("type", message));
  }
  if (declared != nullptr && !agree(*declared, element)) {
    return input_error(context, 0,
                       fmt::format("expected {} as attribute 'type' says, found {}",
                                   declared->to_string(), element.to_string()));
  }
  if (!context.outputs.empty()) context.outputs[0] = ValueType::optional(element);
  return {};
}

Status optional_kernel(KernelContext& context) {
  if (context.value(0) == nullptr && context.input(0) == nullptr)
    return context.set_value(0, RunValue::optional({}));
  TESSERA_ASSIGN(RunValue element, owned_input(context, 0));
  return context.set_value(0, RunValue::optional({std::move(element)}));
}

// ---- OptionalHasElement
// -------------------------------------------------------------------------------------------------

Status infer_has_element(InferContext& context) {
  set_output(context, 0, DType::kBool, Shape{});
  if (!has_input(context, 0)) {
    set_value(context, 0, DimTensor{true, {Dim(0)}});
    return {};
  }
  const ValueType& type = context.inputs[0].type;
  const bool typed = !type.is_tensor() || type.dtype != DType::kUndefined || type.shape;
  if (typed && type.kind != Kind::kOptional) set_value(context, 0, DimTensor{true, {Dim(1)}});
  return {};
}

Status has_element_kernel(KernelContext& context) {
  const RunValue* value = context.value(0);
  const bool has = value == nullptr ? context.input(0) != nullptr
                                    : value->kind != Kind::kOptional || !value->elements.empty();
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, DType::kBool, {}));
  *output.as<bool>() = has;
  return {};
}

// ---- OptionalGetElement
// -------------------------------------------------------------------------------------------------

Status infer_get_element(InferContext& context) {
  if (!has_input(context, 0)) return input_error(context, 0, "expected a value, found none");
  const ValueType& type = context.inputs[0].type;
  if (!context.outputs.empty())
    context.outputs[0] = type.kind == Kind::kOptional ? *type.element : type;
  if (type.kind != Kind::kOptional) set_value(context, 0, known_value(context.inputs[0]));
  return {};
}

Status get_element_kernel(KernelContext& context) {
  const RunValue* value = context.value(0);
  if (value == nullptr || value->is_tensor()) {
    TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
    TESSERA_ASSIGN(const MutableTensorView output, context.output(0, input->dtype, input->dims));
    copy_elements(*input, output);
    return {};
  }
  if (value->kind == Kind::kSequence) return give_value(context, *value);
  if (value->elements.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "OptionalGetElement: expected an optional with an element, found an empty one");
  }
  return give_value(context, value->elements.front());
}

OpSchema optional_op(std::string_view name, std::vector<int> versions, FormalParam input,
                     FormalParam output, InferFn infer, KernelFn kernel) {
  OpSchema op;
  op.name = name;
  op.versions = std::move(versions);
  op.inputs = {input};
  op.outputs = {output};
  op.infer = infer;
  op.kernel = kernel;
  return op;
}

}  // namespace

std::vector<OpSchema> optional_ops() {
  std::vector<OpSchema> ops;
  ops.push_back(optional_op("Optional", {15, 28}, optional("input", ""), required("output", ""),
                            infer_optional, optional_kernel));
  ops.back().attributes = {attr("type", AttrType::kType)};
  ops.push_back(optional_op("OptionalHasElement", {15, 18, 28}, optional("input", ""),
                            required("output", "B"), infer_has_element, has_element_kernel));
  ops.back().type_variables = {{"B", kBoolType}};
  ops.push_back(optional_op("OptionalGetElement", {15, 18, 28}, required("input", ""),
                            required("output", ""), infer_get_element, get_element_kernel));
  ops.back().unspecified = "an empty optional is an error";
  return ops;
}

}  // namespace tessera::ops
