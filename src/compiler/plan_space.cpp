#include "compiler/plan_space.h"

#include "compiler/emit.h"

namespace tessera::compiler {

Result<solve::Solution> PlanSpace::solve(plan::AssignmentProblem problem) const {
  solve::SolveOptions options;
  options.node_limit = options_.node_limit;
  options.cancel = options_.cancel;
  return solve_in_order(graph(), planned_.choices, target_, problem, std::move(options));
}

Result<artefact::ProgramImage> PlanSpace::emit(const std::vector<std::uint32_t>& choice) const {
  CompileOptions quiet;  // nothing printed, to the end
  TESSERA_ASSIGN(const auto lowered,
                 lower_assignment(method_, planned_, plan::decode(planned_.problem, choice),
                                  target_, point_, quiet));
  artefact::ProgramImage image;
  TESSERA_TRY(Emitter(image, target_).emit("main", module_, method_, lowered, point_));
  return image;
}

}  // namespace tessera::compiler
