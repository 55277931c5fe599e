#pragma once

// Shapes whose sizes may be symbolic, and the types of values.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dim_expr.h"
#include "base/dims.h"

namespace tessera {

using Shape = std::vector<Dim>;

std::string to_string(const Shape& shape);              // "[batch, 3, 2*h]"
std::optional<Dims> constant_dims(const Shape& shape);  // where no size holds a symbol
Shape to_shape(const Dims& dims);
Result<Dims> evaluate(const Shape& shape,
                      const SymbolBindings& bindings);  // an error names the index of the dim

// Multidirectional (numpy) broadcasting, right-aligned. An error names both shapes.
Result<Shape> broadcast_shapes(const Shape& a, const Shape& b);
Result<Dims> broadcast_dims(const Dims& a, const Dims& b);

// The type of a value: a tensor (dtype, shape or unknown rank), a sequence or an optional of
// something, or a map from keys of one dtype to single elements of one dtype.
struct ValueType {
  enum class Kind : std::uint8_t { kTensor, kSequence, kOptional, kMap };
  Kind kind = Kind::kTensor;
  DType dtype = DType::kUndefined;           // of a tensor's elements, of a map's keys
  std::optional<Shape> shape;                // tensors only; nothing: unknown rank
  std::shared_ptr<const ValueType> element;  // none of tensors; of maps a scalar

  static ValueType tensor(DType dtype, std::optional<Shape> shape);
  static ValueType sequence(ValueType element);
  static ValueType optional(ValueType element);
  static ValueType map(DType key, DType value);
  // The same around another element: of sequences, optionals and maps.
  [[nodiscard]] ValueType with_element(ValueType other) const;
  [[nodiscard]] bool is_tensor() const { return kind == Kind::kTensor; }
  // "fp32[batch, 3]", "fp32[?]" (unknown rank), "seq(fp32[2])", "opt(...)", "map(int64, fp32)"
  [[nodiscard]] std::string to_string() const;
  friend bool operator==(const ValueType& a, const ValueType& b);
};

Result<ValueType> parse_value_type(std::string_view text);

// An integer tensor of rank 0 or 1 whose elements are known as expressions: what shape arithmetic
// carries.
struct DimTensor {
  bool scalar = false;  // rank 0 (then one element), else rank 1
  std::vector<Dim> elements;
  friend bool operator==(const DimTensor&, const DimTensor&) = default;
};

}  // namespace tessera
