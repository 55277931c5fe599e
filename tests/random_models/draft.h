#pragma once

// A model that grows: what the recipes of operators see. Values hold their elements at both points,
// so that a recipe reads sizes and numbers instead of solving for them, and a node that does not
// fit is refused before it is in.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "random_models/evaluate.h"
#include "testing/random.h"

namespace tessera::random_models {

using Size = AtPoints<std::int64_t>;
using Sizes = std::vector<Size>;

inline bool is_fixed(const Size& size) {
  return size[0] == size[1];
}

// Bounds of drawn elements.
struct Range {
  double low = -2;
  double high = 2;
};

// Least and most dims of an operand.
struct Ranks {
  std::size_t least = 0;
  std::size_t most = 4;
};

class Draft {
 public:
  explicit Draft(std::uint64_t seed);
  testing::Random& random() { return random_; }

  // ---- What is there
  [[nodiscard]] const Tensor& tensor(ValueId id, std::size_t point = 0) const;
  [[nodiscard]] DType dtype(ValueId id) const { return tensor(id).dtype(); }
  [[nodiscard]] std::size_t rank(ValueId id) const { return tensor(id).dims().size(); }
  [[nodiscard]] Sizes sizes(ValueId id) const;
  [[nodiscard]] Size size(ValueId id, std::size_t axis) const { return sizes(id)[axis]; }
  [[nodiscard]] bool within(ValueId id, Range range) const;  // all elements, at both points

  // ---- New values
  // Dims of a new input: numbers, and symbols of the model.
  Sizes draw_sizes(std::size_t rank);
  // Whether an input can have these sizes: each a number or a symbol.
  [[nodiscard]] bool can_be_input(const Sizes& sizes) const;
  // An input of the model, or a constant where all sizes are numbers. Checks can_be_input.
  ValueId fresh(DType dtype, const Sizes& sizes, Range range = {});
  // Mostly a constant.
  ValueId weights(DType dtype, const Dims& dims, Range range = {-1, 1});
  ValueId constant(Tensor tensor);
  // An input with these elements at both points.
  ValueId input(const Tensor& tensor);
  ValueId ints(const std::vector<std::int64_t>& values);
  ValueId scalar(DType dtype, double value);

  // ---- Operands
  // A value of that dtype, mostly one that is there.
  ValueId operand(DType dtype, Ranks ranks = {}, Range range = {-1e300, 1e300});
  // One that broadcasts with `other`; nothing where the result would be too large.
  std::optional<ValueId> partner(ValueId other, DType dtype, Range range = {-1e300, 1e300});

  // Evaluates the node and takes it in; recipes mark outputs that they want by 0. Errors: see
  // evaluate_node.
  Status add(Node node);
  // The last value that came in.
  [[nodiscard]] ValueId newest() const { return static_cast<ValueId>(values_.size() - 1); }

  // The model, with every result that nothing uses among its outputs, and some others.
  Model finish();

 private:
  ValueId add_value(Value value, AtPoints<Elements> elements);
  Tensor drawn(DType dtype, const Dims& dims, Range range);
  [[nodiscard]] std::string symbol_of(const Size& size) const;

  testing::Random random_;
  std::map<std::string, Size> symbols_;
  double special_ = 0;  // the chance of an element that is no ordinary number
  Model model_;
  Evaluation values_;
};

// Elements [low, high] of a dtype; integers are whole.
Tensor constant_tensor(DType dtype, const Dims& dims, const std::vector<double>& values);

}  // namespace tessera::random_models
