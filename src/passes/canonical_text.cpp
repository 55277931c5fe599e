#include "passes/canonical_text.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/text.h"

namespace tessera::passes {
namespace {

// A graph written anew from its outputs, with covers in the place of their nodes.
class Rewriter {
 public:
  Rewriter(const ir::Graph& from, const std::vector<const ir::Cover*>& covers) : from_(from) {
    for (const ir::Cover* cover : covers)
      for (const ir::NodeId node : cover->nodes) cover_of_[node] = cover;
  }

  ir::Graph run() {
    for (const ir::ValueId id : from_.inputs) {
      const ir::Value& value = from_.value(id);
      made_[id] = to_.add_input(value.name, value.type);
      to_.value(made_[id]).known = value.known;
    }
    for (const ir::ValueId id : from_.outputs) make(id);
    for (const ir::ValueId id : from_.outputs) to_.outputs.push_back(made_.at(id));
    for (const ir::Block& block : from_.blocks) copy_block(block);
    return std::move(to_);
  }

 private:
  // The nodes that make a value, from what they need to what they give.
  struct Unit {
    const ir::Node* first = nullptr;  // says which unit it is
    std::vector<const ir::Node*> nodes;
  };

  [[nodiscard]] Unit unit_of(ir::ValueId id) const {
    const ir::Node* node = from_.producer(id);
    TESSERA_CHECK(node != nullptr);
    const auto cover = cover_of_.find(node->id);
    if (cover == cover_of_.end()) return {node, {node}};
    Unit unit{cover->second->assembled.front().get(), {}};
    for (const auto& part : cover->second->assembled) unit.nodes.push_back(part.get());
    return unit;
  }

  // What a unit reads and does not make, in order of first use.
  static std::vector<ir::ValueId> needs(const Unit& unit) {
    std::vector<ir::ValueId> values;
    std::set<ir::ValueId> own;
    const auto add = [&](ir::ValueId id) {
      if (id != ir::kNoValue && !own.contains(id)) values.push_back(id);
    };
    for (const ir::Node* node : unit.nodes) {
      std::for_each(node->inputs.begin(), node->inputs.end(), add);
      for (const auto& captured : node->captures)
        std::for_each(captured.begin(), captured.end(), add);
      own.insert(node->outputs.begin(), node->outputs.end());
    }
    return values;
  }

  // Depth first with a stack of its own: chains of a thousand nodes are usual.
  void make(ir::ValueId wanted) {
    std::vector<ir::ValueId> stack = {wanted};
    while (!stack.empty()) {
      const ir::ValueId id = stack.back();
      if (made_.contains(id)) {
        stack.pop_back();
        continue;
      }
      const ir::Value& value = from_.value(id);
      if (value.kind == ir::ValueKind::kConstant) {
        make_constant(value);
        continue;
      }
      if (from_.producer(id) == nullptr) {  // an argument of a body
        made_[id] = to_.add_argument(value.name, value.type, value.block);
        to_.value(made_[id]).known = value.known;
        continue;
      }
      const Unit unit = unit_of(id);
      const std::vector<ir::ValueId> reads = needs(unit);
      // Missing ones are pushed so that the first of them comes first.
      const std::size_t before = stack.size();
      for (auto need = reads.rbegin(); need != reads.rend(); ++need)
        if (!made_.contains(*need)) stack.push_back(*need);
      if (stack.size() == before) write(unit);
    }
  }

  // Equal constants are one.
  void make_constant(const ir::Value& value) {
    const auto key = std::pair(value.type.to_string(), value.constant.content_hash().to_string());
    const auto [entry, is_new] = constants_.emplace(key, ir::kNoValue);
    if (is_new) {
      entry->second = to_.add_constant(value.name, value.constant);
      to_.value(entry->second).known = value.known;
    }
    made_[value.id] = entry->second;
  }

