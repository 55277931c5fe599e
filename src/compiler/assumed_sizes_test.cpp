#include "compiler/assumed_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/compile.h"
#include "compiler/seen_run.h"
#include "testing/onnx_builder.h"
#include "testing/run_devices.h"
#include "testing/temp_dir.h"

namespace tessera::compiler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::OnnxModel;
using testing::OnnxNode;
using testing::TempDir;

Compiled compiled(const OnnxModel& model, const CompileOptions& options = {}) {
  const TempDir folder;
  auto result = compile(folder.write("m.onnx", model.serialize()), options);
  EXPECT_TRUE(result) << result.error().to_string();
  return result ? *std::move(result) : Compiled{};
}

// Those of the report, without the prefix.
std::map<std::string, std::string> assumptions(const Compiled& result) {
  std::map<std::string, std::string> found;
  for (const auto& [key, value] : result.report.options)
    if (key.starts_with("assumed.")) found[key.substr(8)] = value;
  return found;
}

// Squeezes where there is something to squeeze: only the run knows the rank of `s`, and that of
// what follows. `keep` alone says which branch runs.
OnnxModel of_two_ranks() {
  OnnxModel model;
  model.input("x", testing::kFloat, {1, 6, 4});
  model.input("keep", testing::kInt64, {});
  model.ints("none", {}, {0});
  model.ints("first", {1}, {0});
  model.node("Equal", {"keep", "none"}, {"is_none"}, "equal");
  auto node = model.node("If", {"is_none"}, {"s"}, "if");
  auto& then = node.graph("then_branch", "t");
  OnnxNode(then, "Squeeze", {"x", "first"}, {"squeezed"}, "squeeze");
  then.add_output()->set_name("squeezed");
  auto& otherwise = node.graph("else_branch", "e");
  OnnxNode(otherwise, "Identity", {"x"}, {"same"}, "identity");
  otherwise.add_output()->set_name("same");
  model.node("Relu", {"s"}, {"y"}, "relu");
  model.output("y");
  return model;
}

// As many elements as are above zero.
OnnxModel of_some_elements() {
  OnnxModel model;
  model.input("x", testing::kFloat, {"n"});
  model.floats("zero", {}, {0});
  model.node("Greater", {"x", "zero"}, {"above"}, "greater");
  model.node("Compress", {"x", "above"}, {"kept"}, "compress");
  model.node("Exp", {"kept"}, {"y"}, "exp");
  model.output("y");
  return model;
}

TEST(AssumedSizes, NoneWhereTheInputsDetermineAll) {
  OnnxModel model;
  model.input("x", testing::kFloat, {"n", 4});
  model.node("Relu", {"x"}, {"y"});
  model.output("y");
  EXPECT_THAT(assumptions(compiled(model)), IsEmpty());
}

TEST(AssumedSizes, AreThoseOfARun) {
  CompileOptions options;
  options.shapes = {{"x", {1000}}};
  const Compiled result = compiled(of_some_elements(), options);
  const auto found = assumptions(result);
  ASSERT_EQ(found.size(), 1U) << "the number of elements that are kept";
  EXPECT_THAT(found.begin()->second, HasSubstr(", seen in a run"));
  const int size = std::stoi(found.begin()->second);
  EXPECT_GT(size, 400) << "half of what is drawn";
  EXPECT_LT(size, 600);
  EXPECT_EQ(result.report.options.at("priced_at." + found.begin()->first), std::to_string(size));
}

TEST(AssumedSizes, RanksAreThoseOfARun) {
  const auto found = assumptions(compiled(of_two_ranks()));
  EXPECT_EQ(found.at("s"), "[1x6x4], seen in a run") << "integers are drawn as 1";
  EXPECT_EQ(found.at("y"), "[1x6x4], seen in a run");
}

