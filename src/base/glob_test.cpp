#include "base/glob.h"

#include <gtest/gtest.h>

#include <string>

namespace tessera {
namespace {

TEST(Glob, MatchesTheWholeText) {
  EXPECT_TRUE(glob_matches("*", ""));
  EXPECT_TRUE(glob_matches("*", "anything/at.all"));
  EXPECT_TRUE(glob_matches("conv?", "conv1"));
  EXPECT_FALSE(glob_matches("conv?", "conv"));
  EXPECT_FALSE(glob_matches("conv?", "conv12"));
  EXPECT_TRUE(glob_matches("*/attn/*", "layer0/attn/q"));
  EXPECT_TRUE(glob_matches("a*b*c", "aXbXbXc"));
  EXPECT_FALSE(glob_matches("a*b*c", "aXbXbX"));
  EXPECT_TRUE(glob_matches("a**", "a"));
  EXPECT_FALSE(glob_matches("", "a"));
  EXPECT_TRUE(glob_matches("", ""));
  EXPECT_FALSE(glob_matches("abc", "ab"));
  EXPECT_FALSE(glob_matches("[a]", "a"));  // no classes
}

// Backing up at every star would take longer than anybody waits.
TEST(Glob, ManyStarsTakeNoTime) {
  std::string glob;
  for (int i = 0; i < 40; ++i) glob += "*a";
  EXPECT_FALSE(glob_matches(glob + "*b", std::string(2000, 'a')));
  EXPECT_TRUE(glob_matches(glob + "*", std::string(2000, 'a')));
}

}  // namespace
}  // namespace tessera
