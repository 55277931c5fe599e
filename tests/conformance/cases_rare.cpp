// Operators that few models have: sampling, losses, spectra, random numbers with a seed.

#include "conformance/case_text.h"

namespace tessera::testing {
namespace {

void add_sampling(std::vector<OpCase>& cases) {
  cases.push_back({"AffineGrid", "input %x : fp32[n, 2, 3]" + ints("s", {3, 1, 4, 5}) +
                                     "%y = AffineGrid(%x, %s) output %y"});
  cases.push_back({"GridSample",
                   "input %x : fp32[n, 2, 5, 6] input %g : fp32[n, 3, 4, 2] "
                   "%y = GridSample(%x, %g) {padding_mode = \"border\"} output %y"});
  cases.push_back({"RoiAlign",
                   "input %x : fp32[2, 3, 6, 6] const %r : fp32[2, 4] dense [0, 0, 4, "
                   "4, 1, 2, 5, 3]" +
                       ints("b", {0, 1}) +
                       "%y = RoiAlign(%x, %r, %b) {output_height = 2, output_width = "
                       "2, sampling_ratio = 2} output %y"});
  cases.push_back({"MaxRoiPool",
                   "input %x : fp32[2, 3, 6, 6] const %r : fp32[2, 5] dense [0, 0, 0, 4, "
                   "3, 1, 2, 1, 5, 4] "
                   "%y = MaxRoiPool(%x, %r) {pooled_shape = [2, 3]} output %y"});
  cases.push_back({"Col2Im", "input %x : fp32[n, 8, 12]" + ints("i", {4, 5}) + ints("b", {2, 2}) +
                                 "%y = Col2Im(%x, %i, %b) output %y"});
  cases.push_back({"MaxUnpool",
                   "input %x : fp32[1, 1, 2, 2] const %i : int64[1, 1, 2, 2] dense [0, 3, 8, 15] "
                   "%y = MaxUnpool(%x, %i) {kernel_shape = [2, 2], strides = [2, 2]} output %y"});
  cases.push_back({"DeformConv", "input %x : fp32[n, 2, 5, 5] input %o : fp32[n, 8, 4, 4]" +
                                     constant("w", {3, 2, 2, 2}) +
                                     "%y = DeformConv(%x, %w, %o) output %y"});
  cases.push_back({"CenterCropPad", "input %x : fp32[n, 4, 7]" + ints("s", {6, 3}) +
                                        "%y = CenterCropPad(%x, %s) {axes = [1, 2]} output %y"});
  cases.push_back({"TensorScatter", "input %x : fp32[3, 5, 4] input %u : fp32[3, 2, 4]" +
                                        ints("i", {0, 1, 3}) +
                                        "%y = TensorScatter(%x, %u, %i) output %y"});
}

void add_sums(std::vector<OpCase>& cases) {
  cases.push_back(
      {"NegativeLogLikelihoodLoss", "input %x : fp32[3, 5]" + ints("t", {0, 4, 2}) +
                                        "%y = NegativeLogLikelihoodLoss(%x, %t) output %y"});
  cases.push_back({"SoftmaxCrossEntropyLoss",
                   "input %x : fp32[3, 5]" + ints("t", {0, 4, 2}) +
                       "%y, %l = SoftmaxCrossEntropyLoss(%x, %t) output %y output %l"});
  cases.push_back(
      {"DynamicQuantizeLSTM",
       "input %x : fp32[n, 2, 4] input %w : int8[1, 4, 12] input %r : int8[1, 3, 12]" +
           constant("s", {1}, 1) + ints("z", {0}, "int8") +
           "%y, %h, %c = \"com.microsoft::DynamicQuantizeLSTM\"(%x, %w, %r, _, _, _, _, _, "
           "%s, %z, %s, %z) {hidden_size = 3} output %y output %h output %c"});
  cases.push_back({"Det", "input %x : fp32[n, 3, 3] %y = Det(%x) output %y"});
  cases.push_back({"LinearAttention",
                   "input %q : fp32[n, 4, 8] input %k : fp32[n, 4, 4] input %v : fp32[n, 4, 6] "
                   "%y, %s = LinearAttention(%q, %k, %v) {kv_num_heads = 1, q_num_heads = 2, "
                   "update_rule = \"linear\"} output %y output %s"});
  cases.push_back({"DFT", "input %x : fp32[n, 6, 2]" + scalar("a", "int64", "1") +
                              "%y = DFT(%x, _, %a) output %y"});
  cases.push_back({"STFT", "input %x : fp32[n, 16, 1]" + scalar("s", "int64", "4") +
                               constant("w", {8}) + "%y = STFT(%x, %s, %w) output %y"});
}

void add_tables(std::vector<OpCase>& cases) {
  for (const char* op : {"BlackmanWindow", "HammingWindow", "HannWindow"})
    cases.push_back({op, scalar("s", "int64", "7") + "%y = " + op + "(%s) output %y"});
  cases.push_back({"MelWeightMatrix", scalar("b", "int64", "4") + scalar("l", "int64", "16") +
                                          scalar("r", "int64", "8000") + scalar("f", "fp32", "0") +
                                          scalar("t", "fp32", "4000") +
                                          "%y = MelWeightMatrix(%b, %l, %r, %f, %t) output %y"});
  cases.push_back({"BitCast", "input %x : int32[n, 5] %y = BitCast(%x) {to = 12} output %y"});
  for (const char* op : {"RandomNormal", "RandomUniform"})
    cases.push_back({op, "%y = " + std::string(op) + "() {seed = 3.0, shape = [4, 5]} output %y"});
  for (const char* op : {"RandomNormalLike", "RandomUniformLike"})
    cases.push_back(
        {op, "input %x : fp32[n, 5] %y = " + std::string(op) + "(%x) {seed = 3.0} output %y"});
  cases.push_back(
      {"Bernoulli", "input %x : fp32[n, 5] %y = Bernoulli(%x) {dtype = 6, seed = 3.0} output %y"});
  cases.push_back({"Multinomial",
                   "input %x : fp32[n, 5] %y = Multinomial(%x) {sample_size = 4, seed = 3.0} "
                   "output %y"});
}

}  // namespace

void add_rare_cases(std::vector<OpCase>& cases) {
  add_sampling(cases);
  add_sums(cases);
  add_tables(cases);
}

}  // namespace tessera::testing
