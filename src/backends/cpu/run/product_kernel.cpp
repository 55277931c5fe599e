// "onednn.matmul": a product through oneDNN, in row bands of the folded left operand, or in
// matrices of a batch.

#include <algorithm>
#include <map>

#include "backends/cpu/run/anchor.h"
#include "backends/cpu/run/kernels.h"
#include "backends/cpu/run/parallel_status.h"
#include "backends/cpu/run/physical.h"
#include "backends/cpu/run/primitive_cache.h"
#include "backends/cpu/run/product_plan.h"

namespace tessera::backends::cpu {
namespace {

struct Chunk {
  std::unique_ptr<OnednnCall> call;
  std::int64_t src = 0, weights = 0, bias = 0, dst = 0, dst_elements = 0;
  std::vector<std::int64_t> operands;
};

class ProductInstance final : public KernelInstance {
 public:
  ProductInstance(const Anchor<ProductPlan>& anchor, InstanceDims dims)
      : anchor_(anchor), dims_(std::move(dims)) {}

  Status build(int threads);
  [[nodiscard]] std::int64_t scratch_bytes() const override {
    return chunk_scratch_ * static_cast<std::int64_t>(chunks_.size());
  }
  Status execute(const ExecuteArgs& args) override;

 private:
  // Where the work is cut: rows of the result, its columns, or not at all.
  enum class Cut { kNone, kRows, kColumns };
  [[nodiscard]] Cut choose_cut(const ProductProblem& problem, int threads) const;
  void replace_empty_sums(ProductProblem& problem);
  Status add_chunk(ProductProblem problem, Cut cut, ChunkRange range);

