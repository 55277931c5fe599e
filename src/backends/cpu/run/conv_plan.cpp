#include "backends/cpu/run/conv_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/run/physical.h"

namespace tessera::backends::cpu {
namespace {

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

Result<Dims> sizes_attribute(const artefact::KernelStep& step, std::string_view name,
                             std::size_t count) {
  Dims values = step.attributes.get_ints(name, Dims(count, 1));
  if (values.size() == count) return values;
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("{}: attribute '{}': expected {} values, found {}", step.op_type, name,
                          count, values.size()));
}

}  // namespace

bool ConvPlan::depthwise() const {
  return group > 1 && !transposed && weight_dims[0] == group && weight_dims[1] == 1;
}

ConvPlan::Pads ConvPlan::pads_for(const Dims& src, const Dims& dst) const {
  const std::size_t rank = kernel.size();
  Pads result{Dims(rank), Dims(rank)};
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t reach = (kernel[i] - 1) * dilations[i] + 1;
    const std::int64_t in = src[i + 2];
    const std::int64_t out = dst[i + 2];
    const std::int64_t total =
        transposed ? (in - 1) * strides[i] + reach - out : (out - 1) * strides[i] + reach - in;
    if (pads_from_size || auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
      const std::int64_t whole = std::max<std::int64_t>(total + output_padding[i], 0);
      result.begin[i] = auto_pad == "SAME_UPPER" ? whole / 2 : whole - whole / 2;
    } else if (auto_pad != "VALID") {
      result.begin[i] = pads[i];
    }
    result.end[i] = total - result.begin[i];
  }
  return result;
}

ConvAxis ConvPlan::axis(const Dims& src, const Dims& dst, std::size_t dim) const {
  return {src[dim + 2], dst[dim + 2],   kernel[dim],
          strides[dim], dilations[dim], pads_for(src, dst).begin[dim]};
}

std::int64_t ConvPlan::stored_src_channels(const Dims& src) const {
  return round_up(src[1], channel_block_of(src_layout));
}
std::int64_t ConvPlan::stored_dst_channels(const Dims& dst) const {
  return round_up(dst[1], channel_block_of(dst_layout));
}

ConvPlan::Piece ConvPlan::whole(const Dims& dst) const {
  return {dst[0], stored_dst_channels(dst), 0, dst[2]};
}

ChunkRange ConvPlan::source_rows(const Dims& src, const Dims& dst, const Piece& piece) const {
  if (piece.row_begin == 0 && piece.row_end == dst[2]) return {0, src[2]};
  const std::int64_t reach = (kernel[0] - 1) * dilations[0] + 1;
  const std::int64_t begin = pads_for(src, dst).begin[0];
  return {std::clamp<std::int64_t>(piece.row_begin * strides[0] - begin, 0, src[2]),
          std::clamp<std::int64_t>((piece.row_end - 1) * strides[0] - begin + reach, 0, src[2])};
}

