#pragma once

// Imports of models that a test built. For tests that link tessera_import.

#include <string>

#include <gtest/gtest.h>

#include "import/import.h"
#include "testing/onnx_builder.h"

namespace tessera::testing {

inline Result<ir::Module> try_import(const OnnxModel& model,
                                     const importer::ImportOptions& options = {}) {
  return importer::import_bytes(bytes_of(model.serialize()), nullptr, options);
}

// The module; a failure of the test, and an empty module, where the import fails.
inline ir::Module import_model(const OnnxModel& model,
                               const importer::ImportOptions& options = {}) {
  auto module = try_import(model, options);
  if (module) return *std::move(module);
  ADD_FAILURE() << module.error().to_string();
  ir::Module empty;
  empty.methods.emplace_back();
  return empty;
}

// The text of the error that an import must give.
inline std::string import_error(const OnnxModel& model,
                                const importer::ImportOptions& options = {}) {
  const auto module = try_import(model, options);
  return module ? "no error" : module.error().to_string();
}

// "Conv(x, w, _) -> y" for each node, in order; names of values.
inline std::vector<std::string> describe_nodes(const ir::Graph& graph) {
  std::vector<std::string> lines;
  const auto names = [&](const std::vector<ir::ValueId>& ids) {
    std::string text;
    for (const ir::ValueId id : ids)
      text += (text.empty() ? "" : ", ") + (id == ir::kNoValue ? "_" : graph.value(id).name);
    return text;
  };
  for (const auto& node : graph.nodes()) {
    lines.push_back(node->op->qualified_name() + "(" + names(node->inputs) + ") -> " +
                    names(node->outputs));
  }
  return lines;
}

inline const ir::Value* find_value(const ir::Graph& graph, std::string_view name) {
  for (ir::ValueId id = 0; id < graph.value_count(); ++id) {
    if (graph.value(id).name == name) return &graph.value(id);
  }
  return nullptr;
}

// The type of a value as text, or "absent".
inline std::string type_of(const ir::Graph& graph, std::string_view name) {
  const ir::Value* value = find_value(graph, name);
  return value == nullptr ? "absent" : value->type.to_string();
}

}  // namespace tessera::testing
