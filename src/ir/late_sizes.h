#pragma once

// Which sizes of a flattened graph only the run decides.
//
// A size is known before a method runs where its symbols are sizes of inputs; before a body runs,
// those of its arguments and of everything computed so far around it as well. A node whose outputs
// hold another symbol decides it (NonZero, Reshape to a computed shape): its kernel must give its
// sizes.

#include <set>

#include "ir/ir.h"

namespace tessera::ir {

struct LateSizes {
  std::set<NodeId> nodes;    // decide sizes when they run, or hold what is no tensor of known rank
  std::set<ValueId> values;  // not known when the body that makes them starts; all those that late
                             // nodes and control flow make
  // Get memory of their own when they are made: `values`, and what bodies give.
  std::set<ValueId> allocated;
};

LateSizes find_late_sizes(const Graph& graph);

}  // namespace tessera::ir
