// DepthToSpace, SpaceToDepth, ReverseSequence and Trilu.

#include <fmt/format.h>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/movement/movement_util.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

Result<std::int64_t> block_size(const Attributes& attributes) {
  const std::int64_t size = attributes.get_int("blocksize", 0);
  if (size >= 1 && size <= INT32_MAX) return size;
  return attribute_error("blocksize", fmt::format("expected at least 1, found {}", size));
}

// dim / divisor, which must be exact.
Result<Dim> divide_dim(const InferContext& context, const Dim& dim, std::int64_t divisor,
                       std::string_view what) {
  if (const auto exact = dim.exact_div(Dim(divisor))) return *exact;
  if (!dim.constant()) return floordiv(dim, Dim(divisor));
  return input_error(
      context, 0,
      fmt::format("expected a {} that {} divides, found {}", what, divisor, dim.to_string()));
}

// ---- DepthToSpace
// -------------------------------------------------------------------------------------------------

Status check_mode(const Attributes& attributes) {
  const std::string mode = attributes.get_string("mode", "DCR");
  if (mode == "DCR" || mode == "CRD") return {};
  return attribute_error("mode", fmt::format("expected 'DCR' or 'CRD', found '{}'", mode));
}

// Whether the places of a block stand behind their channel, else before all channels.
bool is_column_first(const Attributes& attributes) {
  return attributes.get_string("mode", "DCR") == "CRD";
}

Status infer_depth_to_space(InferContext& context) {
  TESSERA_ASSIGN(const std::int64_t block, block_size(context.attributes));
  TESSERA_TRY(check_mode(context.attributes));
  TESSERA_TRY(require_rank(context, 0, 4));
  TESSERA_TRY(infer_same_as_first(context));
  auto& shape = context.outputs[0].shape;
  if (!shape) return {};
  TESSERA_ASSIGN((*shape)[1], divide_dim(context, (*shape)[1], block * block, "channel count"));
  (*shape)[2] = (*shape)[2] * Dim(block);
  (*shape)[3] = (*shape)[3] * Dim(block);
  return {};
}

Status infer_space_to_depth(InferContext& context) {
  TESSERA_ASSIGN(const std::int64_t block, block_size(context.attributes));
  TESSERA_TRY(check_mode(context.attributes));
  TESSERA_TRY(require_rank(context, 0, 4));
  TESSERA_TRY(infer_same_as_first(context));
  auto& shape = context.outputs[0].shape;
  if (!shape) return {};
  (*shape)[1] = (*shape)[1] * Dim(block * block);
  TESSERA_ASSIGN((*shape)[2], divide_dim(context, (*shape)[2], block, "height"));
  TESSERA_ASSIGN((*shape)[3], divide_dim(context, (*shape)[3], block, "width"));
  return {};
}

// The output seen as [n, c, h, block, w, block], each walked in the input's strides.
Status depth_to_space_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const std::int64_t block, block_size(context.attributes()));
  if (input->dims.size() != 4 || input->dims[1] % (block * block) != 0) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("DepthToSpace: expected rank 4 and channels that {} divides, found {}",
                            block * block, to_string(input->dims)));
  }
  const std::int64_t depth = input->dims[1] / (block * block);
  const std::int64_t height = input->dims[2];
  const std::int64_t width = input->dims[3];
  TESSERA_ASSIGN(
      MutableTensorView output,
      context.output(0, input->dtype, {input->dims[0], depth, height * block, width * block}));
  output.dims = {input->dims[0], depth, height, block, width, block};
  const std::int64_t plane = height * width;
  const bool column_first = is_column_first(context.attributes());
  const std::int64_t channel = column_first ? plane * block * block : plane;
  const std::int64_t column = column_first ? plane : plane * depth;
  const Dims strides{plane * input->dims[1], channel, width, column * block, 1, column};
  return copy_strided(context, *input, 0, strides, output);
}

// The output seen as [n, block, block, c, h, w], or as [n, c, block, block, h, w].
Status space_to_depth_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const std::int64_t block, block_size(context.attributes()));
  if (input->dims.size() != 4 || input->dims[2] % block != 0 || input->dims[3] % block != 0) {
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format(
            "SpaceToDepth: expected rank 4 and a height and width that {} divides, found {}", block,
            to_string(input->dims)));
  }
  const std::int64_t depth = input->dims[1];
  const std::int64_t height = input->dims[2] / block;
  const std::int64_t width = input->dims[3] / block;
  TESSERA_ASSIGN(
      MutableTensorView output,
      context.output(0, input->dtype, {input->dims[0], depth * block * block, height, width}));
  const std::int64_t row = input->dims[3];
  const std::int64_t plane = input->dims[2] * row;
  if (is_column_first(context.attributes())) {
    output.dims = {input->dims[0], depth, block, block, height, width};
    return copy_strided(context, *input, 0, {plane * depth, plane, row, 1, row * block, block},
                        output);
  }
  output.dims = {input->dims[0], block, block, depth, height, width};
  return copy_strided(context, *input, 0, {plane * depth, row, 1, plane, row * block, block},
                      output);
}

// ---- ReverseSequence
// -------------------------------------------------------------------------------------------------

struct SequenceAxes {
  std::int64_t batch = 1;
  std::int64_t time = 0;
};

Result<SequenceAxes> sequence_axes(const Attributes& attributes) {
  const SequenceAxes axes{attributes.get_int("batch_axis", 1), attributes.get_int("time_axis", 0)};
  if (axes.batch + axes.time == 1 && (axes.batch == 0 || axes.batch == 1)) return axes;
  return attribute_error(
      "time_axis",
      fmt::format("expected batch_axis and time_axis to be 0 and 1 or 1 and 0, found {} and {}",
                  axes.batch, axes.time));
}

