#include "base/shown_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace tessera {
namespace {

using std::string_literals::operator""s;
using ::testing::EndsWith;
using ::testing::StartsWith;

TEST(ShownText, ControlCharactersAreEscaped) {
  EXPECT_EQ(shown("a\nb\x1b[31m\0\x7f"s), "a\\x0ab\\x1b[31m\\x00\\x7f");
  EXPECT_EQ(shown("\xc2\x9b"), "\\xc2\\x9b") << "a control character beyond ASCII";
}

TEST(ShownText, BytesThatAreNotUtf8AreEscaped) {
  EXPECT_EQ(shown("Gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80"), "Gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80");
  EXPECT_EQ(shown("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(shown("\xe0\x80\x80"), "\\xe0\\x80\\x80") << "overlong";
  EXPECT_EQ(shown("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(shown("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond the last character";
}

TEST(ShownText, LongListsKeepTheirFirstItems) {
  std::string list = "0";
  for (int i = 1; i < 1000; ++i) list += ", " + std::to_string(i);
  const std::string first = "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15";
  EXPECT_EQ(
      shown("declared fp32[" + list + "], inferred fp32[" + list + "]"),
      "declared fp32[" + first + ", ... (984 more)], inferred fp32[" + first + ", ... (984 more)]");
  EXPECT_EQ(shown("[" + first + "], [[1, 2], []"), "[" + first + "], [[1, 2], []");
  EXPECT_THAT(shown("an open [" + list), StartsWith("an open [0, 1, 2"));
}

TEST(ShownText, LongWordsKeepTheirEnds) {
  const std::string name = "begin" + std::string(1000, '-') + "end";
  EXPECT_THAT(shown("node '" + name + "' is wrong"), StartsWith("node 'begin---"));
  EXPECT_THAT(shown("node '" + name + "' is wrong"), EndsWith("---end' is wrong"));
  EXPECT_EQ(shown(std::string(1000, 'x')),
            std::string(133, 'x') + "...(734 more)..." + std::string(133, 'x'));
  std::string umlauts;
  for (int i = 0; i < 500; ++i) umlauts += "\xc3\xbc";
  EXPECT_EQ(shown(umlauts).find('\\'), std::string::npos);
}

TEST(ShownText, LongTextsKeepTheirEnds) {
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += "word ";
  EXPECT_LT(shown(text).size(), 6000U);
  EXPECT_THAT(shown(text + "end"), EndsWith("word end"));
}

TEST(ShownText, ErrorsShowAllTheirPartsSo) {
  const Error error = in_context(
      in_context(Error{ErrorCode::kInternal, "value 'a\nb'", {}}, "node '\x1b[2J'"), "m\xff.onnx");
  EXPECT_EQ(error.to_string(), "m\\xff.onnx: node '\\x1b[2J': value 'a\\x0ab'");
  EXPECT_EQ((Error{ErrorCode::kInternal, "two:\n  a\x1b\n  b", {}}.to_string()),
            "two:\n  a\\x1b\n  b");
}

}  // namespace
}  // namespace tessera
