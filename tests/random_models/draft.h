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
  // Of a body of a node of `around`, which outlives it: it reads values of `around`, and what it
  // makes as an input becomes one of the model.
  explicit Draft(Draft* around);
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  testing::Random& random() { return *random_; }
  [[nodiscard]] int depth() const { return around_ == nullptr ? 0 : around_->depth() + 1; }

  // ---- What is there
  [[nodiscard]] const Tensor& tensor(ValueId id, std::size_t point = 0) const;
  [[nodiscard]] const AtPoints<Elements>& elements(ValueId id) const {
    return values_[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] DType dtype(ValueId id) const { return tensor(id).dtype(); }  // none where it holds
  [[nodiscard]] Source source(ValueId id) const {
    return model_.values[static_cast<std::size_t>(id)].source;
  }
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
  // An input of the body, with elements that it may have.
  ValueId formal(const AtPoints<Elements>& elements);

  // ---- Operands
  // A value of that dtype, mostly one that is there.
  ValueId operand(DType dtype, Ranks ranks = {}, Range range = {-1e300, 1e300});
  // One that broadcasts with `other`; nothing where the result would be too large.
  std::optional<ValueId> partner(ValueId other, DType dtype, Range range = {-1e300, 1e300});

  // A sequence or an optional of that dtype, the last that there is.
  [[nodiscard]] std::optional<ValueId> holder(ValueType::Kind kind, DType dtype) const;
  // Sequences and optionals that no node reads.
  [[nodiscard]] std::vector<ValueId> unread_holders() const;

  // Evaluates the node and takes it in; recipes mark outputs that they want by 0. Errors: see
  // evaluate_node.
  Status add(Node node);
  // The last value that came in.
  [[nodiscard]] ValueId newest() const { return static_cast<ValueId>(values_.size() - 1); }

  // The model, with every tensor that nothing uses among its outputs, and some others.
  Model finish();
  // The body, with these outputs.
  Body finish_body(std::string attribute, std::vector<ValueId> outputs);

 private:
  ValueId add_value(Value value, AtPoints<Elements> elements);
  // Whether recipes can take it: of one rank at both points.
  [[nodiscard]] bool has_one_rank(ValueId id) const {
    return tensor(id, 0).dims().size() == tensor(id, 1).dims().size();
  }
  ValueId capture(ValueId outside);
  [[nodiscard]] std::string new_name(const char* kind) const {
    return prefix_ + kind + std::to_string(values_.size());
  }
  Tensor drawn(DType dtype, const Dims& dims, Range range);
  [[nodiscard]] std::string symbol_of(const Size& size) const;

  Draft* around_ = nullptr;
  testing::Random own_random_;
  testing::Random* random_ = nullptr;
  std::string prefix_;  // of the names in a body
  int bodies_ = 0;
  std::vector<std::pair<ValueId, ValueId>> captures_;
  std::map<std::string, Size> symbols_;
  double special_ = 0;  // the chance of an element that is no ordinary number
  Model model_;
  Evaluation values_;
};

// Numbers in a dtype: as Cast has them; words by number as strings; the real parts of complex ones.
Tensor constant_tensor(DType dtype, const Dims& dims, const std::vector<double>& values);

// Whether elements of the dtype are numbers of one part.
inline bool has_numbers(DType dtype) {
  return is_float(dtype) || is_integer(dtype) || dtype == DType::kBool;
}

// Its elements as numbers; none where it has none.
std::vector<double> doubles(const Tensor& tensor);

}  // namespace tessera::random_models
