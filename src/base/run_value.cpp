#include "base/run_value.h"

#include <fmt/format.h>

namespace tessera {

std::string_view kind_text(ValueType::Kind kind) {
  switch (kind) {
    case ValueType::Kind::kTensor: return "a tensor";
    case ValueType::Kind::kSequence: return "a sequence";
    case ValueType::Kind::kOptional: return "an optional";
    case ValueType::Kind::kMap: return "a map";
  }
  return "nothing";
}

RunValue RunValue::map(Tensor keys, Tensor values) {
  TESSERA_CHECK(keys.dims().size() == 1 && keys.dims() == values.dims());
  return {ValueType::Kind::kMap, {}, {of(std::move(keys)), of(std::move(values))}};
}

namespace {

std::string found_text(const RunValue& value) {
  if (value.is_tensor())
    return fmt::format("{}[{}]", to_string(value.tensor.dtype()),
                       fmt::join(value.tensor.dims(), ", "));
  if (value.kind == ValueType::Kind::kMap)
    return fmt::format("map({}, {})", to_string(value.elements[0].tensor.dtype()),
                       to_string(value.elements[1].tensor.dtype()));
  return std::string(kind_text(value.kind));
}

bool shape_matches(const Shape& shape, const Dims& dims) {
  if (shape.size() != dims.size()) return false;
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (shape[d].is_constant() && shape[d] != Dim(dims[d])) return false;
  return true;
}

}  // namespace

std::string type_mismatch(const ValueType& type, const RunValue& value) {
  bool matches = type.kind == value.kind;
  if (matches && type.is_tensor())
    matches = value.tensor.dtype() == type.dtype &&
              (!type.shape || shape_matches(*type.shape, value.tensor.dims()));
  if (matches && type.kind == ValueType::Kind::kMap)
    matches = value.elements[0].tensor.dtype() == type.dtype &&
              value.elements[1].tensor.dtype() == type.element->dtype;
  if (!matches) return fmt::format("expected {}, found {}", type.to_string(), found_text(value));
  if (type.kind == ValueType::Kind::kMap) return {};
  for (std::size_t i = 0; i < value.elements.size(); ++i)
    if (auto reason = type_mismatch(*type.element, value.elements[i]); !reason.empty())
      return fmt::format("element {}: {}", i, reason);
  return {};
}

}  // namespace tessera
