#include "passes/fold_batch_normalization.h"

#include <gtest/gtest.h>

#include "passes/eliminate_dead_code.h"
#include "testing/pass_testing.h"

namespace tessera::passes {
namespace {

using testing::run_passes;

const Pass kFold{"fold_batch_normalization", fold_batch_normalization, ""};

std::string values(std::size_t count, double step) {
  std::string text = "[";
  for (std::size_t i = 0; i < count; ++i)
    text += (i > 0 ? ", " : "") + std::to_string(0.7 - step * static_cast<double>(i));
  return text + "]";
}

// Statistics of `channels` channels, all different, and the normalization of %t into %y.
std::string norm(std::size_t channels) {
  const std::string type = "fp32[" + std::to_string(channels) + "] dense ";
  return "const %scale : " + type + values(channels, 0.2) + " const %offset : " + type +
         values(channels, -0.3) + " const %mean : " + type + values(channels, 0.4) +
         " const %var : " + type + values(channels, -1.1) +
         " %y = BatchNormalization(%t, %scale, %offset, %mean, %var) {epsilon = 0.01} name \"bn\" "
         "output %y";
}

TEST(FoldBatchNormalization, IntoConv) {
  const auto result =
      run_passes("input %x : fp32[n, 4, 5, 5] const %w : fp32[6, 2, 1, 1] dense " +
                     values(12, 0.1) + " %t = Conv(%x, %w) {group = 2} name \"conv\" " + norm(6),
                 {kFold});
  EXPECT_EQ(result.text.find("BatchNormalization"), std::string::npos) << result.text;
  const ir::Node& conv = *result.module.methods[0].graph.nodes()[0];
  EXPECT_EQ(conv.origins, (std::vector<ir::OriginId>{0, 1}));
  EXPECT_EQ(conv.inputs.size(), 3U);
}

TEST(FoldBatchNormalization, IntoConvWithBias) {
  const auto result = run_passes(
      "input %x : fp32[1, 2, 4] const %w : fp32[3, 2, 2] dense " + values(12, 0.1) +
          " const %b : fp32[3] dense [1, -2, 3] %t = Conv(%x, %w, %b) name \"conv\" " + norm(3),
      {kFold});
  EXPECT_TRUE(result.changed);
  EXPECT_TRUE(result.notes.empty());
}

TEST(FoldBatchNormalization, IntoGroupedConvTranspose) {
  const auto result = run_passes(
      "input %x : fp32[1, 4, 3, 3] const %w : fp32[4, 3, 2, 2] dense " + values(48, 0.05) +
          " %t = ConvTranspose(%x, %w) {group = 2} name \"up\" " + norm(6),
      {kFold});
  EXPECT_TRUE(result.changed);
}

TEST(FoldBatchNormalization, IntoGemm) {
  for (const char* weights : {"fp32[4, 3]", "fp32[3, 4]"}) {
    const bool transposed = weights[5] == '3';
    const auto result = run_passes(std::string("input %x : fp32[n, 4] const %w : ") + weights +
                                       " dense " + values(12, 0.1) +
                                       " const %b : fp32[3] dense [1, 2, 3] %t = Gemm(%x, %w, %b) "
                                       "{alpha = 0.5, beta = 2.0, transB = " +
                                       (transposed ? "1" : "0") + "} name \"fc\" " + norm(3),
                                   {kFold});
    EXPECT_TRUE(result.changed);
    EXPECT_EQ(result.text.find("beta"), std::string::npos) << result.text;
  }
}

TEST(FoldBatchNormalization, IntoGemmWithAScalarBias) {
  const auto result =
      run_passes("input %x : fp32[n, 4] const %w : fp32[4, 3] dense " + values(12, 0.1) +
                     " const %b : fp32[] dense [5] %t = Gemm(%x, %w, %b) name \"fc\" " + norm(3),
                 {kFold});
  EXPECT_TRUE(result.changed);
}

TEST(FoldBatchNormalization, CopiesSharedWeights) {
  const auto result = run_passes(
      "input %x : fp32[1, 2, 4] const %w : fp32[3, 2, 1] dense " + values(6, 0.1) +
          " %other = Conv(%x, %w) %t = Conv(%x, %w) {strides = [1]} name \"conv\" output %other " +
          norm(3),
      {kFold});
  EXPECT_TRUE(result.changed);
}

std::string declined(const std::string& statements) {
  const auto result = run_passes(statements, {kFold});
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.notes.size(), 1U);
  if (result.notes.empty()) return "";
  EXPECT_EQ(result.notes[0].pattern, "fold_batch_normalization");
  EXPECT_EQ(result.notes[0].nodes, (std::vector<std::string>{"conv", "bn"}));
  return result.notes[0].reason;
}

TEST(FoldBatchNormalization, DeclinesWithAReason) {
  const std::string conv = "input %x : fp32[1, 2, 4] const %w : fp32[3, 2, 1] dense " +
                           values(6, 0.1) + " %t = Conv(%x, %w) name \"conv\" ";
  EXPECT_EQ(declined(conv + " output %t " + norm(3)), "the result of 'conv' is read 2 times");
  EXPECT_EQ(
      declined(
          "input %x : fp32[1, 2, 4] input %w : fp32[3, 2, 1] %t = Conv(%x, %w) name \"conv\" " +
          norm(3)),
      "input 'W' of 'conv' is not a constant");
  EXPECT_EQ(declined("input %x : fp32[1, 2, 4] input %b : fp32[3] const %w : fp32[3, 2, 1] dense " +
                     values(6, 0.1) + " %t = Conv(%x, %w, %b) name \"conv\" " + norm(3)),
            "input 'B' of 'conv' is not a constant");
}

// One channel in fp16 with the given weight and scale; variance 1, no epsilon.
std::string half(const std::string& weight, const std::string& scale, const std::string& offset) {
  return "input %x16 : fp32[1, 1, 2] %x = Cast(%x16) {to = 10} const %w : fp16[1, 1, 1] dense [" +
         weight +
         "] const %zero : fp16[1] dense [0] const %one : fp16[1] dense [1] const %s : fp16[1] "
         "dense [" +
         scale + "] const %o : fp16[1] dense [" + offset +
         "] %t = Conv(%x, %w) name \"conv\" %y = BatchNormalization(%t, %s, %o, %zero, %one) "
         "{epsilon = 0.0} name \"bn\" output %y";
}

TEST(FoldBatchNormalization, DeclinesWhatHalfPrecisionCannotHold) {
  EXPECT_EQ(declined(half("1000", "100", "0")),
            "a folded weight of channel 0, 100000, leaves the range of fp16");
  // 2^-14 * 2^-14: below the smallest half, 2^-24.
  EXPECT_EQ(declined(half("0.00006103515625", "0.00006103515625", "0")),
            "a folded weight of channel 0, 3.72529e-09, becomes zero in fp16");
  // 0.003 * 2^-13 has a few digits left, 2^-10 * 2^-13 needs but one; beside a large weight, the
  // loss is that of any rounding.
  EXPECT_EQ(declined(half("0.003", "0.0001220703125", "0")),
            "a folded weight of channel 0, 3.66243e-07, loses digits in fp16");
  EXPECT_TRUE(run_passes(half("0.0009765625", "0.0001220703125", "0"), {kFold}).changed);
  EXPECT_TRUE(
      run_passes("input %x : fp32[1, 2, 4] const %w : fp32[3, 2, 1] dense [1, 1e-39, 1e-39, 1, 1, "
                 "1] %t = Conv(%x, %w) name \"conv\" " +
                     norm(3),
                 {kFold})
          .changed);
  EXPECT_TRUE(run_passes(half("0.5", "2", "1"), {kFold}).changed);
}

}  // namespace
}  // namespace tessera::passes
