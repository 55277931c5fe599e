#include "ops/nn/conv_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/nn/nn_util.h"

namespace tessera::ops::nn {
namespace {

Status check_ranks(std::string_view op, const ConvOperands& operands) {
  const std::size_t rank = operands.x.size();
  if (rank < 3) {
    return op_error(
        op,
        fmt::format("input 'X': expected rank 3 or more (batch, channels, spatial), found rank {}",
                    rank));
  }
  if (operands.w.size() != rank) {
    return op_error(op, fmt::format("input 'W': expected rank {} as 'X' has, found rank {}", rank,
                                    operands.w.size()));
  }
  if (operands.b && operands.b->size() != 1) {
    return op_error(op,
                    fmt::format("input 'B': expected rank 1, found rank {}", operands.b->size()));
  }
  return {};
}

Result<std::int64_t> read_group(std::string_view op, const Attributes& attributes) {
  const std::int64_t group = attributes.get_int("group", 1);
  if (group < 1) return op_error(op, fmt::format("group: expected at least 1, found {}", group));
  return group;
}

Status check_divides(std::string_view op, std::int64_t group, const Dim& channels,
                     std::string_view what) {
  if (const auto known = channels.constant(); known && *known % group != 0) {
    return op_error(op, fmt::format("group: expected a divisor of the {} {} channels, found {}",
                                    *known, what, group));
  }
  return {};
}

// output_shape of ConvTranspose for the spatial axes; empty where it is absent.
Result<Dims> read_output_shape(const Attributes& attributes, std::size_t spatial_rank) {
  Dims sizes = attributes.get_ints("output_shape");
  if (sizes.size() == spatial_rank + 2) sizes.erase(sizes.begin(), sizes.begin() + 2);
  if (!sizes.empty() && sizes.size() != spatial_rank) {
    return op_error("ConvTranspose", fmt::format("output_shape: expected {} values, found {}",
                                                 spatial_rank, sizes.size()));
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0)
      return op_error("ConvTranspose",
                      fmt::format("output_shape[{}]: expected at least 0, found {}", i, sizes[i]));
  }
  return sizes;
}

Result<Dims> read_output_padding(const Attributes& attributes, std::size_t spatial_rank) {
  Dims padding = attributes.get_ints("output_padding");
  if (padding.empty()) padding.assign(spatial_rank, 0);
  if (padding.size() != spatial_rank) {
    return op_error("ConvTranspose", fmt::format("output_padding: expected {} values, found {}",
                                                 spatial_rank, padding.size()));
  }
  for (std::size_t i = 0; i < spatial_rank; ++i) {
    if (padding[i] < 0)
      return op_error(
          "ConvTranspose",
          fmt::format("output_padding[{}]: expected at least 0, found {}", i, padding[i]));
  }
  return padding;
}

// Spreads what the full result has too much over both ends.
void split_padding(WindowAxis& axis, std::int64_t total, AutoPad mode) {
  total = std::max<std::int64_t>(0, total);
  const std::int64_t smaller = total / 2;
  axis.pad_begin = mode == AutoPad::kSameUpper ? smaller : total - smaller;
  axis.pad_end = total - axis.pad_begin;
}

// The size along one axis; sets the pads where they follow from the size.
Result<Dim> transposed_dim(Window& window, std::size_t i, const Dim& input, const Dim& extent,
                           std::int64_t padding, const Dims& wanted) {
  WindowAxis& axis = window.axes[i];
  const Dim full = Dim(axis.stride) * (input - Dim(1)) + Dim(padding) + extent;
  const bool same =
      window.auto_pad == AutoPad::kSameUpper || window.auto_pad == AutoPad::kSameLower;
  if (wanted.empty() && !same) {
    const Dim size = full - Dim(axis.pad_begin + axis.pad_end);
    if (const auto known = size.constant(); known && *known < 0) {
      if (*full.constant() < 0) {
        return op_error("ConvTranspose",
                        fmt::format("spatial axis {}: expected a size of at least 1, found 0", i));
      }
      return op_error("ConvTranspose",
                      fmt::format("spatial axis {}: expected pads of at most {}, found {} and {}",
                                  i, *full.constant(), axis.pad_begin, axis.pad_end));
    }
    return size;
  }
  const Dim size = wanted.empty() ? input * Dim(axis.stride) : Dim(wanted[i]);
  const auto total = (full - size).constant();
  if (total) split_padding(axis, *total, window.auto_pad);
  return size;
}

template <typename Plan>
Result<ConvSizes> sizes_of(const Plan& make_plan, const Dims& x, const Dims& w, const Dims* b) {
  ConvOperands operands{to_shape(x), to_shape(w), std::nullopt};
  if (b != nullptr) operands.b = to_shape(*b);
  TESSERA_ASSIGN(ConvPlan plan, make_plan(operands));
  ConvSizes sizes;
  sizes.output_dims = constant_dims(plan.output).value();
  sizes.batch = x[0];
  sizes.group = plan.group;
  sizes.in_channels = x[1] / plan.group;
  sizes.out_channels = sizes.output_dims[1] / plan.group;
  sizes.spatial.assign(x.begin() + 2, x.end());
  sizes.output.assign(sizes.output_dims.begin() + 2, sizes.output_dims.end());
  sizes.window = std::move(plan.window);
  return sizes;
}

}  // namespace

