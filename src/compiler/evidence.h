#pragma once

// Fills the report from what the planning stages found.

#include "compiler/plan_method.h"
#include "report/report.h"

namespace tessera::compiler {

// Everything but model, options, passes and near misses, which compile() knows.
void add_plan_evidence(const ir::Module& module, const ir::Method& method, const Planned& planned,
                       const plan::Target& target, const plan::Pricer& pricer,
                       report::Report& report);

}  // namespace tessera::compiler
