#include "backends/cpu/run/product_plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace tessera::backends::cpu {
namespace {

Layout identity_order(std::size_t rank) {
  Layout layout;
  for (std::size_t i = 0; i < rank; ++i) layout.order.push_back(static_cast<std::uint8_t>(i));
  return layout;
}

// Names the last two dims the other way round.
Layout swap_last_two(Layout layout, std::size_t rank) {
  if (layout.order.empty()) layout.order = identity_order(rank).order;
  const auto swapped = [&](std::uint8_t dim) -> std::uint8_t {
    if (dim + 2U < rank) return dim;
    return static_cast<std::uint8_t>(2 * rank - 3 - dim);
  };
  for (auto& dim : layout.order) dim = swapped(dim);
  for (auto& [dim, size] : layout.blocks) dim = swapped(dim);
  if (layout.blocks.empty() && std::is_sorted(layout.order.begin(), layout.order.end()))
    layout.order.clear();
  return layout;
}

// A vector is a matrix of one row (in front) or of one column (behind).
Dims as_matrix(const Dims& dims, bool column) {
  if (dims.size() != 1) return dims;
  return column ? Dims{dims[0], 1} : Dims{1, dims[0]};
}

}  // namespace

Layout ProductPlan::to_onnx_layout(const Layout& library, std::size_t rank) const {
  return transpose_b ? swap_last_two(library, rank) : library;
}

Result<ProductProblem> ProductPlan::problem(const Dims& a, const Dims& b, const Dims& dst,
                                            const std::optional<Layout>& weights) const {
  Dims left = as_matrix(a, false);
  Dims right = as_matrix(b, true);
  Layout left_layout;
  Layout right_layout = weights.value_or(Layout{});
  if (transpose_a) {
    std::swap(left[left.size() - 1], left[left.size() - 2]);
    left_layout = swap_last_two({}, left.size());
  }
  if (transpose_b) {
    std::swap(right[right.size() - 1], right[right.size() - 2]);
    right_layout = swap_last_two(right_layout, right.size());
  }
  const std::int64_t rows = left[left.size() - 2];
  const std::int64_t depth = left.back();
  const std::int64_t columns = right.back();
  if (right[right.size() - 2] != depth) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("expected operands that agree in the inner size, found {} and {}",
                            to_string(a), to_string(b)));
  }
  const bool one_matrix = numel(right) == depth * columns;
  const std::int64_t batch = numel(dst) / std::max<std::int64_t>(rows * columns, 1);
  ProductProblem result;
  if (one_matrix && !transpose_a) {
    result.src = {{batch * rows, depth}, {}, false};
    result.weights = {{depth, columns}, {}, !weights};
    result.dst = {{batch * rows, columns}, {}, false};
    if (right.size() > 2) {
      // Leading sizes of 1 go; what is left of the order are the last two dims.
      const Layout full = right_layout.order.empty() ? identity_order(right.size()) : right_layout;
      right_layout = {};
      for (const std::uint8_t dim : full.order) {
        if (dim + 2U >= right.size())
          right_layout.order.push_back(static_cast<std::uint8_t>(dim + 2 - right.size()));
      }
    }
    result.weights.layout = right_layout;
  } else {
    const std::size_t rank = std::max(left.size(), right.size());
    const auto widened = [&](const Dims& dims) {
      Dims wide(rank - dims.size(), 1);
      wide.insert(wide.end(), dims.begin(), dims.end());
      return wide;
    };
    if (!left_layout.is_row_major() && rank != left.size())
      return fail(ErrorCode::kUnimplemented, "expected a transposed A of the full rank");
    Dims wide_dst = widened(dst.size() < 2 ? Dims{rows, columns} : dst);
    if (a.size() == 1 || b.size() == 1) {
      wide_dst = widened(Dims{rows, columns});
      if (rank > 2)
        return fail(ErrorCode::kUnimplemented, fmt::format("expected matrices, found {} times {}",
                                                           to_string(a), to_string(b)));
    }
    result.src = {widened(left), left_layout, false};
    result.weights = {widened(right), right_layout, !weights};
    result.dst = {wide_dst, {}, false};
  }
  result.bias = epilogue.bias.has_value();
  for (const PlannedPostOp& planned : epilogue.post_ops) result.post_ops.push_back(planned.op);
  return result;
}