Status infer_reverse_sequence(InferContext& context) {
  TESSERA_TRY(require_rank_at_least(context, 0, 2));
  TESSERA_TRY(require_dtype(context, 1, kInt64Type));
  TESSERA_TRY(require_rank(context, 1, 1));
  TESSERA_TRY(sequence_axes(context.attributes).map([](const auto&) {}));
  return infer_same_as_first(context);
}

Status reverse_sequence_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* lengths_input, kernel_input(context, 1));
  TESSERA_ASSIGN(const SequenceAxes axes, sequence_axes(context.attributes()));
  const std::vector<std::int64_t> lengths = to_int64_vector(*lengths_input);
  const bool sized =
      input->dims.size() >= 2 && static_cast<std::int64_t>(lengths.size()) ==
                                     input->dims[static_cast<std::size_t>(axes.batch)];
  if (!sized) {
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("ReverseSequence: expected one length for each of axis {} of {}, found {}",
                    axes.batch, to_string(input->dims), lengths.size()));
  }
  const std::int64_t steps = input->dims[static_cast<std::size_t>(axes.time)];
  for (const std::int64_t length : lengths) {
    if (length < 0 || length > steps) {
      return fail(
          ErrorCode::kInvalidArgument,
          fmt::format("ReverseSequence: expected lengths from 0 to {}, found {}", steps, length));
    }
  }
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, input->dtype, input->dims));
  const std::int64_t inner = count_between(input->dims, 2, input->dims.size());
  const std::int64_t columns = input->dims[1];
  return dispatch_elements(input->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    for (std::int64_t i = 0; i < input->dims[0]; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        const std::int64_t time = axes.time == 0 ? i : j;
        const std::int64_t length = lengths[static_cast<std::size_t>(axes.time == 0 ? j : i)];
        const std::int64_t from_time = time < length ? length - 1 - time : time;
        const std::int64_t from =
            axes.time == 0 ? from_time * columns + j : i * columns + from_time;
        std::copy_n(input->as<T>() + from * inner, inner,
                    output.as<T>() + (i * columns + j) * inner);
      }
    }
    return {};
  });
}

// ---- Trilu
// -------------------------------------------------------------------------------------------------

Status infer_trilu(InferContext& context) {
  TESSERA_TRY(require_rank_at_least(context, 0, 2));
  if (has_input(context, 1)) TESSERA_TRY(require_dtype(context, 1, kInt64Type));
  return infer_same_as_first(context);
}

Status trilu_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  if (input->dims.size() < 2) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("Trilu: expected rank 2 or more, found {}", to_string(input->dims)));
  }
  std::int64_t diagonal = 0;
  if (const TensorView* k = context.input(1)) {
    if (k->numel() != 1)
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("Trilu: input 'k': expected a scalar, found {}", to_string(k->dims)));
    diagonal = std::clamp<std::int64_t>(to_int64_vector(*k)[0], -(std::int64_t{1} << 40),
                                        std::int64_t{1} << 40);
  }
  const bool upper = context.attributes().get_int("upper", 1) != 0;
  const std::int64_t columns = input->dims.back();
  const std::int64_t rows = input->dims[input->dims.size() - 2];
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, input->dtype, input->dims));
  return dispatch_elements(input->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    const std::int64_t lines = columns == 0 ? 0 : input->numel() / columns;
    context.parallel_for(
        lines, std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, columns)),
        [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t line = begin; line < end; ++line) {
            for (std::int64_t j = 0; j < columns; ++j) {
              const std::int64_t distance = j - line % rows - diagonal;
              const bool keep = upper ? distance >= 0 : distance <= 0;
              output.as<T>()[line * columns + j] = keep ? input->as<T>()[line * columns + j] : T{};
            }
          }
        });
    return {};
  });
}

OpSchema movement(std::string_view name, std::vector<int> versions, InferFn infer,
                  KernelFn kernel) {
  OpSchema op;
  op.name = name;
  op.versions = std::move(versions);
  op.inputs = {required("input", "T")};
  op.outputs = {required("output", "T")};
  op.type_variables = {{"T", kAllTypes}};
  op.structure = Structure::kMovement;
  op.infer = infer;
  op.kernel = kernel;
  op.work = movement_work;
  return op;
}

}  // namespace

std::vector<OpSchema> rearrange_ops() {
  OpSchema to_space = movement("DepthToSpace", {1, 11, 13, 28}, infer_depth_to_space,
                               unpacked<depth_to_space_kernel>);
  to_space.attributes = {required_attr("blocksize", AttrType::kInt),
                         attr("mode", AttrType::kString)};

  OpSchema to_depth =
      movement("SpaceToDepth", {1, 13, 28}, infer_space_to_depth, unpacked<space_to_depth_kernel>);
  to_depth.attributes = to_space.attributes;

  OpSchema reverse = movement("ReverseSequence", {10, 28}, infer_reverse_sequence,
                              unpacked<reverse_sequence_kernel>);
  reverse.inputs = {required("input", "T"), required("sequence_lens", "I")};
  reverse.unspecified = "a length below 0 or beyond the axis of time is an error";
  reverse.attributes = {attr("batch_axis", AttrType::kInt), attr("time_axis", AttrType::kInt)};
  reverse.type_variables.push_back({"I", kInt64Type});

  OpSchema trilu = movement("Trilu", {14}, infer_trilu, unpacked<trilu_kernel>);
  trilu.inputs = {required("input", "T"), optional("k", "I")};
  trilu.attributes = {attr("upper", AttrType::kInt)};
  trilu.type_variables.push_back({"I", kInt64Type});
  trilu.in_place_inputs = {0};
  return {to_space, to_depth, reverse, trilu};
}

}  // namespace tessera::ops
