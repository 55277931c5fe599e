#pragma once

// Copies between strided orders of elements in memory: the loop of layout conversions and
// transpositions.

#include <cstdint>
#include <vector>

namespace tessera::backends::cpu {

// `count` places, and the elements between neighbours on both sides.
struct CopyAxis {
  std::int64_t count = 1, from = 0, to = 0;
};

// An element of 16 bytes, which is only moved.
struct Bytes16 {
  std::uint64_t low = 0, high = 0;
};

// Every combination of places of the axes is one element, which no other combination writes. Cut
// into units of independent work of some thousand elements.
class StridedCopy {
 public:
  // `from`, `to`: the first element on both sides. `zeros`: the target becomes zero, and nothing is
  // read. Elements of 1, 2, 4, 8 or 16 bytes.
  StridedCopy(std::vector<CopyAxis> axes, std::int64_t from, std::int64_t to,
              std::int64_t element_bytes, bool zeros = false);

  [[nodiscard]] std::int64_t units() const { return units_; }
  void run(const std::byte* source, std::byte* target, std::int64_t unit_begin,
           std::int64_t unit_end) const;

 private:
  template <typename T>
  void run_units(const T* source, T* target, std::int64_t begin, std::int64_t end) const;

  std::vector<CopyAxis> outer_;  // slowest first
  CopyAxis middle_;              // cut into units
  CopyAxis inner_;               // of the target's neighbours
  std::int64_t from_, to_, element_bytes_;
  bool zeros_;
  std::int64_t unit_places_ = 1;  // of the middle axis
  std::int64_t middle_units_ = 0, units_ = 0;
};

}  // namespace tessera::backends::cpu
