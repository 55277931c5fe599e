#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/random.h"
#include "testing/shared_data.h"
#include "testing/temp_dir.h"

namespace tessera::testing {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::Le;

TEST(TempDir, IsRemovedWithWhatIsInIt) {
  std::filesystem::path file;
  {
    const TempDir folder;
    file = folder.write("deep/name.txt", std::string_view("a\0b", 3));
    EXPECT_EQ(read_bytes(file), std::string("a\0b", 3));
  }
  EXPECT_FALSE(std::filesystem::exists(file.parent_path().parent_path()));
}

TEST(TempDir, TwoAreDifferent) {
  const TempDir one;
  const TempDir two;
  EXPECT_NE(one.path(), two.path());
}

TEST(Random, GivesTheReferenceNumbers) {
  Random random(1234567);  // the first outputs of SplitMix64 for this seed, from its authors' code
  EXPECT_EQ(random.bits(), 6457827717110365317U);
  EXPECT_EQ(random.bits(), 3203168211198807973U);
}

TEST(Random, IntegersReachBothEndsAndNoFurther) {
  Random random(7);
  std::set<std::int64_t> seen;
  for (int i = 0; i < 200; ++i) {
    const std::int64_t value = random.integer(-2, 2);
    EXPECT_THAT(value, AllOf(Ge(-2), Le(2)));
    seen.insert(value);
  }
  EXPECT_EQ(seen.size(), 5U);
}

TEST(Random, RealsLieInTheirRange) {
  Random random(9);
  for (const float value : random.floats(1000, 2, 3)) EXPECT_THAT(value, AllOf(Ge(2.0F), Le(3.0F)));
}

TEST(Seeds, TheEnvironmentChoosesOne) {
  ::setenv("TESSERA_SEED", "42", 1);
  EXPECT_EQ(seeds(1000), std::vector<std::uint64_t>{42});
  ::unsetenv("TESSERA_SEED");
  EXPECT_EQ(seeds(3), (std::vector<std::uint64_t>{0, 1, 2}));
}

TEST(SharedData, TheEnvironmentChoosesTheFolder) {
  const TempDir folder;
  folder.write("models/tiny/model.onnx", "x");
  const char* before = std::getenv("TESSERA_SHARED");
  const std::string saved = before != nullptr ? before : "";
  ::setenv("TESSERA_SHARED", folder.path().c_str(), 1);
  EXPECT_EQ(first_existing(model_places("tiny")), folder.path() / "models/tiny/model.onnx");
  EXPECT_TRUE(first_existing(model_places("missing_model")).empty());
  if (before != nullptr) {
    ::setenv("TESSERA_SHARED", saved.c_str(), 1);
  } else {
    ::unsetenv("TESSERA_SHARED");
  }
}

}  // namespace
}  // namespace tessera::testing
