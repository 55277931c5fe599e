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

// The least and the largest number that a dtype is drawn with.
Range bounds_of(DType dtype) {
  switch (dtype) {
    case DType::kBool: return {0, 1};
    case DType::kInt2: return {-2, 1};
    case DType::kUInt2: return {0, 3};
    case DType::kInt4: return {-8, 7};
    case DType::kUInt4: return {0, 15};
    case DType::kUInt8:
    case DType::kUInt16:
    case DType::kUInt32:
    case DType::kUInt64: return {0, 1e9};
    case DType::kFp8E8M0: return {0.125, 1e9};
    default: return {-1e9, 1e9};
  }
}

// Some of them are numbers too, for Cast.
constexpr std::array kWords = {"0", "1", "-2", "3.5", "a", "Ab c", "", "x,y,z", "ÄÖ", "long words"};

Dims dims_at(const Sizes& sizes, std::size_t point) {
  Dims dims;
  for (const Size& size : sizes) dims.push_back(size[point]);
  return dims;
}

std::int64_t most_elements(const Sizes& sizes) {
  return std::max(numel(dims_at(sizes, 0)), numel(dims_at(sizes, 1)));
}

}  // namespace

std::vector<double> doubles(const Tensor& tensor) {
  if (!has_numbers(tensor.dtype())) return {};
  Tensor wide = *Tensor::zeros(DType::kFp64, tensor.dims());
  cast_elements(tensor.view(), wide.mutable_view(), true);
  return {wide.span<double>().begin(), wide.span<double>().end()};
}

Tensor constant_tensor(DType dtype, const Dims& dims, const std::vector<double>& values) {
  Tensor tensor = *Tensor::zeros(dtype, dims);
  if (dtype == DType::kString) {
    auto* words = static_cast<std::string*>(tensor.mutable_data());
    for (std::size_t i = 0; i < values.size(); ++i)
      words[i] = kWords[static_cast<std::size_t>(std::abs(values[i])) % kWords.size()];
    return tensor;
  }
  if (!has_numbers(dtype)) {
    const bool wide = dtype == DType::kComplex128;
    void* to = tensor.mutable_data();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double imaginary = 0.5 - values[i];
      if (wide) {
        static_cast<double*>(to)[2 * i] = values[i];
        static_cast<double*>(to)[2 * i + 1] = imaginary;
      } else {
        static_cast<float*>(to)[2 * i] = static_cast<float>(values[i]);
        static_cast<float*>(to)[2 * i + 1] = static_cast<float>(imaginary);
      }
    }
    return tensor;
  }
  const Tensor wide = Tensor::of<double>(DType::kFp64, dims, values);
  cast_elements(wide.view(), tensor.mutable_view(), true);
  return tensor;
}

Draft::Draft(std::uint64_t seed) : own_random_(seed), random_(&own_random_) {
  for (const char* name : {"n", "m", "k"}) {
    Size size{random_->integer(1, 6), random_->integer(1, 6)};
    while (size[0] == size[1] || !symbol_of(size).empty())
      size = {random_->integer(1, 7), random_->integer(1, 7)};
    symbols_[name] = size;
  }
  if (random_->chance(0.04)) symbols_["m"][1] = 0;
  if (random_->chance(0.04)) special_ = 0.05;
}

Draft::Draft(Draft* around)
    : around_(around),
      own_random_(0),
      random_(around->random_),
      prefix_(around->prefix_ + "b" + std::to_string(around->bodies_++) + "_"),
      symbols_(around->symbols_),
      special_(around->special_) {
  // Recipes look for operands among what is there: some values of the graph around.
  for (int i = 0; i < 6 && !around->values_.empty(); ++i) {
    const auto id = static_cast<ValueId>(random_->index(around->values_.size()));
    if (around->elements(id)[0].held == nullptr) (void)capture(id);
  }
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
  if (!has_numbers(dtype(id))) return false;
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
    if (random_->chance(axis == 0 ? 0.4 : 0.2)) {
      auto symbol = symbols_.begin();
      std::advance(symbol, random_->integer(0, 2));
      sizes.push_back(symbol->second);
    } else {
      const std::int64_t number = random_->chance(0.005) ? 0 : random_->pick(numbers);
      sizes.push_back({number, number});
    }
  }
  while (most_elements(sizes) > kMostInputElements) {
    Size& size = sizes[random_->index(sizes.size())];
    size = {1, 1};
  }
  return sizes;
}

