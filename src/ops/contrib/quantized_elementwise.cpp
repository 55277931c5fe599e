// 8-bit operators that mean: dequantise, compute, quantise.

#include <fmt/format.h>

#include "ops/contrib/expansion.h"
#include "ops/groups.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

using contrib::attributes_of;
using contrib::Expansion;

constexpr DTypeSet kBytes = dtype_set({DType::kInt8, DType::kUInt8});

// Inputs index, index + 1 and index + 2 are elements, their one scale and zero point.
Result<Operand> real(Expansion& e, std::size_t index) {
  TESSERA_TRY(e.require_one_element(index + 1));
  TESSERA_TRY(e.require_one_element(index + 2));
  return e.add("DequantizeLinear", {e.in(index), e.in(index + 1), e.in(index + 2)});
}

// `x` with the scale and the zero point of inputs `scale` and `scale` + 1; without a zero point it
// is 0 in the dtype of input 0.
Status replace_quantized(Expansion& e, Operand x, std::size_t scale) {
  TESSERA_TRY(e.require_one_element(scale));
  TESSERA_TRY(e.require_one_element(scale + 1));
  Operand zero = e.in(scale + 1);
  if (zero == kNoOperand) {
    TESSERA_ASSIGN(const DType dtype, e.dtype(0));
    zero = e.cast(e.scalar(0), dtype);
  }
  return e.replace({e.add("QuantizeLinear", {x, e.in(scale), zero})});
}

Status add(Expansion& e) {
  TESSERA_ASSIGN(const Operand a, real(e, 0));
  TESSERA_ASSIGN(const Operand b, real(e, 3));
  return replace_quantized(e, e.add("Add", {a, b}), 6);
}

Status multiply(Expansion& e) {
  TESSERA_ASSIGN(const Operand a, real(e, 0));
  TESSERA_ASSIGN(const Operand b, real(e, 3));
  return replace_quantized(e, e.add("Mul", {a, b}), 6);
}

Status sigmoid(Expansion& e) {
  TESSERA_ASSIGN(const Operand x, real(e, 0));
  return replace_quantized(e, e.add("Sigmoid", {x}), 3);
}

Status leaky_relu(Expansion& e) {
  TESSERA_ASSIGN(const Operand x, real(e, 0));
  return replace_quantized(e, e.add("LeakyRelu", {x}, e.keep({"alpha"})), 3);
}

// Before version 13 all axes from `axis` on are one.
Status softmax(Expansion& e) {
  const std::int64_t axis = e.int_of("axis", -1);
  TESSERA_ASSIGN(const Operand x, real(e, 0));
  if (e.int_of("opset", 13) >= 13)
    return replace_quantized(e, e.add("Softmax", {x}, attributes_of({{"axis", axis}})), 3);
  const Operand flat = e.add("Flatten", {x}, attributes_of({{"axis", axis}}));
  const Operand y = e.add("Softmax", {flat}, attributes_of({{"axis", std::int64_t{1}}}));
  return replace_quantized(e,
                           e.add("Reshape", {y, e.add("Shape", {e.in(0)})},
                                 attributes_of({{"allowzero", std::int64_t{1}}})),
                           3);
}

Status pool(Expansion& e, std::string op, Attributes attributes) {
  const bool channels_last = e.int_of("channels_last", 0) != 0;
  TESSERA_ASSIGN(Operand x, real(e, 0));
  if (!channels_last)
    return replace_quantized(e, e.add(std::move(op), {x}, std::move(attributes)), 3);
  TESSERA_ASSIGN(const std::int64_t rank, e.rank(0));
  x = e.add(std::move(op), {e.to_channels_first(x, rank)}, std::move(attributes));
  return replace_quantized(e, e.to_channels_last(x, rank), 3);
}

Status average_pool(Expansion& e) {
  return pool(
      e, "AveragePool",
      e.keep({"auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides"}));
}

Status global_average_pool(Expansion& e) {
  return pool(e, "GlobalAveragePool", {});
}

