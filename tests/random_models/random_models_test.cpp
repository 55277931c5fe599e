// Random models in the ordinary tests: a bounded number of them through the whole chain, floors on
// what they exercise, and the tools that make, compare and shrink them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "io/npz.h"
#include "io/onnx.pb.h"
#include "ops/op_table.h"
#include "random_models/case_folder.h"
#include "random_models/coverage.h"
#include "random_models/generate.h"
#include "random_models/isolate.h"
#include "random_models/recipes.h"
#include "random_models/shrink.h"
#include "testing/temp_dir.h"

namespace tessera::random_models {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kModels = 150;
constexpr std::uint64_t kModelsForCoverage = 1000;

TEST(RandomModels, EveryWayComputesWhatTheReferenceDoes) {
  for (const std::uint64_t seed : testing::seeds(kModels)) {
    const Generated made = generate(seed);
    if (made.model.nodes.empty()) continue;
    const auto evaluation = evaluate(made.model);
    ASSERT_TRUE(evaluation) << testing::seed_text(seed) << evaluation.error().to_string();
    const auto failure = check_isolated(made.model, *evaluation, ways_of(made.model, seed));
    EXPECT_FALSE(failure) << testing::seed_text(seed) << "\n"
                          << (failure ? failure->to_string() : "") << "\n"
                          << to_string(made.model);
  }
}

TEST(RandomModels, ReachTheOperatorsDtypesAndAttributesOfTheTable) {
  Coverage coverage;
  std::size_t refused = 0;
  for (std::uint64_t seed = 0; seed < kModelsForCoverage; ++seed) {
    const Generated made = generate(seed);
    refused += made.refused.size();
    const auto evaluation = evaluate(made.model);
    ASSERT_TRUE(evaluation) << testing::seed_text(seed) << evaluation.error().to_string();
    coverage.add(made.model, *evaluation);
  }
  std::printf("%s", coverage.to_string().c_str());
  EXPECT_EQ(coverage.operators(), 1);
  EXPECT_GE(coverage.dtypes(), 0.97);
  EXPECT_GE(coverage.attributes(), 0.97);
  EXPECT_LE(refused, kModelsForCoverage * kTargetsPerModel / 20);
}

// Elements that are no whole bytes, of 16 bytes, and texts, where operators only move them.
TEST(RandomModels, MoveElementsOfEveryWidth) {
  for (const DType dtype :
       {DType::kComplex128, DType::kInt4, DType::kUInt2, DType::kFp4E2M1, DType::kString}) {
    for (const char* op : {"Concat", "Expand", "Gather", "Pad", "Scan", "Slice", "Split", "Tile",
                           "Transpose", "Unsqueeze"}) {
      for (std::uint64_t seed = 0; seed < 3; ++seed) {
        Draft draft(seed);
        if (std::ranges::count(key_dtypes(recipe_of(op)), dtype) == 0) continue;
        ASSERT_EQ(try_recipe(draft, recipe_of(op), dtype), "") << op;
        const Model model = draft.finish();
        const auto evaluation = evaluate(model);
        ASSERT_TRUE(evaluation) << evaluation.error().to_string();
        const auto failure = check_isolated(model, *evaluation, ways_of(model, seed));
        EXPECT_FALSE(failure) << (failure ? failure->to_string() : "") << "\n" << to_string(model);
      }
    }
  }
}

TEST(RandomModels, TheSameSeedGivesTheSameModel) {
  const Generated first = generate(5);
  const Generated second = generate(5);
  const auto evaluation = evaluate(first.model);
  ASSERT_TRUE(evaluation);
  EXPECT_EQ(to_onnx(first.model, dtypes_of(*evaluation)).SerializeAsString(),
            to_onnx(second.model, dtypes_of(*evaluation)).SerializeAsString());
  EXPECT_NE(to_string(first.model), to_string(generate(6).model));
}

TEST(Recipes, EveryOperatorOfTheTableHasOneOrAReason) {
  std::set<std::string_view> known;
  for (const Recipe& recipe : all_recipes()) {
    EXPECT_TRUE(known.insert(recipe.op).second) << recipe.op << " stands twice";
    EXPECT_NE(ops::find_op("", recipe.op), nullptr) << recipe.op;
  }
  for (const Untested& entry : untested_operators()) {
    EXPECT_TRUE(known.insert(entry.op).second) << entry.op << " has a recipe and a reason";
    EXPECT_NE(ops::find_op("", entry.op), nullptr) << entry.op;
    EXPECT_NE(entry.reason, "");
  }
  for (const ops::OpSchema& op : ops::all_ops()) {
    if (!op.domain.empty()) continue;
    EXPECT_TRUE(known.contains(op.name)) << op.name;
  }
}

// ---- Comparing

Elements floats(std::initializer_list<float> values) {
  const Tensor tensor = Tensor::of<float>(DType::kFp32, {static_cast<std::int64_t>(values.size())},
                                          std::span(values.begin(), values.size()));
  return {tensor, {tensor, tensor}, nullptr};
}

TEST(Difference, WithoutSpreadResultsMustBeEqual) {
  const Elements expected = floats({1, 0, NAN, HUGE_VALF});
  EXPECT_EQ(difference(expected, floats({1, -0.0F, NAN, HUGE_VALF}).nominal.view()), "");
  EXPECT_EQ(difference(expected, floats({1.0000001F, 0, NAN, HUGE_VALF}).nominal.view()),
            "1 of 4 elements differ; at [0]: expected 1 (within 0), found 1.00000012");
  EXPECT_EQ(difference(expected, floats({1, 0, 3, HUGE_VALF}).nominal.view()),
            "1 of 4 elements differ; at [2]: expected nan (within 0), found 3");
  EXPECT_THAT(difference(expected, floats({1, 0, NAN, -HUGE_VALF}).nominal.view()),
              HasSubstr("expected inf"));
}

TEST(Difference, TheSpreadIsAllowedFourTimes) {
  Elements expected = floats({1, 8});
  expected.shaken[0] = floats({1.01F, 8}).nominal;
  EXPECT_EQ(difference(expected, floats({1.035F, 8}).nominal.view()), "");
  EXPECT_THAT(difference(expected, floats({1.05F, 8}).nominal.view()), HasSubstr("at [0]"));
  EXPECT_THAT(difference(expected, floats({1, 8.1F}).nominal.view()), HasSubstr("at [1]"));
}

TEST(Difference, ShakesThatCancelAllowOneOfThem) {
  Elements expected = floats({2});
  expected.shaken[0] = floats({2}).nominal;  // reached, and back where it was
  EXPECT_EQ(difference(expected, floats({2.00001F}).nominal.view()), "");
  EXPECT_THAT(difference(expected, floats({2.001F}).nominal.view()), HasSubstr("at [0]"));
}

TEST(Difference, RoundingIsAllowedWhereItIsSaid) {
  const Elements expected = floats({4});
  EXPECT_EQ(difference(expected, floats({4.000001F}).nominal.view(), 1e-6), "");
  EXPECT_THAT(difference(expected, floats({4.00001F}).nominal.view(), 1e-6), HasSubstr("at [0]"));
}

TEST(Difference, NamesTypesThatDiffer) {
  EXPECT_EQ(difference(floats({1}), floats({1, 2}).nominal.view()),
            "expected fp32[1], found fp32[2]");
}

// ---- Evaluating

Model one_node(const char* op, std::vector<float> elements) {
  Model model;
  Value x;
  x.name = "x";
  x.source = Source::kInput;
  x.symbols = {""};
  const auto count = static_cast<std::int64_t>(elements.size());
  x.elements[0] = x.elements[1] = Tensor::of<float>(DType::kFp32, {count}, elements);
  Value t;
  t.name = "t";
  Value y;
  y.name = "y";
  model.values = {x, t, y};
  model.nodes = {{ops::find_op("", "Exp"), {}, {0}, {1}, "exp", {}},
                 {ops::find_op("", op), {}, {1}, {2}, "last", {}}};
  model.outputs = {2};
  return model;
}

TEST(Evaluate, RefusesResultsThatDependOnRounding) {
  EXPECT_TRUE(evaluate(one_node("Floor", {0.5F})));
  const auto at_a_step = evaluate(one_node("Floor", {0}));  // exp(0) is 1, or just below
  ASSERT_FALSE(at_a_step);
  EXPECT_EQ(at_a_step.error().to_string(), "node 'last': rounding changes it too much");
}

// Results that hang on two numbers being the very same, which no shaking makes them.
TEST(Evaluate, RefusesPointsThatRoundingMayHit) {
  EXPECT_TRUE(evaluate(one_node("Unique", {0, 1})));
  const auto twins = evaluate(one_node("Unique", {1, 1.0000001F}));
  ASSERT_FALSE(twins);
  EXPECT_EQ(twins.error().to_string(), "node 'last': it depends on rounding");
  EXPECT_TRUE(evaluate(one_node("NonZero", {0, 1})));
  EXPECT_FALSE(evaluate(one_node("NonZero", {-40, 1})));  // exp(-40) beside exp(1)
}

TEST(Evaluate, SpreadsComeFromAllNodesBefore) {
  const auto evaluation = evaluate(one_node("Relu", {1}));
  ASSERT_TRUE(evaluation);
  const Elements& y = (*evaluation)[2][0];
  EXPECT_NE(y.shaken[0].span<float>()[0], y.nominal.span<float>()[0]);
  EXPECT_NE(y.shaken[0].span<float>()[0], y.shaken[1].span<float>()[0]);
}

// ---- Bodies, sequences, and dtypes of few bits

Node body_node(const char* op, std::vector<ValueId> inputs, ValueId output) {
  return {ops::find_op("", op), {}, std::move(inputs), {output}, op, {}};
}

Value named(const char* name, Source source, const Tensor& sample = {}) {
  Value value;
  value.name = name;
  value.source = source;
  value.elements = {sample, sample};
  value.symbols.assign(sample.dims().size(), "");
  return value;
}

// y, s = Loop over `trips` rounds from x: state + captured c, and each new state.
Model counting_loop(std::int64_t trips) {
  const Tensor one = constant_tensor(DType::kInt32, {2}, {3, 5});
  Body body;
  body.attribute = "body";
  body.graph.values = {named("i", Source::kInput, constant_tensor(DType::kInt64, {}, {0})),
                       named("go", Source::kInput, constant_tensor(DType::kBool, {}, {1})),
                       named("state", Source::kInput, one),
                       named("c", Source::kOuter),
                       named("next", Source::kNode),
                       named("slice", Source::kNode)};
  body.graph.nodes = {body_node("Add", {2, 3}, 4), body_node("Identity", {4}, 5)};
  body.graph.outputs = {1, 4, 5};
  body.formals = {0, 1, 2};
  body.captures = {{3, 2}};
  body.output_dtypes = {DType::kBool, DType::kInt32, DType::kInt32};
  Model model;
  model.values = {named("m", Source::kConstant,
                        constant_tensor(DType::kInt64, {}, {static_cast<double>(trips)})),
                  named("x", Source::kInput, one), named("c", Source::kInput, one),
                  named("y", Source::kNode), named("s", Source::kNode)};
  model.nodes = {{ops::find_op("", "Loop"), {}, {0, kOmitted, 1}, {3, 4}, "loop", {body}}};
  model.outputs = {3, 4};
  return model;
}

TEST(Evaluate, RunsBodiesAsOftenAsTheyAre) {
  const auto thrice = evaluate(counting_loop(3));
  ASSERT_TRUE(thrice) << thrice.error().to_string();
  EXPECT_EQ(to_int64_vector((*thrice)[3][0].nominal.view()), (std::vector<std::int64_t>{12, 20}));
  EXPECT_EQ((*thrice)[4][0].nominal.dims(), (Dims{3, 2}));
  EXPECT_EQ(to_int64_vector((*thrice)[4][0].nominal.view()),
            (std::vector<std::int64_t>{6, 10, 9, 15, 12, 20}));
  const auto never = evaluate(counting_loop(0));
  ASSERT_TRUE(never) << never.error().to_string();
  EXPECT_EQ(to_int64_vector((*never)[3][0].nominal.view()), (std::vector<std::int64_t>{3, 5}));
  EXPECT_EQ((*never)[4][0].nominal.dims(), (Dims{0, 2}));
  const auto endless = evaluate(counting_loop(1000));
  ASSERT_FALSE(endless);
  EXPECT_EQ(endless.error().to_string(), "node 'loop': it does not end soon");
}

TEST(Bodies, ComputeInEveryWayWhatTheyDoHere) {
  for (const std::int64_t trips : {0, 3}) {
    const Model model = counting_loop(trips);
    const auto evaluation = evaluate(model);
    ASSERT_TRUE(evaluation) << evaluation.error().to_string();
    const auto failure = check_isolated(model, *evaluation, ways_of(model, 1));
    EXPECT_FALSE(failure) << failure->to_string();
  }
}

TEST(Bodies, KeepWhatTheyReadOfTheGraphAround) {
  Model model = counting_loop(2);
  model.outputs = {3};
  model.values.insert(model.values.begin(), named("unused", Source::kInput, Tensor()));
  for (auto* ids : {&model.outputs, &model.nodes[0].inputs, &model.nodes[0].outputs})
    for (ValueId& id : *ids)
      if (id != kOmitted) ++id;
  ++model.nodes[0].bodies[0].captures[0].second;
  const Model small = pruned(model);
  EXPECT_EQ(small.values.size(), 5U);
  EXPECT_EQ(small.nodes[0].bodies[0].captures[0].second, 2);
  EXPECT_THAT(to_string(small), HasSubstr("  body:\n    input i : int64[]\n"));
  EXPECT_THAT(to_string(small), HasSubstr("    next = Add(state, c) {}\n"));
}

// Minus infinity is added to scores: it hides no NaN, which the last batch alone has.
TEST(Attention, AMaskedScoreThatIsNoNumberStaysOneInEveryWay) {
  std::vector<double> keys(16, 1);
  keys[12] = std::nan("");
  Model model;
  const auto input = [](const char* name, const Tensor& tensor) {
    return named(name, Source::kInput, tensor);
  };
  const std::vector<double> ones(16, 1);
  model.values = {input("q", constant_tensor(DType::kFp32, {4, 1, 2, 2}, ones)),
                  input("k", constant_tensor(DType::kFp32, {4, 1, 2, 2}, keys)),
                  input("v", constant_tensor(DType::kFp32, {4, 1, 2, 2}, ones)),
                  input("m", constant_tensor(DType::kBool, {2, 2}, {0, 1, 0, 1})),
                  named("y", Source::kNode)};
  model.nodes = {body_node("Attention", {0, 1, 2, 3}, 4)};
  model.outputs = {4};
  const auto evaluation = evaluate(model);
  ASSERT_TRUE(evaluation) << evaluation.error().to_string();
  EXPECT_TRUE(std::isnan((*evaluation)[4][0].nominal.span<float>()[12]));
  const auto failure = check_isolated(model, *evaluation, ways_of(model, 1));
  EXPECT_FALSE(failure) << failure->to_string();
}

TEST(Draft, DrawsWhatADtypeHolds) {
  Draft draft(1);
  const std::map<DType, Range> bounds = {{DType::kInt2, {-2, 1}},   {DType::kUInt2, {0, 3}},
                                         {DType::kInt4, {-8, 7}},   {DType::kUInt4, {0, 15}},
                                         {DType::kBool, {0, 1}},    {DType::kFp8E8M0, {0.125, 2}},
                                         {DType::kFp4E2M1, {-2, 2}}};
  for (const auto& [dtype, range] : bounds) {
    const ValueId id = draft.fresh(dtype, {{64, 64}});
    EXPECT_TRUE(draft.within(id, range)) << tessera::to_string(dtype);
    EXPECT_FALSE(draft.within(id, {0, 0})) << tessera::to_string(dtype);
  }
}

TEST(ConstantTensor, HoldsWordsAndComplexNumbers) {
  const Tensor words = constant_tensor(DType::kString, {2}, {4, 1});
  EXPECT_EQ(words.span<std::string>()[0], "a");
  EXPECT_EQ(words.span<std::string>()[1], "1");
  const Tensor pair = constant_tensor(DType::kComplex64, {1}, {2});
  EXPECT_EQ(static_cast<const float*>(pair.data())[0], 2);
  EXPECT_EQ(static_cast<const float*>(pair.data())[1], -1.5F);
  EXPECT_TRUE(doubles(words).empty());
}

// ---- Children

TEST(Isolated, ACrashIsAFailureOfItsWay) {
  const auto failure = run_isolated(
      [](const auto& begin) -> std::optional<Failure> {
        begin(
            Way{.name = "first", .devices = {}, .profile = {}, .disabled_passes = {}, .rules = {}});
        std::fprintf(stderr, "last words\n");
        std::signal(SIGABRT, SIG_DFL);
        std::abort();
      },
      60);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->way, "first");
  EXPECT_EQ(failure->kind, "crashed");
  EXPECT_THAT(failure->message, HasSubstr("Aborted"));
  EXPECT_THAT(failure->message, HasSubstr("last words"));
}

