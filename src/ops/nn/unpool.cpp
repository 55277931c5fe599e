// Col2Im and MaxUnpool: what windows have taken apart, put together again.

#include <fmt/format.h>

#include <algorithm>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/kernel_util.h"
#include "ops/nn/nn_util.h"
#include "ops/nn/reals.h"
#include "ops/nn/window.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

// ---- Col2Im -------------------------------------------------------------------------------------

Status infer_col2im(InferContext& context) {
  TESSERA_TRY(require_rank(context, 0, 3));
  TESSERA_TRY(require_dtype(context, 1, kInt64Type));
  TESSERA_TRY(require_dtype(context, 2, kInt64Type));
  const ValueType& input = context.inputs[0].type;
  const auto image = known_value(context.inputs[1]);
  const auto block = known_ints(context.inputs[2]);
  const auto& image_type = context.inputs[1].type.shape;
  std::optional<std::int64_t> axes;
  if (image) axes = static_cast<std::int64_t>(image->elements.size());
  if (!axes && image_type && image_type->size() == 1) axes = (*image_type)[0].constant();
  for (const std::int64_t size : block.value_or(std::vector<std::int64_t>()))
    if (size < 1)
      return input_error(context, 2, fmt::format("expected sizes of 1 or more, found {}", size));
  std::optional<Shape> output;
  if (axes) {
    output.emplace();
    output->push_back(input.shape ? (*input.shape)[0] : context.fresh_symbol("batch"));
    std::int64_t taps = 1;
    for (const std::int64_t size : block.value_or(std::vector<std::int64_t>())) taps *= size;
    const bool known = input.shape && block && taps > 0;
    output->push_back(known ? floordiv((*input.shape)[1], Dim(taps))
                            : context.fresh_symbol("channels"));
    for (std::int64_t i = 0; i < *axes; ++i)
      output->push_back(image ? image->elements[static_cast<std::size_t>(i)]
                              : context.fresh_symbol("image"));
  }
  set_output(context, 0, input.dtype, std::move(output));
  return {};
}

struct Blocks {
  nn::Window window;
  Dims image;   // sizes of space
  Dims counts;  // blocks along each axis
};

Result<Blocks> read_blocks(const KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* image, kernel_input(context, 1));
  TESSERA_ASSIGN(const TensorView* block, kernel_input(context, 2));
  Blocks blocks;
  blocks.image = to_int64_vector(*image);
  for (const std::int64_t size : to_int64_vector(*block))
    if (size < 1)
      return nn::op_error(
          "Col2Im",
          fmt::format("input 'block_shape': expected sizes of 1 or more, found {}", size));
  TESSERA_ASSIGN(blocks.window, nn::read_window("Col2Im", context.attributes(), blocks.image.size(),
                                                to_int64_vector(*block)));
  TESSERA_TRY(checked_numel(blocks.image).map([](std::int64_t) {}));
  TESSERA_ASSIGN(blocks.counts, nn::output_dims("Col2Im", blocks.window, blocks.image));
  return blocks;
}

// Adds up, for one channel, what the taps of all blocks say about each pixel.
void add_blocks(const Blocks& blocks, const double* from, double* image) {
  const std::int64_t taps = blocks.window.taps();
  const std::int64_t count = count_between(blocks.counts, 0, blocks.counts.size());
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    for (std::int64_t block = 0; block < count; ++block) {
      std::int64_t tap_rest = tap;
      std::int64_t block_rest = block;
      std::int64_t offset = 0;
      std::int64_t stride = 1;
      bool inside = true;
      for (std::size_t d = blocks.image.size(); d-- > 0;) {
        const nn::WindowAxis& axis = blocks.window.axes[d];
        const std::int64_t at = block_rest % blocks.counts[d] * axis.stride - axis.pad_begin +
                                tap_rest % axis.kernel * axis.dilation;
        block_rest /= blocks.counts[d];
        tap_rest /= axis.kernel;
        inside = inside && at >= 0 && at < blocks.image[d];
        offset += at * stride;
        stride *= blocks.image[d];
      }
      if (inside) image[offset] += from[tap * count + block];
    }
  }
}

Status col2im_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const Blocks blocks, read_blocks(context));
  const std::int64_t taps = blocks.window.taps();
  const std::int64_t count = count_between(blocks.counts, 0, blocks.counts.size());
  if (input->dims.size() != 3 || input->dims[1] % taps != 0 || input->dims[2] != count) {
    return nn::op_error("Col2Im", fmt::format("expected [batch, channels * {}, {}], found {}", taps,
                                              count, to_string(input->dims)));
  }
  Dims dims{input->dims[0], input->dims[1] / taps};
  dims.insert(dims.end(), blocks.image.begin(), blocks.image.end());
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, input->dtype, dims));
  const nn::Reals<double> columns(*input);
  nn::RealResult<double> result(output);
  std::fill_n(result.data(), output.numel(), 0.0);
  const std::int64_t plane = count_between(blocks.image, 0, blocks.image.size());
  for (std::int64_t i = 0; i < dims[0] * dims[1]; ++i)
    add_blocks(blocks, columns.data() + i * taps * count, result.data() + i * plane);
  result.finish();
  return {};
}

// ---- MaxUnpool ----------------------------------------------------------------------------------

// The size that the pooling had before, of one axis.
template <typename Size>
Size unpooled(const Size& size, const nn::WindowAxis& axis) {
  return (size - Size(1)) * Size(axis.stride) + Size(axis.kernel - axis.pad_begin - axis.pad_end);
}

