#include "passes/canonicalize_attributes.h"

#include <array>
#include <utility>

namespace tessera::passes {
namespace {

constexpr std::array<std::pair<const char*, std::int64_t>, 10> kDefaults = {{
    {"allowzero", 0},
    {"ceil_mode", 0},
    {"count_include_pad", 0},
    {"group", 1},
    {"keepdims", 1},
    {"noop_with_empty_axes", 0},
    {"select_last_index", 0},
    {"storage_order", 0},
    {"transA", 0},
    {"transB", 0},
}};

}  // namespace

Result<bool> canonicalize_attributes(PassContext& /*context*/, ir::Graph& graph) {
  bool changed = false;
  for (const auto& node : graph.nodes()) {
    if (!node->op->domain.empty()) continue;
    for (const auto& entry : kDefaults) {
      const auto* found = node->attributes.find(entry.first);
      const auto* number = found == nullptr ? nullptr : std::get_if<std::int64_t>(found);
      if (number == nullptr || *number != entry.second) continue;
      node->attributes.erase(entry.first);
      changed = true;
    }
  }
  return changed;
}

}  // namespace tessera::passes
