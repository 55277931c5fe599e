#include "base/run_value.h"

#include <fmt/format.h>

namespace tessera {
namespace {

std::string found_text(const RunValue& value) {
  if (value.is_tensor())
    return fmt::format("{}[{}]", to_string(value.tensor.dtype()),
                       fmt::join(value.tensor.dims(), ", "));
  return value.kind == ValueType::Kind::kSequence ? "a sequence" : "an optional";
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
  if (!matches) return fmt::format("expected {}, found {}", type.to_string(), found_text(value));
  for (std::size_t i = 0; i < value.elements.size(); ++i)
    if (auto reason = type_mismatch(*type.element, value.elements[i]); !reason.empty())
      return fmt::format("element {}: {}", i, reason);
  return {};
}

}  // namespace tessera
