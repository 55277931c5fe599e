#pragma once

// The assignment problem of one graph: which kernel, on which device, in which layout and
// precision, alone or inside which cover, for every node. Built as a pairwise cost function network
// and read back from its solution.
//
// Variables:
//   node   one choice per option of the node alone, and per part of a cover that it could be
//          (plan/node_choices.h)
//   form   (values with several readers, or that are outputs and read) per value and form that
//   somebody wants (or that a conversion passes through): absent, or the form that the producer
//          made, from which this one is converted; conversions from one produced form follow one
//          fixed path, so chains end
// Pairs: neighbours in the chain of a cover agree; a value with one reader pays the
// conversion from what its producer makes to what the reader wants, without variables of its own; a
// form's origin is what the producer made; a consumer's form is present; a conversion's previous
// step is present; neighbours in execution order pay synchronisation and launch where the device
// changes.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/choices.h"
#include "plan/conversions.h"
#include "plan/node_choices.h"
#include "solve/problem.h"

namespace tessera::plan {

struct FormVariable {
  ir::ValueId value = ir::kNoValue;
  Form form;
  std::uint32_t variable = 0;
  std::vector<Form>
      roots;  // choice k + 1 means: converted from roots[k] (which may be the form itself)
  std::vector<Form> previous;  // per root: the form of the step before; the root itself where there
                               // is none between
};

// A value with one reader, or an output that nobody reads: its conversions are priced between two
// variables.
struct DirectValue {
  ir::ValueId value = ir::kNoValue;
  std::int64_t producer = -1;  // position; -1: an input of the graph
  std::int64_t reader = -1;    // position; -1: an output of the graph
  std::vector<std::optional<Form>>
      roots;  // per choice of the producer (one for an input): what it makes, if it shows it
  std::vector<std::optional<Form>>
      needs;  // per choice of the reader (one for an output): what it wants, if it reads the value
};

struct AssignmentProblem {
  solve::Problem problem;
  std::vector<std::uint32_t> node_variables;  // per node
  NodeChoices node_choices;
  std::vector<DirectValue> direct;
  std::vector<FormVariable> forms;
  std::map<std::pair<ir::ValueId, Form>, std::size_t> form_index;
};

// What was decided for a node: an option of its own, or a cover.
struct ChosenNode {
  std::uint32_t device = 0;
  std::int32_t option = -1;
  std::int32_t cover = -1;
};

// What was decided.
struct Assignment {
  std::vector<ChosenNode> nodes;
  std::vector<std::int32_t> cover_option;  // per cover: the option chosen, or -1
  // Made forms that the producer does not make itself: value, form, and the produced form that it
  // comes from.
  struct MadeForm {
    ir::ValueId value;
    Form form;
    Form root;
  };
  std::vector<MadeForm> made;
};

AssignmentProblem build_assignment_problem(const ir::Graph& graph, const Choices& choices,
                                           const Target& target, Conversions& conversions);

Assignment decode(const AssignmentProblem& problem, const std::vector<std::uint32_t>& solution);

// Adds pairs that forbid choosing any two of `covers` together.
void forbid_together(AssignmentProblem& problem, const std::vector<std::uint32_t>& covers);

// What peers do: devices claim nodes in the order of a list (accelerators first, the CPU, the
// reference), with the largest cover that the device takes, and never ask what a crossing costs. A
// baseline, and the solver's first incumbent. Nothing where it meets a conversion that does not
// exist.
std::optional<std::vector<std::uint32_t>> greedy_by_priority(const ir::Graph& graph,
                                                             const Choices& choices,
                                                             const Target& target,
                                                             const AssignmentProblem& problem);

}  // namespace tessera::plan
