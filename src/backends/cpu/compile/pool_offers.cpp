// AveragePool through oneDNN or own code, MaxPool through own code; the global ones and reductions
// along all spatial dims.

#include <fmt/format.h>

#include "backends/cpu/compile/families.h"
#include "backends/cpu/run/physical.h"
#include "backends/cpu/run/pool_plan.h"

namespace tessera::backends::cpu {
namespace {

Status finish_nothing(SpecDraft&, const Candidate&) {
  return {};
}

// Its plain code ("simple_nchw") is slower than the own one.
bool library_has(const PoolPlan& plan, const InstanceDims& dims) {
  const auto problem =
      plan.problem(dims.inputs[0], dims.outputs[0], plan.folded_images(dims.inputs[0]));
  if (!problem) return false;
  const auto made = OnednnPrimitive::describe(*problem);
  return made && (*made)->implementation().find("jit") != std::string::npos;
}

Offers offer_pool(const OfferRequest& request) {
  SpecDraft draft = request.draft;
  if (draft.spec.outputs.size() != 1 || draft.spec.steps[0].output_count != 1) {
    return refuse(fmt::format("{}: expected one output, found {}", draft.spec.steps[0].op_type,
                              draft.spec.steps[0].output_count));
  }
  const auto check = plan_pool(draft.spec);
  if (!check) return refuse(check.error());
  Offers offers;
  for (const Layout& layout : activation_layouts(draft.spec.inputs[0].shape.size())) {
    PoolPlan plan = *check;
    plan.layout = layout;
    const bool library = library_has(plan, request.dims);
    const auto form = [&](std::size_t) { return layout; };
    Candidate candidate = make_candidate(draft, library ? "onednn.pool" : "simd.pool", form, form);
    set_traffic(candidate, draft, request.dims);
    candidate.flops *= static_cast<double>(numel(plan.kernel));
    candidate.efficiency = layout.is_row_major() ? 0.05 : library || !plan.average ? 0.4 : 0.1;
    offers.candidates.push_back(std::move(candidate));
  }
  return offers;
}

Offers offer_global_pool(const OfferRequest& request) {
  const auto& spec = request.draft.spec;
  const auto& step = spec.steps[0];
  const std::size_t rank = spec.inputs.empty() ? 0 : spec.inputs[0].shape.size();
  if (rank < 3 || rank > 5 || spec.inputs[0].dtype != DType::kFp32 || step_input(step, 0) != 0) {
    return refuse(fmt::format("{}: expected an fp32 input of rank 3 to 5 computed at run time",
                              step.op_type));
  }
  Offers offers;
  for (const Layout& layout : activation_layouts(rank)) {
    Candidate candidate = make_candidate(
        request.draft, "simd.global_pool",
        [&](std::size_t i) { return i == 0 ? layout : Layout{}; },
        [&](std::size_t) { return layout; });
    set_traffic(candidate, request.draft, request.dims);
    candidate.flops = static_cast<double>(numel(request.dims.inputs[0]));
    candidate.efficiency = 0.6;
    offers.candidates.push_back(std::move(candidate));
  }
  return offers;
}

}  // namespace

const Family& pool_family() {
  static const Family family{offer_pool, finish_nothing};
  return family;
}
const Family& global_pool_family() {
  static const Family family{offer_global_pool, finish_nothing};
  return family;
}

}  // namespace tessera::backends::cpu
