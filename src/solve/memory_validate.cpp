#include "solve/memory_validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace tessera::solve {
namespace {

tl::unexpected<Error> invalid(std::string message) {
  return fail(ErrorCode::kInvalidArgument, std::move(message));
}

// "'t1'", or "3" for a buffer without an id.
std::string buffer_text(const MemoryProblem& problem, std::size_t index) {
  const std::string& id = problem.buffers[index].id;
  return id.empty() ? fmt::format("{}", index) : fmt::format("'{}'", id);
}

// A buffer begins or ends to live.
struct Event {
  std::int64_t step = 0;
  bool begins = false;
  std::size_t buffer = 0;
};

// By step, ends before beginnings, then by index. Buffers that never take room are left out.
std::vector<Event> events_of(const MemoryProblem& problem) {
  std::vector<Event> events;
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (buffer.lower >= buffer.upper || buffer.size_bytes == 0) continue;
    events.push_back({buffer.lower, true, i});
    events.push_back({buffer.upper, false, i});
  }
  std::sort(events.begin(), events.end(), [](const Event& x, const Event& y) {
    if (x.step != y.step) return x.step < y.step;
    if (x.begins != y.begins) return !x.begins;
    return x.buffer < y.buffer;
  });
  return events;
}

Status check_buffer(const MemoryProblem& problem, std::size_t index) {
  const Buffer& buffer = problem.buffers[index];
  const std::string place = "buffer " + buffer_text(problem, index);
  if (buffer.size_bytes < 0) {
    return invalid(fmt::format("{}: size {} is negative", place, buffer.size_bytes));
  }
  if (buffer.alignment <= 0) {
    return invalid(fmt::format("{}: alignment {} is not positive", place, buffer.alignment));
  }
  if (buffer.lower > buffer.upper) {
    return invalid(fmt::format("{}: lifespan [{}, {}) ends before it begins", place, buffer.lower,
                               buffer.upper));
  }
  if (!buffer.fixed_offset) return {};
  if (*buffer.fixed_offset < 0) {
    return invalid(fmt::format("{}: fixed offset {} is negative", place, *buffer.fixed_offset));
  }
  if (*buffer.fixed_offset % buffer.alignment != 0) {
    return invalid(fmt::format("{}: fixed offset {} is not a multiple of its alignment, {}", place,
                               *buffer.fixed_offset, buffer.alignment));
  }
  return {};
}

// All buffers one after the other, behind the highest fixed one, end within 63 bits.
Status check_total(const MemoryProblem& problem) {
  std::int64_t total = 0;
  std::int64_t highest = 0;
  for (const Buffer& buffer : problem.buffers) {
    highest = std::max(highest, buffer.fixed_offset.value_or(0));
    if (__builtin_add_overflow(total, buffer.size_bytes, &total) ||
        __builtin_add_overflow(total, buffer.alignment, &total)) {
      return invalid("the sum of all sizes and alignments does not fit 63 bits");
    }
  }
  if (__builtin_add_overflow(total, highest, &total)) {
    return invalid(
        "the sum of all sizes and alignments and the highest fixed offset does not fit "
        "63 bits");
  }
  return {};
}

// At every step, the live buffers by offset: a new one may only collide with its neighbours.
Status check_disjoint(const MemoryProblem& problem, const std::vector<std::int64_t>& offsets) {
  std::map<std::int64_t, std::size_t> live;
  const auto end_of = [&](std::size_t i) { return offsets[i] + problem.buffers[i].size_bytes; };
  const auto overlap = [&](std::size_t x, std::size_t y, std::int64_t step) {
    return invalid(fmt::format("buffers {} at [{}, {}) and {} at [{}, {}) overlap at step {}",
                               buffer_text(problem, x), offsets[x], end_of(x),
                               buffer_text(problem, y), offsets[y], end_of(y), step));
  };
  for (const Event& event : events_of(problem)) {
    if (!event.begins) {
      live.erase(offsets[event.buffer]);
      continue;
    }
    const auto next = live.lower_bound(offsets[event.buffer]);
    if (next != live.end() && next->first < end_of(event.buffer)) {
      return overlap(next->second, event.buffer, event.step);
    }
    if (next != live.begin()) {
      const std::size_t before = std::prev(next)->second;
      if (end_of(before) > offsets[event.buffer]) return overlap(before, event.buffer, event.step);
    }
    live.emplace(offsets[event.buffer], event.buffer);
  }
  return {};
}

