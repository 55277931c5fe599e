#include "backends/cpu/run/pool_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/run/physical.h"

namespace tessera::backends::cpu {

std::int64_t PoolPlan::begin_pad(std::size_t d, std::int64_t in, std::int64_t out) const {
  if (auto_pad == "VALID") return 0;
  if (auto_pad != "SAME_UPPER" && auto_pad != "SAME_LOWER") return pads[d];
  const std::int64_t total =
      std::max<std::int64_t>((out - 1) * strides[d] + (kernel[d] - 1) * dilations[d] + 1 - in, 0);
  return auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
}

std::int64_t PoolPlan::padded_end(std::size_t d, std::int64_t in, std::int64_t out) const {
  if (auto_pad == "VALID") return in;
  if (auto_pad != "SAME_UPPER" && auto_pad != "SAME_LOWER") return in + pads[kernel.size() + d];
  const std::int64_t total =
      std::max<std::int64_t>((out - 1) * strides[d] + (kernel[d] - 1) * dilations[d] + 1 - in, 0);
  return in + total - begin_pad(d, in, out);
}

std::int64_t PoolPlan::folded_images(const Dims& dims) const {
  if (is_channels_last(layout, dims.size())) return dims[0];
  const std::int64_t block = channel_block_of(layout);
  return dims[0] * ((dims[1] + block - 1) / block);
}

Result<PoolProblem> PoolPlan::problem(const Dims& src, const Dims& dst, std::int64_t images) const {
  if (!average)
    return fail(ErrorCode::kUnimplemented, "oneDNN: expected AveragePool, found MaxPool");
  PoolProblem result;
  result.kind = include_pad ? PoolKind::kAverageIncludePad : PoolKind::kAverageExcludePad;
  const bool last = is_channels_last(layout, src.size());
  Dims src_dims = src;
  Dims dst_dims = dst;
  src_dims[0] = dst_dims[0] = images;
  src_dims[1] = dst_dims[1] = last ? src[1] : channel_block_of(layout);
  result.src = {src_dims, layout, false};
  result.dst = {dst_dims, layout, false};
  result.kernel = kernel;
  result.strides = strides;
  result.dilations = dilations;
  for (std::size_t d = 0; d < kernel.size(); ++d) {
    const std::int64_t in = src[d + 2];
    const std::int64_t out = dst[d + 2];
    const std::int64_t begin = begin_pad(d, in, out);
    const std::int64_t end =
        (out - 1) * strides[d] + (kernel[d] - 1) * dilations[d] + 1 - in - begin;
    if (include_pad && end > padded_end(d, in, out) - in) {
      return fail(ErrorCode::kUnimplemented,
                  "oneDNN: expected windows that end in the declared padding, found ones that "
                  "ceil_mode adds");
    }
    result.pads_begin.push_back(begin);
    result.pads_end.push_back(end);
  }
  return result;
}

Result<PoolPlan> plan_pool(const artefact::KernelSpec& spec) {
  if (spec.steps.size() != 1 || spec.inputs.size() != 1 || spec.outputs.size() != 1)
    return bad_spec(spec, "expected one step, one input and one output");
  const auto& step = spec.steps[0];
  if (step.output_count != 1)
    return fail(ErrorCode::kUnimplemented,
                fmt::format("{}: expected one output, found {}", step.op_type, step.output_count));
  if (spec.inputs[0].dtype != DType::kFp32)
    return fail(ErrorCode::kUnimplemented, fmt::format("{}: expected fp32, found {}", step.op_type,
                                                       to_string(spec.inputs[0].dtype)));
  PoolPlan plan;
  plan.average = step.op_type == "AveragePool";
  plan.include_pad = step.attributes.get_int("count_include_pad", 0) != 0;
  plan.layout = spec.inputs[0].layout;
  const std::size_t rank = spec.inputs[0].shape.size();
  if (rank < 3 || rank > 5)
    return fail(ErrorCode::kUnimplemented,
                fmt::format("{}: expected a rank of 3 to 5, found {}", step.op_type, rank));
  const std::size_t spatial = rank - 2;
  plan.kernel = step.attributes.get_ints("kernel_shape");
  plan.strides = step.attributes.get_ints("strides", Dims(spatial, 1));
  plan.dilations = step.attributes.get_ints("dilations", Dims(spatial, 1));
  plan.pads = step.attributes.get_ints("pads", Dims(2 * spatial, 0));
  plan.auto_pad = step.attributes.get_string("auto_pad", "NOTSET");
  if (plan.kernel.size() != spatial || plan.strides.size() != spatial ||
      plan.dilations.size() != spatial || plan.pads.size() != 2 * spatial) {
    return bad_spec(
        spec, fmt::format("expected kernel_shape, strides, dilations and pads for {} spatial dims",
                          spatial));
  }
  return plan;
}

}  // namespace tessera::backends::cpu
