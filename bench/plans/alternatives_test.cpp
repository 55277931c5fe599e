#include "plans/alternatives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "compiler/compile.h"
#include "testing/onnx_builder.h"
#include "testing/random.h"
#include "testing/temp_dir.h"

namespace tessera::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::OnnxModel;
using ::testing::SizeIs;

// Two convolutions with a residual sum: nodes with alternatives, and covers that overlap.
std::string small_model() {
  OnnxModel model(17);
  testing::Random random(3);
  model.input("x", testing::kFloat, {1, 16, 12, 12});
  model.floats("w1", {16, 16, 3, 3}, random.floats(16 * 16 * 9, -0.3, 0.3));
  model.floats("w2", {16, 16, 3, 3}, random.floats(16 * 16 * 9, -0.3, 0.3));
  model.node("Conv", {"x", "w1"}, {"c1"}, "conv1").ints("pads", {1, 1, 1, 1});
  model.node("Relu", {"c1"}, {"r1"}, "relu1");
  model.node("Conv", {"r1", "w2"}, {"c2"}, "conv2").ints("pads", {1, 1, 1, 1});
  model.node("Add", {"c2", "r1"}, {"s"}, "sum");
  model.node("Relu", {"s"}, {"y"}, "relu2");
  model.output("y", testing::kFloat, {1, 16, 12, 12});
  return model.serialize();
}

// Compiles a model and hands its plans to `body`.
template <typename Body>
void explore(Body body, const std::string& model = small_model()) {
  const testing::TempDir folder;
  compiler::CompileOptions options;
  bool called = false;
  options.explore = [&](const compiler::PlanSpace& space) -> Status {
    called = true;
    body(space);
    return {};
  };
  const auto compiled = compiler::compile(folder.write("m.onnx", model), options);
  ASSERT_TRUE(compiled) << compiled.error().to_string();
  EXPECT_TRUE(called);
}

constexpr double kAnyTime = 1e9;

std::vector<std::uint32_t> node_choices(const compiler::PlanSpace& space,
                                        const std::vector<std::uint32_t>& choice) {
  std::vector<std::uint32_t> nodes;
  for (const std::uint32_t variable : space.planned().problem.node_variables)
    nodes.push_back(choice[variable]);
  return nodes;
}

// Allowed, priced as it says, not the chosen plan, and none twice.
void expect_plans(const compiler::PlanSpace& space, const Group& group) {
  const auto& planned = space.planned();
  std::set<std::vector<std::uint32_t>> seen = {node_choices(space, planned.solution.choice)};
  for (const Alternative& plan : group.plans) {
    EXPECT_TRUE(seen.insert(node_choices(space, plan.choice)).second);
    EXPECT_DOUBLE_EQ(compiler::assignment_cost_us(planned.problem.problem, plan.choice),
                     plan.predicted_us);
    EXPECT_GE(plan.predicted_us, planned.solution.cost) << "the chosen plan is the cheapest";
    EXPECT_TRUE(space.emit(plan.choice));
  }
}

bool uses_last_resort(const compiler::PlanSpace& space, const Alternative& plan) {
  const auto assignment = plan::decode(space.planned().problem, plan.choice);
  return std::ranges::any_of(assignment.nodes, [&](const plan::ChosenNode& node) {
    return space.target().info(node.device).name == "reference";
  });
}

// All plans of two nodes, by trying every pair of choices with the solver alone.
std::set<std::vector<std::uint32_t>> plans_of_two(const compiler::PlanSpace& space, std::size_t a,
                                                  std::size_t b) {
  constexpr double kForbidden = std::numeric_limits<double>::infinity();
  std::set<std::vector<std::uint32_t>> found;
  const auto& problem = space.planned().problem;
  const auto keep = [&](plan::AssignmentProblem& forced, std::size_t node, std::size_t choice) {
    auto& costs = forced.problem.variables[problem.node_variables[node]].costs;
    for (std::size_t k = 0; k < costs.size(); ++k)
      if (k != choice) costs[k] = kForbidden;
  };
  for (std::size_t i = 0; i < problem.node_choices.nodes[a].size(); ++i) {
    for (std::size_t j = 0; j < problem.node_choices.nodes[b].size(); ++j) {
      plan::AssignmentProblem forced = problem;
      keep(forced, a, i);
      keep(forced, b, j);
      if (const auto solution = space.solve(std::move(forced)))
        found.insert(node_choices(space, solution->choice));
    }
  }
  return found;
}

TEST(Alternatives, FindsNodesByGlobs) {
  explore([](const compiler::PlanSpace& space) {
    const Alternatives alternatives(space, kAnyTime);
    const auto nodes = alternatives.find_nodes({"relu?", "conv1"});
    ASSERT_TRUE(nodes) << nodes.error().to_string();
    std::vector<std::string> names;
    for (const std::size_t node : *nodes) names.push_back(space.graph().nodes()[node]->name);
    EXPECT_THAT(names, ElementsAre("conv1", "relu1", "relu2"));
    const auto missing = alternatives.find_nodes({"conv1", "pool*"});
    ASSERT_FALSE(missing);
    EXPECT_THAT(missing.error().to_string(), HasSubstr("no node of the plan matches 'pool*'"));
  });
}