Status check_offset(const MemoryProblem& problem, std::size_t index, std::int64_t offset) {
  const Buffer& buffer = problem.buffers[index];
  const std::string place = "buffer " + buffer_text(problem, index);
  if (offset < 0) return invalid(fmt::format("{}: offset {} is negative", place, offset));
  if (offset % buffer.alignment != 0) {
    return invalid(fmt::format("{}: offset {} is not a multiple of its alignment, {}", place,
                               offset, buffer.alignment));
  }
  if (buffer.fixed_offset && offset != *buffer.fixed_offset) {
    return invalid(
        fmt::format("{}: offset {} is not the fixed one, {}", place, offset, *buffer.fixed_offset));
  }
  std::int64_t end = 0;
  if (__builtin_add_overflow(offset, buffer.size_bytes, &end)) {
    return invalid(fmt::format("{}: offset {} and size {} do not fit 63 bits", place, offset,
                               buffer.size_bytes));
  }
  return {};
}

}  // namespace

std::int64_t peak_live_bytes(const MemoryProblem& problem) {
  std::int64_t live = 0;
  std::int64_t peak = 0;
  for (const Event& event : events_of(problem)) {
    const std::int64_t size = problem.buffers[event.buffer].size_bytes;
    live += event.begins ? size : -size;
    peak = std::max(peak, live);
  }
  return peak;
}

Status check_memory_problem(const MemoryProblem& problem) {
  std::map<std::string_view, std::size_t> ids;
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    TESSERA_TRY(check_buffer(problem, i));
    if (problem.buffers[i].id.empty()) continue;
    if (!ids.emplace(problem.buffers[i].id, i).second) {
      return invalid(fmt::format("two buffers have the id '{}'", problem.buffers[i].id));
    }
  }
  if (problem.capacity_bytes && *problem.capacity_bytes < 0) {
    return invalid(fmt::format("capacity {} is negative", *problem.capacity_bytes));
  }
  TESSERA_TRY(check_total(problem));
  MemoryProblem fixed;
  std::vector<std::int64_t> offsets;
  for (const Buffer& buffer : problem.buffers) {
    if (!buffer.fixed_offset) continue;
    fixed.buffers.push_back(buffer);
    offsets.push_back(*buffer.fixed_offset);
  }
  TESSERA_TRY_IN(check_disjoint(fixed, offsets), "fixed offsets");
  return {};
}

Status validate(const MemoryProblem& problem, const MemorySolution& solution) {
  TESSERA_TRY(check_memory_problem(problem));
  if (solution.offsets.size() != problem.buffers.size()) {
    return invalid(fmt::format("expected {} offsets, found {}", problem.buffers.size(),
                               solution.offsets.size()));
  }
  std::int64_t arena = 0;
  for (std::size_t i = 0; i < solution.offsets.size(); ++i) {
    TESSERA_TRY(check_offset(problem, i, solution.offsets[i]));
    const Buffer& buffer = problem.buffers[i];
    if (buffer.size_bytes == 0 || buffer.lower == buffer.upper) continue;
    arena = std::max(arena, solution.offsets[i] + buffer.size_bytes);
  }
  TESSERA_TRY(check_disjoint(problem, solution.offsets));
  if (solution.arena_bytes != arena) {
    return invalid(fmt::format("claimed arena of {} bytes is not where the highest buffer ends, {}",
                               solution.arena_bytes, arena));
  }
  if (const std::int64_t peak = peak_live_bytes(problem); solution.peak_live_bytes != peak) {
    return invalid(fmt::format("claimed peak of {} live bytes is not that of the lifespans, {}",
                               solution.peak_live_bytes, peak));
  }
  if (problem.capacity_bytes && arena > *problem.capacity_bytes) {
    return invalid(fmt::format("arena of {} bytes is larger than the capacity, {}", arena,
                               *problem.capacity_bytes));
  }
  return {};
}

}  // namespace tessera::solve
