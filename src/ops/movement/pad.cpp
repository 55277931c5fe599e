// Pad. Negative pads crop.

#include <fmt/format.h>

#include <numeric>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/movement/movement_util.h"
#include "ops/schema_util.h"
#include "ops/upgrade_util.h"

namespace tessera::ops {
namespace {

constexpr std::int64_t kPadding = -1;  // a position that holds the constant

// Where position `at` of the unpadded axis (below 0 or behind its size in the padding) takes its
// element from.
std::int64_t source_position(std::string_view mode, std::int64_t at, std::int64_t size) {
  if (at >= 0 && at < size) return at;
  if (mode == "constant" || size == 0) return kPadding;
  if (mode == "edge") return at < 0 ? 0 : size - 1;
  const auto wrapped = [](std::int64_t value, std::int64_t period) {
    return ((value % period) + period) % period;
  };
  if (mode == "wrap") return wrapped(at, size);
  if (size == 1) return 0;
  const std::int64_t period = 2 * (size - 1);  // reflect: 0 1 2 1 0 1 2 ...
  const std::int64_t phase = wrapped(at, period);
  return phase < size ? phase : period - phase;
}

Result<std::string> pad_mode(const Attributes& attributes) {
  std::string mode = attributes.get_string("mode", "constant");
  if (mode == "constant" || mode == "reflect" || mode == "edge" || mode == "wrap") return mode;
  return attribute_error(
      "mode", fmt::format("expected 'constant', 'reflect', 'edge' or 'wrap', found '{}'", mode));
}

Result<std::vector<std::int64_t>> pad_axes(std::optional<std::vector<std::int64_t>> axes,
                                           std::size_t rank) {
  if (axes) return normalize_axes(*axes, static_cast<std::int64_t>(rank), "input 'axes'");
  std::vector<std::int64_t> all(rank);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Status check_pad_count(std::size_t found, std::size_t axes) {
  if (found == 2 * axes) return {};
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("input 'pads': expected {} values, two for each of {} axes, found {}",
                          2 * axes, axes, found));
}

Status infer_pad(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* input, tensor_input(context, 0));
  TESSERA_TRY(require_dtype(context, 1, kInt64Type));
  if (has_input(context, 2)) TESSERA_TRY(require_same_dtype(context, 2, 0));
  if (has_input(context, 3)) TESSERA_TRY(require_dtype(context, 3, kIndexTypes));
  TESSERA_TRY(pad_mode(context.attributes).map([](const auto&) {}));
  set_output(context, 0, input->type.dtype, std::nullopt);
  if (!input->type.shape) return {};
  Shape shape = *input->type.shape;
  const auto pads = known_value(context.inputs[1]);
  const auto axes_value = has_input(context, 3) ? known_ints(context.inputs[3]) : std::nullopt;
  if (has_input(context, 3) && !axes_value) {
    for (Dim& dim : shape) dim = context.fresh_symbol("pad");
  } else {
    TESSERA_ASSIGN(const auto axes, pad_axes(axes_value, shape.size()));
    if (pads) TESSERA_TRY(check_pad_count(pads->elements.size(), axes.size()));
    for (std::size_t i = 0; i < axes.size(); ++i) {
      Dim& dim = shape[static_cast<std::size_t>(axes[i])];
      dim = pads ? dim + pads->elements[i] + pads->elements[i + axes.size()]
                 : context.fresh_symbol("pad");
      if (dim.constant().value_or(0) < 0) {
        return input_error(
            context, 1,
            fmt::format("expected pads that leave axis {} a size of 0 or more, found {}", axes[i],
                        dim.to_string()));
      }
    }
  }
  set_output(context, 0, input->type.dtype, std::move(shape));
  return {};
}

// The sizes of the output; and for each axis the offset in the input of each position of the
// output, or kPadding.
struct PadPlan {
  std::string mode;
  std::vector<std::int64_t> begins;
  Dims dims;
  std::vector<std::vector<std::int64_t>> offsets;
};

// Positions along all axes together: what the offsets may hold.
constexpr std::int64_t kMaxPositions = std::int64_t{1} << 28;

Status find_offsets(const TensorView& input, PadPlan& plan) {
  std::int64_t positions = 0;
  for (const std::int64_t size : plan.dims) positions += std::min(size, kMaxPositions + 1);
  if (positions > kMaxPositions)
    return fail(ErrorCode::kResourceExhausted,
                fmt::format("Pad: expected at most {} positions along all axes, found {}",
                            kMaxPositions, to_string(plan.dims)));
  const Dims strides = row_major_strides(input.dims);
  for (std::size_t d = 0; d < plan.dims.size(); ++d) {
    plan.offsets.emplace_back(static_cast<std::size_t>(plan.dims[d]));
    for (std::int64_t i = 0; i < plan.dims[d]; ++i) {
      const std::int64_t source = source_position(plan.mode, i - plan.begins[d], input.dims[d]);
      plan.offsets[d][static_cast<std::size_t>(i)] =
          source == kPadding ? kPadding : source * strides[d];
    }
  }
  return {};
}

Result<PadPlan> plan_pad(const KernelContext& context, const TensorView& input) {
  TESSERA_ASSIGN(const std::string mode, pad_mode(context.attributes()));
  TESSERA_ASSIGN(const TensorView* pads_input, kernel_input(context, 1));
  const std::vector<std::int64_t> pads = to_int64_vector(*pads_input);
  const TensorView* axes_input = context.input(3);
  TESSERA_ASSIGN(
      const auto axes,
      pad_axes(axes_input != nullptr ? std::optional(to_int64_vector(*axes_input)) : std::nullopt,
               input.dims.size()));
  TESSERA_TRY(check_pad_count(pads.size(), axes.size()));
  PadPlan plan{mode, std::vector<std::int64_t>(input.dims.size(), 0), input.dims, {}};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(axes[i]);
    plan.begins[axis] = pads[i];
    std::int64_t& size = plan.dims[axis];
    const std::int64_t before = size;
    if (__builtin_add_overflow(size, pads[i], &size) ||
        __builtin_add_overflow(size, pads[i + axes.size()], &size) || size < 0) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("Pad: expected pads that leave axis {} of size {} a size of 0 or "
                              "more, found {} and {}",
                              axis, before, pads[i], pads[i + axes.size()]));
    }
    if (before == 0 && size > 0 && mode != "constant") {
      return fail(
          ErrorCode::kInvalidArgument,
          fmt::format("Pad: mode '{}' has nothing to take from axis {} of size 0", mode, axis));
    }
  }
  TESSERA_TRY(checked_nbytes(input.dtype, plan.dims).map([](std::int64_t) {}));
  return plan;
}

