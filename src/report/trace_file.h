#pragma once

// Traces of runs: Chrome's format (Perfetto reads it too), and what they say about a report's
// nodes.

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "report/report.h"

namespace tessera::report {

// One instruction of one run.
struct TraceSpan {
  std::string name;
  std::string category;  // compute, layout, copy, sync
  std::string device;
  std::string kernel;                     // empty for transfers
  std::vector<std::string> source_nodes;  // compute only
  double start_us = 0;
  double duration_us = 0;  // on the wall clock
  double predicted_us = 0;
  bool simulated = false;  // the device is only described by a file: its time is the predicted one
  friend bool operator==(const TraceSpan&, const TraceSpan&) = default;
};

struct TraceFile {
  std::vector<TraceSpan> spans;
  double total_us = 0;  // of the run, on the wall clock
};

// {"schema": "tessera.trace/1.0", "traceEvents": [{"name":, "cat":, "ph": "X", "ts":, "dur":,
// "pid": 1, "tid":, "args": {…}}, …], "otherData": {"total_us":}}; a thread per device, named by a
// metadata event.
std::string to_chrome_json(const std::vector<TraceSpan>& spans, double total_us);

// Reads what to_chrome_json writes. Errors: not JSON, another schema, a field of the wrong type
// (event, field, expected, found).
Result<TraceFile> parse_chrome_json(std::string_view text);

// Says of each node where it was executed, and accounts for the run's time. Without a simulated
// device on the wall clock: terms are the spans' durations, the total is the run's, and what no
// span covers is unaccounted. With one on the modelled timeline: every span enters at its price,
// launches and synchronisations as planned.
void add_execution(Report& report, const std::vector<TraceSpan>& spans, double total_us);

}  // namespace tessera::report
