// 8-bit products of com.microsoft: whole numbers are multiplied, reals come out.

#include <fmt/format.h>

#include "ops/contrib/expansion.h"
#include "ops/groups.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

using contrib::attributes_of;
using contrib::Expansion;

constexpr DTypeSet kBytes = dtype_set({DType::kInt8, DType::kUInt8});
constexpr DTypeSet kScales = dtype_set({DType::kFp32, DType::kFp16});

// sums * scale + bias, in the dtype of the scale.
Operand to_reals(Expansion& e, Operand sums, Operand scale, DType dtype, Operand bias) {
  const Operand scaled = e.add("Mul", {e.cast(sums, dtype), scale});
  return bias == kNoOperand ? scaled : e.add("Add", {scaled, bias});
}

Status matmul_to_float(Expansion& e) {
  TESSERA_ASSIGN(const DType dtype, e.dtype(2));
  const Operand sums = e.add("MatMulInteger", {e.in(0), e.in(1), e.in(4), e.in(5)});
  const Operand scale = e.add("Mul", {e.in(2), e.in(3)});
  return e.replace({to_reals(e, sums, scale, dtype, e.in(6))});
}

Status dynamic_matmul(Expansion& e) {
  const auto a = e.add_many("DynamicQuantizeLinear", 3, {e.in(0)});
  const Operand sums = e.add("MatMulInteger", {a[0], e.in(1), a[2], e.in(3)});
  const Operand scale = e.add("Mul", {a[1], e.in(2)});
  return e.replace({to_reals(e, sums, scale, DType::kFp32, e.in(4))});
}

enum Gemm : std::size_t { kA, kAScale, kAZero, kB, kBScale, kBZero, kC, kYScale, kYZero };

Status gemm(Expansion& e) {
  const auto matrix = [&](std::size_t index, const char* flag) {
    return e.int_of(flag, 0) == 0 ? e.in(index) : e.transpose(e.in(index), {1, 0});
  };
  Operand sums = e.add("MatMulInteger",
                       {matrix(kA, "transA"), matrix(kB, "transB"), e.in(kAZero), e.in(kBZero)});
  if (e.has(kC)) sums = e.add("Add", {sums, e.in(kC)});
  Operand scale = e.add("Mul", {e.in(kAScale), e.in(kBScale)});
  const float alpha = e.float_of("alpha", 1);
  if (alpha != 1.0F)
    scale = e.add("Mul", {scale, e.number(DType::kFp32, static_cast<double>(alpha))});
  const Operand reals = to_reals(e, sums, scale, DType::kFp32, kNoOperand);
  if (!e.has(kYScale)) return e.replace({reals});
  return e.replace({e.add("QuantizeLinear", {reals, e.in(kYScale), e.in(kYZero)})});
}

// (A - a_zero_point) * (B - b_zero_point) as int32.
Status multiply(Expansion& e) {
  const auto centred = [&](std::size_t index) {
    const Operand x = e.cast(e.in(index), DType::kInt32);
    return e.has(index + 1) ? e.add("Sub", {x, e.cast(e.in(index + 1), DType::kInt32)}) : x;
  };
  const Operand a = centred(0);
  return e.replace({e.add("Mul", {a, centred(2)})});
}

// QLinearConv, with channels last where the attribute says so.
Status conv(Expansion& e) {
  const bool channels_last = e.int_of("channels_last", 0) != 0;
  std::int64_t rank = 0;
  if (channels_last) {
    TESSERA_ASSIGN(rank, e.rank(0));
  }
  std::vector<Operand> inputs;
  for (std::size_t i = 0; i < e.input_count(); ++i) inputs.push_back(e.in(i));
  if (channels_last) inputs[0] = e.to_channels_first(inputs[0], rank);
  const Operand y =
      e.add("QLinearConv", std::move(inputs),
            e.keep({"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}));
  return e.replace({channels_last ? e.to_channels_last(y, rank) : y});
}

OpSchema matmul_to_float_schema() {
  return contrib::expanded_op("MatMulIntegerToFloat",
                              {required("A", "T1"), required("B", "T2"), required("a_scale", "T3"),
                               required("b_scale", "T3"), optional("a_zero_point", "T1"),
                               optional("b_zero_point", "T2"), optional("bias", "T3")},
                              {required("Y", "T3")}, {},
                              {{"T1", kBytes}, {"T2", kBytes}, {"T3", kScales}},
                              contrib::expand<matmul_to_float>);
}

OpSchema gemm_schema() {
  return contrib::expanded_op(
      "QGemm",
      {required("A", "TA"), required("a_scale", "T"), required("a_zero_point", "TA"),
       required("B", "TB"), required("b_scale", "T"), required("b_zero_point", "TB"),
       optional("C", "TC"), optional("y_scale", "T"), optional("y_zero_point", "TYZ")},
      {required("Y", "")},
      {attr("alpha", AttrType::kFloat), attr("transA", AttrType::kInt),
       attr("transB", AttrType::kInt)},
      {{"T", kFp32Type},
       {"TA", kBytes},
       {"TB", kBytes},
       {"TC", dtype_bit(DType::kInt32)},
       {"TYZ", kBytes}},
      contrib::expand<gemm>);
}

OpSchema conv_schema() {
  return contrib::expanded_op(
      "QLinearConv",
      {required("x", "T1"), required("x_scale", "TF"), required("x_zero_point", "T1"),
       required("w", "T2"), required("w_scale", "TF"), required("w_zero_point", "T2"),
       required("y_scale", "TF"), required("y_zero_point", "T3"), optional("B", "T4")},
      {required("y", "T3")},
      {attr("auto_pad", AttrType::kString), attr("channels_last", AttrType::kInt),
       attr("dilations", AttrType::kInts), attr("group", AttrType::kInt),
       attr("kernel_shape", AttrType::kInts), attr("pads", AttrType::kInts),
       attr("strides", AttrType::kInts)},
      {{"T1", kBytes},
       {"T2", kBytes},
       {"T3", kBytes},
       {"T4", dtype_bit(DType::kInt32)},
       {"TF", kFp32Type}},
      contrib::expand<conv>);
}

}  // namespace

std::vector<OpSchema> quantized_product_ops() {
  return {
      matmul_to_float_schema(),
      contrib::expanded_op("DynamicQuantizeMatMul",
                           {required("A", "T1"), required("B", "T2"), required("b_scale", "T1"),
                            optional("b_zero_point", "T2"), optional("bias", "T1")},
                           {required("Y", "T1")}, {}, {{"T1", kFp32Type}, {"T2", kBytes}},
                           contrib::expand<dynamic_matmul>),
      gemm_schema(),
      contrib::expanded_op("MulInteger",
                           {required("A", "T"), optional("A_zero_point", "T"), required("B", "T"),
                            optional("B_zero_point", "T")},
                           {required("C", "T1")}, {},
                           {{"T", kBytes}, {"T1", dtype_bit(DType::kInt32)}},
                           contrib::expand<multiply>),
      conv_schema(),
  };
}

}  // namespace tessera::ops
