#include "backends/cpu/run/strided_copy.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "backends/cpu/run/transpose_simd.h"

namespace tessera::backends::cpu {
namespace {

constexpr std::int64_t kUnitElements = 4096;

// Drops axes of one place and merges those that both sides walk as one; the fastest of the target
// comes last.
std::vector<CopyAxis> collapsed(std::vector<CopyAxis> axes) {
  std::erase_if(axes, [](const CopyAxis& axis) { return axis.count == 1; });
  std::stable_sort(axes.begin(), axes.end(),
                   [](const CopyAxis& a, const CopyAxis& b) { return a.to > b.to; });
  std::vector<CopyAxis> result;
  for (const CopyAxis& axis : axes) {
    const bool merges = !result.empty() && result.back().from == axis.from * axis.count &&
                        result.back().to == axis.to * axis.count;
    if (merges) {
      result.back() = {result.back().count * axis.count, axis.from, axis.to};
    } else {
      result.push_back(axis);
    }
  }
  return result;
}

// A few elements that lie together on both sides.
template <typename T>
void copy_run(const T* from, T* to, std::int64_t count) {
  switch (count) {
    case 4: std::memcpy(to, from, 4 * sizeof(T)); return;
    case 8: std::memcpy(to, from, 8 * sizeof(T)); return;
    case 16: std::memcpy(to, from, 16 * sizeof(T)); return;
    default: std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(T));
  }
}

template <typename T>
void copy_plane(const T* from, T* to, const CopyAxis& rows, std::int64_t row_count,
                const CopyAxis& columns) {
  if (columns.from == 1 && columns.to == 1) {
    for (std::int64_t r = 0; r < row_count; ++r)
      copy_run(from + r * rows.from, to + r * rows.to, columns.count);
    return;
  }
  if constexpr (!std::is_same_v<T, Bytes16>) {
    if (rows.from == 1 && columns.to == 1) {
      transpose_plane(from, columns.from, to, rows.to, columns.count, row_count);
      return;
    }
  }
  for (std::int64_t r = 0; r < row_count; ++r)
    for (std::int64_t c = 0; c < columns.count; ++c)
      to[r * rows.to + c * columns.to] = from[r * rows.from + c * columns.from];
}

template <typename T>
void zero_plane(T* to, const CopyAxis& rows, std::int64_t row_count, const CopyAxis& columns) {
  for (std::int64_t r = 0; r < row_count; ++r)
    for (std::int64_t c = 0; c < columns.count; ++c) to[r * rows.to + c * columns.to] = T{};
}

}  // namespace

StridedCopy::StridedCopy(std::vector<CopyAxis> axes, std::int64_t from, std::int64_t to,
                         std::int64_t element_bytes, bool zeros)
    : from_(from), to_(to), element_bytes_(element_bytes), zeros_(zeros) {
  std::int64_t total = 1;
  for (const CopyAxis& axis : axes) total *= axis.count;
  if (total == 0) return;
  axes = collapsed(std::move(axes));
  if (!axes.empty()) {
    inner_ = axes.back();
    axes.pop_back();
  }
  // The axis of the source's neighbours beside that of the target's, else the next faster one.
  const auto unit =
      std::find_if(axes.begin(), axes.end(), [](const CopyAxis& axis) { return axis.from == 1; });
  const auto middle = unit != axes.end() ? unit : axes.empty() ? unit : axes.end() - 1;
  if (middle != axes.end()) {
    middle_ = *middle;
    axes.erase(middle);
  }
  outer_ = std::move(axes);
  unit_places_ = std::clamp<std::int64_t>(kUnitElements / inner_.count / 16 * 16, 16,
                                          std::max<std::int64_t>(middle_.count, 16));
  middle_units_ = (middle_.count + unit_places_ - 1) / unit_places_;
  units_ = middle_units_;
  for (const CopyAxis& axis : outer_) units_ *= axis.count;
}

template <typename T>
void StridedCopy::run_units(const T* source, T* target, std::int64_t begin,
                            std::int64_t end) const {
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t first = unit % middle_units_ * unit_places_;
    std::int64_t rest = unit / middle_units_;
    std::int64_t from = from_ + first * middle_.from;
    std::int64_t to = to_ + first * middle_.to;
    for (auto axis = outer_.rbegin(); axis != outer_.rend(); ++axis) {
      from += rest % axis->count * axis->from;
      to += rest % axis->count * axis->to;
      rest /= axis->count;
    }
    const std::int64_t count = std::min(unit_places_, middle_.count - first);
    if (zeros_) {
      zero_plane(target + to, middle_, count, inner_);
    } else {
      copy_plane(source + from, target + to, middle_, count, inner_);
    }
  }
}

void StridedCopy::run(const std::byte* source, std::byte* target, std::int64_t unit_begin,
                      std::int64_t unit_end) const {
  const auto typed = [&](auto zero) {
    using T = decltype(zero);
    run_units(reinterpret_cast<const T*>(source), reinterpret_cast<T*>(target), unit_begin,
              unit_end);
  };
  switch (element_bytes_) {
    case 1: return typed(std::uint8_t{});
    case 2: return typed(std::uint16_t{});
    case 4: return typed(std::uint32_t{});
    case 8: return typed(std::uint64_t{});
    default: return typed(Bytes16{});
  }
}

}  // namespace tessera::backends::cpu
