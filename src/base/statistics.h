#pragma once

// What repeated timings of one thing say.

#include <vector>

namespace tessera {

struct SampleSummary {
  double median = 0;
  double spread = 0;  // between the quartiles
  int count = 0;
  int outliers = 0;  // further from the nearer quartile than kOutlierSpreads spreads
  friend bool operator==(const SampleSummary&, const SampleSummary&) = default;
};

inline constexpr double kOutlierSpreads = 3;
// A spread below this share of the median is noise of the clock; outliers are judged by at least
// as much.
inline constexpr double kLeastSpread = 0.02;

// In the samples' unit. Of an even number, the upper one of the middle two is the median; the
// median ignores outliers by itself, so none is taken out. No samples: all zero.
SampleSummary summarize(std::vector<double> samples);

double median(std::vector<double> samples);

}  // namespace tessera
