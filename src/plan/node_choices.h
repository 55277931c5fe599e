#pragma once

// What each node may do: run alone, or be a part of a cover. The choices of a cover's nodes form
// chains from its first node to its last, one node at a time, and options that agree so far share
// their choices; so which cover is meant shows step by step, between neighbours of the chain.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plan/choices.h"

namespace tessera::plan {

// One choice of a node: an option of the node alone, or a part of some options of covers.
struct NodeChoice {
  std::uint32_t device = 0;
  std::int32_t option = -1;  // of the node alone, or of the cover that ends here; else -1
  std::int32_t cover = -1;   // that ends here
  // Neighbours in the chain of a cover, by position; -1 where there is none.
  std::int64_t previous = -1;
  std::uint32_t previous_choice = 0;  // the one choice of the previous node that leads here
  std::int64_t next = -1;
  // Of the option, times the runs of the node, and its share of the load; a cover costs where it
  // ends.
  double cost_us = 0;
  // Values that the node itself reads or shows to others, no constants, with their forms.
  std::map<ir::ValueId, Form> reads;
  std::map<ir::ValueId, Form> makes;
  std::string name;
};

struct NodeChoices {
  std::vector<std::vector<NodeChoice>> nodes;  // per node of the graph
  // Per cover, per option, per node of the cover: its choice.
  std::vector<std::vector<std::vector<std::uint32_t>>> covers;
};

NodeChoices list_node_choices(const ir::Graph& graph, const Choices& choices, const Target& target);

}  // namespace tessera::plan
