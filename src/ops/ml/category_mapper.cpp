// CategoryMapper of ai.onnx.ml: strings to numbers, or numbers to strings, by pairs of both.

#include <fmt/format.h>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/kernel_util.h"
#include "ops/ml/label_table.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

// The table for elements of `dtype`: which of the two lists has the keys.
Result<ml::LabelTable> read_table(const Attributes& attributes, DType dtype) {
  const AttributeValue* found = attributes.find("cats_strings");
  const auto* names = found == nullptr ? nullptr : std::get_if<std::vector<std::string>>(found);
  const std::vector<std::int64_t> numbers = attributes.get_ints("cats_int64s");
  const std::size_t count = names == nullptr ? 0 : names->size();
  if (count != numbers.size())
    return attribute_error("cats_strings", fmt::format("expected {} values as in 'cats_int64s', "
                                                       "found {}",
                                                       numbers.size(), count));
  const Dims dims{static_cast<std::int64_t>(count)};
  const Tensor strings = Tensor::of<std::string>(
      DType::kString, dims, names == nullptr ? std::vector<std::string>() : *names);
  const Tensor ints = Tensor::of<std::int64_t>(DType::kInt64, dims, numbers);
  if (dtype == DType::kString)
    return ml::LabelTable{
        strings, ints,
        Tensor::of<std::int64_t>(DType::kInt64, {1},
                                 std::vector{attributes.get_int("default_int64", -1)})};
  return ml::LabelTable{
      ints, strings,
      Tensor::of<std::string>(DType::kString, {1},
                              std::vector{attributes.get_string("default_string", "_Unused")})};
}

Status infer(InferContext& context) {
  TESSERA_TRY(require_dtype(context, 0, kStringType | kInt64Type));
  const ValueType& input = context.inputs[0].type;
  TESSERA_ASSIGN(const ml::LabelTable table, read_table(context.attributes, input.dtype));
  set_output(context, 0, table.values.dtype(), input.shape);
  return {};
}

Status kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const ml::LabelTable table, read_table(context.attributes(), input->dtype));
  return ml::look_up(context, table, "CategoryMapper");
}

}  // namespace

std::vector<OpSchema> category_mapper_ops() {
  OpSchema op;
  op.domain = "ai.onnx.ml";
  op.name = "CategoryMapper";
  op.unspecified = "the type of X says which way to go; of equal keys the last one counts";
  op.versions = {1};
  op.inputs = {required("X", "T1")};
  op.outputs = {required("Y", "T2")};
  op.attributes = {attr("cats_int64s", AttrType::kInts), attr("cats_strings", AttrType::kStrings),
                   attr("default_int64", AttrType::kInt),
                   attr("default_string", AttrType::kString)};
  op.type_variables = {{"T1", kStringType | kInt64Type}, {"T2", kStringType | kInt64Type}};
  op.structure = Structure::kOther;
  op.infer = infer;
  op.kernel = kernel;
  return {op};
}

}  // namespace tessera::ops
