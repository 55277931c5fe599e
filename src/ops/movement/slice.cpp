#include <fmt/format.h>

#include <numeric>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/movement/movement_util.h"
#include "ops/schema_util.h"
#include "ops/upgrade_util.h"

namespace tessera::ops {
namespace {

// One axis of a slice of a concrete tensor: `count` elements from `start` on, `step` apart.
struct AxisSlice {
  std::int64_t start = 0;
  std::int64_t step = 1;
  std::int64_t count = 0;
};

// Negative positions count from the end; then starts are clamped to [0, size] (to [0, size - 1] for
// negative steps), ends to [0, size] (to [-1, size - 1]). INT64_MIN as a step is as good as
// -INT64_MAX.
AxisSlice slice_axis(std::int64_t size, std::int64_t start, std::int64_t end, std::int64_t step) {
  if (size == 0) return {0, 1, 0};
  step = std::max(step, -INT64_MAX);
  const std::int64_t highest = step > 0 ? size : size - 1;
  start = std::clamp(start < 0 ? start + size : start, std::int64_t{0}, highest);
  end = std::clamp(end < 0 ? end + size : end, step > 0 ? std::int64_t{0} : std::int64_t{-1},
                   highest);
  if (step > 0) return {start, step, end > start ? (end - start - 1) / step + 1 : 0};
  return {start, step, start > end ? (start - end - 1) / -step + 1 : 0};
}

// Axes of a slice in the order of starts and ends: input `axes`, or 0, 1, 2...
Result<std::vector<std::int64_t>> slice_axes(std::optional<std::vector<std::int64_t>> axes,
                                             std::size_t count, std::size_t rank) {
  if (!axes) {
    axes.emplace(count);
    std::iota(axes->begin(), axes->end(), 0);
  }
  if (axes->size() != count) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("input 'axes': expected {} values, as many as 'starts', found {}",
                            count, axes->size()));
  }
  return normalize_axes(*axes, static_cast<std::int64_t>(rank), "input 'axes'");
}

tl::unexpected<Error> zero_step() {
  return fail(ErrorCode::kInvalidArgument, "input 'steps': expected values other than 0, found 0");
}

// ---- Inference
// -------------------------------------------------------------------------------------------------

// Ends of "as far as it goes" in models: INT32_MAX, INT64_MAX and the like.
constexpr std::int64_t kOpenEnd = INT32_MAX;

// A position counted from the front and not below 0; nothing where its sign is open. It may lie
// behind the end.
std::optional<Dim> position(const Dim& at, const Dim& size) {
  const SymbolRange range = at.range({});
  if (range.min >= 0) return at;
  if (range.max < 0) {
    if (at.constant().value_or(0) <= -kOpenEnd) return Dim(0);
    return max(size + at, 0);
  }
  return std::nullopt;
}

// The same for a slice backwards, whose start and end are numbers: positions are clamped to
// [0, size - 1], ends to [-1, size - 1].
Dim backward_size(const Dim& size, std::int64_t start, std::int64_t end, std::int64_t step) {
  const Dim stride(-std::max(step, -INT64_MAX));
  if ((start == -1 || start >= kOpenEnd) && end <= -kOpenEnd) return ceildiv(size, stride);
  const Dim last = size - Dim(1);
  const auto clamped = [&](std::int64_t at, std::int64_t lowest) {
    if (at == -1 || at >= kOpenEnd) return Dim(last);
    if (at <= -kOpenEnd) return Dim(lowest);
    return min(at < 0 ? max(size + Dim(at), lowest) : Dim(at), last);
  };
  return ceildiv(max(clamped(start, 0) - clamped(end, -1), 0), stride);
}

