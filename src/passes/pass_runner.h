#pragma once

// Runs passes: times them, leaves out those that are disabled, infers and verifies after each that
// changed something.

#include <functional>
#include <span>

#include "passes/op_counts.h"
#include "passes/pass.h"

namespace tessera::passes {

// One pass over all its runs. Counts of operators are net, by qualified name, bodies included.
struct PassReport {
  std::string name;
  double ms = 0;
  bool changed = false;
  OpCounts added;
  OpCounts removed;
};

// Called after each run that changed something.
using OnChange = std::function<void(std::string_view pass, const ir::Module& module)>;

class PassRunner {
 public:
  // Both must outlive the runner.
  PassRunner(ir::Module& module, const PassOptions& options, OnChange on_change = {});

  // One run over all graphs; gives whether it changed something. Errors of the pass, of inference
  // or of the verifier name it.
  Result<bool> run(const Pass& pass);

  // All of them in order, again until a round changes nothing, at most `max_rounds` times.
  Status run_to_fixed_point(std::span<const Pass> passes, int max_rounds = 12);

  [[nodiscard]] const std::vector<PassReport>& reports() const {
    return reports_;
  }  // in order of the first run
  [[nodiscard]] const std::vector<Note>& notes() const { return context_.notes; }

 private:
  PassReport& report_of(std::string_view name);

  ir::Module& module_;
  PassContext context_;
  OnChange on_change_;
  std::vector<PassReport> reports_;
};

}  // namespace tessera::passes
