#include "random_models/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/float_convert.h"
#include "ops/op_table.h"
#include "random_models/draft.h"
#include "random_models/evaluate_node.h"
#include "testing/random.h"

namespace tessera::random_models {
namespace {

constexpr std::int64_t kMostElements = 1 << 14;
constexpr double kSpreadAllowed = 4;

// How precise a dtype is: by how much results are shaken, relative to themselves (and a tenth of
// that to the largest element); how far apart they may come, relative to the largest element; how
// large they may be; the least number above 0.
struct Precision {
  double shake = 0;
  double widest = 0;
  double largest = 0;
  double smallest = 0;
};

bool is_shaken(DType dtype) {
  return dtype == DType::kFp32 || dtype == DType::kFp64 || dtype == DType::kFp16 ||
         dtype == DType::kBf16;
}

Precision precision_of(DType dtype) {
  switch (dtype) {
    case DType::kFp64: return {1e-12, 1e-7, 1e6, 0x1p-1074};
    case DType::kFp16: return {1e-3, 0.05, 5e3, 0x1p-24};
    case DType::kBf16: return {8e-3, 0.2, 1e5, 0x1p-133};
    default: return {1e-5, 2e-3, 1e5, 0x1p-149};
  }
}

double largest_finite(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  return largest;
}

// Results that every right implementation gives bit by bit.
bool is_exact(const ops::OpSchema& op) {
  static const std::set<std::string_view> exact = {
      "Abs",   "Neg",       "Relu",      "Max",     "Min",      "Clip",
      "Sign",  "Floor",     "Ceil",      "Round",   "Identity", "Dropout",
      "Where", "Cast",      "CastLike",  "MaxPool", "Hardmax",  "GlobalMaxPool",
      "TopK",  "ReduceMax", "ReduceMin", "NonZero", "Compress", "Unique"};
  const bool reduces = op.name == "ScatterElements" || op.name == "ScatterND" || op.name == "Range";
  return !reduces && (op.structure == ops::Structure::kMovement ||
                      op.structure == ops::Structure::kView || exact.contains(op.name));
}

// Operators that make infinities and NaN of numbers in the same way everywhere. Others (x / 0)
// hang on the sign of a zero, which a pass may change.
bool may_leave_numbers(const ops::OpSchema& op) {
  static const std::set<std::string_view> names = {"Log", "Sqrt", "Acos", "Asin", "Acosh", "Atanh"};
  return names.contains(op.name);
}

Tensor shaken_copy(const Tensor& tensor, std::uint64_t seed, double direction) {
  const Precision precision = precision_of(tensor.dtype());
  std::vector<double> values = doubles(tensor);
  const double largest = largest_finite(values);
  testing::Random random(seed);
  for (double& value : values) {
    const double sign = (random.bits() & 1U) != 0 ? direction : -direction;
    value += sign * precision.shake * (std::abs(value) + 0.1 * largest);
  }
  const Tensor wide = Tensor::of<double>(DType::kFp64, tensor.dims(), values);
  Tensor result = *Tensor::zeros(tensor.dtype(), tensor.dims());
  cast_elements(wide.view(), result.mutable_view(), true);
  return result;
}

bool same_kind(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return true;
}

bool all_finite(const Tensor& tensor) {
  if (!tensor.is_defined() || !is_shaken(tensor.dtype())) return true;
  return std::ranges::all_of(doubles(tensor), [](double value) { return std::isfinite(value); });
}

Status check_values(const Node& node, const Tensor& output, bool inputs_finite) {
  if (output.numel() > kMostElements) return unusable("it is too large");
  if (!is_shaken(output.dtype())) return {};
  const std::vector<double> values = doubles(output);
  if (largest_finite(values) > precision_of(output.dtype()).largest)
    return unusable("its elements are too large");
  const auto others =
      std::ranges::count_if(values, [](double value) { return !std::isfinite(value); });
  const bool wide = output.dtype() == DType::kFp32 || output.dtype() == DType::kFp64;
  if (others > 0 && inputs_finite && !(wide && may_leave_numbers(*node.op)))
    return unusable("it leaves the numbers");
  if (static_cast<double>(others) > 0.3 * static_cast<double>(values.size()))
    return unusable("too little of it is a number");
  return {};
}

std::vector<Tensor> operands(const Node& node, const Evaluation& values, std::size_t point,
                             Which which) {
  std::vector<Tensor> tensors;
  for (const ValueId id : node.inputs)
    tensors.push_back(id == kOmitted ? Tensor()
                                     : chosen(values[static_cast<std::size_t>(id)][point], which));
  return tensors;
}

// Inference at one point checks what kernels take for granted.
Status check_shapes(const Node& node, const std::vector<Tensor>& inputs) {
  std::vector<TensorView> views(inputs.size());
  std::vector<const TensorView*> pointers(inputs.size(), nullptr);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_defined()) continue;
    views[i] = inputs[i].view();
    pointers[i] = &views[i];
  }
  if (node.op->data_dependent_shape) return {};
  return ops::run_shape(*node.op, node.attributes, pointers, node.outputs.size())
      .map([](const auto&) {});
}

