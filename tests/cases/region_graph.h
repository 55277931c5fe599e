#pragma once

// The regions of a program, and which needs a result of which.

#include <cstddef>
#include <vector>

#include "artefact/read/program_image.h"

namespace tessera::testing {

class RegionGraph {
 public:
  explicit RegionGraph(const artefact::MethodImage& method);

  [[nodiscard]] bool is_dag() const;
  // The most regions of which none needs a result of another, directly or by way of others.
  [[nodiscard]] std::size_t width() const;

 private:
  std::size_t region_count_ = 0;          // transfers are parts of their own, behind the regions
  std::vector<std::vector<bool>> needs_;  // transitive: needs_[a][b] where b needs a
};

}  // namespace tessera::testing
