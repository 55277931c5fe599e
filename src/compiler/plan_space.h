#pragma once

// All plans that a compilation could have chosen, for tools that compare the chosen one with
// others.

#include <cstdint>
#include <utility>
#include <vector>

#include "artefact/read/program_image.h"
#include "compiler/plan_method.h"

namespace tessera::compiler {

// Lent to CompileOptions::explore for the time of its call.
class PlanSpace {
 public:
  PlanSpace(const ir::Module& module, const ir::Method& method, plan::Target& target,
            const SymbolBindings& point, const Planned& planned, const CompileOptions& options)
      : module_(module),
        method_(method),
        target_(target),
        point_(point),
        planned_(planned),
        options_(options) {}

  [[nodiscard]] const ir::Module& module() const { return module_; }
  [[nodiscard]] const ir::Graph& graph() const { return method_.graph; }
  [[nodiscard]] const plan::Target& target() const { return target_; }
  [[nodiscard]] const Planned& planned() const { return planned_; }  // with the chosen plan

  // The cheapest plan of `problem`: that of planned(), in which the caller forbade choices by an
  // infinite cost. Errors: kFailedPrecondition where no plan is left; else see solve::solve.
  [[nodiscard]] Result<solve::Solution> solve(plan::AssignmentProblem problem) const;

  // Takes a solution of the problem through the rest of the compilation. The image has the one
  // plan "main", no manifest and no evidence. Errors: see lower_assignment and Emitter::emit.
  [[nodiscard]] Result<artefact::ProgramImage> emit(const std::vector<std::uint32_t>& choice) const;

 private:
  const ir::Module& module_;
  const ir::Method& method_;
  plan::Target& target_;
  const SymbolBindings& point_;
  const Planned& planned_;
  const CompileOptions& options_;
};

}  // namespace tessera::compiler
