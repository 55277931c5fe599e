// Conv and ConvTranspose with their epilogues: through oneDNN, and by own code.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "backends/cpu/compile/conv_draft.h"
#include "backends/cpu/run/cpu_features.h"
#include "backends/cpu/run/physical.h"

namespace tessera::backends::cpu {
namespace {

// In order of preference.
std::vector<ConvWay> ways(std::size_t rank, std::int64_t src_channels) {
  const Layout blocked = Layout::channel_blocked(static_cast<int>(rank), channel_block());
  const Layout last = Layout::channels_last(static_cast<int>(rank));
  std::vector<ConvWay> result;
  if (src_channels > 4) result.push_back({blocked, blocked});
  if (src_channels <= 4) result.push_back({{}, blocked});
  if (src_channels > 1) result.push_back({last, last});
  result.push_back({{}, {}});
  return result;
}

// What oneDNN would do for a draft in layouts: how many steps it takes, in which order it wants the
// weights.
struct Choice {
  std::size_t steps = 0;
  Layout weights;
  std::string implementation;
};

Result<Choice> choose_cut(const SpecDraft& draft, const InstanceDims& dims, std::size_t steps) {
  const auto bytes = draft.constant_bytes();
  TESSERA_ASSIGN(const ConvPlan plan, plan_conv(draft.spec, bytes, steps));
  const OperandRef src_ref = operand_ref(draft.spec, plan.src_operand);
  if (src_ref.kind != OperandRef::Kind::kInput)
    return fail(ErrorCode::kUnimplemented,
                "input 'X': expected one computed at run time, found a constant");
  const Dims& src = dims.inputs[src_ref.index];
  const Dims& dst = dims.outputs[0];
  const bool packs = is_constant(draft.spec, plan.weights_operand);
  const auto describe =
      [&](const std::optional<Layout>& weights) -> Result<std::shared_ptr<OnednnPrimitive>> {
    TESSERA_ASSIGN(ConvProblem problem, plan.problem(src, dst, plan.whole(dst), weights));
    TESSERA_TRY(
        set_post_op_operands(draft.spec, plan.epilogue, dims, problem.dst.dims, problem.post_ops));
    TESSERA_ASSIGN(auto made, OnednnPrimitive::describe(problem));
    if (made->is_reference())
      return fail(
          ErrorCode::kUnimplemented,
          fmt::format("oneDNN: expected optimised code, found '{}'", made->implementation()));
    return made;
  };
  Choice choice;
  choice.steps = steps;
  if (packs) {
    TESSERA_ASSIGN(const auto any, describe(std::nullopt));
    TESSERA_ASSIGN(const Layout library, any->weights_layout());
    TESSERA_ASSIGN(choice.weights, plan.to_onnx_layout(library, src, dst));
  }
  TESSERA_ASSIGN(const auto fixed, describe(choice.weights));
  choice.implementation = fixed->implementation();
  TESSERA_TRY(check_tail(draft, dims, 1 + steps));
  return choice;
}

Result<Choice> choose(const SpecDraft& draft, const InstanceDims& dims) {
  const auto bytes = draft.constant_bytes();
  const bool accepts_bias = step_input(draft.spec.steps[0], 2) < 0;
  Error first;
  for (const EpiloguePlan& cut : plan_epilogue(draft.spec, bytes, accepts_bias, 1)) {
    auto choice = choose_cut(draft, dims, cut.steps);
    if (choice) return choice;
    if (first.message.empty()) first = choice.error();
  }
  return tl::unexpected(first);
}

// Shares of the peak that the library's implementations reach, as measured on whole models. What is
// generated for a shape ("jit") multiplies well; what unfolds the source and calls a product
// ("gemm") loses most of it, more where the product is small.
constexpr double kJit = 0.6;
constexpr double kJitFewChannels = 0.4;
constexpr double kJitDepthwise = 0.3;
constexpr double kJitTransposed = 0.05;  // a bias and what follows run as plain code
constexpr double kGemm = 0.25;
constexpr double kGemmGrouped = 0.03;
constexpr double kGemmTransposed = 0.1;

double efficiency(const std::string& implementation, const ConvPlan& plan, const Dims& dst) {
  const auto share = [](std::int64_t have, std::int64_t wanted) {
    return std::min(1.0, static_cast<double>(have) / static_cast<double>(wanted));
  };
  if (implementation.find("gemm") != std::string::npos) {
    if (plan.transposed) return kGemmTransposed * share(dst[1], 16);
    if (plan.group > 1) return kGemmGrouped;
    return kGemm * share(dst[1], 8) * share(numel(dst) / (dst[0] * dst[1]), 64);
  }
  // Results of one row are computed together.
  const double width = share(dst.back() + 2, 8);
  if (plan.transposed) return kJitTransposed;
  if (plan.depthwise()) return kJitDepthwise * width;
  const bool few = plan.weight_dims[1] < 16 || plan.weight_dims[0] < 32;
  const std::int64_t block = channel_block();
  const std::int64_t stored = (dst[1] + block - 1) / block * block;
  return (few ? kJitFewChannels : kJit) * width * share(dst[1], stored);
}

// The draft's products and sums: each weight meets each position of the source (transposed), or of
// the result.
double product_flops(const ConvPlan& plan, const Dims& src, const Dims& dst) {
  const Dims& met = plan.transposed ? src : dst;
  const std::int64_t positions = numel(met) / std::max<std::int64_t>(met[1], 1);
  return 2.0 * static_cast<double>(positions) * static_cast<double>(numel(plan.weight_dims));
}

struct LibraryOffers {
  Offers offers;                     // of code that is generated for the very shape
  std::vector<Candidate> unfolding;  // the source, for a product
};

LibraryOffers offer_onednn_conv(const OfferRequest& request, const ConvPlan& plan, double flops,
                                std::int64_t src_channels) {
  const SpecDraft& draft = request.draft;
  LibraryOffers result;
  Offers& offers = result.offers;
  for (const ConvWay& way : ways(request.dims.outputs[0].size(), src_channels)) {
    auto laid = conv_in_layouts(draft, way);
    auto choice = laid ? choose(*laid, request.dims) : Result<Choice>(tl::unexpected(laid.error()));
    if (!choice) {
      if (offers.refusal.empty())
        offers.refusal = fmt::format("{} in {}: {}", describe_steps(draft.spec),
                                     way.dst.to_string(), choice.error().to_string());
      continue;
    }
    Candidate candidate = conv_candidate(*laid, "onednn.conv", request.dims, flops);
    candidate.options["post_op_steps"] = static_cast<std::int64_t>(choice->steps);
    put_layout(candidate.options, "weights", choice->weights);
    candidate.efficiency = efficiency(choice->implementation, plan, request.dims.outputs[0]);
    const bool unfolds = choice->implementation.find("gemm") != std::string::npos;
    (unfolds ? result.unfolding : offers.candidates).push_back(std::move(candidate));
  }
  return result;
}

Offers offer_conv(const OfferRequest& request) {
  const SpecDraft& draft = request.draft;
  const auto bytes = draft.constant_bytes();
  const auto plan = plan_conv(draft.spec, bytes, 0);
  if (!plan) return refuse(plan.error());
  // A source that is a constant has its operand behind the inputs.
  const auto src_operand = static_cast<std::size_t>(plan->src_operand);
  const bool computed = src_operand < draft.spec.inputs.size();
  const auto src_channels =
      computed ? draft.spec.inputs[src_operand].shape[1].constant() : std::nullopt;
  if (!src_channels)
    return refuse(fmt::format("{}: input 'X': expected a known number of channels",
                              draft.spec.steps[0].op_type));
  const double flops =
      product_flops(*plan, request.dims.inputs[src_operand], request.dims.outputs[0]);
  auto [offers, unfolding] = offer_onednn_conv(request, *plan, flops, *src_channels);
  const bool alone = offers.candidates.empty();
  std::vector<Candidate> own;
  for (Offers some :
       {offer_plane_conv(request, *plan, flops, alone), offer_gemm_conv(request, flops),
        offer_winograd_conv(request), offer_depthwise_conv(request, *plan, flops)}) {
    std::move(some.candidates.begin(), some.candidates.end(), std::back_inserter(own));
    if (offers.refusal.empty()) offers.refusal = std::move(some.refusal);
  }
  // The library generates its product in the first run of a process, for longer than most models
  // take: so it is asked for one only where nothing else does the work.
  if (own.empty()) own = std::move(unfolding);
  std::move(own.begin(), own.end(), std::back_inserter(offers.candidates));
  if (!offers.candidates.empty()) offers.refusal.clear();
  return offers;
}

Status finish_conv(SpecDraft& draft, const Candidate& candidate) {
  const Layout src =
      draft.spec.inputs[static_cast<std::size_t>(step_input(draft.spec.steps[0], 0))].layout;
  TESSERA_ASSIGN(draft, conv_in_layouts(draft, {src, draft.spec.outputs[0].layout}));
  if (candidate.kernel == "simd.depthwise_conv") return finish_depthwise_conv(draft);
  if (candidate.kernel == "simd.conv") {
    finish_plane_conv(draft);
    return {};
  }
  if (candidate.kernel == "simd.gemm_conv") {
    finish_gemm_conv(draft);
    return {};
  }
  if (candidate.kernel == "simd.winograd_conv") {
    finish_winograd_conv(draft, candidate);
    return {};
  }
  const OperandRef weights = operand_ref(draft.spec, step_input(draft.spec.steps[0], 1));
  if (weights.kind == OperandRef::Kind::kConstant)
    relayout_constant(draft, weights.index, get_layout(candidate.options, "weights"));
  return {};
}

}  // namespace

Result<SpecDraft> conv_in_layouts(const SpecDraft& draft, const ConvWay& way) {
  SpecDraft result = draft;
  auto& spec = result.spec;
  const std::size_t rank = spec.outputs[0].shape.size();
  spec.outputs[0].layout = way.dst;
  const std::int32_t src = step_input(spec.steps[0], 0);
  const std::int32_t weights = step_input(spec.steps[0], 1);
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    const auto number = static_cast<std::int32_t>(i);
    if (number == weights) continue;
    if (number == src) {
      spec.inputs[i].layout = way.src;
    } else if (spec.inputs[i].shape.size() == rank) {
      spec.inputs[i].layout = way.dst;
    } else if (!way.dst.is_row_major() && !spec.inputs[i].shape.empty()) {
      return fail(ErrorCode::kUnimplemented,
                  fmt::format("input {}: expected an operand of rank {}, found {}", i, rank,
                              to_string(spec.inputs[i].shape)));
    }
  }
  const int block = channel_block_of(way.dst);
  const OperandRef bias = operand_ref(spec, step_input(spec.steps[0], 2));
  if (bias.kind == OperandRef::Kind::kConstant && block > 1) {
    relayout_constant(result, bias.index, Layout{{0}, {{0, static_cast<std::uint16_t>(block)}}});
  } else if (bias.kind == OperandRef::Kind::kInput && block > 1) {
    return fail(ErrorCode::kUnimplemented,
                "input 'B': expected a constant, found one computed at run time");
  }
  align_elementwise_constants(result, 1);
  return result;
}

Candidate conv_candidate(const SpecDraft& laid, std::string kernel, const InstanceDims& dims,
                         double product_flops) {
  const auto& spec = laid.spec;
  Candidate candidate = make_candidate(
      laid, std::move(kernel), [&](std::size_t i) { return spec.inputs[i].layout; },
      [&](std::size_t o) { return spec.outputs[o].layout; });
  set_traffic(candidate, laid, dims);
  candidate.flops = product_flops + static_cast<double>(numel(dims.outputs[0])) *
                                        static_cast<double>(spec.steps.size() - 1);
  return candidate;
}

const Family& conv_family() {
  static const Family family{offer_conv, finish_conv};
  return family;
}

}  // namespace tessera::backends::cpu
