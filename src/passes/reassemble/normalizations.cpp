// LayerNormalization and RMSNormalization, spelled with means, squares and roots.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "passes/float_elements.h"
#include "passes/reassemble/assembler.h"
#include "passes/reassemble/expected_number.h"
#include "passes/reassemble/reduction.h"
#include "passes/rewrite.h"

namespace tessera::passes::reassemble {
namespace {

using Judged = std::optional<std::string>;

// ---- Spellings ----------------------------------------------------------------------------------

// The mean of something: ReduceMean, or the sum times 1 / count.
PatternPtr mean_of(const PatternPtr& pattern, const std::string& name) {
  return one_of({op("ReduceMean", {pattern}, name),
                 product({op("ReduceSum", {pattern}, name), number(name + " factor")})});
}

PatternPtr square_of(const PatternPtr& pattern) {
  return one_of({op("Mul", {pattern, pattern}), op("Pow", {pattern, number("two")})});
}

// 1 / sqrt(variance + epsilon), as a factor.
PatternPtr inverse_root(const PatternPtr& variance) {
  const PatternPtr moved = named("moved", sum({variance, number("epsilon")}));
  return one_of({inverse(one_of({op("Sqrt", {moved}), op("Pow", {moved, number("half")})})),
                 op("Pow", {moved, number("minus_half")})});
}

const PatternPtr kX = value("x");
const PatternPtr kScale = value("scale");

PatternPtr centred() {
  const PatternPtr mean = mean_of(kX, "mean");
  return named("centred", one_of({op("Sub", {kX, mean}), sum({kX, op("Neg", {mean})})}));
}

// A factor that may stand as a divisor as well.
PatternPtr divided(const PatternPtr& numerator, const PatternPtr& variance) {
  return product({numerator, inverse_root(variance)});
}

// With and without a scale, the normalised value rounded to a narrower type in between or not.
std::vector<PatternPtr> scaled(const PatternPtr& numerator, const PatternPtr& variance) {
  const PatternPtr rounded = op("Cast", {divided(numerator, variance)}, "rounded");
  return {product({numerator, inverse_root(variance), kScale}), product({rounded, kScale}), rounded,
          divided(numerator, variance)};
}

// ---- Conditions ---------------------------------------------------------------------------------

// What both have to hold; the axes where they do.
struct Rows {
  std::string reason;
  std::int64_t first_axis = 0;
};

Rows check_rows(const Assembler& assembler, const Match& match,
                std::initializer_list<const char*> means) {
  Rows rows;
  const auto& shape = assembler.type(match.value("x")).shape;
  for (const char* name : means) {
    const ir::Node& node = *match.node(name);
    const Reduction reduction = read_reduction(assembler.view().graph(), node);
    rows.reason = reduction.reason;
    if (rows.reason.empty() && !reduction.keepdims)
      rows.reason = fmt::format("'{}' has keepdims=0: the mean stands in other places of its rows",
                                node.name);
    if (rows.reason.empty() && !reduction.is_trailing())
      rows.reason = fmt::format("'{}' has axes {}: expected the last ones", node.name,
                                to_string(reduction.axes));
    if (rows.reason.empty() && match.has_number(std::string(name) + " factor"))
      rows.reason = reduction.mean_reason(match.number(std::string(name) + " factor"), node,
                                          assembler.type(match.value("x")).dtype);
    if (!rows.reason.empty()) return rows;
    const std::int64_t first = reduction.axes.front();
    if (name != *means.begin() && first != rows.first_axis) {
      rows.reason =
          fmt::format("'{}' and '{}' have other axes", match.node(*means.begin())->name, node.name);
      return rows;
    }
    rows.first_axis = first;
  }
  if (!shape)
    rows.reason = fmt::format("the rank of {} is unknown", assembler.quoted(match.value("x")));
  return rows;
}

std::string check_numbers(const Match& match, DType dtype) {
  Expected expected(match, dtype);
  expected.number("two", 2);
  expected.number("half", 0.5);
  expected.number("minus_half", -0.5);
  std::string reason = expected.reason();
  if (reason.empty() && !(match.number("epsilon") >= 0))
    reason = fmt::format("epsilon: expected 0 or more, found {:.7g}", match.number("epsilon"));
  return reason;
}

// Scale and bias broadcast to the input in one direction.
std::string check_parameter(const Assembler& assembler, const Match& match, const char* name) {
  const ir::ValueId id = match.value(name);
  if (id == ir::kNoValue) return {};
  const auto& x = assembler.type(match.value("x")).shape;
  const auto& shape = assembler.type(id).shape;
  if (!shape) return fmt::format("the rank of {} {} is unknown", name, assembler.quoted(id));
  bool fits = shape->size() <= x->size();
  for (std::size_t i = 0; fits && i < shape->size(); ++i) {
    const Dim& have = (*shape)[shape->size() - 1 - i];
    fits = have == Dim(1) || have == (*x)[x->size() - 1 - i];
  }
  if (fits) return {};
  return fmt::format("{} {} of shape {} does not broadcast to the input {}", name,
                     assembler.quoted(id), to_string(*shape), to_string(*x));
}

// The input behind a Cast to the dtype that is computed in, where the result is rounded back.
ir::ValueId input_of_norm(const Assembler& assembler, const Match& match) {
  const ir::ValueId x = match.value("x");
  if (match.node("rounded") == nullptr) return x;
  return behind_noise(assembler.view().graph(), x);
}

// A parameter is one of the model's or has one element for each of a row at most; a tensor of other
// rows is a sum or a product that happens to stand there.
bool is_parameter(const Assembler& assembler, const Match& match, const char* name) {
  const ir::ValueId id = match.value(name);
  if (id == ir::kNoValue || constant_of(assembler.graph(), id) != nullptr) return true;
  const auto& shape = assembler.type(id).shape;
  return id != match.value("x") && shape && shape->size() == 1;
}

Judged check_norm(const Assembler& assembler, const Match& match, ir::ValueId result,
                  std::initializer_list<const char*> means) {
  if (!is_parameter(assembler, match, "scale") || !is_parameter(assembler, match, "bias"))
    return std::nullopt;
  const ValueType& x = assembler.type(input_of_norm(assembler, match));
  const Rows rows = check_rows(assembler, match, means);
  if (!rows.reason.empty()) return rows.reason;
  std::string reason = check_numbers(match, x.dtype);
  for (const char* name : {"scale", "bias"})
    if (reason.empty()) reason = check_parameter(assembler, match, name);
  if (reason.empty() && x.dtype != assembler.type(result).dtype)
    reason = fmt::format("the input is {} and the result {}", tessera::to_string(x.dtype),
                         tessera::to_string(assembler.type(result).dtype));
  return reason;
}

Judged check_layer(const Assembler& assembler, const Match& match, ir::ValueId result) {
  return check_norm(assembler, match, result, {"mean", "variance"});
}

Judged check_rms(const Assembler& assembler, const Match& match, ir::ValueId result) {
  // The second half of a layer normalisation that was found.
  if (assembler.is_taken("LayerNormalization", *match.node("variance"))) return std::nullopt;
  return check_norm(assembler, match, result, {"variance"});
}

// ---- Building -----------------------------------------------------------------------------------

// Elements of a parameter repeated along the first axes of `dims`; none where it is not that.
std::vector<double> spread(const std::vector<double>& elements, const Dims& own, const Dims& dims) {
  const std::size_t lead = static_cast<std::size_t>(
      std::find_if(own.begin(), own.end(), [](std::int64_t size) { return size != 1; }) -
      own.begin());
  const std::size_t rest = own.size() - lead;
  if (rest > dims.size() || !std::equal(own.begin() + static_cast<std::ptrdiff_t>(lead), own.end(),
                                        dims.end() - static_cast<std::ptrdiff_t>(rest)))
    return {};
  std::vector<double> all;
  while (static_cast<std::int64_t>(all.size()) < numel(dims))
    all.insert(all.end(), elements.begin(), elements.end());
  return all;
}

// A constant parameter spread over the normalised axes, as kernels want it; others as they are.
ir::ValueId whole_parameter(Assembler& assembler, Program& program, ir::ValueId id,
                            const Shape& tail, DType dtype, double fallback) {
  const auto dims = constant_dims(tail);
  if (id == ir::kNoValue) {
    const Dims sizes = dims.value_or(Dims{1});
    const std::vector<double> elements(static_cast<std::size_t>(numel(sizes)), fallback);
    return program.constant("scale", from_float_elements(dtype, sizes, elements));
  }
  const Tensor* tensor = constant_of(assembler.graph(), id);
  if (tensor == nullptr || !dims || tensor->dims() == *dims || !has_float_elements(tensor->dtype()))
    return id;
  const auto elements = spread(float_elements(tensor->view()), tensor->dims(), *dims);
  if (elements.empty()) return id;
  return program.constant(assembler.graph().value(id).name,
                          from_float_elements(tensor->dtype(), *dims, elements));
}

void build(Assembler& assembler, const Match& match, Program& program, const char* op,
           const char* last_mean) {
  const ir::ValueId x = input_of_norm(assembler, match);
  const ValueType& type = assembler.type(x);
  const DType dtype = type.dtype;
  const std::int64_t first = read_reduction(assembler.graph(), *match.node(last_mean)).axes.front();
  const Shape tail(type.shape->begin() + static_cast<std::ptrdiff_t>(first), type.shape->end());
  ops::Attributes attributes;
  const std::int64_t axis = first - static_cast<std::int64_t>(type.shape->size());
  attributes.set("axis", axis);
  attributes.set("epsilon", static_cast<float>(match.number("epsilon")));
  std::vector<ir::ValueId> inputs = {
      x, whole_parameter(assembler, program, match.value("scale"), tail, dtype, 1)};
  if (const ir::ValueId bias = match.value("bias"); bias != ir::kNoValue)
    inputs.push_back(whole_parameter(assembler, program, bias, tail, dtype, 0));
  program.finish("", op, std::move(attributes), std::move(inputs));
}

void build_layer(Assembler& assembler, const Match& match, Program& program) {
  build(assembler, match, program, "LayerNormalization", "variance");
}

void build_rms(Assembler& assembler, const Match& match, Program& program) {
  build(assembler, match, program, "RMSNormalization", "variance");
}

}  // namespace

void propose_normalizations(Assembler& assembler) {
  const PatternPtr centre = centred();
  const PatternPtr variance = mean_of(square_of(centre), "variance");
  std::vector<PatternPtr> layer;
  for (const PatternPtr& spelling : scaled(centre, variance))
    layer.push_back(sum({spelling, value("bias")}));
  for (const PatternPtr& spelling : scaled(centre, variance)) layer.push_back(spelling);
  propose(assembler, {"LayerNormalization", "Add|Mul|Div|Cast", layer, check_layer, build_layer});
  const PatternPtr mean_square = mean_of(square_of(kX), "variance");
  propose(assembler,
          {"RMSNormalization", "Mul|Div|Cast", scaled(kX, mean_square), check_rms, build_rms});
}

}  // namespace tessera::passes::reassemble
