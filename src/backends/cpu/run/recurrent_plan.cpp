#include "backends/cpu/run/recurrent_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/run/conv_plan.h"
#include "backends/cpu/run/recurrent_simd.h"

namespace tessera::backends::cpu {
namespace {

using ops::nn::Activation;
using ops::nn::CellKind;

constexpr const char* kNames[] = {"X",         "W",         "R", "B", "sequence_lens",
                                  "initial_h", "initial_c", "P"};

// The activations of an operator that names none, for one direction.
struct Usual {
  std::vector<Activation::Kind> kinds;
  const char* names;
};

Usual usual_activations(CellKind kind) {
  using Kind = Activation::Kind;
  if (kind == CellKind::kLstm)
    return {{Kind::kSigmoid, Kind::kTanh, Kind::kTanh}, "Sigmoid, Tanh, Tanh"};
  if (kind == CellKind::kGru) return {{Kind::kSigmoid, Kind::kTanh}, "Sigmoid, Tanh"};
  return {{Kind::kTanh}, "Tanh"};
}

Status check_activations(const RecurrentPlan& plan, const ops::Attributes& attributes) {
  const Usual usual = usual_activations(plan.options.kind);
  const auto& found = plan.options.activations;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i].kind == usual.kinds[i % usual.kinds.size()]) continue;
    const auto* names = attributes.find("activations");
    return fail(
        ErrorCode::kUnimplemented,
        fmt::format("{}: attribute 'activations': expected {}, found {}", plan.op, usual.names,
                    fmt::join(std::get<std::vector<std::string>>(*names), ", ")));
  }
  return {};
}

Status check_dtypes(const artefact::KernelSpec& spec, const RecurrentPlan& plan) {
  for (std::size_t i = 0; i < plan.operands.size(); ++i) {
    const auto* decl = operand_decl(spec, plan.operands[i]);
    const DType expected = i == kRecurrentLengths ? DType::kInt32 : DType::kFp32;
    if (decl == nullptr || decl->dtype == expected) continue;
    return fail(ErrorCode::kUnimplemented,
                fmt::format("{}: input '{}': expected {}, found {}", plan.op, kNames[i],
                            to_string(expected), to_string(decl->dtype)));
  }
  return {};
}

bool is_packed(const artefact::KernelSpec& spec, std::int32_t number) {
  return is_constant(spec, number) && !operand_decl(spec, number)->layout.is_row_major();
}

// Packed weights under the rows that ONNX gives them.
Shape written_shape(Dims dims, bool packed, std::int64_t rows) {
  if (packed && dims.size() == 3) dims[1] = rows;
  return to_shape(dims);
}

}  // namespace

Result<RecurrentPlan> plan_recurrent(const artefact::KernelSpec& spec) {
  if (spec.steps.size() != 1 || spec.steps[0].inputs.size() < 3 || spec.outputs.empty())
    return bad_spec(spec, "expected one step of three inputs or more, and an output");
  const auto& step = spec.steps[0];
  RecurrentPlan plan;
  plan.op = step.op_type;
  TESSERA_ASSIGN(plan.options, ops::nn::read_recurrent(plan.op, step.attributes));
  for (std::size_t i = 0; i < plan.operands.size(); ++i) {
    plan.operands[i] = step_input(step, i);
    if (operand_ref(spec, plan.operands[i]).kind == OperandRef::Kind::kResult)
      return bad_spec(spec, "expected operands from outside");
  }
  for (const std::size_t i : {kRecurrentX, kRecurrentW, kRecurrentR})
    if (plan.operands[i] < 0)
      return bad_spec(spec, fmt::format("expected an input '{}'", kNames[i]));
  TESSERA_TRY(check_dtypes(spec, plan));
  TESSERA_TRY(check_activations(plan, step.attributes));
  plan.packed_w = is_packed(spec, plan.operands[kRecurrentW]);
  plan.packed_r = is_packed(spec, plan.operands[kRecurrentR]);
  for (const std::size_t i : {kRecurrentW, kRecurrentR}) {
    if (!is_packed(spec, plan.operands[i])) continue;
    const auto* decl = operand_decl(spec, plan.operands[i]);
    if (decl->layout != gate_panel_layout() || decl->shape.size() != 3)
      return bad_spec(spec, fmt::format("input '{}': expected panels of gates", kNames[i]));
  }
  return plan;
}

Result<RecurrentSizes> RecurrentPlan::sizes(const artefact::KernelSpec& spec,
                                            const InstanceDims& dims) const {
  const auto dims_of = [&](std::size_t input) { return operand_dims(spec, dims, operands[input]); };
  const Dims x = dims_of(kRecurrentX);
  const Dims w = dims_of(kRecurrentW);
  const Dims r = dims_of(kRecurrentR);
  const std::int64_t rows = r.size() == 3 ? options.gates * r[2] : 0;
  TESSERA_TRY(ops::nn::recurrent_sizes(op, options, to_shape(x), written_shape(w, packed_w, rows),
                                       written_shape(r, packed_r, rows)));
  RecurrentSizes sizes;
  sizes.steps = x[options.batch_first ? 1 : 0];
  sizes.batch = x[options.batch_first ? 0 : 1];
  sizes.input = x[2];
  sizes.hidden = r[2];
  sizes.padded = padded_units(sizes.hidden);
  sizes.directions = options.directions;
  sizes.gates = options.gates;
  if ((packed_w && w[1] != sizes.columns()) || (packed_r && r[1] != sizes.columns()))
    return bad_spec(spec, fmt::format("expected {} packed rows of weights", sizes.columns()));
  const std::pair<RecurrentInput, std::int64_t> counts[] = {
      {kRecurrentB, 2 * sizes.directions * sizes.gates * sizes.hidden},
      {kRecurrentLengths, sizes.batch},
      {kRecurrentH, sizes.states()},
      {kRecurrentC, sizes.states()},
      {kRecurrentP, 3 * sizes.directions * sizes.hidden}};
  for (const auto& [input, expected] : counts) {
    if (operands[input] < 0 || numel(dims_of(input)) == expected) continue;
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: input '{}': expected {} elements, found {}", op, kNames[input],
                            expected, numel(dims_of(input))));
  }
  return sizes;
}

Layout gate_panel_layout() {
  return {{0, 1, 2}, {{1, static_cast<std::uint16_t>(kGatePanel)}}};
}

std::int64_t padded_units(std::int64_t hidden) {
  return (hidden + kGatePanel - 1) / kGatePanel * kGatePanel;
}

void pack_gates(const float* weights, std::int64_t blocks, std::int64_t hidden, std::int64_t depth,
                float* packed) {
  const std::int64_t padded = padded_units(hidden);
  std::fill_n(packed, blocks * padded * depth, 0.0F);
  for (std::int64_t row = 0; row < blocks * hidden; ++row) {
    const std::int64_t to = row / hidden * padded + row % hidden;
    float* panel = packed + to / kGatePanel * depth * kGatePanel + to % kGatePanel;
    for (std::int64_t k = 0; k < depth; ++k) panel[k * kGatePanel] = weights[row * depth + k];
  }
}

}  // namespace tessera::backends::cpu
