#pragma once

// How often a kernel is run to be timed, and what its entry of the cost table then says.

#include <vector>

#include "plan/cost_table.h"

namespace tessera::compiler {

// A kernel is timed in rounds, in turn with the other candidates for the same work, so that a slow
// moment meets all of them alike. A round begins with a cold sample, of which all operands and
// constants lie in memory; it warms the caches for the others.
struct SamplePlan {
  int rounds = 3;
  int cold_rounds = 3;        // the first ones; the later ones begin as they are
  int samples_per_round = 1;  // in the state that is priced
  int runs_per_sample = 1;    // each timed by itself, for a mean: short kernels outlast the clock's
                              // resolution
  friend bool operator==(const SamplePlan&, const SamplePlan&) = default;
};

// For a kernel whose warm run takes about `time_us`. Resident: samples of at least 20 us, and of
// all together about 3 ms, at least 6 and at most 24 of them. Shared: as many of one run each.
// Streamed: 9 of one run each, since each costs to empty the caches. Of a kernel above 2 ms 6,
// above 40 ms three.
SamplePlan plan_samples(double time_us, plan::CacheState caches);

// The samples of one kernel in microseconds a run. `busy`: taken while others used a core.
struct KernelSamples {
  std::vector<double> time_us, busy_us, cold_us;
  std::vector<double> clocks_mhz;  // of the calling thread's processor; empty: unknown
};

// The median and spread of the samples; those of a busy machine only where fewer than three others
// were taken, and then the entry says so.
plan::CostEntry summarize_samples(KernelSamples samples);

}  // namespace tessera::compiler
