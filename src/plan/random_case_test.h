#pragma once

// Small random programs with everything that the assignment decides over, equal on every machine
// for equal seeds.

#include <cstdint>
#include <memory>
#include <vector>

#include "plan/choices.h"
#include "plan/conversions.h"
#include "testing/fake_device.h"

namespace tessera::plan {

// 1 to 12 nodes (in most seeds at most 8) with one or two results; 1 to 3 devices in 1 to 3
// memories with random candidates and prices; overlapping convex covers; conversions, some of which
// are missing. May have no legal plan.
struct RandomCase {
  explicit RandomCase(std::uint64_t seed);

  [[nodiscard]] const ir::Graph& graph() const { return module.methods.front().graph; }

  ir::Module module;
  testing::FakeTarget devices;
  std::vector<ir::Cover> covers;
  SymbolBindings point;
  CostTable table;
  std::unique_ptr<Pricer> pricer;
  std::unique_ptr<Conversions> conversions;
  Choices choices;
};

}  // namespace tessera::plan
