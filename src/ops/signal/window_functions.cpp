// BlackmanWindow, HammingWindow, HannWindow and MelWeightMatrix: tables for spectra.

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/kernel_util.h"
#include "ops/nn/nn_util.h"
#include "ops/nn/reals.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

constexpr std::int64_t kMaxKnownElements = std::int64_t{1} << 40;

Result<DType> table_dtype(const Attributes& attributes) {
  const std::int64_t number = attributes.get_int("output_datatype", 1);
  if (number > 0 && number < kDTypeCount && (kNumericTypes >> number & 1U) != 0)
    return static_cast<DType>(number);
  return attribute_error("output_datatype",
                         fmt::format("expected the number of a numeric dtype, found {}", number));
}

// ---- Windows ------------------------------------------------------------------------------------

// a - b cos(x) + c cos(2 x), with x once around over the window.
struct Cosines {
  double a, b, c;
};
constexpr Cosines kHann{0.5, 0.5, 0};
constexpr Cosines kHamming{25.0 / 46, 21.0 / 46, 0};
constexpr Cosines kBlackman{0.42, 0.5, 0.08};

Status infer_window(InferContext& context) {
  TESSERA_TRY(require_dtype(context, 0, kIndexTypes));
  TESSERA_ASSIGN(const DType dtype, table_dtype(context.attributes));
  const auto size = known_value(context.inputs[0]);
  if (size && size->elements.size() != 1)
    return input_error(context, 0,
                       fmt::format("expected a scalar, found {} elements", size->elements.size()));
  set_output(context, 0, dtype, Shape{size ? size->elements[0] : context.fresh_symbol("window")});
  return {};
}

template <const Cosines& kCosines>
Status window_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* size_view, kernel_input(context, 0));
  TESSERA_ASSIGN(const DType dtype, table_dtype(context.attributes()));
  const std::vector<std::int64_t> sizes = to_int64_vector(*size_view);
  if (sizes.size() != 1 || sizes[0] < 0)
    return fail(ErrorCode::kInvalidArgument, "expected one size of 0 or more");
  TESSERA_TRY(checked_nbytes(dtype, sizes).map([](std::int64_t) {}));
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, dtype, sizes));
  const bool periodic = context.attributes().get_int("periodic", 1) != 0;
  const auto around = static_cast<double>(periodic ? sizes[0] : sizes[0] - 1);
  nn::RealResult<double> window(output);
  for (std::int64_t i = 0; i < sizes[0]; ++i) {
    // A symmetric window of one element is its middle.
    const double x =
        around == 0 ? std::numbers::pi : 2 * std::numbers::pi * static_cast<double>(i) / around;
    window.data()[i] = kCosines.a - kCosines.b * std::cos(x) + kCosines.c * std::cos(2 * x);
  }
  window.finish();
  return {};
}

OpSchema window(std::string_view name, KernelFn kernel) {
  OpSchema op;
  op.name = name;
  op.versions = {17};
  op.unspecified = "a symmetric window of one element is 1; a size below 0 is an error";
  op.inputs = {required("size", "T1")};
  op.outputs = {required("output", "T2")};
  op.attributes = {attr("output_datatype", AttrType::kInt), attr("periodic", AttrType::kInt)};
  op.type_variables = {{"T1", kIndexTypes}, {"T2", kNumericTypes}};
  op.structure = Structure::kOther;
  op.infer = infer_window;
  op.kernel = kernel;
  op.shape_inputs = {0};
  return op;
}

// ---- MelWeightMatrix ----------------------------------------------------------------------------

Status infer_mel(InferContext& context) {
  TESSERA_ASSIGN(const DType dtype, table_dtype(context.attributes));
  const auto bins = known_value(context.inputs[0]);
  const auto length = known_value(context.inputs[1]);
  const auto scalar = [](const auto& value) { return value && value->elements.size() == 1; };
  set_output(context, 0, dtype,
             Shape{scalar(length) ? floordiv(length->elements[0], Dim(2)) + Dim(1)
                                  : context.fresh_symbol("spectrum"),
                   scalar(bins) ? bins->elements[0] : context.fresh_symbol("mel")});
  return {};
}

