// Convolutions, products, pooling and elementwise steps of 8-bit tensors; QuantizeLinear,
// DequantizeLinear and DynamicQuantizeLinear alone.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "backends/cpu/compile/families.h"
#include "backends/cpu/run/quant_conv_plan.h"
#include "backends/cpu/run/quant_pool_plan.h"
#include "backends/cpu/run/quant_product_plan.h"
#include "backends/cpu/run/quant_simd.h"
#include "backends/cpu/run/quantize_plan.h"

namespace tessera::backends::cpu {
namespace {

constexpr std::array<std::string_view, 12> kMovement = {
    "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity",     "Transpose",
    "Slice",   "Concat",  "Expand",  "Tile",      "DepthToSpace", "SpaceToDepth"};

// ---- Weights ------------------------------------------------------------------------------------

struct Weights {
  Tensor centred;            // less the zero points: int8 where it fits, else int16
  std::int64_t largest = 0;  // magnitude
};

// `axis`: along which zero points vary.
Result<Weights> centre(const Tensor& tensor, const std::vector<std::int32_t>& zeros,
                       std::size_t axis) {
  std::vector<std::int16_t> words;
  words.reserve(static_cast<std::size_t>(tensor.numel()));
  const std::int64_t inner = numel(
      Dims(tensor.dims().begin() + static_cast<std::ptrdiff_t>(axis) + 1, tensor.dims().end()));
  const bool is_signed = tensor.dtype() == DType::kInt8;
  Weights result;
  bool bytes = true;
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    const std::int64_t index = i / inner % tensor.dims()[axis];
    const int element = is_signed ? static_cast<const std::int8_t*>(tensor.data())[i]
                                  : static_cast<const std::uint8_t*>(tensor.data())[i];
    const int value = element - zeros[zeros.size() == 1 ? 0 : static_cast<std::size_t>(index)];
    bytes = bytes && value >= -128 && value <= 127;
    result.largest = std::max<std::int64_t>(result.largest, std::abs(value));
    words.push_back(static_cast<std::int16_t>(value));
  }
  if (!bytes) {
    result.centred = Tensor::of<std::int16_t>(DType::kInt16, tensor.dims(), words);
    return result;
  }
  const std::vector<std::int8_t> narrow(words.begin(), words.end());
  result.centred = Tensor::of<std::int8_t>(DType::kInt8, tensor.dims(), narrow);
  return result;
}

// Sums of products of 8-bit elements with weights up to `largest` stay within 32 bits. Where the
// sums themselves are the result, they wrap, as the operator says.
Status check_sums(const QuantPlan& plan, std::int64_t depth, std::int64_t largest) {
  constexpr std::int64_t kMost = 2147483647;
  if (plan.sums_result || largest == 0 || depth <= kMost / 255 / largest) return {};
  return fail(ErrorCode::kUnimplemented,
              fmt::format("expected at most {} products in a sum, so that it fits into 32 bits, "
                          "found {}",
                          kMost / 255 / largest, depth));
}

// Puts centred weights in the place of the old ones, which then have no zero point.
void set_weights(SpecDraft& draft, const QuantPlan& plan, Tensor centred) {
  auto& spec = draft.spec;
  const std::size_t index = operand_ref(spec, plan.weights).index;
  spec.constants[index].dtype = centred.dtype();
  spec.constants[index].shape = to_shape(centred.dims());
  draft.constants[index] = std::move(centred);
  auto& anchor = spec.steps[plan.anchor];
  const std::size_t self = anchor.op_type.starts_with("QLinear") ? 5 : 3;
  for (auto& step : spec.steps) {
    const bool dequantises = step.op_type == "DequantizeLinear" && step.inputs[0] == plan.weights;
    if (dequantises && step.inputs.size() > 2) step.inputs[2] = -1;
  }
  const bool takes_bytes =
      anchor.op_type.starts_with("QLinear") || anchor.op_type.ends_with("Integer");
  if (takes_bytes && anchor.inputs.size() > self) anchor.inputs[self] = -1;
}

Result<Weights> weights_of(const SpecDraft& draft, const QuantPlan& plan, std::size_t axis) {
  return centre(draft.constants[operand_ref(draft.spec, plan.weights).index], plan.weight_zeros,
                axis);
}

// ---- Candidates ---------------------------------------------------------------------------------

Candidate priced(const OfferRequest& request, const char* kernel, const Layout& layout,
                 double flops, double efficiency) {
  const auto& spec = request.draft.spec;
  const std::size_t rank = spec.outputs[0].shape.size();
  Candidate candidate = make_candidate(
      request.draft, kernel,
      [&](std::size_t i) { return spec.inputs[i].shape.size() == rank ? layout : Layout{}; },
      [&](std::size_t) { return layout; });
  set_traffic(candidate, request.draft, request.dims);
  candidate.flops = flops;
  candidate.compute_dtype = DType::kInt8;
  candidate.efficiency = efficiency;
  return candidate;
}

Offers offer_conv(const OfferRequest& request) {
  const auto& spec = request.draft.spec;
  const auto bytes = request.draft.constant_bytes();
  const auto plan = plan_quant_conv(spec, bytes);
  if (!plan) return refuse(plan.error());
  const auto weights = weights_of(request.draft, plan->quant, 0);
  if (!weights) return refuse(weights.error());
  const Dims& dims = plan->conv.weight_dims;
  const std::int64_t depth = numel(dims) / std::max<std::int64_t>(dims[0], 1);
  if (const auto fits = check_sums(plan->quant, depth, weights->largest); !fits)
    return refuse(fits.error());
  const Dims& dst = request.dims.outputs[0];
  const double flops = 2.0 * static_cast<double>(numel(dst)) * static_cast<double>(depth);
  const auto layout = Layout::channels_last(static_cast<int>(dst.size()));
  const std::int64_t columns = dims[0] / std::max<std::int64_t>(plan->conv.group, 1);
  const double filled = std::min(1.0, static_cast<double>(columns) / kPanelColumns);
  const double efficiency = plan->depthwise ? 0.15 : (dims[1] < 16 ? 0.3 : 0.7) * filled;
  return {{priced(request, "simd.quant_conv", layout, flops, efficiency)}, ""};
}

Offers offer_product(const OfferRequest& request) {
  const auto& draft = request.draft;
  const auto bytes = draft.constant_bytes();
  const auto plan = plan_quant_product(draft.spec, bytes);
  if (!plan) return refuse(plan.error());
  const auto dims_of = [&](std::int32_t number) {
    return operand_dims(draft.spec, request.dims, number);
  };
  const auto sizes = plan->sizes(dims_of(plan->quant.src.operand), dims_of(plan->quant.weights),
                                 request.dims.outputs[0]);
  if (!sizes) return refuse(sizes.error());
  std::int64_t largest = 255;
  if (plan->packed) {
    const auto weights = weights_of(draft, plan->quant, plan->transposed ? 0 : 1);
    if (!weights) return refuse(weights.error());
    largest = weights->largest;
  }
  if (const auto fits = check_sums(plan->quant, sizes->depth, largest); !fits)
    return refuse(fits.error());
  const double flops =
      2.0 * static_cast<double>(numel(request.dims.outputs[0])) * static_cast<double>(sizes->depth);
  return {{priced(request, "simd.quant_product", {}, flops, plan->packed ? 0.6 : 0.3)}, ""};
}

Offers offer_pool(const OfferRequest& request, const QuantPlan& plan) {
  const auto pool = plan_quant_pool(request.draft.spec, plan);
  if (!pool) return refuse(pool.error());
  const auto rank = static_cast<int>(request.draft.spec.outputs[0].shape.size());
  const double taps = *pool ? static_cast<double>(numel((*pool)->kernel)) : 1;
  const double flops =
      taps * static_cast<double>(numel(*pool ? request.dims.outputs[0] : request.dims.inputs[0]));
  return {{priced(request, "simd.quant_pool", Layout::channels_last(rank), flops, 0.3)}, ""};
}

Offers offer_elementwise(const OfferRequest& request, const QuantPlan& plan) {
  for (const QuantTensor& tensor : plan.program->tensors) {
    if (operand_ref(request.draft.spec, tensor.operand).kind != OperandRef::Kind::kInput ||
        tensor.params.zero_operand >= 0)
      return refuse("expected tensors computed at run time with constant zero points");
  }
  if (const auto bound = plan.program->bind(1); !bound) return refuse(bound.error());
  const std::size_t rank = request.draft.spec.outputs[0].shape.size();
  const double flops =
      static_cast<double>(numel(request.dims.outputs[0])) *
      static_cast<double>(plan.program->spec.steps.size() + 2 * plan.program->tensors.size());
  Offers offers;
  offers.candidates.push_back(priced(request, "simd.quant_elementwise", {}, flops, 0.25));
  if (rank >= 3 && rank <= 5) {
    const auto last = Layout::channels_last(static_cast<int>(rank));
    offers.candidates.push_back(priced(request, "simd.quant_elementwise", last, flops, 0.25));
  }
  return offers;
}

Offers offer_quant(const OfferRequest& request) {
  const auto bytes = request.draft.constant_bytes();
  const auto plan = plan_quantised(request.draft.spec, bytes);
  if (!plan) return refuse(plan.error());
  const auto bound = plan->program ? plan->program->bind(1).map([](const auto&) {}) : Status{};
  if (!bound) return refuse(bound.error());
  switch (plan->kind) {
    case QuantPlan::Kind::kConv: return offer_conv(request);
    case QuantPlan::Kind::kProduct: return offer_product(request);
    case QuantPlan::Kind::kPool: return offer_pool(request, *plan);
    case QuantPlan::Kind::kElementwise: return offer_elementwise(request, *plan);
  }
  return refuse("expected a quantised operator");
}

// ---- Specs --------------------------------------------------------------------------------------

// Output channels of each group in whole panels; what is added is zero.
Tensor fill_groups(const Tensor& weights, std::int64_t group) {
  const Dims& dims = weights.dims();
  const std::int64_t each = dims[0] / group;
  const std::int64_t whole = (each + kPanelColumns - 1) / kPanelColumns * kPanelColumns;
  if (group == 1 || whole == each) return weights;
  Dims filled = dims;
  filled[0] = group * whole;
  auto result = Tensor::zeros(weights.dtype(), filled);
  TESSERA_CHECK(result.has_value());
  const auto row_bytes = static_cast<std::size_t>(weights.nbytes() / dims[0]);
  for (std::int64_t row = 0; row < dims[0]; ++row) {
    const std::int64_t to = row / each * whole + row % each;
    std::memcpy(
        static_cast<std::byte*>(result->mutable_data()) + static_cast<std::size_t>(to) * row_bytes,
        static_cast<const std::byte*>(weights.data()) + static_cast<std::size_t>(row) * row_bytes,
        row_bytes);
  }
  return *std::move(result);
}

Status finish_conv(SpecDraft& draft) {
  QuantConvPlan plan;
  {
    const auto bytes = draft.constant_bytes();
    TESSERA_ASSIGN(plan, plan_quant_conv(draft.spec, bytes));
  }
  TESSERA_ASSIGN(Weights weights, weights_of(draft, plan.quant, 0));
  const std::size_t index = operand_ref(draft.spec, plan.quant.weights).index;
  if (!plan.depthwise) {
    const std::size_t rank = plan.conv.weight_dims.size();
    set_weights(draft, plan.quant, fill_groups(weights.centred, plan.conv.group));
    relayout_constant(draft, index, conv_panel_layout(rank));
    return {};
  }
  const std::int64_t taps = plan.taps();
  const std::int64_t even = (taps + 1) / 2 * 2;
  const std::int64_t channels = plan.conv.weight_dims[0];
  std::vector<std::int16_t> words(static_cast<std::size_t>(channels * even), 0);
  for (std::int64_t i = 0; i < channels * taps; ++i) {
    const auto at = static_cast<std::size_t>(i / taps * even + i % taps);
    words[at] = weights.centred.dtype() == DType::kInt8
                    ? static_cast<const std::int8_t*>(weights.centred.data())[i]
                    : static_cast<const std::int16_t*>(weights.centred.data())[i];
  }
  set_weights(draft, plan.quant, Tensor::of<std::int16_t>(DType::kInt16, {channels, even}, words));
  draft.spec.steps[plan.quant.anchor].attributes.set("kernel_shape", plan.conv.kernel);
  relayout_constant(draft, index, depthwise_layout());
  return {};
}

Status finish_product(SpecDraft& draft) {
  QuantProductPlan plan;
  {
    const auto bytes = draft.constant_bytes();
    TESSERA_ASSIGN(plan, plan_quant_product(draft.spec, bytes));
  }
  if (!plan.packed) return {};
  TESSERA_ASSIGN(Weights weights, weights_of(draft, plan.quant, plan.transposed ? 0 : 1));
  const std::size_t index = operand_ref(draft.spec, plan.quant.weights).index;
  set_weights(draft, plan.quant, std::move(weights.centred));
  relayout_constant(draft, index, product_panel_layout(plan.transposed));
  return {};
}

Status finish_quant(SpecDraft& draft, const Candidate& candidate) {
  if (candidate.kernel == "simd.quant_conv") return finish_conv(draft);
  if (candidate.kernel == "simd.quant_product") return finish_product(draft);
  return {};
}

// ---- QuantizeLinear and its like alone ----------------------------------------------------------

Offers offer_quantize(const OfferRequest& request) {
  const auto& spec = request.draft.spec;
  const auto plan = plan_quantize(spec);
  if (!plan) return refuse(plan.error());
  const std::size_t rank = spec.outputs[0].shape.size();
  Offers offers;
  for (const Layout& layout : activation_layouts(rank)) {
    if (!layout.blocks.empty()) continue;  // a zero point would fill the padded lanes
    if (!layout.is_row_major() && is_constant(spec, plan->x)) continue;
    Candidate candidate = make_candidate(
        request.draft, "simd.quantize",
        [&](std::size_t i) { return static_cast<std::int32_t>(i) == plan->x ? layout : Layout{}; },
        [&](std::size_t) { return layout; });
    set_traffic(candidate, request.draft, request.dims);
    candidate.flops = 0;
    candidate.efficiency = 0.6;
    offers.candidates.push_back(std::move(candidate));
  }
  return offers;
}

Offers offer_dynamic_quantize(const OfferRequest& request) {
  const auto& spec = request.draft.spec;
  if (spec.inputs.size() != 1 || spec.outputs.size() != 3)
    return refuse(
        fmt::format("DynamicQuantizeLinear: expected three outputs in use of an input "
                    "computed at run time, found {}",
                    spec.outputs.size()));
  Candidate candidate = make_row_major(request.draft, "simd.dynamic_quantize");
  set_traffic(candidate, request.draft, request.dims);
  candidate.flops = 0;
  candidate.efficiency = 0.4;
  return {{std::move(candidate)}, ""};
}

Status finish_nothing(SpecDraft&, const Candidate&) {
  return {};
}

}  // namespace

