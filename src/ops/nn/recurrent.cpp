// LSTM, GRU, RNN: schemas, inference, kernels.

#include <fmt/format.h>

#include <algorithm>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/nn/nn_util.h"
#include "ops/nn/quantization.h"
#include "ops/nn/reals.h"
#include "ops/nn/recurrent_cell.h"
#include "ops/schema_util.h"
#include "ops/upgrade_util.h"

namespace tessera::ops {
namespace {

using nn::RecurrentOptions;
using nn::RecurrentSizes;

enum Input : std::size_t { kX, kW, kR, kB, kLengths, kInitialH, kInitialC, kPeepholes };

// Shapes of Y, and of Y_h and Y_c.
std::pair<Shape, Shape> output_shapes(const RecurrentOptions& options,
                                      const RecurrentSizes& sizes) {
  const Dim directions(options.directions);
  if (options.batch_first)
    return {{sizes.batch, sizes.steps, directions, sizes.hidden},
            {sizes.batch, directions, sizes.hidden}};
  return {{sizes.steps, directions, sizes.batch, sizes.hidden},
          {directions, sizes.batch, sizes.hidden}};
}

Status infer_recurrent(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* x, tensor_input(context, kX));
  TESSERA_ASSIGN(const InferInput* w, tensor_input(context, kW));
  TESSERA_ASSIGN(const InferInput* r, tensor_input(context, kR));
  TESSERA_ASSIGN(const RecurrentOptions options,
                 nn::read_recurrent(context.op.name, context.attributes));
  std::optional<Shape> all;
  std::optional<Shape> last;
  if (x->type.shape && w->type.shape && r->type.shape) {
    TESSERA_ASSIGN(const RecurrentSizes sizes,
                   nn::recurrent_sizes(context.op.name, options, *x->type.shape, *w->type.shape,
                                       *r->type.shape));
    std::tie(all, last) = output_shapes(options, sizes);
  }
  set_output(context, 0, x->type.dtype, std::move(all));
  set_output(context, 1, x->type.dtype, last);
  set_output(context, 2, x->type.dtype, std::move(last));
  return {};
}

// One call with its operands as doubles; an omitted operand is empty.
struct Call {
  RecurrentOptions options;
  std::int64_t steps, batch, input, hidden;
  std::vector<double> x, w, r, b, h, c, p;
  std::vector<std::int64_t> lengths;
  std::vector<double> y, y_h, y_c;

