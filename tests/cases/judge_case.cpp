#include <map>
#include <set>

#include "cases/judges.h"

namespace tessera::testing {
namespace {

// Keys that say how a case is run; whether that works shows in `run`.
const std::set<std::string> kInstructions = {
    "run", "steps", "model_path", "load_from", "partition", "before_step", "partition.devices"};
// Both are judged as "values".
const std::set<std::string> kTolerances = {"rtol", "atol"};

// Keys that no judge can hold the compiler to.
const std::map<std::string, std::string> kNotJudged = {
    {"max_load_seconds", "no test depends on the time"},
    {"cache_dir", "there is no cache of compiled models"},
    {"expected_cache_hits", "there is no cache of compiled models"},
    {"cache_entries_after_all_steps_max", "there is no cache of compiled models"},
};

std::vector<TriedWay> try_all_ways(const Case& tested, const TempDir& profiles) {
  std::vector<TriedWay> tried;
  for (const Way& way : ways_of(tested, profiles)) {
    // Steps that change files begin with those of the case again.
    const auto fresh =
        tested.has("before_step") ? read_case(tested.original) : Result<Case>(tested);
    if (fresh) tried.push_back({way, attempt(*fresh, way)});
  }
  return tried;
}

// Words of an error that did not come: `run` says so, or that there need be none.
bool is_moot(const Case& tested, const std::string& key) {
  return tested.run() != "ok" && key.starts_with("error_");
}

}  // namespace

std::vector<Verdict> judge_case(const Case& tested) {
  Verdicts verdicts;
  const TempDir profiles;
  const auto tried = try_all_ways(tested, profiles);
  for (const TriedWay& one : tried) {
    judge_run(tested, one, verdicts);
    judge_memory(tested, one, verdicts);
  }
  judge_graph(tested, verdicts);
  judge_plan(tested, tried.front(), verdicts);
  judge_partition(tested, tried, verdicts);
  std::set<std::string> known;
  for (const Verdict& verdict : verdicts.all()) known.insert(verdict.key);
  for (const std::string& key : keys_of(tested)) {
    if (known.contains(key) || kInstructions.contains(key) || kTolerances.contains(key)) continue;
    if (const auto entry = kNotJudged.find(key); entry != kNotJudged.end())
      verdicts.leave(key, entry->second);
    else if (!is_moot(tested, key))
      verdicts.judge(key, "no judge knows this key");
  }
  return verdicts.all();
}

}  // namespace tessera::testing
