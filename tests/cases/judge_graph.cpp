#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "cases/judges.h"
#include "import/import.h"
#include "ir/infer.h"
#include "passes/pipeline.h"
#include "passes/propose_covers.h"

namespace tessera::testing {
namespace {

using Names = std::set<std::string>;

// The module as it was read, and as the simplify and fuse stages leave it.
struct Graphs {
  ir::Module imported;
  ir::Module optimised;
  std::vector<ir::Cover> covers;
};

Result<Graphs> make_graphs(const std::filesystem::path& model) {
  Graphs graphs;
  TESSERA_ASSIGN(graphs.imported, importer::import_file(model));
  TESSERA_ASSIGN(graphs.optimised, importer::import_file(model));
  TESSERA_TRY(ir::infer(graphs.optimised).map([](const auto&) {}));
  TESSERA_TRY(passes::simplify(graphs.optimised).map([](const auto&) {}));
  std::vector<passes::Note> notes;
  graphs.covers =
      passes::propose_covers(graphs.optimised, graphs.optimised.methods.front().graph, notes);
  return graphs;
}

void visit_nodes(const ir::Graph& graph, const std::function<void(const ir::Node&)>& visit) {
  for (const auto& node : graph.nodes()) {
    visit(*node);
    for (const auto& body : node->bodies) visit_nodes(*body, visit);
  }
}

void visit_nodes(const ir::Module& module, const std::function<void(const ir::Node&)>& visit) {
  for (const ir::Method& method : module.methods) visit_nodes(method.graph, visit);
}

std::string plain_name(const ops::OpSchema& op) {
  return std::string(op.name);
}

Names operators_of(const ir::Module& module) {
  Names names;
  visit_nodes(module, [&](const ir::Node& node) { names.insert(plain_name(*node.op)); });
  return names;
}

Names origins_of(const ir::Module& module, const ir::Node& node) {
  Names names;
  for (const ir::OriginId origin : node.origins) names.insert(module.source_nodes[origin].name);
  return names;
}

// Operators of the optimised graph, and those that its covers re-assemble.
Names fused_operators(const Graphs& graphs) {
  Names names = operators_of(graphs.optimised);
  for (const ir::Cover& cover : graphs.covers) {
    names.insert(cover.pattern);
    for (const auto& node : cover.assembled) names.insert(plain_name(*node->op));
  }
  return names;
}

std::string listed(const Names& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

// ---- Quantised groups
// ----------------------------------------------------------------------------------------

// An operator between DequantizeLinear and QuantizeLinear nodes, by the names of its source nodes.
struct QdqGroup {
  std::string node;
  Names dequantizes;
  Names quantizes;
};

bool is_named(const ir::Node* node, const char* op) {
  return node != nullptr && node->op->name == op;
}

// Names of the producers or readers of a node that are of one operator.
Names neighbours(const ir::Module& module, const ir::Graph& graph, const ir::Node& node,
                 bool producers) {
  Names names;
  const auto add = [&](const ir::Node* other, const char* op) {
    if (is_named(other, op)) names.merge(origins_of(module, *other));
  };
  if (producers) {
    for (const ir::ValueId id : node.inputs)
      if (id != ir::kNoValue) add(graph.producer(id), "DequantizeLinear");
  } else {
    for (const ir::ValueId id : node.outputs)
      if (id != ir::kNoValue)
        for (const auto& use : graph.uses(id)) add(use.node, "QuantizeLinear");
  }
  return names;
}

std::vector<QdqGroup> qdq_groups(const ir::Module& module) {
  std::vector<QdqGroup> groups;
  const ir::Graph& graph = module.methods.front().graph;
  for (const auto& node : graph.nodes()) {
    QdqGroup group{*origins_of(module, *node).begin(), neighbours(module, graph, *node, true),
                   neighbours(module, graph, *node, false)};
    if (!group.dequantizes.empty() && !group.quantizes.empty()) groups.push_back(std::move(group));
  }
  return groups;
}

bool shares(const Names& a, const Names& b) {
  return std::ranges::any_of(a, [&](const std::string& name) { return b.contains(name); });
}

// A group is intact where its operator still stands between the same nodes, or where one node has
// taken the place of them all, or where nothing of it is left.
std::string group_problem(const ir::Module& module, const QdqGroup& group) {
  const ir::Graph& graph = module.methods.front().graph;
  for (const auto& node : graph.nodes()) {
    const Names origins = origins_of(module, *node);
    if (!origins.contains(group.node)) continue;
    if (shares(origins, group.dequantizes) && shares(origins, group.quantizes)) return {};
    if (shares(neighbours(module, graph, *node, true), group.dequantizes) &&
        shares(neighbours(module, graph, *node, false), group.quantizes))
      return {};
    return fmt::format("'{}' no longer stands between {} and {}", group.node,
                       listed(group.dequantizes), listed(group.quantizes));
  }
  return {};
}

std::string qdq_problem(const Graphs& graphs) {
  std::string text;
  const auto groups = qdq_groups(graphs.imported);
  if (groups.empty()) return "the model has no quantised groups";
  for (const QdqGroup& group : groups) {
    const std::string problem = group_problem(graphs.optimised, group);
    if (!problem.empty()) text += (text.empty() ? "" : "; ") + problem;
  }
  return text;
}

// ---- Names, ranks, captures
// ----------------------------------------------------------------------------------

std::string still_there(const Case& tested, const std::string& key, const Names& present) {
  std::string text;
  for (const std::string name : tested.expect.at(key))
    if (present.contains(name)) text += fmt::format("{}{}", text.empty() ? "" : ", ", name);
  return text.empty() ? "" : text + " is there";
}

std::string missing_fusions(const Case& tested, const Graphs& graphs) {
  const Names present = fused_operators(graphs);
  std::string text;
  for (const std::string name : tested.expect.at("fused_ops_expected"))
    if (!present.contains(name)) text += fmt::format("{}{}", text.empty() ? "" : ", ", name);
  return text.empty() ? "" : fmt::format("no {} among {}", text, listed(present));
}

std::string rank_problem(const Case& tested, const ir::Module& module) {
  const ir::Graph& graph = module.methods.front().graph;
  std::string text;
  for (const auto& [name, rank] : tested.expect.at("min_rank_known").items()) {
    const auto output = std::ranges::find_if(graph.outputs, [&, wanted = name](ir::ValueId id) {
      return graph.value(id).name == wanted;
    });
    if (output == graph.outputs.end()) {
      text += fmt::format("no output '{}'", name);
      continue;
    }
    const auto& shape = graph.value(*output).type.shape;
    if (!shape || shape->size() < rank.get<std::size_t>())
      text += fmt::format("'{}' is {}", name, graph.value(*output).type.to_string());
  }
  return text;
}

std::string captures_problem(const ir::Module& module, const std::string& name,
                             const Names& expected) {
  Names found;
  bool there = false;
  const ir::Graph& graph = module.methods.front().graph;
  for (const auto& node : graph.nodes()) {
    if (!origins_of(module, *node).contains(name)) continue;
    there = true;
    for (const auto& list : node->captures)
      for (const ir::ValueId id : list)
        if (graph.value(id).kind != ir::ValueKind::kConstant) found.insert(graph.value(id).name);
  }
  if (!there) return fmt::format("no node '{}'", name);
  return found == expected ? ""
                           : fmt::format("expected {}, found {}", listed(expected), listed(found));
}

void judge_captures(const Case& tested, const ir::Module& module, Verdicts& verdicts) {
  const std::string prefix = "captures_of_";
  for (const auto& [key, value] : tested.partition()->items())
    if (key.starts_with(prefix))
      verdicts.judge("partition." + key,
                     captures_problem(module, key.substr(prefix.size()), value.get<Names>()));
}

bool is_of_graph(const std::string& key) {
  static const Names keys = {"fused_ops_expected",    "fused_ops_forbidden", "absent_ops_expected",
                             "absent_nodes_expected", "qdq_groups_intact",   "min_rank_known"};
  return keys.contains(key) || key.starts_with("partition.captures_of_");
}

Names nodes_of(const ir::Module& module) {
  Names names;
  visit_nodes(module, [&](const ir::Node& node) { names.merge(origins_of(module, node)); });
  return names;
}

}  // namespace

void judge_graph(const Case& tested, Verdicts& verdicts) {
  std::vector<std::string> keys = keys_of(tested);
  std::erase_if(keys, [](const std::string& key) { return !is_of_graph(key); });
  if (keys.empty()) return;
  const auto graphs = make_graphs(tested.steps.front().model);
  if (!graphs) {
    for (const std::string& key : keys)
      verdicts.judge(key, "no graph: " + graphs.error().to_string());
    return;
  }
  if (tested.has("fused_ops_expected"))
    verdicts.judge("fused_ops_expected", missing_fusions(tested, *graphs));
  if (tested.has("fused_ops_forbidden"))
    verdicts.judge("fused_ops_forbidden",
                   still_there(tested, "fused_ops_forbidden", fused_operators(*graphs)));
  if (tested.has("absent_ops_expected"))
    verdicts.judge("absent_ops_expected",
                   still_there(tested, "absent_ops_expected", operators_of(graphs->optimised)));
  if (tested.has("absent_nodes_expected"))
    verdicts.judge("absent_nodes_expected",
                   still_there(tested, "absent_nodes_expected", nodes_of(graphs->optimised)));
  if (tested.has("qdq_groups_intact")) verdicts.judge("qdq_groups_intact", qdq_problem(*graphs));
  if (tested.has("min_rank_known"))
    verdicts.judge("min_rank_known", rank_problem(tested, graphs->optimised));
  if (tested.partition() != nullptr) judge_captures(tested, graphs->imported, verdicts);
}

}  // namespace tessera::testing
