#pragma once

// A cover: nodes that one kernel could run together. Proposed by the fuse stage, decided by the
// assignment.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/ir.h"

namespace tessera::ir {

struct Cover {
  std::uint32_t id = 0;
  std::string pattern;        // "anchor_epilogue", "elementwise_group", ...
  std::vector<NodeId> nodes;  // in execution order; the anchor (if any) first
  bool has_anchor = false;
  std::vector<ValueId> inputs;   // read from outside, in order of first use, each once
  std::vector<ValueId> outputs;  // read outside or graph outputs; one in most patterns
  // Re-assembly: what the nodes compute together, as one operator; empty in other patterns. These
  // nodes stand in no graph. The last one bears the operator and makes the outputs; those before
  // it, mostly none, bring operands into its order (a view, a transpose), and what they make are
  // values of the graph that no node of the graph makes. `inputs` are theirs then.
  std::vector<std::shared_ptr<const Node>> assembled;
};

// What a backend prices and compiles: one node alone, or a cover.
struct WorkItem {
  const Module* module = nullptr;
  const Graph* graph = nullptr;
  // One, or the cover's, in execution order; of a re-assembly those that it is made of instead.
  // Which nodes of the graph a cover takes, Cover::nodes says.
  std::vector<const Node*> nodes;
  const Cover* cover = nullptr;  // null for a node alone
  std::vector<ValueId>
      inputs;  // distinct values read from outside, in order of first use (omitted inputs left out)
  std::vector<ValueId> outputs;  // for a node alone: its named outputs
  // Running it decides sizes, or it reads or makes what is no tensor of known rank
  // (ir/late_sizes.h).
  bool is_late = false;
  // A result gets memory of its own when it is made (LateSizes::allocated).
  bool is_loose = false;
  // Sizes that are assumed of values whose types tell no rank; null: of none.
  const std::map<ValueId, Dims>* assumed = nullptr;
};

WorkItem work_item(const Module& module, const Graph& graph, const Node& node);
WorkItem work_item(const Module& module, const Graph& graph, const Cover& cover);

}  // namespace tessera::ir