// How far an operand may be off, as difference() has it; 0 where shaking has not reached it.
double reach_of(const Elements& elements) {
  const std::vector<double> a = doubles(elements.nominal);
  double reach = 0;
  for (const Tensor& shaken : elements.shaken) {
    if (same_storage(shaken, elements.nominal)) continue;
    const std::vector<double> b = doubles(shaken);
    for (std::size_t i = 0; i < a.size(); ++i)
      if (std::isfinite(a[i])) reach = std::max(reach, std::abs(a[i] - b[i]));
  }
  return kSpreadAllowed * reach;
}

bool is_near(double distance, double reach) {
  return distance != 0 && std::abs(distance) <= reach;
}

bool any_near_zero(const std::vector<double>& values, double reach) {
  return std::ranges::any_of(values, [&](double value) { return is_near(value, reach); });
}

// Whether two of them are nearly the same.
bool any_near(std::vector<double> values, double reach) {
  std::ranges::sort(values);
  for (std::size_t i = 1; i < values.size(); ++i)
    if (is_near(values[i] - values[i - 1], reach)) return true;
  return false;
}

// Shaking turns one side of a step into the other, but never hits a single point: numbers that are
// equal, or zero, in another order of summation alone.
Status check_points(const Node& node, const Evaluation& values, std::size_t point, DType result) {
  const std::string_view op = node.op->name;
  const bool casts = (op == "Cast" || op == "CastLike") && result == DType::kBool;
  if (op != "Equal" && op != "Unique" && op != "NonZero" && !casts) return {};
  const Elements& first = values[static_cast<std::size_t>(node.inputs[0])][point];
  double reach = reach_of(first);
  if (op == "Equal") reach += reach_of(values[static_cast<std::size_t>(node.inputs[1])][point]);
  if (reach == 0) return {};
  bool near = false;
  if (op == "Equal") {
    const std::vector<Tensor> inputs = operands(node, values, point, Which::kNominal);
    TESSERA_ASSIGN(const auto distance,
                   ops::run_reference(*ops::find_op("", "Sub"), {}, inputs, 1));
    near = any_near_zero(doubles(distance.front()), reach);
  } else {
    const std::vector<double> numbers = doubles(first.nominal);
    near = op == "Unique" ? any_near(numbers, reach) : any_near_zero(numbers, reach);
  }
  return near ? unusable("it depends on rounding") : Status();
}

Result<std::vector<Elements>> run_kernel(const Node& node, const Evaluation& values,
                                         std::size_t point, std::uint64_t number) {
  const std::vector<Tensor> inputs = operands(node, values, point, Which::kNominal);
  TESSERA_TRY(check_shapes(node, inputs));
  TESSERA_ASSIGN(const std::vector<Tensor> nominal,
                 ops::run_reference(*node.op, node.attributes, inputs, node.outputs.size()));
  TESSERA_TRY(check_points(node, values, point, nominal.front().dtype()));
  const bool finite = std::ranges::all_of(inputs, all_finite);
  std::vector<Elements> results(nominal.size());
  for (std::size_t i = 0; i < nominal.size(); ++i) {
    if (node.outputs[i] == kOmitted) continue;
    TESSERA_TRY(check_values(node, nominal[i], finite));
    results[i].nominal = nominal[i];
  }
  for (std::size_t shake = 0; shake < kShakes; ++shake) {
    const std::vector<Tensor> moved =
        operands(node, values, point, shake == 0 ? Which::kFirst : Which::kSecond);
    std::vector<Tensor> shaken = nominal;
    if (!std::equal(inputs.begin(), inputs.end(), moved.begin(), same_storage)) {
      TESSERA_ASSIGN(shaken,
                     ops::run_reference(*node.op, node.attributes, moved, node.outputs.size()));
    }
    for (std::size_t i = 0; i < nominal.size(); ++i) {
      if (node.outputs[i] == kOmitted) continue;
      if (is_shaken(nominal[i].dtype()) && !is_exact(*node.op))
        shaken[i] = shaken_copy(shaken[i], number * 31 + i * 7 + point, shake == 0 ? 1.0 : -1.0);
      TESSERA_TRY(check_stable(nominal[i], shaken[i]));
      results[i].shaken[shake] = shaken[i];
    }
  }
  return results;
}

