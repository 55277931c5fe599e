#pragma once

// For the tests of re-assembly: covers proposed, and the values of pieces and operators compared.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "passes/canonical_text.h"
#include "passes/propose_covers.h"
#include "testing/pass_testing.h"

namespace tessera::passes {

struct Assembled {
  std::string text;                 // brief() of the graph with the largest covers as operators
  std::vector<std::string> notes;   // "pattern: reason"
  std::vector<std::string> covers;  // patterns of the covers that bear an operator
};

// Proposes, compares the values of pieces and operators, and gives what came out.
inline Assembled assemble(const std::string& statements, double tolerance = 1e-5) {
  Assembled result;
  ir::Module module = testing::module_of(statements);
  if (module.methods.empty()) return result;
  testing::Random random(11);
  const std::vector<Tensor> inputs = testing::random_inputs(module.methods[0].graph, random);
  std::vector<Note> notes;
  const auto covers = propose_covers(module, module.methods[0].graph, notes);
  for (const Note& note : notes)
    if (note.pattern != "anchor_epilogue")
      result.notes.push_back(note.pattern + ": " + note.reason);
  for (const ir::Cover& cover : covers)
    if (!cover.assembled.empty()) result.covers.push_back(cover.pattern);
  const ir::Module made = assembled_module(module, covers);
  result.text = testing::brief(made.methods[0].graph);
  const auto pieces = testing::interpret(module.methods[0].graph, inputs);
  const auto whole = testing::interpret(made.methods[0].graph, inputs);
  EXPECT_TRUE(pieces) << pieces.error().to_string();
  EXPECT_TRUE(whole) << whole.error().to_string();
  if (!pieces || !whole) return result;
  for (std::size_t i = 0; i < pieces->size(); ++i)
    testing::expect_close((*whole)[i], (*pieces)[i], tolerance);
  return result;
}

}  // namespace tessera::passes
