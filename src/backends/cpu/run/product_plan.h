#pragma once

// A matrix product with its epilogue, read from a spec. Sizes come later, with each instance.

#include <optional>

#include "backends/cpu/run/conv_plan.h"

namespace tessera::backends::cpu {

struct ProductPlan {
  bool gemm = false;
  bool transpose_a = false;
  bool transpose_b = false;
  std::int32_t a_operand = 0;
  std::int32_t b_operand = 0;
  Layout b_layout;
  EpiloguePlan epilogue;

  // The product as oneDNN sees it: A's leading dims folded into its rows where B is one matrix.
  [[nodiscard]] Result<ProductProblem> problem(const Dims& a, const Dims& b, const Dims& dst,
                                               const std::optional<Layout>& weights) const;
  // B's order over the library's dims [.., K, N] as a layout over its own.
  [[nodiscard]] Layout to_onnx_layout(const Layout& library, std::size_t rank) const;
};

// Errors as of plan_conv.
Result<ProductPlan> plan_product(const artefact::KernelSpec& spec, Constants constants,
                                 std::size_t epilogue_steps);

}  // namespace tessera::backends::cpu
