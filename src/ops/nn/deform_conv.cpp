// DeformConv: a convolution whose taps lie where an input moves them.

#include <fmt/format.h>

#include <cmath>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/kernel_util.h"
#include "ops/nn/nn_util.h"
#include "ops/nn/reals.h"
#include "ops/nn/window.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

constexpr std::string_view kOp = "DeformConv";

enum DeformInput : std::size_t { kX, kW, kOffset, kBias, kMask };

Status infer(InferContext& context) {
  for (const std::size_t input : {kX, kW, kOffset})
    TESSERA_TRY(require_same_dtype(context, input, kX));
  TESSERA_TRY(require_rank_at_least(context, kX, 3));
  const ValueType& x = context.inputs[kX].type;
  const ValueType& w = context.inputs[kW].type;
  std::optional<Shape> output;
  if (x.shape && w.shape) {
    const auto rank = static_cast<std::int64_t>(x.shape->size());
    TESSERA_TRY(require_rank(context, kW, rank));
    TESSERA_TRY(require_rank(context, kOffset, rank));
    TESSERA_ASSIGN(const nn::WeightWindow window,
                   nn::read_weight_window(kOp, context.attributes, *w.shape));
    output = Shape{(*x.shape)[0], (*w.shape)[0]};
    for (std::size_t i = 0; i < window.extents.size(); ++i) {
      TESSERA_ASSIGN(Dim size,
                     nn::output_dim(kOp, window.window, i, (*x.shape)[i + 2], window.extents[i]));
      output->push_back(std::move(size));
    }
  }
  set_output(context, 0, x.dtype, std::move(output));
  return {};
}

struct Call {
  nn::Window window;
  std::int64_t batch = 0, channels = 0, outputs = 0, group = 1, offset_group = 1, taps = 1;
  Dims in, out;  // sizes of space
  [[nodiscard]] std::size_t axes() const { return in.size(); }
  [[nodiscard]] std::int64_t plane() const { return count_between(in, 0, in.size()); }
  [[nodiscard]] std::int64_t points() const { return count_between(out, 0, out.size()); }
};

Status check(const KernelContext& context, const Call& call) {
  const auto expect = [&](std::size_t index, const Dims& dims, std::string_view name) -> Status {
    const TensorView* view = context.input(index);
    if (view == nullptr || view->dims == dims) return {};
    return nn::op_error(kOp, fmt::format("input '{}': expected {}, found {}", name, to_string(dims),
                                         to_string(view->dims)));
  };
  if (call.group < 1 || call.channels % call.group != 0 || call.outputs % call.group != 0)
    return nn::op_error(kOp, fmt::format("group: expected a divisor of {} and {} channels, found "
                                         "{}",
                                         call.channels, call.outputs, call.group));
  if (call.offset_group < 1 || call.channels % call.offset_group != 0)
    return nn::op_error(kOp, fmt::format("offset_group: expected a divisor of {} channels, found "
                                         "{}",
                                         call.channels, call.offset_group));
  Dims weights{call.outputs, call.channels / call.group};
  for (const nn::WindowAxis& axis : call.window.axes) weights.push_back(axis.kernel);
  TESSERA_TRY(expect(kW, weights, "W"));
  const std::int64_t places = call.offset_group * call.taps;
  Dims offsets{call.batch, places * static_cast<std::int64_t>(call.axes())};
  Dims mask{call.batch, places};
  offsets.insert(offsets.end(), call.out.begin(), call.out.end());
  mask.insert(mask.end(), call.out.begin(), call.out.end());
  TESSERA_TRY(expect(kOffset, offsets, "offset"));
  TESSERA_TRY(expect(kBias, {call.outputs}, "B"));
  return expect(kMask, mask, "mask");
}

Result<Call> read_call(const KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* x, kernel_input(context, kX));
  TESSERA_ASSIGN(const TensorView* w, kernel_input(context, kW));
  if (x->dims.size() < 3 || w->dims.size() != x->dims.size())
    return nn::op_error(kOp, fmt::format("expected X and W of one rank of 3 or more, found {} and "
                                         "{}",
                                         to_string(x->dims), to_string(w->dims)));
  Call call;
  TESSERA_ASSIGN(nn::WeightWindow window,
                 nn::read_weight_window(kOp, context.attributes(), to_shape(w->dims)));
  call.window = std::move(window.window);
  call.batch = x->dims[0];
  call.channels = x->dims[1];
  call.outputs = w->dims[0];
  call.group = context.attributes().get_int("group", 1);
  call.offset_group = context.attributes().get_int("offset_group", 1);
  call.taps = call.window.taps();
  call.in.assign(x->dims.begin() + 2, x->dims.end());
  TESSERA_ASSIGN(call.out, nn::output_dims(kOp, call.window, call.in));
  TESSERA_TRY(check(context, call));
  return call;
}

