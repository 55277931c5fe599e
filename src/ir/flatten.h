#pragma once

// Bodies and the graph around them as one graph, so that one assignment places them all.
//
// The nodes of a body stand right before their If, Loop or Scan, each marked with its block. What a
// body captures it reads directly; its formal inputs are values without a producer, the arguments
// of the block. The control node itself has no bodies any more: its inputs are its own, padded with
// kNoValue to those that its operator names, and then the results of its blocks, in order.

#include "ir/ir.h"

namespace tessera::ir {

// What is assumed about how often bodies run.
struct FlattenOptions {
  double branch_share = 0.5;  // of the runs of an If that take the branch, for each of the two
  std::int64_t trips = 8;     // of a Loop or Scan whose number of iterations is not known
};

// A copy of the method with a flattened graph (constants share their storage). Names of the outer
// graph stay; those of bodies get a number where they are taken.
Method flatten(const Method& method, const FlattenOptions& options);

// Inputs of a control node of a flattened graph that come before the results of its blocks.
std::size_t own_input_count(const Graph& graph, const Node& control);

// The blocks of a control node of a flattened graph, in order.
std::vector<std::uint32_t> blocks_of(const Graph& graph, NodeId control);

}  // namespace tessera::ir
