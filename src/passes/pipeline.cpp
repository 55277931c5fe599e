#include "passes/pipeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "passes/canonicalize_attributes.h"
#include "passes/eliminate_common_subexpressions.h"
#include "passes/eliminate_dead_code.h"
#include "passes/eliminate_no_ops.h"
#include "passes/fold_batch_normalization.h"
#include "passes/fold_constants.h"
#include "passes/fold_known_shapes.h"
#include "passes/hoist_loop_invariants.h"
#include "passes/inline_constant_branches.h"
#include "passes/separate_dequantize.h"
#include "passes/simplify_algebra.h"
#include "passes/simplify_reshape.h"
#include "passes/simplify_transpose.h"

namespace tessera::passes {
namespace {

constexpr Pass kSimplify[] = {
    {"fold_constants", fold_constants,
     "constants first: the others read scalars, axes and weights from them"},
    {"fold_known_shapes", fold_known_shapes,
     "shape arithmetic over fixed sizes, which is not constant by itself"},
    {"inline_constant_branches", inline_constant_branches,
     "after the folds, which decide conditions; before all that looks at neighbours"},
    {"canonicalize_attributes", canonicalize_attributes,
     "one spelling of what nodes say, for the comparison of nodes that follows"},
    {"eliminate_common_subexpressions", eliminate_common_subexpressions,
     "after the folds, which make equal constants"},
    {"separate_dequantize", separate_dequantize,
     "after the merging of equal nodes, which leaves these apart"},
    {"eliminate_no_ops", eliminate_no_ops, "before what looks at neighbours"},
    {"simplify_algebra", simplify_algebra, "before what matches Mul and Add"},
    {"simplify_transpose", simplify_transpose, "makes Reshapes, so before simplify_reshape"},
    {"simplify_reshape", simplify_reshape,
     "joins the views of the model and those of simplify_transpose"},
    {"fold_batch_normalization", fold_batch_normalization,
     "needs its neighbours without no-ops between them"},
    {"hoist_loop_invariants", hoist_loop_invariants,
     "after all that makes bodies smaller, so that only real work moves"},
    {"eliminate_dead_code", eliminate_dead_code, "last: sweeps up what the others left"},
};

Result<const Pass*> find_pass(std::string_view name) {
  const auto found = std::ranges::find(kSimplify, name, &Pass::name);
  if (found != std::end(kSimplify)) return &*found;
  std::string known;
  for (const Pass& pass : kSimplify) {
    if (!known.empty()) known += ", ";
    known += pass.name;
  }
  return fail(ErrorCode::kNotFound,
              fmt::format("no pass is named '{}' (there are {})", name, known));
}

}  // namespace

std::span<const Pass> simplify_passes() {
  return kSimplify;
}

Result<SimplifyResult> simplify(ir::Module& module, const PassOptions& options,
                                OnChange on_change) {
  for (const std::string& name : options.disabled)
    TESSERA_TRY(find_pass(name).map([](const Pass*) {}));
  PassRunner runner(module, options, std::move(on_change));
  TESSERA_TRY(runner.run_to_fixed_point(kSimplify));
  return SimplifyResult{runner.reports(), runner.notes()};
}

Result<SimplifyResult> run_passes(ir::Module& module, std::span<const std::string> names,
                                  const PassOptions& options) {
  std::vector<const Pass*> passes;
  for (const std::string& name : names) {
    TESSERA_ASSIGN(const Pass* pass, find_pass(name));
    passes.push_back(pass);
  }
  PassRunner runner(module, options);
  for (const Pass* pass : passes) TESSERA_TRY(runner.run(*pass).map([](bool) {}));
  return SimplifyResult{runner.reports(), runner.notes()};
}

}  // namespace tessera::passes
