#include "cases/not_built.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/glob.h"

namespace tessera::testing {

const std::vector<NotBuilt>& not_built() {
  static const std::vector<NotBuilt> table = {
      {"M7_*", "max_copies", "a Concat whose operands are written in place is not planned yet"},
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
