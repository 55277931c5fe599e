#pragma once

// Copies between layouts, fast enough for activations and weights.

#include <cstdint>
#include <vector>

#include "base/layout.h"

namespace tessera::backends::cpu {

// A copy of `dims` from one layout to another; the target's padding becomes zero. Elements of 1, 2,
// 4 or 8 bytes. Cut into rows of independent work: runs of the target's slowest dims.
class LayoutCopy {
 public:
  LayoutCopy() = default;
  LayoutCopy(const Layout& from, const Layout& to, const Dims& dims, std::int64_t element_bytes);

  [[nodiscard]] std::int64_t rows() const { return rows_; }
  void run(const std::byte* source, std::byte* target, std::int64_t row_begin,
           std::int64_t row_end) const;

 private:
  template <typename T>
  void run_rows(const T* source, T* target, std::int64_t row_begin, std::int64_t row_end) const;

  std::int64_t element_bytes_ = 4;
  std::int64_t rows_ = 1;
  std::int64_t row_elements_ = 0;      // stored elements of the target in a row
  std::vector<std::int64_t> counts_;   // of the target's physical dims
  std::vector<std::size_t> logical_;   // which dim each of them belongs to
  std::vector<std::int64_t> weights_;  // its share in that dim's index
  Dims dims_;
  std::vector<std::vector<std::int64_t>> source_offsets_;  // by logical dim and index
};

}  // namespace tessera::backends::cpu
