// DFT and STFT.

#include <fmt/format.h>

#include <cmath>
#include <complex>
#include <numbers>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/kernel_util.h"
#include "ops/movement/movement_util.h"
#include "ops/nn/nn_util.h"
#include "ops/nn/reals.h"
#include "ops/schema_util.h"
#include "ops/upgrade_util.h"

namespace tessera::ops {
namespace {

using Complex = std::complex<double>;

// The transform of `count` elements that lie `step` apart: halves of even lengths first, the rest
// by the sum itself. `sign` is that of the exponent.
void transform(const Complex* from, std::int64_t count, std::int64_t step, double sign,
               Complex* to) {
  if (count == 1) {
    *to = *from;
    return;
  }
  const double turn = sign * 2 * std::numbers::pi / static_cast<double>(count);
  if (count % 2 == 0) {
    const std::int64_t half = count / 2;
    std::vector<Complex> even(static_cast<std::size_t>(half));
    std::vector<Complex> odd(static_cast<std::size_t>(half));
    transform(from, half, 2 * step, sign, even.data());
    transform(from + step, half, 2 * step, sign, odd.data());
    for (std::int64_t i = 0; i < half; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const Complex turned = std::polar(1.0, turn * static_cast<double>(i)) * odd[at];
      to[i] = even[at] + turned;
      to[i + half] = even[at] - turned;
    }
    return;
  }
  for (std::int64_t k = 0; k < count; ++k) {
    Complex sum = 0;
    for (std::int64_t n = 0; n < count; ++n)
      sum += std::polar(1.0, turn * static_cast<double>(k * n % count)) * from[n * step];
    to[k] = sum;
  }
}

// One element of a signal whose last axis holds one part (real) or two.
Complex element(const double* signal, std::int64_t index, std::int64_t parts) {
  return parts == 1 ? Complex(signal[index]) : Complex(signal[2 * index], signal[2 * index + 1]);
}

// ---- DFT ----------------------------------------------------------------------------------------

struct DftOptions {
  bool inverse = false;
  bool onesided = false;
  [[nodiscard]] bool gives_real() const { return inverse && onesided; }
};

DftOptions options_of(const Attributes& attributes) {
  return {attributes.get_int("inverse", 0) != 0, attributes.get_int("onesided", 0) != 0};
}

// The axis of the signal, counted from the front.
Result<std::int64_t> signal_axis(std::int64_t axis, std::int64_t rank) {
  TESSERA_ASSIGN(const std::int64_t at, normalize_axis(axis, rank, "DFT: axis"));
  if (at != rank - 1) return at;
  return nn::op_error("DFT", "axis: expected an axis of the signal, found the last one");
}

// Elements of the result along the axis, for a transform of `length`.
template <typename Size>
Size result_length(const DftOptions& options, const Size& length) {
  if (!options.onesided || options.inverse) return length;
  if constexpr (std::is_same_v<Size, Dim>) {
    return floordiv(length, Dim(2)) + Dim(1);
  } else {
    return length / 2 + 1;
  }
}

Status infer_dft(InferContext& context) {
  TESSERA_TRY(require_rank_at_least(context, 0, 2));
  const DftOptions options = options_of(context.attributes);
  const ValueType& input = context.inputs[0].type;
  std::optional<Shape> output = input.shape;
  std::optional<std::vector<std::int64_t>> axis = std::vector<std::int64_t>{-2};
  if (has_input(context, 2)) axis = known_ints(context.inputs[2]);
  if (output && (!axis || axis->size() != 1)) {
    for (Dim& dim : *output) dim = context.fresh_symbol("dft");
    output->back() = Dim(options.gives_real() ? 1 : 2);
  } else if (output) {
    TESSERA_ASSIGN(const std::int64_t at,
                   signal_axis(axis->front(), static_cast<std::int64_t>(output->size())));
    Dim& size = (*output)[static_cast<std::size_t>(at)];
    Dim length = options.gives_real() ? Dim(2) * (size - Dim(1)) : size;
    if (has_input(context, 1)) {
      const auto asked = known_value(context.inputs[1]);
      length =
          asked && asked->elements.size() == 1 ? asked->elements[0] : context.fresh_symbol("dft");
    }
    size = result_length(options, length);
    output->back() = Dim(options.gives_real() ? 1 : 2);
  }
  set_output(context, 0, input.dtype, std::move(output));
  return {};
}

// The spectrum of `length` that a one-sided one of a real signal stands for.
void mirror(std::vector<Complex>& line) {
  const std::size_t length = line.size();
  for (std::size_t i = length / 2 + 1; i < length; ++i) line[i] = std::conj(line[length - i]);
}

struct DftCall {
  DftOptions options;
  AxisSplit split;          // of the signal without its parts
  std::int64_t parts = 1;   // of an input element
  std::int64_t length = 0;  // of the transform
};

Result<std::int64_t> scalar_input(const KernelContext& context, std::size_t index,
                                  std::int64_t fallback) {
  const TensorView* view = context.input(index);
  if (view == nullptr) return fallback;
  if (view->numel() == 1) return to_int64_vector(*view)[0];
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("input {}: expected a scalar, found {}", index, to_string(view->dims)));
}

// One line along the axis, at `from` in the input and `to` in the output.
void run_line(const DftCall& call, const double* input, std::int64_t from, double* output,
              std::int64_t to, std::int64_t given) {
  std::vector<Complex> line(static_cast<std::size_t>(call.length));
  const std::int64_t held = std::min(call.split.size, call.length);
  for (std::int64_t i = 0; i < held; ++i)
    line[static_cast<std::size_t>(i)] = element(input, from + i * call.split.inner, call.parts);
  if (call.options.gives_real()) mirror(line);
  std::vector<Complex> result(line.size());
  transform(line.data(), call.length, 1, call.options.inverse ? 1 : -1, result.data());
  const double scale = call.options.inverse ? 1 / static_cast<double>(call.length) : 1;
  for (std::int64_t i = 0; i < given; ++i) {
    const Complex value = result[static_cast<std::size_t>(i)] * scale;
    const std::int64_t at = to + i * call.split.inner;
    if (call.options.gives_real()) {
      output[at] = value.real();
    } else {
      output[2 * at] = value.real();
      output[2 * at + 1] = value.imag();
    }
  }
}

Status dft_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  const auto rank = static_cast<std::int64_t>(input->dims.size());
  if (rank < 2 || (input->dims.back() != 1 && input->dims.back() != 2))
    return nn::op_error("DFT", fmt::format("expected a signal with a last axis of 1 or 2, found {}",
                                           to_string(input->dims)));
  TESSERA_ASSIGN(const std::int64_t asked_axis, scalar_input(context, 2, -2));
  TESSERA_ASSIGN(const std::int64_t axis, signal_axis(asked_axis, rank));
  DftCall call{options_of(context.attributes()),
               split_at(Dims(input->dims.begin(), input->dims.end() - 1), axis), input->dims.back(),
               0};
  if (call.options.onesided && (call.parts == 2) != call.options.inverse)
    return nn::op_error("DFT", fmt::format("expected a {} signal, found a last axis of {}",
                                           call.options.inverse ? "complex" : "real", call.parts));
  TESSERA_ASSIGN(call.length, scalar_input(context, 1,
                                           call.options.gives_real() ? 2 * (call.split.size - 1)
                                                                     : call.split.size));
  if (call.length < 1)
    return nn::op_error("DFT",
                        fmt::format("dft_length: expected 1 or more, found {}", call.length));
  const std::int64_t given = result_length(call.options, call.length);
  Dims dims = input->dims;
  dims[static_cast<std::size_t>(axis)] = given;
  dims.back() = call.options.gives_real() ? 1 : 2;
  TESSERA_TRY(checked_nbytes(input->dtype, dims).map([](std::int64_t) {}));
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, input->dtype, dims));
  const nn::Reals<double> signal(*input);
  nn::RealResult<double> result(output);
  context.parallel_for(
      call.split.outer * call.split.inner, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t outer = i / call.split.inner;
          const std::int64_t inner = i % call.split.inner;
          run_line(call, signal.data(), outer * call.split.size * call.split.inner + inner,
                   result.data(), outer * given * call.split.inner + inner, given);
        }
      });
  result.finish();
  return {};
}

