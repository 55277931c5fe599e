#include "backends/cpu/run/layout_copy.h"

#include <algorithm>

namespace tessera::backends::cpu {
namespace {

// One dim in one layout: where its index lies, as digits of a mixed radix.
struct DimOrder {
  struct Digit {
    std::int64_t size, stride;
  };
  std::vector<Digit> digits;  // fastest first; the last has no end
  std::int64_t padded = 0;

  [[nodiscard]] std::int64_t offset(std::int64_t index) const {
    std::int64_t result = 0;
    for (std::size_t i = 0; i + 1 < digits.size(); ++i) {
      result += index % digits[i].size * digits[i].stride;
      index /= digits[i].size;
    }
    return result + index * digits.back().stride;
  }
};

std::vector<DimOrder> dim_orders(const Layout& layout, const Dims& dims) {
  const Dims padded = padded_dims(layout, dims);
  std::vector<DimOrder> orders(dims.size());
  std::vector<std::int64_t> blocks(dims.size(), 1);
  std::int64_t stride = 1;
  for (std::size_t i = layout.blocks.size(); i-- > 0;) {
    const auto [dim, size] = layout.blocks[i];
    orders[dim].digits.push_back({size, stride});
    blocks[dim] *= size;
    stride *= size;
  }
  for (std::size_t i = dims.size(); i-- > 0;) {
    const std::size_t dim = layout.order.empty() ? i : layout.order[i];
    orders[dim].padded = padded[dim];
    orders[dim].digits.push_back({padded[dim] / blocks[dim], stride});
    stride *= padded[dim] / blocks[dim];
  }
  return orders;
}

// Indices of one dim from `begin` on: all combinations of places of the axes.
struct Range {
  std::int64_t from = 0, to = 0;
  std::vector<CopyAxis> axes;
};

// The units at which a digit of either order begins, smallest first; where one does not divide the
// next, only 1.
std::vector<std::int64_t> common_units(const DimOrder& from, const DimOrder& to) {
  std::vector<std::int64_t> units = {1};
  for (const DimOrder* order : {&from, &to}) {
    std::int64_t unit = 1;
    for (std::size_t i = 0; i + 1 < order->digits.size(); ++i)
      units.push_back(unit *= order->digits[i].size);
  }
  std::sort(units.begin(), units.end());
  units.erase(std::unique(units.begin(), units.end()), units.end());
  return units;
}

bool chain(const std::vector<std::int64_t>& units) {
  for (std::size_t i = 1; i < units.size(); ++i)
    if (units[i] % units[i - 1] != 0) return false;
  return true;
}

// Indices [begin, end), begin a multiple of the largest unit or of whatever was cut off before.
void add_ranges(const DimOrder& from, const DimOrder& to, std::int64_t begin, std::int64_t end,
                std::vector<Range>& ranges) {
  const auto units = common_units(from, to);
  if (!chain(units)) {
    for (std::int64_t i = begin; i < end; ++i) ranges.push_back({from.offset(i), to.offset(i), {}});
    return;
  }
  while (begin < end) {
    // The largest unit that begins here and fits.
    std::size_t level = units.size() - 1;
    while (level > 0 && (begin % units[level] != 0 || end - begin < units[level])) --level;
    const bool top = level + 1 == units.size();
    const std::int64_t room =
        top ? end - begin : std::min(end - begin, units[level + 1] - begin % units[level + 1]);
    const std::int64_t count = room / units[level];
    Range range{from.offset(begin), to.offset(begin), {}};
    range.axes.push_back({count, from.offset(units[level]), to.offset(units[level])});
    for (std::size_t i = level; i-- > 0;)
      range.axes.push_back({units[i + 1] / units[i], from.offset(units[i]), to.offset(units[i])});
    ranges.push_back(std::move(range));
    begin += count * units[level];
  }
}

}  // namespace

LayoutCopy::LayoutCopy(const Layout& from, const Layout& to, const Dims& dims,
                       std::int64_t element_bytes) {
  const auto sources = dim_orders(from, dims);
  const auto targets = dim_orders(to, dims);
  // One range of each dim.
  const auto add_parts = [&](const std::vector<std::vector<Range>>& ranges, bool zeros) {
    std::vector<Range> parts = {{}};
    for (const auto& choices : ranges) {
      std::vector<Range> longer;
      for (const Range& part : parts) {
        for (const Range& choice : choices) {
          Range joined = part;
          joined.from += choice.from;
          joined.to += choice.to;
          joined.axes.insert(joined.axes.end(), choice.axes.begin(), choice.axes.end());
          longer.push_back(std::move(joined));
        }
      }
      parts = std::move(longer);
    }
    for (Range& part : parts)
      parts_.emplace_back(std::move(part.axes), part.from, part.to, element_bytes, zeros);
  };
  std::vector<std::vector<Range>> valid(dims.size());
  for (std::size_t d = 0; d < dims.size(); ++d)
    add_ranges(sources[d], targets[d], 0, dims[d], valid[d]);
  add_parts(valid, false);
  // The padding of each dim, where the dims before it are valid.
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (targets[d].padded == dims[d]) continue;
    auto ranges = valid;
    for (std::size_t i = d; i < dims.size(); ++i) {
      ranges[i].clear();
      add_ranges(targets[i], targets[i], i == d ? dims[i] : 0, targets[i].padded, ranges[i]);
    }
    add_parts(ranges, true);
  }
}

std::int64_t LayoutCopy::rows() const {
  std::int64_t rows = 0;
  for (const StridedCopy& part : parts_) rows += part.units();
  return rows;
}

void LayoutCopy::run(const std::byte* source, std::byte* target, std::int64_t row_begin,
                     std::int64_t row_end) const {
  std::int64_t first = 0;  // of the part
  for (const StridedCopy& part : parts_) {
    const std::int64_t begin = std::max(row_begin - first, std::int64_t{0});
    const std::int64_t end = std::min(row_end - first, part.units());
    if (begin < end) part.run(source, target, begin, end);
    first += part.units();
  }
}

}  // namespace tessera::backends::cpu