// The value between elements, 0 outside of the plane.
double interpolate(const double* plane, const Dims& sizes, const std::vector<double>& place) {
  const std::size_t axes = sizes.size();
  double sum = 0;
  for (std::size_t corner = 0; corner < std::size_t{1} << axes; ++corner) {
    double weight = 1;
    std::int64_t offset = 0;
    bool inside = true;
    for (std::size_t d = 0; d < axes; ++d) {
      const double base = std::floor(place[d]);
      const bool next = (corner >> d & 1U) != 0;
      const double at = base + (next ? 1 : 0);
      weight *= next ? place[d] - base : 1 - (place[d] - base);
      inside = inside && at >= 0 && at < static_cast<double>(sizes[d]);
      offset = offset * sizes[d] + (inside ? static_cast<std::int64_t>(at) : 0);
    }
    if (inside && weight != 0) sum += weight * plane[offset];
  }
  return sum;
}

// What all taps of one output position read from one channel, one after the other.
class Sampler {
 public:
  Sampler(const Call& call, const double* x, const double* offset, const double* mask)
      : call_(call), x_(x), offset_(offset), mask_(mask), place_(call.axes()) {}

  void sample(std::int64_t batch, std::int64_t channel, std::int64_t point, double* to) {
    const std::int64_t shared = channel / (call_.channels / call_.offset_group);
    const std::int64_t first = (batch * call_.offset_group + shared) * call_.taps;
    const auto axes = static_cast<std::int64_t>(call_.axes());
    for (std::int64_t tap = 0; tap < call_.taps; ++tap) {
      std::int64_t tap_rest = tap;
      std::int64_t point_rest = point;
      for (std::size_t d = call_.axes(); d-- > 0;) {
        const nn::WindowAxis& axis = call_.window.axes[d];
        const std::int64_t base = point_rest % call_.out[d] * axis.stride - axis.pad_begin +
                                  tap_rest % axis.kernel * axis.dilation;
        point_rest /= call_.out[d];
        tap_rest /= axis.kernel;
        const std::int64_t moved =
            ((first + tap) * axes + static_cast<std::int64_t>(d)) * call_.points() + point;
        place_[d] = static_cast<double>(base) + offset_[moved];
      }
      const double* plane = x_ + (batch * call_.channels + channel) * call_.plane();
      const double value = interpolate(plane, call_.in, place_);
      to[tap] = mask_ == nullptr ? value : value * mask_[(first + tap) * call_.points() + point];
    }
  }

 private:
  const Call& call_;
  const double* x_;
  const double* offset_;
  const double* mask_;
  std::vector<double> place_;
};

Status kernel(KernelContext& context) {
  TESSERA_ASSIGN(const Call call, read_call(context));
  const TensorView none{DType::kFp64, {0}, nullptr};
  const auto reals = [&](std::size_t index) -> const TensorView& {
    return context.input(index) == nullptr ? none : *context.input(index);
  };
  const nn::Reals<double> x(reals(kX));
  const nn::Reals<double> w(reals(kW));
  const nn::Reals<double> offset(reals(kOffset));
  const nn::Reals<double> bias(reals(kBias));
  const nn::Reals<double> mask(reals(kMask));
  Dims dims{call.batch, call.outputs};
  dims.insert(dims.end(), call.out.begin(), call.out.end());
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, reals(kX).dtype, dims));
  nn::RealResult<double> y(output);
  const std::int64_t points = call.points();
  const std::int64_t in_group = call.channels / call.group;
  const std::int64_t out_group = call.outputs / call.group;
  context.parallel_for(call.batch * points, 16, [&](std::int64_t begin, std::int64_t end) {
    Sampler sampler(call, x.data(), offset.data(),
                    context.input(kMask) == nullptr ? nullptr : mask.data());
    std::vector<double> taps(static_cast<std::size_t>(call.channels * call.taps));
    for (std::int64_t i = begin; i < end; ++i) {
      for (std::int64_t c = 0; c < call.channels; ++c)
        sampler.sample(i / points, c, i % points, taps.data() + c * call.taps);
      for (std::int64_t o = 0; o < call.outputs; ++o) {
        double sum = context.input(kBias) == nullptr ? 0 : bias[o];
        const double* from = taps.data() + o / out_group * in_group * call.taps;
        const double* weights = w.data() + o * in_group * call.taps;
        for (std::int64_t k = 0; k < in_group * call.taps; ++k) sum += weights[k] * from[k];
        y.data()[(i / points * call.outputs + o) * points + i % points] = sum;
      }
    }
  });
  y.finish();
  return {};
}

}  // namespace

std::vector<OpSchema> deform_conv_ops() {
  OpSchema op;
  op.name = "DeformConv";
  op.versions = {19, 22};
  op.inputs = {required("X", "T"), required("W", "T"), required("offset", "T"), optional("B", "T"),
               optional("mask", "T")};
  op.outputs = {required("Y", "T")};
  op.attributes = {attr("dilations", AttrType::kInts),    attr("group", AttrType::kInt),
                   attr("kernel_shape", AttrType::kInts), attr("offset_group", AttrType::kInt),
                   attr("pads", AttrType::kInts),         attr("strides", AttrType::kInts)};
  op.type_variables = {{"T", kFloatTypes}};
  op.structure = Structure::kContraction;
  op.infer = infer;
  op.kernel = kernel;
  return {op};
}

}  // namespace tessera::ops
