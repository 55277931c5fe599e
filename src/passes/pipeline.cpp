#include "passes/pipeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "passes/eliminate_common_subexpressions.h"
#include "passes/eliminate_dead_code.h"
#include "passes/eliminate_no_ops.h"
#include "passes/fold_batch_normalization.h"
#include "passes/fold_constants.h"
#include "passes/fold_known_shapes.h"
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
    {"eliminate_dead_code", eliminate_dead_code, "last: sweeps up what the others left"},
};

}  // namespace

std::span<const Pass> simplify_passes() {
  return kSimplify;
}

Result<SimplifyResult> simplify(ir::Module& module, const PassOptions& options,
                                OnChange on_change) {
  for (const std::string& name : options.disabled) {
    if (std::none_of(std::begin(kSimplify), std::end(kSimplify),
                     [&](const Pass& pass) { return pass.name == name; })) {
      std::string known;
      for (const Pass& pass : kSimplify) {
        if (!known.empty()) known += ", ";
        known += pass.name;
      }
      return fail(ErrorCode::kNotFound,
                  fmt::format("no pass is named '{}' (there are {})", name, known));
    }
  }
  PassRunner runner(module, options, std::move(on_change));
  TESSERA_TRY(runner.run_to_fixed_point(kSimplify));
  return SimplifyResult{runner.reports(), runner.notes()};
}

}  // namespace tessera::passes
