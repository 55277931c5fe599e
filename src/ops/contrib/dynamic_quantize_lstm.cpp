// DynamicQuantizeLSTM: an LSTM over 8-bit weights, whose inputs and states are quantised on the way
// into each product: X as one tensor, the states of all samples together before every step.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/nn/nn_util.h"
#include "ops/nn/quantization.h"
#include "ops/nn/recurrent_cell.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

using nn::RecurrentOptions;

constexpr std::string_view kOp = "DynamicQuantizeLSTM";
constexpr std::int64_t kGates = 4;
constexpr float kLargest = 255;  // of uint8

enum Input : std::size_t {
  kX,
  kW,
  kR,
  kB,
  kLengths,
  kInitialH,
  kInitialC,
  kPeepholes,
  kWScale,
  kWZero,
  kRScale,
  kRZero
};

Result<RecurrentOptions> read_options(const Attributes& attributes) {
  auto options = nn::read_recurrent("LSTM", attributes);
  if (!options) return options;
  options->kind = nn::CellKind::kLstm;
  options->gates = kGates;
  return options;
}

struct Sizes {
  Dim steps, batch, input, hidden;
};

// W is [directions, input, 4 * hidden] and R [directions, hidden, 4 * hidden].
Result<Sizes> read_sizes(const RecurrentOptions& options, const Shape& x, const Shape& w,
                         const Shape& r) {
  const std::pair<std::string_view, const Shape*> operands[] = {{"X", &x}, {"W", &w}, {"R", &r}};
  for (const auto& [name, shape] : operands) {
    if (shape->size() != 3)
      return nn::op_error(
          kOp, fmt::format("input '{}': expected rank 3, found rank {}", name, shape->size()));
  }
  const Dim gates = Dim(kGates) * r[1];
  TESSERA_TRY(nn::require_size(kOp, "first size of input 'W'", Dim(options.directions),
                               "directions", w[0]));
  TESSERA_TRY(nn::require_size(kOp, "first size of input 'R'", Dim(options.directions),
                               "directions", r[0]));
  TESSERA_TRY(nn::require_size(kOp, "size 1 of input 'W'", x[2], "as 'X' has", w[1]));
  TESSERA_TRY(nn::require_size(kOp, "last size of input 'W'", gates, "4 gates", w[2]));
  TESSERA_TRY(nn::require_size(kOp, "last size of input 'R'", gates, "4 gates", r[2]));
  return Sizes{x[0], x[1], x[2], r[1]};
}

Status infer(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* x, tensor_input(context, kX));
  TESSERA_ASSIGN(const InferInput* w, tensor_input(context, kW));
  TESSERA_ASSIGN(const InferInput* r, tensor_input(context, kR));
  TESSERA_ASSIGN(const RecurrentOptions options, read_options(context.attributes));
  std::optional<Shape> all;
  std::optional<Shape> last;
  if (x->type.shape && w->type.shape && r->type.shape) {
    TESSERA_ASSIGN(const Sizes sizes,
                   read_sizes(options, *x->type.shape, *w->type.shape, *r->type.shape));
    const Dim directions(options.directions);
    all = {sizes.steps, directions, sizes.batch, sizes.hidden};
    last = {directions, sizes.batch, sizes.hidden};
  }
  set_output(context, 0, DType::kFp32, std::move(all));
  set_output(context, 1, DType::kFp32, last);
  set_output(context, 2, DType::kFp32, std::move(last));
  return {};
}

// What the values become when they are quantised to uint8 over their own range, which holds 0, and
// taken back.
void through_uint8(std::span<double> values) {
  float low = 0;
  float high = 0;
  for (const double value : values) {
    low = std::min(low, static_cast<float>(value));
    high = std::max(high, static_cast<float>(value));
  }
  const float scale = low == high ? 1.0F : (high - low) / kLargest;
  const float zero = std::nearbyint(std::clamp(-low / scale, 0.0F, kLargest));
  for (double& value : values) {
    const float real = static_cast<float>(value) / scale;
    value = (nn::quantized(real, static_cast<double>(zero), DType::kUInt8) -
             static_cast<double>(zero)) *
            static_cast<double>(scale);
  }
}

