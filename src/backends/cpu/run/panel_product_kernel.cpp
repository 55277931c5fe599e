// "simd.product": a product with packed columns, packed by the compiler where they are constant and
// here otherwise. Threads take matrices of a batch, or columns or rows of the result.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "backends/cpu/run/anchor.h"
#include "backends/cpu/run/kernels.h"
#include "backends/cpu/run/panel_product_plan.h"
#include "backends/cpu/run/physical.h"
#include "backends/cpu/run/product_simd.h"

namespace tessera::backends::cpu {
namespace {

// Rows and depth of A that stay in a core's second cache while all panels pass; the panel's part of
// that depth stays in its first one.
constexpr std::int64_t kBlockRows = 144;
constexpr std::int64_t kBlockDepth = 512;
constexpr double kTooSmallToCut = 2e5;  // flops

class PanelProductInstance final : public KernelInstance {
 public:
  PanelProductInstance(const Anchor<PanelProductPlan>& anchor, InstanceDims dims)
      : anchor_(anchor), dims_(std::move(dims)) {}

  Status build(int threads);
  [[nodiscard]] std::int64_t scratch_bytes() const override { return chunk_scratch_ * chunks_; }
  Status execute(const ExecuteArgs& args) override;

 private:
  enum class Cut : std::uint8_t { kBatch, kColumns, kRows };
  struct Piece {
    ChunkRange batch, rows, columns;
  };
  void read_sizes(const ProductProblem& problem);
  void choose_cut(int threads);
  [[nodiscard]] Piece piece(std::int64_t index) const;
  void run_piece(const ExecuteArgs& args, const Piece& piece, float* scratch) const;
  template <typename T>  // of what B is stored in
  void run_block(const ExecuteArgs& args, std::int64_t item, const T* panels, ChunkRange rows,
                 ChunkRange columns, float* scratch) const;
  [[nodiscard]] bool packs() const {
    return !is_constant(anchor_.spec, anchor_.plan.product.b_operand);
  }