Result<std::vector<Elements>> run_by_kind(const Node& node, const Evaluation& values,
                                          std::size_t point, std::uint64_t number) {
  if (node.op->structure == ops::Structure::kControlFlow)
    return run_bodies(node, values, point, number);
  if (takes_held(*node.op)) return run_on_held(node, values, point);
  return run_kernel(node, values, point, number);
}

bool opens_rank(const Elements& value) {
  if (value.open_rank || value.held == nullptr) return value.open_rank;
  const std::vector<Elements>& inside = value.held->elements;
  return std::ranges::any_of(inside, [&](const Elements& element) {
    return opens_rank(element) ||
           element.nominal.dims().size() != inside.front().nominal.dims().size();
  });
}

std::string position_text(const Dims& dims, std::int64_t index) {
  std::string text;
  for (std::size_t axis = dims.size(); axis-- > 0;) {
    text = std::to_string(index % dims[axis]) + (text.empty() ? "" : ", ") + text;
    index /= dims[axis];
  }
  return "[" + text + "]";
}

// The first that differs, and how many do.
std::string floats_difference(const Elements& expected, const Tensor& found, double relative) {
  const std::vector<double> a = doubles(expected.nominal);
  const std::vector<double> b = doubles(found);
  std::vector<double> spread(a.size(), 0);
  // Shakes of several nodes may cancel; one is allowed wherever one has been.
  // What underflows may do so at any step.
  const Precision precision = precision_of(found.dtype());
  for (const Tensor& shaken : expected.shaken) {
    if (same_storage(shaken, expected.nominal)) continue;
    const std::vector<double> moved = doubles(shaken);
    for (std::size_t i = 0; i < a.size(); ++i)
      if (std::isfinite(a[i]))
        spread[i] = std::max({spread[i], std::abs(moved[i] - a[i]), precision.smallest,
                              precision.shake * std::abs(a[i])});
  }
  const double widest = spread.empty() ? 0 : *std::ranges::max_element(spread);
  std::string first;
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double rounding = std::isfinite(a[i]) ? relative * std::abs(a[i]) : 0;
    const double allowed = kSpreadAllowed * spread[i] + 0.1 * widest + rounding;
    const bool fits = std::isfinite(a[i]) && std::isfinite(b[i]) ? std::abs(a[i] - b[i]) <= allowed
                                                                 : same_kind(a[i], b[i]);
    if (fits) continue;
    if (count++ == 0)
      first = fmt::format("at {}: expected {:.9g} (within {:.3g}), found {:.9g}",
                          position_text(found.dims(), static_cast<std::int64_t>(i)), a[i], allowed,
                          b[i]);
  }
  return count == 0 ? "" : fmt::format("{} of {} elements differ; {}", count, a.size(), first);
}

std::string bytes_difference(const Tensor& expected, const Tensor& found) {
  if (expected.equals(found)) return "";
  if (!is_integer(expected.dtype()) && expected.dtype() != DType::kBool) return "elements differ";
  const std::vector<double> a = doubles(expected);
  const std::vector<double> b = doubles(found);
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i])
      return fmt::format("at {}: expected {}, found {}",
                         position_text(expected.dims(), static_cast<std::int64_t>(i)), a[i], b[i]);
  return "elements differ";
}

}  // namespace