// [directions, rows, 4 * hidden] of 8 bits as reals of [directions, 4 * hidden, rows].
Result<std::vector<double>> read_weights(const KernelContext& context, std::size_t index,
                                         std::size_t scale_index, std::size_t zero_index,
                                         std::string_view name) {
  TESSERA_ASSIGN(const TensorView* view, kernel_input(context, index));
  TESSERA_ASSIGN(const TensorView* scale_view, kernel_input(context, scale_index));
  TESSERA_ASSIGN(const TensorView* zero_view, kernel_input(context, zero_index));
  const std::int64_t directions = view->dims[0];
  const std::int64_t rows = view->dims[1];
  const std::int64_t columns = view->dims[2];
  const std::vector<double> quantised = nn::doubles(*view);
  const std::vector<double> scales = nn::doubles(*scale_view);
  const std::vector<double> zeros = nn::doubles(*zero_view);
  for (const auto& [parameter, count] :
       {std::pair{"scale", scales.size()}, std::pair{"zero_point", zeros.size()}}) {
    const auto found = static_cast<std::int64_t>(count);
    if (found != directions && found != directions * columns)
      return nn::op_error(
          kOp, fmt::format("input '{}_{}': expected {} or {} elements, found {}", name, parameter,
                           directions, directions * columns, found));
  }
  const auto of = [&](const std::vector<double>& values, std::int64_t d, std::int64_t column) {
    const bool single = static_cast<std::int64_t>(values.size()) == directions;
    return values[static_cast<std::size_t>(single ? d : d * columns + column)];
  };
  std::vector<double> reals(quantised.size());
  for (std::int64_t d = 0; d < directions; ++d)
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = 0; column < columns; ++column)
        reals[static_cast<std::size_t>((d * columns + column) * rows + row)] =
            (quantised[static_cast<std::size_t>((d * rows + row) * columns + column)] -
             of(zeros, d, column)) *
            of(scales, d, column);
  return reals;
}

struct Call {
  RecurrentOptions options;
  std::int64_t steps = 0, batch = 0, input = 0, hidden = 0;
  std::vector<double> x, w, r, b, h, c, p;
  std::vector<std::int64_t> lengths;  // by sample
  std::int64_t longest = 0;
  std::vector<double> y;

  [[nodiscard]] nn::CellParameters parameters(std::int64_t d) const {
    const std::int64_t rows = kGates * hidden;
    return {w.data() + d * rows * input,
            r.data() + d * rows * hidden,
            b.empty() ? nullptr : b.data() + d * 2 * rows,
            p.empty() ? nullptr : p.data() + d * 3 * hidden,
            input,
            hidden};
  }
};

// Elements of an optional input; `fallback` of them, zeros, where it is omitted.
Result<std::vector<double>> read_reals(const KernelContext& context, std::size_t index,
                                       std::string_view name, std::int64_t expected,
                                       std::int64_t fallback) {
  const TensorView* view = context.input(index);
  if (view == nullptr) return std::vector<double>(static_cast<std::size_t>(fallback), 0.0);
  if (view->numel() == expected) return nn::doubles(*view);
  return nn::op_error(kOp, fmt::format("input '{}': expected {} elements, found {}", name, expected,
                                       view->numel()));
}

Status read_lengths(const KernelContext& context, Call& call) {
  call.lengths.assign(static_cast<std::size_t>(call.batch), call.steps);
  if (const TensorView* view = context.input(kLengths)) call.lengths = to_int64_vector(*view);
  if (static_cast<std::int64_t>(call.lengths.size()) != call.batch)
    return nn::op_error(kOp, fmt::format("input 'sequence_lens': expected {} elements, found {}",
                                         call.batch, call.lengths.size()));
  for (const std::int64_t length : call.lengths) {
    if (length < 0 || length > call.steps)
      return nn::op_error(kOp,
                          fmt::format("input 'sequence_lens': expected values from 0 to {}, found "
                                      "{}",
                                      call.steps, length));
    call.longest = std::max(call.longest, length);
  }
  return {};
}

Result<Call> read_call(const KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* x, kernel_input(context, kX));
  TESSERA_ASSIGN(const TensorView* w, kernel_input(context, kW));
  TESSERA_ASSIGN(const TensorView* r, kernel_input(context, kR));
  Call call;
  TESSERA_ASSIGN(call.options, read_options(context.attributes()));
  TESSERA_TRY(read_sizes(call.options, to_shape(x->dims), to_shape(w->dims), to_shape(r->dims))
                  .map([](const Sizes&) {}));
  call.steps = x->dims[0];
  call.batch = x->dims[1];
  call.input = x->dims[2];
  call.hidden = r->dims[1];
  const std::int64_t directions = call.options.directions;
  const std::int64_t states = directions * call.batch * call.hidden;
  TESSERA_TRY(read_lengths(context, call));
  call.x = nn::doubles(*x);
  // Steps that no sample has are in no product.
  through_uint8(
      std::span(call.x).first(static_cast<std::size_t>(call.longest * call.batch * call.input)));
  TESSERA_ASSIGN(call.w, read_weights(context, kW, kWScale, kWZero, "W"));
  TESSERA_ASSIGN(call.r, read_weights(context, kR, kRScale, kRZero, "R"));
  TESSERA_ASSIGN(call.b, read_reals(context, kB, "B", directions * 2 * kGates * call.hidden, 0));
  TESSERA_ASSIGN(call.p, read_reals(context, kPeepholes, "P", directions * 3 * call.hidden, 0));
  TESSERA_ASSIGN(call.h, read_reals(context, kInitialH, "initial_h", states, states));
  TESSERA_ASSIGN(call.c, read_reals(context, kInitialC, "initial_c", states, states));
  call.y.assign(static_cast<std::size_t>(call.steps * states), 0.0);
  return call;
}

