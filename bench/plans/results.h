#pragma once

// What the experiments found, for readers and for programs.

#include <string>
#include <vector>

#include "plans/experiment.h"

namespace tessera::bench {

// Groups, the noise, the fastest plans and what differs in the best of them, problems, the verdict.
std::string results_text(const ModelResult& result);

// Everything that was measured, all plans with their differences from the chosen one.
std::string results_json(const std::vector<ModelResult>& results, const Settings& settings);

}  // namespace tessera::bench
