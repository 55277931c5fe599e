#pragma once

// What a run records about each instruction. Preallocated; written without allocation.

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "artefact/read/program_image.h"

namespace tessera::runtime {

struct TraceEvent {
  std::uint32_t instruction = 0;  // index into the method
  std::int64_t start_ns = 0;      // from the start of the run
  std::int64_t end_ns = 0;
  std::uint32_t method = 0;  // of the plan: the program's own, or a body
};

// The clock of traces.
inline std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// One run's events in the order in which they ended, on the wall clock of the calling thread.
struct Trace {
  std::vector<TraceEvent> events;
  std::int64_t total_ns = 0;
};

}  // namespace tessera::runtime
