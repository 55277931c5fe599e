#include "compiler/cache_state.h"

#include <algorithm>
#include <set>

#include "base/checked.h"

namespace tessera::compiler {
namespace {

std::int64_t size_bytes(const ir::Value& value, const SymbolBindings& point) {
  if (!value.type.is_tensor() || !value.type.shape) return 0;
  const auto dims = evaluate(*value.type.shape, point);
  if (!dims) return 0;
  return checked_nbytes(value.type.dtype, *dims).value_or(0);
}

}  // namespace

std::int64_t touched_bytes(const ir::Graph& graph, const SymbolBindings& point) {
  std::set<ir::ValueId> constants;
  std::int64_t constant_bytes = 0;
  std::int64_t largest_bytes = 0;
  for (const auto& node : graph.nodes()) {
    std::int64_t bytes = 0;
    for (const auto* list : {&node->inputs, &node->outputs}) {
      for (const ir::ValueId id : *list) {
        if (id == ir::kNoValue) continue;
        const ir::Value& value = graph.value(id);
        if (value.kind != ir::ValueKind::kConstant)
          bytes += size_bytes(value, point);
        else if (constants.insert(id).second)
          constant_bytes += size_bytes(value, point);
      }
    }
    largest_bytes = std::max(largest_bytes, bytes);
  }
  return constant_bytes + largest_bytes;
}

plan::CacheState cache_state(std::int64_t touched_bytes, std::span<const CacheLevel> caches) {
  if (caches.empty() || touched_bytes > caches.back().size_bytes)
    return plan::CacheState::kStreamed;
  // The last level serves all cores; those before it are their own.
  const bool is_shared = caches.size() > 1 && touched_bytes > caches[caches.size() - 2].size_bytes;
  return is_shared ? plan::CacheState::kShared : plan::CacheState::kResident;
}

}  // namespace tessera::compiler
