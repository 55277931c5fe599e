#include "passes/view_target.h"

namespace tessera::passes {

std::optional<std::vector<std::int64_t>> reshape_target(const Shape& shape) {
  std::vector<std::int64_t> target;
  int open = 0;
  for (const Dim& dim : shape) {
    const std::int64_t size = dim.constant().value_or(-1);
    open += size == -1 ? 1 : 0;
    if (size == 0 || open > 1) return std::nullopt;
    target.push_back(size);
  }
  return target;
}

}  // namespace tessera::passes