double to_mel(double hertz) {
  return 2595 * std::log10(1 + hertz / 700);
}
double from_mel(double mel) {
  return 700 * (std::pow(10, mel / 2595) - 1);
}

// One triangle: it rises from `left` to `center` and falls to `right`.
void triangle(double* column, std::int64_t step, std::int64_t left, std::int64_t center,
              std::int64_t right) {
  if (center == left) column[center * step] = 1;
  for (std::int64_t i = left; center > left && i <= center; ++i)
    column[i * step] = static_cast<double>(i - left) / static_cast<double>(center - left);
  for (std::int64_t i = center; i < right; ++i)
    column[i * step] = static_cast<double>(right - i) / static_cast<double>(right - center);
}

Status mel_kernel(KernelContext& context) {
  std::array<double, 5> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    TESSERA_ASSIGN(const TensorView* view, kernel_input(context, i));
    if (view->numel() != 1)
      return nn::op_error("MelWeightMatrix",
                          fmt::format("expected scalars, found {}", to_string(view->dims)));
    numbers[i] = nn::Reals<double>(*view)[0];
  }
  const auto [bins, length, rate, low, high] = numbers;
  if (!(bins >= 0 && length >= 0 && rate > 0 &&
        bins * length < static_cast<double>(kMaxKnownElements)))
    return nn::op_error("MelWeightMatrix",
                        fmt::format("expected bins, a length and a sample rate of 0 or more, found "
                                    "{}, {} and {}",
                                    bins, length, rate));
  TESSERA_ASSIGN(const DType dtype, table_dtype(context.attributes()));
  const auto columns = static_cast<std::int64_t>(bins);
  const std::int64_t rows = static_cast<std::int64_t>(length) / 2 + 1;
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, dtype, {rows, columns}));
  const double step = (to_mel(high) - to_mel(low)) / (bins + 2);
  std::vector<std::int64_t> edges;
  for (std::int64_t i = 0; i < columns + 2; ++i) {
    const double hertz = from_mel(to_mel(low) + static_cast<double>(i) * step);
    edges.push_back(static_cast<std::int64_t>(std::floor((length + 1) * hertz / rate)));
    if (edges.back() < 0 || edges.back() > rows)
      return nn::op_error(
          "MelWeightMatrix",
          fmt::format("expected edges below half of the sample rate {}, found {}", rate, hertz));
  }
  std::vector<double> matrix(static_cast<std::size_t>((rows + 1) * columns));
  for (std::int64_t i = 0; i < columns; ++i) {
    const auto at = static_cast<std::size_t>(i);
    triangle(matrix.data() + i, columns, edges[at], edges[at + 1], edges[at + 2]);
  }
  cast_elements({DType::kFp64, {rows, columns}, matrix.data()}, output, true);
  return {};
}

OpSchema mel() {
  OpSchema op;
  op.name = "MelWeightMatrix";
  op.unspecified = "edges below 0 or behind half of the sample rate are an error";
  op.versions = {17};
  op.inputs = {required("num_mel_bins", "T1"), required("dft_length", "T1"),
               required("sample_rate", "T1"), required("lower_edge_hertz", "T2"),
               required("upper_edge_hertz", "T2")};
  op.outputs = {required("output", "T3")};
  op.attributes = {attr("output_datatype", AttrType::kInt)};
  op.type_variables = {{"T1", kIndexTypes}, {"T2", kFloatTypes}, {"T3", kNumericTypes}};
  op.structure = Structure::kOther;
  op.infer = infer_mel;
  op.kernel = mel_kernel;
  op.shape_inputs = {0, 1};
  return op;
}

}  // namespace

std::vector<OpSchema> window_function_ops() {
  return {window("BlackmanWindow", window_kernel<kBlackman>),
          window("HammingWindow", window_kernel<kHamming>),
          window("HannWindow", window_kernel<kHann>), mel()};
}

}  // namespace tessera::ops
