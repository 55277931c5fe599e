#pragma once

// Names while a graph is built: what a name means, and how a value of an outer graph gets into a
// body.

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "import/attributes.h"
#include "import/budget.h"
#include "import/opset_imports.h"
#include "ir/ir.h"

namespace tessera::importer {

// One graph of the IR under construction.
struct GraphContext {
  // What its values take comes out of the budget, which outlives it.
  GraphContext(ir::Graph& built, ImportBudget& budget) : graph(&built), budget_(&budget) {}

  ir::Graph* graph;
  GraphContext* parent = nullptr;            // of the node that this graph is a body of
  std::vector<ir::ValueId> capture_sources;  // values of the parent, one for each capture, in order
  std::map<ir::ValueId, ir::ValueId> captured;  // value of the parent → value here

  // Names that the model gives in this graph; made-up ones stay clear of them.
  void reserve_value_name(std::string name) { value_names_.insert(std::move(name)); }
  // `stem`, or with a number after it what nobody else bears.
  std::string unique_value_name(const std::string& stem) {
    return unique(stem, value_names_, value_counters_);
  }
  std::string unique_node_name(const std::string& stem) {
    return unique(stem, node_names_, node_counters_);
  }

  // Errors: the budget.
  Result<ir::ValueId> add_input(std::string name, ValueType type);
  Result<ir::ValueId> add_constant(std::string name, Tensor tensor);

  // The value here for `id` of `source`, which is this graph or one around it. A constant is copied
  // in (sharing its elements): inference and folding then see it; any other value becomes an input
  // after the formal ones, on the way down as well.
  Result<ir::ValueId> capture(GraphContext& source, ir::ValueId id);

 private:
  using Names = std::set<std::string, std::less<>>;
  using Counters = std::map<std::string, std::size_t, std::less<>>;
  static std::string unique(const std::string& stem, Names& names, Counters& counters);
  ImportBudget* budget_;
  Names value_names_;
  Names node_names_;
  Counters value_counters_;
  Counters node_counters_;
};

// One list of names: that of a graph, or that of a local function that is being expanded into one.
struct Scope {
  GraphContext* context = nullptr;
  Scope* outer = nullptr;  // the scope around a body; functions see none
  const OpsetImports* opsets = nullptr;
  const BoundAttributes* attributes = nullptr;  // of the call; null outside of functions
  std::string node_prefix;   // of node names: "call/"; empty outside of functions
  std::string value_prefix;  // of value names; empty where the graph is this scope's own
  int call_depth = 0;
  std::map<std::string, std::string, std::less<>> renames;  // value names that the caller wants
  std::map<std::string, ir::ValueId, std::less<>> names;  // kNoValue: an input that the call omits
  std::map<std::string, ValueType, std::less<>> hints;    // declared types
  std::map<std::string, ir::OriginId, std::less<>>
      aliases;  // names that mean a value of another name, and whose work that is

  // The value in context->graph that `name` means, captured if need be; kNoValue for an omitted
  // input of a function; nothing where nobody makes it.
  Result<std::optional<ir::ValueId>> find(std::string_view name);

  // The name in the IR of a value that this scope defines.
  std::string value_name(const std::string& name);
};

}  // namespace tessera::importer