Result<ConvProblem> ConvPlan::problem(const Dims& src, const Dims& dst, const Piece& piece,
                                      const std::optional<Layout>& weights_layout) const {
  ConvProblem result;
  result.transposed = transposed;
  const Pads all = pads_for(src, dst);
  const std::int64_t src_channels = group > 1
                                        ? stored_src_channels(src) * piece.channels /
                                              std::max<std::int64_t>(stored_dst_channels(dst), 1)
                                        : stored_src_channels(src);
  Dims src_dims = src;
  Dims dst_dims = dst;
  src_dims[0] = dst_dims[0] = piece.batch;
  src_dims[1] = src_channels;
  dst_dims[1] = piece.channels;
  const ChunkRange rows = source_rows(src, dst, piece);
  src_dims[2] = rows.end - rows.begin;
  dst_dims[2] = piece.row_end - piece.row_begin;
  result.pads_begin = all.begin;
  result.pads_end = all.end;
  if (dst_dims[2] != dst[2]) {
    const std::int64_t reach = (kernel[0] - 1) * dilations[0] + 1;
    const std::int64_t first = piece.row_begin * strides[0] - all.begin[0];
    result.pads_begin[0] = rows.begin - first;
    result.pads_end[0] =
        (piece.row_end - 1) * strides[0] + first - piece.row_begin * strides[0] + reach - rows.end;
  }
  result.src = {src_dims, src_layout, false};
  result.dst = {dst_dims, dst_layout, false};
  result.strides = strides;
  result.dilations = dilations;
  result.bias = epilogue.bias.has_value();

  // Weights over the library's dims: [O, I, k...] or [G, O/G, I/G, k...].
  const std::int64_t piece_groups = group == 1 ? 1
                                    : depthwise()
                                        ? piece.channels
                                        : group * piece.channels / stored_dst_channels(dst);
  Dims weights;
  if (group > 1)
    weights = {piece_groups, piece.channels / piece_groups, src_channels / piece_groups};
  if (group == 1) weights = {piece.channels, src_channels};
  weights.insert(weights.end(), kernel.begin(), kernel.end());
  result.weights = {weights, {}, !weights_layout};
  if (weights_layout) {
    const Layout& own = *weights_layout;
    Layout mapped;
    const std::size_t rank = weight_dims.size();
    const auto map_dim = [&](std::size_t dim) -> std::uint8_t {
      if (transposed && dim < 2) dim = 1 - dim;
      if (group == 1) return static_cast<std::uint8_t>(dim);
      if (depthwise()) return static_cast<std::uint8_t>(dim == 0 ? 0 : dim + 1);
      return static_cast<std::uint8_t>(dim + 1);
    };
    if (group > 1 && !depthwise()) mapped.order.push_back(0);
    for (std::size_t i = 0; i < rank; ++i) {
      const std::size_t dim = own.order.empty() ? i : own.order[i];
      mapped.order.push_back(map_dim(dim));
      if (depthwise() && dim == 0) mapped.order.push_back(1);
    }
    for (const auto& [dim, size] : own.blocks) mapped.blocks.emplace_back(map_dim(dim), size);
    result.weights.layout = mapped;
    if (padded_dims(mapped, weights) != weights) {
      return fail(ErrorCode::kUnimplemented,
                  fmt::format("expected weights in whole blocks of {}, found {}", own.to_string(),
                              to_string(weights)));
    }
  }
  for (const PlannedPostOp& planned : epilogue.post_ops) {
    PostOp op = planned.op;
    if (op.binary)
      op.operand = {{}, dst_layout, false};  // dims are set by the caller, who knows the operand's
    result.post_ops.push_back(std::move(op));
  }
  return result;
}

Result<Layout> ConvPlan::to_onnx_layout(const Layout& library, const Dims& src,
                                        const Dims& dst) const {
  const std::size_t rank = weight_dims.size();
  const std::size_t library_rank = group == 1 ? rank : rank + 1;
  Layout full = library;
  if (full.order.empty()) {
    for (std::size_t i = 0; i < library_rank; ++i)
      full.order.push_back(static_cast<std::uint8_t>(i));
  }
  const auto inexpressible = [&] {
    return fail(ErrorCode::kUnimplemented,
                fmt::format("oneDNN: weights of {} groups in an order that has no layout: {}",
                            group, library.to_string()));
  };
  Layout result;
  const bool grouped = group > 1 && !depthwise();
  if (grouped && full.order[0] != 0) return inexpressible();
  if (grouped && !full.blocks.empty() && full.order[1] != (transposed ? 2 : 1))
    return inexpressible();
  if (grouped && full.order[1] != (transposed ? 2 : 1)) return inexpressible();
  const auto map_dim = [&](std::uint8_t dim) -> std::uint8_t {
    std::size_t mapped = group == 1 ? dim : depthwise() ? (dim == 0 ? 0U : dim - 1U) : dim - 1U;
    if (transposed && mapped < 2) mapped = 1 - mapped;
    return static_cast<std::uint8_t>(mapped);
  };
  for (const std::uint8_t dim : full.order) {
    if (group > 1 && dim == (depthwise() ? 1 : 0)) continue;
    result.order.push_back(map_dim(dim));
  }
  for (const auto& [dim, size] : full.blocks) {
    if (group > 1 && dim == (depthwise() ? 1 : 0)) return inexpressible();
    result.blocks.emplace_back(map_dim(dim), size);
  }
  if (result.blocks.empty() && std::is_sorted(result.order.begin(), result.order.end()))
    result.order.clear();
  // The padded sizes must be those that the library was told.
  TESSERA_ASSIGN(const ConvProblem checked, problem(src, dst, whole(dst), result));
  if (numel(padded_dims(result, weight_dims)) != numel(checked.weights.dims))
    return inexpressible();
  return result;
}