namespace {

// A row by several matrices is no product of the library; whatever the sizes, which may be 0 where
// the plan is priced.
Status check_ranks(const Shape& a, const Shape& b) {
  const bool is_one = b.size() <= 2 || std::all_of(b.begin(), b.end() - 2, [](const Dim& size) {
                        return size.constant() == 1;
                      });
  if (a.size() != 1 || is_one) return {};
  return fail(ErrorCode::kUnimplemented,
              fmt::format("expected matrices, found {} times {}", to_string(a), to_string(b)));
}

}  // namespace

Result<ProductPlan> plan_product(const artefact::KernelSpec& spec, Constants constants,
                                 std::size_t epilogue_steps) {
  if (spec.steps.empty() || spec.outputs.size() != 1)
    return bad_spec(spec, "expected steps and one output");
  const auto& step = spec.steps[0];
  ProductPlan plan;
  plan.gemm = step.op_type == "Gemm";
  plan.a_operand = step_input(step, 0);
  plan.b_operand = step_input(step, 1);
  for (const std::int32_t number : {plan.a_operand, plan.b_operand}) {
    const auto* decl = operand_decl(spec, number);
    if (decl == nullptr) return bad_spec(spec, "expected operands from outside");
    if (decl->dtype != DType::kFp32)
      return fail(ErrorCode::kUnimplemented,
                  fmt::format("expected fp32, found {}", to_string(decl->dtype)));
  }
  TESSERA_TRY(check_ranks(operand_decl(spec, plan.a_operand)->shape,
                          operand_decl(spec, plan.b_operand)->shape));
  if (plan.gemm) {
    plan.transpose_a = step.attributes.get_int("transA", 0) != 0;
    plan.transpose_b = step.attributes.get_int("transB", 0) != 0;
    for (const char* name : {"alpha", "beta"}) {
      const float value = step.attributes.get_float(name, 1);
      if (value != 1 && !(name == std::string_view("beta") && step_input(step, 2) < 0)) {
        return fail(ErrorCode::kUnimplemented,
                    fmt::format("attribute '{}': expected 1, found {}", name, value));
      }
    }
  }
  plan.b_layout = operand_decl(spec, plan.b_operand)->layout;
  const std::int32_t bias = plan.gemm ? step_input(step, 2) : -1;
  const std::size_t rank = spec.outputs[0].shape.size();
  for (EpiloguePlan& cut : plan_epilogue(spec, constants, bias < 0, rank - 1)) {
    if (cut.steps != epilogue_steps) continue;
    plan.epilogue = std::move(cut);
    if (bias < 0) return plan;
    const auto* decl = operand_decl(spec, bias);
    if (decl == nullptr || decl->dtype != DType::kFp32)
      return bad_spec(spec, "expected an fp32 C from outside");
    const bool row = !decl->shape.empty() && decl->shape.back() == spec.outputs[0].shape.back() &&
                     std::all_of(decl->shape.begin(), decl->shape.end() - 1,
                                 [](const Dim& d) { return d.constant() == 1; });
    if (!row) {
      return fail(ErrorCode::kUnimplemented,
                  fmt::format("input 'C': expected one value for each column, found {}",
                              to_string(decl->shape)));
    }
    plan.epilogue.bias = bias;
    return plan;
  }
  return bad_spec(spec,
                  fmt::format("expected an epilogue of which oneDNN takes {} steps, found another",
                              epilogue_steps));
}

}  // namespace tessera::backends::cpu