  // A body of a flattened graph; what nobody needs of it is left out.
  void copy_block(const ir::Block& from) {
    ir::Block& to = to_.blocks.emplace_back(from);
    const auto owner = nodes_.find(from.owner);
    to.owner = owner == nodes_.end() ? ir::kNoNode : owner->second;
    for (auto* list : {&to.arguments, &to.results}) {
      for (ir::ValueId& id : *list) {
        const auto made = made_.find(id);
        id = made == made_.end() ? ir::kNoValue : made->second;
      }
    }
  }

  void write(const Unit& unit) {
    const auto place = [&](ir::ValueId id) {
      return id == ir::kNoValue ? ir::kNoValue : made_.at(id);
    };
    const auto places = [&](const std::vector<ir::ValueId>& ids) {
      std::vector<ir::ValueId> found;
      std::transform(ids.begin(), ids.end(), std::back_inserter(found), place);
      return found;
    };
    for (const ir::Node* node : unit.nodes) {
      ir::Node copy;
      copy.op = node->op;
      copy.name = to_.fresh_name(node->name);
      copy.attributes = node->attributes;
      copy.inputs = places(node->inputs);
      copy.origins = node->origins;
      copy.block = node->block;
      for (const auto& captured : node->captures) copy.captures.push_back(places(captured));
      for (const auto& body : node->bodies)
        copy.bodies.push_back(std::make_unique<ir::Graph>(Rewriter(*body, {}).run()));
      for (const ir::ValueId id : node->outputs) {
        if (id != ir::kNoValue) {
          const ir::Value& value = from_.value(id);
          made_[id] = to_.add_value(value.name, value.type);
          to_.value(made_[id]).known = value.known;
        }
        copy.outputs.push_back(place(id));
      }
      nodes_[node->id] = to_.add_node(std::move(copy)).id;
    }
  }

  const ir::Graph& from_;
  std::map<ir::NodeId, const ir::Cover*> cover_of_;
  std::map<ir::ValueId, ir::ValueId> made_;
  std::map<ir::NodeId, ir::NodeId> nodes_;
  std::map<std::pair<std::string, std::string>, ir::ValueId> constants_;  // by type and hash
  ir::Graph to_;
};

}  // namespace

std::vector<const ir::Cover*> largest_assembled(const std::vector<ir::Cover>& covers) {
  std::vector<const ir::Cover*> sorted;
  for (const ir::Cover& cover : covers)
    if (!cover.assembled.empty()) sorted.push_back(&cover);
  std::stable_sort(sorted.begin(), sorted.end(), [](const ir::Cover* a, const ir::Cover* b) {
    return a->nodes.size() > b->nodes.size();
  });
  std::vector<const ir::Cover*> chosen;
  std::set<ir::NodeId> taken;
  for (const ir::Cover* cover : sorted) {
    if (std::any_of(cover->nodes.begin(), cover->nodes.end(),
                    [&](ir::NodeId id) { return taken.contains(id); }))
      continue;
    taken.insert(cover->nodes.begin(), cover->nodes.end());
    chosen.push_back(cover);
  }
  return chosen;
}

ir::Module assembled_module(const ir::Module& module, const std::vector<ir::Cover>& covers) {
  ir::Module copy;
  copy.name = module.name;
  copy.symbols = module.symbols;
  copy.source_nodes = module.source_nodes;
  copy.metadata = module.metadata;
  for (std::size_t i = 0; i < module.methods.size(); ++i) {
    const ir::Method& from = module.methods[i];
    ir::Method& to = copy.methods.emplace_back();
    to.name = from.name;
    to.graph =
        Rewriter(from.graph, i == 0 ? largest_assembled(covers) : std::vector<const ir::Cover*>())
            .run();
    to.states = from.states;
    to.weight = from.weight;
  }
  return copy;
}

std::string canonical_text(const ir::Module& module, const std::vector<ir::Cover>& covers) {
  return ir::print(assembled_module(module, covers), {.canonical = true});
}

}  // namespace tessera::passes
