#include "ops/nn/contraction.h"

#include <algorithm>
#include <vector>

namespace tessera::ops::nn {
namespace {

constexpr std::int64_t kRowBlock = 64;     // rows of one piece of work
constexpr std::int64_t kColumnBlock = 64;  // columns of one piece of work
constexpr std::int64_t kDepthBlock = 256;  // products summed between visits of the sums
constexpr std::int64_t kRowsAtOnce = 2;    // sums kept in registers: kRowsAtOnce x kColumnsAtOnce
constexpr std::int64_t kColumnsAtOnce = 8;
// Not a multiple of 4 KiB / 8, so that the rows of a block do not fall into the same cache sets.
constexpr std::int64_t kPitch = kColumnBlock + kColumnsAtOnce;

struct Buffers {
  std::vector<double> left = std::vector<double>(kRowBlock * kDepthBlock);
  std::vector<double> right = std::vector<double>(kDepthBlock * kPitch);
  std::vector<double> sums = std::vector<double>(kRowBlock * kPitch);
};

// sums[r][c] += left[r][k] * right[k][c] for two rows (of pitch kDepthBlock) and eight columns.
void add_products(const double* left, const double* right, std::int64_t depth, double* sums) {
  double first[kColumnsAtOnce];
  double second[kColumnsAtOnce];
  for (std::int64_t c = 0; c < kColumnsAtOnce; ++c) {
    first[c] = sums[c];
    second[c] = sums[kPitch + c];
  }
  for (std::int64_t k = 0; k < depth; ++k) {
    const double a = left[k];
    const double b = left[kDepthBlock + k];
    for (std::int64_t c = 0; c < kColumnsAtOnce; ++c) {
      first[c] += a * right[k * kPitch + c];
      second[c] += b * right[k * kPitch + c];
    }
  }
  for (std::int64_t c = 0; c < kColumnsAtOnce; ++c) {
    sums[c] = first[c];
    sums[kPitch + c] = second[c];
  }
}

std::int64_t blocks_of(std::int64_t size, std::int64_t block) {
  return (size + block - 1) / block;
}

struct Block {
  std::int64_t index, row_begin, row_end, first, last;
};

void run_block(const Contraction& work, Contraction::Scratch& scratch, const Block& block,
               Buffers& buffers) {
  const std::int64_t rows = block.row_end - block.row_begin;
  const std::int64_t columns = block.last - block.first;
  // No more than is used: a group of a depthwise convolution is one row by few columns.
  const std::int64_t summed_rows = blocks_of(rows, kRowsAtOnce) * kRowsAtOnce;
  std::fill_n(buffers.sums.begin(), summed_rows * kPitch, 0.0);
  for (std::int64_t k = 0; k < work.depth; k += kDepthBlock) {
    const std::int64_t k_end = std::min(work.depth, k + kDepthBlock);
    for (std::int64_t r = 0; r < rows; ++r) {
      work.load_left(block.index, block.row_begin + r, k, k_end,
                     buffers.left.data() + r * kDepthBlock);
    }
    if (columns < kColumnBlock) std::fill_n(buffers.right.begin(), (k_end - k) * kPitch, 0.0);
    work.load_right(scratch, block.index, k, k_end, block.first, block.last, buffers.right.data(),
                    kPitch);
    for (std::int64_t c = 0; c < columns; c += kColumnsAtOnce) {
      for (std::int64_t r = 0; r < rows; r += kRowsAtOnce) {
        // A last odd row is summed together with what an earlier block left behind it; that sum is
        // never stored.
        add_products(buffers.left.data() + r * kDepthBlock, buffers.right.data() + c, k_end - k,
                     buffers.sums.data() + r * kPitch + c);
      }
    }
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    work.store(block.index, block.row_begin + r, block.first, block.last,
               buffers.sums.data() + r * kPitch);
  }
}

}  // namespace

void contract(KernelContext& context, const Contraction& work) {
  if (work.count == 0 || work.rows == 0 || work.columns == 0) return;
  const std::int64_t row_blocks = blocks_of(work.rows, kRowBlock);
  const std::int64_t column_blocks = blocks_of(work.columns, kColumnBlock);
  const std::int64_t pieces = row_blocks * column_blocks * work.count;
  // Blocks of columns outermost: what the scratch holds for one serves all products and rows.
  const double flops_of_piece = 2.0 * static_cast<double>(std::min(work.rows, kRowBlock)) *
                                static_cast<double>(std::min(work.columns, kColumnBlock)) *
                                static_cast<double>(std::max<std::int64_t>(1, work.depth));
  const std::int64_t grain =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(2e6 / flops_of_piece));
  context.parallel_for(pieces, grain, [&](std::int64_t begin, std::int64_t end) {
    Buffers buffers;
    const auto scratch = work.make_scratch();
    for (std::int64_t piece = begin; piece < end; ++piece) {
      const std::int64_t row = piece % row_blocks * kRowBlock;
      const std::int64_t index = piece / row_blocks % work.count;
      const std::int64_t column = piece / row_blocks / work.count * kColumnBlock;
      run_block(work, *scratch,
                {index, row, std::min(work.rows, row + kRowBlock), column,
                 std::min(work.columns, column + kColumnBlock)},
                buffers);
    }
  });
}

}  // namespace tessera::ops::nn