// Elements of [start, end) with a step; nothing where it cannot be said.
std::optional<Dim> slice_size(const Dim& size, const Dim& start, const Dim& end,
                              std::int64_t step) {
  const auto constants = std::array{size.constant(), start.constant(), end.constant()};
  if (constants[0] && constants[1] && constants[2])
    return Dim(slice_axis(*constants[0], *constants[1], *constants[2], step).count);
  if (step < 0) {
    if (!constants[1] || !constants[2]) return std::nullopt;
    return backward_size(size, *constants[1], *constants[2], step);
  }
  const bool open_end = end == size || end.constant().value_or(0) >= kOpenEnd;
  if (open_end && start.constant().value_or(0) < 0)
    return ceildiv(min(size, Dim(0) - start), Dim(step));
  const auto first = position(start, size);
  auto last = position(end, size);
  if (!first || !last) return std::nullopt;
  const bool from_end = end.range({}).max < 0;
  const bool within = from_end || (size - *last).range({}).min >= 0;
  last = open_end ? size : within ? *last : min(*last, size);
  const Dim length = *last - *first;
  return ceildiv(length.range({}).min >= 0 ? length : max(length, 0), Dim(step));
}

// What is known of starts, ends, axes and steps.
struct Bounds {
  std::vector<std::int64_t> axes;
  std::optional<DimTensor> starts;
  std::optional<DimTensor> ends;
  std::optional<std::vector<std::int64_t>> steps;
};

// Nothing where not even the axes are known.
Result<std::optional<Bounds>> known_bounds(const InferContext& context, std::size_t rank) {
  Bounds bounds;
  bounds.starts = known_value(context.inputs[1]);
  bounds.ends = known_value(context.inputs[2]);
  std::optional<std::size_t> count;
  if (bounds.starts) count = bounds.starts->elements.size();
  const auto& shape = context.inputs[1].type.shape;
  if (!count && shape && shape->size() == 1 && shape->front().constant())
    count = static_cast<std::size_t>(*shape->front().constant());
  std::optional<std::vector<std::int64_t>> axes;
  if (has_input(context, 3)) {
    axes = known_ints(context.inputs[3]);
    if (!axes) return std::optional<Bounds>();
    if (!count) count = axes->size();
  }
  if (!count) return std::optional<Bounds>();
  TESSERA_ASSIGN(bounds.axes, slice_axes(std::move(axes), *count, rank));
  bounds.steps =
      has_input(context, 4) ? known_ints(context.inputs[4]) : std::vector<std::int64_t>(*count, 1);
  if (bounds.ends && bounds.ends->elements.size() != *count) {
    return input_error(context, 2,
                       fmt::format("expected {} values, as many as 'starts', found {}", *count,
                                   bounds.ends->elements.size()));
  }
  if (bounds.steps && bounds.steps->size() != *count) {
    return input_error(context, 4,
                       fmt::format("expected {} values, as many as 'starts', found {}", *count,
                                   bounds.steps->size()));
  }
  if (bounds.steps && std::count(bounds.steps->begin(), bounds.steps->end(), 0) > 0)
    return zero_step();
  return std::optional(std::move(bounds));
}

std::optional<DimTensor> slice_value(const DimTensor& value, const Bounds& bounds) {
  if (bounds.axes.empty()) return value;
  const auto start = bounds.starts->elements[0].constant();
  const auto end = bounds.ends->elements[0].constant();
  if (value.scalar || !start || !end) return std::nullopt;
  const AxisSlice slice = slice_axis(static_cast<std::int64_t>(value.elements.size()), *start, *end,
                                     (*bounds.steps)[0]);
  DimTensor result;
  for (std::int64_t i = 0; i < slice.count; ++i)
    result.elements.push_back(
        value.elements[static_cast<std::size_t>(slice.start + i * slice.step)]);
  return result;
}

