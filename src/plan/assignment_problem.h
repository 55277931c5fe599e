#pragma once

// The assignment problem of one graph: which kernel, on which device, in which layout and precision, alone or inside which cover,
// for every node. Built as a pairwise cost function network and read back from its solution.
//
// Variables:
//   node   one choice per option of the node alone; per option of each cover that it leads (its first node carries the cover's
//          choice, so that a chain of covers stays a star around its anchor); and one per (cover, device) that it could be inside
//   form   per value and form that somebody wants (or that a conversion passes through): absent, or the form that the producer
//          made, from which this one is converted; conversions from one produced form follow one fixed path, so chains end
// Pairs: the leader of a cover and its other nodes agree; a form's origin is what the producer made; a consumer's form is present;
// a conversion's previous step is present; neighbours in execution order pay synchronisation and launch where the device changes.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/choices.h"
#include "plan/conversions.h"
#include "solve/problem.h"

namespace tessera::plan {

// One choice of a node variable: the node alone (cover -1), the leader of `cover`, or inside of it (option -1).
struct NodeChoice {
  std::uint32_t device = 0;
  std::int32_t option = -1;  // of the node alone, or of the cover that it leads
  std::int32_t cover = -1;
};

struct FormVariable {
  ir::ValueId value = ir::kNoValue;
  Form form;
  std::uint32_t variable = 0;
  std::vector<Form> roots;     // choice k + 1 means: converted from roots[k] (which may be the form itself)
  std::vector<Form> previous;  // per root: the form of the step before; the root itself where there is none between
};

struct AssignmentProblem {
  solve::Problem problem;
  std::vector<std::uint32_t> node_variables;                 // per node
  std::vector<std::vector<NodeChoice>> node_choices;         // per node, per choice
  std::vector<std::size_t> leaders;                          // per cover: the position of its first node
  std::vector<FormVariable> forms;
  std::map<std::pair<ir::ValueId, Form>, std::size_t> form_index;
};

// What was decided.
struct Assignment {
  // Per node: its choice. Per cover: the option chosen, or -1.
  std::vector<NodeChoice> nodes;
  std::vector<std::int32_t> cover_option;
  // Made forms that the producer does not make itself: value, form, and the produced form that it comes from.
  struct MadeForm {
    ir::ValueId value;
    Form form;
    Form root;
  };
  std::vector<MadeForm> made;
};

AssignmentProblem build_assignment_problem(const ir::Graph& graph, const Choices& choices, const Target& target, Conversions& conversions);

Assignment decode(const AssignmentProblem& problem, const std::vector<std::uint32_t>& solution);

// Adds pairs that forbid choosing any two of `covers` together.
void forbid_together(AssignmentProblem& problem, const std::vector<std::uint32_t>& covers);

// What peers do: devices claim nodes in the order of a list (accelerators first, the CPU, the reference), with the largest cover
// that the device takes, and never ask what a crossing costs. A baseline, and the solver's first incumbent. Nothing where it
// meets a conversion that does not exist.
std::optional<std::vector<std::uint32_t>> greedy_by_priority(const ir::Graph& graph, const Choices& choices, const Target& target,
                                                             const AssignmentProblem& problem);

}  // namespace tessera::plan
