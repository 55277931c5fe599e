// LinearAttention: attention as a recurrence over a state of [keys, values] for each head.

#include <fmt/format.h>

#include <cmath>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/kernel_util.h"
#include "ops/nn/nn_util.h"
#include "ops/nn/reals.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

constexpr std::string_view kOp = "LinearAttention";

enum LinearInput : std::size_t { kQuery, kKey, kValue, kPast, kDecay, kBeta };

// What happens to the state before a key and its value are added.
struct Rule {
  bool decays = true;    // it fades by exp(decay)
  bool corrects = true;  // what it already holds for the key is taken off the value
};

Result<Rule> rule_of(const Attributes& attributes) {
  const std::string rule = attributes.get_string("update_rule", "gated_delta");
  if (rule == "linear") return Rule{false, false};
  if (rule == "gated") return Rule{true, false};
  if (rule == "delta") return Rule{false, true};
  if (rule == "gated_delta") return Rule{true, true};
  return attribute_error(
      "update_rule",
      fmt::format("expected 'linear', 'gated', 'delta' or 'gated_delta', found '{}'", rule));
}

struct Heads {
  std::int64_t query = 1;
  std::int64_t key = 1;
};

Result<Heads> heads_of(const Attributes& attributes) {
  const Heads heads{attributes.get_int("q_num_heads", 0), attributes.get_int("kv_num_heads", 0)};
  if (heads.key >= 1 && heads.query >= 1 && heads.query % heads.key == 0) return heads;
  return nn::op_error(kOp, fmt::format("expected q_num_heads in multiples of kv_num_heads, found "
                                       "{} and {}",
                                       heads.query, heads.key));
}

Status check_gates(const Rule& rule, bool has_decay, bool has_beta) {
  const auto check = [](bool wanted, bool found, std::string_view name) -> Status {
    if (wanted == found) return {};
    return nn::op_error(kOp, fmt::format("input '{}': expected {} with this update_rule, found {}",
                                         name, wanted ? "one" : "none", found ? "one" : "none"));
  };
  TESSERA_TRY(check(rule.decays, has_decay, "decay"));
  return check(rule.corrects, has_beta, "beta");
}

Status infer(InferContext& context) {
  TESSERA_ASSIGN(const Rule rule, rule_of(context.attributes));
  TESSERA_ASSIGN(const Heads heads, heads_of(context.attributes));
  TESSERA_TRY(check_gates(rule, has_input(context, kDecay), has_input(context, kBeta)));
  for (const std::size_t input : {kQuery, kKey, kValue}) {
    TESSERA_TRY(require_same_dtype(context, input, kQuery));
    TESSERA_TRY(require_rank(context, input, 3));
  }
  if (has_input(context, kPast)) TESSERA_TRY(require_rank(context, kPast, 4));
  const ValueType& query = context.inputs[kQuery].type;
  const auto& value = context.inputs[kValue].type.shape;
  const DType state_dtype =
      has_input(context, kPast) ? context.inputs[kPast].type.dtype : query.dtype;
  std::optional<Shape> output;
  std::optional<Shape> state;
  if (query.shape && value) {
    const Dim value_size = floordiv((*value)[2], Dim(heads.key));
    output = Shape{(*query.shape)[0], (*query.shape)[1], Dim(heads.query) * value_size};
    state = Shape{(*query.shape)[0], Dim(heads.key), floordiv((*query.shape)[2], Dim(heads.query)),
                  value_size};
  }
  set_output(context, 0, query.dtype, std::move(output));
  set_output(context, 1, state_dtype, std::move(state));
  return {};
}

struct Call {
  Rule rule;
  Heads heads;
  std::int64_t batch = 0, length = 0, key_size = 0, value_size = 0;
  std::int64_t decay_size = 0;  // decays for each position: one a head, or one for each key element
  std::int64_t beta_size = 0;   // rates for each position: one a head, or one
  double scale = 1;
};

