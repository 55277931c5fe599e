#pragma once

// For the tests of this folder: operators of com.microsoft on values. What import would make of a
// node is carried out at once.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ops/kernel_util.h"
#include "ops/nn/nn_test_util.h"

namespace tessera::ops::contrib::testing {

using nn::testing::attributes;

// Elements ((7 i + 3 seed) mod 11 - 5) / 4, as the generator of the expected numbers has them.
inline Tensor pattern(Dims dims, std::int64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(numel(dims)));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>((static_cast<std::int64_t>(i) * 7 + seed * 3) % 11 - 5) / 4.0F;
  return nn::testing::floats(std::move(dims), values);
}

// The same as whole numbers, not divided, `offset` more.
template <typename T>
Tensor bytes(Dims dims, std::int64_t seed, int offset = 0) {
  std::vector<T> values(static_cast<std::size_t>(numel(dims)));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<T>((static_cast<std::int64_t>(i) * 7 + seed * 3) % 11 - 5 + offset);
  return Tensor::of<T>(dtype_of<T>(), std::move(dims), values);
}
inline Tensor unsigned_bytes(Dims dims, std::int64_t seed) {
  return bytes<std::uint8_t>(std::move(dims), seed, 20);
}
inline Tensor signed_bytes(Dims dims, std::int64_t seed) {
  return bytes<std::int8_t>(std::move(dims), seed);
}

template <typename T>
Tensor tensor(Dims dims, const std::vector<T>& values) {
  return Tensor::of<T>(dtype_of<T>(), std::move(dims), values);
}
inline Tensor number(float value) {
  return nn::testing::floats({}, {value});
}

// An omitted input is a Tensor().
inline Result<std::vector<Tensor>> run(std::string_view name, const Attributes& attrs,
                                       const std::vector<Tensor>& inputs,
                                       std::vector<bool> output_used = {true}) {
  const OpSchema* op = find_op("com.microsoft", name);
  TESSERA_CHECK(op != nullptr);
  if (op->upgrades.empty()) return run_reference(*op, attrs, inputs, output_used.size());
  nn::testing::EvaluatingBuilder builder(inputs);
  UpgradeNode node{std::string(name), attrs, {}, output_used.size(), output_used, std::nullopt};
  for (std::size_t i = 0; i < inputs.size(); ++i)
    node.inputs.push_back(inputs[i].is_defined() ? static_cast<Operand>(i) : kNoOperand);
  TESSERA_TRY(op->upgrades.front().apply(node, 1, builder));
  if (!builder.error.empty()) return fail(ErrorCode::kInternal, builder.error);
  for (std::size_t i = 0; i < output_used.size(); ++i)
    if (!output_used[i]) (*node.replacement)[i] = kNoOperand;
  return builder.tensors(*node.replacement);
}

inline std::string error_of(std::string_view name, const Attributes& attrs,
                            const std::vector<Tensor>& inputs,
                            std::vector<bool> output_used = {true}) {
  const auto result = run(name, attrs, inputs, std::move(output_used));
  return result ? std::string() : result.error().to_string();
}

inline void expect_reals(const Result<std::vector<Tensor>>& found, std::size_t output,
                         const std::vector<float>& expected, float tolerance = 1e-5F) {
  ASSERT_TRUE(found) << found.error().to_string();
  const auto values = nn::testing::to_vector((*found)[output]);
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i], expected[i], tolerance) << "element " << i << " of output " << output;
}

template <typename T>
void expect_whole(const Result<std::vector<Tensor>>& found, std::size_t output,
                  const std::vector<T>& expected) {
  ASSERT_TRUE(found) << found.error().to_string();
  const auto values = (*found)[output].template span<T>();
  EXPECT_EQ(std::vector<T>(values.begin(), values.end()), expected);
}

}  // namespace tessera::ops::contrib::testing
