#pragma once

// A reduction read from a spec.

#include <vector>

#include "backends/cpu/run/spec_util.h"

namespace tessera::backends::cpu {

enum class ReduceKind : std::uint8_t {
  kSum,
  kMean,
  kMax,
  kMin,
  kProd,
  kSumSquare,
  kL1,
  kL2,
  kLogSum,
  kLogSumExp,
  kArgMax,
  kArgMin
};

struct ReducePlan {
  ReduceKind kind = ReduceKind::kSum;
  std::vector<bool> reduced;  // by axis
  bool select_last = false;   // ArgMax, ArgMin
};

// Errors: another operator, a dtype other than fp32, axes that are computed at run time.
Result<ReducePlan> plan_reduce(const artefact::KernelSpec& spec, Constants constants);

}  // namespace tessera::backends::cpu
