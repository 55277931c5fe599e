#include <fmt/format.h>

#include <algorithm>

#include "cases/compare_values.h"
#include "cases/judges.h"
#include "testing/mentions.h"

namespace tessera::testing {
namespace {

// The message without the path of the case, which may hold the words that are asked for.
std::string message_of(const Case& tested, const Attempt& attempt) {
  return without(attempt.failure_text(), tested.folder.string());
}

std::vector<std::string> words(const Case& tested, const std::string& key) {
  return tested.expect.value(key, std::vector<std::string>());
}

std::string values_problem(const Case& tested, const Attempt& attempt) {
  const Tolerance tolerance = {tested.number("rtol", 1e-5), tested.number("atol", 1e-6)};
  std::string text;
  for (std::size_t i = 0; i < attempt.steps.size(); ++i) {
    const auto expected = io::read_npz(tested.steps[i].expected);
    if (!expected) return expected.error().to_string();
    const std::string problem = difference(*expected, attempt.steps[i].outputs, tolerance);
    if (problem.empty()) continue;
    if (!text.empty()) text += "; ";
    text += attempt.steps.size() > 1 ? fmt::format("step {}: {}", i + 1, problem) : problem;
  }
  return text;
}

void judge_error(const Case& tested, const TriedWay& tried, Verdicts& verdicts) {
  const Attempt& attempt = tried.attempt;
  const std::string message = message_of(tested, attempt);
  const std::string where = tried.way.name + ": ";
  const auto wanted = words(tested, "error_mentions");
  if (!wanted.empty()) {
    std::string missing;
    for (const std::string& word : wanted)
      if (!mentions(message, word)) missing += fmt::format(" '{}'", word);
    verdicts.judge("error_mentions",
                   missing.empty() ? "" : fmt::format("{}no{} in: {}", where, missing, message));
  }
  const auto any = words(tested, "error_mentions_any");
  if (!any.empty()) {
    const bool found =
        std::ranges::any_of(any, [&](const std::string& word) { return mentions(message, word); });
    verdicts.judge(
        "error_mentions_any",
        found ? "" : fmt::format("{}none of '{}' in: {}", where, fmt::join(any, "', '"), message));
  }
  const std::string at = tested.expect.value("error_at", "");
  if (at.empty()) return;
  const std::string stage = attempt.failed_at_run ? "run" : "load";
  const bool right = at.find(stage) != std::string::npos;
  verdicts.judge("error_at", right ? "" : fmt::format("{}failed at {}: {}", where, stage, message));
}

}  // namespace

void judge_run(const Case& tested, const TriedWay& tried, Verdicts& verdicts) {
  const Attempt& attempt = tried.attempt;
  const std::string wanted = tested.run();
  const std::string where = tried.way.name + ": ";
  if (wanted == "error") {
    verdicts.judge("run", attempt.failure ? "" : where + "runs, but an error is expected");
    if (attempt.failure) judge_error(tested, tried, verdicts);
    return;
  }
  if (attempt.failure) {
    verdicts.judge("run", wanted == "ok" ? where + attempt.failure_text() : "");
    if (wanted != "ok") judge_error(tested, tried, verdicts);
    return;
  }
  verdicts.judge("run", "");
  const std::string problem = values_problem(tested, attempt);
  verdicts.judge("values", problem.empty() ? "" : where + problem);
}

}  // namespace tessera::testing
