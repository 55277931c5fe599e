// The same operators at other dtypes: the small floats, fp64, integers, bool.

#include "conformance/case_text.h"

namespace tessera::testing {
namespace {

std::string in(const std::string& name, const std::string& dtype, const std::string& dims) {
  return "input %" + name + " : " + dtype + dims + " ";
}

void add_float_cases(std::vector<OpCase>& cases, const std::string& dtype) {
  const std::string image = in("x", dtype, "[n, 8, 6, 5]");
  const std::string matrix = in("x", dtype, "[n, 10]");
  const auto add = [&](const std::string& op, const std::string& statements) {
    cases.push_back({op + "/" + dtype, statements + " output %y"});
  };
  for (const char* op : {"Abs", "Exp", "Gelu", "LeakyRelu", "Neg", "Relu", "Sigmoid", "Tanh"})
    add(op, image + "%y = " + op + "(%x)");
  for (const char* op : {"Add", "Div", "Max", "Mul", "Sub", "Less"})
    add(op, image + in("z", dtype, "[8, 1, 1]") + "%y = " + op + "(%x, %z)");
  for (const char* op : {"GlobalAveragePool", "GlobalMaxPool"})
    add(op, image + "%y = " + op + "(%x)");
  for (const char* op : {"MaxPool", "AveragePool"})
    add(op, image + "%y = " + op + "(%x) {kernel_shape = [2, 2]}");
  for (const char* op : {"ReduceMax", "ReduceMean", "ReduceSum", "ReduceL2"})
    add(op, image + ints("a", {2, 3}) + "%y = " + op + "(%x, %a)");
  for (const char* op : {"Softmax", "LogSoftmax"}) add(op, matrix + "%y = " + op + "(%x)");
  add("Conv", image + constant("w", {4, 8, 3, 3}, -16, dtype) + "%y = Conv(%x, %w)");
  add("ConvTranspose",
      image + constant("w", {8, 4, 2, 2}, -16, dtype) + "%y = ConvTranspose(%x, %w)");
  add("MatMul", matrix + constant("w", {10, 6}, -16, dtype) + "%y = MatMul(%x, %w)");
  add("Gemm", matrix + constant("w", {6, 10}, -16, dtype) + constant("b", {6}, -16, dtype) +
                  "%y = Gemm(%x, %w, %b) {transB = 1}");
  add("BatchNormalization",
      image + constant("s", {8}, -16, dtype) + constant("of", {8}, -16, dtype) +
          constant("mean", {8}, -16, dtype) + constant("variance", {8}, 1, dtype) +
          "%y = BatchNormalization(%x, %s, %of, %mean, %variance)");
  add("LayerNormalization",
      matrix + constant("s", {10}, -16, dtype) + "%y = LayerNormalization(%x, %s)");
  add("Resize", image +
                    "const %s : fp32[4] dense [1, 1, 2, 2] %y = Resize(%x, _, %s) "
                    "{mode = \"linear\"}");
  add("Clip",
      image + scalar("a", dtype, "-0.5") + scalar("b", dtype, "1") + "%y = Clip(%x, %a, %b)");
  add("PRelu", image + constant("w", {8, 1, 1}, -16, dtype) + "%y = PRelu(%x, %w)");
  add("Where", in("c", "bool", "[n, 5]") + in("x", dtype, "[n, 5]") + in("z", dtype, "[n, 5]") +
                   "%y = Where(%c, %x, %z)");
  for (const auto& [name, to] : {std::pair{"fp32", 1}, {"fp16", 10}, {"bf16", 16}, {"int32", 6}})
    add(std::string("Cast to ") + name, matrix + "%y = Cast(%x) {to = " + std::to_string(to) + "}");
}

void add_integer_cases(std::vector<OpCase>& cases, const std::string& dtype) {
  const std::string pair = in("x", dtype, "[n, 5]") + in("z", dtype, "[5]");
  const auto add = [&](const std::string& op, const std::string& statements) {
    cases.push_back({op + "/" + dtype, statements + " output %y"});
  };
  for (const char* op : {"Add", "Div", "Max", "Min", "Mul", "Sub", "Pow", "Equal", "Less",
                         "GreaterOrEqual", "Mod"}) {
    if (std::string(op) == "Add" && dtype == "int64") continue;  // stands with the others
    add(op, pair + "%y = " + op + "(%x, %z)");
  }
  for (const char* op : {"Abs", "Sign"}) add(op, in("x", dtype, "[n, 5]") + "%y = " + op + "(%x)");
  for (const char* op : {"ReduceMax", "ReduceSum", "ReduceMin", "ReduceMean", "ReduceProd"})
    add(op, in("x", dtype, "[n, 5]") + ints("a", {1}) + "%y = " + op + "(%x, %a)");
  add("Clip", in("x", dtype, "[n, 5]") + scalar("a", dtype, "1") + scalar("b", dtype, "2") +
                  "%y = Clip(%x, %a, %b)");
  add("CumSum", in("x", dtype, "[n, 5]") + scalar("a", "int64", "1") + "%y = CumSum(%x, %a)");
  add("Cast to fp32", in("x", dtype, "[n, 5]") + "%y = Cast(%x) {to = 1}");
  add("Cast to bool", in("x", dtype, "[n, 5]") + "%y = Cast(%x) {to = 9}");
}

void add_movement_cases(std::vector<OpCase>& cases, const std::string& dtype) {
  const std::string image = in("x", dtype, "[n, 4, 6]");
  const auto add = [&](const std::string& op, const std::string& statements) {
    cases.push_back({op + "/" + dtype, statements + " output %y"});
  };
  add("Concat", image + in("z", dtype, "[n, 2, 6]") + "%y = Concat(%x, %z) {axis = 1}");
  add("Expand", in("x", dtype, "[4, 1]") + ints("s", {2, 4, 3}) + "%y = Expand(%x, %s)");
  add("Gather", image + ints("i", {2, 0, -1}) + "%y = Gather(%x, %i) {axis = 1}");
  add("Pad", image + ints("p", {0, 1, 2, 0, 0, 1}) + "%y = Pad(%x, %p)");
  add("Reshape", image + ints("s", {0, -1}) + "%y = Reshape(%x, %s)");
  add("Slice", image + ints("a", {1}) + ints("b", {6}) + ints("c", {2}) + ints("d", {2}) +
                   "%y = Slice(%x, %a, %b, %c, %d)");
  add("Tile", image + ints("r", {1, 2, 1}) + "%y = Tile(%x, %r)");
  add("Transpose", image + "%y = Transpose(%x) {perm = [0, 2, 1]}");
  add("Identity", image + "%y = Identity(%x)");
}

}  // namespace

void add_dtype_cases(std::vector<OpCase>& cases) {
  for (const char* dtype : {"fp16", "bf16", "fp64"}) add_float_cases(cases, dtype);
  for (const char* dtype : {"int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"})
    add_integer_cases(cases, dtype);
  for (const char* dtype : {"fp16", "bf16", "fp64", "int8", "int16", "int32", "int64", "bool"})
    add_movement_cases(cases, dtype);
}

}  // namespace tessera::testing
