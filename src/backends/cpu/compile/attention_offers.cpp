// Attention and rotary embedding: fp32, row-major.

#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/compile/families.h"
#include "backends/cpu/run/attention_spec.h"
#include "backends/cpu/run/rotary_plan.h"
#include "ops/nn/attention_plan.h"

namespace tessera::backends::cpu {
namespace {

Status finish_nothing(SpecDraft&, const Candidate&) {
  return {};
}

// Why this backend leaves an Attention alone; empty where it does not.
std::string attention_refusal(const artefact::KernelSpec& spec) {
  const auto& step = spec.steps.back();
  if (const auto keys = key_order(spec); !keys) return keys.error().to_string();
  if (step.output_count > 3) return "Attention: output 'qk_matmul_output': expected none";
  if (step_input(step, ops::nn::kAttentionValidKeys) >= 0)
    return "Attention: input 'nonpad_kv_seqlen': expected none";
  for (const char* window : {"left_window_size", "right_window_size"}) {
    const std::int64_t size = step.attributes.get_int(window, ops::nn::kUnboundedWindow);
    if (size != ops::nn::kUnboundedWindow)
      return fmt::format("Attention: attribute '{}': expected -1, found {}", window, size);
  }
  const std::int64_t precision = step.attributes.get_int("softmax_precision", 1);
  if (precision != static_cast<std::int64_t>(DType::kFp32))
    return fmt::format("Attention: attribute 'softmax_precision': expected 1 (fp32), found {}",
                       precision);
  for (std::size_t i = 0; i < step.inputs.size(); ++i) {
    const auto* decl = operand_decl(spec, attention_operand(spec, i));
    if (decl == nullptr) continue;
    const bool is_mask = i == ops::nn::kAttentionMask;
    if (decl->dtype != DType::kFp32 && !(is_mask && decl->dtype == DType::kBool))
      return fmt::format("Attention: input {}: expected fp32, found {}", i, to_string(decl->dtype));
    if (!is_mask && is_constant(spec, attention_operand(spec, i)))
      return fmt::format("Attention: input {}: expected one computed at run time, found a constant",
                         i);
  }
  // Either no cache is given out, or all of it.
  const bool has_past = step_input(step, ops::nn::kAttentionPastKey) >= 0;
  if (spec.outputs.size() != 1 && !(has_past && spec.outputs.size() == 3))
    return fmt::format("Attention: expected the result alone or with the cache, found {} outputs",
                       spec.outputs.size());
  return {};
}

Offers offer_attention(const OfferRequest& request) {
  const auto& spec = request.draft.spec;
  if (std::string reason = attention_refusal(spec); !reason.empty())
    return refuse(std::move(reason));
  std::vector<Shape> shapes;
  std::vector<const Shape*> present;
  const std::size_t count = spec.steps.back().inputs.size();
  shapes.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t number = attention_operand(spec, i);
    const OperandRef ref = operand_ref(spec, number);
    const bool is_input = ref.kind == OperandRef::Kind::kInput;
    shapes.push_back(number < 0 ? Shape()
                     : is_input ? to_shape(request.dims.inputs[ref.index])
                                : spec.constants[ref.index].shape);
    if (i == ops::nn::kAttentionKey)
      shapes.back() = in_operator_order(shapes.back(), *key_order(spec));
    present.push_back(number < 0 ? nullptr : &shapes.back());
  }
  const auto sizes = ops::nn::attention_sizes(spec.steps.back().attributes, present);
  if (!sizes) return refuse(sizes.error());
  Candidate candidate = make_row_major(request.draft, "simd.attention");
  set_traffic(candidate, request.draft, request.dims);
  const auto scores = static_cast<double>(numel(*constant_dims(sizes->scores())));
  candidate.flops = scores * (2 * static_cast<double>(*sizes->head_size.constant()) +
                              2 * static_cast<double>(*sizes->value_size.constant()) + 12);
  candidate.efficiency = 0.7;  // as its products
  return Offers{{std::move(candidate)}, ""};
}

Offers offer_rotary(const OfferRequest& request) {
  const auto& spec = request.draft.spec;
  const auto bytes = request.draft.constant_bytes();
  if (const auto plan = plan_rotary(spec, bytes); !plan) return refuse(plan.error());
  Candidate candidate = make_row_major(request.draft, "cpu.rotary_embedding");
  set_traffic(candidate, request.draft, request.dims);
  candidate.flops *= 3;
  candidate.efficiency = 0.2;
  return Offers{{std::move(candidate)}, ""};
}

}  // namespace

const Family& attention_family() {
  static const Family family{offer_attention, finish_nothing};
  return family;
}
const Family& rotary_family() {
  static const Family family{offer_rotary, finish_nothing};
  return family;
}

}  // namespace tessera::backends::cpu