  const Anchor<PanelProductPlan>& anchor_;
  InstanceDims dims_;
  std::int64_t rows_ = 0, depth_ = 0, columns_ = 0;          // of one matrix of the batch
  std::vector<std::int64_t> a_begin_ = {0}, b_begin_ = {0};  // by matrix: its elements
  Cut cut_ = Cut::kRows;
  std::int64_t chunks_ = 0;
  std::int64_t tail_floats_ = 0;
  std::int64_t chunk_scratch_ = 0;
  BoundProgram tail_;
  bool has_tail_ = false;
};

// By matrix of the result: where that of an operand begins, whose leading sizes broadcast.
std::vector<std::int64_t> matrix_begins(const Dims& dims, const Dims& dst) {
  const std::size_t leading = dst.size() - 2;
  std::vector<std::int64_t> begins = {0};
  std::int64_t stride = dims[leading] * dims[leading + 1];
  for (std::size_t i = leading; i-- > 0; stride *= dims[i]) {
    std::vector<std::int64_t> wider;
    for (std::int64_t at = 0; at < dst[i]; ++at)
      for (const std::int64_t begin : begins)
        wider.push_back(begin + (dims[i] == 1 ? 0 : at * stride));
    begins = std::move(wider);
  }
  return begins;
}

void PanelProductInstance::read_sizes(const ProductProblem& problem) {
  rows_ = *(problem.dst.dims.end() - 2);
  columns_ = problem.dst.dims.back();
  depth_ = problem.src.dims.back();
  if (!packs()) return;
  a_begin_ = matrix_begins(problem.src.dims, problem.dst.dims);
  b_begin_ = matrix_begins(problem.weights.dims, problem.dst.dims);
}

// Packed columns are shared rather than packed twice; else each thread should have less to read.
void PanelProductInstance::choose_cut(int threads) {
  const auto batch = static_cast<std::int64_t>(a_begin_.size());
  const std::int64_t panels = (columns_ + kProductColumns - 1) / kProductColumns;
  const double flops =
      2.0 * static_cast<double>(batch * rows_ * columns_) * static_cast<double>(depth_);
  const std::int64_t wanted = flops < kTooSmallToCut ? 1 : std::max(threads, 1);
  const bool few_rows = rows_ < 2 * wanted || packs() || columns_ > rows_;
  cut_ = batch >= wanted ? Cut::kBatch : few_rows && panels >= wanted ? Cut::kColumns : Cut::kRows;
  chunks_ = std::min(wanted, cut_ == Cut::kBatch ? batch : cut_ == Cut::kColumns ? panels : rows_);
}

PanelProductInstance::Piece PanelProductInstance::piece(std::int64_t index) const {
  Piece piece{{0, static_cast<std::int64_t>(a_begin_.size())}, {0, rows_}, {0, columns_}};
  switch (cut_) {
    case Cut::kBatch: piece.batch = chunk_range(piece.batch.end, chunks_, index); break;
    case Cut::kColumns:
      piece.columns = chunk_range(columns_, chunks_, index, kProductColumns);
      break;
    case Cut::kRows: piece.rows = chunk_range(rows_, chunks_, index); break;
  }
  return piece;
}

Status PanelProductInstance::build(int threads) {
  const ProductPlan& plan = anchor_.plan.product;
  if (numel(dims_.outputs[0]) == 0) return {};
  TESSERA_ASSIGN(
      const ProductProblem problem,
      plan.problem(operand_dims(anchor_.spec, dims_, plan.a_operand),
                   operand_dims(anchor_.spec, dims_, plan.b_operand), dims_.outputs[0], Layout{}));
  read_sizes(problem);
  choose_cut(threads);
  has_tail_ = !anchor_.tail.empty();
  std::int64_t bytes = 0;
  if (has_tail_) {
    TESSERA_ASSIGN(tail_, anchor_.tail.bind(dims_));
    bytes = (tail_.scratch_bytes() + 63) / 64 * 64;
  }
  tail_floats_ = bytes / static_cast<std::int64_t>(sizeof(float));
  if (packs()) {
    const std::int64_t columns = piece(0).columns.end;
    bytes += panel_elements(depth_, columns + kProductColumns) *
             static_cast<std::int64_t>(sizeof(float));
  }
  chunk_scratch_ = (bytes + 63) / 64 * 64;
  return {};
}

// Some rows of a matrix with some columns, and what stands behind them.
template <typename T>
void PanelProductInstance::run_block(const ExecuteArgs& args, std::int64_t item, const T* panels,
                                     ChunkRange rows, ChunkRange columns, float* scratch) const {
  const ProductPlan& plan = anchor_.plan.product;
  const float* bias = plan.epilogue.bias ? anchor_.operand(*plan.epilogue.bias, args) : nullptr;
  const std::int64_t first = item * rows_ * columns_;  // of the matrix of the result
  PanelProductOf<T> product;
  product.rows = rows.end - rows.begin;
  product.panel_stride = depth_ * kProductColumns;
  product.columns = columns.end - columns.begin;
  product.c = floats(args.outputs[0]) + first + rows.begin * columns_ + columns.begin;
  product.c_stride = columns_;
  const float* a = anchor_.operand(plan.a_operand, args) +
                   a_begin_[static_cast<std::size_t>(item)] + rows.begin * depth_;
  const PanelEpilogue& epilogue = anchor_.plan.epilogue;
  const float* addend = epilogue.addend ? anchor_.operand(*epilogue.addend, args) : nullptr;
  std::array<const float*, kBlockRows> a_rows{};
  product.a = a_rows.data();
  const std::int64_t parts = std::max<std::int64_t>(1, (depth_ + kBlockDepth - 1) / kBlockDepth);
  for (std::int64_t part = 0; part < parts; ++part) {
    const ChunkRange depth = chunk_range(depth_, parts, part);
    for (std::int64_t row = 0; row < product.rows; ++row)
      a_rows[static_cast<std::size_t>(row)] = a + row * depth_ + depth.begin;
    product.panels = panels + depth.begin * kProductColumns;
    product.depth = depth.end - depth.begin;
    if (part > 0) {
      product.start = product.c;
      product.start_stride = product.c_stride;
    } else if (bias != nullptr) {
      product.start = bias + columns.begin;
    }
    if (part + 1 == parts) {
      if (addend != nullptr) product.addend = addend + (product.c - floats(args.outputs[0]));
      if (epilogue.range) product.range = &*epilogue.range;
    }
    panel_rows_product(product);
  }
  if (!has_tail_) return;
  if (product.columns == columns_)
    return tail_.run(args, first + rows.begin * columns_, first + rows.end * columns_, scratch);
  for (std::int64_t row = rows.begin; row < rows.end; ++row)
    tail_.run(args, first + row * columns_ + columns.begin, first + row * columns_ + columns.end,
              scratch);
}

void PanelProductInstance::run_piece(const ExecuteArgs& args, const Piece& piece,
                                     float* scratch) const {
  const ProductPlan& plan = anchor_.plan.product;
  const float* b = anchor_.operand(plan.b_operand, args);
  for (std::int64_t item = piece.batch.begin; item < piece.batch.end; ++item) {
    const auto multiply = [&](const auto* panels) {
      for (std::int64_t row = piece.rows.begin; row < piece.rows.end; row += kBlockRows)
        run_block(args, item, panels, {row, std::min(piece.rows.end, row + kBlockRows)},
                  piece.columns, scratch);
    };
    const std::int64_t first = piece.columns.begin * depth_;
    if (anchor_.plan.bf16_weights) {
      multiply(reinterpret_cast<const std::uint16_t*>(b) + first);
    } else if (!packs()) {
      multiply(b + first);
    } else {
      float* packed = scratch + tail_floats_;
      const std::int64_t column_stride = plan.transpose_b ? depth_ : 1;
      pack_panels(
          b + b_begin_[static_cast<std::size_t>(item)] + piece.columns.begin * column_stride,
          plan.transpose_b ? 1 : columns_, column_stride, depth_,
          piece.columns.end - piece.columns.begin, packed);
      multiply(packed);
    }
  }
}

Status PanelProductInstance::execute(const ExecuteArgs& args) {
  const auto one = [&](std::int64_t i) {
    run_piece(args, piece(i), floats(args.scratch + i * chunk_scratch_));
  };
  args.parallel->run(chunks_, one);
  return {};
}

}  // namespace

Layout panel_weights_layout(bool transpose_b) {
  constexpr auto kColumns = static_cast<std::uint16_t>(kProductColumns);
  return transpose_b ? Layout{{0, 1}, {{0, kColumns}}} : Layout{{1, 0}, {{1, kColumns}}};
}

Result<PanelProductPlan> plan_panel_product(const artefact::KernelSpec& spec, Constants constants) {
  PanelProductPlan plan;
  TESSERA_ASSIGN(plan.product, plan_product(spec, constants, 0));
  ProductPlan& product = plan.product;
  const auto& weights = *operand_decl(spec, product.b_operand);
  if (is_constant(spec, product.b_operand) && weights.shape.size() != 2)
    return fail(ErrorCode::kUnimplemented,
                fmt::format("expected constants of rank 2, found {}", to_string(weights.shape)));
  if (product.transpose_a)
    return fail(ErrorCode::kUnimplemented, "attribute 'transA': expected 0, found 1");
  const auto own_bias = product.epilogue.bias;
  plan.epilogue = plan_panel_epilogue(spec, constants, !product.gemm && !own_bias,
                                      spec.outputs[0].shape.size() - 1, product.epilogue);
  if (own_bias) product.epilogue.bias = own_bias;
  return plan;
}

Result<std::unique_ptr<LoadedKernel>> load_panel_product(const artefact::KernelSpec& spec,
                                                         Constants constants) {
  // The plan is of the weights that ONNX has.
  artefact::KernelSpec meant = spec;
  const OperandRef weights =
      spec.steps.empty() ? OperandRef{} : operand_ref(spec, step_input(spec.steps[0], 1));
  const bool bf16_weights = weights.kind == OperandRef::Kind::kConstant &&
                            spec.constants[weights.index].dtype == DType::kBf16;
  if (bf16_weights) meant.constants[weights.index].dtype = DType::kFp32;
  TESSERA_ASSIGN(PanelProductPlan plan, plan_panel_product(meant, constants));
  plan.bf16_weights = bf16_weights;
  const ProductPlan& product = plan.product;
  const Layout wanted =
      is_constant(spec, product.b_operand) ? panel_weights_layout(product.transpose_b) : Layout{};
  if (product.b_layout != wanted)
    return bad_spec(spec, "expected weights in " + wanted.to_string() + ", found " +
                              product.b_layout.to_string());
  const std::size_t first_tail_step = 1 + product.epilogue.steps;
  return load_anchor<PanelProductInstance>(spec, constants, std::move(plan), first_tail_step);
}

}  // namespace tessera::backends::cpu
