#pragma once

// Values of a run that a planned buffer cannot hold: tensors whose size or rank only the run
// decides, strings, sequences, optionals,
// maps. In host memory; copies share tensor storage.

#include <string>
#include <string_view>
#include <vector>

#include "base/shape.h"
#include "base/tensor.h"

namespace tessera {

struct RunValue {
  ValueType::Kind kind = ValueType::Kind::kTensor;
  Tensor tensor;  // kTensor; undefined: no value at all
  // kSequence: all of them; kOptional: one, or none where empty; kMap: the keys and the values, two
  // tensors of rank 1 and one size.
  std::vector<RunValue> elements;

  static RunValue of(Tensor value) { return {ValueType::Kind::kTensor, std::move(value), {}}; }
  static RunValue sequence(std::vector<RunValue> values) {
    return {ValueType::Kind::kSequence, {}, std::move(values)};
  }
  static RunValue optional(std::vector<RunValue> content) {
    return {ValueType::Kind::kOptional, {}, std::move(content)};
  }
  // Both of rank 1 and one size: anything else is a bug of the caller.
  static RunValue map(Tensor keys, Tensor values);
  [[nodiscard]] bool is_tensor() const { return kind == ValueType::Kind::kTensor; }
};

// "a tensor", "a sequence", "an optional" or "a map".
std::string_view kind_text(ValueType::Kind kind);

// Why `value` is not of `type`, as "expected ..., found ..."; empty where it is. Sizes that are
// symbols match any size; an empty sequence matches every element type.
std::string type_mismatch(const ValueType& type, const RunValue& value);

}  // namespace tessera
