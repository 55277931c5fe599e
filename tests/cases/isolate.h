#pragma once

// Judges a case in a process of its own, so that a crash, an endless loop or a greed for memory is
// a finding about that case.

#include <functional>
#include <vector>

#include "cases/verdict.h"

namespace tessera::testing {

using Judge = std::function<std::vector<Verdict>()>;

// The verdicts of `judge`; where its process ends otherwise, a failure of the key "run" that says
// how. The process gets `seconds` of time and 8 GiB of memory. TESSERA_CASES_IN_PROCESS: judges
// right here, for a debugger.
std::vector<Verdict> judge_apart(const Judge& judge, int seconds = 300);

}  // namespace tessera::testing
