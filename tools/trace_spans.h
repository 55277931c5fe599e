#pragma once

// A session's trace in the words of the report.

#include <vector>

#include "report/trace_file.h"
#include "runtime/executor.h"

namespace tessera::tools {

std::vector<report::TraceSpan> trace_spans(const runtime::Executor& executor);

}  // namespace tessera::tools
