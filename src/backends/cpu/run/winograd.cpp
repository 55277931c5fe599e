#include "backends/cpu/run/winograd.h"

#include <array>
#include <vector>

#include "backends/cpu/run/product_simd.h"

namespace tessera::backends::cpu {
namespace {

using Row = std::array<double, kWinogradTaps>;

// By point p: (1, p, p^2) by the product of p's distances from the other finite ones. Infinity is
// the last one.
std::vector<Row> weight_rows(std::int64_t tile) {
  const std::vector<double> points =
      tile == 2
          ? std::vector<double>{0, 1, -1}
          : std::vector<double>{0, kWinogradNear, -kWinogradNear, kWinogradFar, -kWinogradFar};
  std::vector<Row> rows;
  for (const double p : points) {
    double scale = 1;
    for (const double q : points)
      if (q != p) scale *= p - q;
    rows.push_back({1 / scale, p / scale, p * p / scale});
  }
  rows.push_back({0, 0, 1});
  return rows;
}

}  // namespace

void pack_winograd_weights(const float* weights, std::int64_t dst_channels,
                           std::int64_t src_channels, std::int64_t tile, float* packed) {
  const std::vector<Row> rows = weight_rows(tile);
  const std::int64_t plane = panel_elements(src_channels, dst_channels);
  constexpr std::int64_t kTaps = kWinogradTaps * kWinogradTaps;
  for (std::int64_t o = 0; o < dst_channels; ++o) {
    for (std::int64_t i = 0; i < src_channels; ++i) {
      const float* window = weights + (o * src_channels + i) * kTaps;
      float* at =
          packed + (o / kProductColumns * src_channels + i) * kProductColumns + o % kProductColumns;
      for (const Row& down : rows) {
        for (const Row& across : rows) {
          double sum = 0;
          for (std::size_t y = 0; y < down.size(); ++y)
            for (std::size_t x = 0; x < across.size(); ++x)
              sum += down[y] * across[x] * static_cast<double>(window[y * across.size() + x]);
          *at = static_cast<float>(sum);
          at += plane;
        }
      }
      for (std::int64_t tap = 0; tap < kTaps; ++tap, at += plane) *at = window[tap];
    }
  }
}

}  // namespace tessera::backends::cpu