// In fp64, as a mean in fp32 that is a rounding away lies on the other side of a tie.
Status reduce_mean(Expansion& e) {
  TESSERA_ASSIGN(const Operand x, real(e, 0));
  const Operand wide = e.cast(x, DType::kFp64);
  const Operand mean =
      e.add("ReduceMean", {wide, e.ints(e.attributes().get_ints("axes"))}, e.keep({"keepdims"}));
  return replace_quantized(e, e.cast(mean, DType::kFp32), 3);
}

Status where(Expansion& e) {
  TESSERA_ASSIGN(const Operand x, real(e, 1));
  TESSERA_ASSIGN(const Operand y, real(e, 4));
  return replace_quantized(e, e.add("Where", {e.in(0), x, y}), 7);
}

// Y_scale and Y_zero_point, then each operand with its scale and zero point.
Status concat(Expansion& e) {
  if (e.input_count() < 5 || (e.input_count() - 2) % 3 != 0)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("expected 2 inputs and 3 for each operand, found {}", e.input_count()));
  std::vector<Operand> operands;
  for (std::size_t i = 2; i < e.input_count(); i += 3) {
    TESSERA_ASSIGN(operands.emplace_back(), real(e, i));
  }
  return replace_quantized(e, e.concat(std::move(operands), e.int_of("axis", 0)), 0);
}

// ---- Maximum of channels-last bytes -------------------------------------------------------------

Status max_pool_last(Expansion& e) {
  TESSERA_ASSIGN(const std::int64_t rank, e.rank(0));
  const Operand y =
      e.add("MaxPool", {e.to_channels_first(e.in(0), rank)},
            e.keep({"auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides"}));
  return e.replace({e.to_channels_last(y, rank)});
}

// ---- QuantizeLinear and DequantizeLinear of com.microsoft ---------------------------------------

// Without an axis there is one scale; the standard would take axis 1 for several, and divide in the
// dtype of the scale where this divides in fp32.
template <bool quantize>
Status linear(Expansion& e) {
  const Shape* scale = e.shape(e.in(1));
  if (!e.attributes().has("axis") &&
      (scale == nullptr || (!scale->empty() && !(*scale == Shape{Dim(1)}))))
    return contrib::refuse_input(
        quantize ? "y_scale" : "x_scale",
        fmt::format("expected one element without the attribute 'axis', found {}",
                    scale == nullptr ? "an unknown shape" : to_string(*scale)));
  Attributes attributes = e.keep({"axis"});
  if (quantize) attributes.set("precision", static_cast<std::int64_t>(DType::kFp32));
  return e.replace({e.add(quantize ? "QuantizeLinear" : "DequantizeLinear",
                          {e.in(0), e.in(1), e.in(2)}, std::move(attributes))});
}

// ---- Schemas ------------------------------------------------------------------------------------

const std::vector<TypeVariable>& byte_variables() {
  static const std::vector<TypeVariable> variables = {{"T", kBytes}, {"F", kFp32Type}};
  return variables;
}

OpSchema binary(std::string_view name, contrib::Apply apply) {
  return contrib::expanded_op(
      name,
      {required("A", "T"), required("A_scale", "F"), optional("A_zero_point", "T"),
       required("B", "T"), required("B_scale", "F"), optional("B_zero_point", "T"),
       required("C_scale", "F"), optional("C_zero_point", "T")},
      {required("C", "T")}, {}, byte_variables(), apply);
}

OpSchema unary(std::string_view name, std::vector<FormalAttr> attributes, contrib::Apply apply) {
  return contrib::expanded_op(
      name,
      {required("X", "T"), required("X_scale", "F"), optional("X_zero_point", "T"),
       required("Y_scale", "F"), optional("Y_zero_point", "T")},
      {required("Y", "T")}, std::move(attributes), byte_variables(), apply);
}

