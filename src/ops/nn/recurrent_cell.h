#pragma once

// What LSTM, GRU and RNN share: their options, sizes, and the cells' arithmetic for one item of the
// batch and one direction.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/shape.h"
#include "ops/attributes.h"

namespace tessera::ops::nn {

// An activation of a gate: f(x) with parameters alpha and beta.
struct Activation {
  enum class Kind : std::uint8_t {
    kRelu,
    kTanh,
    kSigmoid,
    kAffine,
    kLeakyRelu,
    kThresholdedRelu,
    kScaledTanh,
    kHardSigmoid,
    kElu,
    kSoftsign,
    kSoftplus
  } kind = Kind::kTanh;
  double alpha = 0;
  double beta = 0;
  [[nodiscard]] double operator()(double x) const;
};

enum class CellKind : std::uint8_t { kLstm, kGru, kRnn };

struct RecurrentOptions {
  CellKind kind = CellKind::kRnn;
  std::int64_t gates = 1;       // LSTM i o f c: 4; GRU z r h: 3; RNN: 1
  std::int64_t directions = 1;  // 2 for bidirectional
  bool reverse = false;         // the only direction runs backwards
  bool batch_first = false;     // layout = 1
  bool input_forget = false;
  bool linear_before_reset = false;
  std::optional<std::int64_t> hidden_size;  // as the attribute has it; 'R' must agree
  std::optional<double> clip;               // on the inputs of activations
  std::vector<Activation> activations;      // for each direction: LSTM f g h, GRU f g, RNN f
};

// Errors start with the operator's name: "LSTM: direction: expected forward, reverse or
// bidirectional, found 'up'".
Result<RecurrentOptions> read_recurrent(std::string_view op, const Attributes& attributes);

struct RecurrentSizes {
  Dim steps, batch, input, hidden;
};

// Checks the shapes of X, W and R against each other and gives the sizes.
Result<RecurrentSizes> recurrent_sizes(std::string_view op, const RecurrentOptions& options,
                                       const Shape& x, const Shape& w, const Shape& r);

// Parameters of one direction. Rows of gates, each `hidden` wide; absent parts are null.
struct CellParameters {
  const double* w = nullptr;  // [gates * hidden, input]
  const double* r = nullptr;  // [gates * hidden, hidden]
  const double* b = nullptr;  // [2 * gates * hidden]: of w, then of r
  const double* p = nullptr;  // LSTM: [3 * hidden], gates i o f
  std::int64_t input = 0;
  std::int64_t hidden = 0;
};

// Takes h (and c for LSTM) one step on with input x. `activations` are those of the direction.
void step_cell(const RecurrentOptions& options, const Activation* activations,
               const CellParameters& parameters, const double* x, std::vector<double>& h,
               std::vector<double>& c);

}  // namespace tessera::ops::nn
