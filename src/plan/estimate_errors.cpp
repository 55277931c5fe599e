#include "plan/estimate_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/statistics.h"

namespace tessera::plan {
namespace {

double distance(double ratio) {
  return std::abs(std::log(ratio));
}

}  // namespace

std::vector<KernelError> estimate_errors(const std::map<std::string, Estimate>& estimates) {
  std::map<std::string, KernelError> by_kernel;
  std::map<std::string, std::vector<double>> ratios;
  for (const auto& [key, estimate] : estimates) {
    if (estimate.entry.time_us <= 0 || estimate.estimate_us <= 0) continue;
    const double ratio = estimate.estimate_us / estimate.entry.time_us;
    ratios[estimate.kernel].push_back(ratio);
    KernelError& error = by_kernel[estimate.kernel];
    error.kernel = estimate.kernel;
    ++error.entries;
    if (error.worst_key.empty() || distance(ratio) > distance(error.worst_ratio)) {
      error.worst_ratio = ratio;
      error.worst_key = key;
    }
  }
  std::vector<KernelError> errors;
  for (auto& [kernel, error] : by_kernel) {
    error.median_ratio = median(ratios[kernel]);
    errors.push_back(std::move(error));
  }
  std::ranges::stable_sort(errors, [](const KernelError& a, const KernelError& b) {
    return distance(a.median_ratio) > distance(b.median_ratio);
  });
  return errors;
}

std::string to_text(const std::vector<KernelError>& errors, std::size_t key_width) {
  if (errors.empty()) return {};
  std::string text = fmt::format("{:<28} {:>7} {:>7} {:>7}  {}\n", "estimate / measured", "entries",
                                 "median", "worst", "worst at");
  for (const KernelError& error : errors) {
    const bool is_cut = error.worst_key.size() > key_width;
    text += fmt::format("{:<28} {:>7} {:>7.2f} {:>7.2f}  {}{}\n", error.kernel, error.entries,
                        error.median_ratio, error.worst_ratio, error.worst_key.substr(0, key_width),
                        is_cut ? "..." : "");
  }
  return text;
}

std::string measuring_notes(const std::map<std::string, Estimate>& estimates) {
  const auto count = [&](auto holds) {
    return std::ranges::count_if(estimates,
                                 [&](const auto& entry) { return holds(entry.second.entry); });
  };
  std::string text;
  for (const auto& [number, what] :
       {std::pair{count([](const CostEntry& entry) { return entry.busy; }),
                  "while others used a core"},
        std::pair{count([](const CostEntry& entry) { return entry.outliers > 0; }),
                  "with outliers"},
        std::pair{count([](const CostEntry& entry) { return entry.clock_changed; }),
                  "while the clock changed"}})
    if (number > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", number, what);
  return text;
}

}  // namespace tessera::plan