TEST(Isolated, AHangIsAFailure) {
  const auto failure = run_isolated(
      [](const auto&) -> std::optional<Failure> {
        while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
      },
      1);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->kind, "hangs");
}

TEST(Isolated, AnswersPass) {
  EXPECT_FALSE(run_isolated([](const auto&) { return std::optional<Failure>(); }, 60));
  const auto failure = run_isolated(
      [](const auto&) {
        return std::optional(Failure{"cpu", "wrong", "one line\nand another"});
      },
      60);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->to_string(), "cpu: wrong: one line\nand another");
}

// ---- Shrinking

bool has_op(const Model& model, std::string_view op) {
  return std::ranges::any_of(model.nodes, [&](const Node& node) { return node.op->name == op; });
}

TEST(Shrink, LeavesTheOneNodeThatFails) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Generated made = generate(seed);
    if (made.model.nodes.size() < 4) continue;
    const std::string op(made.model.nodes[made.model.nodes.size() / 2].op->name);
    const Model small = shrink(made.model, [&](const Model& candidate, const Evaluation&) {
      return has_op(candidate, op);
    });
    SCOPED_TRACE(to_string(made.model) + "->\n" + to_string(small));
    EXPECT_TRUE(has_op(small, op));
    EXPECT_LE(small.nodes.size(), 3U);  // a shape that is computed, or a sequence, needs its nodes
    EXPECT_EQ(small.outputs.size(), 1U);
  }
}

