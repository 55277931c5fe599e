#pragma once

// The passes of the simplify stage, in order.

#include <span>
#include <string>

#include "passes/pass_runner.h"

namespace tessera::passes {

// Run to a fixed point. Adding a pass: one line there.
std::span<const Pass> simplify_passes();

struct SimplifyResult {
  std::vector<PassReport> passes;
  std::vector<Note> notes;
};

// The whole stage. Errors: an unknown name in options.disabled, or what a pass reports.
Result<SimplifyResult> simplify(ir::Module& module, const PassOptions& options = {},
                                OnChange on_change = {});

// The named passes alone, once each, in the order that is given. Errors as above.
Result<SimplifyResult> run_passes(ir::Module& module, std::span<const std::string> names,
                                  const PassOptions& options = {});

}  // namespace tessera::passes
