#include "plans/domains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace tessera::bench {
namespace {

using ::testing::ElementsAre;

constexpr double kForbidden = std::numeric_limits<double>::infinity();

// Three variables in a chain; neighbours must agree in their choice, but for the pair (2, 0) of the
// last two.
solve::Problem chain() {
  solve::Problem problem;
  for (const char* name : {"a", "b", "c"})
    problem.variables.push_back({name, {1, 2, 3}, {}, {}, {}});
  const std::vector<double> equal = {0,          kForbidden, kForbidden, kForbidden, 0,
                                     kForbidden, kForbidden, kForbidden, 0};
  problem.pairs = {{0, 1, equal}, {1, 2, equal}};
  problem.pairs[1].costs[2 * 3 + 0] = 5;
  return problem;
}

TEST(Domains, BeginWithTheChoicesOfFiniteCost) {
  solve::Problem problem = chain();
  problem.variables[1].costs[0] = kForbidden;
  const Domains domains(problem);
  EXPECT_THAT(domains.choices(0), ElementsAre(0, 1, 2));
  EXPECT_THAT(domains.choices(1), ElementsAre(1, 2));
}

TEST(Domains, AForcedChoiceReachesNeighboursOfNeighbours) {
  Domains domains{chain()};
  ASSERT_TRUE(domains.force({0, 2}));
  EXPECT_THAT(domains.choices(0), ElementsAre(2));
  EXPECT_THAT(domains.choices(1), ElementsAre(2));
  EXPECT_THAT(domains.choices(2), ElementsAre(0, 2));
}

TEST(Domains, CopiesAreIndependent) {
  const Domains domains{chain()};
  Domains copy = domains;
  ASSERT_TRUE(copy.force({0, 1}));
  EXPECT_THAT(domains.choices(2), ElementsAre(0, 1, 2));
}

TEST(Domains, AForbiddenChoiceTakesItsPartnersAlong) {
  Domains domains{chain()};
  ASSERT_TRUE(domains.forbid({1, 1}));
  EXPECT_THAT(domains.choices(0), ElementsAre(0, 2));
  EXPECT_THAT(domains.choices(2), ElementsAre(0, 2));
  ASSERT_TRUE(domains.forbid({1, 1})) << "it is gone already";
}

TEST(Domains, AContradictionShows) {
  Domains domains{chain()};
  ASSERT_TRUE(domains.force({0, 1}));
  Domains copy = domains;
  EXPECT_FALSE(copy.force({2, 0})) << "propagation took it";
  EXPECT_FALSE(domains.forbid({1, 1})) << "the last one";
}

TEST(Domains, RestrictForbidsWhatIsGoneAndKeepsCosts) {
  solve::Problem problem = chain();
  Domains domains(problem);
  ASSERT_TRUE(domains.force({0, 2}));
  domains.restrict(problem);
  EXPECT_THAT(problem.variables[0].costs, ElementsAre(kForbidden, kForbidden, 3));
  EXPECT_THAT(problem.variables[2].costs, ElementsAre(1, kForbidden, 3));
}

}  // namespace
}  // namespace tessera::bench
