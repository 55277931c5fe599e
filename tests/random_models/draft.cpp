#include "random_models/draft.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/float_convert.h"
#include "base/shape.h"

namespace tessera::random_models {
namespace {

constexpr std::int64_t kMostInputElements = 600;
constexpr std::int64_t kMostBroadcast = 4000;

std::vector<double> doubles(const Tensor& tensor) {
  Tensor wide = *Tensor::zeros(DType::kFp64, tensor.dims());
  cast_elements(tensor.view(), wide.mutable_view(), true);
  return {wide.span<double>().begin(), wide.span<double>().end()};
}

bool is_unsigned(DType dtype) {
  return dtype == DType::kUInt8 || dtype == DType::kUInt16 || dtype == DType::kUInt32 ||
         dtype == DType::kUInt64 || dtype == DType::kBool;
}

Dims dims_at(const Sizes& sizes, std::size_t point) {
  Dims dims;
  for (const Size& size : sizes) dims.push_back(size[point]);
  return dims;
}

std::int64_t most_elements(const Sizes& sizes) {
  return std::max(numel(dims_at(sizes, 0)), numel(dims_at(sizes, 1)));
}

}  // namespace

Tensor constant_tensor(DType dtype, const Dims& dims, const std::vector<double>& values) {
  const Tensor wide = Tensor::of<double>(DType::kFp64, dims, values);
  Tensor tensor = *Tensor::zeros(dtype, dims);
  cast_elements(wide.view(), tensor.mutable_view(), true);
  return tensor;
}

Draft::Draft(std::uint64_t seed) : random_(seed) {
  for (const char* name : {"n", "m", "k"}) {
    Size size{random_.integer(1, 6), random_.integer(1, 6)};
    while (size[0] == size[1] || !symbol_of(size).empty())
      size = {random_.integer(1, 7), random_.integer(1, 7)};
    symbols_[name] = size;
  }
  if (random_.chance(0.04)) symbols_["m"][1] = 0;
  if (random_.chance(0.04)) special_ = 0.05;
}

const Tensor& Draft::tensor(ValueId id, std::size_t point) const {
  return values_[static_cast<std::size_t>(id)][point].nominal;
}

Sizes Draft::sizes(ValueId id) const {
  Sizes sizes(rank(id));
  for (std::size_t point = 0; point < kPoints; ++point)
    for (std::size_t axis = 0; axis < sizes.size(); ++axis)
      sizes[axis][point] = tensor(id, point).dims()[axis];
  return sizes;
}

bool Draft::within(ValueId id, Range range) const {
  for (std::size_t point = 0; point < kPoints; ++point)
    for (const double value : doubles(tensor(id, point)))
      if (!(value >= range.low && value <= range.high)) return false;
  return true;
}

std::string Draft::symbol_of(const Size& size) const {
  for (const auto& [name, sizes] : symbols_)
    if (sizes == size) return name;
  return "";
}

Sizes Draft::draw_sizes(std::size_t rank) {
  static const std::vector<std::int64_t> numbers = {1, 2, 2, 3, 3, 4, 4, 5, 6, 8};
  Sizes sizes;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (random_.chance(axis == 0 ? 0.4 : 0.2)) {
      auto symbol = symbols_.begin();
      std::advance(symbol, random_.integer(0, 2));
      sizes.push_back(symbol->second);
    } else {
      const std::int64_t number = random_.chance(0.005) ? 0 : random_.pick(numbers);
      sizes.push_back({number, number});
    }
  }
  while (most_elements(sizes) > kMostInputElements) {
    Size& size = sizes[random_.index(sizes.size())];
    size = {1, 1};
  }
  return sizes;
}

bool Draft::can_be_input(const Sizes& sizes) const {
  return std::ranges::all_of(
      sizes, [&](const Size& size) { return is_fixed(size) || !symbol_of(size).empty(); });
}

Tensor Draft::drawn(DType dtype, const Dims& dims, Range range) {
  const double low = is_unsigned(dtype) ? std::max(0.0, range.low) : range.low;
  const double high = dtype == DType::kBool ? 1 : std::max(low, range.high);
  const bool coarse = random_.chance(0.2);
  const bool wide_integers = special_ > 0 || random_.chance(0.3);
  std::vector<double> values(static_cast<std::size_t>(numel(dims)));
  for (double& value : values) {
    if (dtype == DType::kBool || is_integer(dtype)) {
      const bool whole_range = range.low == Range().low && range.high == Range().high;
      const double most = whole_range && wide_integers && dtype != DType::kBool ? 100 : high;
      const double least = whole_range && wide_integers && !is_unsigned(dtype) ? -100 : low;
      value = static_cast<double>(random_.integer(static_cast<std::int64_t>(std::ceil(least)),
                                                  static_cast<std::int64_t>(std::floor(most))));
      continue;
    }
    value = random_.real(low, high);
    if (coarse) value = std::clamp(std::round(value * 4) / 4, low, high);
    if (special_ > 0 && range.low == Range().low && random_.chance(special_)) {
      static const std::vector<double> specials = {0.0, -0.0, std::nan(""), HUGE_VAL, -HUGE_VAL};
      value = random_.pick(specials);
    }
  }
  return constant_tensor(dtype, dims, values);
}

ValueId Draft::add_value(Value value, AtPoints<Elements> elements) {
  model_.values.push_back(std::move(value));
  values_.push_back(std::move(elements));
  return static_cast<ValueId>(values_.size() - 1);
}

