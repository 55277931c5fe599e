#include "compiler/compile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "artefact/write/writer.h"
#include "backends/registry_run/registry_run.h"
#include "compiler/plan_method.h"
#include "import/import.h"
#include "runtime/executor.h"
#include "testing/interpret.h"
#include "testing/onnx_builder.h"
#include "testing/random.h"
#include "testing/shared_data.h"
#include "testing/temp_dir.h"

namespace tessera::compiler {
namespace {

using ::testing::HasSubstr;
using testing::OnnxModel;
using ::testing::StartsWith;
using testing::TempDir;

const std::string& npu_profile() {
  static const std::string path = (testing::source_dir() / "profiles" / "npu.json").string();
  return path;
}

// Convolutions around an Erf, which the NPU profile lacks, with a residual sum and a classifier;
// any batch.
std::string small_model() {
  OnnxModel model(17);
  testing::Random random(3);
  model.input("x", testing::kFloat, {"n", 4, 12, 12});
  model.floats("w1", {8, 4, 3, 3}, random.floats(8 * 4 * 9));
  model.floats("b1", {8}, random.floats(8));
  model.floats("w2", {8, 8, 3, 3}, random.floats(8 * 8 * 9, -0.3, 0.3));
  model.floats("w3", {8, 5}, random.floats(8 * 5));
  model.floats("b3", {5}, random.floats(5));
  model.node("Conv", {"x", "w1", "b1"}, {"c1"}, "conv1").ints("pads", {1, 1, 1, 1});
  model.node("Relu", {"c1"}, {"r1"}, "relu1");
  model.node("Erf", {"r1"}, {"e"}, "erf");
  model.node("Conv", {"e", "w2"}, {"c2"}, "conv2").ints("pads", {1, 1, 1, 1});
  model.node("Add", {"c2", "r1"}, {"s"}, "sum");
  model.node("GlobalAveragePool", {"s"}, {"p"}, "pool");
  model.node("Flatten", {"p"}, {"f"}, "flatten").integer("axis", 1);
  model.node("Gemm", {"f", "w3", "b3"}, {"y"}, "classify");
  model.output("y", testing::kFloat, {"n", 5});
  model.output("r1", testing::kFloat, {"n", 8, 12, 12});
  return model.serialize();
}

Compiled compiled(const std::filesystem::path& model, const CompileOptions& options) {
  auto result = compile(model, options);
  EXPECT_TRUE(result) << result.error().to_string();
  return result ? *std::move(result) : Compiled{};
}

// Without the name of the file.
std::string compile_error(const std::string& model, const CompileOptions& options) {
  const TempDir folder;
  const std::filesystem::path path = folder.write("m.onnx", model);
  const auto result = compile(path, options);
  if (result) return "no error";
  const std::string text = result.error().to_string();
  const std::string place = path.string() + ": ";
  return text.starts_with(place) ? text.substr(place.size()) : text;
}

Tensor random_tensor(const Dims& dims, std::uint64_t seed) {
  testing::Random random(seed);
  const auto elements = random.floats(static_cast<std::size_t>(numel(dims)));
  return Tensor::of<float>(DType::kFp32, dims, elements);
}

// A plan of an image, ready to run.
std::unique_ptr<runtime::Executor> executor_of(const artefact::ProgramImage& image,
                                               const std::string& plan) {
  auto program = runtime::LoadedProgram::create(image, plan, &backends::make_run_device);
  EXPECT_TRUE(program) << program.error().to_string();
  if (!program) return nullptr;
  auto executor = runtime::Executor::create(*program, {});
  EXPECT_TRUE(executor) << executor.error().to_string();
  return executor ? *std::move(executor) : nullptr;
}

// Runs `executor` on `x` and compares every output with the reference kernels, run node by node on
// the imported model.
void expect_reference_values(runtime::Executor& executor, const std::filesystem::path& model,
                             const Tensor& x, double tolerance) {
  const auto module = importer::import_file(model);
  ASSERT_TRUE(module) << module.error().to_string();
  const ir::Graph& graph = module->methods[0].graph;
  const auto expected = testing::interpret(graph, std::vector<Tensor>{x});
  ASSERT_TRUE(expected) << expected.error().to_string();
  ASSERT_TRUE(executor.bind_input("x", x.dtype(), x.dims(), x.data()));
  const Status status = executor.run();
  ASSERT_TRUE(status) << status.error().to_string();
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const std::string& name = graph.value(graph.outputs[i]).name;
    const auto output = executor.output(name);
    ASSERT_TRUE(output) << output.error().to_string();
    ASSERT_EQ(output->dims, (*expected)[i].dims()) << name;
    double largest = 0;
    for (const float element : (*expected)[i].span<float>())
      largest = std::max(largest, std::abs(static_cast<double>(element)));
    for (std::int64_t k = 0; k < output->numel(); ++k)
      ASSERT_NEAR(output->as<float>()[k], (*expected)[i].span<float>()[static_cast<std::size_t>(k)],
                  tolerance * largest)
          << name << " at " << k;
  }
}

TEST(Compile, RunsAsTheReferenceDoesOnEveryTarget) {
  const TempDir folder;
  const auto model = folder.write("m.onnx", small_model());
  for (const std::vector<std::string>& devices :
       {std::vector<std::string>{"cpu"}, {"reference"}, {"cpu", npu_profile()}}) {
    SCOPED_TRACE(devices.back());
    CompileOptions options;
    options.devices = devices;
    const Compiled result = compiled(model, options);
    for (const std::string plan : {"", "cpu"}) {
      if (plan == "cpu" && result.image.plans.size() < 2) continue;
      SCOPED_TRACE("plan '" + plan + "'");
      const auto executor = executor_of(result.image, plan);
      ASSERT_NE(executor, nullptr);
      for (const std::int64_t batch : {1, 3})
        expect_reference_values(*executor, model, random_tensor({batch, 4, 12, 12}, 5), 1e-4);
    }
  }
}

TEST(Compile, PlansOfAProgram) {
  const TempDir folder;
  const auto model = folder.write("m.onnx", small_model());
  const auto plans = [&](const CompileOptions& options) {
    std::vector<std::string> names;
    for (const auto& plan : compiled(model, options).image.plans) names.push_back(plan.name);
    return names;
  };
  CompileOptions options;
  EXPECT_EQ(plans(options), (std::vector<std::string>{"main"}));
  options.devices = {"cpu", npu_profile()};
  EXPECT_EQ(plans(options), (std::vector<std::string>{"main", "cpu"}));
  options.fallback = false;
  EXPECT_EQ(plans(options), (std::vector<std::string>{"main"}));
}

TEST(Compile, PinsSplitTheModelAndItStillRuns) {
  const TempDir folder;
  const auto model = folder.write("m.onnx", small_model());
  CompileOptions options;
  options.devices = {"cpu", npu_profile()};
  for (const char* node : {"conv1", "conv2", "classify"})
    options.rules.push_back({plan::PlacementRule::Kind::kPin, "npu", node});
  const Compiled result = compiled(model, options);
  std::map<std::string, std::string> places;
  for (const auto& node : result.report.nodes) places[node.name] = node.selected.device;
  EXPECT_EQ(places["conv1"], "npu");
  EXPECT_EQ(places["erf"], "cpu");
  EXPECT_EQ(places["conv2"], "npu");
  EXPECT_GE(result.report.crossings.size(), 3U);
  EXPECT_GE(result.report.regions.size(), 3U);
  EXPECT_GT(result.report.accounting.copy_us, 0);
  const auto executor = executor_of(result.image, "");
  ASSERT_NE(executor, nullptr);
  expect_reference_values(*executor, model, random_tensor({2, 4, 12, 12}, 6), 1e-4);
}

TEST(Compile, TwoSimulatedDevicesInOnePlan) {
  const TempDir folder;
  const auto model = folder.write("m.onnx", small_model());
  CompileOptions options;
  options.devices = {npu_profile(), (testing::source_dir() / "profiles" / "gpu.json").string(),
                     "cpu"};
  options.rules = {{plan::PlacementRule::Kind::kPin, "npu", "conv1"},
                   {plan::PlacementRule::Kind::kPin, "gpu", "conv2"}};
  const Compiled result = compiled(model, options);
  std::set<std::string> devices;
  for (const auto& node : result.report.nodes) devices.insert(node.selected.device);
  EXPECT_THAT(devices, ::testing::IsSupersetOf({"npu", "gpu"}));
  const auto executor = executor_of(result.image, "");
  ASSERT_NE(executor, nullptr);
  expect_reference_values(*executor, model, random_tensor({2, 4, 12, 12}, 6), 1e-4);
}

TEST(Compile, ANodeThatNobodyTakes) {
  CompileOptions options;
  options.devices = {"cpu", npu_profile()};
  options.rules = {{plan::PlacementRule::Kind::kPin, "npu", "erf"}};
  const std::string error = compile_error(small_model(), options);
  EXPECT_THAT(
      error,
      StartsWith("node 'erf' (Erf): no device takes it; cpu: not permitted by the options; npu: "));
  EXPECT_THAT(error, HasSubstr("; reference: not permitted by the options"));
}

TEST(Compile, TextsOfTheStages) {
  const TempDir folder;
  std::map<Stage, std::string> texts;
  CompileOptions options;
  options.devices = {"reference"};
  options.dump = [&](Stage stage, const std::string& text) { texts[stage] = text; };
  compiled(folder.write("m.onnx", small_model()), options);
  EXPECT_THAT(texts[Stage::kFuse], HasSubstr("anchor_epilogue: conv2:Conv sum:Add\n"));
  EXPECT_THAT(texts[Stage::kEnumerate], HasSubstr("node erf:Erf\n    reference "));
  EXPECT_THAT(texts[Stage::kEnumerate], ::testing::Not(HasSubstr(" us ")));
  EXPECT_THAT(texts[Stage::kPrice], HasSubstr(" us estimated\n"));
  EXPECT_THAT(texts[Stage::kLegalize], HasSubstr("call reference "));
  EXPECT_THAT(texts[Stage::kLegalize], ::testing::Not(HasSubstr(" region ")));
  EXPECT_THAT(texts[Stage::kSchedule], HasSubstr(":r1[nchw/fp32] region 0 "));
  EXPECT_THAT(texts[Stage::kAllocate], StartsWith("# host: arena "));
  EXPECT_THAT(texts[Stage::kAllocate], HasSubstr("\nid,lower,upper,size,offset\n"));
}

TEST(Compile, TheAssignmentInTheReport) {
  const TempDir folder;
  const auto model = folder.write("m.onnx", small_model());
  CompileOptions options;
  options.devices = {"cpu", npu_profile()};
  const auto figures = compiled(model, options).report.assignment;
  EXPECT_LE(figures.lower_bound_us, figures.cost_us);
  ASSERT_TRUE(figures.greedy_us);
  EXPECT_GE(*figures.greedy_us, figures.cost_us * (1 - 1e-9));
  ASSERT_TRUE(figures.cpu_only_us);
  EXPECT_GE(*figures.cpu_only_us, figures.cost_us * (1 - 1e-9));
}

TEST(Compile, StopsAfterEachStageWithTheTextsUpToIt) {
  const TempDir folder;
  const auto model = folder.write("m.onnx", small_model());
  for (int number = 0; number <= static_cast<int>(Stage::kEmit); ++number) {
    CompileOptions options;
    options.stop_after = static_cast<Stage>(number);
    std::vector<int> dumped;
    options.dump = [&](Stage stage, const std::string& text) {
      dumped.push_back(static_cast<int>(stage));
      EXPECT_GT(text.size(), 10U) << to_string(stage);
    };
    const Compiled result = compiled(model, options);
    std::vector<int> expected;
    for (int stage = 0; stage <= std::min(number, static_cast<int>(Stage::kAllocate)); ++stage)
      expected.push_back(stage);
    EXPECT_EQ(dumped, expected) << to_string(options.stop_after);
    EXPECT_EQ(result.image.plans.empty(), options.stop_after != Stage::kEmit);
  }
}

TEST(Compile, NamesOfStages) {
  for (int number = 0; number <= static_cast<int>(Stage::kEmit); ++number) {
    const auto stage = stage_from_string(to_string(static_cast<Stage>(number)));
    ASSERT_TRUE(stage);
    EXPECT_EQ(static_cast<int>(*stage), number);
  }
  const auto unknown = stage_from_string("lower");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().to_string(),
            "no stage 'lower': expected one of import, infer, simplify, fuse, enumerate, price, "
            "assign, legalize, schedule, allocate, emit");
}