// Version 17 has the axis as an attribute.
Status upgrade_dft(UpgradeNode& node, int /*opset*/, UpgradeBuilder& builder) {
  TESSERA_ASSIGN(const std::int64_t axis, old_int(node, "axis", 1));
  erase_attributes(node, {"axis"});
  set_input(node, 2, constant_int(builder, axis));
  return {};
}

// ---- STFT ---------------------------------------------------------------------------------------

Status infer_stft(InferContext& context) {
  TESSERA_TRY(require_rank(context, 0, 3));
  TESSERA_TRY(require_dtype(context, 1, kIndexTypes));
  const ValueType& signal = context.inputs[0].type;
  const auto scalar = [&](std::size_t index) -> std::optional<Dim> {
    if (!has_input(context, index)) return std::nullopt;
    const auto value = known_value(context.inputs[index]);
    return value && value->elements.size() == 1 ? std::optional(value->elements[0]) : std::nullopt;
  };
  std::optional<Dim> length = scalar(3);
  if (!length && has_input(context, 2) && context.inputs[2].type.shape)
    length = context.inputs[2].type.shape->front();
  if (!length && !has_input(context, 2) && !has_input(context, 3) && signal.shape)
    length = (*signal.shape)[1];
  const auto step = scalar(1);
  const bool counted = length && step && step->constant().value_or(0) > 0 && signal.shape;
  const bool onesided = context.attributes.get_int("onesided", 1) != 0;
  const Dim bins = !length    ? context.fresh_symbol("bins")
                   : onesided ? floordiv(*length, Dim(2)) + Dim(1)
                              : *length;
  set_output(context, 0, signal.dtype,
             Shape{signal.shape ? (*signal.shape)[0] : context.fresh_symbol("batch"),
                   counted ? floordiv((*signal.shape)[1] - *length, *step) + Dim(1)
                           : context.fresh_symbol("frames"),
                   bins, Dim(2)});
  return {};
}

