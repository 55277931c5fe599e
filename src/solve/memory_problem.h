#pragma once

// The memory problem: buffers with known lifespans get offsets in one arena.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera::solve {

struct Buffer {
  std::string id;
  std::int64_t lower = 0;  // lifespan [lower, upper), in steps; an empty one collides with nothing
  std::int64_t upper = 0;
  std::int64_t size_bytes = 0;               // not negative
  std::int64_t alignment = 1;                // of the offset, positive
  std::optional<std::int64_t> fixed_offset;  // where the buffer must lie
  bool operator==(const Buffer&) const = default;
};

struct MemoryProblem {
  std::vector<Buffer> buffers;
  std::optional<std::int64_t> capacity_bytes;
  bool operator==(const MemoryProblem&) const = default;
};

struct MemorySolution {
  std::vector<std::int64_t> offsets;  // one per buffer, in bytes
  std::int64_t arena_bytes = 0;       // the end of the highest buffer
  std::int64_t peak_live_bytes = 0;   // most bytes alive at one step: a lower bound of any arena
  bool operator==(const MemorySolution&) const = default;
};

}  // namespace tessera::solve