// One step of one sample. Past its end its state is 0, which every range holds: from the step
// behind that on it has no say in how the states are quantised.
void step_sample(Call& call, std::int64_t d, std::int64_t sample, std::int64_t s,
                 std::vector<double>& h, std::vector<double>& c) {
  const std::int64_t length = call.lengths[static_cast<std::size_t>(sample)];
  if (s >= length) {
    std::fill(h.begin(), h.end(), 0.0);
    return;
  }
  const bool backwards = call.options.reverse || d == 1;
  const std::int64_t step = backwards ? length - 1 - s : s;
  const nn::Activation* activations = call.options.activations.data() + d * 3;
  nn::step_cell(call.options, activations, call.parameters(d),
                call.x.data() + (step * call.batch + sample) * call.input, h, c);
  const std::int64_t state = (d * call.batch + sample) * call.hidden;
  std::copy(
      h.begin(), h.end(),
      call.y.begin() + ((step * call.options.directions + d) * call.batch + sample) * call.hidden);
  std::copy(h.begin(), h.end(), call.h.begin() + state);
  std::copy(c.begin(), c.end(), call.c.begin() + state);
}

void run_direction(KernelContext& context, Call& call, std::int64_t d) {
  const std::int64_t count = call.batch * call.hidden;
  std::vector<double> h(call.h.begin() + d * count, call.h.begin() + (d + 1) * count);
  std::vector<double> c(call.c.begin() + d * count, call.c.begin() + (d + 1) * count);
  for (std::int64_t s = 0; s < call.longest; ++s) {
    through_uint8(h);
    context.parallel_for(call.batch, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t sample = begin; sample < end; ++sample) {
        const auto first = sample * call.hidden;
        std::vector<double> sample_h(h.begin() + first, h.begin() + first + call.hidden);
        std::vector<double> sample_c(c.begin() + first, c.begin() + first + call.hidden);
        step_sample(call, d, sample, s, sample_h, sample_c);
        std::copy(sample_h.begin(), sample_h.end(), h.begin() + first);
        std::copy(sample_c.begin(), sample_c.end(), c.begin() + first);
      }
    });
  }
}

Status kernel(KernelContext& context) {
  TESSERA_ASSIGN(Call call, read_call(context));
  const std::int64_t directions = call.options.directions;
  for (std::int64_t d = 0; d < directions; ++d) run_direction(context, call, d);
  const Dims last = {directions, call.batch, call.hidden};
  const std::pair<const std::vector<double>*, Dims> results[] = {
      {&call.y, {call.steps, directions, call.batch, call.hidden}},
      {&call.h, last},
      {&call.c, last}};
  for (std::size_t i = 0; i < std::min<std::size_t>(3, context.output_count()); ++i) {
    TESSERA_ASSIGN(const MutableTensorView out, context.output(i, DType::kFp32, results[i].second));
    nn::store_doubles(*results[i].first, out, true);
  }
  return {};
}

// Each step multiplies the input by W and the state by R.
Work lstm_work(const Attributes&, std::span<const TensorSpec> inputs,
               std::span<const TensorSpec> outputs) {
  Work work = nn::operand_traffic(inputs, outputs);
  const Dims& x = inputs[kX].dims;
  work.flops = 2 * static_cast<double>(x[0] * x[1]) *
               static_cast<double>(numel(inputs[kW].dims) + numel(inputs[kR].dims));
  return work;
}

}  // namespace

std::vector<OpSchema> dynamic_quantize_lstm_ops() {
  OpSchema op;
  op.domain = "com.microsoft";
  op.name = kOp;
  op.versions = {1};
  op.inputs = {required("X", "T"),
               required("W", "T2"),
               required("R", "T2"),
               optional("B", "T"),
               optional("sequence_lens", "T1"),
               optional("initial_h", "T"),
               optional("initial_c", "T"),
               optional("P", "T"),
               required("W_scale", "T"),
               required("W_zero_point", "T2"),
               required("R_scale", "T"),
               required("R_zero_point", "T2")};
  op.outputs = {optional("Y", "T"), optional("Y_h", "T"), optional("Y_c", "T")};
  op.attributes = {
      attr("activation_alpha", AttrType::kFloats), attr("activation_beta", AttrType::kFloats),
      attr("activations", AttrType::kStrings),     attr("clip", AttrType::kFloat),
      attr("direction", AttrType::kString),        attr("hidden_size", AttrType::kInt),
      attr("input_forget", AttrType::kInt)};
  op.type_variables = {{"T", kFp32Type},
                       {"T1", dtype_bit(DType::kInt32)},
                       {"T2", dtype_set({DType::kUInt8, DType::kInt8})}};
  op.structure = Structure::kOther;
  op.infer = infer;
  op.kernel = kernel;
  op.work = lstm_work;
  return {op};
}

}  // namespace tessera::ops
