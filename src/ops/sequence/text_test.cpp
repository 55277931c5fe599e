// Operators on strings, and the characters below them.

#include <gtest/gtest.h>

#include "ops/sequence/unicode.h"
#include "testing/op_testing.h"

namespace tessera::ops {
namespace {

using testing::infer_text;
using testing::op_error;
using testing::run_all;
using testing::run_op;
using testing::tensor;
using testing::typed;
using testing::values;

using Texts = std::vector<std::string>;

Tensor texts(std::initializer_list<std::string> elements) {
  return tensor<std::string>({static_cast<std::int64_t>(elements.size())}, elements);
}

TEST(Unicode, ReadsEveryText) {
  const auto taken = [](std::string_view text) {
    std::u32string characters;
    while (!text.empty()) characters += take_char(text);
    return characters;
  };
  EXPECT_EQ(taken("a\u00e9\u20ac\U0001f600"), U"a\u00e9\u20ac\U0001f600");
  // A cut character, an overlong form, a surrogate, a stray byte.
  EXPECT_EQ(taken("\xC3"), U"\uFFFD");
  EXPECT_EQ(taken("\xC0\x80"), U"\uFFFD\uFFFD");
  EXPECT_EQ(taken("\xED\xA0\x80"), U"\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(taken("\xFFz"), U"\uFFFDz");
}

TEST(Unicode, ChangesCase) {
  EXPECT_EQ(upper_text("straSSe \u00df\u00e9\u00ff\u0151\u03c9\u03c2\u0436\u0451\u10d0", "en_US"),
            "STRASSE SS\u00c9\u0178\u0150\u03a9\u03a3\u0416\u0401\u1c90");
  EXPECT_EQ(lower_text("Z\u00c9\u0178\u0150\u0416\u0401\u1e9e\u4e2d \u03a3\u0391\u03a3", "en_US"),
            "z\u00e9\u00ff\u0151\u0436\u0451\u00df\u4e2d \u03c3\u03b1\u03c2");
  EXPECT_EQ(lower_text("A\xFF Z", ""), "a\xFF z") << "damaged bytes stay";
  EXPECT_EQ(upper_text("i", "tr_TR"), "\u0130");
  EXPECT_EQ(upper_text("i", "no such locale"), "I");
}

TEST(StringConcat, BroadcastsLikeArithmetic) {
  EXPECT_EQ(values<std::string>(run_op("StringConcat", {texts({"a", "b"}), texts({"-"})})),
            (Texts{"a-", "b-"}));
  const Tensor column = tensor<std::string>({2, 1}, {"x", ""});
  EXPECT_EQ(values<std::string>(run_op("StringConcat", {column, texts({"1", "2"})})),
            (Texts{"x1", "x2", "1", "2"}));
  EXPECT_EQ(infer_text("StringConcat", {typed("string[n, 1]"), typed("string[3]")}),
            "string[n, 3]");
  EXPECT_EQ(infer_text("StringConcat", {typed("fp32[2]"), typed("fp32[2]")}),
            "input 'X': expected string, found fp32");
}

void expect_split(const Tensor& input, const testing::AttributeList& list, const Dims& dims,
                  const Texts& parts, const testing::Ints& counts) {
  const auto results = run_all("StringSplit", {input}, list, 2);
  EXPECT_EQ(results[0].dims(), dims);
  EXPECT_EQ(values<std::string>(results[0]), parts);
  EXPECT_EQ(results[1].dims(), input.dims());
  EXPECT_EQ(values<std::int64_t>(results[1]), counts);
}

TEST(StringSplit, SplitsAtDelimiters) {
  expect_split(texts({"a,b,,c", "d", ","}), {{"delimiter", ","}}, {3, 4},
               {"a", "b", "", "c", "d", "", "", "", "", "", "", ""}, {4, 1, 2});
  expect_split(texts({"a--b--c"}), {{"delimiter", "--"}, {"maxsplit", 1}}, {1, 2}, {"a", "b--c"},
               {2});
  expect_split(texts({"a,b"}), {{"delimiter", ","}, {"maxsplit", 0}}, {1, 1}, {"a,b"}, {1});
  expect_split(texts({""}), {{"delimiter", ","}}, {1, 0}, {}, {0});
  expect_split(texts({}), {{"delimiter", ","}}, {0, 0}, {}, {});
  expect_split(tensor<std::string>({}, {"a b"}), {{"delimiter", " "}}, {2}, {"a", "b"}, {2});
}

TEST(StringSplit, SplitsAtWhiteSpace) {
  expect_split(texts({"  a \t b\n", "", " \u3000"}), {}, {3, 2}, {"a", "b", "", "", "", ""},
               {2, 0, 0});
  expect_split(texts({" a  b  c "}), {{"maxsplit", 1}, {"delimiter", ""}}, {1, 2}, {"a", "b  c"},
               {2});
  expect_split(texts({" a b "}), {{"maxsplit", 0}}, {1, 1}, {"a b"}, {1});
  expect_split(texts({"a b c"}), {{"maxsplit", -3}}, {1, 3}, {"a", "b", "c"}, {3});
  EXPECT_EQ(infer_text("StringSplit", {typed("string[n]")}, {}, 2), "string[n, _0]; int64[n]");
}

TEST(StringNormalizer, DropsStopWordsAndChangesCase) {
  const Tensor days = texts({"Monday", "tuesday", "MONDAY"});
  const Texts stop{"monday"};
  EXPECT_EQ(values<std::string>(run_op("StringNormalizer", {days})),
            (Texts{"Monday", "tuesday", "MONDAY"}));
  EXPECT_EQ(values<std::string>(run_op("StringNormalizer", {days}, {{"stopwords", stop}})),
            (Texts{"tuesday"}));
  EXPECT_EQ(values<std::string>(run_op(
                "StringNormalizer", {days},
                {{"stopwords", stop}, {"is_case_sensitive", 1}, {"case_change_action", "UPPER"}})),
            (Texts{"MONDAY", "TUESDAY", "MONDAY"}));
  const Tensor none = run_op("StringNormalizer", {tensor<std::string>({1, 1}, {"Monday"})},
                             {{"stopwords", stop}, {"case_change_action", "LOWER"}});
  EXPECT_EQ(none.dims(), (Dims{1, 1}));
  EXPECT_EQ(values<std::string>(none), Texts{""});
}

TEST(StringNormalizer, RefusesOtherRanksAndActions) {
  EXPECT_EQ(op_error("StringNormalizer", {tensor<std::string>({2, 1}, {"a", "b"})}),
            "StringNormalizer: expected dims [C] or [1, C], found [2, 1]");
  EXPECT_EQ(infer_text("StringNormalizer", {typed("string[2, 1]")}),
            "input 'X': expected dims [C] or [1, C], found [2, 1]");
  EXPECT_EQ(infer_text("StringNormalizer", {typed("string[3]")}, {{"case_change_action", "x"}}),
            "attribute 'case_change_action': expected 'NONE', 'LOWER' or 'UPPER', found 'x'");
  EXPECT_EQ(infer_text("StringNormalizer", {typed("string[1, 3]")}), "string[1, 3]");
  EXPECT_EQ(infer_text("StringNormalizer", {typed("string[n]")}), "string[_0]");
  EXPECT_EQ(infer_text("StringNormalizer", {typed("string[3]")}, {{"stopwords", Texts{"a"}}}),
            "string[_0]");
}

}  // namespace
}  // namespace tessera::ops
