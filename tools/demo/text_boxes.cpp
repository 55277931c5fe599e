#include "demo/text_boxes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "base/error.h"

namespace tessera::demo {
namespace {

constexpr int kSideMultiple = 32;

// The map with what was visited so far.
class Components {
 public:
  Components(std::span<const float> map, int width, int height, float threshold)
      : map_(map),
        width_(width),
        height_(height),
        threshold_(threshold),
        visited_(map.size(), false) {}

  // The bounds of the component that holds the pixel, all of which is visited then; nothing where
  // the pixel is no text.
  std::optional<Rectangle> take(int x, int y) {
    if (!is_new_text(x, y)) return std::nullopt;
    Rectangle bounds{x, y, x + 1, y + 1};
    std::vector<std::pair<int, int>> open;
    push(x, y, open);
    while (!open.empty()) {
      const auto [column, row] = open.back();
      open.pop_back();
      bounds = {std::min(bounds.left, column), std::min(bounds.top, row),
                std::max(bounds.right, column + 1), std::max(bounds.bottom, row + 1)};
      for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
          if (is_new_text(column + dx, row + dy)) push(column + dx, row + dy, open);
    }
    return bounds;
  }

  [[nodiscard]] double mean_inside(const Rectangle& area) const {
    double sum = 0;
    for (int y = area.top; y < area.bottom; ++y)
      for (int x = area.left; x < area.right; ++x) sum += map_[index_of(x, y)];
    return sum / (static_cast<double>(area.right - area.left) * (area.bottom - area.top));
  }

 private:
  [[nodiscard]] std::size_t index_of(int x, int y) const {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) +
           static_cast<std::size_t>(x);
  }
  [[nodiscard]] bool is_new_text(int x, int y) const {
    return x >= 0 && x < width_ && y >= 0 && y < height_ && map_[index_of(x, y)] > threshold_ &&
           !visited_[index_of(x, y)];
  }
  void push(int x, int y, std::vector<std::pair<int, int>>& open) {
    visited_[index_of(x, y)] = true;
    open.emplace_back(x, y);
  }

  std::span<const float> map_;
  int width_;
  int height_;
  float threshold_;
  std::vector<bool> visited_;
};

Rectangle grown(const Rectangle& area, double ratio, int width, int height) {
  const double across = area.right - area.left;
  const double down = area.bottom - area.top;
  const int distance = static_cast<int>(std::lround(across * down * ratio / (2 * (across + down))));
  return {std::max(0, area.left - distance), std::max(0, area.top - distance),
          std::min(width, area.right + distance), std::min(height, area.bottom + distance)};
}

// A box belongs to the line of the first box whose middle it reaches above.
void sort_for_reading(std::vector<TextBox>& boxes) {
  std::ranges::sort(boxes, {},
                    [](const TextBox& box) { return std::pair(box.area.top, box.area.left); });
  for (auto line = boxes.begin(); line != boxes.end();) {
    const int middle = (line->area.top + line->area.bottom) / 2;
    const auto next =
        std::find_if(line, boxes.end(), [&](const TextBox& box) { return box.area.top > middle; });
    std::sort(line, next,
              [](const TextBox& a, const TextBox& b) { return a.area.left < b.area.left; });
    line = next;
  }
}

}  // namespace

Result<Tensor> detector_input(const Picture& picture) {
  constexpr std::array<float, 3> kMean = {0.485F, 0.456F,
                                          0.406F};  // of the channels in the network's order
  constexpr std::array<float, 3> kDeviation = {0.229F, 0.224F, 0.225F};
  if (picture.width_px() % kSideMultiple != 0 || picture.height_px() % kSideMultiple != 0)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("picture: expected sides that are multiples of {}, found {} x {}",
                            kSideMultiple, picture.width_px(), picture.height_px()));
  TESSERA_ASSIGN(Tensor input,
                 Tensor::zeros(DType::kFp32, {1, 3, picture.height_px(), picture.width_px()}));
  auto* elements = static_cast<float*>(input.mutable_data());
  const std::size_t pixels = picture.rgb().size() / 3;
  for (std::size_t channel = 0; channel < 3; ++channel)
    for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
      const float level = static_cast<float>(picture.rgb()[pixel * 3 + 2 - channel]) / 255.0F;
      elements[channel * pixels + pixel] = (level - kMean[channel]) / kDeviation[channel];
    }
  return input;
}

Result<std::vector<TextBox>> find_text_boxes(const Tensor& probability, const BoxOptions& options) {
  const Dims& dims = probability.dims();
  if (probability.dtype() != DType::kFp32 || dims.size() != 4 || dims[0] != 1 || dims[1] != 1)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("probability map: expected fp32[1x1xHEIGHTxWIDTH], found {}[{}]",
                            to_string(probability.dtype()), to_string(dims)));
  const int height = static_cast<int>(dims[2]);
  const int width = static_cast<int>(dims[3]);
  Components components(probability.span<float>(), width, height, options.threshold);
  std::vector<TextBox> boxes;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const auto bounds = components.take(x, y);
      if (!bounds) continue;
      if (std::min(bounds->right - bounds->left, bounds->bottom - bounds->top) <
          options.min_side_px)
        continue;
      const double score = components.mean_inside(*bounds);
      if (score >= options.min_score) boxes.push_back({*bounds, score});
    }
  sort_for_reading(boxes);  // before they grow: lines that are close may overlap then
  for (TextBox& box : boxes) box.area = grown(box.area, options.unclip_ratio, width, height);
  return boxes;
}

Status check_agreement(const std::vector<TextBox>& mixed, const std::vector<TextBox>& cpu,
                       int tolerance_px) {
  if (mixed.size() != cpu.size())
    return fail(
        ErrorCode::kInternal,
        fmt::format(
            "the plans disagree: the mixed plan finds {} text boxes, the plan for the CPU {}",
            mixed.size(), cpu.size()));
  for (std::size_t i = 0; i < mixed.size(); ++i) {
    const Rectangle& a = mixed[i].area;
    const Rectangle& b = cpu[i].area;
    const int apart = std::max({std::abs(a.left - b.left), std::abs(a.top - b.top),
                                std::abs(a.right - b.right), std::abs(a.bottom - b.bottom)});
    if (apart > tolerance_px)
      return fail(
          ErrorCode::kInternal,
          fmt::format(
              "the plans disagree: edges of text box {} are {} pixels apart, expected at most {}",
              i, apart, tolerance_px));
  }
  return {};
}

double covered_share(const Rectangle& area, const Rectangle& box) {
  const int across = std::min(area.right, box.right) - std::max(area.left, box.left);
  const int down = std::min(area.bottom, box.bottom) - std::max(area.top, box.top);
  if (across <= 0 || down <= 0) return 0;
  return static_cast<double>(across) * down /
         (static_cast<double>(area.right - area.left) * (area.bottom - area.top));
}

Status check_lines_found(const std::vector<TextLine>& lines, const std::vector<TextBox>& boxes) {
  constexpr double kMostOfIt = 0.8;
  for (const TextLine& line : lines) {
    double found = 0;
    for (const TextBox& box : boxes) found += covered_share(bounds_of(line), box.area);
    if (found < kMostOfIt)
      return fail(ErrorCode::kInternal,
                  fmt::format("the line '{}' was drawn, but only {:.0f} % of it lies in text "
                              "boxes: expected at least {:.0f} %",
                              line.text, found * 100, kMostOfIt * 100));
  }
  return {};
}

}  // namespace tessera::demo