TEST(Compile, TheSameBytesWhereverItRuns) {
  const TempDir one, other;
  CompileOptions options;
  options.devices = {"cpu", npu_profile()};
  const auto bytes = [&](const std::filesystem::path& model) {
    const auto serialized = artefact::serialize_program(compiled(model, options).image);
    EXPECT_TRUE(serialized) << serialized.error().to_string();
    return serialized ? *serialized : std::string();
  };
  const std::string first = bytes(one.write("m.onnx", small_model()));
  EXPECT_FALSE(first.empty());
  other.write("m.onnx", small_model());
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(other.path());
  options.devices[1] = std::filesystem::absolute(before / npu_profile()).string();
  const std::string second = bytes("m.onnx");
  std::filesystem::current_path(before);
  EXPECT_TRUE(first == second);
}

TEST(Compile, RequiredPlacements) {
  CompileOptions options;
  options.devices = {"cpu", npu_profile()};
  options.requirements = {{"npu", "erf"}};
  EXPECT_THAT(compile_error(small_model(), options),
              StartsWith("--require npu=erf:\n  erf (Erf) is on cpu: "));
  EXPECT_THAT(compile_error(small_model(), options), HasSubstr("Erf"));
  options.requirements = {{"npu", "op:Erf"}};
  EXPECT_THAT(compile_error(small_model(), options),
              StartsWith("--require npu=op:Erf:\n  erf (Erf) is on cpu: "));
  options.requirements = {{"reference", "pool"}};
  EXPECT_THAT(compile_error(small_model(), options), HasSubstr("it costs less there"));
  options.requirements = {{"gpu", "*"}};
  EXPECT_EQ(compile_error(small_model(), options),
            "--require gpu=*: no device 'gpu': expected one of cpu, npu, reference");
  options.requirements = {{"cpu", "nonesuch"}};
  EXPECT_EQ(compile_error(small_model(), options),
            "--require cpu=nonesuch: no node of the model matches 'nonesuch'");
  options.requirements = {{"cpu", "erf"}};
  EXPECT_EQ(compile_error(small_model(), options), "no error");
}

