#include "cases/not_built.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/glob.h"

namespace tessera::testing {

const std::vector<NotBuilt>& not_built() {
  static const std::string control_flow = "If, Loop and Scan do not run yet";
  static const std::string sequences = "sequences and optionals do not run yet";
  static const std::string strings = "operators on strings are missing";
  static const std::string data_sizes = "sizes that only the data decides do not run yet";
  static const std::string reassembly = "decompositions are not re-assembled yet";
  static const std::vector<NotBuilt> table = {
      {"AT*", "fused_ops_expected", reassembly},
      {"CF10_*", "*", sequences},
      {"CF11_*", "*", sequences},
      {"CF13_*", "*", sequences},
      {"CF14_*", "*", sequences},
      {"CF2_*", "*", control_flow},
      {"CF4_*", "*", control_flow},
      {"CF5_*", "*", control_flow},
      {"CF6_*", "*", control_flow},
      {"CF7_*", "*", control_flow},
      {"CF9_*", "*", control_flow},
      {"GE*", "fused_ops_expected", reassembly},
      {"LN*", "fused_ops_expected", reassembly},
      {"M7_*", "max_copies", "a Concat whose operands are written in place is not planned yet"},
      {"P15_*", "partition.independent_partitions_min",
       "plans are made for one device at a time; side by side is another objective"},
      {"P2_*", "partition.must_not_win_slot", "a device's limit of partitions is not planned yet"},
      {"P5_*", "*", control_flow},
      {"P6_*", "*", "a device that cannot start ends the compilation"},
      {"P7_*", "*", "a kernel that cannot be compiled ends the compilation"},
      {"P8_*", "*", control_flow},
      {"P9_*", "*", control_flow},
      {"RMS2_*", "fused_ops_expected", reassembly},
      {"S22_*", "*", data_sizes},
      {"S3_*", "*", control_flow},
      {"S4_*", "*", control_flow},
      {"S5_*", "*", control_flow},
      {"STR1_*", "*", strings},
      {"STR3_*", "*", strings},
      {"Z7_*", "*", data_sizes},
  };
  return table;
}

Judgement weigh(const std::string& case_name, const std::vector<Verdict>& verdicts,
                const std::vector<NotBuilt>& table) {
  std::vector<NotBuilt> entries;
  std::ranges::copy_if(table, std::back_inserter(entries),
                       [&](const NotBuilt& entry) { return glob_matches(entry.cases, case_name); });
  std::vector<bool> used(entries.size(), false);
  Judgement judgement;
  for (const Verdict& verdict : verdicts) {
    if (verdict.outcome == Outcome::kHeld) judgement.held.push_back(verdict);
    if (verdict.outcome == Outcome::kNotJudged) judgement.not_judged.push_back(verdict);
    if (verdict.outcome != Outcome::kFailed) continue;
    const auto entry = std::ranges::find_if(
        entries, [&](const NotBuilt& one) { return one.key == "*" || one.key == verdict.key; });
    if (entry == entries.end()) {
      judgement.failed.push_back(verdict);
      continue;
    }
    used[static_cast<std::size_t>(entry - entries.begin())] = true;
    judgement.listed.push_back({verdict.key, verdict.outcome, entry->reason});
  }
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (!used[i])
      judgement.stale.push_back(
          {entries[i].key, Outcome::kFailed,
           fmt::format("the entry '{}' no longer holds: {}", entries[i].cases, entries[i].reason)});
  return judgement;
}

}  // namespace tessera::testing
