#include "import/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tessera::importer {
namespace {

using Use = ImportBudget::Use;

TEST(ImportBudget, HoldsTwentyTimesTheModelAndABase) {
  ImportBudget budget(1000);
  const std::uint64_t all = 20'000 + (std::uint64_t{40} << 20);  // less what the process takes
  EXPECT_TRUE(budget.take(Use::kNodes, all - 1));
  EXPECT_TRUE(budget.require(Use::kNodes, 1));
  EXPECT_TRUE(budget.take(Use::kNodes, 1));
  EXPECT_FALSE(budget.require(Use::kNodes, 1));
  EXPECT_FALSE(budget.take(Use::kNodes, 1));
}

TEST(ImportBudget, SaysWhatTookMost) {
  ImportBudget budget(1000);
  budget.name_messages("NodeProto messages");
  ASSERT_TRUE(budget.take(Use::kMessages, 10'000'000, 5000));
  ASSERT_TRUE(budget.take(Use::kNodes, 20'000'000, 7000));
  const Status taken = budget.take(Use::kElements, 25'000'000, 25'000'000);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(taken.error().message,
            "importing takes more than 67128864 bytes of memory, the limit for a model of 1000 "
            "bytes (20 times its size and 64 MiB): 25000000 bytes of constants take most of it");
  ImportBudget messages(1);
  messages.name_messages("NodeProto messages");
  EXPECT_EQ(messages.take(Use::kMessages, 100'000'000, 5000).error().message,
            "importing takes more than 67108884 bytes of memory, the limit for a model of 1 bytes "
            "(20 times its size and 64 MiB): 5000 NodeProto messages take most of it");
}

TEST(ImportBudget, EveryUseHasAName) {
  const std::vector<std::string> names = {
      "messages", "nodes",           "bytes of constants", "constants",     "values",
      "sizes",    "local functions", "operators",          "opset imports", "entries of metadata"};
  ASSERT_EQ(names.size(), static_cast<std::size_t>(Use::kCount));
  for (std::size_t use = 0; use < names.size(); ++use) {
    ImportBudget budget(1);
    EXPECT_THAT(budget.take(static_cast<Use>(use), 100'000'000, 5).error().message,
                ::testing::EndsWith("MiB): 5 " + names[use] + " take most of it"));
  }
}

}  // namespace
}  // namespace tessera::importer