TEST(Compile, RequiredPrices) {
  const TempDir folder;
  const auto model = folder.write("m.onnx", small_model());
  CompileOptions options;
  options.cost_table = folder / "prices.json";
  options.require_prices = true;
  const auto missing = compile(model, options);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_THAT(missing.error().to_string(),
              ::testing::MatchesRegex(".*/m.onnx: --require-prices: [0-9]+ prices are not in the "
                                      "cost table; the first is cpu:.*"));
  EXPECT_FALSE(std::filesystem::exists(options.cost_table));  // nothing was measured

  options.require_prices = false;
  options.measure = plan::MeasureMode::kMissing;
  options.measure_seconds = 60;
  compiled(model, options);
  ASSERT_TRUE(std::filesystem::exists(options.cost_table));
  options.measure = plan::MeasureMode::kOff;
  options.require_prices = true;
  const Compiled full = compiled(model, options);
  EXPECT_TRUE(full.report.price_misses.empty());
  EXPECT_GT(full.report.price_hits, 0U);
  const auto again = artefact::serialize_program(compiled(model, options).image);
  ASSERT_TRUE(again);
  EXPECT_TRUE(*again == *artefact::serialize_program(full.image));
}

TEST(Compile, WhatTheBudgetDoesNotReachIsEstimated) {
  const TempDir folder;
  CompileOptions options;
  options.cost_table = folder / "prices.json";
  options.measure = plan::MeasureMode::kMissing;
  options.measure_seconds = 0;
  const Compiled result = compiled(folder.write("m.onnx", small_model()), options);
  EXPECT_FALSE(result.report.price_misses.empty());
  EXPECT_EQ(result.report.price_hits, 0U);
  EXPECT_FALSE(std::filesystem::exists(options.cost_table));
}