bool Draft::can_be_input(const Sizes& sizes) const {
  return std::ranges::all_of(
      sizes, [&](const Size& size) { return is_fixed(size) || !symbol_of(size).empty(); });
}

Tensor Draft::drawn(DType dtype, const Dims& dims, Range range) {
  const Range bounds = bounds_of(dtype);
  const double low = std::clamp(range.low, bounds.low, bounds.high);
  const double high = std::clamp(range.high, low, std::max(low, bounds.high));
  const bool coarse = random_->chance(0.2);
  const bool wide_integers = special_ > 0 || random_->chance(0.3);
  const bool whole_range = range.low == Range().low && range.high == Range().high;
  std::vector<double> values(static_cast<std::size_t>(numel(dims)));
  for (double& value : values) {
    if (dtype == DType::kString) {
      value = static_cast<double>(random_->integer(0, kWords.size() - 1));
      continue;
    }
    if (dtype == DType::kBool || is_integer(dtype)) {
      const bool wide = whole_range && wide_integers;
      const double most = wide ? std::min(100.0, bounds.high) : high;
      const double least = wide ? std::max(-100.0, bounds.low) : low;
      value = static_cast<double>(random_->integer(static_cast<std::int64_t>(std::ceil(least)),
                                                   static_cast<std::int64_t>(std::floor(most))));
      continue;
    }
    value = random_->real(low, high);
    if (coarse) value = std::clamp(std::round(value * 4) / 4, low, high);
    if (special_ > 0 && range.low == Range().low && random_->chance(special_)) {
      static const std::vector<double> specials = {0.0, -0.0, std::nan(""), HUGE_VAL, -HUGE_VAL};
      value = random_->pick(specials);
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
  const bool is_constant = fixed && random_->chance(0.3);
  if (around_ != nullptr && !is_constant) return capture(around_->fresh(dtype, sizes, range));
  value.source = is_constant ? Source::kConstant : Source::kInput;
  value.name = new_name(is_constant ? "c" : "x");
  for (std::size_t point = 0; point < kPoints; ++point)
    value.elements[point] =
        is_constant && point > 0 ? value.elements[0] : drawn(dtype, dims_at(sizes, point), range);
  for (const Size& size : sizes) value.symbols.push_back(is_fixed(size) ? "" : symbol_of(size));
  const auto elements = known_elements(value.elements);
  return add_value(std::move(value), elements);
}

ValueId Draft::weights(DType dtype, const Dims& dims, Range range) {
  if (!random_->chance(0.15)) return constant(drawn(dtype, dims, range));
  Sizes sizes;
  for (const std::int64_t size : dims) sizes.push_back({size, size});
  return fresh(dtype, sizes, range);
}

ValueId Draft::constant(Tensor tensor) {
  Value value;
  value.source = Source::kConstant;
  value.name = new_name("c");
  value.elements = {tensor, tensor};
  const auto elements = known_elements(value.elements);
  return add_value(std::move(value), elements);
}

ValueId Draft::input(const Tensor& tensor) {
  if (around_ != nullptr) return capture(around_->input(tensor));
  Value value;
  value.source = Source::kInput;
  value.name = new_name("x");
  value.symbols.assign(tensor.dims().size(), "");
  value.elements = {tensor, tensor};
  const auto elements = known_elements(value.elements);
  return add_value(std::move(value), elements);
}

ValueId Draft::formal(const AtPoints<Elements>& elements) {
  Value value;
  value.source = Source::kInput;
  value.name = new_name("f");
  for (std::size_t point = 0; point < kPoints; ++point)
    value.elements[point] = elements[point].nominal;
  value.symbols.assign(value.elements[0].dims().size(), "");
  return add_value(std::move(value), elements);
}

ValueId Draft::capture(ValueId outside) {
  for (const auto& [inside, known] : captures_)
    if (known == outside) return inside;
  Value value;
  value.source = Source::kOuter;
  value.name = around_->model_.values[static_cast<std::size_t>(outside)].name;
  const ValueId inside = add_value(std::move(value), around_->elements(outside));
  captures_.emplace_back(inside, outside);
  return inside;
}

std::optional<ValueId> Draft::holder(ValueType::Kind kind, DType dtype) const {
  for (std::size_t i = values_.size(); i-- > 0;) {
    const auto& held = values_[i][0].held;
    if (held != nullptr && held->kind == kind && held->dtype == dtype)
      return static_cast<ValueId>(i);
  }
  return std::nullopt;
}

std::vector<ValueId> Draft::unread_holders() const {
  std::vector<ValueId> unread;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const auto id = static_cast<ValueId>(i);
    const bool read = std::ranges::any_of(
        model_.nodes, [&](const Node& node) { return std::ranges::count(node.inputs, id) > 0; });
    if (values_[i][0].held != nullptr && !read) unread.push_back(id);
  }
  return unread;
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
    if (model_.values[i].source != Source::kConstant && dtype(id) == wanted && has_one_rank(id) &&
        rank(id) >= ranks.least && rank(id) <= ranks.most &&
        (range.high > 1e299 || within(id, range)))
      fitting.push_back(id);
  }
  if (!fitting.empty() && random_->chance(0.85))  // the later of two: chains rather than stars
    return fitting[std::max(random_->index(fitting.size()), random_->index(fitting.size()))];
  const auto least = static_cast<std::int64_t>(ranks.least);
  const auto most =
      static_cast<std::int64_t>(std::max(ranks.least, std::min<std::size_t>(4, ranks.most)));
  const auto drawn_rank = static_cast<std::size_t>(random_->integer(least, most));
  return fresh(wanted, draw_sizes(drawn_rank), range.high > 1e299 ? Range() : range);
}

