#include "base/machine_facts.h"

#include <charconv>
#include <map>
#include <set>
#include <string_view>

#include "base/system_file.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// "32K", "8192K", "1M": bytes; 0 for what is none.
std::int64_t parse_size(std::string_view text) {
  std::int64_t size = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (code != std::errc() || size < 0 || size > (std::int64_t{1} << 40)) return 0;
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (unit == "K") return size << 10;
  if (unit == "M") return size << 20;
  return unit.empty() ? size : 0;
}

fs::path folder_of(int processor, const fs::path& root) {
  return root / ("cpu" + std::to_string(processor));
}

}  // namespace

std::vector<CacheLevel> data_caches(const std::vector<int>& processors, const fs::path& root) {
  std::map<std::string, std::int64_t> sizes;          // by level
  std::set<std::pair<std::string, std::string>> met;  // level and who shares it
  for (const int processor : processors) {
    for (int index = 0;; ++index) {
      const fs::path cache =
          folder_of(processor, root) / "cache" / ("index" + std::to_string(index));
      const std::string level = first_line(cache / "level");
      if (level.empty()) break;
      if (first_line(cache / "type") == "Instruction") continue;
      const std::int64_t size_bytes = parse_size(first_line(cache / "size"));
      if (size_bytes == 0 || !met.emplace(level, first_line(cache / "shared_cpu_list")).second)
        continue;
      sizes[level] += size_bytes;
    }
  }
  std::vector<CacheLevel> levels;
  for (const auto& [level, size_bytes] : sizes)
    if (levels.empty() || size_bytes > levels.back().size_bytes)
      levels.push_back({"L" + level, size_bytes});
  return levels;
}

std::optional<double> processor_mhz(int processor, const fs::path& root) {
  const std::string text = first_line(folder_of(processor, root) / "cpufreq" / "scaling_cur_freq");
  std::int64_t khz = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), khz);
  if (parsed.ec != std::errc() || khz <= 0) return std::nullopt;
  return static_cast<double>(khz) / 1000;
}

}  // namespace tessera
