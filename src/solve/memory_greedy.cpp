#include "solve/memory_greedy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "base/error.h"
#include "solve/memory_validate.h"

namespace tessera::solve {
namespace {

__extension__ using Key = __int128;  // size x lifespan does not fit 64 bits

// Largest first.
struct Order {
  Key (*key)(const Buffer&);
};
constexpr std::array<Order, 3> kOrders = {{
    {[](const Buffer& buffer) -> Key { return buffer.size_bytes; }},
    {[](const Buffer& buffer) -> Key {
      return static_cast<Key>(buffer.size_bytes) * (static_cast<Key>(buffer.upper) - buffer.lower);
    }},
    {[](const Buffer& buffer) -> Key { return static_cast<Key>(buffer.upper) - buffer.lower; }},
}};

// A buffer that takes room at some time.
bool takes_room(const Buffer& buffer) {
  return buffer.size_bytes > 0 && buffer.lower < buffer.upper;
}

std::int64_t align_up(std::int64_t offset, std::int64_t alignment) {
  const std::int64_t rest = offset % alignment;
  return rest == 0 ? offset : offset + (alignment - rest);
}

// The buffers placed so far, by offset.
class Arena {
 public:
  // The lowest aligned offset at which the buffer collides with none.
  [[nodiscard]] std::int64_t lowest_offset(const Buffer& buffer) const {
    std::int64_t offset = 0;
    for (const Placed& placed : placed_) {
      if (placed.offset >= offset + buffer.size_bytes) break;
      if (placed.lower >= buffer.upper || placed.upper <= buffer.lower) continue;
      if (placed.end > offset) offset = align_up(placed.end, buffer.alignment);
    }
    return offset;
  }

  void place(const Buffer& buffer, std::int64_t offset) {
    const auto at = std::upper_bound(
        placed_.begin(), placed_.end(), offset,
        [](std::int64_t value, const Placed& placed) { return value < placed.offset; });
    placed_.insert(at, {offset, offset + buffer.size_bytes, buffer.lower, buffer.upper});
    end_ = std::max(end_, offset + buffer.size_bytes);
  }

  [[nodiscard]] std::int64_t end() const { return end_; }

 private:
  struct Placed {
    std::int64_t offset, end, lower, upper;
  };
  std::vector<Placed> placed_;
  std::int64_t end_ = 0;
};

std::vector<std::size_t> sorted_by(const Order& order, const MemoryProblem& problem) {
  std::vector<Key> keys;
  for (const Buffer& buffer : problem.buffers) keys.push_back(order.key(buffer));
  std::vector<std::size_t> indices(problem.buffers.size());
  std::iota(indices.begin(), indices.end(), std::size_t{0});
  std::sort(indices.begin(), indices.end(), [&](std::size_t x, std::size_t y) {
    if (keys[x] != keys[y]) return keys[x] > keys[y];
    const std::int64_t lower_x = problem.buffers[x].lower;
    const std::int64_t lower_y = problem.buffers[y].lower;
    return lower_x != lower_y ? lower_x < lower_y : x < y;
  });
  return indices;
}

MemorySolution place_in_order(const MemoryProblem& problem, const Order& order) {
  MemorySolution solution;
  solution.offsets.assign(problem.buffers.size(), 0);
  Arena arena;
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (!buffer.fixed_offset) continue;
    solution.offsets[i] = *buffer.fixed_offset;
    if (takes_room(buffer)) arena.place(buffer, *buffer.fixed_offset);
  }
  for (const std::size_t i : sorted_by(order, problem)) {
    const Buffer& buffer = problem.buffers[i];
    if (buffer.fixed_offset || !takes_room(buffer)) continue;
    solution.offsets[i] = arena.lowest_offset(buffer);
    arena.place(buffer, solution.offsets[i]);
  }
  solution.arena_bytes = arena.end();
  return solution;
}

}  // namespace

Result<MemorySolution> allocate_greedy(const MemoryProblem& problem) {
  TESSERA_TRY(check_memory_problem(problem));
  const std::int64_t peak = peak_live_bytes(problem);
  MemorySolution best;
  for (std::size_t i = 0; i < kOrders.size(); ++i) {
    MemorySolution solution = place_in_order(problem, kOrders[i]);
    solution.peak_live_bytes = peak;
    if (i == 0 || solution.arena_bytes < best.arena_bytes) best = std::move(solution);
    if (best.arena_bytes == peak) break;
  }
  if (problem.capacity_bytes && best.arena_bytes > *problem.capacity_bytes) {
    return fail(ErrorCode::kResourceExhausted,
                fmt::format("the smallest arena found, {} bytes, is larger than the capacity, {} "
                            "bytes (peak of live bytes: {})",
                            best.arena_bytes, *problem.capacity_bytes, peak));
  }
  return best;
}

}  // namespace tessera::solve
