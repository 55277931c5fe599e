#include "ops/nn/recurrent_cell.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "ops/nn/nn_util.h"

namespace tessera::ops::nn {
namespace {

struct NamedActivation {
  std::string_view name;  // lower case
  Activation::Kind kind;
  bool has_alpha, has_beta;
  double alpha, beta;  // defaults
};

using Kind = Activation::Kind;
constexpr NamedActivation kActivations[] = {
    {"relu", Kind::kRelu, false, false, 0, 0},
    {"tanh", Kind::kTanh, false, false, 0, 0},
    {"sigmoid", Kind::kSigmoid, false, false, 0, 0},
    {"affine", Kind::kAffine, true, true, 1, 0},
    {"leakyrelu", Kind::kLeakyRelu, true, false, 0.01, 0},
    {"thresholdedrelu", Kind::kThresholdedRelu, true, false, 1, 0},
    {"scaledtanh", Kind::kScaledTanh, true, true, 1, 1},
    {"hardsigmoid", Kind::kHardSigmoid, true, true, 0.2, 0.5},
    {"elu", Kind::kElu, true, false, 1, 0},
    {"softsign", Kind::kSoftsign, false, false, 0, 0},
    {"softplus", Kind::kSoftplus, false, false, 0, 0},
};

std::vector<std::string> default_activations(CellKind kind) {
  if (kind == CellKind::kLstm) return {"Sigmoid", "Tanh", "Tanh"};
  if (kind == CellKind::kGru) return {"Sigmoid", "Tanh"};
  return {"Tanh"};
}

// Parameters are taken from activation_alpha and activation_beta in order, by those activations
// that have them.
Result<std::vector<Activation>> read_activations(std::string_view op, const Attributes& attributes,
                                                 const RecurrentOptions& options) {
  const std::vector<std::string> defaults = default_activations(options.kind);
  const std::size_t expected = defaults.size() * static_cast<std::size_t>(options.directions);
  std::vector<std::string> names;
  const AttributeValue* given = attributes.find("activations");
  if (given != nullptr && std::holds_alternative<std::vector<std::string>>(*given))
    names = std::get<std::vector<std::string>>(*given);
  if (names.empty()) {
    while (names.size() < expected) names.insert(names.end(), defaults.begin(), defaults.end());
  }
  if (names.size() < expected)
    return op_error(
        op, fmt::format("activations: expected {} values, found {}", expected, names.size()));
  const std::vector<float> alphas = attributes.get_floats("activation_alpha");
  const std::vector<float> betas = attributes.get_floats("activation_beta");
  std::size_t alpha_at = 0;
  std::size_t beta_at = 0;
  std::vector<Activation> activations;
  for (std::size_t i = 0; i < expected; ++i) {
    std::string name = names[i];
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const auto* found = std::find_if(std::begin(kActivations), std::end(kActivations),
                                     [&](const NamedActivation& a) { return a.name == name; });
    if (found == std::end(kActivations))
      return op_error(
          op, fmt::format("activations[{}]: expected the name of an activation, found '{}'", i,
                          names[i]));
    Activation activation{found->kind, found->alpha, found->beta};
    if (found->has_alpha && alpha_at < alphas.size())
      activation.alpha = static_cast<double>(alphas[alpha_at++]);
    if (found->has_beta && beta_at < betas.size())
      activation.beta = static_cast<double>(betas[beta_at++]);
    activations.push_back(activation);
  }
  return activations;
}

double dot(const double* a, const double* b, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

double bias(const CellParameters& p, std::int64_t row) {
  return p.b == nullptr ? 0.0 : p.b[row];
}

// x * W for a row of gates, with W's bias.
double from_input(const CellParameters& p, std::int64_t row, const double* x) {
  return dot(p.w + row * p.input, x, p.input) + bias(p, row);
}

// h * R for a row of gates, with R's bias.
double from_state(const RecurrentOptions& options, const CellParameters& p, std::int64_t row,
                  const std::vector<double>& h) {
  return dot(p.r + row * p.hidden, h.data(), p.hidden) + bias(p, options.gates * p.hidden + row);
}

double clipped(const RecurrentOptions& options, double value) {
  return options.clip ? std::clamp(value, -*options.clip, *options.clip) : value;
}

void step_lstm(const RecurrentOptions& options, const Activation* f, const CellParameters& p,
               const double* x, std::vector<double>& h, std::vector<double>& c) {
  const std::vector<double> before = h;
  const auto gate = [&](std::int64_t index, std::int64_t i) {
    return from_input(p, index * p.hidden + i, x) +
           from_state(options, p, index * p.hidden + i, before);
  };
  const auto peephole = [&](std::int64_t index, std::int64_t i, double state) {
    return p.p == nullptr ? 0.0 : p.p[index * p.hidden + i] * state;
  };
  for (std::int64_t i = 0; i < p.hidden; ++i) {
    double& cell = c[static_cast<std::size_t>(i)];
    const double input = f[0](clipped(options, gate(0, i) + peephole(0, i, cell)));
    const double forget = options.input_forget
                              ? 1 - input
                              : f[0](clipped(options, gate(2, i) + peephole(2, i, cell)));
    cell = forget * cell + input * f[1](clipped(options, gate(3, i)));
    const double output = f[0](clipped(options, gate(1, i) + peephole(1, i, cell)));
    h[static_cast<std::size_t>(i)] = output * f[2](cell);
  }
}

void step_gru(const RecurrentOptions& options, const Activation* f, const CellParameters& p,
              const double* x, std::vector<double>& h) {
  const std::vector<double> before = h;
  const auto gate = [&](std::int64_t row) {
    return f[0](clipped(options, from_input(p, row, x) + from_state(options, p, row, before)));
  };
  std::vector<double> reset(before.size());
  std::vector<double> masked(before.size());
  for (std::int64_t i = 0; i < p.hidden; ++i) {
    const auto at = static_cast<std::size_t>(i);
    reset[at] = gate(p.hidden + i);
    masked[at] = reset[at] * before[at];
  }
  for (std::int64_t i = 0; i < p.hidden; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::int64_t row = 2 * p.hidden + i;
    const double state = options.linear_before_reset
                             ? reset[at] * from_state(options, p, row, before)
                             : from_state(options, p, row, masked);
    const double candidate = f[1](clipped(options, from_input(p, row, x) + state));
    const double update = gate(i);
    h[at] = (1 - update) * candidate + update * before[at];
  }
}

void step_rnn(const RecurrentOptions& options, const Activation* f, const CellParameters& p,
              const double* x, std::vector<double>& h) {
  const std::vector<double> before = h;
  for (std::int64_t i = 0; i < p.hidden; ++i) {
    h[static_cast<std::size_t>(i)] =
        f[0](clipped(options, from_input(p, i, x) + from_state(options, p, i, before)));
  }
}

}  // namespace

double Activation::operator()(double x) const {
  switch (kind) {
    case Kind::kRelu: return x < 0 ? 0 : x;
    case Kind::kTanh: return std::tanh(x);
    case Kind::kSigmoid: return 1 / (1 + std::exp(-x));
    case Kind::kAffine: return alpha * x + beta;
    case Kind::kLeakyRelu: return x >= 0 ? x : alpha * x;
    case Kind::kThresholdedRelu: return x >= alpha ? x : 0;
    case Kind::kScaledTanh: return alpha * std::tanh(beta * x);
    case Kind::kHardSigmoid: return std::clamp(alpha * x + beta, 0.0, 1.0);
    case Kind::kElu: return x >= 0 ? x : alpha * std::expm1(x);
    case Kind::kSoftsign: return x / (1 + std::abs(x));
    case Kind::kSoftplus: return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
  }
  return x;
}

Result<RecurrentOptions> read_recurrent(std::string_view op, const Attributes& attributes) {
  RecurrentOptions options;
  options.kind = op == "LSTM" ? CellKind::kLstm : op == "GRU" ? CellKind::kGru : CellKind::kRnn;
  options.gates = options.kind == CellKind::kLstm ? 4 : options.kind == CellKind::kGru ? 3 : 1;
  const std::string direction = attributes.get_string("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    return op_error(op,
                    fmt::format("direction: expected forward, reverse or bidirectional, found '{}'",
                                direction));
  }
  options.directions = direction == "bidirectional" ? 2 : 1;
  options.reverse = direction == "reverse";
  const std::int64_t layout = attributes.get_int("layout", 0);
  if (layout != 0 && layout != 1)
    return op_error(op, fmt::format("layout: expected 0 or 1, found {}", layout));
  options.batch_first = layout == 1;
  options.input_forget = attributes.get_int("input_forget", 0) != 0;
  options.linear_before_reset = attributes.get_int("linear_before_reset", 0) != 0;
  if (attributes.has("hidden_size")) options.hidden_size = attributes.get_int("hidden_size", 0);
  if (attributes.has("clip")) {
    const float clip = attributes.get_float("clip", 0);
    if (!(clip >= 0)) return op_error(op, fmt::format("clip: expected at least 0, found {}", clip));
    options.clip = static_cast<double>(clip);
  }
  TESSERA_ASSIGN(options.activations, read_activations(op, attributes, options));
  return options;
}

Result<RecurrentSizes> recurrent_sizes(std::string_view op, const RecurrentOptions& options,
                                       const Shape& x, const Shape& w, const Shape& r) {
  const std::pair<std::string_view, const Shape*> operands[] = {{"X", &x}, {"W", &w}, {"R", &r}};
  for (const auto& [name, shape] : operands) {
    if (shape->size() != 3)
      return op_error(
          op, fmt::format("input '{}': expected rank 3, found rank {}", name, shape->size()));
  }
  const RecurrentSizes sizes{x[options.batch_first ? 1 : 0], x[options.batch_first ? 0 : 1], x[2],
                             r[2]};
  TESSERA_TRY(
      require_size(op, "first size of input 'W'", Dim(options.directions), "directions", w[0]));
  TESSERA_TRY(
      require_size(op, "first size of input 'R'", Dim(options.directions), "directions", r[0]));
  TESSERA_TRY(require_size(op, "last size of input 'W'", sizes.input, "as 'X' has", w[2]));
  const std::string rows = fmt::format("{} gates of the {} hidden units of 'R'", options.gates,
                                       sizes.hidden.to_string());
  TESSERA_TRY(
      require_size(op, "size 1 of input 'W'", Dim(options.gates) * sizes.hidden, rows, w[1]));
  TESSERA_TRY(
      require_size(op, "size 1 of input 'R'", Dim(options.gates) * sizes.hidden, rows, r[1]));
  if (options.hidden_size)
    TESSERA_TRY(require_size(op, "hidden_size", sizes.hidden, "as 'R' has units",
                             Dim(*options.hidden_size)));
  return sizes;
}

void step_cell(const RecurrentOptions& options, const Activation* activations,
               const CellParameters& parameters, const double* x, std::vector<double>& h,
               std::vector<double>& c) {
  switch (options.kind) {
    case CellKind::kLstm: return step_lstm(options, activations, parameters, x, h, c);
    case CellKind::kGru: return step_gru(options, activations, parameters, x, h);
    case CellKind::kRnn: return step_rnn(options, activations, parameters, x, h);
  }
}

}  // namespace tessera::ops::nn
