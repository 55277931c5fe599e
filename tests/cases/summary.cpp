#include "cases/summary.h"

#include <fmt/format.h>

#include <algorithm>

namespace tessera::testing {

void Summary::add(const std::string& kind, const std::string& case_name,
                  const Judgement& judgement) {
  Counts& counts = kinds_[kind];
  const std::size_t failed = judgement.failed.size() + judgement.stale.size();
  ++counts.cases;
  if (failed + judgement.listed.size() == 0) ++counts.held_cases;
  counts.held += judgement.held.size();
  counts.listed += judgement.listed.size();
  counts.failed += failed;
  counts.not_judged += judgement.not_judged.size();
  counts.judged += judgement.held.size() + judgement.listed.size() + judgement.failed.size();
  const auto say = [&](const char* what, const std::vector<Verdict>& verdicts) {
    for (const Verdict& verdict : verdicts)
      lines_.push_back(fmt::format("{} {} {}: {}", what, case_name, verdict.key, verdict.detail));
  };
  say("not built ", judgement.listed);
  say("not judged", judgement.not_judged);
  say("stale     ", judgement.stale);
  say("FAILED    ", judgement.failed);
}

std::string Summary::text() const {
  std::string text = fmt::format("{:<14}{:>7}{:>7}{:>8}{:>7}{:>11}{:>12}{:>8}\n", "kind", "cases",
                                 "hold", "judged", "held", "not built", "not judged", "failed");
  for (const auto& [kind, counts] : kinds_)
    text += fmt::format("{:<14}{:>7}{:>7}{:>8}{:>7}{:>11}{:>12}{:>8}\n", kind, counts.cases,
                        counts.held_cases, counts.judged, counts.held, counts.listed,
                        counts.not_judged, counts.failed);
  std::vector<std::string> lines = lines_;
  std::ranges::sort(lines);
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace tessera::testing