  // Index of the first hidden unit in Y, and in Y_h, Y_c and the initial states.
  [[nodiscard]] std::int64_t at_step(std::int64_t step, std::int64_t direction,
                                     std::int64_t item) const {
    const std::int64_t row = options.batch_first
                                 ? (item * steps + step) * options.directions + direction
                                 : (step * options.directions + direction) * batch + item;
    return row * hidden;
  }
  [[nodiscard]] std::int64_t at_state(std::int64_t direction, std::int64_t item) const {
    return (options.batch_first ? item * options.directions + direction
                                : direction * batch + item) *
           hidden;
  }
  [[nodiscard]] const double* x_at(std::int64_t step, std::int64_t item) const {
    return x.data() + (options.batch_first ? item * steps + step : step * batch + item) * input;
  }
  [[nodiscard]] nn::CellParameters parameters(std::int64_t direction) const {
    const std::int64_t rows = options.gates * hidden;
    return {w.data() + direction * rows * input,
            r.data() + direction * rows * hidden,
            b.empty() ? nullptr : b.data() + direction * 2 * rows,
            p.empty() ? nullptr : p.data() + direction * 3 * hidden,
            input,
            hidden};
  }
};

std::vector<double> initial_state(const std::vector<double>& states, std::int64_t at,
                                  std::int64_t hidden) {
  if (states.empty()) return std::vector<double>(static_cast<std::size_t>(hidden), 0.0);
  return {states.begin() + at, states.begin() + at + hidden};
}

// All steps of one item in one direction. Steps past its length leave Y at 0 and the state as it
// is.
void run_item(Call& call, std::int64_t direction, std::int64_t item) {
  const bool backwards = call.options.reverse || direction == 1;
  const std::size_t activations =
      call.options.activations.size() / static_cast<std::size_t>(call.options.directions);
  const nn::Activation* first =
      call.options.activations.data() + static_cast<std::size_t>(direction) * activations;
  const std::int64_t state = call.at_state(direction, item);
  std::vector<double> h = initial_state(call.h, state, call.hidden);
  std::vector<double> c = initial_state(call.c, state, call.hidden);
  const std::int64_t length =
      call.lengths.empty() ? call.steps : call.lengths[static_cast<std::size_t>(item)];
  for (std::int64_t s = 0; s < length; ++s) {
    const std::int64_t step = backwards ? length - 1 - s : s;
    nn::step_cell(call.options, first, call.parameters(direction), call.x_at(step, item), h, c);
    std::copy(h.begin(), h.end(), call.y.begin() + call.at_step(step, direction, item));
  }
  std::copy(h.begin(), h.end(), call.y_h.begin() + state);
  std::copy(c.begin(), c.end(), call.y_c.begin() + state);
}

Result<std::vector<double>> optional_operand(const KernelContext& context, std::string_view op,
                                             std::string_view name, std::size_t index,
                                             std::int64_t expected) {
  const TensorView* view = context.input(index);
  if (view == nullptr) return std::vector<double>();
  if (view->numel() != expected)
    return nn::op_error(op, fmt::format("input '{}': expected {} elements, found {}", name,
                                        expected, view->numel()));
  return nn::doubles(*view);
}

Status read_lengths(const KernelContext& context, std::string_view op, Call& call) {
  const TensorView* view = context.input(kLengths);
  if (view == nullptr) return {};
  call.lengths = to_int64_vector(*view);
  if (static_cast<std::int64_t>(call.lengths.size()) != call.batch) {
    return nn::op_error(op, fmt::format("input 'sequence_lens': expected {} elements, found {}",
                                        call.batch, call.lengths.size()));
  }
  for (const std::int64_t length : call.lengths) {
    if (length < 0 || length > call.steps) {
      return nn::op_error(
          op, fmt::format("input 'sequence_lens': expected values from 0 to {}, found {}",
                          call.steps, length));
    }
  }
  return {};
}

Result<Call> read_call(const KernelContext& context, std::string_view op) {
  TESSERA_ASSIGN(const TensorView* x, kernel_input(context, kX));
  TESSERA_ASSIGN(const TensorView* w, kernel_input(context, kW));
  TESSERA_ASSIGN(const TensorView* r, kernel_input(context, kR));
  Call call;
  TESSERA_ASSIGN(call.options, nn::read_recurrent(op, context.attributes()));
  TESSERA_ASSIGN(const RecurrentSizes sizes,
                 nn::recurrent_sizes(op, call.options, to_shape(x->dims), to_shape(w->dims),
                                     to_shape(r->dims)));
  call.steps = sizes.steps.constant().value();
  call.batch = sizes.batch.constant().value();
  call.input = sizes.input.constant().value();
  call.hidden = sizes.hidden.constant().value();
  call.x = nn::doubles(*x);
  call.w = nn::doubles(*w);
  call.r = nn::doubles(*r);
  const std::int64_t states = call.options.directions * call.batch * call.hidden;
  TESSERA_ASSIGN(call.b,
                 optional_operand(context, op, "B", kB,
                                  call.options.directions * 2 * call.options.gates * call.hidden));
  TESSERA_ASSIGN(call.h, optional_operand(context, op, "initial_h", kInitialH, states));
  TESSERA_ASSIGN(call.c, optional_operand(context, op, "initial_c", kInitialC, states));
  TESSERA_ASSIGN(call.p, optional_operand(context, op, "P", kPeepholes,
                                          call.options.directions * 3 * call.hidden));
  TESSERA_TRY(read_lengths(context, op, call));
  call.y.assign(static_cast<std::size_t>(call.steps * states), 0.0);
  call.y_h.assign(static_cast<std::size_t>(states), 0.0);
  call.y_c.assign(static_cast<std::size_t>(states), 0.0);
  return call;
}

Status run(KernelContext& context, std::string_view op) {
  TESSERA_ASSIGN(Call call, read_call(context, op));
  const DType dtype = context.input(kX)->dtype;
  context.parallel_for(call.options.directions * call.batch, 1,
                       [&](std::int64_t begin, std::int64_t end) {
                         for (std::int64_t i = begin; i < end; ++i)
                           run_item(call, i / call.batch, i % call.batch);
                       });
  const auto shapes = output_shapes(
      call.options, {Dim(call.steps), Dim(call.batch), Dim(call.input), Dim(call.hidden)});
  const std::vector<double>* results[] = {&call.y, &call.y_h, &call.y_c};
  for (std::size_t i = 0; i < std::min<std::size_t>(3, context.output_count()); ++i) {
    const Dims dims = constant_dims(i == 0 ? shapes.first : shapes.second).value();
    TESSERA_ASSIGN(const MutableTensorView out, context.output(i, dtype, dims));
    nn::store_doubles(*results[i], out, true);
  }
  return {};
}

Status lstm_kernel(KernelContext& context) {
  return run(context, "LSTM");
}
Status gru_kernel(KernelContext& context) {
  return run(context, "GRU");
}
Status rnn_kernel(KernelContext& context) {
  return run(context, "RNN");
}

// Each step multiplies the input by W and the state by R.
Work recurrent_work(const Attributes&, std::span<const TensorSpec> inputs,
                    std::span<const TensorSpec> outputs) {
  Work work = nn::operand_traffic(inputs, outputs);
  const Dims& x = inputs[kX].dims;
  work.flops = 2 * static_cast<double>(x[0] * x[1]) *
               static_cast<double>(numel(inputs[kW].dims) + numel(inputs[kR].dims));
  return work;
}

// Versions before 7 had output_sequence, which said whether Y is there at all; the node's outputs
// say so too.
Status upgrade_output_sequence(UpgradeNode& node, int, UpgradeBuilder&) {
  erase_attributes(node, {"output_sequence"});
  const AttributeValue* direction = node.attributes.find("direction");
  const auto* text = direction == nullptr ? nullptr : std::get_if<std::string>(direction);
  if (text != nullptr && *text == "foward")
    node.attributes.erase("direction");  // the default of GRU-1, as the standard spells it
  return {};
}

OpSchema schema(std::string_view name, std::vector<int> versions, KernelFn kernel) {
  OpSchema op;
  op.name = name;
  op.versions = std::move(versions);
  op.inputs = {required("X", "T"),
               required("W", "T"),
               required("R", "T"),
               optional("B", "T"),
               optional("sequence_lens", "T1"),
               optional("initial_h", "T")};
  op.outputs = {optional("Y", "T"), optional("Y_h", "T")};
  op.unspecified =
      "steps behind the length of a sequence are 0 in Y and leave the states as they are; a length "
      "out of range is an error";
  op.attributes = {attr("activation_alpha", AttrType::kFloats),
                   attr("activation_beta", AttrType::kFloats),
                   attr("activations", AttrType::kStrings),
                   attr("clip", AttrType::kFloat),
                   attr("direction", AttrType::kString),
                   attr("hidden_size", AttrType::kInt),
                   attr("layout", AttrType::kInt)};
  op.type_variables = {{"T", kFloatTypes}, {"T1", dtype_bit(DType::kInt32)}};
  op.structure = Structure::kOther;
  op.infer = infer_recurrent;
  op.kernel = kernel;
  op.work = recurrent_work;
  op.upgrades = {{1, 6, upgrade_output_sequence}};
  return op;
}

}  // namespace

std::vector<OpSchema> recurrent_ops() {
  OpSchema lstm = schema("LSTM", {1, 7, 14, 22}, lstm_kernel);
  lstm.inputs.push_back(optional("initial_c", "T"));
  lstm.inputs.push_back(optional("P", "T"));
  lstm.outputs.push_back(optional("Y_c", "T"));
  lstm.attributes.push_back(attr("input_forget", AttrType::kInt));
  OpSchema gru = schema("GRU", {1, 3, 7, 14, 22}, gru_kernel);
  gru.attributes.push_back(attr("linear_before_reset", AttrType::kInt));
  return {lstm, gru, schema("RNN", {1, 7, 14, 22}, rnn_kernel)};
}

}  // namespace tessera::ops