struct StftCall {
  std::int64_t step = 1, length = 1, frames = 0, bins = 0, parts = 1;
};

Result<StftCall> read_stft(const KernelContext& context, const TensorView& signal) {
  StftCall call;
  const TensorView* window = context.input(2);
  TESSERA_ASSIGN(call.step, scalar_input(context, 1, 1));
  TESSERA_ASSIGN(call.length,
                 scalar_input(context, 3, window == nullptr ? signal.dims[1] : window->numel()));
  if (call.step < 1 || call.length < 1 || call.length > signal.dims[1])
    return nn::op_error("STFT", fmt::format("expected a step of 1 or more and frames of 1 to {}, "
                                            "found {} and {}",
                                            signal.dims[1], call.step, call.length));
  if (window != nullptr && window->dims != Dims{call.length})
    return nn::op_error("STFT", fmt::format("input 'window': expected {} elements, found {}",
                                            call.length, to_string(window->dims)));
  const bool onesided = context.attributes().get_int("onesided", 1) != 0;
  call.parts = signal.dims[2];
  if (onesided && call.parts == 2)
    return nn::op_error("STFT", "onesided: expected 0 for a complex signal, found 1");
  call.frames = (signal.dims[1] - call.length) / call.step + 1;
  call.bins = onesided ? call.length / 2 + 1 : call.length;
  return call;
}

Status stft_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* signal_view, kernel_input(context, 0));
  const Dims& in = signal_view->dims;
  if (in.size() != 3 || (in[2] != 1 && in[2] != 2))
    return nn::op_error("STFT", fmt::format("expected a signal of [batch, length, 1 or 2], found "
                                            "{}",
                                            to_string(in)));
  TESSERA_ASSIGN(const StftCall call, read_stft(context, *signal_view));
  TESSERA_ASSIGN(const MutableTensorView output,
                 context.output(0, signal_view->dtype, {in[0], call.frames, call.bins, 2}));
  const nn::Reals<double> signal(*signal_view);
  const TensorView none{DType::kFp64, {0}, nullptr};
  const nn::Reals<double> window(context.input(2) == nullptr ? none : *context.input(2));
  nn::RealResult<double> result(output);
  context.parallel_for(in[0] * call.frames, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<Complex> frame(static_cast<std::size_t>(call.length));
    std::vector<Complex> spectrum(frame.size());
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = i / call.frames * in[1] + i % call.frames * call.step;
      for (std::int64_t n = 0; n < call.length; ++n)
        frame[static_cast<std::size_t>(n)] = element(signal.data(), first + n, call.parts) *
                                             (context.input(2) == nullptr ? 1 : window[n]);
      transform(frame.data(), call.length, 1, -1, spectrum.data());
      for (std::int64_t k = 0; k < call.bins; ++k) {
        result.data()[(i * call.bins + k) * 2] = spectrum[static_cast<std::size_t>(k)].real();
        result.data()[(i * call.bins + k) * 2 + 1] = spectrum[static_cast<std::size_t>(k)].imag();
      }
    }
  });
  result.finish();
  return {};
}

}  // namespace

std::vector<OpSchema> fourier_ops() {
  OpSchema dft;
  dft.name = "DFT";
  dft.versions = {17, 20};
  dft.unspecified = "a length below 1 is an error";
  dft.inputs = {required("input", "T1"), optional("dft_length", "T2"), optional("axis", "I")};
  dft.outputs = {required("output", "T1")};
  dft.attributes = {attr("inverse", AttrType::kInt), attr("onesided", AttrType::kInt)};
  dft.type_variables = {{"T1", kFloatTypes}, {"T2", kIndexTypes}, {"I", kInt64Type}};
  dft.structure = Structure::kOther;
  dft.infer = infer_dft;
  dft.kernel = dft_kernel;
  dft.upgrades = {{17, 17, upgrade_dft}};
  dft.shape_inputs = {1, 2};

  OpSchema stft;
  stft.name = "STFT";
  stft.versions = {17};
  stft.unspecified = "a step below 1 and a frame longer than the signal are errors";
  stft.inputs = {required("signal", "T1"), required("frame_step", "T2"), optional("window", "T1"),
                 optional("frame_length", "T2")};
  stft.outputs = {required("output", "T1")};
  stft.attributes = {attr("onesided", AttrType::kInt)};
  stft.type_variables = {{"T1", kFloatTypes}, {"T2", kIndexTypes}};
  stft.structure = Structure::kOther;
  stft.infer = infer_stft;
  stft.kernel = stft_kernel;
  stft.shape_inputs = {1, 3};
  return {dft, stft};
}

}  // namespace tessera::ops
