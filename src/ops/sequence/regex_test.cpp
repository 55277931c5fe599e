// RegexFullMatch.

#include <gtest/gtest.h>

#include "testing/op_testing.h"

namespace tessera::ops {
namespace {

using testing::infer_text;
using testing::run_op;
using testing::tensor;
using testing::typed;
using testing::values;

bool matches(const std::string& pattern, const std::string& text) {
  const Tensor texts = tensor<std::string>({1}, {text});
  return values<bool>(run_op("RegexFullMatch", {texts}, {{"pattern", pattern}})).front();
}

std::string error_of(const std::string& pattern) {
  return infer_text("RegexFullMatch", {typed("string[n]")}, {{"pattern", pattern}});
}

TEST(RegexFullMatch, JudgesEachElement) {
  const Tensor texts = tensor<std::string>({2, 2}, {"abc1", "ABC", "", "x9y"});
  const Tensor result = run_op("RegexFullMatch", {texts}, {{"pattern", "[a-z]+[0-9]*"}});
  EXPECT_EQ(result.dims(), (Dims{2, 2}));
  EXPECT_EQ(values<bool>(result), (std::vector<bool>{true, false, false, false}));
  EXPECT_EQ(error_of("a"), "bool[n]");
}

TEST(RegexFullMatch, IsAsRe2HasIt) {
  EXPECT_TRUE(matches("", ""));
  EXPECT_FALSE(matches("a|ab", "abc"));
  EXPECT_TRUE(matches("\u00e9.", "\u00e9\u20ac")) << "a dot is a character, not a byte";
  EXPECT_TRUE(matches("\\p{Greek}+\\pL", "\u03b1\u03b2x"));
  EXPECT_TRUE(matches("(?i)stra\u00e9", "STRA\u00c9"));
  EXPECT_FALSE(matches("a.b", "a\nb"));
  EXPECT_TRUE(matches("(?s)a.b", "a\nb"));
  EXPECT_FALSE(matches(".", "\xFF")) << "what is no character matches nothing";
  // What makes a backtracking matcher run for ever.
  EXPECT_FALSE(matches("(a*)*(a|aa)+b", std::string(20000, 'a')));
}

TEST(RegexFullMatch, SaysWhatIsWrongWithThePattern) {
  const std::string start = "attribute 'pattern': expected a regular expression of RE2, found ";
  EXPECT_EQ(error_of("(a"), start + "'(a': missing ): (a");
  EXPECT_EQ(error_of("(a)\\1"), start + "'(a)\\1': invalid escape sequence: \\1");
  EXPECT_EQ(error_of("((a{1000}){1000}){1000}"),
            start + "'((a{1000}){1000}){1000}': invalid repetition size: {1000}");
}

}  // namespace
}  // namespace tessera::ops
