#include "values.h"

#include <fmt/format.h>

namespace tessera::tools {

using Kind = ValueType::Kind;

void append_tensors(const std::string& name, const RunValue& value, io::NamedTensors& into) {
  if (value.is_tensor()) {
    into.emplace_back(name, value.tensor);
    return;
  }
  if (value.kind == Kind::kMap) {
    into.emplace_back(name + ".keys", value.elements[0].tensor);
    into.emplace_back(name + ".values", value.elements[1].tensor);
    return;
  }
  for (std::size_t i = 0; i < value.elements.size(); ++i)
    append_tensors(fmt::format("{}.{}", name, i), value.elements[i], into);
}

io::NamedTensors tensors_of(const NamedValues& values) {
  io::NamedTensors tensors;
  for (const auto& [name, value] : values) append_tensors(name, value, tensors);
  return tensors;
}

std::string describe(const RunValue& value) {
  if (value.is_tensor())
    return fmt::format("{}[{}]", to_string(value.tensor.dtype()), to_string(value.tensor.dims()));
  const auto size = value.kind == Kind::kMap
                        ? static_cast<std::size_t>(value.elements[0].tensor.numel())
                        : value.elements.size();
  return fmt::format("{} of {}", kind_text(value.kind), size);
}

}  // namespace tessera::tools
