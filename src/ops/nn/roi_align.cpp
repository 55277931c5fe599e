// RoiAlign: regions of an image pooled to one size, with values between pixels interpolated.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/nn/nn_util.h"
#include "ops/nn/reals.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

constexpr std::int64_t kMaxSamples = 1 << 12;  // along one axis of a bin

struct RoiOptions {
  std::int64_t height = 1, width = 1, samples = 0;
  double scale = 1;
  bool takes_largest = false;
  bool half_pixel = true;
};

Result<RoiOptions> read_options(const Attributes& attributes) {
  RoiOptions options{attributes.get_int("output_height", 1),
                     attributes.get_int("output_width", 1),
                     attributes.get_int("sampling_ratio", 0),
                     static_cast<double>(attributes.get_float("spatial_scale", 1)),
                     false,
                     true};
  if (options.height < 1) return attribute_error("output_height", "expected 1 or more");
  if (options.width < 1) return attribute_error("output_width", "expected 1 or more");
  if (options.samples < 0 || options.samples > kMaxSamples)
    return attribute_error("sampling_ratio", fmt::format("expected a number from 0 to {}, found {}",
                                                         kMaxSamples, options.samples));
  const std::string mode = attributes.get_string("mode", "avg");
  if (mode != "avg" && mode != "max")
    return attribute_error("mode", fmt::format("expected 'avg' or 'max', found '{}'", mode));
  options.takes_largest = mode == "max";
  const std::string pixel = attributes.get_string("coordinate_transformation_mode", "half_pixel");
  if (pixel != "half_pixel" && pixel != "output_half_pixel")
    return attribute_error(
        "coordinate_transformation_mode",
        fmt::format("expected 'half_pixel' or 'output_half_pixel', found '{}'", pixel));
  options.half_pixel = pixel == "half_pixel";
  return options;
}

Status infer(InferContext& context) {
  TESSERA_ASSIGN(const RoiOptions options, read_options(context.attributes));
  TESSERA_TRY(require_rank(context, 0, 4));
  TESSERA_TRY(require_same_dtype(context, 1, 0));
  TESSERA_TRY(require_rank(context, 1, 2));
  TESSERA_TRY(require_rank(context, 2, 1));
  const auto& x = context.inputs[0].type.shape;
  const auto& rois = context.inputs[1].type.shape;
  const auto& batch = context.inputs[2].type.shape;
  Dim count = rois ? (*rois)[0] : context.fresh_symbol("rois");
  if (rois && batch) {
    TESSERA_ASSIGN(count, merge_dim((*rois)[0], (*batch)[0], "number of rois"));
  }
  set_output(context, 0, context.inputs[0].type.dtype,
             Shape{count, x ? (*x)[1] : context.fresh_symbol("channels"), Dim(options.height),
                   Dim(options.width)});
  return {};
}

// Two neighbours along one axis and their weights; both weights 0 outside of the image.
struct Between {
  std::int64_t low = 0, high = 0;
  double low_weight = 0, high_weight = 0;
};

Between between(double place, std::int64_t size) {
  if (!(place >= -1.0 && place <= static_cast<double>(size))) return {};
  place = std::max(place, 0.0);
  const auto low = static_cast<std::int64_t>(place);
  if (low >= size - 1) return {size - 1, size - 1, 1, 0};
  const double part = place - static_cast<double>(low);
  return {low, low + 1, 1 - part, part};
}

// Where the samples of a region lie along one axis: bin after bin.
std::vector<Between> places(double start, double end, std::int64_t bins, std::int64_t asked,
                            bool half_pixel, std::int64_t size) {
  const double length = half_pixel ? end - start : std::max(end - start, 1.0);
  const double bin = length / static_cast<double>(bins);
  const double adaptive = std::clamp(std::ceil(bin), 0.0, static_cast<double>(kMaxSamples));
  const std::int64_t samples = asked > 0 ? asked : static_cast<std::int64_t>(adaptive);
  std::vector<Between> all;
  for (std::int64_t b = 0; b < bins; ++b)
    for (std::int64_t i = 0; i < samples; ++i)
      all.push_back(between(start + static_cast<double>(b) * bin +
                                (static_cast<double>(i) + 0.5) * bin / static_cast<double>(samples),
                            size));
  return all;
}

