#pragma once

// A Resize read from a spec, as taps along each spatial dim.

#include <vector>

#include "backends/cpu/run/spec_util.h"

namespace tessera::backends::cpu {

struct ResizePlan {
  bool linear = false;
  std::string coordinates;    // coordinate_transformation_mode
  std::string nearest;        // nearest_mode
  std::vector<float> scales;  // for each dim; empty: sizes decide
  Layout layout;

  // The two source indices of each output along dim `d`, and the share of the second.
  struct Tap {
    std::int64_t low = 0;
    std::int64_t high = 0;
    float share = 0;
  };
  [[nodiscard]] std::vector<Tap> taps(std::size_t d, std::int64_t in, std::int64_t out) const;
};

// Errors: modes and attributes without code, with what it found.
Result<ResizePlan> plan_resize(const artefact::KernelSpec& spec, Constants constants);

}  // namespace tessera::backends::cpu