tl::unexpected<Error> unusable(std::string why) {
  return fail(ErrorCode::kFailedPrecondition, std::move(why));
}

bool same_storage(const Tensor& a, const Tensor& b) {
  return a.data() == b.data() && a.dims() == b.dims();
}

const Tensor& chosen(const Elements& elements, Which which) {
  if (which == Which::kNominal) return elements.nominal;
  return elements.shaken[which == Which::kFirst ? 0 : 1];
}

Status check_stable(const Tensor& nominal, const Tensor& shaken) {
  if (nominal.dims() != shaken.dims()) return unusable("its size depends on rounding");
  if (same_storage(nominal, shaken)) return {};
  if (!is_shaken(nominal.dtype()))
    return nominal.equals(shaken) ? Status() : unusable("it depends on rounding");
  const std::vector<double> a = doubles(nominal);
  const std::vector<double> b = doubles(shaken);
  const double widest = precision_of(nominal.dtype()).widest * largest_finite(a);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!same_kind(a[i], b[i])) return unusable("whether it is a number depends on rounding");
    if (std::isfinite(a[i]) && std::abs(a[i] - b[i]) > widest)
      return unusable("rounding changes it too much");
  }
  return {};
}

Result<std::vector<Elements>> run_at(const Node& node, const Evaluation& values, std::size_t point,
                                     std::uint64_t number) {
  TESSERA_ASSIGN(std::vector<Elements> results, run_by_kind(node, values, point, number));
  const bool open = std::ranges::any_of(node.inputs, [&](ValueId id) {
    return id != kOmitted && opens_rank(values[static_cast<std::size_t>(id)][point]);
  });
  if (open)
    for (Elements& result : results) result.open_rank = true;
  return results;
}

DType Elements::dtype() const {
  return held == nullptr ? nominal.dtype() : held->dtype;
}

AtPoints<Elements> known_elements(const AtPoints<Tensor>& tensors) {
  AtPoints<Elements> elements;
  for (std::size_t point = 0; point < kPoints; ++point)
    elements[point] = {tensors[point], {tensors[point], tensors[point]}, nullptr};
  return elements;
}

Result<std::vector<AtPoints<Elements>>> evaluate_node(const Node& node, const Evaluation& values,
                                                      std::uint64_t number) {
  std::vector<AtPoints<Elements>> results(node.outputs.size());
  for (std::size_t point = 0; point < kPoints; ++point) {
    TESSERA_ASSIGN(const std::vector<Elements> outputs, run_at(node, values, point, number));
    for (std::size_t i = 0; i < outputs.size(); ++i) results[i][point] = outputs[i];
  }
  return results;
}

Result<Evaluation> evaluate(const Model& model) {
  Evaluation values(model.values.size());
  for (std::size_t id = 0; id < model.values.size(); ++id)
    if (model.values[id].source != Source::kNode)
      values[id] = known_elements(model.values[id].elements);
  for (std::size_t i = 0; i < model.nodes.size(); ++i) {
    const Node& node = model.nodes[i];
    auto results = evaluate_node(node, values, i);
    if (!results)
      return tl::unexpected(in_context(std::move(results).error(), "node '" + node.name + "'"));
    for (std::size_t o = 0; o < node.outputs.size(); ++o)
      if (node.outputs[o] != kOmitted)
        values[static_cast<std::size_t>(node.outputs[o])] = std::move((*results)[o]);
  }
  return values;
}

std::vector<DType> dtypes_of(const Evaluation& evaluation) {
  std::vector<DType> dtypes;
  for (const auto& value : evaluation) dtypes.push_back(value[0].dtype());
  return dtypes;
}

std::string difference(const Elements& expected, const TensorView& found, double relative) {
  const Tensor& wanted = expected.nominal;
  if (found.dtype != wanted.dtype() || found.dims != wanted.dims())
    return fmt::format("expected {}[{}], found {}[{}]", tessera::to_string(wanted.dtype()),
                       tessera::to_string(wanted.dims()), tessera::to_string(found.dtype),
                       tessera::to_string(found.dims));
  const Tensor owned = Tensor::copy_of(found);
  return is_shaken(wanted.dtype()) ? floats_difference(expected, owned, relative)
                                   : bytes_difference(wanted, owned);
}

}  // namespace tessera::random_models