Status check_shapes(const KernelContext& context, const Call& call) {
  const auto expect = [&](std::size_t index, const Dims& dims, std::string_view name) -> Status {
    const TensorView* view = context.input(index);
    if (view == nullptr || view->dims == dims) return {};
    return nn::op_error(kOp, fmt::format("input '{}': expected {}, found {}", name, to_string(dims),
                                         to_string(view->dims)));
  };
  const std::int64_t keys = call.heads.key * call.key_size;
  TESSERA_TRY(expect(kQuery, {call.batch, call.length, call.heads.query * call.key_size}, "query"));
  TESSERA_TRY(expect(kKey, {call.batch, call.length, keys}, "key"));
  TESSERA_TRY(expect(kValue, {call.batch, call.length, call.heads.key * call.value_size}, "value"));
  TESSERA_TRY(
      expect(kPast, {call.batch, call.heads.key, call.key_size, call.value_size}, "past_state"));
  TESSERA_TRY(expect(kDecay, {call.batch, call.length, call.decay_size}, "decay"));
  TESSERA_TRY(expect(kBeta, {call.batch, call.length, call.beta_size}, "beta"));
  const bool decay_fits =
      !call.rule.decays || call.decay_size == call.heads.key || call.decay_size == keys;
  if (!decay_fits)
    return nn::op_error(kOp, fmt::format("input 'decay': expected a last size of {} or {}, found "
                                         "{}",
                                         call.heads.key, keys, call.decay_size));
  if (call.rule.corrects && call.beta_size != 1 && call.beta_size != call.heads.key)
    return nn::op_error(kOp, fmt::format("input 'beta': expected a last size of 1 or {}, found {}",
                                         call.heads.key, call.beta_size));
  return {};
}

Result<Call> read_call(const KernelContext& context) {
  Call call;
  TESSERA_ASSIGN(call.rule, rule_of(context.attributes()));
  TESSERA_ASSIGN(call.heads, heads_of(context.attributes()));
  TESSERA_TRY(
      check_gates(call.rule, context.input(kDecay) != nullptr, context.input(kBeta) != nullptr));
  TESSERA_ASSIGN(const TensorView* query, kernel_input(context, kQuery));
  TESSERA_ASSIGN(const TensorView* value, kernel_input(context, kValue));
  for (const std::size_t input : {kQuery, kKey, kValue, kDecay, kBeta}) {
    const TensorView* view = context.input(input);
    if (view != nullptr && view->dims.size() != 3)
      return nn::op_error(
          kOp, fmt::format("input {}: expected rank 3, found {}", input, to_string(view->dims)));
  }
  call.batch = query->dims[0];
  call.length = query->dims[1];
  call.key_size = query->dims[2] / call.heads.query;
  call.value_size = value->dims[2] / call.heads.key;
  if (call.rule.decays) call.decay_size = context.input(kDecay)->dims[2];
  if (call.rule.corrects) call.beta_size = context.input(kBeta)->dims[2];
  const auto scale = static_cast<double>(context.attributes().get_float("scale", 0));
  call.scale = scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(call.key_size));
  TESSERA_TRY(check_shapes(context, call));
  return call;
}

// The operands of one position and one head of keys.
struct Position {
  const double* key;
  const double* value;
  const double* decay;  // null: none
  std::int64_t decay_step;
  double beta;
};

void update(const Call& call, const Position& at, double* state, std::vector<double>& added) {
  if (at.decay != nullptr) {
    for (std::int64_t k = 0; k < call.key_size; ++k) {
      const double factor = std::exp(at.decay[k * at.decay_step]);
      for (std::int64_t v = 0; v < call.value_size; ++v) state[k * call.value_size + v] *= factor;
    }
  }
  std::copy_n(at.value, call.value_size, added.begin());
  if (call.rule.corrects) {
    for (std::int64_t v = 0; v < call.value_size; ++v) {
      double held = 0;
      for (std::int64_t k = 0; k < call.key_size; ++k)
        held += state[k * call.value_size + v] * at.key[k];
      added[static_cast<std::size_t>(v)] = at.beta * (at.value[v] - held);
    }
  }
  for (std::int64_t k = 0; k < call.key_size; ++k)
    for (std::int64_t v = 0; v < call.value_size; ++v)
      state[k * call.value_size + v] += at.key[k] * added[static_cast<std::size_t>(v)];
}

void read_state(const Call& call, const double* state, const double* query, double* to) {
  for (std::int64_t v = 0; v < call.value_size; ++v) {
    double sum = 0;
    for (std::int64_t k = 0; k < call.key_size; ++k)
      sum += query[k] * state[k * call.value_size + v];
    to[v] = call.scale * sum;
  }
}

struct Operands {
  nn::Reals<double> query, key, value, decay, beta;
};

