#pragma once

// What the families of re-assembled operators share: the graph, the check that a match is closed,
// and making the covers.

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "passes/cover_builder.h"
#include "passes/pass.h"
#include "passes/reassemble/pattern.h"

namespace tessera::passes::reassemble {

// Nodes that compute something together, before it is known whether they may be one operator.
struct Candidate {
  std::string pattern;                 // as the operator is called
  std::vector<const ir::Node*> nodes;  // any order, each at least once
  std::vector<ir::ValueId> outputs;    // the result last
};

// The nodes of a re-assembly, from the first operand that is brought into order to the operator.
class Program {
 public:
  Program(ir::Module& module, ir::Graph& graph, const Candidate& candidate);

  ir::ValueId constant(std::string_view stem, Tensor tensor);
  // Another node; gives its result, or kNoValue once something failed.
  ir::ValueId step(std::string_view type, ops::Attributes attributes,
                   std::vector<ir::ValueId> inputs);
  // The last node, which makes the outputs of the candidate. False where it would make other shapes
  // or types, or its operands do not fit it: `reason` says why.
  bool finish(std::string_view domain, std::string_view type, ops::Attributes attributes,
              std::vector<ir::ValueId> inputs);

  [[nodiscard]] const std::string& reason() const { return reason_; }
  std::vector<std::shared_ptr<const ir::Node>> take() { return std::move(nodes_); }

 private:
  std::shared_ptr<ir::Node> make_node(std::string_view domain, std::string_view type,
                                      ops::Attributes attributes, std::vector<ir::ValueId> inputs);
  bool infer(ir::Node& node);

  ir::Module& module_;
  ir::Graph& graph_;
  const Candidate& candidate_;
  std::string name_;
  std::vector<ir::OriginId> origins_;
  std::uint32_t block_ = 0;
  std::vector<std::shared_ptr<const ir::Node>> nodes_;
  std::string reason_;
};

class Assembler {
 public:
  Assembler(ir::Module& module, ir::Graph& graph, CoverList& covers, std::vector<Note>& notes);

  [[nodiscard]] ir::Graph& graph() { return graph_; }
  [[nodiscard]] const ir::Graph& graph() const { return graph_; }
  [[nodiscard]] const CoverGraph& view() const { return view_; }
  [[nodiscard]] const ValueType& type(ir::ValueId id) const { return graph_.value(id).type; }
  [[nodiscard]] std::string quoted(ir::ValueId id) const {
    return "'" + graph_.value(id).name + "'";
  }

  // Why the nodes cannot be replaced together: a value inside is read outside, or is an output of
  // the graph. Empty where they can.
  [[nodiscard]] std::string open_reason(const Candidate& candidate) const;

  // A near miss, unless one of more nodes holds all of these.
  void note(const Candidate& candidate, std::string reason);

  [[nodiscard]] Program program(const Candidate& candidate) { return {module_, graph_, candidate}; }
  // Adds the cover, or a note where the program was not finished.
  bool add(const Candidate& candidate, Program& program);
  // A cover that bears no operator: its nodes run as they are.
  void add_plain(const Candidate& candidate);

  // The node stands inside of a cover of that pattern already.
  [[nodiscard]] bool is_taken(std::string_view pattern, const ir::Node& node) const {
    return taken_.contains({std::string(pattern), node.id});
  }

 private:
  std::vector<ir::NodeId> sorted_ids(const Candidate& candidate) const;
  void take(const Candidate& candidate);

  ir::Module& module_;
  ir::Graph& graph_;
  const CoverGraph& view_;
  CoverList& covers_;
  std::vector<Note>& notes_;
  std::set<std::pair<std::string, ir::NodeId>> taken_;
  std::vector<std::set<ir::NodeId>> noted_;
};

// One operator with one spelling or more, of which each match is judged by `check` and built by
// `build`. Nodes are tried from the last to the first, so that the longest match comes first.
struct Family {
  std::string_view pattern;  // name of cover and notes
  std::string_view root;     // "Add|Mul": types of the node that makes the result
  std::vector<PatternPtr> spellings;
  // Why the match is none after all; empty where it holds. Nothing where the structure only looks
  // alike: no near miss.
  std::optional<std::string> (*check)(const Assembler& assembler, const Match& match,
                                      ir::ValueId result);
  void (*build)(Assembler& assembler, const Match& match, Program& program);
};
void propose(Assembler& assembler, const Family& family);

// The families, one file each: they propose everything that they find.
void propose_activations(Assembler& assembler);
void propose_normalizations(Assembler& assembler);
void propose_batch_normalizations(Assembler& assembler);
void propose_softmaxes(Assembler& assembler);
void propose_products(Assembler& assembler);
void propose_rotary_embeddings(Assembler& assembler);
void propose_attentions(Assembler& assembler);

}  // namespace tessera::passes::reassemble
