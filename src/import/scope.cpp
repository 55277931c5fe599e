#include "import/scope.h"

#include <utility>

#include "base/error.h"

namespace tessera::importer {

std::string GraphContext::unique(const std::string& stem, Names& names, Counters& counters) {
  if (names.insert(stem).second) return stem;
  std::size_t& counter = counters[stem];
  while (true) {
    std::string candidate = stem + "_" + std::to_string(++counter);
    if (names.insert(candidate).second) return candidate;
  }
}

Result<ir::ValueId> GraphContext::add_input(std::string name, ValueType type) {
  TESSERA_TRY(budget_->take(ImportBudget::Use::kValues, kValueBytes + kNameCopies * name.size()));
  return graph->add_input(std::move(name), std::move(type));
}

Result<ir::ValueId> GraphContext::add_constant(std::string name, Tensor tensor) {
  constexpr std::uint64_t kSizeBytes = 64;  // one size, as the tensor and its type have it
  TESSERA_TRY(budget_->take(
      ImportBudget::Use::kConstants,
      kConstantBytes + kNameCopies * name.size() + kSizeBytes * tensor.dims().size()));
  return graph->add_constant(std::move(name), std::move(tensor));
}

Result<ir::ValueId> GraphContext::capture(GraphContext& source, ir::ValueId id) {
  if (this == &source || id == ir::kNoValue) return id;
  TESSERA_CHECK(parent != nullptr);
  TESSERA_ASSIGN(const ir::ValueId outer, parent->capture(source, id));
  const auto known = captured.find(outer);
  if (known != captured.end()) return known->second;
  const ir::Value& value = parent->graph->value(outer);
  std::string name = unique_value_name(value.name);
  ir::ValueId inner = ir::kNoValue;
  if (value.kind == ir::ValueKind::kConstant) {
    TESSERA_ASSIGN(inner, add_constant(std::move(name), value.constant));
  } else {
    TESSERA_ASSIGN(inner, add_input(std::move(name), value.type));
    graph->value(inner).known = value.known;
    capture_sources.push_back(outer);
  }
  captured.emplace(outer, inner);
  return inner;
}

Result<std::optional<ir::ValueId>> Scope::find(std::string_view name) {
  const auto own = names.find(name);
  if (own != names.end()) return own->second;
  if (outer == nullptr) return std::nullopt;
  TESSERA_ASSIGN(const auto found, outer->find(name));
  if (!found) return std::nullopt;
  return context->capture(*outer->context, *found);
}

std::string Scope::value_name(const std::string& name) {
  const auto wanted = renames.find(name);
  if (wanted != renames.end()) return wanted->second;
  return value_prefix.empty() ? name : context->unique_value_name(value_prefix + name);
}

}  // namespace tessera::importer