ValueId Draft::fresh(DType dtype, const Sizes& sizes, Range range) {
  TESSERA_CHECK(can_be_input(sizes));
  Value value;
  const bool fixed = std::ranges::all_of(sizes, is_fixed);
  const bool is_constant = fixed && random_.chance(0.3);
  value.source = is_constant ? Source::kConstant : Source::kInput;
  value.name = (is_constant ? "c" : "x") + std::to_string(values_.size());
  for (std::size_t point = 0; point < kPoints; ++point)
    value.elements[point] =
        is_constant && point > 0 ? value.elements[0] : drawn(dtype, dims_at(sizes, point), range);
  for (const Size& size : sizes) value.symbols.push_back(is_fixed(size) ? "" : symbol_of(size));
  const auto elements = known_elements(value.elements);
  return add_value(std::move(value), elements);
}

ValueId Draft::weights(DType dtype, const Dims& dims, Range range) {
  if (!random_.chance(0.15)) return constant(drawn(dtype, dims, range));
  Sizes sizes;
  for (const std::int64_t size : dims) sizes.push_back({size, size});
  return fresh(dtype, sizes, range);
}

ValueId Draft::constant(Tensor tensor) {
  Value value;
  value.source = Source::kConstant;
  value.name = "c" + std::to_string(values_.size());
  value.elements = {tensor, tensor};
  const auto elements = known_elements(value.elements);
  return add_value(std::move(value), elements);
}

ValueId Draft::input(const Tensor& tensor) {
  Value value;
  value.source = Source::kInput;
  value.name = "x" + std::to_string(values_.size());
  value.symbols.assign(tensor.dims().size(), "");
  value.elements = {tensor, tensor};
  const auto elements = known_elements(value.elements);
  return add_value(std::move(value), elements);
}

ValueId Draft::ints(const std::vector<std::int64_t>& values) {
  return constant(
      Tensor::of<std::int64_t>(DType::kInt64, {static_cast<std::int64_t>(values.size())}, values));
}

ValueId Draft::scalar(DType dtype, double value) {
  return constant(constant_tensor(dtype, {}, {value}));
}

ValueId Draft::operand(DType wanted, Ranks ranks, Range range) {
  std::vector<ValueId> fitting;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const auto id = static_cast<ValueId>(i);
    if (model_.values[i].source != Source::kConstant && dtype(id) == wanted &&
        rank(id) >= ranks.least && rank(id) <= ranks.most &&
        (range.high > 1e299 || within(id, range)))
      fitting.push_back(id);
  }
  if (!fitting.empty() && random_.chance(0.85))  // the later of two: chains rather than stars
    return fitting[std::max(random_.index(fitting.size()), random_.index(fitting.size()))];
  const auto least = static_cast<std::int64_t>(ranks.least);
  const auto most =
      static_cast<std::int64_t>(std::max(ranks.least, std::min<std::size_t>(4, ranks.most)));
  const auto drawn_rank = static_cast<std::size_t>(random_.integer(least, most));
  return fresh(wanted, draw_sizes(drawn_rank), range.high > 1e299 ? Range() : range);
}

std::optional<ValueId> Draft::partner(ValueId other, DType wanted, Range range) {
  const bool any_range = range.high > 1e299;
  std::vector<ValueId> fitting;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const auto id = static_cast<ValueId>(i);
    if (dtype(id) != wanted || (!any_range && !within(id, range))) continue;
    bool fits = true;
    for (std::size_t point = 0; point < kPoints; ++point) {
      const auto dims = broadcast_dims(tensor(id, point).dims(), tensor(other, point).dims());
      fits = fits && dims && numel(*dims) <= kMostBroadcast;
    }
    if (fits) fitting.push_back(id);
  }
  if (!fitting.empty() && random_.chance(0.5))
    return fitting[std::max(random_.index(fitting.size()), random_.index(fitting.size()))];
  Sizes sizes = this->sizes(other);
  if (random_.chance(0.4))
    sizes.erase(sizes.begin(),
                sizes.begin() + random_.integer(0, static_cast<std::int64_t>(sizes.size())));
  for (Size& size : sizes)
    if (random_.chance(0.15) || (!is_fixed(size) && symbol_of(size).empty())) size = {1, 1};
  if (random_.chance(0.1) && sizes.size() < 4) sizes.insert(sizes.begin(), {2, 2});
  return fresh(wanted, sizes, any_range ? Range() : range);
}

Status Draft::add(Node node) {
  node.name = std::string(node.op->name) + "_" + std::to_string(model_.nodes.size());
  TESSERA_ASSIGN(auto results, evaluate_node(node, values_, model_.nodes.size()));
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kOmitted) continue;
    Value value;
    value.name = "v" + std::to_string(values_.size());
    node.outputs[i] = add_value(std::move(value), std::move(results[i]));
  }
  model_.nodes.push_back(std::move(node));
  return {};
}

Model Draft::finish() {
  std::vector<bool> used(values_.size(), false);
  for (const Node& node : model_.nodes)
    for (const ValueId id : node.inputs)
      if (id != kOmitted) used[static_cast<std::size_t>(id)] = true;
  for (std::size_t i = 0; i < values_.size(); ++i)
    if (model_.values[i].source == Source::kNode && (!used[i] || random_.chance(0.15)))
      model_.outputs.push_back(static_cast<ValueId>(i));
  return pruned(model_);
}

}  // namespace tessera::random_models
