// LSTM, GRU and RNN: fp32, row-major.

#include <fmt/format.h>

#include "backends/cpu/compile/families.h"
#include "backends/cpu/run/physical.h"
#include "backends/cpu/run/recurrent_plan.h"

namespace tessera::backends::cpu {
namespace {

// Where the sizes of X are not known yet: the weights are what can be checked.
Status check_late(const artefact::KernelSpec& spec, const RecurrentPlan& plan) {
  const std::int32_t w = plan.operands[kRecurrentW];
  const std::int32_t r = plan.operands[kRecurrentR];
  if (!is_constant(spec, w) || !is_constant(spec, r))
    return fail(ErrorCode::kUnimplemented,
                fmt::format("{}: inputs 'W' and 'R': expected constants where the sizes of its "
                            "outputs depend on data",
                            plan.op));
  const Shape& rows = operand_decl(spec, w)->shape;
  const Shape x{Dim(1), Dim(1), rows.empty() ? Dim(1) : rows.back()};
  return ops::nn::recurrent_sizes(plan.op, plan.options, x, rows, operand_decl(spec, r)->shape)
      .map([](const auto&) {});
}

Offers offer_recurrent(const OfferRequest& request) {
  const auto plan = plan_recurrent(request.draft.spec);
  if (!plan) return refuse(plan.error());
  Candidate candidate = make_row_major(request.draft, "simd.recurrent");
  if (request.draft.is_late) {
    if (const auto fits = check_late(request.draft.spec, *plan); !fits) return refuse(fits.error());
    candidate.options["late"] = 1;
    if (request.dims.outputs.empty()) return Offers{{std::move(candidate)}, ""};
  }
  const auto sizes = plan->sizes(request.draft.spec, request.dims);
  // What is assumed may be wrong: the weights fit, so the kernel runs what the run brings.
  if (!sizes && request.draft.is_late) return Offers{{std::move(candidate)}, ""};
  if (!sizes) return refuse(sizes.error());
  set_traffic(candidate, request.draft, request.dims);
  candidate.flops = sizes->flops();
  // Few rows at a time: each weight that is read serves as many products as the batch has items.
  candidate.efficiency = sizes->batch < 4 ? 0.3 : 0.6;
  return Offers{{std::move(candidate)}, ""};
}

// Constant weights [directions, gates * hidden, depth] become panels of gates.
void pack_weights(SpecDraft& draft, std::int32_t number, std::int64_t gates) {
  if (!is_constant(draft.spec, number)) return;
  const std::size_t index = operand_ref(draft.spec, number).index;
  auto& decl = draft.spec.constants[index];
  const Tensor& written = draft.constants[index];
  const std::int64_t directions = written.dims()[0];
  const std::int64_t hidden = written.dims()[1] / gates;
  const std::int64_t depth = written.dims()[2];
  const Dims dims{directions, gates * padded_units(hidden), depth};
  auto packed = Tensor::zeros(decl.dtype, physical_dims(gate_panel_layout(), dims));
  TESSERA_CHECK(packed.has_value());
  pack_gates(static_cast<const float*>(written.data()), directions * gates, hidden, depth,
             static_cast<float*>(packed->mutable_data()));
  decl.shape = to_shape(dims);
  decl.layout = gate_panel_layout();
  draft.constants[index] = *std::move(packed);
}

Status finish_recurrent(SpecDraft& draft, const Candidate&) {
  TESSERA_ASSIGN(const RecurrentPlan plan, plan_recurrent(draft.spec));
  pack_weights(draft, plan.operands[kRecurrentW], plan.options.gates);
  if (plan.operands[kRecurrentR] != plan.operands[kRecurrentW])
    pack_weights(draft, plan.operands[kRecurrentR], plan.options.gates);
  return {};
}

}  // namespace

const Family& recurrent_family() {
  static const Family family{offer_recurrent, finish_recurrent};
  return family;
}

}  // namespace tessera::backends::cpu
