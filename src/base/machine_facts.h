#pragma once

// What Linux's /sys tells about the processors.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

struct CacheLevel {
  std::string name;             // "L1": its data half; "L2", "L3"
  std::int64_t size_bytes = 0;  // of all caches of this level together
  friend bool operator==(const CacheLevel&, const CacheLevel&) = default;
};

// The caches for data that stand around `processors`, the smallest level first; a cache that
// several of them share counts once. What cannot be read is left out.
std::vector<CacheLevel> data_caches(const std::vector<int>& processors,
                                    const std::filesystem::path& root = "/sys/devices/system/cpu");

// The present clock of a processor; nothing where the kernel does not tell (most virtual machines).
std::optional<double> processor_mhz(int processor,
                                    const std::filesystem::path& root = "/sys/devices/system/cpu");

}  // namespace tessera