Status infer_slice(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* input, tensor_input(context, 0));
  for (std::size_t i = 1; i < context.inputs.size(); ++i) {
    if (i <= 2 || has_input(context, i)) TESSERA_TRY(require_dtype(context, i, kIndexTypes));
  }
  TESSERA_TRY(tensor_input(context, 2).map([](const auto*) {}));
  set_output(context, 0, input->type.dtype, std::nullopt);
  if (!input->type.shape) return {};
  Shape shape = *input->type.shape;
  TESSERA_ASSIGN(const std::optional<Bounds> bounds, known_bounds(context, shape.size()));
  if (!bounds) {
    for (Dim& dim : shape) dim = context.fresh_symbol("slice");
    set_output(context, 0, input->type.dtype, std::move(shape));
    return {};
  }
  const bool known = bounds->starts && bounds->ends && bounds->steps;
  for (std::size_t i = 0; i < bounds->axes.size(); ++i) {
    Dim& dim = shape[static_cast<std::size_t>(bounds->axes[i])];
    std::optional<Dim> size;
    if (known)
      size = slice_size(dim, bounds->starts->elements[i], bounds->ends->elements[i],
                        (*bounds->steps)[i]);
    dim = size ? *size : context.fresh_symbol("slice");
  }
  set_output(context, 0, input->type.dtype, std::move(shape));
  if (const auto value = known_value(*input); value && known)
    set_value(context, 0, slice_value(*value, *bounds));
  return {};
}

// ---- Kernel
// -------------------------------------------------------------------------------------------------

std::optional<std::vector<std::int64_t>> optional_ints(const KernelContext& context,
                                                       std::size_t index) {
  const TensorView* input = context.input(index);
  return input != nullptr ? std::optional(to_int64_vector(*input)) : std::nullopt;
}

Status slice_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* starts_input, kernel_input(context, 1));
  TESSERA_ASSIGN(const TensorView* ends_input, kernel_input(context, 2));
  const std::vector<std::int64_t> starts = to_int64_vector(*starts_input);
  const std::vector<std::int64_t> ends = to_int64_vector(*ends_input);
  TESSERA_ASSIGN(const auto axes,
                 slice_axes(optional_ints(context, 3), starts.size(), input->dims.size()));
  const std::vector<std::int64_t> steps =
      optional_ints(context, 4).value_or(std::vector<std::int64_t>(starts.size(), 1));
  if (ends.size() != starts.size() || steps.size() != starts.size()) {
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("Slice: expected starts, ends and steps of one length, found {}, {} and {}",
                    starts.size(), ends.size(), steps.size()));
  }
  if (std::count(steps.begin(), steps.end(), 0) > 0) return zero_step();
  Dims dims = input->dims;
  Dims strides = row_major_strides(dims);
  std::int64_t base = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(axes[i]);
    const AxisSlice slice = slice_axis(dims[axis], starts[i], ends[i], steps[i]);
    if (slice.count > 0) base += slice.start * strides[axis];
    strides[axis] = slice.count > 1 ? strides[axis] * slice.step : 0;
    dims[axis] = slice.count;
  }
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, input->dtype, dims));
  return copy_strided(context, *input, base, strides, output);
}

// Before version 10 starts, ends and axes are attributes.
Status upgrade_slice(UpgradeNode& node, int /*opset*/, UpgradeBuilder& builder) {
  TESSERA_TRY(ints_to_input(node, builder, "starts", 1));
  TESSERA_TRY(ints_to_input(node, builder, "ends", 2));
  return ints_to_input(node, builder, "axes", 3);
}

}  // namespace

std::vector<OpSchema> slice_ops() {
  OpSchema op;
  op.name = "Slice";
  op.versions = {1, 10, 11, 13};
  op.unspecified = "an axis that stands twice is an error";
  op.inputs = {required("data", "T"), required("starts", "Tind"), required("ends", "Tind"),
               optional("axes", "Tind"), optional("steps", "Tind")};
  op.outputs = {required("output", "T")};
  op.type_variables = {{"T", kAllTypes}, {"Tind", kIndexTypes}};
  op.structure = Structure::kMovement;
  op.infer = infer_slice;
  op.kernel = unpacked<slice_kernel>;
  op.work = movement_work;
  op.upgrades = {{1, 1, upgrade_slice}};
  op.shape_inputs = {1, 2, 3, 4};
  return {op};
}

}  // namespace tessera::ops