Status infer_unpool(InferContext& context) {
  TESSERA_TRY(require_rank_at_least(context, 0, 3));
  TESSERA_TRY(require_dtype(context, 1, kInt64Type));
  const ValueType& x = context.inputs[0].type;
  std::optional<Shape> output = x.shape;
  if (output) {
    TESSERA_ASSIGN(const nn::Window window, nn::read_window("MaxUnpool", context.attributes,
                                                            output->size() - 2, std::nullopt));
    for (std::size_t i = 0; i < window.axes.size(); ++i)
      (*output)[i + 2] = unpooled((*output)[i + 2], window.axes[i]);
    if (has_input(context, 2)) {
      const auto asked = known_value(context.inputs[2]);
      for (std::size_t i = 0; i < output->size(); ++i)
        (*output)[i] = asked && asked->elements.size() == output->size()
                           ? asked->elements[i]
                           : context.fresh_symbol("unpool");
    }
  }
  set_output(context, 0, x.dtype, std::move(output));
  return {};
}

// The sizes within which indices count. An output shape that is asked for stands in the place of
// the pads: a smaller one has pads of its own, a larger one has the elements in its corner.
Dims counted_sizes(const Dims& x, nn::Window window, const Dims* asked) {
  Dims inner = x;
  for (std::size_t i = 0; i < window.axes.size(); ++i) {
    nn::WindowAxis& axis = window.axes[i];
    if (asked != nullptr) axis.pad_begin = axis.pad_end = 0;
    inner[i + 2] = unpooled(x[i + 2], axis);
    if (asked != nullptr && asked->size() == x.size())
      inner[i + 2] = std::min(inner[i + 2], (*asked)[i + 2]);
  }
  return inner;
}

Status check_output_shape(const Dims& inner, const Dims& output) {
  bool fits = output.size() == inner.size();
  for (std::size_t d = 0; fits && d < output.size(); ++d)
    fits = output[d] >= inner[d] && inner[d] >= 0;
  if (fits) return {};
  Dims least = inner;
  for (std::size_t d = 2; d < least.size(); ++d) least[d] = std::max<std::int64_t>(least[d], 0);
  return nn::op_error("MaxUnpool", fmt::format("expected an output shape of {} or more, found {}",
                                               to_string(least), to_string(output)));
}

Status unpool_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* x, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* indices, kernel_input(context, 1));
  if (x->dims.size() < 3 || indices->dims != x->dims)
    return nn::op_error("MaxUnpool", fmt::format("expected indices as X of rank 3 or more, found "
                                                 "{} and {}",
                                                 to_string(indices->dims), to_string(x->dims)));
  TESSERA_ASSIGN(const nn::Window window, nn::read_window("MaxUnpool", context.attributes(),
                                                          x->dims.size() - 2, std::nullopt));
  Dims asked;
  if (context.input(2) != nullptr) asked = to_int64_vector(*context.input(2));
  const Dims inner = counted_sizes(x->dims, window, context.input(2) == nullptr ? nullptr : &asked);
  const Dims dims = context.input(2) == nullptr ? inner : asked;
  TESSERA_TRY(check_output_shape(inner, dims));
  TESSERA_TRY(checked_nbytes(x->dtype, dims).map([](std::int64_t) {}));
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, x->dtype, dims));
  const std::int64_t count = count_between(inner, 0, inner.size());
  const Dims strides = row_major_strides(dims);
  return dispatch(FloatTypes{}, x->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    std::fill_n(output.as<T>(), output.numel(), store<T>(Compute<T>{0}));
    for (std::int64_t i = 0; i < x->numel(); ++i) {
      std::int64_t rest = indices->as<std::int64_t>()[i];
      if (rest < 0 || rest >= count)
        return nn::op_error(
            "MaxUnpool", fmt::format("expected indices from 0 to {}, found {}", count - 1, rest));
      std::int64_t offset = 0;
      for (std::size_t d = inner.size(); d-- > 0;) {
        offset += rest % inner[d] * strides[d];
        rest /= inner[d];
      }
      output.as<T>()[offset] = x->as<T>()[i];
    }
    return {};
  });
}

}  // namespace

std::vector<OpSchema> unpool_ops() {
  OpSchema col2im;
  col2im.name = "Col2Im";
  col2im.versions = {18};
  col2im.unspecified =
      "integers are added in fp64, and sums that the type cannot hold are saturated";
  col2im.inputs = {required("input", "T"), required("image_shape", "I"),
                   required("block_shape", "I")};
  col2im.outputs = {required("output", "T")};
  col2im.attributes = {attr("dilations", AttrType::kInts), attr("pads", AttrType::kInts),
                       attr("strides", AttrType::kInts)};
  col2im.type_variables = {{"T", kNumericTypes}, {"I", kInt64Type}};
  col2im.structure = Structure::kWindow;
  col2im.infer = infer_col2im;
  col2im.kernel = col2im_kernel;
  col2im.shape_inputs = {1, 2};

  OpSchema unpool;
  unpool.name = "MaxUnpool";
  unpool.versions = {9, 11, 22};
  unpool.unspecified =
      "of equal indices the last one wins, and one out of range is an error; with output_shape "
      "pads "
      "are ignored, and indices count in the sizes that kernel and strides give, or in those of "
      "output_shape where they are smaller";
  unpool.inputs = {required("X", "T1"), required("I", "T2"), optional("output_shape", "T2")};
  unpool.outputs = {required("output", "T1")};
  unpool.attributes = {required_attr("kernel_shape", AttrType::kInts),
                       attr("pads", AttrType::kInts), attr("strides", AttrType::kInts)};
  unpool.type_variables = {{"T1", kFloatTypes}, {"T2", kInt64Type}};
  unpool.structure = Structure::kWindow;
  unpool.infer = infer_unpool;
  unpool.kernel = unpool_kernel;
  unpool.shape_inputs = {2};
  return {col2im, unpool};
}

}  // namespace tessera::ops