Result<ConvPlan> plan_conv(const artefact::KernelSpec& spec, Constants constants,
                           std::size_t epilogue_steps) {
  if (spec.steps.empty() || spec.outputs.size() != 1)
    return bad_spec(spec, "expected steps and one output");
  const auto& step = spec.steps[0];
  ConvPlan plan;
  plan.transposed = step.op_type == "ConvTranspose";
  plan.src_operand = step_input(step, 0);
  plan.weights_operand = step_input(step, 1);
  const auto* src = operand_decl(spec, plan.src_operand);
  const auto* weights = operand_decl(spec, plan.weights_operand);
  if (src == nullptr || weights == nullptr)
    return bad_spec(spec, "expected a source and weights from outside");
  const auto weight_dims = constant_dims(weights->shape);
  if (!weight_dims)
    return fail(ErrorCode::kUnimplemented,
                fmt::format("{}: expected weights of known sizes, found {}", step.op_type,
                            to_string(weights->shape)));
  if (weight_dims->size() < 3 || src->shape.size() != weight_dims->size()) {
    return bad_spec(
        spec,
        fmt::format(
            "expected weights of rank 3 or more and a source of the same rank, found {} and {}",
            weight_dims->size(), src->shape.size()));
  }
  if (src->dtype != DType::kFp32 || weights->dtype != DType::kFp32) {
    return fail(ErrorCode::kUnimplemented,
                fmt::format("{}: expected fp32, found {}", step.op_type,
                            to_string(src->dtype == DType::kFp32 ? weights->dtype : src->dtype)));
  }
  plan.weight_dims = *weight_dims;
  plan.kernel.assign(weight_dims->begin() + 2, weight_dims->end());
  const std::size_t spatial = plan.kernel.size();
  plan.group = step.attributes.get_int("group", 1);
  TESSERA_ASSIGN(plan.strides, sizes_attribute(step, "strides", spatial));
  TESSERA_ASSIGN(plan.dilations, sizes_attribute(step, "dilations", spatial));
  plan.pads = step.attributes.get_ints("pads", Dims(2 * spatial, 0));
  if (plan.pads.size() != 2 * spatial)
    return bad_spec(spec, fmt::format("attribute 'pads': expected {} values, found {}", 2 * spatial,
                                      plan.pads.size()));
  plan.auto_pad = step.attributes.get_string("auto_pad", "NOTSET");
  plan.output_padding = step.attributes.get_ints("output_padding");
  plan.output_padding.resize(spatial, 0);
  plan.pads_from_size = !step.attributes.get_ints("output_shape").empty();
  plan.src_layout = src->layout;
  plan.dst_layout = spec.outputs[0].layout;
  const std::int32_t bias = step_input(step, 2);
  if (bias >= 0 && operand_decl(spec, bias) == nullptr)
    return bad_spec(spec, "expected a bias from outside");
  for (EpiloguePlan& cut : plan_epilogue(spec, constants, bias < 0, 1)) {
    if (cut.steps == epilogue_steps) {
      plan.epilogue = std::move(cut);
      if (bias >= 0) plan.epilogue.bias = bias;
      return plan;
    }
  }
  return bad_spec(spec,
                  fmt::format("expected an epilogue of which oneDNN takes {} steps, found another",
                              epilogue_steps));
}

Status check_own_conv(const artefact::KernelSpec& spec, const ConvPlan& plan) {
  const auto refuse = [&](const std::string& text) {
    return fail(ErrorCode::kUnimplemented, spec.steps[0].op_type + ": " + text);
  };
  if (plan.weight_dims.size() > 4)
    return refuse(fmt::format("expected rank 3 or 4, found {}", plan.weight_dims.size()));
  if (!is_constant(spec, plan.weights_operand))
    return refuse("input 'W': expected a constant, found one computed at run time");
  if (is_constant(spec, plan.src_operand))
    return refuse("input 'X': expected one computed at run time, found a constant");
  return {};
}

}  // namespace tessera::backends::cpu
