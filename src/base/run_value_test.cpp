#include "base/run_value.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/string_tensor.h"

namespace tessera {
namespace {

RunValue floats(const Dims& dims) {
  return RunValue::of(*Tensor::zeros(DType::kFp32, dims));
}

TEST(RunValue, SaysWhatDoesNotMatchAType) {
  const auto mismatch = [](std::string_view type, const RunValue& value) {
    return type_mismatch(*parse_value_type(type), value);
  };
  EXPECT_EQ(mismatch("fp32[n, 2]", floats({5, 2})), "");
  EXPECT_EQ(mismatch("fp32[?]", floats({5, 2})), "");
  EXPECT_EQ(mismatch("fp32[n, 2]", floats({5, 3})), "expected fp32[n, 2], found fp32[5, 3]");
  EXPECT_EQ(mismatch("int64[n]", floats({5})), "expected int64[n], found fp32[5]");
  EXPECT_EQ(mismatch("fp32[n]", RunValue::sequence({})), "expected fp32[n], found a sequence");
  EXPECT_EQ(mismatch("seq(fp32[2])", RunValue::optional({})),
            "expected seq(fp32[2]), found an optional");
  EXPECT_EQ(mismatch("seq(fp32[n])", RunValue::sequence({})), "");
  EXPECT_EQ(mismatch("seq(fp32[2])", RunValue::sequence({floats({2}), floats({3})})),
            "element 1: expected fp32[2], found fp32[3]");
  const RunValue map = RunValue::map(
      Tensor::of<std::string>(DType::kString, {2}, std::vector<std::string>{"a", "b"}),
      floats({2}).tensor);
  EXPECT_EQ(mismatch("map(string, fp32)", map), "");
  EXPECT_EQ(mismatch("map(int64, fp32)", map),
            "expected map(int64, fp32), found map(string, fp32)");
  EXPECT_EQ(mismatch("map(string, fp64)", map),
            "expected map(string, fp64), found map(string, fp32)");
  EXPECT_EQ(mismatch("seq(map(string, fp32))", RunValue::sequence({map, floats({2})})),
            "element 1: expected map(string, fp32), found fp32[2]");
  EXPECT_EQ(mismatch("fp32[2]", map), "expected fp32[2], found map(string, fp32)");
}

TEST(StringTensor, SurvivesAsBytes) {
  const std::vector<std::string> texts = {"", "one", std::string("a\0b", 3), "\xc3\xa9"};
  const Tensor strings = Tensor::of<std::string>(DType::kString, {2, 2}, texts);
  const Tensor bytes = encode_strings(strings.view());
  const std::span<const std::byte> raw(static_cast<const std::byte*>(bytes.data()),
                                       static_cast<std::size_t>(bytes.nbytes()));
  const auto back = decode_strings(raw, {2, 2});
  ASSERT_TRUE(back);
  EXPECT_TRUE(std::ranges::equal(back->span<std::string>(), texts));
  const std::string damaged = "the lengths of the strings do not add up to their bytes";
  EXPECT_EQ(decode_strings(raw, {2, 3}).error().message, damaged);
  EXPECT_EQ(decode_strings(raw.first(raw.size() - 1), {2, 2}).error().message, damaged);
  EXPECT_EQ(decode_strings({}, {1}).error().message, damaged);
}

}  // namespace
}  // namespace tessera
