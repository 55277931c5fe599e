#pragma once

// A reduction as the families of re-assembled operators judge it.

#include <string>
#include <vector>

#include "ir/ir.h"

namespace tessera::passes::reassemble {

struct Reduction {
  std::string reason;              // not empty: the axes cannot be told, and why
  std::vector<std::int64_t> axes;  // counted from the front, ascending, at least one
  bool keepdims = true;
  std::int64_t rank = 0;
  std::optional<std::int64_t> count;  // elements that are reduced to one, where they are known

  [[nodiscard]] bool is_trailing() const;  // the last axes, without a gap
  // Why a sum times `factor` is no mean; empty where it is one.
  [[nodiscard]] std::string mean_reason(double factor, const ir::Node& node, DType dtype) const;
};

// Of ReduceMean, ReduceSum, ReduceMax: axes from input 1.
Reduction read_reduction(const ir::Graph& graph, const ir::Node& node);

std::string to_string(const std::vector<std::int64_t>& axes);

}  // namespace tessera::passes::reassemble
