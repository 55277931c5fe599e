#include "conformance/cases.h"

#include <algorithm>

#include "base/dims.h"
#include "conformance/case_text.h"
#include "testing/random.h"

namespace tessera::testing {
std::string dims_text(const Dims& dims) {
  std::string text = "[";
  for (const std::int64_t size : dims) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

std::string constant(const std::string& name, const Dims& dims, int low_eighths,
                     const std::string& dtype) {
  Random random(7 + name.size());
  std::string text = " const %" + name + " : " + dtype + dims_text(dims) + " dense [";
  for (std::int64_t i = 0; i < numel(dims); ++i)
    text += (i > 0 ? ", " : "") +
            std::to_string(static_cast<double>(random.integer(low_eighths, 16)) / 8);
  return text + "] ";
}

std::string ints(const std::string& name, const std::vector<std::int64_t>& values,
                 const std::string& dtype) {
  return " const %" + name + " : " + dtype + dims_text({static_cast<std::int64_t>(values.size())}) +
         " dense " + dims_text(values) + " ";
}

std::string scalar(const std::string& name, const std::string& dtype, const std::string& value) {
  return " const %" + name + " : " + dtype + "[] dense [" + value + "] ";
}

namespace {

const std::string kImage = "input %x : fp32[n, 8, 6, 5]";
const std::string kMatrix = "input %x : fp32[n, 10]";

void add_products(std::vector<OpCase>& cases) {
  const auto conv = [&](const std::string& name, const std::string& input, const Dims& weights,
                        const std::string& attributes) {
    cases.push_back({"Conv/" + name, "input %x : " + input + constant("w", weights) +
                                         constant("b", {weights[0]}) + "%y = Conv(%x, %w, %b) {" +
                                         attributes + "} output %y"});
  };
  conv("1x1", "fp32[n, 8, 6, 5]", {4, 8, 1, 1}, "kernel_shape = [1, 1]");
  conv("3x3", "fp32[1, 3, 9, 9]", {16, 3, 3, 3}, "pads = [1, 1, 1, 1]");
  conv("strided", "fp32[2, 8, 9, 9]", {8, 8, 3, 3}, "strides = [2, 2], pads = [0, 1, 1, 0]");
  conv("dilated", "fp32[1, 8, 9, 9]", {8, 8, 3, 3}, "dilations = [2, 2]");
  conv("grouped", "fp32[1, 8, 6, 6]", {16, 4, 3, 3}, "group = 2");
  conv("depthwise", "fp32[1, 16, 6, 6]", {16, 1, 3, 3}, "group = 16");
  conv("1d", "fp32[2, 4, 9]", {8, 4, 3}, "pads = [1, 1]");
  conv("3d", "fp32[1, 4, 5, 5, 5]", {8, 4, 2, 2, 2}, "strides = [1, 2, 1]");
  cases.push_back({"Conv/weights at run time",
                   kImage + " input %w : fp32[4, 8, 3, 3] %y = Conv(%x, %w) output %y"});
  cases.push_back({"Conv/epilogue", kImage + constant("w", {8, 8, 1, 1}) +
                                        "%t = Conv(%x, %w) %y = Relu(%t) output %y"});
  cases.push_back({"ConvTranspose", kImage + constant("w", {8, 4, 2, 2}) +
                                        "%y = ConvTranspose(%x, %w) {strides = [2, 2]} output %y"});
  cases.push_back(
      {"MatMul/weights", kMatrix + constant("w", {10, 6}) + "%y = MatMul(%x, %w) output %y"});
  cases.push_back({"MatMul/batched",
                   "input %x : fp32[2, 3, 4, 5] input %z : fp32[3, 5, 6] %y = MatMul(%x, %z) "
                   "output %y"});
  cases.push_back(
      {"MatMul/vector", "input %x : fp32[4, 5] input %z : fp32[5] %y = MatMul(%x, %z) output %y"});
  cases.push_back({"Gemm", kMatrix + constant("w", {6, 10}) + constant("b", {6}) +
                               "%y = Gemm(%x, %w, %b) {transB = 1} output %y"});
  cases.push_back({"Gemm/scaled", kMatrix + constant("w", {10, 6}) + constant("b", {6}) +
                                      "%y = Gemm(%x, %w, %b) {alpha = 0.5, beta = 2.0} output %y"});
  cases.push_back({"Einsum",
                   "input %x : fp32[2, 3, 4] input %z : fp32[2, 4, 5] %y = Einsum(%x, %z) "
                   "{equation = \"bij,bjk->bik\"} output %y"});
}

void add_elementwise(std::vector<OpCase>& cases) {
  for (const char* op : {"Abs",
                         "Acos",
                         "Acosh",
                         "Asin",
                         "Asinh",
                         "Atan",
                         "Atanh",
                         "Ceil",
                         "Celu",
                         "Cos",
                         "Cosh",
                         "Elu",
                         "Erf",
                         "Exp",
                         "Floor",
                         "Gelu",
                         "HardSigmoid",
                         "HardSwish",
                         "Identity",
                         "IsInf",
                         "IsNaN",
                         "LeakyRelu",
                         "Log",
                         "Mish",
                         "Neg",
                         "Reciprocal",
                         "Relu",
                         "Round",
                         "Selu",
                         "Shrink",
                         "Sigmoid",
                         "Sign",
                         "Sin",
                         "Sinh",
                         "Softplus",
                         "Softsign",
                         "Sqrt",
                         "Swish",
                         "Tan",
                         "Tanh",
                         "ThresholdedRelu"})
    cases.push_back({op, kImage + " %y = " + op + "(%x) output %y"});
  for (const char* op : {"Add", "Div", "Max", "Mean", "Min", "Mul", "Pow", "Sub", "Sum"}) {
    cases.push_back(
        {op, kImage + " input %z : fp32[n, 8, 6, 5] %y = " + op + "(%x, %z) output %y"});
    cases.push_back({std::string(op) + "/broadcast",
                     kImage + " input %z : fp32[8, 1, 1] %y = " + op + "(%x, %z) output %y"});
  }
  for (const char* op : {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"})
    cases.push_back({op, "input %x : fp32[n, 5] input %z : fp32[n, 5] %y = " + std::string(op) +
                             "(%x, %z) output %y"});
  for (const char* op : {"And", "Or", "Xor"})
    cases.push_back({op, "input %x : bool[n, 5] input %z : bool[n, 5] %y = " + std::string(op) +
                             "(%x, %z) output %y"});
  cases.push_back({"Not", "input %x : bool[n, 5] %y = Not(%x) output %y"});
  cases.push_back(
      {"Add/int64", "input %x : int64[n, 5] input %z : int64[5] %y = Add(%x, %z) output %y"});
  cases.push_back({"Cast/to int64", kMatrix + " %y = Cast(%x) {to = 7} output %y"});
  cases.push_back({"Cast/to fp32", "input %x : int64[n, 5] %y = Cast(%x) {to = 1} output %y"});
  cases.push_back({"Clip", kImage + " const %a : fp32[] dense [-0.5] const %b : fp32[] dense [1] "
                                    "%y = Clip(%x, %a, %b) output %y"});
  cases.push_back({"PRelu", kImage + constant("w", {8, 1, 1}) + "%y = PRelu(%x, %w) output %y"});
  cases.push_back({"Where",
                   "input %c : bool[n, 5] input %x : fp32[n, 5] input %z : fp32[n, 5] "
                   "%y = Where(%c, %x, %z) output %y"});
  cases.push_back({"elementwise group", kImage + " input %z : fp32[n, 8, 6, 5] %s = Sigmoid(%x) "
                                                 "%t = Mul(%s, %x) %y = Add(%t, %z) output %y"});
}

void add_movement(std::vector<OpCase>& cases) {
  const auto of = [&](const std::string& name, const std::string& constants,
                      const std::string& node) {
    cases.push_back({name, kImage + " " + constants + " %y = " + node + " output %y"});
  };
  cases.push_back({"Concat", kImage + " input %z : fp32[n, 8, 6, 5] %y = Concat(%x, %z) {axis = 1} "
                                      "output %y"});
  of("DepthToSpace", "", "DepthToSpace(%x) {blocksize = 2}");
  of("Dropout", "", "Dropout(%x)");
  cases.push_back(
      {"Expand", "input %x : fp32[3, 1]" + ints("s", {2, 3, 4}) + "%y = Expand(%x, %s) output %y"});
  of("Flatten", "", "Flatten(%x) {axis = 2}");
  of("Gather", ints("i", {2, 0, 2}), "Gather(%x, %i) {axis = 1}");
  cases.push_back({"Gather/at run time",
                   "input %x : fp32[4, 5] input %i : int64[2, 2] %y = Gather(%x, %i) output %y"});
  cases.push_back({"GatherElements",
                   "input %x : fp32[4, 5] input %i : int64[4, 2] "
                   "%y = GatherElements(%x, %i) {axis = 1} output %y"});
  cases.push_back(
      {"GatherND", "input %x : fp32[4, 5] input %i : int64[3, 2] %y = GatherND(%x, %i) output %y"});
  cases.push_back({"OneHot",
                   "input %i : int64[5] const %d : int64[] dense [4] const %v : fp32[2] "
                   "dense [0, 1] %y = OneHot(%i, %d, %v) output %y"});
  of("Pad/constant", ints("p", {0, 0, 1, 2, 0, 0, 1, 0}), "Pad(%x, %p)");
  of("Pad/reflect", ints("p", {0, 0, 1, 2, 0, 0, 1, 0}), "Pad(%x, %p) {mode = \"reflect\"}");
  of("Reshape", ints("s", {0, 4, -1}), "Reshape(%x, %s)");
  cases.push_back(
      {"ScatterElements",
       "input %x : fp32[4, 5]" + std::string(" const %i : int64[1, 2] dense [1, 3] ") +
           "input %u : fp32[1, 2] %y = ScatterElements(%x, %i, %u) {axis = 1} output %y"});
  cases.push_back({"ScatterND",
                   "input %x : fp32[4, 5] const %i : int64[2, 1] dense [3, 0] input %u "
                   ": fp32[2, 5] %y = ScatterND(%x, %i, %u) output %y"});
  of("Slice", ints("a", {1, 0}) + ints("b", {7, 5}) + ints("c", {1, 2}) + ints("d", {2, 2}),
     "Slice(%x, %a, %b, %c, %d)");
  cases.push_back({"SpaceToDepth",
                   "input %x : fp32[1, 3, 4, 6] %y = SpaceToDepth(%x) {blocksize = "
                   "2} output %y"});
  cases.push_back({"Split", "input %x : fp32[n, 8, 6, 5]" + ints("s", {3, 5}) +
                                "%y, %z = Split(%x, %s) {axis = 1} output %y output %z"});
  cases.push_back(
      {"Squeeze", "input %x : fp32[n, 1, 4]" + ints("a", {1}) + "%y = Squeeze(%x, %a) output %y"});
  of("Tile", ints("r", {1, 2, 1, 2}), "Tile(%x, %r)");
  of("Transpose", "", "Transpose(%x) {perm = [0, 2, 3, 1]}");
  cases.push_back({"Trilu", "input %x : fp32[2, 4, 5] %y = Trilu(%x) {upper = 0} output %y"});
  of("Unsqueeze", ints("a", {1}), "Unsqueeze(%x, %a)");
  for (const char* mode : {"nearest", "linear", "cubic"})
    of(std::string("Resize/") + mode, "const %s : fp32[4] dense [1, 1, 2, 1.5]",
       std::string("Resize(%x, _, %s) {mode = \"") + mode + "\"}");
}

void add_reductions(std::vector<OpCase>& cases) {
  for (const char* op : {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax",
                         "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"})
    cases.push_back({op, kImage + ints("a", {2, 3}) + "%y = " + op + "(%x, %a) output %y"});
  for (const char* op : {"ArgMax", "ArgMin"})
    cases.push_back({op, kImage + " %y = " + op + "(%x) {axis = 1} output %y"});
  cases.push_back(
      {"CumProd", kMatrix + " const %a : int64[] dense [1] %y = CumProd(%x, %a) output %y"});
  cases.push_back(
      {"CumSum", kMatrix + " const %a : int64[] dense [1] %y = CumSum(%x, %a) output %y"});
  cases.push_back({"NonZero", kMatrix + " %y = NonZero(%x) output %y"});
  cases.push_back({"TopK", kMatrix + ints("k", {3}) + "%y, %i = TopK(%x, %k) output %y output %i"});
  for (const char* op : {"Softmax", "LogSoftmax", "Hardmax"}) {
    cases.push_back({op, kMatrix + " %y = " + op + "(%x) output %y"});
    cases.push_back(
        {std::string(op) + "/axis 1", kImage + " %y = " + op + "(%x) {axis = 1} output %y"});
  }
}

void add_windows_and_norms(std::vector<OpCase>& cases) {
  for (const char* op : {"MaxPool", "AveragePool"})
    cases.push_back({op, kImage + " %y = " + op +
                             "(%x) {kernel_shape = [3, 2], strides = [2, 1], pads = [1, 0, 0, 1]} "
                             "output %y"});
  cases.push_back({"GlobalAveragePool", kImage + " %y = GlobalAveragePool(%x) output %y"});
  cases.push_back({"GlobalMaxPool", kImage + " %y = GlobalMaxPool(%x) output %y"});
  cases.push_back({"BatchNormalization",
                   kImage + constant("s", {8}) + constant("of", {8}) + constant("mean", {8}) +
                       constant("variance", {8}, 1) +
                       "%y = BatchNormalization(%x, %s, %of, %mean, %variance) output %y"});
  cases.push_back(
      {"InstanceNormalization", kImage + constant("s", {8}) + constant("of", {8}) +
                                    "%y = InstanceNormalization(%x, %s, %of) output %y"});
  cases.push_back({"LayerNormalization", kMatrix + constant("s", {10}) + constant("of", {10}) +
                                             "%y = LayerNormalization(%x, %s, %of) output %y"});
  cases.push_back({"LRN", kImage + " %y = LRN(%x) {size = 3} output %y"});
  cases.push_back({"QuantizeLinear", kMatrix +
                                         " const %s : fp32[] dense [0.125] const %z : int8[] "
                                         "dense [1] %y = QuantizeLinear(%x, %s, %z) output %y"});
  cases.push_back({"DequantizeLinear",
                   "input %x : int8[n, 10] const %s : fp32[] dense [0.125] const "
                   "%z : int8[] dense [1] %y = DequantizeLinear(%x, %s, %z) "
                   "output %y"});
}

std::vector<OpCase> make_cases() {
  std::vector<OpCase> cases;
  add_products(cases);
  add_elementwise(cases);
  add_movement(cases);
  add_reductions(cases);
  add_windows_and_norms(cases);
  add_layer_cases(cases);
  add_dtype_cases(cases);
  add_attribute_cases(cases);
  add_rare_cases(cases);
  std::ranges::sort(cases, {}, &OpCase::name);
  return cases;
}

}  // namespace

const std::vector<OpCase>& op_cases() {
  static const std::vector<OpCase> cases = make_cases();
  return cases;
}

}  // namespace tessera::testing
