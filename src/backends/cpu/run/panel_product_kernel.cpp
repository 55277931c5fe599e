// "simd.product": a product with packed weights. Threads take columns or rows of the result,
// whichever leaves each of them less to read.

#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/run/elementwise_program.h"
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

class PanelProductKernel final : public LoadedKernel {
 public:
  PanelProductKernel(artefact::KernelSpec spec, Constants constants, ProductPlan plan,
                     ElementwiseProgram tail)
      : spec_(std::move(spec)),
        constants_(constants.begin(), constants.end()),
        plan_(std::move(plan)),
        tail_(std::move(tail)) {}

  Result<std::unique_ptr<KernelInstance>> instantiate(const InstanceDims& dims,
                                                      int threads) const override;

 private:
  friend class PanelProductInstance;
  artefact::KernelSpec spec_;
  std::vector<std::span<const std::byte>> constants_;
  ProductPlan plan_;
  ElementwiseProgram tail_;
};

class PanelProductInstance final : public KernelInstance {
 public:
  explicit PanelProductInstance(const PanelProductKernel& kernel) : kernel_(kernel) {}

  Status build(const InstanceDims& dims, int threads);
  [[nodiscard]] std::int64_t scratch_bytes() const override { return chunk_scratch_ * chunks_; }
  Status execute(const ExecuteArgs& args) override;

 private:
  void run_block(const ExecuteArgs& args, ChunkRange rows, ChunkRange columns,
                 float* scratch) const;
  const float* operand(std::int32_t number, const ExecuteArgs& args) const {
    const OperandRef ref = operand_ref(kernel_.spec_, number);
    return ref.kind == OperandRef::Kind::kInput ? floats(args.inputs[ref.index])
                                                : floats(kernel_.constants_[ref.index].data());
  }

  const PanelProductKernel& kernel_;
  std::int64_t rows_ = 0, depth_ = 0, columns_ = 0;
  bool by_columns_ = false;
  std::int64_t chunks_ = 0;
  std::int64_t chunk_scratch_ = 0;
  BoundProgram tail_;
  bool has_tail_ = false;
};

Status PanelProductInstance::build(const InstanceDims& dims, int threads) {
  const ProductPlan& plan = kernel_.plan_;
  TESSERA_ASSIGN(
      const ProductProblem problem,
      plan.problem(operand_dims(kernel_.spec_, dims, plan.a_operand),
                   operand_dims(kernel_.spec_, dims, plan.b_operand), dims.outputs[0], Layout{}));
  rows_ = problem.dst.dims[0];
  columns_ = problem.dst.dims[1];
  depth_ = problem.src.dims[1];
  if (rows_ * columns_ == 0) return {};
  const std::int64_t panels = (columns_ + kProductColumns - 1) / kProductColumns;
  by_columns_ = rows_ < 2 * threads || (columns_ > rows_ && panels >= 2 * threads);
  const double flops = 2.0 * static_cast<double>(rows_ * columns_) * static_cast<double>(depth_);
  const std::int64_t wanted = flops < kTooSmallToCut ? 1 : std::max(threads, 1);
  chunks_ = std::min(wanted, by_columns_ ? panels : rows_);
  has_tail_ = !kernel_.tail_.empty();
  if (!has_tail_) return {};
  TESSERA_ASSIGN(tail_, kernel_.tail_.bind(dims));
  chunk_scratch_ = (tail_.scratch_bytes() + 63) / 64 * 64;
  return {};
}

