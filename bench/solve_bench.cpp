// The solvers on drawn problems of growing size.

#include <benchmark/benchmark.h>

#include <random>
#include <string>

#include "solve/memory_greedy.h"
#include "solve/solve.h"

namespace tessera::solve {
namespace {

// A chain with skips over three nodes: the shape of a residual network.
Problem residual_chain(std::int64_t count, std::size_t choices) {
  std::mt19937 random(1);
  Problem problem;
  const auto drawn = [&](std::size_t size) {
    std::vector<double> costs(size);
    for (double& cost : costs) cost = static_cast<double>(random() % 1000);
    return costs;
  };
  for (std::int64_t i = 0; i < count; ++i)
    problem.variables.push_back({"v" + std::to_string(i), drawn(choices), {}, {}, {}});
  for (std::uint32_t i = 1; i < count; ++i) {
    problem.pairs.push_back({i - 1, i, drawn(choices * choices)});
    if (i >= 3) problem.pairs.push_back({i - 3, i, drawn(choices * choices)});
  }
  return problem;
}

void solve_residual_chain(benchmark::State& state) {
  const Problem problem = residual_chain(state.range(0), 8);
  for (auto _ : state) benchmark::DoNotOptimize(solve(problem));
}
BENCHMARK(solve_residual_chain)->Arg(50)->Arg(200)->Arg(800)->Unit(benchmark::kMillisecond);

void allocate_drawn_buffers(benchmark::State& state) {
  std::mt19937 random(1);
  MemoryProblem problem;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    const auto lower = static_cast<std::int64_t>(random() % 1000);
    problem.buffers.push_back({{},
                               lower,
                               lower + 1 + static_cast<std::int64_t>(random() % 20),
                               64 * (1 + static_cast<std::int64_t>(random() % 4096)),
                               64,
                               {}});
  }
  for (auto _ : state) benchmark::DoNotOptimize(allocate_greedy(problem));
}
BENCHMARK(allocate_drawn_buffers)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tessera::solve
