#include "base/processors.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <string>
#include <thread>

#include "base/system_file.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// A limit of any group around this process's counts.
int quota_of_groups() {
  const std::string own = first_line("/proc/self/cgroup");  // "0::/a/b"
  const std::size_t path = own.find('/');
  int least = std::numeric_limits<int>::max();
  if (path == std::string::npos) return least;
  const fs::path root = "/sys/fs/cgroup";
  for (fs::path group = own.substr(path);; group = group.parent_path()) {
    const fs::path file = root / group.relative_path() / "cpu.max";
    if (const auto quota = quota_processors(first_line(file))) least = std::min(least, *quota);
    if (!group.has_relative_path()) return least;
  }
}

}  // namespace

std::optional<int> quota_processors(std::string_view cpu_max) {
  long long quota_us = 0;
  long long period_us = 0;
  const char* end = cpu_max.data() + cpu_max.size();
  const auto quota = std::from_chars(cpu_max.data(), end, quota_us);
  if (quota.ec != std::errc() || quota.ptr == end || *quota.ptr != ' ') return std::nullopt;
  const auto period = std::from_chars(quota.ptr + 1, end, period_us);
  if (period.ec != std::errc() || quota_us <= 0 || period_us <= 0) return std::nullopt;
  return static_cast<int>(
      std::min<long long>((quota_us - 1) / period_us + 1, std::numeric_limits<int>::max()));
}

int usable_processors() {
  cpu_set_t mask;
  const int allowed = sched_getaffinity(0, sizeof mask, &mask) == 0
                          ? CPU_COUNT(&mask)
                          : static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(allowed, 1, quota_of_groups());
}

int current_processor() {
  return sched_getcpu();
}

bool move_to_processor(int processor) {
  cpu_set_t mask;
  if (processor < 0 || processor >= CPU_SETSIZE || sched_getaffinity(0, sizeof mask, &mask) != 0 ||
      !CPU_ISSET(processor, &mask))
    return false;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  if (sched_setaffinity(0, sizeof one, &one) != 0) return false;
  sched_setaffinity(0, sizeof mask, &mask);
  return true;
}

std::optional<int> leave_processor(int taken, int number) {
  if (taken < 0 || current_processor() != taken) return std::nullopt;
  const std::vector<int> allowed = allowed_processors();
  const auto count = static_cast<std::ptrdiff_t>(allowed.size());
  if (count == 1) return std::nullopt;
  const auto here = std::ranges::find(allowed, taken) - allowed.begin();
  const int to = allowed[static_cast<std::size_t>((here + 1 + number % (count - 1)) % count)];
  return move_to_processor(to) ? std::optional(to) : std::nullopt;
}

std::vector<int> allowed_processors() {
  std::vector<int> processors;
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0)
    for (int processor = 0; processor < CPU_SETSIZE; ++processor)
      if (CPU_ISSET(processor, &mask)) processors.push_back(processor);
  if (processors.empty()) processors.push_back(0);
  return processors;
}

}  // namespace tessera