TEST(Shrink, KeepsAModelThatNothingSmallerOfFails) {
  const Generated made = generate(3);
  const Model same = shrink(made.model, [](const Model&, const Evaluation&) { return false; });
  EXPECT_EQ(to_string(same), to_string(pruned(made.model)));
}

TEST(Shrink, AsksNoMoreThanItMay) {
  std::size_t asked = 0;
  (void)shrink(
      generate(3).model,
      [&](const Model&, const Evaluation&) {
        ++asked;
        return false;
      },
      5);
  EXPECT_LE(asked, 5U);
}

// ---- Case folders

TEST(CaseFolder, HoldsWhatACaseRunnerNeeds) {
  const testing::TempDir folder;
  const Generated made = generate(7);
  const auto evaluation = evaluate(made.model);
  ASSERT_TRUE(evaluation);
  const auto path = folder / "failure";
  const Status written = write_case(path, made.model, *evaluation, {"cpu", "wrong", "at [0]"}, 7);
  ASSERT_TRUE(written) << written.error().to_string();
  const auto json = nlohmann::json::parse(testing::read_bytes(path / "case.json"));
  EXPECT_EQ(json["id"], "failure");
  EXPECT_EQ(json["kind"], "random");
  EXPECT_EQ(json["what_goes_wrong"], "cpu: wrong: at [0]");
  EXPECT_EQ(json["expect"]["run"], "ok");
  EXPECT_EQ(json["expect"]["steps"][1]["inputs"], "inputs_2.npz");
  for (const char* name : {"expected.npz", "expected_2.npz"}) {
    const auto outputs = io::read_npz(path / name);
    ASSERT_TRUE(outputs) << outputs.error().to_string();
    EXPECT_EQ(outputs->size(), made.model.outputs.size());
  }
  EXPECT_FALSE(testing::read_bytes(path / "model.onnx").empty());
}

TEST(CaseFolder, SaysWhereItCannotBeWritten) {
  const testing::TempDir folder;
  const auto file = folder.write("taken", "x");
  const Generated made = generate(7);
  const auto evaluation = evaluate(made.model);
  ASSERT_TRUE(evaluation);
  const Status written = write_case(file / "failure", made.model, *evaluation, {}, 7);
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().to_string(), HasSubstr("taken/failure: Not a directory"));
}

}  // namespace
}  // namespace tessera::random_models
