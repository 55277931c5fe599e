#include "trace_spans.h"

namespace tessera::tools {

std::vector<report::TraceSpan> trace_spans(const runtime::Executor& executor) {
  const auto& program = executor.program();
  std::vector<report::TraceSpan> spans;
  for (const runtime::TraceEvent& event : executor.trace().events) {
    const artefact::Instruction& instruction =
        program.plan().methods[event.method].instructions[event.instruction];
    report::TraceSpan span;
    span.name = instruction.label;
    switch (instruction.opcode) {
      case artefact::Opcode::kConvert: span.category = "layout"; break;
      case artefact::Opcode::kTransfer:
      case artefact::Opcode::kWriteBack: span.category = "copy"; break;
      case artefact::Opcode::kWait: span.category = "sync"; break;
      default: span.category = "compute"; break;
    }
    span.device = program.plan().devices[instruction.device].name;
    if (instruction.kernel != UINT32_MAX)
      span.kernel = program.image().kernels[instruction.kernel].kernel;
    span.source_nodes = instruction.source_nodes;
    span.start_us = static_cast<double>(event.start_ns) / 1000;
    span.duration_us = static_cast<double>(event.end_ns - event.start_ns) / 1000;
    span.predicted_us = instruction.predicted_us;
    span.simulated = program.device(instruction.device).simulated();
    spans.push_back(std::move(span));
  }
  return spans;
}

}  // namespace tessera::tools
