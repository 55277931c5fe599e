// Recurrent layers, quantised operators, normalisations, and what makes tensors or reads sizes.

#include "conformance/case_text.h"

namespace tessera::testing {
namespace {

const std::string kImage = "input %x : fp32[n, 8, 6, 5]";
const std::string kMatrix = "input %x : fp32[n, 10]";

void add_recurrent(std::vector<OpCase>& cases) {
  const struct {
    const char* op;
    std::int64_t gates;
  } cells[] = {{"GRU", 3}, {"LSTM", 4}, {"RNN", 1}};
  for (const auto& cell : cells) {
    const std::string op = cell.op;
    const auto inputs = [&](std::int64_t directions) {
      return "input %x : fp32[4, n, 5]" + constant("w", {directions, cell.gates * 3, 5}) +
             constant("r", {directions, cell.gates * 3, 3}) +
             constant("b", {directions, cell.gates * 6});
    };
    cases.push_back({op, inputs(1) + "%y, %h = " + op +
                             "(%x, %w, %r, %b) {hidden_size = 3} output %y output %h"});
    cases.push_back({op + "/bidirectional",
                     inputs(2) + "%y, %h = " + op +
                         "(%x, %w, %r, %b) {direction = \"bidirectional\", hidden_size = 3} "
                         "output %y output %h"});
  }
}

void add_quantized(std::vector<OpCase>& cases) {
  cases.push_back(
      {"ConvInteger", "input %x : uint8[n, 4, 5, 5] input %w : int8[3, 4, 2, 2]" +
                          scalar("xz", "uint8", "1") + scalar("wz", "int8", "1") +
                          "%y = ConvInteger(%x, %w, %xz, %wz) {pads = [1, 0, 0, 1]} output %y"});
  cases.push_back({"MatMulInteger", "input %x : uint8[n, 6] input %w : int8[6, 4]" +
                                        scalar("xz", "uint8", "1") + scalar("wz", "int8", "1") +
                                        "%y = MatMulInteger(%x, %w, %xz, %wz) output %y"});
  const std::string scales = scalar("xs", "fp32", "0.25") + scalar("xz", "uint8", "1") +
                             scalar("ws", "fp32", "0.5") + scalar("wz", "int8", "1") +
                             scalar("ys", "fp32", "0.125") + scalar("yz", "uint8", "3");
  cases.push_back({"QLinearConv",
                   "input %x : uint8[n, 4, 5, 5] input %w : int8[3, 4, 2, 2]" + scales +
                       "%y = QLinearConv(%x, %xs, %xz, %w, %ws, %wz, %ys, %yz) {strides = [2, 1]} "
                       "output %y"});
  cases.push_back(
      {"QLinearMatMul", "input %x : uint8[n, 6] input %w : int8[6, 4]" + scales +
                            "%y = QLinearMatMul(%x, %xs, %xz, %w, %ws, %wz, %ys, %yz) output %y"});
  cases.push_back({"DynamicQuantizeLinear",
                   "input %x : fp32[n, 5] %y, %s, %z = DynamicQuantizeLinear(%x) "
                   "output %y output %s output %z"});
  cases.push_back({"QuantizeLinear/per channel",
                   kImage + constant("s", {8}, 1) + ints("z", {0, 1, 2, 3, -1, -2, -3, 0}, "int8") +
                       "%y = QuantizeLinear(%x, %s, %z) {axis = 1} output %y"});
  cases.push_back({"DequantizeLinear/per channel",
                   "input %x : int8[n, 8, 3]" + constant("s", {8}, 1) +
                       ints("z", {0, 1, 2, 3, -1, -2, -3, 0}, "int8") +
                       "%y = DequantizeLinear(%x, %s, %z) {axis = 1} output %y"});
}

void add_norms(std::vector<OpCase>& cases) {
  cases.push_back({"GroupNormalization",
                   kImage + constant("s", {8}) + constant("of", {8}) +
                       "%y = GroupNormalization(%x, %s, %of) {num_groups = 4} output %y"});
  cases.push_back({"RMSNormalization",
                   kMatrix + constant("s", {10}) + "%y = RMSNormalization(%x, %s) output %y"});
  cases.push_back({"LayerNormalization/axis 1 with its mean",
                   kImage + constant("s", {8, 6, 5}) +
                       "%y, %m, %d = LayerNormalization(%x, %s) {axis = 1} "
                       "output %y output %m output %d"});
  cases.push_back({"LpNormalization", kMatrix + " %y = LpNormalization(%x) {p = 1} output %y"});
  cases.push_back(
      {"MeanVarianceNormalization", kImage + " %y = MeanVarianceNormalization(%x) output %y"});
  cases.push_back({"LpPool", kImage + " %y = LpPool(%x) {kernel_shape = [2, 2]} output %y"});
  cases.push_back({"GlobalLpPool", kImage + " %y = GlobalLpPool(%x) output %y"});
}

void add_generators(std::vector<OpCase>& cases) {
  cases.push_back(
      {"Constant", "%y = Constant() {value = tensor fp32[2] dense [1.5, -2]} output %y"});
  cases.push_back({"ConstantOfShape", ints("s", {2, 3}) + "%y = ConstantOfShape(%s) output %y"});
  cases.push_back({"EyeLike", "input %x : fp32[n, 4] %y = EyeLike(%x) {k = 1} output %y"});
  cases.push_back({"Range", scalar("a", "int64", "2") + scalar("b", "int64", "9") +
                                scalar("c", "int64", "3") + "%y = Range(%a, %b, %c) output %y"});
  cases.push_back({"Shape", kImage + " %y = Shape(%x) {start = 1} output %y"});
  cases.push_back({"Size", kImage + " %y = Size(%x) output %y"});
}

void add_attention(std::vector<OpCase>& cases) {
  const std::string heads =
      "input %q : fp32[n, 4, 3, 8] input %k : fp32[n, 2, 5, 8] input %v : fp32[n, 2, 5, 8] ";
  cases.push_back({"Attention", heads + "%y = Attention(%q, %k, %v) output %y"});
  cases.push_back(
      {"Attention/mask", heads + "input %m : fp32[3, 5] %y = Attention(%q, %k, %v, %m) output %y"});
  cases.push_back({"RotaryEmbedding",
                   "input %x : fp32[n, 2, 4, 8] input %c : fp32[n, 4, 4] input %s : fp32[n, 4, 4] "
                   "%y = RotaryEmbedding(%x, %c, %s) output %y"});
}

void add_others(std::vector<OpCase>& cases) {
  cases.push_back({"BitShift",
                   "input %x : uint8[n, 5] input %z : uint8[n, 5] %y = BitShift(%x, %z) "
                   "{direction = \"LEFT\"} output %y"});
  for (const char* op : {"BitwiseAnd", "BitwiseOr", "BitwiseXor"})
    cases.push_back({op, "input %x : int32[n, 5] input %z : int32[n, 5] %y = " + std::string(op) +
                             "(%x, %z) output %y"});
  cases.push_back({"BitwiseNot", "input %x : int32[n, 5] %y = BitwiseNot(%x) output %y"});
  cases.push_back(
      {"CastLike", "input %x : fp32[n, 5] input %z : int32[1] %y = CastLike(%x, %z) output %y"});
  cases.push_back(
      {"Compress", kMatrix + " input %c : bool[10] %y = Compress(%x, %c) {axis = 1} output %y"});
  cases.push_back({"Unique", kMatrix + " %y = Unique(%x) output %y"});
  cases.push_back(
      {"Mod", "input %x : int32[n, 5] const %z : int32[] dense [2] %y = Mod(%x, %z) output %y"});
  cases.push_back({"Mod/fmod",
                   "input %x : fp32[n, 5] const %z : fp32[] dense [0.75] "
                   "%y = Mod(%x, %z) {fmod = 1} output %y"});
  cases.push_back({"ReverseSequence", "input %x : fp32[4, 3, 2]" + ints("l", {4, 2, 3}) +
                                          "%y = ReverseSequence(%x, %l) output %y"});
}

}  // namespace

void add_layer_cases(std::vector<OpCase>& cases) {
  add_recurrent(cases);
  add_quantized(cases);
  add_norms(cases);
  add_generators(cases);
  add_attention(cases);
  add_others(cases);
}

}  // namespace tessera::testing
