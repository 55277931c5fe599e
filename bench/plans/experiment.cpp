#include "plans/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "compiler/compile.h"
#include "console.h"
#include "runnable.h"

namespace tessera::bench {
namespace {

// What is measured again: plans that took less than kFast of the chosen one's time, but at least
// kFewest and at most kMost plans.
constexpr double kFast = 0.97;
constexpr std::size_t kFewest = 5;
constexpr std::size_t kMost = 30;
constexpr std::size_t kTellEvery = 25;

class Experiment {
 public:
  Experiment(const compiler::PlanSpace& space, const Settings& settings, int threads,
             const tools::InputFlags& inputs, ModelResult& result)
      : space_(space),
        settings_(settings),
        threads_(threads),
        input_flags_(inputs),
        result_(result),
        alternatives_(space, settings.last_resort_ms * 1000) {}

  Status run() {
    const auto& chosen = space_.planned().solution;
    result_.predicted_us = chosen.cost;
    TESSERA_TRY(collect());
    TESSERA_ASSIGN(auto image, space_.emit(chosen.choice));
    TESSERA_ASSIGN(inputs_,
                   tools::gather_inputs(image.plans.front().methods.front(), input_flags_));
    TESSERA_ASSIGN(auto running, RunningPlan::start(std::move(image), inputs_, threads_));
    chosen_ = &running;
    TESSERA_ASSIGN(expected_, running.outputs());
    TESSERA_TRY(measure_all());
    TESSERA_TRY(measure_again());
    return {};
  }

 private:
  // The plans of all groups, one after the other.
  Status collect() {
    TESSERA_ASSIGN(const auto nodes, alternatives_.find_nodes(settings_.subgraph));
    for (const std::size_t node : nodes)
      result_.subgraph.push_back(space_.graph().nodes()[node]->name);
    TESSERA_TRY(add(alternatives_.combinations(nodes, settings_.combinations)));
    TESSERA_TRY(add(alternatives_.random_plans(settings_.random, settings_.seed)));
    return add(alternatives_.neighbours(settings_.neighbours, settings_.seed));
  }

  Status add(Result<Group> group) {
    if (!group) return tl::unexpected(std::move(group).error());
    for (Alternative& plan : group->plans) {
      MeasuredPlan& measured = result_.plans.emplace_back();
      measured.group = result_.groups.size();
      measured.predicted_us = plan.predicted_us;
      measured.differences = alternatives_.differences(plan);
      choices_.push_back(std::move(plan.choice));
    }
    tools::say(fmt::format("{}: {} {} plans", result_.name, group->plans.size(), group->name));
    group->plans.clear();
    result_.groups.push_back(*std::move(group));
    return {};
  }

  // Emits, loads, checks and times one plan; a plan that fails is a finding, not the end.
  Result<Timing> time_plan(const std::vector<std::uint32_t>& choice, int rounds) {
    TESSERA_ASSIGN(auto image, space_.emit(choice));
    TESSERA_ASSIGN(auto plan, RunningPlan::start(std::move(image), inputs_, threads_));
    TESSERA_ASSIGN(const auto outputs, plan.outputs());
    if (std::string text = disagreement(expected_, outputs); !text.empty())
      return fail(ErrorCode::kInternal, std::move(text));
    return time_beside(*chosen_, plan, rounds);
  }

  Status measure_all() {
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      MeasuredPlan& plan = result_.plans[i];
      if (tools::cancellation().stop_requested()) return fail(ErrorCode::kCancelled, "stopped");
      if (auto timing = time_plan(choices_[i], settings_.rounds))
        plan.timing = *timing;
      else
        plan.problem = timing.error().to_string();
      if ((i + 1) % kTellEvery == 0)
        tools::say(
            fmt::format("{}: {} of {} plans measured", result_.name, i + 1, choices_.size()));
    }
    return {};
  }

  // Indices of the plans that may be the best, the fastest first.
  [[nodiscard]] std::vector<std::size_t> finalists() const {
    const auto ratio = [this](std::size_t i) { return result_.plans[i].timing.ratio; };
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < result_.plans.size(); ++i)
      if (result_.plans[i].problem.empty()) order.push_back(i);
    std::ranges::stable_sort(order, {}, ratio);
    const auto fast = static_cast<std::size_t>(
        std::ranges::count_if(order, [&](std::size_t i) { return ratio(i) < kFast; }));
    order.resize(std::min(order.size(), std::clamp(fast, kFewest, kMost)));
    return order;
  }