// The price of a node behind the branches is that of its sizes, not of a scalar.
TEST(AssumedSizes, PriceTheNodes) {
  const auto price = [](std::int64_t width) {
    OnnxModel model = of_two_ranks();
    model.graph()
        .mutable_input(0)
        ->mutable_type()
        ->mutable_tensor_type()
        ->mutable_shape()
        ->mutable_dim(1)
        ->set_dim_value(width);
    const Compiled result = compiled(model);
    for (const auto& node : result.report.nodes)
      if (node.name == "relu") return node.selected.price_us;
    return 0.0;
  };
  EXPECT_GT(price(6), 1) << "memory that the call makes";
  EXPECT_GT(price(60'000), 100 * price(6));
}

TEST(AssumedSizes, AreGuessesWhereTheRunFails) {
  OnnxModel model;
  model.input("x", testing::kFloat, {6});
  model.input("shape", testing::kInt64, {2});
  model.node("Reshape", {"x", "shape"}, {"r"}, "reshape");
  model.node("Relu", {"r"}, {"y"}, "relu");
  model.output("y");
  const Compiled result = compiled(model);
  for (const auto& [symbol, text] : assumptions(result)) EXPECT_THAT(text, HasSubstr(", a guess"));
  EXPECT_EQ(assumptions(result).size(), 2U);
  bool is_named = false;
  for (const auto& miss : result.report.near_misses)
    if (miss.pattern == "sizes that only the run decides") {
      is_named = true;
      EXPECT_THAT(miss.reason, HasSubstr("node 'reshape': "));
    }
  EXPECT_TRUE(is_named);
}

// Images of 224 x 224 and kernels as large.
TEST(AssumedSizes, AreGuessesWhereTheRunTakesTooLong) {
  OnnxModel model;
  model.input("x", testing::kFloat, {"n", "c", "h", "w"});
  model.input("k", testing::kFloat, {"o", "c", "kh", "kw"});
  model.node("Conv", {"x", "k"}, {"conv"}, "conv").text("auto_pad", "SAME_UPPER");
  model.node("NonZero", {"conv"}, {"y"}, "non_zero");
  model.output("y");
  const Compiled result = compiled(model);
  for (const auto& [symbol, text] : assumptions(result)) EXPECT_THAT(text, HasSubstr(", a guess"));
  std::string reasons;
  for (const auto& miss : result.report.near_misses)
    if (miss.pattern == "sizes that only the run decides") reasons += miss.reason;
  EXPECT_THAT(reasons, HasSubstr("a run that shows them takes "));
  EXPECT_THAT(reasons, HasSubstr(" s by the rates of the processor, of 10 s allowed; --shape "
                                 "states smaller sizes"));
}

TEST(AssumedSizes, AreGuessesWhereTheInputsAreTooLarge) {
  OnnxModel model;
  model.input("x", testing::kFloat, {"n", "c", "d", "h", "w"});
  model.node("NonZero", {"x"}, {"y"}, "non_zero");
  model.output("y");
  const Compiled result = compiled(model);
  std::string reasons;
  for (const auto& miss : result.report.near_misses)
    if (miss.pattern == "sizes that only the run decides") reasons += miss.reason;
  EXPECT_THAT(reasons, HasSubstr("input 'x': drawing the inputs takes more than 268435456 bytes; "
                                 "--shape states smaller sizes"));
}

TEST(AssumedSizes, OfInputsThatCannotBeDrawn) {
  OnnxModel model;
  auto& type = *model.graph().add_input();
  type.set_name("s");
  type.mutable_type()
      ->mutable_sequence_type()
      ->mutable_elem_type()
      ->mutable_tensor_type()
      ->set_elem_type(testing::kFloat);
  model.node("ConcatFromSequence", {"s"}, {"y"}, "concat").integer("axis", 0);
  model.output("y");
  const Compiled result = compiled(model);
  std::string reasons;
  for (const auto& miss : result.report.near_misses)
    if (miss.pattern == "sizes that only the run decides") reasons += miss.reason;
  EXPECT_THAT(reasons, HasSubstr("input 's': "));
  EXPECT_THAT(reasons, HasSubstr(" cannot be drawn"));
}

// ---- The run that is looked at

SeenRun seen(const Compiled& result, const std::vector<Tensor>& inputs,
             const SeeOptions& options = {}) {
  const auto program = testing::try_load(result.image);
  EXPECT_TRUE(program) << program.error().to_string();
  auto run = see_run(*program, inputs, options);
  EXPECT_TRUE(run) << run.error().to_string();
  return *std::move(run);
}

std::vector<Tensor> inputs_of_two_ranks(std::int64_t keep) {
  return {*Tensor::zeros(DType::kFp32, {1, 6, 4}),
          Tensor::of<std::int64_t>(DType::kInt64, {}, std::span(&keep, 1))};
}

TEST(SeeRun, BodiesThatTheRunHasNoUseForOnlyWhereAsked) {
  const Compiled result = compiled(of_two_ranks());
  const SeenRun taken = seen(result, inputs_of_two_ranks(0));
  EXPECT_FALSE(taken.ended);
  EXPECT_EQ(taken.dims.at("s"), (Dims{6, 4}));
  EXPECT_FALSE(taken.dims.contains("same"));
  const SeenRun both = seen(result, inputs_of_two_ranks(0), {.all_bodies = true});
  EXPECT_EQ(both.dims.at("s"), (Dims{6, 4})) << "the branch that is taken gives the result";
  EXPECT_EQ(both.dims.at("same"), (Dims{1, 6, 4}));
}

TEST(SeeRun, KeepsTheOperandsOfWhatDecidesSizes) {
  const Compiled result = compiled(of_some_elements());
  const std::vector<float> elements = {1, -1, 2};
  const SeenRun run = seen(result, {Tensor::of<float>(DType::kFp32, {3}, elements)});
  EXPECT_EQ(run.dims.at("kept"), Dims{2});
  std::size_t late = 0;
  for (const auto& [place, call] : run.calls) {
    if (call.operands.empty()) continue;
    ++late;
    EXPECT_THAT(call.operands[0].tensor.span<float>(), ElementsAre(1, -1, 2));
    EXPECT_EQ(call.dims.outputs, std::vector<Dims>{{2}});
  }
  EXPECT_EQ(late, 1U) << "Compress";
}

// A list that grows by an element with each of nine trips.
TEST(SeeRun, OfALoopItLooksAtTheMiddle) {
  OnnxModel model;
  model.input("x", testing::kFloat, {1});
  model.input("trips", testing::kInt64, {});
  auto loop = model.node("Loop", {"trips", "", "x"}, {"y"}, "loop");
  auto& body = loop.graph("body", "b");
  testing::set_value(*body.add_input(), "i", testing::kInt64, {});
  testing::set_value(*body.add_input(), "go", testing::kBool, {});
  testing::set_value(*body.add_input(), "list", testing::kFloat, {"m"});
  OnnxNode(body, "Identity", {"go"}, {"on"});
  OnnxNode(body, "Concat", {"list", "x"}, {"longer"}, "concat").integer("axis", 0);
  body.add_output()->set_name("on");
  body.add_output()->set_name("longer");
  model.output("y");
  const Compiled result = compiled(model);
  const auto run_of = [&](std::int64_t trips, bool all_bodies) {
    const std::vector<Tensor> inputs = {
        *Tensor::zeros(DType::kFp32, {1}),
        Tensor::of<std::int64_t>(DType::kInt64, {}, std::span(&trips, 1))};
    return seen(result, inputs, {.all_bodies = all_bodies, .max_instructions = 100});
  };
  EXPECT_EQ(run_of(9, false).dims.at("longer"), Dims{6}) << "2 to 10";
  EXPECT_EQ(run_of(9, false).dims.at("y"), Dims{10});
  EXPECT_FALSE(run_of(0, false).dims.contains("longer"));
  const SeenRun once = run_of(0, true);
  EXPECT_EQ(once.dims.at("longer"), Dims{2});
  EXPECT_EQ(once.dims.at("y"), Dims{1}) << "the body that was tried changes no result";
  const SeenRun endless = run_of(INT64_MAX, false);
  ASSERT_TRUE(endless.ended);
  EXPECT_THAT(endless.ended->to_string(), HasSubstr("more than 100 instructions"));
}

TEST(SeeRun, EndsWhereItIsStopped) {
  std::stop_source source;
  source.request_stop();
  const SeenRun run =
      seen(compiled(of_two_ranks()), inputs_of_two_ranks(0), {.cancel = source.get_token()});
  ASSERT_TRUE(run.ended);
  EXPECT_THAT(run.ended->to_string(), HasSubstr("stopped"));
  EXPECT_THAT(run.calls, IsEmpty());
}

}  // namespace
}  // namespace tessera::compiler
