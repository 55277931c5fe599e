// MaxRoiPool: the largest element of each bin of a region, at whole pixels.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/nn/nn_util.h"
#include "ops/nn/reals.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

constexpr std::string_view kOp = "MaxRoiPool";

struct Pooled {
  std::int64_t height = 1, width = 1;
  float scale = 1;
};

Result<Pooled> read_pooled(const Attributes& attributes) {
  const std::vector<std::int64_t> shape = attributes.get_ints("pooled_shape");
  if (shape.size() != 2)
    return attribute_error("pooled_shape",
                           fmt::format("expected height and width, found {} values", shape.size()));
  for (const std::int64_t size : shape)
    if (size < 1)
      return attribute_error("pooled_shape", fmt::format("expected 1 or more, found {}", size));
  return Pooled{shape[0], shape[1], attributes.get_float("spatial_scale", 1)};
}

Status infer(InferContext& context) {
  TESSERA_ASSIGN(const Pooled pooled, read_pooled(context.attributes));
  TESSERA_TRY(require_rank(context, 0, 4));
  TESSERA_TRY(require_same_dtype(context, 1, 0));
  TESSERA_TRY(require_rank(context, 1, 2));
  const auto& x = context.inputs[0].type.shape;
  const auto& rois = context.inputs[1].type.shape;
  if (rois)
    TESSERA_TRY(
        nn::require_size(kOp, "size 1 of rois", Dim(5), "image and two corners", (*rois)[1]));
  set_output(
      context, 0, context.inputs[0].type.dtype,
      Shape{rois ? (*rois)[0] : context.fresh_symbol("rois"),
            x ? (*x)[1] : context.fresh_symbol("channels"), Dim(pooled.height), Dim(pooled.width)});
  return {};
}

// Pixels [begin, end) of one bin along one axis.
struct Bin {
  std::int64_t begin = 0, end = 0;
};

// A corner as a pixel; far outside of any image where the number has none.
std::int64_t pixel(double corner, float scale) {
  constexpr double kFar = 1 << 30;
  const auto place = static_cast<double>(std::round(static_cast<float>(corner) * scale));
  return std::isnan(place) ? 0 : static_cast<std::int64_t>(std::clamp(place, -kFar, kFar));
}

// Bins of a region that holds both of its corners. Sizes of bins are fp32, as in the layer of Fast
// R-CNN that the operator comes from (https://arxiv.org/abs/1504.08083, section 2.1).
std::vector<Bin> bins_of(std::int64_t first, std::int64_t last, std::int64_t count,
                         std::int64_t size) {
  const auto length = static_cast<float>(std::max<std::int64_t>(last - first + 1, 1));
  const float step = length / static_cast<float>(count);
  std::vector<Bin> bins;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto begin = static_cast<std::int64_t>(std::floor(static_cast<float>(i) * step));
    const auto end = static_cast<std::int64_t>(std::ceil(static_cast<float>(i + 1) * step));
    bins.push_back({std::clamp<std::int64_t>(begin + first, 0, size),
                    std::clamp<std::int64_t>(end + first, 0, size)});
  }
  return bins;
}

// The largest element; a NaN wins, and a bin without pixels is 0.
double largest(const double* plane, std::int64_t width, const Bin& rows, const Bin& columns) {
  if (rows.end <= rows.begin || columns.end <= columns.begin) return 0;
  double best = -std::numeric_limits<double>::infinity();
  for (std::int64_t y = rows.begin; y < rows.end; ++y) {
    for (std::int64_t x = columns.begin; x < columns.end; ++x) {
      const double element = plane[y * width + x];
      if (std::isnan(element)) return element;
      best = std::max(best, element);
    }
  }
  return best;
}

Status kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* x_view, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* roi_view, kernel_input(context, 1));
  TESSERA_ASSIGN(const Pooled pooled, read_pooled(context.attributes()));
  const Dims& in = x_view->dims;
  if (in.size() != 4 || roi_view->dims.size() != 2 || roi_view->dims[1] != 5) {
    return nn::op_error(kOp, fmt::format("expected X of rank 4 and rois of 5 columns, found {} "
                                         "and {}",
                                         to_string(in), to_string(roi_view->dims)));
  }
  const std::int64_t count = roi_view->dims[0];
  const nn::Reals<double> rois(*roi_view);
  for (std::int64_t n = 0; n < count; ++n) {
    const double image = rois[n * 5];
    if (!(image >= 0 && image < static_cast<double>(in[0])))
      return nn::op_error(kOp, fmt::format("rois[{}, 0]: expected an image from 0 to {}, found {}",
                                           n, in[0] - 1, image));
  }
  TESSERA_ASSIGN(const MutableTensorView output,
                 context.output(0, x_view->dtype, {count, in[1], pooled.height, pooled.width}));
  const nn::Reals<double> x(*x_view);
  nn::RealResult<double> y(output);
  context.parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n) {
      const auto corner = [&](std::int64_t i) { return pixel(rois[n * 5 + i], pooled.scale); };
      const std::vector<Bin> columns = bins_of(corner(1), corner(3), pooled.width, in[3]);
      const std::vector<Bin> rows = bins_of(corner(2), corner(4), pooled.height, in[2]);
      const auto image = static_cast<std::int64_t>(rois[n * 5]);
      double* to = y.data() + n * in[1] * pooled.height * pooled.width;
      for (std::int64_t c = 0; c < in[1]; ++c) {
        const double* plane = x.data() + (image * in[1] + c) * in[2] * in[3];
        for (const Bin& row : rows)
          for (const Bin& column : columns) *to++ = largest(plane, in[3], row, column);
      }
    }
  });
  y.finish();
  return {};
}

}  // namespace

std::vector<OpSchema> max_roi_pool_ops() {
  OpSchema op;
  op.name = kOp;
  op.versions = {1, 22};
  op.inputs = {required("X", "T"), required("rois", "T")};
  op.outputs = {required("Y", "T")};
  op.attributes = {required_attr("pooled_shape", AttrType::kInts),
                   attr("spatial_scale", AttrType::kFloat)};
  op.type_variables = {{"T", kFloatTypes}};
  op.unspecified =
      "corners are rounded half away from zero; a region has one pixel at least; a bin without "
      "pixels is 0; a NaN wins";
  op.structure = Structure::kWindow;
  op.infer = infer;
  op.kernel = kernel;
  return {op};
}

}  // namespace tessera::ops
