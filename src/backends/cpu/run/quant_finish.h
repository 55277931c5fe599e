#pragma once

// What becomes of the sums of a quantised convolution or product: real values, elementwise steps,
// and the result in its dtype. Tile by tile, while the sums are in the cache.

#include <vector>

#include "backends/cpu/run/quant_plan.h"
#include "backends/cpu/run/quant_simd.h"

namespace tessera::backends::cpu {

// A tile of the result seen as a row-major matrix of `columns` columns.
struct QuantTile {
  std::int64_t row = 0;
  std::int64_t rows = 0;
  std::int64_t column = 0;
  std::int64_t columns = 0;  // at most the width of the finish
};

class QuantFinish {
 public:
  // `columns`: of the whole result; `max_rows`: of a tile; `width`: between the rows of a tile's
  // sums, whole panels. The plan must outlive it.
  static Result<QuantFinish> make(const QuantPlan& plan, std::int64_t columns,
                                  std::int64_t max_rows, std::int64_t width = kPanelColumns);

  // Bytes that run() needs, a multiple of 64.
  [[nodiscard]] std::int64_t scratch_bytes() const;

  // `sums`: tile.rows rows of `width`.
  void run(const ExecuteArgs& args, const QuantTile& tile, const std::int32_t* sums,
           std::byte* scratch) const;

 private:
  void load_operands(const ExecuteArgs& args, const QuantTile& tile, float* tiles) const;

  const QuantPlan* plan_ = nullptr;
  std::int64_t columns_ = 0;
  std::int64_t width_ = kPanelColumns;
  std::int64_t tile_elements_ = 0;
  bool direct_ = false;       // to the result at once: scale_ and bias_ count its quanta
  std::vector<float> scale_;  // for each column, and more
  std::vector<float> bias_;
  BoundProgram program_;
};

}  // namespace tessera::backends::cpu
