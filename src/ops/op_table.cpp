#include "ops/op_table.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "ops/groups.h"

namespace tessera::ops {
namespace {

using GroupFn = std::vector<OpSchema> (*)();

#define TESSERA_LIST_GROUP(name) name,
constexpr GroupFn kGroups[] = {TESSERA_OP_GROUPS(TESSERA_LIST_GROUP)};
#undef TESSERA_LIST_GROUP

std::pair<std::string_view, std::string_view> key(const OpSchema& op) {
  return {op.domain, op.name};
}

const std::vector<OpSchema>& table() {
  static const std::vector<OpSchema> ops = [] {
    std::vector<OpSchema> all;
    for (const GroupFn group : kGroups) {
      for (OpSchema& op : group()) all.push_back(std::move(op));
    }
    std::sort(all.begin(), all.end(),
              [](const OpSchema& a, const OpSchema& b) { return key(a) < key(b); });
    const auto twice =
        std::adjacent_find(all.begin(), all.end(),
                           [](const OpSchema& a, const OpSchema& b) { return key(a) == key(b); });
    TESSERA_CHECK(twice == all.end());
    return all;
  }();
  return ops;
}

}  // namespace

const OpSchema* find_op(std::string_view domain, std::string_view name) {
  if (domain == "ai.onnx") domain = "";
  const std::pair wanted{domain, name};
  const auto& ops = table();
  const auto found =
      std::lower_bound(ops.begin(), ops.end(), wanted,
                       [](const OpSchema& op, const auto& value) { return key(op) < value; });
  return found != ops.end() && key(*found) == wanted ? &*found : nullptr;
}

std::span<const OpSchema> all_ops() {
  return table();
}

}  // namespace tessera::ops
