// Bytes as each of the text forms: IR, assignment problem, memory problem, device profile, cost
// table, report.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "backends/simulated/compile/profile.h"
#include "ir/text.h"
#include "plan/cost_table.h"
#include "report/report.h"
#include "solve/memory_text.h"
#include "solve/problem_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)tessera::ir::parse(text);
  (void)tessera::solve::parse_problem(text);
  (void)tessera::solve::parse_memory(text);
  (void)tessera::backends::simulated::parse_profile(text);
  (void)tessera::plan::CostTable::parse(text);
  (void)tessera::report::from_json(text);
  return 0;
}
