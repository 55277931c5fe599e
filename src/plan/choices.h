#pragma once

// The enumerate stage: what each device could do with each node and cover, at which price, or why
// not.

#include <map>
#include <string>
#include <vector>

#include "ir/cover.h"
#include "plan/price.h"
#include "plan/target.h"

namespace tessera::plan {

// The user's word on placement: which devices a node may use, by name of a source node.
struct PlacementRule {
  enum class Kind : std::uint8_t { kPermit, kForbid, kPin } kind = Kind::kPermit;
  std::string device;
  std::string glob;  // over source-node names, or "op:Type"
};

// One alternative of an item.
struct Option {
  std::uint32_t device = 0;
  backends::Candidate candidate;
  Price price;
};

// A node alone or a cover, with all its alternatives.
struct ItemOptions {
  ir::WorkItem item;
  std::vector<Option> options;  // by device, then in the device's order of preference
  std::map<std::uint32_t, std::string> refusals;  // per device that offers nothing
  std::vector<bool> permitted;                    // per device
};

struct Choices {
  std::vector<ItemOptions> nodes;  // parallel to graph.nodes()
  std::vector<ir::Cover> covers;
  std::vector<ItemOptions>
      cover_options;  // parallel to covers; those without an option stay, with their refusals
};

// Nodes that a device may not take though it offers to: its compiler failed.
struct Exclusion {
  std::string device;
  std::vector<ir::NodeId> nodes;  // of a node alone, or of a cover
  std::string reason;
};

// `graph` is flattened (ir/flatten.h); its control nodes have one option, the runtime on the host.
// Errors: a pin, permit or forbid that matches no node or names no device; a value whose size at
// the pricer's point overflows or is not known; a node that no device takes (each refusal listed).
Result<Choices> enumerate_choices(const ir::Module& module, const ir::Graph& graph,
                                  std::vector<ir::Cover> covers, Target& target,
                                  const std::vector<PlacementRule>& rules,
                                  const backends::OfferOptions& offer_options, Pricer& pricer,
                                  const std::vector<Exclusion>& excluded = {});

// The nodes of the graph that an item computes.
std::vector<ir::NodeId> item_nodes(const ir::WorkItem& item);

// The glob of a rule: over the source node's name, or "op:Type" over its type.
bool names_source(std::string_view glob, const ir::SourceNode& source);

}  // namespace tessera::plan
