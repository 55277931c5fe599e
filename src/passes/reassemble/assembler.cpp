#include "passes/reassemble/assembler.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/infer.h"
#include "ops/op_table.h"
#include "passes/rewrite.h"

namespace tessera::passes::reassemble {

// ---- Program ------------------------------------------------------------------------------------

Program::Program(ir::Module& module, ir::Graph& graph, const Candidate& candidate)
    : module_(module), graph_(graph), candidate_(candidate) {
  for (const ir::Node* node : candidate.nodes)
    origins_ = ir::merge_origins(origins_, node->origins);
  const ir::Node* last = graph.producer(candidate.outputs.back());
  TESSERA_CHECK(last != nullptr);
  name_ = last->name;
  block_ = last->block;
}

ir::ValueId Program::constant(std::string_view stem, Tensor tensor) {
  return graph_.add_constant(graph_.fresh_name(stem), std::move(tensor));
}

std::shared_ptr<ir::Node> Program::make_node(std::string_view domain, std::string_view type,
                                             ops::Attributes attributes,
                                             std::vector<ir::ValueId> inputs) {
  auto node = std::make_shared<ir::Node>();
  node->op = ops::find_op(domain, type);
  TESSERA_CHECK(node->op != nullptr);
  node->name = name_;
  node->attributes = std::move(attributes);
  node->inputs = std::move(inputs);
  while (!node->inputs.empty() && node->inputs.back() == ir::kNoValue) node->inputs.pop_back();
  node->origins = origins_;
  node->block = block_;
  return node;
}

bool Program::infer(ir::Node& node) {
  const Status inferred = ir::infer_node(module_, graph_, node);
  if (!inferred) reason_ = inferred.error().message;
  return inferred.has_value();
}

ir::ValueId Program::step(std::string_view type, ops::Attributes attributes,
                          std::vector<ir::ValueId> inputs) {
  if (!reason_.empty()) return ir::kNoValue;
  auto node = make_node("", type, std::move(attributes), std::move(inputs));
  const ir::ValueId result = graph_.add_value(graph_.fresh_name(name_ + "/operand"), {});
  node->outputs = {result};
  if (!infer(*node)) return ir::kNoValue;
  nodes_.push_back(std::move(node));
  return result;
}

bool Program::finish(std::string_view domain, std::string_view type, ops::Attributes attributes,
                     std::vector<ir::ValueId> inputs) {
  if (!reason_.empty()) return false;
  auto node = make_node(domain, type, std::move(attributes), std::move(inputs));
  // Inferred on values of its own, so that the graph's types are only compared.
  const std::size_t count = candidate_.outputs.size();
  for (std::size_t i = 0; i < count; ++i)
    node->outputs.push_back(graph_.add_value(graph_.fresh_name(name_ + "/result"), {}));
  if (!infer(*node)) return false;
  // The result is the operator's first output, the others follow.
  std::vector<ir::ValueId> outputs = {candidate_.outputs.back()};
  outputs.insert(outputs.end(), candidate_.outputs.begin(), candidate_.outputs.end() - 1);
  for (std::size_t i = 0; i < count; ++i) {
    const ValueType& made = graph_.value(node->outputs[i]).type;
    const ir::Value& wanted = graph_.value(outputs[i]);
    if (made == wanted.type) continue;
    reason_ = fmt::format("'{}' is {}, and {} would make {}", wanted.name, wanted.type.to_string(),
                          type, made.to_string());
    return false;
  }
  node->outputs = std::move(outputs);
  nodes_.push_back(std::move(node));
  return true;
}

// ---- Assembler ----------------------------------------------------------------------------------

Assembler::Assembler(ir::Module& module, ir::Graph& graph, CoverList& covers,
                     std::vector<Note>& notes)
    : module_(module), graph_(graph), view_(covers.graph()), covers_(covers), notes_(notes) {}

std::vector<ir::NodeId> Assembler::sorted_ids(const Candidate& candidate) const {
  std::vector<ir::NodeId> ids;
  for (const ir::Node* node : candidate.nodes) ids.push_back(node->id);
  std::sort(ids.begin(), ids.end(),
            [&](ir::NodeId a, ir::NodeId b) { return view_.position(a) < view_.position(b); });
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

std::string Assembler::open_reason(const Candidate& candidate) const {
  const std::vector<ir::NodeId> ids = sorted_ids(candidate);
  const std::uint32_t block = graph_.find_node(ids.back())->block;
  for (const ir::NodeId id : ids) {
    if (graph_.find_node(id)->block != block)
      return fmt::format("'{}' stands in another body", graph_.find_node(id)->name);
    for (const ir::ValueId value : graph_.find_node(id)->outputs) {
      const auto& outputs = candidate.outputs;
      if (value == ir::kNoValue ||
          std::find(outputs.begin(), outputs.end(), value) != outputs.end())
        continue;
      if (view_.uses().is_output(value))
        return fmt::format("intermediate {} is an output of the graph", quoted(value));
      for (const ir::Graph::Use& use : view_.uses().uses(value)) {
        if (std::find(ids.begin(), ids.end(), use.node->id) == ids.end())
          return fmt::format("shared intermediate {} is read by '{}'", quoted(value),
                             use.node->name);
      }
    }
  }
  return {};
}

void Assembler::note(const Candidate& candidate, std::string reason) {
  const std::vector<ir::NodeId> ids = sorted_ids(candidate);
  const bool is_part = std::any_of(noted_.begin(), noted_.end(), [&](const auto& noted) {
    return std::all_of(ids.begin(), ids.end(), [&](ir::NodeId id) { return noted.contains(id); });
  });
  if (is_part) return;
  noted_.emplace_back(ids.begin(), ids.end());
  std::vector<std::string> names;
  for (const ir::NodeId id : ids) names.push_back(graph_.find_node(id)->name);
  notes_.push_back({candidate.pattern, std::move(names), std::move(reason)});
}

void Assembler::take(const Candidate& candidate) {
  for (const ir::Node* node : candidate.nodes) taken_.emplace(candidate.pattern, node->id);
}

bool Assembler::add(const Candidate& candidate, Program& program) {
  if (!program.reason().empty()) {
    note(candidate, program.reason());
    return false;
  }
  covers_.add_assembled(candidate.pattern, sorted_ids(candidate), candidate.outputs,
                        program.take());
  take(candidate);
  return true;
}

void Assembler::add_plain(const Candidate& candidate) {
  covers_.add(candidate.pattern, sorted_ids(candidate), false);
  take(candidate);
}

// ---- Families -----------------------------------------------------------------------------------

namespace {

bool names_type(std::string_view types, std::string_view name) {
  while (!types.empty()) {
    const std::size_t end = std::min(types.find('|'), types.size());
    if (types.substr(0, end) == name) return true;
    types.remove_prefix(std::min(end + 1, types.size()));
  }
  return false;
}

// The first spelling that holds; near misses of the others are noted where none does.
void propose_at(Assembler& assembler, const Family& family, const ir::Node& node) {
  std::vector<std::pair<Candidate, std::string>> misses;
  for (const PatternPtr& spelling : family.spellings) {
    Match match;
    const ir::ValueId result = node.outputs[0];
    if (!matches(assembler.graph(), *spelling, result, match)) continue;
    const Candidate candidate{std::string(family.pattern), match.covered, {result}};
    const auto judged = family.check(assembler, match, result);
    if (!judged) continue;
    std::string reason = judged->empty() ? assembler.open_reason(candidate) : *judged;
    if (reason.empty()) {
      Program program = assembler.program(candidate);
      family.build(assembler, match, program);
      if (program.reason().empty()) {
        assembler.add(candidate, program);
        return;
      }
      reason = program.reason();
    }
    misses.emplace_back(candidate, std::move(reason));
  }
  if (!misses.empty()) assembler.note(misses.front().first, misses.front().second);
}

}  // namespace

void propose(Assembler& assembler, const Family& family) {
  const auto& nodes = assembler.graph().nodes();
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    if (!(*node)->op->domain.empty() || !names_type(family.root, (*node)->op->name) ||
        assembler.is_taken(family.pattern, **node) || !assembler.view().has_float_result(**node))
      continue;
    propose_at(assembler, family, **node);
  }
}

}  // namespace tessera::passes::reassemble
