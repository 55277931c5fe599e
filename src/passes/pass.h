#pragma once

// What a pass is: one function over one graph. The list of all passes stands in pipeline.cpp, the
// runner in pass_runner.h.

#include <compare>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/ir.h"

namespace tessera::passes {

// Something that a pass or the fuse stage recognised but left alone, and why.
struct Note {
  std::string pattern;             // "fold_batch_normalization"
  std::vector<std::string> nodes;  // names in the graph
  std::string reason;
  friend auto operator<=>(const Note&, const Note&) = default;
};

struct PassOptions {
  std::set<std::string, std::less<>> disabled;  // names of passes that are left out
  std::int64_t fold_limit_bytes = std::int64_t{16}
                                  << 20;  // a folded constant is at most that large
  std::int64_t fold_weights_limit_bytes = std::int64_t{1}
                                          << 30;  // weights of a product or a convolution
  bool exact = false;  // nothing that may change a result by more than the sign of a zero
};

struct PassContext {
  const PassOptions& options;
  ir::Module& module;
  std::vector<Note> notes;    // in the order in which they came
  std::set<Note> noted = {};  // the same, to find them

  // Adds a note unless the same one stands there.
  void note(std::string_view pattern, std::vector<std::string> nodes, std::string reason);
};

// Changes `graph`, which belongs to context.module (a method's graph or a body; the runner visits
// all of them, inner ones first). Gives whether it changed something. An error means a bug of the
// pass or a model that cannot be right.
using PassFn = Result<bool> (*)(PassContext& context, ir::Graph& graph);

struct Pass {
  std::string_view name;
  PassFn run = nullptr;
  std::string_view reason;  // why it stands where it stands in the order
};

}  // namespace tessera::passes
