// The figures of delegation, layouts and memory in the field's introductory texts, as problems.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "solve/memory_greedy.h"
#include "solve/memory_validate.h"
#include "solve/solve.h"
#include "solve/validate.h"

namespace tessera::solve {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr std::int64_t kKiB = 1024;

// A chain of nodes between a host's input and output. Choice 0 is the host, 1 the accelerator.
struct Chain {
  std::vector<bool> supported;  // by the accelerator
  double host_ms = 0;           // of a supported node on the host
  double node_ms = 0;           // of any node where it belongs
  double boundary_ms = 0;       // each time the device changes
};

Problem delegation(const Chain& chain) {
  Problem problem;
  for (const bool supported : chain.supported) {
    problem.variables.push_back(
        {"",
         {supported ? chain.host_ms : chain.node_ms, supported ? chain.node_ms : kInf},
         {},
         {},
         {}});
  }
  problem.variables.front().costs[1] += chain.boundary_ms;
  problem.variables.back().costs[1] += chain.boundary_ms;
  for (std::uint32_t i = 0; i + 1 < problem.variables.size(); ++i) {
    problem.pairs.push_back({i, i + 1, {0, chain.boundary_ms, chain.boundary_ms, 0}});
  }
  return problem;
}

std::vector<bool> supported_except(std::size_t nodes, const std::set<std::size_t>& missing) {
  std::vector<bool> supported;
  for (std::size_t i = 0; i < nodes; ++i) supported.push_back(missing.count(i) == 0);
  return supported;
}

std::vector<std::uint32_t> all_delegated(const Chain& chain) {
  return {chain.supported.begin(), chain.supported.end()};
}

double optimum(const Problem& problem) {
  const Result<Solution> solution = solve(problem);
  EXPECT_TRUE(solution) << solution.error().to_string();
  EXPECT_TRUE(solution->optimal);
  EXPECT_EQ(solution->search_nodes, 0U);
  return solution->cost;
}

// A copy of 1 MiB at 8 GB/s there and one back, and 50 us to synchronise.
double round_trip_ms() {
  return 2 * (1024.0 * 1024 / 8e9 * 1e3) + 0.05;
}

TEST(FallbackTax, ACopyAndARoundTrip) {
  EXPECT_NEAR(1024.0 * 1024 / 8e9 * 1e6, 131, 0.1);
  EXPECT_NEAR(round_trip_ms(), 0.31, 0.005);
}

TEST(FallbackTax, OnePartitionOrThirteen) {
  // 120 nodes, 108 supported, 8 ms; the host would be far slower
  Chain chain{{}, 10, 8.0 / 120, 0.31};
  std::set<std::size_t> contiguous;  // at both ends
  for (std::size_t i = 0; i < 6; ++i) contiguous.insert({i, 119 - i});
  chain.supported = supported_except(120, contiguous);
  const double one = optimum(delegation(chain));
  EXPECT_NEAR(one, 8.62, 1e-9);
  std::set<std::size_t> scattered;
  for (std::size_t i = 1; i <= 12; ++i) scattered.insert(i * 9);
  chain.supported = supported_except(120, scattered);
  const double thirteen = optimum(delegation(chain));
  EXPECT_NEAR(thirteen, 16.06, 1e-9);
  EXPECT_NEAR(thirteen / one, 1.86, 0.005);
}

TEST(Problem2, WhereTheUnsupportedNodesStand) {
  Chain chain{{}, 10, 8.0 / 200, 0.31};
  std::set<std::size_t> middle, end, scattered;
  for (std::size_t i = 0; i < 20; ++i) {
    middle.insert(90 + i);
    end.insert(180 + i);
    scattered.insert(9 + i * 10);  // the last node is one of them: 20 partitions
  }
  chain.supported = supported_except(200, middle);
  EXPECT_NEAR(optimum(delegation(chain)), 9.24, 1e-9);
  chain.supported = supported_except(200, end);
  EXPECT_NEAR(optimum(delegation(chain)), 8.62, 1e-9);
  chain.supported = supported_except(200, scattered);
  EXPECT_NEAR(optimum(delegation(chain)), 20.4, 1e-9);
}

TEST(Problem2, DelegationStopsPayingAtTwentyThreePartitions) {
  for (const std::size_t partitions : {22, 23}) {
    std::set<std::size_t> missing;
    for (std::size_t i = 1; i < partitions; ++i) missing.insert(i * 200 / partitions);
    Chain chain{supported_except(200, missing), 0, 8.0 / 200, 0.31};
    const double unsupported = static_cast<double>(missing.size());
    chain.host_ms = (22 - unsupported * chain.node_ms) / (200 - unsupported);
    const Problem problem = delegation(chain);
    const double delegated = assignment_cost(problem, all_delegated(chain));
    const double host = assignment_cost(problem, std::vector<std::uint32_t>(200, 0));
    EXPECT_NEAR(host, 22, 1e-9);
    EXPECT_NEAR(delegated, 8 + 0.62 * static_cast<double>(partitions), 1e-9);
    EXPECT_EQ(delegated < host, partitions == 22);
    EXPECT_LE(optimum(problem), std::min(delegated, host) + 1e-9);
  }
}

// An activation of 56 x 56 x 64 floats, read and written at 20 GB/s.
double transpose_ms() {
  return 2 * (56.0 * 56 * 64 * 4) / 20e9 * 1e3;
}

// A chain of layers that want NHWC (choice 1), where some have only NCHW (choice 0).
Problem layouts(const std::set<std::size_t>& only_nchw) {
  Problem problem;
  for (std::size_t i = 0; i < 50; ++i) {
    const bool restricted = only_nchw.count(i) != 0;
    problem.variables.push_back(
        {"", {restricted ? 0.0 : 10.0, restricted ? kInf : 0.0}, {}, {}, {}});
  }
  for (std::uint32_t i = 0; i + 1 < 50; ++i) {
    problem.pairs.push_back({i, i + 1, {0, transpose_ms(), transpose_ms(), 0}});
  }
  return problem;
}

TEST(Problem4, TransposesBetweenLayouts) {
  EXPECT_NEAR(transpose_ms() * 1e3, 80, 0.5);
  EXPECT_NEAR(transpose_ms() * 50, 4, 0.02);
  std::set<std::size_t> scattered, contiguous;
  for (std::size_t i = 0; i < 12; ++i) {
    scattered.insert(2 + 4 * i);
    contiguous.insert(20 + i);
  }
  EXPECT_NEAR(optimum(layouts(scattered)), 24 * transpose_ms(), 1e-9);
  EXPECT_NEAR(optimum(layouts(scattered)), 1.93, 0.005);
  EXPECT_NEAR(optimum(layouts(contiguous)), 2 * transpose_ms(), 1e-9);
  EXPECT_NEAR(optimum(layouts(contiguous)), 0.16, 0.005);
}

void expect_memory(const MemoryProblem& problem, std::int64_t peak_kib, std::int64_t arena_kib) {
  const Result<MemorySolution> solution = allocate_greedy(problem);
  ASSERT_TRUE(solution) << solution.error().to_string();
  EXPECT_TRUE(validate(problem, *solution));
  EXPECT_EQ(solution->peak_live_bytes, peak_kib * kKiB);
  EXPECT_EQ(solution->arena_bytes, arena_kib * kKiB);
}

Buffer buffer(const char* id, std::int64_t lower, std::int64_t upper, std::int64_t size_kib) {
  return {id, lower, upper, size_kib * kKiB, 1, {}};
}

// op1 makes t1, ..., op4 reads t2 and t3, op5 reads t4, op6 = concat(t1, t5), op7 reads t6.
MemoryProblem seven_ops() {
  return {{buffer("t1", 1, 7, 1024), buffer("t2", 2, 5, 1408), buffer("t3", 3, 5, 1408),
           buffer("t4", 4, 6, 1024), buffer("t5", 5, 7, 3072), buffer("t6", 6, 8, 4096),
           buffer("t7", 7, 8, 1024)},
          {}};
}

TEST(SevenOpSlice, WithACopyingConcat) {
  const MemoryProblem problem = seven_ops();
  std::int64_t total = 0;
  for (const Buffer& b : problem.buffers) total += b.size_bytes;
  EXPECT_EQ(total, 13'056 * kKiB);
  expect_memory(problem, 8192, 8192);
}

TEST(SevenOpSlice, WithItsConcatElided) {
  MemoryProblem problem = seven_ops();  // t6 is where t1 and t5 already lie
  problem.buffers.erase(problem.buffers.begin() + 5);
  problem.buffers[0].upper = 8;
  problem.buffers[0].fixed_offset = 0;
  problem.buffers[4].upper = 8;
  problem.buffers[4].fixed_offset = 1024 * kKiB;
  expect_memory(problem, 5120, 5120);
}

TEST(Problem1, FourBranchesIntoAConcat) {
  // x is read by four branches, one after the other; step 5 joins them
  MemoryProblem copied = {
      {buffer("x", 0, 5, 1024), buffer("b1", 1, 6, 512), buffer("b2", 2, 6, 512),
       buffer("b3", 3, 6, 512), buffer("b4", 4, 6, 512), buffer("joined", 5, 7, 2048)},
      {}};
  expect_memory(copied, 4096, 4096);
  MemoryProblem elided = copied;
  elided.buffers.pop_back();
  for (std::int64_t i = 0; i < 4; ++i) {
    elided.buffers[static_cast<std::size_t>(i) + 1].fixed_offset = i * 512 * kKiB;
    elided.buffers[static_cast<std::size_t>(i) + 1].upper = 7;
  }
  expect_memory(elided, 3072, 3072);
}

}  // namespace
}  // namespace tessera::solve