// Some rows of A with some columns of B, and what stands behind them.
void PanelProductInstance::run_block(const ExecuteArgs& args, ChunkRange rows, ChunkRange columns,
                                     float* scratch) const {
  const ProductPlan& plan = kernel_.plan_;
  float* result = floats(args.outputs[0]);
  const float* bias = plan.epilogue.bias ? operand(*plan.epilogue.bias, args) : nullptr;
  PanelProduct product;
  product.a_stride = depth_;
  product.rows = rows.end - rows.begin;
  product.panel_stride = depth_ * kProductColumns;
  product.columns = columns.end - columns.begin;
  product.c = result + rows.begin * columns_ + columns.begin;
  product.c_stride = columns_;
  const float* a = operand(plan.a_operand, args) + rows.begin * depth_;
  const float* panels = operand(plan.b_operand, args) + columns.begin * depth_;
  const std::int64_t parts = std::max<std::int64_t>(1, (depth_ + kBlockDepth - 1) / kBlockDepth);
  for (std::int64_t part = 0; part < parts; ++part) {
    const ChunkRange depth = chunk_range(depth_, parts, part);
    product.a = a + depth.begin;
    product.panels = panels + depth.begin * kProductColumns;
    product.depth = depth.end - depth.begin;
    product.start = part == 0 && bias != nullptr ? bias + columns.begin : nullptr;
    product.adds = part > 0;
    panel_rows_product(product);
  }
  if (!has_tail_) return;
  if (product.columns == columns_)
    return tail_.run(args, rows.begin * columns_, rows.end * columns_, scratch);
  for (std::int64_t row = rows.begin; row < rows.end; ++row)
    tail_.run(args, row * columns_ + columns.begin, row * columns_ + columns.end, scratch);
}

Status PanelProductInstance::execute(const ExecuteArgs& args) {
  if (chunks_ == 0) return {};
  const auto one = [&](std::int64_t i) {
    ChunkRange rows{0, rows_};
    ChunkRange columns{0, columns_};
    if (by_columns_)
      columns = chunk_range(columns_, chunks_, i, kProductColumns);
    else
      rows = chunk_range(rows_, chunks_, i);
    for (std::int64_t row = rows.begin; row < rows.end; row += kBlockRows)
      run_block(args, {row, std::min(rows.end, row + kBlockRows)}, columns,
                floats(args.scratch + i * chunk_scratch_));
  };
  if (chunks_ == 1) {
    one(0);
  } else {
    args.parallel->run(chunks_, one);
  }
  return {};
}

Result<std::unique_ptr<KernelInstance>> PanelProductKernel::instantiate(const InstanceDims& dims,
                                                                        int threads) const {
  auto instance = std::make_unique<PanelProductInstance>(*this);
  TESSERA_TRY(instance->build(dims, threads));
  return std::unique_ptr<KernelInstance>(std::move(instance));
}

}  // namespace

Layout panel_weights_layout(bool transpose_b) {
  constexpr auto kColumns = static_cast<std::uint16_t>(kProductColumns);
  return transpose_b ? Layout{{0, 1}, {{0, kColumns}}} : Layout{{1, 0}, {{1, kColumns}}};
}

Result<ProductPlan> plan_panel_product(const artefact::KernelSpec& spec, Constants constants) {
  TESSERA_ASSIGN(ProductPlan plan, plan_product(spec, constants, 0));
  const auto& weights = *operand_decl(spec, plan.b_operand);
  if (!is_constant(spec, plan.b_operand) || weights.shape.size() != 2)
    return fail(ErrorCode::kUnimplemented,
                fmt::format("expected a constant matrix, found {} {}",
                            is_constant(spec, plan.b_operand) ? "a constant" : "an input",
                            to_string(weights.shape)));
  if (plan.transpose_a)
    return fail(ErrorCode::kUnimplemented, "attribute 'transA': expected 0, found 1");
  const std::size_t channel = spec.outputs[0].shape.size() - 1;
  if (plan.epilogue.bias) return plan;
  for (EpiloguePlan& cut : plan_epilogue(spec, constants, !plan.gemm, channel)) {
    if (!cut.post_ops.empty()) continue;
    plan.epilogue = std::move(cut);
    break;
  }
  return plan;
}

Result<std::unique_ptr<LoadedKernel>> load_panel_product(const artefact::KernelSpec& spec,
                                                         Constants constants) {
  TESSERA_ASSIGN(ProductPlan plan, plan_panel_product(spec, constants));
  const Layout wanted = panel_weights_layout(plan.transpose_b);
  if (plan.b_layout != wanted)
    return bad_spec(
        spec, "expected weights in " + wanted.to_string() + ", found " + plan.b_layout.to_string());
  const std::size_t first = 1 + plan.epilogue.steps;
  ElementwiseProgram tail;
  if (spec.steps.size() > first) {
    TESSERA_ASSIGN(tail, ElementwiseProgram::parse(spec, constants, first));
  }
  return std::unique_ptr<LoadedKernel>(
      new PanelProductKernel(spec, constants, std::move(plan), std::move(tail)));
}

}  // namespace tessera::backends::cpu
