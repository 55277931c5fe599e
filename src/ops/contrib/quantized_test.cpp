// 8-bit and 4-bit operators of com.microsoft, against numbers of ONNX Runtime 1.32.

#include "ops/contrib/contrib_case_test.h"

namespace tessera::ops {
namespace {

using namespace contrib::testing;

Tensor byte(int value) {
  return tensor<std::uint8_t>({}, {static_cast<std::uint8_t>(value)});
}
Tensor signed_byte(int value) {
  return tensor<std::int8_t>({}, {static_cast<std::int8_t>(value)});
}

TEST(MatMulIntegerToFloat, ScalesColumnsAndAddsABias) {
  expect_reals(run("MatMulIntegerToFloat", {},
                   {unsigned_bytes({2, 3}, 1), signed_bytes({3, 2}, 2), number(0.5F),
                    tensor<float>({2}, {0.25F, 0.125F}), byte(19),
                    tensor<std::int8_t>({2}, {1, -1}), pattern({2}, 4)}),
               0, {0, 1.75F, 0.25F, 1.5625F});
}

TEST(DynamicQuantizeMatMul, QuantizesItsInput) {
  expect_reals(run("DynamicQuantizeMatMul", {},
                   {pattern({2, 3}, 1), signed_bytes({3, 2}, 2), number(0.25F)}),
               0, {0.8705883F, 0.5647059F, 0.8078432F, 0.5647059F});
}

TEST(QGemm, GivesBytesOrReals) {
  std::vector<Tensor> inputs = {unsigned_bytes({2, 3}, 1),
                                number(0.5F),
                                byte(19),
                                signed_bytes({3, 2}, 2),
                                number(0.25F),
                                signed_byte(1),
                                tensor<std::int32_t>({2}, {3, -4}),
                                number(0.5F),
                                byte(100)};
  expect_whole<std::uint8_t>(run("QGemm", {}, inputs), 0, {103, 100, 103, 100});
  inputs.resize(7);
  const auto reals = run("QGemm", {}, inputs);
  ASSERT_TRUE(reals);
  EXPECT_EQ(reals->front().dtype(), DType::kFp32);
}

TEST(QLinear, ComputesOnRealsAndQuantizes) {
  expect_whole<std::uint8_t>(
      run("QLinearAdd", {},
          {unsigned_bytes({2, 3}, 1), number(0.5F), byte(19), unsigned_bytes({3}, 2), number(0.25F),
           byte(18), number(0.375F), byte(100)}),
      0, {101, 107, 107, 99, 106, 105});
  expect_whole<std::int8_t>(run("QLinearSigmoid", {},
                                {signed_bytes({2, 3}, 1), number(0.5F), signed_byte(1),
                                 number(1.0F / 256), signed_byte(-128)}),
                            0, {-81, 97, 0, -97, 81, -31});
  expect_whole<std::uint8_t>(
      run("QLinearAveragePool", attributes({{"kernel_shape", std::vector<std::int64_t>{2, 2}}}),
          {unsigned_bytes({1, 1, 3, 3}, 1), number(0.5F), byte(19), number(0.25F), byte(100)}),
      0, {104, 107, 102, 105});
  const std::vector<Tensor> pieces = {number(0.5F),  byte(10), unsigned_bytes({1, 2}, 1),
                                      number(0.25F), byte(18), unsigned_bytes({1, 1}, 2),
                                      number(0.5F),  byte(20)};
  const Attributes axis = attributes({{"axis", 1}});
  expect_whole<std::uint8_t>(run("QLinearConcat", axis, pieces), 0, {10, 14, 11});
  EXPECT_EQ(error_of("QLinearConcat", axis, {pieces.begin(), pieces.end() - 1}),
            "expected 2 inputs and 3 for each operand, found 7");
}

TEST(QLinear, HasOneScaleAndZeroPointForEachTensor) {
  const Tensor three = tensor<float>({3}, {1, 2, 3});
  const auto error = [&](const Tensor& a_scale, const Tensor& c_zero) {
    return error_of("QLinearMul", {},
                    {unsigned_bytes({2, 3}, 1), a_scale, byte(19), unsigned_bytes({3}, 2),
                     number(0.25F), byte(18), number(0.375F), c_zero});
  };
  EXPECT_EQ(error(three, byte(1)), "input 'A_scale': expected one element, found [3]");
  EXPECT_EQ(error(number(1), unsigned_bytes({1, 1}, 3)),
            "input 'C_zero_point': expected one element, found [1, 1]");
}

TEST(ContribQuantizeLinear, TakesSeveralScalesOnlyWithAnAxis) {
  EXPECT_EQ(error_of("QuantizeLinear", {}, {pattern({2, 2}, 1), pattern({2}, 1)}),
            "input 'y_scale': expected one element without the attribute 'axis', found [2]");
  expect_reals(run("DequantizeLinear", {}, {unsigned_bytes({2}, 1), number(0.5F), byte(20)}), 0,
               {-1, 2.5F});
}

// 16 columns in one block, two rows; zero points 7 and 9.
std::vector<Tensor> packed_inputs() {
  return {pattern({1, 16}, 1), unsigned_bytes({2, 1, 8}, 3), tensor<float>({2, 1}, {0.5F, 0.25F}),
          tensor<std::uint8_t>({2}, {7, 9})};
}
Attributes packed_attributes() {
  return attributes({{"K", 16}, {"N", 2}, {"bits", 4}, {"block_size", 16}});
}

TEST(MatMulNBits, ReadsPackedBlocks) {
  expect_reals(run("MatMulNBits", packed_attributes(), packed_inputs()), 0, {-2.375F, -3.8125F});
}

TEST(MatMulNBits, RefusesWhatItDoesNotDo) {
  const auto with = [](const char* name, std::int64_t value) {
    Attributes attrs = packed_attributes();
    attrs.set(name, value);
    return error_of("MatMulNBits", attrs, packed_inputs());
  };
  EXPECT_EQ(with("bits", 3), "attribute 'bits': expected 2, 4 or 8, found 3");
  EXPECT_EQ(with("block_size", 24),
            "attribute 'block_size': expected a power of 2 from 16 on, found 24");
  EXPECT_EQ(with("K", 0), "attribute 'K': expected 1 or more, found 0");
  EXPECT_EQ(with("weight_prepacked", 1), "attribute 'weight_prepacked': expected 0, found 1");
  EXPECT_EQ(with("N", 3), "input 'B': expected 24 bytes for [3, 16] of uint4, found 16");
  std::vector<Tensor> inputs = packed_inputs();
  inputs[3] = tensor<std::uint8_t>({3}, {7, 9, 9});
  EXPECT_EQ(error_of("MatMulNBits", packed_attributes(), inputs),
            "input 'zero_points': expected 1 bytes for each of 2 rows, found 3 for all");
  inputs = packed_inputs();
  inputs.push_back(tensor<std::int32_t>({16}, std::vector<std::int32_t>(16, 0)));
  EXPECT_EQ(error_of("MatMulNBits", packed_attributes(), inputs),
            "input 'g_idx': expected none (it is deprecated), found one");
}

TEST(GatherBlockQuantized, RefusesOtherAxes) {
  const std::vector<Tensor> inputs = {unsigned_bytes({3, 8}, 1), tensor<std::int64_t>({1}, {2}),
                                      pattern({3, 1}, 1)};
  EXPECT_EQ(error_of("GatherBlockQuantized", attributes({{"block_size", 16}, {"gather_axis", 1}}),
                     inputs),
            "input 'data': expected rank 2, gathered along axis 0 and quantised along axis 1, "
            "found rank 2, axes 1 and 1");
}

std::vector<Tensor> lstm_inputs() {
  const Tensor scale = tensor<float>({1}, {0.125F});
  const Tensor zero = tensor<std::int8_t>({1}, {0});
  return {pattern({2, 1, 3}, 1),
          signed_bytes({1, 3, 8}, 1),
          signed_bytes({1, 2, 8}, 2),
          pattern({1, 16}, 3),
          Tensor(),
          Tensor(),
          Tensor(),
          Tensor(),
          scale,
          zero,
          scale,
          zero};
}

TEST(DynamicQuantizeLstm, QuantizesInputsAndStates) {
  const auto found = run("DynamicQuantizeLSTM", attributes({{"hidden_size", 2}}), lstm_inputs(),
                         {true, true, true});
  expect_reals(found, 0, {0.1158001F, -0.03578671F, 0.1390034F, -0.1358006F});
  expect_reals(found, 1, {0.1390034F, -0.1358006F});
  expect_reals(found, 2, {1.098943F, -0.160081F});
}

TEST(DynamicQuantizeLstm, ChecksItsOperands) {
  const auto with = [](std::size_t index, Tensor tensor) {
    std::vector<Tensor> inputs = lstm_inputs();
    inputs[index] = std::move(tensor);
    return error_of("DynamicQuantizeLSTM", {}, inputs);
  };
  EXPECT_EQ(with(0, pattern({2, 1, 4}, 1)),
            "DynamicQuantizeLSTM: size 1 of input 'W': expected 4 (as 'X' has), found 3");
  EXPECT_EQ(with(1, signed_bytes({2, 3, 8}, 1)),
            "DynamicQuantizeLSTM: first size of input 'W': expected 1 (directions), found 2");
  EXPECT_EQ(with(8, pattern({3}, 1)),
            "DynamicQuantizeLSTM: input 'W_scale': expected 1 or 8 elements, found 3");
  EXPECT_EQ(with(4, tensor<std::int32_t>({1}, {3})),
            "DynamicQuantizeLSTM: input 'sequence_lens': expected values from 0 to 2, found 3");
  EXPECT_EQ(with(5, pattern({1, 1, 3}, 1)),
            "DynamicQuantizeLSTM: input 'initial_h': expected 2 elements, found 3");
}

}  // namespace
}  // namespace tessera::ops