template <typename T>
void pad_elements(KernelContext& context, const PadPlan& plan, const T* from, const T& constant,
                  T* to) {
  const std::size_t rank = plan.dims.size();
  const std::int64_t inner = rank == 0 ? 1 : plan.dims[rank - 1];
  const std::int64_t rows = inner == 0 ? 0 : count_between(plan.dims, 0, rank) / inner;
  context.parallel_for(
      rows, std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, inner)),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          std::int64_t base = 0;
          std::int64_t rest = row;
          bool padding = false;
          for (std::size_t d = rank - std::min<std::size_t>(rank, 1); d-- > 0;) {
            const std::int64_t offset =
                plan.offsets[d][static_cast<std::size_t>(rest % plan.dims[d])];
            rest /= plan.dims[d];
            padding = padding || offset == kPadding;
            base += offset;
          }
          for (std::int64_t i = 0; i < inner; ++i) {
            const std::int64_t offset =
                rank == 0 ? 0 : plan.offsets[rank - 1][static_cast<std::size_t>(i)];
            to[row * inner + i] = padding || offset == kPadding ? constant : from[base + offset];
          }
        }
      });
}

Status pad_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(PadPlan plan, plan_pad(context, *input));
  const TensorView* constant = context.input(2);
  if (constant != nullptr && (constant->numel() != 1 || constant->dtype != input->dtype)) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("Pad: input 'constant_value': expected one {}, found {} {}",
                            to_string(input->dtype), to_string(constant->dtype),
                            to_string(constant->dims)));
  }
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, input->dtype, plan.dims));
  TESSERA_TRY(find_offsets(*input, plan));  // after the output, whose error says more
  return dispatch_elements(input->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    pad_elements<T>(context, plan, input->as<T>(), constant != nullptr ? *constant->as<T>() : T{},
                    output.as<T>());
    return {};
  });
}

// Before version 11 pads ("paddings" in version 1) and the value are attributes.
Status upgrade_pad(UpgradeNode& node, int /*opset*/, UpgradeBuilder& builder) {
  TESSERA_TRY(ints_to_input(node, builder, "paddings", 1));
  TESSERA_TRY(ints_to_input(node, builder, "pads", 1));
  TESSERA_ASSIGN(const float value, old_float(node, "value", 0));
  node.attributes.erase("value");
  if (value == 0.0F) return {};
  TESSERA_ASSIGN(const DType dtype,
                 known_dtype(builder, node.inputs.empty() ? kNoOperand : node.inputs[0], "data"));
  if (!is_float(dtype))
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("input 'data': expected a float dtype, found {}", to_string(dtype)));
  set_input(node, 2, constant_float(builder, dtype, value));
  return {};
}

}  // namespace

std::vector<OpSchema> pad_ops() {
  OpSchema op;
  op.name = "Pad";
  op.unspecified =
      "an axis that stands twice is an error; pads larger than the axis go on reflecting or "
      "wrapping; negative pads cut off only after the others have been taken from the whole input";
  op.versions = {1, 2, 11, 13, 18, 19, 21, 23, 24, 25};
  op.inputs = {required("data", "T"), required("pads", "I"), optional("constant_value", "T"),
               optional("axes", "Tind")};
  op.outputs = {required("output", "T")};
  op.attributes = {attr("mode", AttrType::kString)};
  op.type_variables = {{"T", kAllTypes}, {"I", kInt64Type}, {"Tind", kIndexTypes}};
  op.structure = Structure::kMovement;
  op.infer = infer_pad;
  op.kernel = unpacked<pad_kernel>;
  op.work = movement_work;
  op.upgrades = {{1, 2, upgrade_pad}};
  op.shape_inputs = {1, 3};
  return {op};
}

}  // namespace tessera::ops
