#include "plans/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tessera::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kShownDifferences = 12;

std::vector<const MeasuredPlan*> timed_plans(const ModelResult& result) {
  std::vector<const MeasuredPlan*> plans;
  for (const MeasuredPlan& plan : result.plans)
    if (plan.problem.empty()) plans.push_back(&plan);
  return plans;
}

std::string group_row(const ModelResult& result, std::size_t index) {
  const Group& group = result.groups[index];
  std::vector<double> ratios;
  std::size_t problems = 0;
  for (const MeasuredPlan& plan : result.plans) {
    if (plan.group != index) continue;
    if (plan.problem.empty())
      ratios.push_back(plan.timing.ratio);
    else
      ++problems;
  }
  std::ranges::sort(ratios);
  std::string times = fmt::format("{:>8} {:>8} {:>8}", "-", "-", "-");
  if (!ratios.empty())
    times = fmt::format("{:8.3f} {:8.3f} {:8.2f}", ratios.front(), ratios[ratios.size() / 2],
                        ratios.back());
  const auto faster = std::ranges::count_if(ratios, [](double ratio) { return ratio < 1; });
  return fmt::format("  {:<10} {:>9} {:>10} {:>8} {:>8} {:>8} {} {:>7}\n", group.name, group.tried,
                     group.impossible, group.repeated, ratios.size(), problems, times, faster);
}

std::string final_row(const ModelResult& result, const MeasuredPlan& plan) {
  return fmt::format("  {:<10} {:8.3f} {:8.3f} {:10.3f} {:>6} {:>6}\n",
                     result.groups[plan.group].name, plan.final_timing->ratio, plan.timing.ratio,
                     plan.predicted_us / result.predicted_us, plan.final_timing->rounds,
                     plan.differences.size());
}

std::string finals_text(const ModelResult& result) {
  std::vector<const MeasuredPlan*> finals;
  for (const MeasuredPlan& plan : result.plans)
    if (plan.final_timing) finals.push_back(&plan);
  std::ranges::stable_sort(finals, {}, [](const auto* plan) { return plan->final_timing->ratio; });
  std::string text =
      fmt::format("  measured again, time / chosen:\n  {:<10} {:>8} {:>8} {:>10} {:>6} {:>6}\n",
                  "group", "again", "at first", "predicted", "rounds", "nodes");
  for (const MeasuredPlan* plan : finals) text += final_row(result, *plan);
  return text + fmt::format("  {:<10} {:8.3f} {:>8} {:10.3f} {:>6} {:>6}\n", "the chosen",
                            result.again.ratio, "-", 1.0, result.again.rounds, 0);
}

std::string differences_text(const MeasuredPlan& plan) {
  std::string text = "  the best plan differs from the chosen one in:\n";
  for (std::size_t i = 0; i < std::min(plan.differences.size(), kShownDifferences); ++i) {
    const NodeDifference& difference = plan.differences[i];
    text += fmt::format("    {}\n      chosen {}\n      there  {}\n", difference.node,
                        difference.chosen, difference.other);
  }
  if (plan.differences.size() > kShownDifferences)
    text += fmt::format("    ... and {} more nodes\n", plan.differences.size() - kShownDifferences);
  return text;
}

std::string verdict_text(const ModelResult& result) {
  const auto timed = timed_plans(result);
  const auto faster =
      std::ranges::count_if(timed, [](const auto* plan) { return plan->timing.ratio < 1; });
  std::string text = fmt::format("  the chosen plan is number {} of {} by the first measurement\n",
                                 faster + 1, timed.size() + 1);
  const MeasuredPlan* best = result.best();
  const double ratio = best == nullptr ? 1 : std::min(1.0, best->final_timing->ratio);
  const Verdict verdict = result.verdict();
  text += fmt::format(
      "  verdict: {}: the chosen plan takes {:.3f} of the best plan's time (allowed: {:.2f})\n",
      to_string(verdict), 1 / ratio, kAllowed);
  if (verdict == Verdict::kUndecided)
    text += fmt::format(
        "  the machine was disturbed: the chosen plan beside itself took {:.3f} of its time\n",
        result.again.ratio);
  return text;
}

Json to_json(const Timing& timing) {
  return {{"plan_us", timing.plan_us},
          {"chosen_us", timing.chosen_us},
          {"ratio", timing.ratio},
          {"rounds", timing.rounds}};
}

Json to_json(const ModelResult& result, const MeasuredPlan& plan) {
  Json json = {{"group", result.groups[plan.group].name}, {"predicted_us", plan.predicted_us}};
  if (plan.problem.empty()) json["first"] = to_json(plan.timing);
  if (plan.final_timing) json["again"] = to_json(*plan.final_timing);
  if (!plan.problem.empty()) json["problem"] = plan.problem;
  for (const NodeDifference& difference : plan.differences)
    json["differences"].push_back(
        {{"node", difference.node}, {"chosen", difference.chosen}, {"other", difference.other}});
  return json;
}

Json to_json(const ModelResult& result) {
  Json json = {{"model", result.name},
               {"subgraph", result.subgraph},
               {"predicted_us", result.predicted_us},
               {"chosen_us", result.chosen_us},
               {"known_prices", result.known_prices},
               {"estimated_prices", result.estimated_prices},
               {"verdict", to_string(result.verdict())},
               {"chosen_beside_itself", to_json(result.again)}};
  for (const Group& group : result.groups)
    json["groups"].push_back({{"name", group.name},
                              {"tried", group.tried},
                              {"impossible", group.impossible},
                              {"repeated", group.repeated}});
  for (const MeasuredPlan& plan : result.plans) json["plans"].push_back(to_json(result, plan));
  return json;
}

}  // namespace

std::string results_text(const ModelResult& result) {
  std::string text = fmt::format(
      "{}: chosen plan {:.1f} us, predicted {:.1f} us; prices: {} from the table, {} estimated\n",
      result.name, result.chosen_us, result.predicted_us, result.known_prices,
      result.estimated_prices);
  text += fmt::format("  subgraph: {}\n", fmt::join(result.subgraph, ", "));
  text += fmt::format("  {:<10} {:>9} {:>10} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>7}\n", "group",
                      "tried", "impossible", "repeated", "measured", "problems", "best", "median",
                      "worst", "faster");
  for (std::size_t i = 0; i < result.groups.size(); ++i) text += group_row(result, i);
  text += finals_text(result);
  if (const MeasuredPlan* best = result.best(); best != nullptr && best->final_timing->ratio < 1)
    text += differences_text(*best);
  for (const MeasuredPlan& plan : result.plans)
    if (!plan.problem.empty())
      text +=
          fmt::format("  problem: {} plan ('{}' and others differ): {}\n",
                      result.groups[plan.group].name, plan.differences.front().node, plan.problem);
  return text + verdict_text(result);
}

std::string results_json(const std::vector<ModelResult>& results, const Settings& settings) {
  Json json = {{"version", TESSERA_VERSION},
               {"threads", settings.flags.threads},
               {"seed", settings.seed},
               {"rounds", settings.rounds},
               {"final_rounds", settings.final_rounds},
               {"last_resort_ms", settings.last_resort_ms},
               {"allowed", kAllowed}};
  for (const ModelResult& result : results) json["models"].push_back(to_json(result));
  return json.dump(1) + "\n";
}

}  // namespace tessera::bench
