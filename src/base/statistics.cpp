#include "base/statistics.h"

#include <algorithm>

namespace tessera {

SampleSummary summarize(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::ranges::sort(samples);
  const std::size_t count = samples.size();
  const double low = samples[count / 4];
  const double high = samples[count * 3 / 4];
  SampleSummary result{samples[count / 2], high - low, static_cast<int>(count), 0};
  const double reach = kOutlierSpreads * std::max(result.spread, kLeastSpread * result.median);
  result.outliers = static_cast<int>(std::ranges::count_if(
      samples, [&](double sample) { return sample < low - reach || sample > high + reach; }));
  return result;
}

double median(std::vector<double> samples) {
  return summarize(std::move(samples)).median;
}

}  // namespace tessera
