#include "base/shape.h"

#include <algorithm>
#include <utility>

#include "base/dim_parser.h"

namespace tessera {
namespace {

// Nesting of sequences and optionals that parse_value_type reads; ONNX models stay at 2.
constexpr int kMaxTypeDepth = 64;

std::string quoted_rest(std::string_view text) {
  return text.empty() ? "the end of the text" : "'" + std::string(text) + "'";
}

bool consume(std::string_view& text, std::string_view token) {
  if (!text.starts_with(token)) return false;
  text.remove_prefix(token.size());
  return true;
}

void skip_spaces(std::string_view& text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
}

tl::unexpected<Error> expected_in_type(std::string_view what, std::string_view rest) {
  return fail(ErrorCode::kInvalidArgument,
              "expected " + std::string(what) + " in a type, found " + quoted_rest(rest));
}

// What stands after the '[' of a tensor type, through its ']'; nothing for "?".
Result<std::optional<Shape>> parse_shape_tail(std::string_view& text) {
  if (consume(text, "?]")) return std::nullopt;
  Shape shape;
  skip_spaces(text);
  if (consume(text, "]")) return shape;
  while (true) {
    TESSERA_ASSIGN(Dim dim, parse_dim_prefix(text));
    shape.push_back(std::move(dim));
    skip_spaces(text);
    if (consume(text, "]")) return shape;
    if (!consume(text, ",")) return expected_in_type("',' or ']'", text);
  }
}

// The name of an element type, up to what follows it.
DType consume_dtype(std::string_view& text) {
  const std::size_t end = std::min(text.find_first_of("[,)"), text.size());
  const DType dtype = dtype_from_string(text.substr(0, end));
  if (dtype != DType::kUndefined) text.remove_prefix(end);
  return dtype;
}

// Behind "map(".
Result<ValueType> parse_map_tail(std::string_view& text) {
  const DType key = consume_dtype(text);
  if (key == DType::kUndefined) return expected_in_type("the element type of keys", text);
  if (!consume(text, ",")) return expected_in_type("','", text);
  skip_spaces(text);
  const DType value = consume_dtype(text);
  if (value == DType::kUndefined) return expected_in_type("the element type of values", text);
  if (!consume(text, ")")) return expected_in_type("')'", text);
  return ValueType::map(key, value);
}

Result<ValueType> parse_type_prefix(std::string_view& text, int depth) {
  if (depth > kMaxTypeDepth) {
    return fail(ErrorCode::kOutOfRange,
                "a type nests deeper than " + std::to_string(kMaxTypeDepth) + " levels");
  }
  const bool sequence = consume(text, "seq(");
  if (sequence || consume(text, "opt(")) {
    TESSERA_ASSIGN(ValueType element, parse_type_prefix(text, depth + 1));
    if (!consume(text, ")")) return expected_in_type("')'", text);
    return sequence ? ValueType::sequence(std::move(element))
                    : ValueType::optional(std::move(element));
  }
  if (consume(text, "map(")) return parse_map_tail(text);
  const std::size_t end = std::min(text.find('['), text.size());
  const std::string_view name = text.substr(0, end);
  const DType dtype = dtype_from_string(name);
  if (dtype == DType::kUndefined && name != to_string(DType::kUndefined)) {
    return expected_in_type("an element type, 'seq(', 'opt(' or 'map('", text);
  }
  text.remove_prefix(end);
  if (!consume(text, "[")) return expected_in_type("'['", text);
  TESSERA_ASSIGN(auto shape, parse_shape_tail(text));
  return ValueType::tensor(dtype, std::move(shape));
}

}  // namespace

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + shape[i].to_string();
  }
  return text + "]";
}

std::optional<Dims> constant_dims(const Shape& shape) {
  Dims dims;
  dims.reserve(shape.size());
  for (const Dim& dim : shape) {
    const auto value = dim.constant();
    if (!value) return std::nullopt;
    dims.push_back(*value);
  }
  return dims;
}

Shape to_shape(const Dims& dims) {
  return {dims.begin(), dims.end()};
}

Result<Dims> evaluate(const Shape& shape, const SymbolBindings& bindings) {
  Dims dims;
  dims.reserve(shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i) {
    auto value = shape[i].evaluate(bindings);
    if (!value) {
      return tl::unexpected(in_context(std::move(value).error(), "dim " + std::to_string(i)));
    }
    dims.push_back(*value);
  }
  return dims;
}

Result<Shape> broadcast_shapes(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const std::size_t lead = longer.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    auto dim = broadcast(longer[lead + i], shorter[i]);
    if (!dim) {
      return fail(ErrorCode::kInvalidArgument, "shapes " + to_string(a) + " and " + to_string(b) +
                                                   " do not broadcast: " + dim.error().message);
    }
    result[lead + i] = *std::move(dim);
  }
  return result;
}

Result<Dims> broadcast_dims(const Dims& a, const Dims& b) {
  TESSERA_ASSIGN(const Shape shape, broadcast_shapes(to_shape(a), to_shape(b)));
  return *constant_dims(shape);
}

ValueType ValueType::tensor(DType dtype, std::optional<Shape> shape) {
  ValueType type;
  type.dtype = dtype;
  type.shape = std::move(shape);
  return type;
}

ValueType ValueType::sequence(ValueType element) {
  ValueType type;
  type.kind = Kind::kSequence;
  type.element = std::make_shared<const ValueType>(std::move(element));
  return type;
}

ValueType ValueType::optional(ValueType element) {
  ValueType type;
  type.kind = Kind::kOptional;
  type.element = std::make_shared<const ValueType>(std::move(element));
  return type;
}

ValueType ValueType::map(DType key, DType value) {
  ValueType type;
  type.kind = Kind::kMap;
  type.dtype = key;
  type.element = std::make_shared<const ValueType>(tensor(value, Shape{}));
  return type;
}

ValueType ValueType::with_element(ValueType other) const {
  ValueType type;
  type.kind = kind;
  type.dtype = dtype;
  type.element = std::make_shared<const ValueType>(std::move(other));
  return type;
}

std::string ValueType::to_string() const {
  switch (kind) {
    case Kind::kTensor:
      return std::string(tessera::to_string(dtype)) + (shape ? tessera::to_string(*shape) : "[?]");
    case Kind::kSequence: return "seq(" + element->to_string() + ")";
    case Kind::kOptional: return "opt(" + element->to_string() + ")";
    case Kind::kMap: {
      const std::string key(tessera::to_string(dtype));
      return "map(" + key + ", " + std::string(tessera::to_string(element->dtype)) + ")";
    }
  }
  return {};
}

bool operator==(const ValueType& a, const ValueType& b) {
  if (a.kind != b.kind) return false;
  if (a.dtype != b.dtype) return false;
  if (a.kind == ValueType::Kind::kTensor) return a.shape == b.shape;
  return *a.element == *b.element;
}

Result<ValueType> parse_value_type(std::string_view text) {
  TESSERA_ASSIGN(ValueType type, parse_type_prefix(text, 0));
  if (!text.empty()) return expected_in_type("the end of the text", text);
  return type;
}

}  // namespace tessera