Result<ConvPlan> plan_conv(std::string_view op, const Attributes& attributes,
                           const ConvOperands& operands) {
  ConvPlan plan;
  TESSERA_TRY(check_ranks(op, operands));
  TESSERA_ASSIGN(plan.group, read_group(op, attributes));
  const Dim& out_channels = operands.w[0];
  TESSERA_TRY(check_divides(op, plan.group, out_channels, "output"));
  TESSERA_TRY(check_divides(op, plan.group, operands.x[1], "input"));
  TESSERA_TRY(require_size(
      op, "channels of input 'X'", operands.w[1] * Dim(plan.group),
      fmt::format("group {} times the {} channels of 'W'", plan.group, operands.w[1].to_string()),
      operands.x[1]));
  if (operands.b) {
    TESSERA_TRY(require_size(op, "elements of input 'B'", out_channels,
                             "one for each output channel", (*operands.b)[0]));
  }
  TESSERA_ASSIGN(WeightWindow window, read_weight_window(op, attributes, operands.w));
  plan.window = std::move(window.window);
  plan.output = {operands.x[0], out_channels};
  for (std::size_t i = 0; i < window.extents.size(); ++i) {
    TESSERA_ASSIGN(Dim size, output_dim(op, plan.window, i, operands.x[i + 2], window.extents[i]));
    plan.output.push_back(std::move(size));
  }
  return plan;
}

Result<ConvPlan> plan_conv_transpose(const Attributes& attributes, const ConvOperands& operands) {
  const std::string_view op = "ConvTranspose";
  ConvPlan plan;
  TESSERA_TRY(check_ranks(op, operands));
  TESSERA_ASSIGN(plan.group, read_group(op, attributes));
  TESSERA_TRY(check_divides(op, plan.group, operands.x[1], "input"));
  TESSERA_TRY(require_size(op, "channels of input 'X'", operands.w[0], "the first size of 'W'",
                           operands.x[1]));
  const Dim out_channels = operands.w[1] * Dim(plan.group);
  if (operands.b) {
    TESSERA_TRY(require_size(op, "elements of input 'B'", out_channels,
                             "one for each output channel", (*operands.b)[0]));
  }
  TESSERA_ASSIGN(WeightWindow window, read_weight_window(op, attributes, operands.w));
  plan.window = std::move(window.window);
  const std::size_t spatial_rank = operands.x.size() - 2;
  TESSERA_ASSIGN(const Dims padding, read_output_padding(attributes, spatial_rank));
  TESSERA_ASSIGN(const Dims wanted, read_output_shape(attributes, spatial_rank));
  plan.output = {operands.x[0], out_channels};
  for (std::size_t i = 0; i < spatial_rank; ++i) {
    TESSERA_ASSIGN(Dim size, transposed_dim(plan.window, i, operands.x[i + 2], window.extents[i],
                                            padding[i], wanted));
    plan.output.push_back(std::move(size));
  }
  return plan;
}

Result<ConvSizes> conv_sizes(std::string_view op, const Attributes& attributes, const Dims& x,
                             const Dims& w, const Dims* b) {
  TESSERA_ASSIGN(
      ConvSizes sizes,
      sizes_of([&](const ConvOperands& o) { return plan_conv(op, attributes, o); }, x, w, b));
  sizes.window = with_explicit_pads(std::move(sizes.window), sizes.spatial);
  return sizes;
}

Result<ConvSizes> conv_transpose_sizes(const Attributes& attributes, const Dims& x, const Dims& w,
                                       const Dims* b) {
  return sizes_of([&](const ConvOperands& o) { return plan_conv_transpose(attributes, o); }, x, w,
                  b);
}

}  // namespace tessera::ops::nn
