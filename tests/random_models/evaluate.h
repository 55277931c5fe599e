#pragma once

// What a model computes, and how far each result may be off. Every node is run by the reference
// kernel three times: as it is, and twice with results that are shaken a little in opposite
// directions, as another order of summation or another exponential would. The spread at each
// element is its tolerance, so that no operator needs one of its own; a result that shaking turns
// into another one (an index, a rounded number, a comparison at a tie) makes its node unusable.

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "random_models/model.h"

namespace tessera::random_models {

inline constexpr std::size_t kShakes = 2;

struct Held;

// One value at one point.
struct Elements {
  Tensor nominal;
  std::array<Tensor, kShakes> shaken;  // the same storage where shaking has not reached the value
  std::shared_ptr<const Held> held;    // sequences and optionals: then the tensors are undefined
  bool open_rank = false;              // no type tells its rank: branches or elements differ in it

  [[nodiscard]] DType dtype() const;  // of the tensor, or of those inside
};

// What a sequence or an optional holds.
struct Held {
  ValueType::Kind kind = ValueType::Kind::kSequence;
  DType dtype = DType::kUndefined;
  std::vector<Elements> elements;
};

using Evaluation = std::vector<AtPoints<Elements>>;  // parallel to Model::values

AtPoints<Elements> known_elements(const AtPoints<Tensor>& tensors);

// The outputs of a node (as many as node.outputs). `number` seeds the shaking. Errors: what the
// reference refuses; what depends on rounding; what is too large in size or value.
Result<std::vector<AtPoints<Elements>>> evaluate_node(const Node& node, const Evaluation& values,
                                                      std::uint64_t number);

// Errors name the node.
Result<Evaluation> evaluate(const Model& model);

std::vector<DType> dtypes_of(const Evaluation& evaluation);

// What is wrong with `found`, in words; empty where nothing is. Results that shaking has not
// reached must be equal (zeros of either sign are), others lie within four times the spread, which
// is one shake at least; all of them with `relative` of their size beside that.
std::string difference(const Elements& expected, const TensorView& found, double relative = 0);

}  // namespace tessera::random_models