TEST(Compile, WhatWasMeasuredSurvivesAStopAndIsNotMeasuredAgain) {
  const TempDir folder;
  const auto model = folder.write("m.onnx", small_model());
  CompileOptions options;
  options.cost_table = folder / "prices.json";
  options.measure = plan::MeasureMode::kMissing;
  options.measure_seconds = 60;
  std::stop_source source;
  options.cancel = source.get_token();
  int kernels = 0;
  options.progress = [&](std::string_view stage, double) {
    if (stage == "measure" && ++kernels == 3) source.request_stop();
  };
  const auto stopped = compile(model, options);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
  const auto kept = plan::CostTable::load(options.cost_table);
  ASSERT_TRUE(kept) << kept.error().to_string();
  EXPECT_EQ(kept->size(), 3U);

  options.cancel = {};
  options.progress = nullptr;
  const Compiled rest = compiled(model, options);
  const auto whole = plan::CostTable::load(options.cost_table);
  ASSERT_TRUE(whole) << whole.error().to_string();
  EXPECT_GE(rest.measuring.measured + 3, whole->size());
  EXPECT_EQ(rest.measuring.budget_s, 60);
  EXPECT_FALSE(rest.estimates.empty());
  for (const auto& [key, entry] : kept->entries())
    EXPECT_TRUE(entry.busy || *whole->find(key) == entry) << key;
}

