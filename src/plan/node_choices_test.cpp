#include "plan/node_choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/plan_testing_test.h"

namespace tessera::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// A chain a -> b -> c where b also reads %y, with covers {a, b} and {a, b, c}.
struct Chain : Stages {
  Chain()
      : Stages(R"(input %x : fp32[1, 8, 2, 2] input %y : fp32[1, 8, 2, 2]
                  %a = Relu(%x) name "a" %b = Add(%a, %y) name "b" %c = Relu(%b) name "c" output %c)") {
    cover({"a", "b"});
    cover({"a", "b", "c"});
  }
  NodeChoices list() {
    const Status enumerated = enumerate();
    EXPECT_TRUE(enumerated) << enumerated.error().to_string();
    return list_node_choices(graph(), choices, target());
  }
};

TEST(NodeChoices, CoversThatBeginAlikeShareTheirBeginning) {
  Chain stages;
  auto& cpu = stages.devices.add("cpu");
  for (const char* node : {"a", "b", "c"}) cpu.offer(node, 10, {kPlain}, kPlain);
  cpu.offer("cover0", 2, {kPlain, kPlain}, kPlain);
  cpu.offer("cover1", 3, {kPlain, kPlain}, kPlain);
  cpu.offer("cover1", 4, {kPlain, kPlain}, kLast);
  const NodeChoices list = stages.list();
  // Alone; the start of all covers.
  EXPECT_EQ(list.nodes[0].size(), 2U);
  // Alone; the end of the short cover; the middle of the long one.
  ASSERT_EQ(list.nodes[1].size(), 3U);
  EXPECT_THAT(list.covers[0], ElementsAre(ElementsAre(1, 1)));
  EXPECT_THAT(list.covers[1], ElementsAre(ElementsAre(1, 2, 1), ElementsAre(1, 2, 2)));
  const NodeChoice& end = list.nodes[1][1];
  EXPECT_EQ(end.cover, 0);
  EXPECT_EQ(end.option, 0);
  EXPECT_EQ(end.previous, 0);
  EXPECT_EQ(end.previous_choice, 1U);
  EXPECT_EQ(end.cost_us, round_price_us(2));
  const Form plain{kHostMemory, kPlain};
  EXPECT_THAT(end.reads, ElementsAre(Pair(stages.value("y"), plain)));
  EXPECT_THAT(end.makes, ElementsAre(Pair(stages.value("b"), plain)));
  const NodeChoice& middle = list.nodes[1][2];
  EXPECT_EQ(middle.cover, -1);
  EXPECT_EQ(middle.next, 2);
  EXPECT_EQ(middle.cost_us, 0);
  EXPECT_THAT(middle.makes, IsEmpty());
}

TEST(NodeChoices, CostWhatARunBearsOfTheLoad) {
  Chain stages;
  auto& cpu = stages.devices.add("cpu");
  for (const char* node : {"a", "b", "c"}) cpu.offer(node, 10, {kPlain}, kPlain);
  cpu.offer("cover0", 2, {kPlain, kPlain}, kPlain);
  ASSERT_TRUE(stages.enumerate());
  stages.choices.nodes[0].options[0].price.load_share_us = 5;
  stages.choices.cover_options[0].options[0].price.load_share_us = 7;
  const NodeChoices list = list_node_choices(stages.graph(), stages.choices, stages.target());
  EXPECT_EQ(list.nodes[0][0].cost_us, round_price_us(10) + 5);
  EXPECT_EQ(list.nodes[1][1].cost_us, round_price_us(2) + 7);
}

TEST(NodeChoices, TheChainForksWhereAnOperandIsReadInAnotherForm) {
  Chain stages;
  auto& cpu = stages.devices.add("cpu");
  for (const char* node : {"a", "b", "c"}) cpu.offer(node, 10, {kPlain}, kPlain);
  cpu.offer("cover1", 3, {kPlain, kPlain}, kPlain);
  cpu.offer("cover1", 3, {kPlain, kLast}, kPlain);
  const NodeChoices list = stages.list();
  EXPECT_EQ(list.nodes[0].size(), 2U);  // alone; the start of both
  EXPECT_THAT(list.covers[1], ElementsAre(ElementsAre(1, 1, 1), ElementsAre(1, 2, 2)));
}

TEST(NodeChoices, ASolutionNamesTheCoverForAllOfItsNodes) {
  Chain stages;
  auto& cpu = stages.devices.add("cpu");
  for (const char* node : {"a", "b", "c"}) cpu.offer(node, 10, {kPlain}, kPlain);
  cpu.offer("cover0", 2, {kPlain, kPlain}, kPlain);
  cpu.offer("cover1", 3, {kPlain, kPlain}, kPlain);
  stages.assign();
  EXPECT_THAT(stages.assignment.cover_option, ElementsAre(-1, 0));
  for (const ChosenNode& node : stages.assignment.nodes) {
    EXPECT_EQ(node.cover, 1);
    EXPECT_EQ(node.option, -1);
  }
  EXPECT_EQ(stages.solution.cost, round_price_us(3));
}

}  // namespace
}  // namespace tessera::plan