std::optional<ValueId> Draft::partner(ValueId other, DType wanted, Range range) {
  const bool any_range = range.high > 1e299;
  std::vector<ValueId> fitting;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const auto id = static_cast<ValueId>(i);
    if (dtype(id) != wanted || !has_one_rank(id) || (!any_range && !within(id, range))) continue;
    bool fits = true;
    for (std::size_t point = 0; point < kPoints; ++point) {
      const auto dims = broadcast_dims(tensor(id, point).dims(), tensor(other, point).dims());
      fits = fits && dims && numel(*dims) <= kMostBroadcast;
    }
    if (fits) fitting.push_back(id);
  }
  if (!fitting.empty() && random_->chance(0.5))
    return fitting[std::max(random_->index(fitting.size()), random_->index(fitting.size()))];
  Sizes sizes = this->sizes(other);
  if (random_->chance(0.4))
    sizes.erase(sizes.begin(),
                sizes.begin() + random_->integer(0, static_cast<std::int64_t>(sizes.size())));
  for (Size& size : sizes)
    if (random_->chance(0.15) || (!is_fixed(size) && symbol_of(size).empty())) size = {1, 1};
  if (random_->chance(0.1) && sizes.size() < 4) sizes.insert(sizes.begin(), {2, 2});
  return fresh(wanted, sizes, any_range ? Range() : range);
}

Status Draft::add(Node node) {
  node.name = prefix_ + std::string(node.op->name) + "_" + std::to_string(model_.nodes.size());
  TESSERA_ASSIGN(auto results, evaluate_node(node, values_, model_.nodes.size()));
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kOmitted) continue;
    Value value;
    value.name = new_name("v");
    node.outputs[i] = add_value(std::move(value), std::move(results[i]));
  }
  model_.nodes.push_back(std::move(node));
  return {};
}

Model Draft::finish() {
  std::vector<bool> used(values_.size(), false);
  for (const Node& node : model_.nodes) {
    for (const ValueId id : node.inputs)
      if (id != kOmitted) used[static_cast<std::size_t>(id)] = true;
    for (const Body& body : node.bodies)
      for (const auto& capture : body.captures)
        used[static_cast<std::size_t>(capture.second)] = true;
  }
  for (std::size_t i = 0; i < values_.size(); ++i)
    if (model_.values[i].source == Source::kNode && values_[i][0].held == nullptr &&
        (!used[i] || random_->chance(0.15)))
      model_.outputs.push_back(static_cast<ValueId>(i));
  return pruned(model_);
}

Body Draft::finish_body(std::string attribute, std::vector<ValueId> outputs) {
  Body body{std::move(attribute), std::move(model_), {}, std::move(captures_), {}};
  body.graph.outputs = std::move(outputs);
  for (const ValueId id : body.graph.outputs) body.output_dtypes.push_back(elements(id)[0].dtype());
  for (std::size_t i = 0; i < body.graph.values.size(); ++i)
    if (body.graph.values[i].source == Source::kInput)
      body.formals.push_back(static_cast<ValueId>(i));
  return body;
}

}  // namespace tessera::random_models
