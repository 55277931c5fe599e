// The regular expressions of RegexFullMatch.

#include "ops/sequence/regex.h"

#include <gtest/gtest.h>

#include "testing/op_testing.h"

namespace tessera::ops {
namespace {

bool matches(std::string_view pattern, std::string_view text) {
  const auto regex = Regex::compile(pattern);
  if (regex) return regex->full_match(text);
  ADD_FAILURE() << pattern << ": " << regex.error().to_string();
  return false;
}

std::string error_of(std::string_view pattern) {
  const auto regex = Regex::compile(pattern);
  return regex ? "no error" : regex.error().to_string();
}

struct Example {
  std::string_view pattern;
  std::vector<std::string_view> yes;
  std::vector<std::string_view> no;
};

void check(const std::vector<Example>& examples) {
  for (const Example& example : examples) {
    for (const auto text : example.yes)
      EXPECT_TRUE(matches(example.pattern, text)) << example.pattern << " on " << text;
    for (const auto text : example.no)
      EXPECT_FALSE(matches(example.pattern, text)) << example.pattern << " on " << text;
  }
}

TEST(Regex, MatchesTheWholeText) {
  check({{"", {""}, {"a"}},
         {"abc", {"abc"}, {"abcd", "xabc", "ab", ""}},
         {"[a-z]+[0-9]*", {"abc", "abc12"}, {"12", "abc12x", ""}},
         {"a|bc|", {"a", "bc", ""}, {"b", "abc"}},
         {"(ab|a)(bc)?", {"a", "ab", "abc", "abbc"}, {"b", "abcc"}},
         {"\xC3\xA9.", {"\xC3\xA9\xE2\x82\xAC"}, {"\xC3\xA9", "\xC3\xA9xy"}}});
}

TEST(Regex, Repeats) {
  check({{"a*", {"", "aaa"}, {"b"}},
         {"a+?", {"a", "aa"}, {""}},
         {"(?:ab){2}", {"abab"}, {"ab", "ababab"}},
         {"a{2,}", {"aa", "aaaaa"}, {"a"}},
         {"a{0,2}b", {"b", "ab", "aab"}, {"aaab"}},
         {"a{0}", {""}, {"a"}},
         {"a{,2}", {"a{,2}"}, {"aa"}},
         {"x{", {"x{"}, {"x"}},
         {"(a*)*b", {"b", "aaab"}, {"aaa"}},
         {"(|a)+", {"", "aa"}, {"b"}},
         {"(a{1,3}){2}", {"aa", "aaaaaa"}, {"a", "aaaaaaa"}}});
}

TEST(Regex, KnowsClassesAndEscapes) {
  check({{"[^a-c]", {"d", "\n", "\xC3\xA9"}, {"a", "de"}},
         {"[]a]+", {"]a"}, {"b"}},
         {"[a\\-z-]+", {"a-z"}, {"b"}},
         {"[[:alpha:][:^digit:]_]+", {"aZ_ "}, {"1"}},
         {"\\d\\D\\w\\W\\s\\S", {"1x_- y"}, {"1x_- "}},
         {"[\\d.]+", {"3.14"}, {"3,14"}},
         {"\\.\\*\\[\\_", {".*[_"}, {"a*[_"}},
         {"\\x41\\x{20AC}\\101\\n\\t",
          {"A\xE2\x82\xAC"
           "A\n\t"},
          {"A"}},
         {"\\Qa.b*\\E*", {"a.b", "a.b**"}, {"axb*"}},
         {"\\s", {" ", "\f"}, {"\v", "\xC2\xA0"}}});
}

TEST(Regex, KnowsFlagsAndAssertions) {
  check({{"(?i)stra\\x{E9}[k-l]", {"STRA\xC3\x89K"}, {"STRAEK"}},
         {"a(?i:b)c", {"aBc"}, {"aBC"}},
         {"(a(?i)b)c", {"aBc"}, {"aBC", "Abc"}},
         {"a.b", {"axb"}, {"a\nb"}},
         {"(?s)a.b", {"a\nb"}, {}},
         {"^a$", {"a"}, {"a\n"}},
         {"a\n^b", {}, {"a\nb"}},
         {"(?m)a$\n^b", {"a\nb"}, {}},
         {"(?s-s:.)", {"a"}, {"\n"}},
         {"\\Aa\\z", {"a"}, {"ab"}},
         {"a\\b.c", {"a c"}, {"abc"}},
         {"a\\Bb", {"ab"}, {}},
         {"(?P<word>a)(?<other>b)", {"ab"}, {}}});
}

TEST(Regex, SaysWhatIsWrong) {
  EXPECT_EQ(error_of("a)"), "behind character 1: expected the end, found ')'");
  EXPECT_EQ(error_of("(a"), "behind character 2: expected ')', found the end");
  EXPECT_EQ(error_of("[a"), "behind character 2: expected ']', found the end");
  EXPECT_EQ(error_of("*a"),
            "behind character 1: expected something to repeat before the repetition operator");
  EXPECT_EQ(error_of("a**"), "behind character 3: expected one repetition operator, found two");
  EXPECT_EQ(error_of("a{1001}"),
            "behind character 7: expected repetitions from 0 to 1000, least and most in order");
  EXPECT_EQ(error_of("a{3,2}"),
            "behind character 6: expected repetitions from 0 to 1000, least and most in order");
  EXPECT_EQ(error_of("[z-a]"), "behind character 4: the range 'z-a' runs backwards");
  EXPECT_EQ(error_of("[[:word1:]]"),
            "behind character 8: expected a class such as [:alpha:], found [:word1:]");
  EXPECT_EQ(error_of("a\\"), "behind character 2: expected a character after '\\', found the end");
  EXPECT_EQ(error_of("(a)\\1"), "behind character 5: back references are not part of RE2's syntax");
  EXPECT_EQ(error_of("(?=a)"), "behind character 1: look-around is not part of RE2's syntax");
  EXPECT_EQ(error_of("(?x)a"), "behind character 3: expected flags among i, m, s and U, found 'x'");
  EXPECT_EQ(error_of("(?i"),
            "behind character 3: expected flags among i, m, s and U, then ':' or ')'");
  EXPECT_EQ(error_of("(?P<1-a>b)"), "behind character 6: expected a group name, found '-'");
  EXPECT_EQ(error_of("(?<>b)"), "behind character 3: expected a group name and '>'");
  EXPECT_EQ(error_of("\\pL"), "behind character 2: Unicode classes (\\p) are not supported");
  EXPECT_EQ(error_of("\\y"), "behind character 2: the escape '\\y' is not known or not supported");
  EXPECT_EQ(error_of("\\x{110000}"),
            "behind character 10: expected a character code after '\\x': two digits, or digits in "
            "braces");
  EXPECT_EQ(error_of("\xFF"), "expected a pattern in UTF-8");
}

TEST(Regex, IsBounded) {
  EXPECT_EQ(error_of(std::string(300, '(') + std::string(300, ')')),
            "behind character 251: expected groups of at most 250 levels, found more");
  EXPECT_EQ(error_of("((a{1000}){1000}){1000}"),
            "expected a pattern of at most 65536 states, found more");
  EXPECT_EQ(error_of(std::string(70000, 'a')),
            "expected a pattern of at most 65536 states, found more");
  // What makes a backtracking matcher run for ever.
  EXPECT_FALSE(matches("(a*)*(a|aa)+b", std::string(20000, 'a')));
  EXPECT_TRUE(matches("(?:a?){30}a{30}", std::string(30, 'a')));
}

TEST(RegexFullMatch, JudgesEachElement) {
  const Tensor texts = testing::tensor<std::string>({2, 2}, {"abc1", "ABC", "", "x9y"});
  const Tensor result = testing::run_op("RegexFullMatch", {texts}, {{"pattern", "[a-z]+[0-9]*"}});
  EXPECT_EQ(result.dims(), (Dims{2, 2}));
  EXPECT_EQ(testing::values<bool>(result), (std::vector<bool>{true, false, false, false}));
  EXPECT_EQ(
      testing::infer_text("RegexFullMatch", {testing::typed("string[n]")}, {{"pattern", "a"}}),
      "bool[n]");
  EXPECT_EQ(
      testing::infer_text("RegexFullMatch", {testing::typed("string[n]")}, {{"pattern", "(a"}}),
      "attribute 'pattern': behind character 2: expected ')', found the end");
}

}  // namespace
}  // namespace tessera::ops