// One bin of one channel. The largest is that of the weighted pixels, as the standard's tests have
// it, not that of the interpolated values.
double pooled(const double* plane, std::int64_t width, std::span<const Between> rows,
              std::span<const Between> columns, bool takes_largest) {
  double result = takes_largest ? -HUGE_VAL : 0;
  for (const Between& y : rows) {
    for (const Between& x : columns) {
      const std::array<double, 4> parts{
          y.low_weight * x.low_weight * plane[y.low * width + x.low],
          y.low_weight * x.high_weight * plane[y.low * width + x.high],
          y.high_weight * x.low_weight * plane[y.high * width + x.low],
          y.high_weight * x.high_weight * plane[y.high * width + x.high]};
      for (const double part : parts)
        result = takes_largest ? std::max(result, part) : result + part;
    }
  }
  const auto count = static_cast<double>(rows.size() * columns.size());
  if (count == 0) return 0;
  return takes_largest ? result : result / count;
}

Status kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* x_view, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* roi_view, kernel_input(context, 1));
  TESSERA_ASSIGN(const TensorView* batch_view, kernel_input(context, 2));
  TESSERA_ASSIGN(const RoiOptions options, read_options(context.attributes()));
  const std::vector<std::int64_t> images = to_int64_vector(*batch_view);
  const auto count = static_cast<std::int64_t>(images.size());
  if (x_view->dims.size() != 4 || roi_view->dims != Dims{count, 4}) {
    return nn::op_error("RoiAlign",
                        fmt::format("expected X of rank 4 and rois of {}x4, found {} "
                                    "and {}",
                                    count, to_string(x_view->dims), to_string(roi_view->dims)));
  }
  const Dims& in = x_view->dims;
  for (const std::int64_t image : images)
    if (image < 0 || image >= in[0])
      return nn::op_error("RoiAlign", fmt::format("batch_indices: expected numbers from 0 to {}, "
                                                  "found {}",
                                                  in[0] - 1, image));
  TESSERA_ASSIGN(const MutableTensorView output,
                 context.output(0, x_view->dtype, {count, in[1], options.height, options.width}));
  const nn::Reals<double> x(*x_view);
  const nn::Reals<double> rois(*roi_view);
  nn::RealResult<double> y(output);
  const double offset = options.half_pixel ? 0.5 : 0;
  const std::int64_t bins = options.height * options.width;
  context.parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n) {
      const auto corner = [&](std::int64_t i) { return rois[n * 4 + i] * options.scale - offset; };
      const auto columns =
          places(corner(0), corner(2), options.width, options.samples, options.half_pixel, in[3]);
      const auto rows =
          places(corner(1), corner(3), options.height, options.samples, options.half_pixel, in[2]);
      const std::size_t per_row = rows.size() / static_cast<std::size_t>(options.height);
      const std::size_t per_column = columns.size() / static_cast<std::size_t>(options.width);
      for (std::int64_t c = 0; c < in[1]; ++c) {
        const double* plane =
            x.data() + (images[static_cast<std::size_t>(n)] * in[1] + c) * in[2] * in[3];
        double* to = y.data() + (n * in[1] + c) * bins;
        for (std::int64_t i = 0; i < bins; ++i) {
          const auto row = static_cast<std::size_t>(i / options.width) * per_row;
          const auto column = static_cast<std::size_t>(i % options.width) * per_column;
          to[i] = pooled(plane, in[3], std::span(rows).subspan(row, per_row),
                         std::span(columns).subspan(column, per_column), options.takes_largest);
        }
      }
    }
  });
  y.finish();
  return {};
}

// Version 10 has no half pixels in the input.
Status upgrade_pixels(UpgradeNode& node, int /*opset*/, UpgradeBuilder& /*builder*/) {
  node.attributes.set("coordinate_transformation_mode", std::string("output_half_pixel"));
  return {};
}

}  // namespace

std::vector<OpSchema> roi_align_ops() {
  OpSchema op;
  op.name = "RoiAlign";
  op.versions = {10, 16, 22};
  op.unspecified =
      "max takes the largest of the weighted pixels, not of the interpolated values; a sample more "
      "than a pixel outside of the image is 0, and so is a bin without samples; batch_indices out "
      "of range are an error";
  op.inputs = {required("X", "T1"), required("rois", "T1"), required("batch_indices", "T2")};
  op.outputs = {required("Y", "T1")};
  op.attributes = {attr("coordinate_transformation_mode", AttrType::kString),
                   attr("mode", AttrType::kString),
                   attr("output_height", AttrType::kInt),
                   attr("output_width", AttrType::kInt),
                   attr("sampling_ratio", AttrType::kInt),
                   attr("spatial_scale", AttrType::kFloat)};
  op.type_variables = {{"T1", kFloatTypes}, {"T2", kInt64Type}};
  op.structure = Structure::kWindow;
  op.infer = infer;
  op.kernel = kernel;
  op.upgrades = {{10, 10, upgrade_pixels}};
  return {op};
}

}  // namespace tessera::ops
