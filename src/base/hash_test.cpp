#include "base/hash.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(HashTest, KnownValues) {
  // The value that XXH3_128bits has for no bytes, from the test vectors of its specification.
  EXPECT_EQ(hash_bytes("", 0).to_string(), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ((ContentHash{0x0123456789abcdefU, 0xfU}.to_string()),
            "0123456789abcdef000000000000000f");
}

TEST(HashTest, PiecesAreDelimited) {
  const auto two = [](std::string_view a, std::string_view b) {
    return Hasher().add(a).add(b).finish();
  };
  EXPECT_EQ(two("ab", "c"), two("ab", "c"));
  EXPECT_NE(two("ab", "c"), two("a", "bc"));
  EXPECT_NE(two("", "a"), two("a", ""));
  EXPECT_NE(Hasher().add("a").finish(), Hasher().add_bytes("a", 1).finish());
  EXPECT_NE(Hasher().add(std::int64_t{1}).finish(), Hasher().add(std::int64_t{2}).finish());
  EXPECT_NE(Hasher().finish(), Hasher().add("").finish());
}

TEST(HashTest, FinishDoesNotEndTheHasher) {
  Hasher hasher;
  hasher.add("a");
  const ContentHash first = hasher.finish();
  EXPECT_EQ(hasher.finish(), first);
  EXPECT_NE(hasher.add("b").finish(), first);
}

}  // namespace
}  // namespace tessera
