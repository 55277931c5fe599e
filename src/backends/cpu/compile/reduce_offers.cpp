// Softmax, reductions, layer and local response normalization: own vectorised code, row-major.

#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/compile/families.h"
#include "backends/cpu/run/reduce_plan.h"

namespace tessera::backends::cpu {
namespace {

Status finish_nothing(SpecDraft&, const Candidate&) {
  return {};
}

Offers row_major(const OfferRequest& request, const char* kernel, double flops_per_input,
                 double efficiency) {
  Candidate candidate = make_row_major(request.draft, kernel);
  set_traffic(candidate, request.draft, request.dims);
  candidate.flops = flops_per_input * static_cast<double>(numel(request.dims.inputs[0]));
  candidate.efficiency = efficiency;
  return Offers{{std::move(candidate)}, ""};
}

// Nothing where step 0 reads an fp32 input of rank 1 or more first and gives one output; else the
// refusal.
std::optional<Offers> check_first_input(const artefact::KernelSpec& spec) {
  const auto& step = spec.steps[0];
  if (step_input(step, 0) != 0)
    return refuse(
        fmt::format("{}: expected an input computed at run time, found a constant", step.op_type));
  if (spec.inputs[0].dtype != DType::kFp32)
    return refuse(
        fmt::format("{}: expected fp32, found {}", step.op_type, to_string(spec.inputs[0].dtype)));
  if (spec.inputs[0].shape.empty())
    return refuse(fmt::format("{}: expected a rank of 1 or more, found a scalar", step.op_type));
  if (spec.outputs.size() != 1)
    return refuse(
        fmt::format("{}: expected one output in use, found {}", step.op_type, spec.outputs.size()));
  return std::nullopt;
}

Offers offer_softmax(const OfferRequest& request) {
  if (auto refused = check_first_input(request.draft.spec)) return *refused;
  return row_major(request, "simd.softmax", 12, 0.4);
}

Offers offer_reduce(const OfferRequest& request) {
  const auto& spec = request.draft.spec;
  if (auto refused = check_first_input(spec)) return *refused;
  const auto bytes = request.draft.constant_bytes();
  const auto plan = plan_reduce(spec, bytes);
  if (!plan) return refuse(plan.error());
  Offers offers;
  // Along all spatial dims it is global pooling, in any layout.
  const auto& step = spec.steps[0];
  bool spatial = spec.inputs[0].shape.size() >= 3 && spec.inputs[0].shape.size() <= 5 &&
                 step.attributes.get_int("keepdims", 1) != 0 &&
                 (plan->kind == ReduceKind::kMean || plan->kind == ReduceKind::kMax);
  for (std::size_t d = 0; d < plan->reduced.size(); ++d)
    spatial = spatial && plan->reduced[d] == (d >= 2);
  if (spatial) offers = global_pool_family().offer(request);
  Offers plain = row_major(request, "simd.reduce", 1, 0.3);
  if (!spatial) offers.candidates.push_back(std::move(plain.candidates[0]));
  return offers;
}

Offers offer_lrn(const OfferRequest& request) {
  const auto& spec = request.draft.spec;
  if (auto refused = check_first_input(spec)) return *refused;
  if (spec.inputs[0].shape.size() < 2)
    return refuse("LRN: expected a rank of 2 or more, found rank 1");
  const auto& attributes = spec.steps[0].attributes;
  const std::int64_t window = std::min(attributes.get_int("size", 1), request.dims.inputs[0][1]);
  // A division and two roots, or a power element by element.
  const bool has_roots = attributes.get_float("beta", 0.75F) == 0.75F;
  return row_major(request, "simd.lrn", 2 * static_cast<double>(window) + (has_roots ? 20 : 100),
                   0.4);
}

Offers offer_layer_normalization(const OfferRequest& request) {
  const auto& spec = request.draft.spec;
  if (auto refused = check_first_input(spec)) return *refused;
  const auto rank = static_cast<std::int64_t>(spec.inputs[0].shape.size());
  const std::int64_t axis = spec.steps[0].attributes.get_int("axis", -1);
  const auto first = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
  for (std::size_t i = 1; i < spec.steps[0].inputs.size(); ++i) {
    const auto* decl = operand_decl(spec, spec.steps[0].inputs[i]);
    if (decl == nullptr) continue;
    const Shape tail(spec.inputs[0].shape.begin() + static_cast<std::ptrdiff_t>(first),
                     spec.inputs[0].shape.end());
    if (decl->dtype != DType::kFp32 || decl->shape != tail) {
      return refuse(fmt::format("{}: input {}: expected fp32{}, found {}{}", spec.steps[0].op_type,
                                i, to_string(tail), to_string(decl->dtype),
                                to_string(decl->shape)));
    }
  }
  return row_major(request, "simd.layer_normalization", 8, 0.4);
}

}  // namespace

const Family& softmax_family() {
  static const Family family{offer_softmax, finish_nothing};
  return family;
}
const Family& reduce_family() {
  static const Family family{offer_reduce, finish_nothing};
  return family;
}
const Family& lrn_family() {
  static const Family family{offer_lrn, finish_nothing};
  return family;
}
const Family& layer_normalization_family() {
  static const Family family{offer_layer_normalization, finish_nothing};
  return family;
}

}  // namespace tessera::backends::cpu