TEST(Compile, MalformedCostTable) {
  const TempDir folder;
  CompileOptions options;
  options.cost_table = folder.write("prices.json", "{}");
  EXPECT_EQ(compile_error(small_model(), options),
            options.cost_table.string() +
                ": not a cost table: expected schema tessera.cost_table/1.1, found null");
}

TEST(Compile, DisabledPasses) {
  CompileOptions options;
  options.disabled_passes = {"fold_everything"};
  EXPECT_THAT(compile_error(small_model(), options),
              StartsWith("no pass is named 'fold_everything' (there are "));
  options.disabled_passes = {"fold_constants"};
  const TempDir folder;
  for (const auto& pass : compiled(folder.write("m.onnx", small_model()), options).report.passes)
    EXPECT_NE(pass.name, "fold_constants");
}

TEST(Compile, UnknownDevicesAndInputs) {
  CompileOptions options;
  options.devices = {"tpu"};
  EXPECT_THAT(compile_error(small_model(), options), HasSubstr("'tpu'"));
  options.devices = {"cpu", "cpu"};
  EXPECT_EQ(compile_error(small_model(), options), "two devices are called 'cpu'");
  options.devices = {"cpu"};
  options.shapes = {{"z", {1, 4, 12, 12}}};
  EXPECT_EQ(compile_error(small_model(), options), "--shape: no input 'z': expected one of 'x'");
}

TEST(Compile, StopsWhenAsked) {
  std::stop_source source;
  source.request_stop();
  CompileOptions options;
  options.cancel = source.get_token();
  EXPECT_EQ(compile_error(small_model(), options), "stopped");
}

TEST(Compile, ProgressNamesStages) {
  const TempDir folder;
  std::set<std::string, std::less<>> stages;
  CompileOptions options;
  options.progress = [&](std::string_view stage, double share) {
    stages.emplace(stage);
    EXPECT_GE(share, 0);
    EXPECT_LE(share, 1);
  };
  compiled(folder.write("m.onnx", small_model()), options);
  for (const char* stage : {"import", "infer", "simplify", "fuse", "assign", "emit"})
    EXPECT_TRUE(stages.contains(stage)) << stage;
}

TEST(Compile, AModelWithoutWork) {
  OnnxModel model(17);
  model.input("x", testing::kFloat, {"n", 2});
  model.node("Identity", {"x"}, {"y"}, "same");
  model.output("y", testing::kFloat, {"n", 2});
  const TempDir folder;
  const auto path = folder.write("m.onnx", model.serialize());
  const Compiled result = compiled(path, {});
  const auto executor = executor_of(result.image, "");
  ASSERT_NE(executor, nullptr);
  expect_reference_values(*executor, path, random_tensor({3, 2}, 8), 0);
}

TEST(Compile, StatesLastFromCallToCall) {
  OnnxModel model(17);
  model.input("x", testing::kFloat, {2});
  model.input("s", testing::kFloat, {2});
  model.node("Add", {"x", "s"}, {"t"}, "sum");
  model.node("Neg", {"s"}, {"y"}, "negate");
  model.output("t", testing::kFloat, {2});
  model.output("y", testing::kFloat, {2});
  const TempDir folder;
  CompileOptions options;
  options.states = {{"s", "t"}};
  const Compiled result = compiled(folder.write("m.onnx", model.serialize()), options);
  const auto executor = executor_of(result.image, "");
  ASSERT_NE(executor, nullptr);
  const Tensor x = Tensor::of<float>(DType::kFp32, {2}, std::vector<float>{1, 10});
  ASSERT_TRUE(executor->bind_input("x", x.dtype(), x.dims(), x.data()));
  for (int call = 0; call < 3; ++call) {
    ASSERT_TRUE(executor->run());
    const auto y = executor->output("y");
    ASSERT_TRUE(y) << y.error().to_string();
    EXPECT_EQ(y->as<float>()[0], static_cast<float>(-call));
    EXPECT_EQ(y->as<float>()[1], static_cast<float>(-10 * call));
  }
}

}  // namespace
}  // namespace tessera::compiler