bool strip_quantised_movement(SpecDraft& draft) {
  auto& spec = draft.spec;
  const auto bytes = draft.constant_bytes();
  const artefact::KernelStep* moving = nullptr;
  std::optional<QuantParams> params;
  for (std::size_t i = 0; i < spec.steps.size(); ++i) {
    const auto& step = spec.steps[i];
    const bool last = i + 1 == spec.steps.size();
    Result<QuantParams> found = fail(ErrorCode::kUnimplemented, "");
    if (step.op_type == "DequantizeLinear") {
      found = dequantised(spec, bytes, step).map([](const auto& tensor) { return tensor.params; });
    } else if (step.op_type == "QuantizeLinear" && last && check_precision(step)) {
      found = quant_params(spec, bytes, spec.outputs[0].dtype, step_input(step, 1),
                           step_input(step, 2));
    } else {
      const bool moves =
          std::find(kMovement.begin(), kMovement.end(), step.op_type) != kMovement.end();
      if (!moves || moving != nullptr || !step.domain.empty()) return false;
      moving = &step;
      continue;
    }
    if (!found || found->zero_operand >= 0 || !std::isnormal(found->scale)) return false;
    if (params && *params != *found) return false;
    params = *found;
  }
  if (moving == nullptr || spec.steps.back().op_type != "QuantizeLinear") return false;
  artefact::KernelStep alone = *moving;
  const std::size_t data_inputs = alone.op_type == "Concat" ? alone.inputs.size() : 1;
  for (std::size_t i = 0; i < data_inputs; ++i) {
    const auto* made = dequantizer_of(spec, alone.inputs[i]);
    if (made == nullptr) return false;
    alone.inputs[i] = step_input(*made, 0);
  }
  spec.steps = {std::move(alone)};
  spec.output_operands = {result_number(spec, 0)};
  return true;
}

const Family& quant_family() {
  static const Family family{offer_quant, finish_quant};
  return family;
}
const Family& quantize_family() {
  static const Family family{offer_quantize, finish_nothing};
  return family;
}
const Family& dynamic_quantize_family() {
  static const Family family{offer_dynamic_quantize, finish_nothing};
  return family;
}

}  // namespace tessera::backends::cpu