// One head of keys of one sample, over all positions.
void run_head(const Call& call, const Operands& in, std::int64_t b, std::int64_t head,
              double* state, double* output) {
  const std::int64_t shared = call.heads.query / call.heads.key;
  std::vector<double> added(static_cast<std::size_t>(call.value_size));
  for (std::int64_t t = 0; t < call.length; ++t) {
    const std::int64_t row = b * call.length + t;
    Position at{in.key.data() + (row * call.heads.key + head) * call.key_size,
                in.value.data() + (row * call.heads.key + head) * call.value_size, nullptr, 0, 1};
    if (call.rule.decays) {
      const bool by_element = call.decay_size != call.heads.key;
      at.decay = in.decay.data() + row * call.decay_size + head * (by_element ? call.key_size : 1);
      at.decay_step = by_element ? 1 : 0;
    }
    if (call.rule.corrects)
      at.beta = in.beta[row * call.beta_size + (call.beta_size == 1 ? 0 : head)];
    update(call, at, state, added);
    for (std::int64_t i = 0; i < shared; ++i) {
      const std::int64_t reader = row * call.heads.query + head * shared + i;
      read_state(call, state, in.query.data() + reader * call.key_size,
                 output + reader * call.value_size);
    }
  }
}

Status kernel(KernelContext& context) {
  TESSERA_ASSIGN(const Call call, read_call(context));
  const TensorView none{DType::kFp64, {0}, nullptr};
  const auto view = [&](std::size_t index) -> const TensorView& {
    return context.input(index) == nullptr ? none : *context.input(index);
  };
  const Operands operands{nn::Reals<double>(view(kQuery)), nn::Reals<double>(view(kKey)),
                          nn::Reals<double>(view(kValue)), nn::Reals<double>(view(kDecay)),
                          nn::Reals<double>(view(kBeta))};
  const DType dtype = view(kQuery).dtype;
  TESSERA_ASSIGN(
      const MutableTensorView y,
      context.output(0, dtype, {call.batch, call.length, call.heads.query * call.value_size}));
  const Dims state_dims{call.batch, call.heads.key, call.key_size, call.value_size};
  std::vector<double> states(
      static_cast<std::size_t>(count_between(state_dims, 0, state_dims.size())));
  const TensorView* past = context.input(kPast);
  if (past != nullptr) cast_elements(*past, {DType::kFp64, state_dims, states.data()}, true);
  nn::RealResult<double> output(y);
  context.parallel_for(call.batch * call.heads.key, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      run_head(call, operands, i / call.heads.key, i % call.heads.key,
               states.data() + i * call.key_size * call.value_size, output.data());
  });
  output.finish();
  if (context.output_count() < 2) return {};
  TESSERA_ASSIGN(const MutableTensorView present,
                 context.output(1, past == nullptr ? dtype : past->dtype, state_dims));
  cast_elements({DType::kFp64, state_dims, states.data()}, present, true);
  return {};
}

Work work(const Attributes& attributes, std::span<const TensorSpec> inputs,
          std::span<const TensorSpec> outputs) {
  Work work = nn::operand_traffic(inputs, outputs);
  const auto heads = heads_of(attributes);
  if (!heads || inputs.size() < 3) return work;
  // Each element of the key meets each of its head's value a few times.
  const std::int64_t value_size = inputs[kValue].dims[2] / heads->key;
  work.flops = 8 * static_cast<double>(numel(inputs[kKey].dims) * value_size);
  return work;
}

}  // namespace

std::vector<OpSchema> linear_attention_ops() {
  OpSchema op;
  op.name = kOp;
  op.versions = {27};
  op.inputs = {required("query", "T"),      required("key", "T"),   required("value", "T"),
               optional("past_state", "S"), optional("decay", "T"), optional("beta", "T")};
  op.outputs = {required("output", "T"), required("present_state", "S")};
  op.attributes = {attr("chunk_size", AttrType::kInt),
                   required_attr("kv_num_heads", AttrType::kInt),
                   required_attr("q_num_heads", AttrType::kInt), attr("scale", AttrType::kFloat),
                   attr("update_rule", AttrType::kString)};
  op.type_variables = {{"T", kFloatTypes}, {"S", kFloatTypes}};
  op.structure = Structure::kContraction;
  op.infer = infer;
  op.kernel = kernel;
  op.work = work;
  return {op};
}

}  // namespace tessera::ops