  const Anchor<ProductPlan>& anchor_;
  InstanceDims dims_;
  std::map<std::int64_t, std::shared_ptr<const OnednnPrimitive>> primitives_;
  std::vector<Chunk> chunks_;
  std::vector<float> zeros_;  // both operands, where they have no element
  BoundProgram tail_;
  bool has_tail_ = false;
  std::int64_t library_scratch_ = 0;
  std::int64_t chunk_scratch_ = 0;
};

ProductInstance::Cut ProductInstance::choose_cut(const ProductProblem& problem, int threads) const {
  const double flops = 2.0 * static_cast<double>(numel(problem.dst.dims)) *
                       static_cast<double>(problem.src.dims.back());
  if (threads <= 1 || flops < 2e5) return Cut::kNone;
  const std::size_t rank = problem.dst.dims.size();
  if (rank == 2 && problem.src.layout.is_row_major() && problem.dst.dims[0] >= 2 * threads)
    return Cut::kRows;
  // Columns are dense where the result is one row and the weights hold a column in one piece.
  const bool one_row = rank == 2 && problem.dst.dims[0] == 1 && !problem.weights.any;
  if (one_row && problem.weights.layout.blocks.empty() &&
      problem.weights.layout.order == std::vector<std::uint8_t>{1, 0})
    return Cut::kColumns;
  return Cut::kNone;
}

Status ProductInstance::add_chunk(ProductProblem problem, Cut cut, ChunkRange range) {
  const ProductPlan& plan = anchor_.plan;
  Chunk chunk;
  const std::int64_t depth = problem.src.dims.back();
  const std::int64_t columns = problem.dst.dims.back();
  chunk.dst_elements = numel(problem.dst.dims);
  if (cut == Cut::kRows) {
    chunk.src = range.begin * depth;
    chunk.dst = range.begin * columns;
    chunk.dst_elements = (range.end - range.begin) * columns;
    problem.src.dims[0] = problem.dst.dims[0] = range.end - range.begin;
  } else if (cut == Cut::kColumns) {
    chunk.weights = range.begin * depth;
    chunk.dst = chunk.bias = range.begin;
    chunk.dst_elements = range.end - range.begin;
    problem.weights.dims[1] = problem.dst.dims[1] = range.end - range.begin;
  }
  // Operands over the folded result: [rows, columns], each 1 where it is broadcast.
  for (std::size_t i = 0; i < problem.post_ops.size(); ++i) {
    std::int64_t offset = 0;
    if (problem.post_ops[i].binary) {
      const Dims own = operand_dims(anchor_.spec, dims_, plan.epilogue.post_ops[i].operand);
      const bool full = numel(own) == numel(dims_.outputs[0]);
      if (!full && (numel(own) != own.back() || own.back() != dims_.outputs[0].back())) {
        return fail(ErrorCode::kUnimplemented,
                    "expected an operand of the result's dims or one row, found " + to_string(own));
      }
      Dims seen = problem.dst.dims;
      if (!full) std::fill(seen.begin(), seen.end() - 1, 1);
      problem.post_ops[i].operand = {seen, {}, false};
      offset = full ? chunk.dst : chunk.bias;
    }
    chunk.operands.push_back(offset);
  }
  auto& made = primitives_[range.end - range.begin];
  if (made == nullptr) {
    TESSERA_ASSIGN(made, compiled_primitive(problem));
  }
  TESSERA_ASSIGN(chunk.call, OnednnCall::make(made));
  library_scratch_ = std::max(library_scratch_, made->scratch_bytes());
  chunks_.push_back(std::move(chunk));
  return {};
}

// The library leaves a result of empty sums unwritten: one column and row of zeros gives it.
void ProductInstance::replace_empty_sums(ProductProblem& problem) {
  constexpr std::int64_t kLargestBlock = 64;  // of weights in the library's own layouts
  if (problem.src.dims.back() != 0) return;
  problem.src.dims.back() = 1;
  *(problem.weights.dims.end() - 2) = 1;
  const std::int64_t weights = numel(problem.weights.dims) + kLargestBlock;
  zeros_.assign(
      static_cast<std::size_t>(std::max(numel(problem.src.dims), weights * kLargestBlock)), 0.0F);
}

Status ProductInstance::build(int threads) {
  const ProductPlan& plan = anchor_.plan;
  if (numel(dims_.outputs[0]) == 0) return {};
  TESSERA_ASSIGN(ProductProblem problem,
                 plan.problem(operand_dims(anchor_.spec, dims_, plan.a_operand),
                              operand_dims(anchor_.spec, dims_, plan.b_operand), dims_.outputs[0],
                              plan.b_layout));
  replace_empty_sums(problem);
  const Cut cut = choose_cut(problem, threads);
  const std::int64_t count = cut == Cut::kRows      ? problem.dst.dims[0]
                             : cut == Cut::kColumns ? problem.dst.dims[1]
                                                    : 1;
  const std::int64_t parts = cut == Cut::kNone ? 1 : std::min<std::int64_t>(count, threads);
  for (std::int64_t i = 0; i < parts; ++i) {
    const ChunkRange range = chunk_range(count, parts, i, count >= 64 ? 8 : 1);
    if (range.begin < range.end) TESSERA_TRY(add_chunk(problem, cut, range));
  }
  std::int64_t tail_scratch = 0;
  has_tail_ = !anchor_.tail.empty();
  if (has_tail_) {
    TESSERA_ASSIGN(tail_, anchor_.tail.bind(dims_));
    tail_scratch = tail_.scratch_bytes();
  }
  chunk_scratch_ = (std::max(library_scratch_, tail_scratch) + 63) / 64 * 64;
  return {};
}

Status ProductInstance::execute(const ExecuteArgs& args) {
  const ProductPlan& plan = anchor_.plan;
  if (chunks_.empty()) return {};
  const float* a = zeros_.empty() ? anchor_.operand(plan.a_operand, args) : zeros_.data();
  const float* b = zeros_.empty() ? anchor_.operand(plan.b_operand, args) : zeros_.data();
  const float* bias = plan.epilogue.bias ? anchor_.operand(*plan.epilogue.bias, args) : nullptr;
  float* result = floats(args.outputs[0]);
  return run_chunks(args.parallel, static_cast<std::int64_t>(chunks_.size()),
                    [&](std::int64_t i) -> Status {
                      Chunk& chunk = chunks_[static_cast<std::size_t>(i)];
                      std::byte* scratch = args.scratch + i * chunk_scratch_;
                      chunk.call->set(kSrc, a + chunk.src);
                      chunk.call->set(kWeights, b + chunk.weights);
                      if (bias != nullptr) chunk.call->set(kBias, bias + chunk.bias);
                      chunk.call->set(kDst, result + chunk.dst);
                      chunk.call->set(kScratch, scratch);
                      for (std::size_t p = 0; p < chunk.operands.size(); ++p) {
                        const std::int32_t number = plan.epilogue.post_ops[p].operand;
                        if (number >= 0)
                          chunk.call->set(kPostOp + static_cast<int>(p),
                                          anchor_.operand(number, args) + chunk.operands[p]);
                      }
                      TESSERA_TRY(chunk.call->run());
                      if (has_tail_)
                        tail_.run(args, chunk.dst, chunk.dst + chunk.dst_elements, floats(scratch));
                      return {};
                    });
}

}  // namespace

Result<std::unique_ptr<LoadedKernel>> load_product(const artefact::KernelSpec& spec,
                                                   Constants constants) {
  const auto option = spec.options.find("post_op_steps");
  const std::size_t steps =
      option == spec.options.end() ? 0 : static_cast<std::size_t>(option->second);
  TESSERA_ASSIGN(ProductPlan plan, plan_product(spec, constants, steps));
  return load_anchor<ProductInstance>(spec, constants, std::move(plan), 1 + steps);
}

}  // namespace tessera::backends::cpu
