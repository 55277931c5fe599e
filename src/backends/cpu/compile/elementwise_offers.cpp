// Elementwise operators: fp32 alone or in groups, batch normalization as one of them, other dtypes
// alone.

#include <fmt/format.h>

#include <cmath>

#include "backends/cpu/compile/families.h"
#include "backends/cpu/run/cpu_features.h"
#include "backends/cpu/run/elementwise_program.h"
#include "backends/cpu/run/physical.h"
#include "backends/cpu/run/scalar_ops.h"

namespace tessera::backends::cpu {
namespace {

// Operands of the result's rank take its layout, the others are row-major: scalars anywhere, more
// only beside a row-major result.
Result<SpecDraft> with_layout(const SpecDraft& draft, const Layout& layout) {
  SpecDraft result = draft;
  auto& spec = result.spec;
  const std::size_t rank = spec.outputs[0].shape.size();
  for (auto& output : spec.outputs) output.layout = layout;
  for (auto& input : spec.inputs) {
    if (input.shape.size() == rank) {
      input.layout = layout;
    } else if (!layout.is_row_major() && !input.shape.empty()) {
      return fail(ErrorCode::kUnimplemented,
                  fmt::format("expected operands of rank {} in layout {}, found {}", rank,
                              layout.to_string(), to_string(input.shape)));
    }
  }
  align_elementwise_constants(result, 0);
  return result;
}

Offers offer_elementwise(const OfferRequest& request) {
  const SpecDraft& draft = request.draft;
  Offers offers;
  const std::size_t rank = draft.spec.outputs[0].shape.size();
  for (const Layout& layout : activation_layouts(rank)) {
    const auto laid = with_layout(draft, layout);
    if (!laid) {
      if (offers.refusal.empty()) offers.refusal = laid.error().to_string();
      continue;
    }
    const auto bytes = laid->constant_bytes();
    const auto program = ElementwiseProgram::parse(laid->spec, bytes, 0);
    if (!program) return refuse(program.error());  // the same in every layout
    const auto bound = program->bind(request.dims);
    if (!bound) {
      offers.refusal = bound.error().to_string();
      continue;
    }
    const auto& spec = laid->spec;
    Candidate candidate = make_candidate(
        draft, "simd.elementwise", [&](std::size_t i) { return spec.inputs[i].layout; },
        [&](std::size_t o) { return spec.outputs[o].layout; });
    set_traffic(candidate, *laid, request.dims);
    candidate.flops *= static_cast<double>(spec.steps.size()) * 4;
    candidate.efficiency = 0.6;
    offers.candidates.push_back(std::move(candidate));
  }
  if (!offers.candidates.empty()) offers.refusal.clear();
  return offers;
}

Status finish_elementwise(SpecDraft& draft, const Candidate&) {
  TESSERA_ASSIGN(draft, with_layout(draft, draft.spec.outputs[0].layout));
  return {};
}

// BatchNormalization of constants is x * a + b for each channel: the spec says so.
Result<SpecDraft> as_scale_shift(const SpecDraft& draft) {
  const auto& step = draft.spec.steps[0];
  if (step.attributes.get_int("training_mode", 0) != 0)
    return fail(ErrorCode::kUnimplemented,
                "BatchNormalization: attribute 'training_mode': expected 0, found 1");
  std::vector<const float*> values;
  Dims channels;
  for (std::size_t i = 1; i < 5; ++i) {
    const OperandRef ref = operand_ref(draft.spec, step_input(step, i));
    if (ref.kind != OperandRef::Kind::kConstant ||
        draft.spec.constants[ref.index].dtype != DType::kFp32) {
      return fail(ErrorCode::kUnimplemented,
                  fmt::format("BatchNormalization: input {}: expected an fp32 constant, found one "
                              "computed at run time",
                              i));
    }
    values.push_back(static_cast<const float*>(draft.constants[ref.index].data()));
    channels = draft.constants[ref.index].dims();
  }
  const OperandRef x = operand_ref(draft.spec, step_input(step, 0));
  if (x.kind != OperandRef::Kind::kInput || draft.spec.inputs.size() != 1 ||
      draft.spec.outputs.size() != 1) {
    return fail(ErrorCode::kUnimplemented,
                "BatchNormalization: expected one input computed at run time and one output");
  }
  const float epsilon = step.attributes.get_float("epsilon", 1e-5F);
  const auto count = static_cast<std::size_t>(numel(channels));
  std::vector<float> scale(count);
  std::vector<float> shift(count);
  for (std::size_t c = 0; c < count; ++c) {
    scale[c] = values[0][c] / std::sqrt(values[3][c] + epsilon);
    shift[c] = values[1][c] - values[2][c] * scale[c];
  }
  Dims wide(draft.spec.outputs[0].shape.size(), 1);
  if (wide.size() > 1) wide[1] = numel(channels);
  SpecDraft result = draft;
  auto& spec = result.spec;
  result.constants = {Tensor::of<float>(DType::kFp32, wide, scale),
                      Tensor::of<float>(DType::kFp32, wide, shift)};
  spec.constants.assign(2, artefact::TensorDecl{DType::kFp32, {}, to_shape(wide)});
  // Operands: the input, the two constants, then the results.
  spec.steps = {{"", "Mul", {}, {0, 1}, 1}, {"", "Add", {}, {3, 2}, 1}};
  spec.output_operands = {4};
  return result;
}

Offers offer_batch_normalization(const OfferRequest& request) {
  const auto draft = as_scale_shift(request.draft);
  if (!draft) return refuse(draft.error());
  Offers offers = offer_elementwise({*draft, request.dims, request.options});
  // The draft's inputs are those of the item but for the constants, which bear no forms either way.
  for (Candidate& candidate : offers.candidates) {
    const TensorForm form = candidate.outputs[0];
    candidate.inputs.assign(request.draft.item_inputs.size(), std::nullopt);
    for (std::size_t i = 0; i < candidate.inputs.size(); ++i) {
      if (request.draft.item_inputs[i] == 0) candidate.inputs[i] = form;
    }
  }
  return offers;
}

Status finish_batch_normalization(SpecDraft& draft, const Candidate& candidate) {
  const Layout layout = draft.spec.outputs[0].layout;
  TESSERA_ASSIGN(draft, as_scale_shift(draft));
  for (auto& input : draft.spec.inputs) input.layout = layout;
  return finish_elementwise(draft, candidate);
}

Offers offer_scalar(const OfferRequest& request) {
  const auto& spec = request.draft.spec;
  if (spec.steps.size() != 1)
    return refuse(fmt::format("{}: expected fp32 for a group of elementwise operators",
                              describe_steps(spec)));
  std::vector<DType> dtypes;
  for (const std::int32_t number : spec.steps[0].inputs) {
    const auto* decl = operand_decl(spec, number);
    dtypes.push_back(decl == nullptr ? DType::kUndefined : decl->dtype);
  }
  if (const Status status = check_scalar_op(spec.steps[0], dtypes, spec.outputs[0].dtype); !status)
    return refuse(status.error());
  Candidate candidate = make_row_major(request.draft, "cpu.elementwise");
  set_traffic(candidate, request.draft, request.dims);
  candidate.efficiency = 0.1;
  return Offers{{std::move(candidate)}, ""};
}

Status finish_nothing(SpecDraft&, const Candidate&) {
  return {};
}

}  // namespace

const Family& elementwise_family() {
  static const Family family{offer_elementwise, finish_elementwise};
  return family;
}

const Family& batch_normalization_family() {
  static const Family family{offer_batch_normalization, finish_batch_normalization};
  return family;
}

const Family& scalar_elementwise_family() {
  static const Family family{offer_scalar, finish_nothing};
  return family;
}

}  // namespace tessera::backends::cpu
