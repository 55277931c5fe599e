// LabelEncoder of ai.onnx.ml: elements replaced by what a table says.

#include <fmt/format.h>

#include <numeric>
#include <variant>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/kernel_util.h"
#include "ops/ml/label_table.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

using ml::kLabelTypes;
using ml::LabelTable;

template <typename T>
Tensor column(DType dtype, const std::vector<T>& values) {
  return Tensor::of<T>(dtype, {static_cast<std::int64_t>(values.size())}, values);
}

// The keys or values, of whichever attribute holds them: "keys_int64s" and so on.
Result<Tensor> column_of(const Attributes& attributes, const std::string& kind) {
  std::size_t found = 0;
  Tensor tensor;
  for (const char* type : {"_tensor", "_strings", "_int64s", "_floats"}) {
    const AttributeValue* value = attributes.find(kind + type);
    if (value == nullptr) continue;
    ++found;
    if (const auto* dense = std::get_if<Tensor>(value)) tensor = *dense;
    if (const auto* list = std::get_if<std::vector<std::string>>(value))
      tensor = column(DType::kString, *list);
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(value))
      tensor = column(DType::kInt64, *list);
    if (const auto* list = std::get_if<std::vector<float>>(value))
      tensor = column(DType::kFp32, *list);
  }
  if (found == 1 && (kLabelTypes & dtype_bit(tensor.dtype())) != 0) return tensor;
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("expected exactly one of the attributes '{0}_tensor', '{0}_strings', "
                          "'{0}_int64s' and '{0}_floats', found {1}",
                          kind, found));
}

// What stands for an element that is no key, one element of the values' dtype.
Result<Tensor> default_of(const Attributes& attributes, DType dtype) {
  if (const AttributeValue* value = attributes.find("default_tensor")) {
    const auto* tensor = std::get_if<Tensor>(value);
    if (tensor != nullptr && tensor->dtype() == dtype && tensor->numel() == 1) return *tensor;
    return attribute_error("default_tensor",
                           fmt::format("expected one element of {}", to_string(dtype)));
  }
  if (dtype == DType::kString)
    return column(dtype, std::vector{attributes.get_string("default_string", "_Unused")});
  if (dtype == DType::kFp32)
    return column(dtype, std::vector{attributes.get_float("default_float", -0.0F)});
  TESSERA_ASSIGN(Tensor one, Tensor::zeros(dtype, {1}));
  const std::int64_t number = is_float(dtype) ? 0 : attributes.get_int("default_int64", -1);
  cast_elements({DType::kInt64, {1}, &number}, one.mutable_view(), true);
  return one;
}

Result<LabelTable> read_table(const Attributes& attributes) {
  LabelTable table;
  TESSERA_ASSIGN(table.keys, column_of(attributes, "keys"));
  TESSERA_ASSIGN(table.values, column_of(attributes, "values"));
  if (table.keys.numel() != table.values.numel())
    return fail(ErrorCode::kInvalidArgument, fmt::format("expected as many values as keys, found "
                                                         "{} keys and {} values",
                                                         table.keys.numel(), table.values.numel()));
  TESSERA_ASSIGN(table.fallback, default_of(attributes, table.values.dtype()));
  return table;
}

Status infer(InferContext& context) {
  TESSERA_ASSIGN(const LabelTable table, read_table(context.attributes));
  TESSERA_TRY(require_dtype(context, 0, dtype_bit(table.keys.dtype())));
  set_output(context, 0, table.values.dtype(), context.inputs[0].type.shape);
  return {};
}

Status kernel(KernelContext& context) {
  TESSERA_ASSIGN(const LabelTable table, read_table(context.attributes()));
  return ml::look_up(context, table, "LabelEncoder");
}

// Version 1 has a list of strings, whose positions are the numbers, and goes either way.
Status upgrade(UpgradeNode& node, int /*opset*/, UpgradeBuilder& builder) {
  const AttributeValue* classes = node.attributes.find("classes_strings");
  const auto* names = classes == nullptr ? nullptr : std::get_if<std::vector<std::string>>(classes);
  if (names == nullptr || node.inputs.empty())
    return attribute_error("classes_strings", "expected a list of strings, found none");
  const ValueType* type = builder.type(node.inputs[0]);
  if (type == nullptr)
    return fail(ErrorCode::kUnimplemented,
                "input 'X': its dtype is not known, and the upgrade of version 1 needs it");
  std::vector<std::int64_t> numbers(names->size());
  std::iota(numbers.begin(), numbers.end(), 0);
  const bool from_strings = type->dtype == DType::kString;
  node.attributes.set(from_strings ? "keys_strings" : "values_strings", *names);
  node.attributes.set(from_strings ? "values_int64s" : "keys_int64s", numbers);
  node.attributes.erase("classes_strings");
  return {};
}

}  // namespace

std::vector<OpSchema> label_encoder_ops() {
  OpSchema op;
  op.domain = "ai.onnx.ml";
  op.name = "LabelEncoder";
  op.versions = {1, 2, 4};
  op.inputs = {required("X", "T1")};
  op.outputs = {required("Y", "T2")};
  op.attributes = {
      attr("default_float", AttrType::kFloat),    attr("default_int64", AttrType::kInt),
      attr("default_string", AttrType::kString),  attr("default_tensor", AttrType::kTensor),
      attr("keys_floats", AttrType::kFloats),     attr("keys_int64s", AttrType::kInts),
      attr("keys_strings", AttrType::kStrings),   attr("keys_tensor", AttrType::kTensor),
      attr("values_floats", AttrType::kFloats),   attr("values_int64s", AttrType::kInts),
      attr("values_strings", AttrType::kStrings), attr("values_tensor", AttrType::kTensor)};
  op.type_variables = {{"T1", kLabelTypes}, {"T2", kLabelTypes}};
  op.structure = Structure::kOther;
  op.infer = infer;
  op.kernel = kernel;
  op.upgrades = {{1, 1, upgrade}};
  return {op};
}

}  // namespace tessera::ops