TEST(Alternatives, ASubgraphHasTenNodesAtMost) {
  OnnxModel model(17);
  model.input("x0", testing::kFloat, {4});
  for (int i = 0; i < 11; ++i)
    model.node("Sin", {"x" + std::to_string(i)}, {"x" + std::to_string(i + 1)},
               "sin" + std::to_string(i));
  model.output("x11", testing::kFloat, {4});
  explore(
      [](const compiler::PlanSpace& space) {
        const auto nodes = Alternatives(space, kAnyTime).find_nodes({"sin*"});
        ASSERT_FALSE(nodes);
        EXPECT_THAT(nodes.error().to_string(), HasSubstr("expected at most 10 nodes, found 11"));
      },
      model.serialize());
}

TEST(Alternatives, CombinationsAreAllPlansOfTheSubgraph) {
  explore([](const compiler::PlanSpace& space) {
    const Alternatives alternatives(space, kAnyTime);
    const auto nodes = alternatives.find_nodes({"conv1", "relu1"});
    ASSERT_TRUE(nodes);
    const auto group = alternatives.combinations(*nodes, 1000);
    ASSERT_TRUE(group) << group.error().to_string();
    expect_plans(space, *group);
    auto expected = plans_of_two(space, (*nodes)[0], (*nodes)[1]);
    EXPECT_EQ(expected.erase(node_choices(space, space.planned().solution.choice)), 1U);
    std::set<std::vector<std::uint32_t>> found;
    for (const Alternative& plan : group->plans) found.insert(node_choices(space, plan.choice));
    EXPECT_EQ(found, expected);
    EXPECT_GT(found.size(), 3U);
    EXPECT_GT(group->impossible, 0) << "of a cover, one half alone";
    EXPECT_DOUBLE_EQ(group->tried, group->impossible + static_cast<double>(group->repeated) +
                                       static_cast<double>(group->plans.size()));
  });
}

TEST(Alternatives, MoreCombinationsThanCanBeMeasuredAreAnError) {
  explore([](const compiler::PlanSpace& space) {
    const Alternatives alternatives(space, kAnyTime);
    const auto group = alternatives.combinations({0, 1}, 3);
    ASSERT_FALSE(group);
    EXPECT_THAT(group.error().to_string(),
                HasSubstr("2 nodes have more than 3 possible combinations of choices: name fewer "
                          "nodes, so that all can be measured"));
  });
}

TEST(Alternatives, RandomPlansAreConsistentAndComeFromTheSeed) {
  explore([](const compiler::PlanSpace& space) {
    const Alternatives alternatives(space, kAnyTime);
    const auto group = alternatives.random_plans(20, 1);
    ASSERT_TRUE(group) << group.error().to_string();
    EXPECT_THAT(group->plans, SizeIs(20));
    expect_plans(space, *group);
    const auto same = alternatives.random_plans(20, 1);
    const auto other = alternatives.random_plans(20, 2);
    ASSERT_TRUE(same && other);
    const auto choices = [](const Group& of) {
      std::vector<std::vector<std::uint32_t>> all;
      for (const Alternative& plan : of.plans) all.push_back(plan.choice);
      return all;
    };
    EXPECT_EQ(choices(*group), choices(*same));
    EXPECT_NE(choices(*group), choices(*other));
  });
}

TEST(Alternatives, RandomPlansEndWhereThereAreNoMore) {
  OnnxModel model(17);
  model.input("x", testing::kFloat, {1, 16, 12, 12});
  model.node("Relu", {"x"}, {"y"}, "relu");
  model.output("y", testing::kFloat, {1, 16, 12, 12});
  explore(
      [](const compiler::PlanSpace& space) {
        const Alternatives alternatives(space, 0);
        const auto random = alternatives.random_plans(50, 1);
        const auto neighbours = alternatives.neighbours(50, 1);
        ASSERT_TRUE(random && neighbours);
        EXPECT_LT(random->plans.size(), 50U);
        EXPECT_EQ(random->plans.size(), neighbours->plans.size()) << "of one node";
      },
      model.serialize());
}

TEST(Alternatives, NeighboursDifferFromTheChosenPlan) {
  explore([](const compiler::PlanSpace& space) {
    const Alternatives alternatives(space, kAnyTime);
    const auto group = alternatives.neighbours(8, 1);
    ASSERT_TRUE(group) << group.error().to_string();
    EXPECT_THAT(group->plans, SizeIs(8));
    expect_plans(space, *group);
    for (const Alternative& plan : group->plans) {
      const auto differences = alternatives.differences(plan);
      ASSERT_FALSE(differences.empty());
      for (const NodeDifference& difference : differences)
        EXPECT_NE(difference.chosen, difference.other) << difference.node;
    }
    EXPECT_THAT(alternatives.differences({space.planned().solution.choice, 0}), IsEmpty());
  });
}

TEST(Alternatives, TheLastResortIsLeftOutWhereItTakesLong) {
  explore([](const compiler::PlanSpace& space) {
    const auto count = [&](const Group& group) {
      return std::ranges::count_if(
          group.plans, [&](const Alternative& plan) { return uses_last_resort(space, plan); });
    };
    const auto with = Alternatives(space, kAnyTime).neighbours(1000, 1);
    const auto without = Alternatives(space, 0).neighbours(1000, 1);
    const auto random = Alternatives(space, kAnyTime).random_plans(50, 1);
    ASSERT_TRUE(with && without && random);
    EXPECT_GT(count(*with), 0);
    EXPECT_EQ(count(*without), 0);
    EXPECT_EQ(count(*random), 0);
  });
}

}  // namespace
}  // namespace tessera::bench
