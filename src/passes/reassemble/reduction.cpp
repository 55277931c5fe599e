#include "passes/reassemble/reduction.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "passes/reassemble/expected_number.h"
#include "passes/rewrite.h"

namespace tessera::passes::reassemble {

bool Reduction::is_trailing() const {
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != rank - static_cast<std::int64_t>(axes.size() - i)) return false;
  return true;
}

std::string Reduction::mean_reason(double factor, const ir::Node& node, DType dtype) const {
  if (!count)
    return fmt::format("'{}' sums over sizes that are no numbers: the divisor cannot be checked",
                       node.name);
  if (is_close(factor * static_cast<double>(*count), 1, dtype)) return {};
  return fmt::format("the sum '{}' over {} elements is multiplied by {:.7g}: no mean", node.name,
                     *count, factor);
}

Reduction read_reduction(const ir::Graph& graph, const ir::Node& node) {
  Reduction reduction;
  reduction.keepdims = node.attributes.get_int("keepdims", 1) != 0;
  const auto& shape = graph.value(node.inputs[0]).type.shape;
  if (!shape || shape->empty()) {
    reduction.reason =
        fmt::format("the rank of '{}' is unknown or 0", graph.value(node.inputs[0]).name);
    return reduction;
  }
  reduction.rank = static_cast<std::int64_t>(shape->size());
  const ir::ValueId axes = input_of(node, 1);
  const Tensor* constant = constant_of(graph, axes);
  if (axes != ir::kNoValue && constant == nullptr) {
    reduction.reason = fmt::format("the axes of '{}' are computed", node.name);
    return reduction;
  }
  if (constant != nullptr) reduction.axes = to_int64_vector(constant->view());
  for (std::int64_t& axis : reduction.axes) axis += axis < 0 ? reduction.rank : 0;
  if (reduction.axes.empty()) {
    if (node.attributes.get_int("noop_with_empty_axes", 0) != 0)
      reduction.reason = fmt::format("'{}' reduces nothing", node.name);
    for (std::int64_t axis = 0; axis < reduction.rank; ++axis) reduction.axes.push_back(axis);
  }
  std::sort(reduction.axes.begin(), reduction.axes.end());
  std::int64_t count = 1;
  bool known = true;
  for (const std::int64_t axis : reduction.axes) {
    const auto size = (*shape)[static_cast<std::size_t>(axis)].constant();
    known = known && size.has_value();
    count *= size.value_or(1);
  }
  if (known) reduction.count = count;
  return reduction;
}

std::string to_string(const std::vector<std::int64_t>& axes) {
  return fmt::format("[{}]", fmt::join(axes, ", "));
}

}  // namespace tessera::passes::reassemble
