#pragma once

// Copies between layouts, fast enough for activations and weights.

#include <cstdint>
#include <vector>

#include "backends/cpu/run/strided_copy.h"
#include "base/layout.h"

namespace tessera::backends::cpu {

// A copy of `dims` from one layout to another; the target's padding becomes zero. Elements of 1, 2,
// 4 or 8 bytes. Cut into rows of independent work.
class LayoutCopy {
 public:
  LayoutCopy() = default;
  LayoutCopy(const Layout& from, const Layout& to, const Dims& dims, std::int64_t element_bytes);

  [[nodiscard]] std::int64_t rows() const;
  void run(const std::byte* source, std::byte* target, std::int64_t row_begin,
           std::int64_t row_end) const;

 private:
  std::vector<StridedCopy> parts_;  // whose units are the rows, one part's after the other's
};

}  // namespace tessera::backends::cpu
