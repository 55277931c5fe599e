// Gemm and MatMul with their epilogues, through oneDNN and by own code.

#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/compile/families.h"
#include "backends/cpu/run/panel_product_plan.h"
#include "backends/cpu/run/product_plan.h"
#include "base/float_convert.h"

namespace tessera::backends::cpu {
namespace {

// Scales a constant operand of a Gemm in place of its attribute, which becomes 1.
Status fold_scale(SpecDraft& draft, const char* attribute, std::size_t input) {
  auto& step = draft.spec.steps[0];
  const float value = step.attributes.get_float(attribute, 1);
  if (value == 1 || step_input(step, input) < 0) return {};
  const OperandRef ref = operand_ref(draft.spec, step.inputs[input]);
  if (ref.kind != OperandRef::Kind::kConstant ||
      draft.spec.constants[ref.index].dtype != DType::kFp32) {
    return fail(
        ErrorCode::kUnimplemented,
        fmt::format("Gemm: attribute '{}': expected 1 where input {} is no fp32 constant, found {}",
                    attribute, input, value));
  }
  const Tensor& old = draft.constants[ref.index];
  TESSERA_ASSIGN(Tensor scaled, Tensor::zeros(DType::kFp32, old.dims()));
  auto* out = static_cast<float*>(scaled.mutable_data());
  const auto elements = old.span<float>();
  std::transform(elements.begin(), elements.end(), out, [&](float x) { return x * value; });
  draft.constants[ref.index] = std::move(scaled);
  step.attributes.set(attribute, 1.0F);
  return {};
}

// A C that is no row of constants is added by a step of its own.
void split_addend(SpecDraft& draft) {
  auto& spec = draft.spec;
  auto& gemm = spec.steps[0];
  const auto* decl = operand_decl(spec, step_input(gemm, 2));
  if (decl == nullptr) return;
  if (decl->shape.empty() && is_constant(spec, gemm.inputs[2]) &&
      spec.outputs[0].shape.back().constant() == 1) {
    spec.constants[operand_ref(spec, gemm.inputs[2]).index].shape =
        to_shape({1});  // one column: one value
    draft.constants[operand_ref(spec, gemm.inputs[2]).index] =
        draft.constants[operand_ref(spec, gemm.inputs[2]).index].reshaped({1});
    return;
  }
  const auto dims = constant_dims(decl->shape);
  const Dim& columns = spec.outputs[0].shape.back();
  if (is_constant(spec, gemm.inputs[2]) && dims && !decl->shape.empty() &&
      Dim(numel(*dims)) == decl->shape.back() && decl->shape.back() == columns)
    return;
  const std::int32_t first = result_number(spec, 0);
  for (auto& step : spec.steps) {
    for (auto& number : step.inputs) number += number >= first ? 1 : 0;
  }
  for (auto& number : spec.output_operands) number += number >= first ? 1 : 0;
  artefact::KernelStep add;
  add.op_type = "Add";
  add.inputs = {first, gemm.inputs[2]};
  gemm.inputs.resize(2);
  spec.steps.insert(spec.steps.begin() + 1, std::move(add));
}

Result<SpecDraft> prepared(const SpecDraft& draft) {
  SpecDraft result = draft;
  if (result.spec.steps[0].op_type == "Gemm") {
    TESSERA_TRY(fold_scale(result, "alpha", 1));
    TESSERA_TRY(fold_scale(result, "beta", 2));
    // One value for all columns: written out, as the bias of a product is.
    const OperandRef c = operand_ref(result.spec, step_input(result.spec.steps[0], 2));
    const auto columns = result.spec.outputs[0].shape.back().constant();
    if (c.kind == OperandRef::Kind::kConstant && result.constants[c.index].numel() == 1 &&
        columns && *columns != 1 && result.constants[c.index].dtype() == DType::kFp32) {
      const std::vector<float> wide(static_cast<std::size_t>(*columns),
                                    result.constants[c.index].span<float>()[0]);
      result.constants[c.index] = Tensor::of<float>(DType::kFp32, {*columns}, wide);
      result.spec.constants[c.index].shape = to_shape({*columns});
    }
    if (result.spec.steps[0].attributes.get_float("beta", 1) == 1) split_addend(result);
  }
  align_elementwise_constants(result, 1);
  return result;
}

struct Choice {
  std::size_t steps = 0;
  Layout weights;
  double flops = 0;
};

Result<Choice> choose_cut(const SpecDraft& draft, const InstanceDims& dims, std::size_t steps) {
  const auto bytes = draft.constant_bytes();
  TESSERA_ASSIGN(const ProductPlan plan, plan_product(draft.spec, bytes, steps));
  const Dims a = operand_dims(draft.spec, dims, plan.a_operand);
  const Dims b = operand_dims(draft.spec, dims, plan.b_operand);
  const auto describe =
      [&](const std::optional<Layout>& weights) -> Result<std::shared_ptr<OnednnPrimitive>> {
    TESSERA_ASSIGN(ProductProblem problem, plan.problem(a, b, dims.outputs[0], weights));
    for (std::size_t i = 0; i < problem.post_ops.size(); ++i) {
      if (!problem.post_ops[i].binary) continue;
      const Dims own = operand_dims(draft.spec, dims, plan.epilogue.post_ops[i].operand);
      const bool full = numel(own) == numel(dims.outputs[0]);
      if (!full && (numel(own) != own.back() || own.back() != dims.outputs[0].back())) {
        return fail(ErrorCode::kUnimplemented,
                    fmt::format("expected an operand of the result's dims or one row, found {}",
                                to_string(own)));
      }
      Dims seen = problem.dst.dims;
      if (!full) std::fill(seen.begin(), seen.end() - 1, 1);
      problem.post_ops[i].operand = {seen, {}, false};
    }
    TESSERA_ASSIGN(auto made, OnednnPrimitive::describe(problem));
    if (made->is_reference())
      return fail(
          ErrorCode::kUnimplemented,
          fmt::format("oneDNN: expected optimised code, found '{}'", made->implementation()));
    return made;
  };
  Choice choice;
  choice.steps = steps;
  // Packed weights must be those of one matrix: then a folded product of two dims is what the
  // library sees.
  if (is_constant(draft.spec, plan.b_operand) && b.size() == 2) {
    TESSERA_ASSIGN(const auto any, describe(std::nullopt));
    TESSERA_ASSIGN(const Layout library, any->weights_layout());
    choice.weights = plan.to_onnx_layout(library, 2);
    if (padded_dims(choice.weights, b) != b) choice.weights = {};
    // One row: columns that lie in one piece each can be shared out to threads.
    if (numel(a) == a.back() && choice.weights.blocks.empty())
      choice.weights = plan.transpose_b ? Layout{} : Layout{{1, 0}, {}};
  }
  TESSERA_TRY(describe(choice.weights));
  TESSERA_TRY(check_tail(draft, dims, 1 + steps));
  const std::int64_t depth = plan.transpose_a ? a[a.size() - 2] : a.back();
  choice.flops = 2.0 * static_cast<double>(numel(dims.outputs[0])) * static_cast<double>(depth);
  return choice;
}

// The product by own code, where it has any.
std::optional<Candidate> panel_candidate(const SpecDraft& draft, const InstanceDims& dims) {
  const auto bytes = draft.constant_bytes();
  const auto panel_plan = plan_panel_product(draft.spec, bytes);
  if (!panel_plan) return std::nullopt;
  const ProductPlan* plan = &panel_plan->product;
  if (!check_tail(draft, dims, 1 + plan->epilogue.steps)) return std::nullopt;
  const Dims a = operand_dims(draft.spec, dims, plan->a_operand);
  const Dims b = operand_dims(draft.spec, dims, plan->b_operand);
  if (!plan->problem(a, b, dims.outputs[0], Layout{})) return std::nullopt;
  Candidate candidate = make_row_major(draft, "simd.product");
  set_traffic(candidate, draft, dims);
  candidate.flops = 2.0 * static_cast<double>(numel(dims.outputs[0])) *
                    static_cast<double>(a.empty() ? 1 : a.back());
  candidate.efficiency = 0.8;
  return candidate;
}

// The same with constant weights stored as bf16: half of what a product of few rows reads.
Candidate with_bf16_weights(const Candidate& fp32, const SpecDraft& draft) {
  Candidate candidate = fp32;
  candidate.options["bf16_weights"] = 1;
  candidate.compute_dtype = DType::kBf16;
  const std::size_t index = operand_ref(draft.spec, step_input(draft.spec.steps[0], 1)).index;
  const std::int64_t saved = draft.constants[index].nbytes() / 2;
  candidate.packed_bytes -= saved;
  candidate.bytes_moved -= static_cast<double>(saved);
  return candidate;
}

// Rounded to the nearest bf16, ties to even.
void store_as_bf16(SpecDraft& draft, std::size_t index) {
  const Tensor& old = draft.constants[index];
  std::vector<std::uint16_t> bits(static_cast<std::size_t>(old.numel()));
  const auto elements = old.span<float>();
  std::transform(elements.begin(), elements.end(), bits.begin(), fp32_to_bf16);
  draft.constants[index] = Tensor::of<std::uint16_t>(DType::kBf16, old.dims(), bits);
  draft.spec.constants[index].dtype = DType::kBf16;
}

Offers offer_product(const OfferRequest& request) {
  auto draft = prepared(request.draft);
  if (!draft) return refuse(draft.error());
  const auto bytes = draft->constant_bytes();
  const bool gemm = draft->spec.steps[0].op_type == "Gemm";
  const bool accepts_bias = !gemm || step_input(draft->spec.steps[0], 2) < 0;
  const std::size_t rank = draft->spec.outputs[0].shape.size();
  if (rank == 0) return refuse("MatMul: expected a result of rank 1 or more, found a scalar");
  Offers offers;
  for (const EpiloguePlan& cut : plan_epilogue(draft->spec, bytes, accepts_bias, rank - 1)) {
    const auto choice = choose_cut(*draft, request.dims, cut.steps);
    if (!choice) {
      if (offers.refusal.empty())
        offers.refusal =
            fmt::format("{}: {}", describe_steps(draft->spec), choice.error().to_string());
      continue;
    }
    Candidate candidate = make_row_major(*draft, "onednn.matmul");
    set_traffic(candidate, *draft, request.dims);
    candidate.flops = choice->flops;
    candidate.options["post_op_steps"] = static_cast<std::int64_t>(choice->steps);
    put_layout(candidate.options, "weights", choice->weights);
    candidate.efficiency = 0.7;
    offers.candidates.push_back(std::move(candidate));
    break;
  }
  if (auto candidate = panel_candidate(*draft, request.dims)) {
    const auto& precisions = request.options.precisions;
    const bool bf16 =
        std::find(precisions.begin(), precisions.end(), DType::kBf16) != precisions.end() &&
        is_constant(draft->spec, step_input(draft->spec.steps[0], 1));
    if (bf16) offers.candidates.push_back(with_bf16_weights(*candidate, *draft));
    offers.candidates.push_back(*std::move(candidate));
  }
  if (!offers.candidates.empty()) offers.refusal.clear();
  return offers;
}

Status finish_product(SpecDraft& draft, const Candidate& candidate) {
  TESSERA_ASSIGN(draft, prepared(draft));
  const artefact::KernelStep& step = draft.spec.steps[0];
  const OperandRef weights = operand_ref(draft.spec, step_input(step, 1));
  const Layout layout = candidate.kernel == "simd.product"
                            ? panel_weights_layout(step.attributes.get_int("transB", 0) != 0)
                            : get_layout(candidate.options, "weights");
  if (candidate.options.contains("bf16_weights")) store_as_bf16(draft, weights.index);
  if (weights.kind == OperandRef::Kind::kConstant && !layout.is_row_major())
    relayout_constant(draft, weights.index, layout);
  return {};
}

}  // namespace

const Family& product_family() {
  static const Family family{offer_product, finish_product};
  return family;
}

}  // namespace tessera::backends::cpu