  Status measure_again() {
    std::vector<double> chosen_us;
    for (const std::size_t i : finalists()) {
      if (tools::cancellation().stop_requested()) return fail(ErrorCode::kCancelled, "stopped");
      TESSERA_ASSIGN(result_.plans[i].final_timing, time_plan(choices_[i], settings_.final_rounds));
      chosen_us.push_back(result_.plans[i].final_timing->chosen_us);
    }
    TESSERA_ASSIGN(result_.again,
                   time_plan(space_.planned().solution.choice, settings_.final_rounds));
    chosen_us.push_back(result_.again.chosen_us);
    std::ranges::sort(chosen_us);
    result_.chosen_us = chosen_us[chosen_us.size() / 2];
    return {};
  }

  const compiler::PlanSpace& space_;
  const Settings& settings_;
  int threads_;
  const tools::InputFlags& input_flags_;
  ModelResult& result_;
  Alternatives alternatives_;
  std::vector<std::vector<std::uint32_t>> choices_;  // per plan of the result
  tools::NamedValues inputs_;
  io::NamedTensors expected_;
  RunningPlan* chosen_ = nullptr;
};

}  // namespace

const MeasuredPlan* ModelResult::best() const {
  const MeasuredPlan* best = nullptr;
  for (const MeasuredPlan& plan : plans)
    if (plan.final_timing &&
        (best == nullptr || plan.final_timing->ratio < best->final_timing->ratio))
      best = &plan;
  return best;
}

Verdict ModelResult::verdict() const {
  if (std::ranges::any_of(plans, [](const auto& plan) { return !plan.problem.empty(); }))
    return Verdict::kFails;
  if (again.ratio > kAllowed || again.ratio * kAllowed < 1) return Verdict::kUndecided;
  const MeasuredPlan* fastest = best();
  return fastest != nullptr && fastest->final_timing->ratio * kAllowed >= 1 ? Verdict::kHolds
                                                                            : Verdict::kFails;
}

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kHolds: return "holds";
    case Verdict::kFails: return "FAILS";
    case Verdict::kUndecided: return "UNDECIDED";
  }
  return {};
}

std::vector<std::string> default_subgraph(const std::string& model) {
  static const std::map<std::string, std::vector<std::string>> known = {
      // The end of the first residual block: two 1x1 convolutions that meet in a sum.
      {"resnet50",
       {"/m/layer1/layer1.0/conv3/*", "/m/layer1/layer1.0/downsample/*", "/m/layer1/layer1.0/Add",
        "/m/layer1/layer1.0/relu_2/*"}},
      // The first depthwise convolution with the two 1x1 convolutions around it.
      {"mobilenet_v2",
       {"/m/features/features.2/conv/conv.1/*", "/m/features/features.2/conv/conv.2/*"}},
      // The first depthwise convolution and the two nodes behind it: scale and shift.
      {"ppocrv4_rec", {"p2o.Conv.1", "p2o.Mul.0", "p2o.Add.2"}},
  };
  const auto found = known.find(model);
  return found == known.end() ? std::vector<std::string>() : found->second;
}

Result<ModelFile> find_model(const std::string& word) {
  namespace fs = std::filesystem;
  if (fs::is_regular_file(word))
    return ModelFile{fs::absolute(word).parent_path().filename().string(), word};
  const char* shared = std::getenv("TESSERA_SHARED");
  const fs::path shared_dir = shared != nullptr ? shared : "../shared";
  for (const fs::path& folder : {fs::path("build/models"), shared_dir / "models"}) {
    const fs::path path = folder / word / "model.onnx";
    if (fs::is_regular_file(path)) return ModelFile{word, path};
  }
  return fail(ErrorCode::kNotFound,
              fmt::format("expected a file or a shared model, found '{}'", word));
}

Result<ModelResult> measure_model(const ModelFile& model, const Settings& settings) {
  ModelResult result;
  result.name = model.name;
  Settings used = settings;
  if (used.subgraph.empty()) used.subgraph = default_subgraph(model.name);
  if (used.subgraph.empty())
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("no subgraph of '{}' is known: expected --subgraph", model.name));
  TESSERA_ASSIGN(auto options, tools::to_options(used.flags));
  tools::InputFlags inputs{{}, /*random=*/true, used.seed};
  if (const auto file = model.path.parent_path() / "inputs.npz"; std::filesystem::exists(file)) {
    inputs.files = {file.string()};
    TESSERA_ASSIGN(const auto tensors, io::read_npz(file));
    for (const auto& [input, tensor] : tensors) options.shapes[input] = tensor.dims();
  }
  options.explore = [&](const compiler::PlanSpace& space) {
    return Experiment(space, used, options.threads, inputs, result).run();
  };
  TESSERA_ASSIGN(const auto compiled, compiler::compile(model.path, options));
  result.known_prices = compiled.report.price_hits;
  result.estimated_prices = compiled.report.price_misses.size();
  return result;
}

}  // namespace tessera::bench
