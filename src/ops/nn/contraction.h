#pragma once

// Sums of products, the core of the reference convolutions and products: out[i][j] = sum over k of
// left[i][k] * right[k][j].
//
// Everything is summed in double, k ascending, so that the result does not depend on how the work
// is divided. Integers of up to 32 bits stay exact as long as sums stay below 2^53.

#include <cstdint>
#include <memory>

#include "ops/op.h"

namespace tessera::ops::nn {

// Equal products, `count` of them, each rows x depth by depth x columns. Calls come from several
// threads at once.
class Contraction {
 public:
  std::int64_t count = 1;
  std::int64_t rows = 0;
  std::int64_t depth = 0;
  std::int64_t columns = 0;

  // What a thread keeps from call to call; derived classes hold what they work out for a run of
  // columns.
  struct Scratch {
    virtual ~Scratch() = default;
  };

  Contraction() = default;
  Contraction(const Contraction&) = delete;
  Contraction& operator=(const Contraction&) = delete;
  virtual ~Contraction() = default;

  [[nodiscard]] virtual std::unique_ptr<Scratch> make_scratch() const {
    return std::make_unique<Scratch>();
  }
  // out[k - k_begin] = left[row][k] for k in [k_begin, k_end).
  virtual void load_left(std::int64_t index, std::int64_t row, std::int64_t k_begin,
                         std::int64_t k_end, double* out) const = 0;
  // out[(k - k_begin) * pitch + j - first] = right[k][j] for j in [first, last).
  virtual void load_right(Scratch& scratch, std::int64_t index, std::int64_t k_begin,
                          std::int64_t k_end, std::int64_t first, std::int64_t last, double* out,
                          std::int64_t pitch) const = 0;
  // Takes the sums of columns [first, last) of a row.
  virtual void store(std::int64_t index, std::int64_t row, std::int64_t first, std::int64_t last,
                     const double* sums) const = 0;
};

// Runs them all, in parallel over blocks of rows and columns. With depth 0 the sums are 0.
void contract(KernelContext& context, const Contraction& contraction);

}  // namespace tessera::ops::nn