std::vector<FormalAttr> average_attributes() {
  return {attr("auto_pad", AttrType::kString),
          attr("ceil_mode", AttrType::kInt),
          attr("channels_last", AttrType::kInt),
          attr("count_include_pad", AttrType::kInt),
          required_attr("kernel_shape", AttrType::kInts),
          attr("pads", AttrType::kInts),
          attr("strides", AttrType::kInts)};
}

OpSchema where_schema() {
  return contrib::expanded_op(
      "QLinearWhere",
      {required("condition", "B"), required("X", "T"), required("x_scale", "F"),
       required("x_zero_point", "T"), required("Y", "T"), required("y_scale", "F"),
       required("y_zero_point", "T"), required("z_scale", "F"), required("z_zero_point", "T")},
      {required("Z", "T")}, {}, {{"T", kBytes}, {"F", kFp32Type}, {"B", kBoolType}},
      contrib::expand<where>);
}

OpSchema concat_schema() {
  return contrib::expanded_op(
      "QLinearConcat",
      {required("Y_scale", "F"), required("Y_zero_point", "T"), variadic("inputs", "TV")},
      {required("Y", "T")}, {required_attr("axis", AttrType::kInt)},
      {{"T", kBytes}, {"F", kFp32Type}, {"TV", kBytes | kFp32Type}}, contrib::expand<concat>);
}

OpSchema max_pool_schema() {
  return contrib::expanded_op(
      "NhwcMaxPool", {required("x", "T")}, {required("y", "T")},
      {attr("auto_pad", AttrType::kString), attr("ceil_mode", AttrType::kInt),
       attr("dilations", AttrType::kInts), required_attr("kernel_shape", AttrType::kInts),
       attr("pads", AttrType::kInts), attr("strides", AttrType::kInts)},
      {{"T", kBytes}}, contrib::expand<max_pool_last>);
}

std::vector<OpSchema> linear_schemas() {
  const DTypeSet narrow = dtype_set(
      {DType::kInt8, DType::kUInt8, DType::kInt16, DType::kUInt16, DType::kInt4, DType::kUInt4});
  const DTypeSet scales = dtype_set({DType::kFp32, DType::kFp16});
  const std::vector<FormalAttr> axis = {attr("axis", AttrType::kInt)};
  return {
      contrib::expanded_op(
          "QuantizeLinear",
          {required("x", "T1"), required("y_scale", "T1"), optional("y_zero_point", "T2")},
          {required("y", "T2")}, axis, {{"T1", scales}, {"T2", narrow}},
          contrib::expand<linear<true>>),
      contrib::expanded_op(
          "DequantizeLinear",
          {required("x", "T1"), required("x_scale", "T2"), optional("x_zero_point", "T1")},
          {required("y", "T2")}, axis, {{"T1", narrow | dtype_bit(DType::kInt32)}, {"T2", scales}},
          contrib::expand<linear<false>>)};
}

}  // namespace

std::vector<OpSchema> quantized_elementwise_ops() {
  std::vector<OpSchema> ops = {
      binary("QLinearAdd", contrib::expand<add>),
      binary("QLinearMul", contrib::expand<multiply>),
      unary("QLinearSigmoid", {}, contrib::expand<sigmoid>),
      unary("QLinearLeakyRelu", {attr("alpha", AttrType::kFloat)}, contrib::expand<leaky_relu>),
      unary("QLinearSoftmax",
            {attr("axis", AttrType::kInt), required_attr("opset", AttrType::kInt)},
            contrib::expand<softmax>),
      unary("QLinearAveragePool", average_attributes(), contrib::expand<average_pool>),
      unary("QLinearGlobalAveragePool", {attr("channels_last", AttrType::kInt)},
            contrib::expand<global_average_pool>),
      unary("QLinearReduceMean",
            {required_attr("axes", AttrType::kInts), required_attr("keepdims", AttrType::kInt)},
            contrib::expand<reduce_mean>),
      where_schema(),
      concat_schema(),
      max_pool_schema(),
  };
  for (OpSchema& op : linear_schemas()) ops.push_back(std::move(op));
  return ops;
}

}  // namespace tessera::ops
