// If, Loop, Scan and sizes that only the run decides, through the whole chain: on the reference, on
// the cpu, and split with a simulated NPU that lacks an operator.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "backends/registry_run/registry_run.h"
#include "base/float_convert.h"
#include "compiler/compile.h"
#include "runtime/executor.h"
#include "testing/onnx_builder.h"
#include "testing/shared_data.h"
#include "testing/temp_dir.h"

namespace tessera::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Floats = std::vector<float>;
using Ints = std::vector<std::int64_t>;

Tensor floats(const Dims& dims, const Floats& values) {
  return Tensor::of<float>(DType::kFp32, dims, values);
}
Tensor ints(const Dims& dims, const Ints& values) {
  return Tensor::of<std::int64_t>(DType::kInt64, dims, values);
}
Tensor boolean(bool value) {
  return Tensor::copy_of({DType::kBool, {}, &value});
}

void body_input(onnx::GraphProto& body, const std::string& name, int dtype, const OnnxDims& dims) {
  set_value(*body.add_input(), name, dtype, dims);
}
void body_output(onnx::GraphProto& body, const std::string& name) {
  body.add_output()->set_name(name);
}

// A compiled model, ready for several runs.
class Compiled {
 public:
  Compiled(const OnnxModel& model, std::vector<std::string> devices) {
    compiler::CompileOptions options;
    options.devices = std::move(devices);
    auto compiled = compiler::compile(folder_.write("m.onnx", model.serialize()), options);
    if (!compiled) {
      error_ = compiled.error().to_string();
      return;
    }
    report_ = std::move(compiled->report);
    auto program =
        runtime::LoadedProgram::create(std::move(compiled->image), "", &backends::make_run_device);
    EXPECT_TRUE(program) << program.error().to_string();
    auto executor = runtime::Executor::create(*program, {.threads = 1, .trace = true});
    EXPECT_TRUE(executor) << executor.error().to_string();
    executor_ = *std::move(executor);
  }

  // The text of an error, or "".
  std::string run(const std::map<std::string, Tensor>& inputs) {
    if (executor_ == nullptr) return error_;
    for (const auto& [name, tensor] : inputs)
      if (auto status = executor_->bind_input(name, tensor.dtype(), tensor.dims(), tensor.data());
          !status)
        return status.error().to_string();
    const auto status = executor_->run();
    return status ? "" : status.error().to_string();
  }
  [[nodiscard]] Dims dims(const std::string& name) const { return executor_->output(name)->dims; }
  [[nodiscard]] Floats values(const std::string& name) const {
    const auto view = executor_->output(name);
    return {view->as<float>(), view->as<float>() + view->numel()};
  }
  [[nodiscard]] const report::Report& report() const { return report_; }
  [[nodiscard]] runtime::Executor& executor() { return *executor_; }

 private:
  TempDir folder_;
  std::string error_;
  report::Report report_;
  std::unique_ptr<runtime::Executor> executor_;
};

// An NPU that would rather do everything itself, but for Erf.
std::string quick_npu(const TempDir& folder) {
  return folder
      .write("npu.json",
             R"({"schema": "tessera.device/1.0", "name": "npu", "kind": "simulated",
                 "lacks": [{"op": "Erf"}], "launch_us": 0, "sync_us": 0,
                 "memory_gb_per_s": 100000, "link": {"gb_per_s": 100000, "latency_us": 0}})")
      .string();
}

class ControlFlow : public ::testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] std::vector<std::string> devices() const {
    if (GetParam() == "split") return {"cpu", quick_npu(folder_)};
    return {GetParam()};
  }
  TempDir folder_;
};

INSTANTIATE_TEST_SUITE_P(On, ControlFlow, ::testing::Values("reference", "cpu", "split"),
                         [](const auto& name) { return name.param; });

TEST_P(ControlFlow, BranchesOfOtherShapes) {
  OnnxModel model;
  model.input("c", kBool, {});
  model.input("x", kFloat, {"n", 2});
  model.node("Relu", {"x"}, {"h"});
  auto node = model.node("If", {"c"}, {"y"}, "choose");
  auto& then = node.graph("then_branch", "t");
  OnnxNode(then, "Erf", {"h"}, {"e"});
  OnnxNode(then, "Sub", {"e", "e"}, {"r"});
  body_output(then, "r");
  auto& otherwise = node.graph("else_branch", "e");
  OnnxNode(otherwise, "Concat", {"h", "x"}, {"r"}).integer("axis", 0);
  body_output(otherwise, "r");
  model.node("Neg", {"y"}, {"z"});
  model.output("z");
  Compiled compiled(model, devices());
  const Tensor x = floats({1, 2}, {1, -2});
  ASSERT_EQ(compiled.run({{"c", boolean(true)}, {"x", x}}), "");
  EXPECT_EQ(compiled.dims("z"), (Dims{1, 2}));
  EXPECT_THAT(compiled.values("z"), ElementsAre(0, 0));
  ASSERT_EQ(compiled.run({{"c", boolean(false)}, {"x", x}}), "");
  EXPECT_EQ(compiled.dims("z"), (Dims{2, 2}));
  EXPECT_THAT(compiled.values("z"), ElementsAre(-1, 0, -1, 2));
}

TEST_P(ControlFlow, BranchesOfOtherRankAndWithoutNodes) {
  OnnxModel model;
  model.input("c", kBool, {});
  model.input("x", kFloat, {2, 2});
  auto node = model.node("If", {"c"}, {"y"});
  auto& then = node.graph("then_branch", "t");
  set_floats(*then.add_initializer(), "k", {}, {7});
  body_output(then, "k");
  body_output(node.graph("else_branch", "e"), "x");
  model.node("Shape", {"y"}, {"s"});
  model.node("Cast", {"s"}, {"f"}).integer("to", kFloat);
  model.output("y");
  model.output("f");
  Compiled compiled(model, devices());
  const Tensor x = floats({2, 2}, {1, 2, 3, 4});
  ASSERT_EQ(compiled.run({{"c", boolean(true)}, {"x", x}}), "");
  EXPECT_EQ(compiled.dims("y"), (Dims{}));
  EXPECT_THAT(compiled.values("y"), ElementsAre(7));
  EXPECT_THAT(compiled.values("f"), ElementsAre());
  ASSERT_EQ(compiled.run({{"c", boolean(false)}, {"x", x}}), "");
  EXPECT_THAT(compiled.values("y"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(compiled.values("f"), ElementsAre(2, 2));
}

// y doubles and grows; s collects its sums; the loop ends where the sum passes a limit.
OnnxModel growing_loop() {
  OnnxModel model;
  model.input("m", kInt64, {});
  model.input("x", kFloat, {"n"});
  model.input("limit", kFloat, {});
  model.floats("two", {}, {2});
  auto node = model.node("Loop", {"m", "", "x"}, {"y", "s"}, "grow");
  auto& body = node.graph("body", "b");
  body_input(body, "i", kInt64, {});
  body_input(body, "go", kBool, {});
  body_input(body, "v", kFloat, {"k"});
  OnnxNode(body, "Mul", {"v", "two"}, {"d"});
  OnnxNode(body, "Concat", {"v", "d"}, {"w"}).integer("axis", 0);
  OnnxNode(body, "ReduceSum", {"w"}, {"p"}).integer("keepdims", 0);
  OnnxNode(body, "Less", {"p", "limit"}, {"goes"});
  body_output(body, "goes");
  body_output(body, "w");
  body_output(body, "p");
  model.output("y");
  model.output("s");
  return model;
}

TEST_P(ControlFlow, ACarriedValueGrows) {
  Compiled compiled(growing_loop(), devices());
  const Tensor x = floats({1}, {1});
  ASSERT_EQ(compiled.run({{"m", ints({}, {2})}, {"x", x}, {"limit", floats({}, {100})}}), "");
  EXPECT_THAT(compiled.values("y"), ElementsAre(1, 2, 2, 4));
  EXPECT_THAT(compiled.values("s"), ElementsAre(3, 9));
  ASSERT_EQ(compiled.run({{"m", ints({}, {9})}, {"x", x}, {"limit", floats({}, {20})}}), "");
  EXPECT_EQ(compiled.dims("y"), (Dims{8}));
  EXPECT_THAT(compiled.values("s"), ElementsAre(3, 9, 27)) << "the condition ends it";
}

TEST_P(ControlFlow, ALoopThatDoesNotRunGivesWhatItGot) {
  Compiled compiled(growing_loop(), devices());
  const Tensor x = floats({3}, {1, 2, 3});
  ASSERT_EQ(compiled.run({{"m", ints({}, {0})}, {"x", x}, {"limit", floats({}, {1})}}), "");
  EXPECT_THAT(compiled.values("y"), ElementsAre(1, 2, 3));
  EXPECT_EQ(compiled.dims("s"), (Dims{0}));
  ASSERT_EQ(compiled.run({{"m", ints({}, {1})}, {"x", x}, {"limit", floats({}, {1})}}), "");
  EXPECT_EQ(compiled.dims("y"), (Dims{6})) << "and runs again afterwards";
}

TEST_P(ControlFlow, ALoopInALoopReadsTheOuterCounter) {
  OnnxModel model;
  model.input("m", kInt64, {});
  model.input("x", kFloat, {});
  auto outer_node = model.node("Loop", {"m", "", "x"}, {"y"}, "outer");
  auto& outer = outer_node.graph("body", "o");
  body_input(outer, "i", kInt64, {});
  body_input(outer, "go", kBool, {});
  body_input(outer, "v", kFloat, {});
  OnnxNode(outer, "Identity", {"go"}, {"on"});
  OnnxNode inner_node(outer, "Loop", {"i", "", "v"}, {"w"}, "inner");
  auto& inner = inner_node.graph("body", "n");
  body_input(inner, "j", kInt64, {});
  body_input(inner, "go_j", kBool, {});
  body_input(inner, "u", kFloat, {});
  OnnxNode(inner, "Identity", {"go_j"}, {"on_j"});
  OnnxNode(inner, "Cast", {"i"}, {"f"}).integer("to", kFloat);
  OnnxNode(inner, "Add", {"u", "f"}, {"t"});
  OnnxNode(inner, "Add", {"t", "x"}, {"u2"});
  body_output(inner, "on_j");
  body_output(inner, "u2");
  body_output(outer, "on");
  body_output(outer, "w");
  model.output("y");
  Compiled compiled(model, devices());
  ASSERT_EQ(compiled.run({{"m", ints({}, {4})}, {"x", floats({}, {10})}}), "");
  // For i of 0 to 3, i times: + i + 10.
  EXPECT_THAT(compiled.values("y"), ElementsAre(10 + 1 * 11 + 2 * 12 + 3 * 13));
}

TEST_P(ControlFlow, ScanTakesAndStacksAlongAnyAxis) {
  OnnxModel model;
  model.input("start", kFloat, {2});
  model.input("x", kFloat, {2, "n"});
  auto node = model.node("Scan", {"start", "x"}, {"last", "all"}, "scan");
  node.integer("num_scan_inputs", 1)
      .ints("scan_input_axes", {1})
      .ints("scan_input_directions", {1})
      .ints("scan_output_axes", {-1})
      .ints("scan_output_directions", {1});
  auto& body = node.graph("body", "b");
  body_input(body, "s", kFloat, {2});
  body_input(body, "p", kFloat, {2});
  OnnxNode(body, "Add", {"s", "p"}, {"t"});
  OnnxNode(body, "Identity", {"t"}, {"u"});
  body_output(body, "t");
  body_output(body, "u");
  model.output("last");
  model.output("all");
  Compiled compiled(model, devices());
  ASSERT_EQ(compiled.run(
                {{"start", floats({2}, {0, 100})}, {"x", floats({2, 3}, {1, 2, 3, 10, 20, 30})}}),
            "");
  EXPECT_THAT(compiled.values("last"), ElementsAre(6, 160));
  EXPECT_EQ(compiled.dims("all"), (Dims{2, 3}));
  EXPECT_THAT(compiled.values("all"), ElementsAre(6, 5, 3, 160, 150, 130));
}

TEST_P(ControlFlow, AStateOfUnknownRankGoesThroughALoop) {
  OnnxModel model;
  model.input("c", kBool, {});
  model.input("x", kFloat, {2});
  model.input("m", kInt64, {});
  auto node = model.node("If", {"c"}, {"start"}, "choose");
  auto& then = node.graph("then_branch", "t");
  OnnxNode(then, "Neg", {"x"}, {"r"});
  body_output(then, "r");
  auto& otherwise = node.graph("else_branch", "e");
  OnnxNode(otherwise, "Unsqueeze", {"x", "axis"}, {"r"});
  body_output(otherwise, "r");
  model.ints("axis", {1}, {0});
  auto loop = model.node("Loop", {"m", "", "start"}, {"y"}, "loop");
  auto& body = loop.graph("body", "b");
  body_input(body, "i", kInt64, {});
  body_input(body, "go", kBool, {});
  set_value(*body.add_input(), "s", kFloat, {});
  body.mutable_input(2)->mutable_type()->mutable_tensor_type()->clear_shape();
  body_output(body, "go");
  body_output(body, "s");
  model.output("y");
  Compiled compiled(model, devices());
  const Tensor x = floats({2}, {1, -2});
  for (const std::int64_t trips : {3, 0}) {
    ASSERT_EQ(compiled.run({{"c", boolean(true)}, {"x", x}, {"m", ints({}, {trips})}}), "");
    EXPECT_EQ(compiled.dims("y"), (Dims{2}));
    EXPECT_THAT(compiled.values("y"), ElementsAre(-1, 2));
    ASSERT_EQ(compiled.run({{"c", boolean(false)}, {"x", x}, {"m", ints({}, {trips})}}), "");
    EXPECT_EQ(compiled.dims("y"), (Dims{1, 2}));
    EXPECT_THAT(compiled.values("y"), ElementsAre(1, -2));
  }
}

// What a branch in the body gives grows with the state that it reads.
TEST_P(ControlFlow, AStateGrowsThroughABranchInTheBody) {
  OnnxModel model;
  model.input("x", kFloat, {1});
  model.ints("m", {}, {3});
  auto loop = model.node("Loop", {"m", "", "x"}, {"y"}, "loop");
  auto& body = loop.graph("body", "b");
  body_input(body, "i", kInt64, {});
  body_input(body, "go", kBool, {});
  set_value(*body.add_input(), "s", kFloat, {});
  body.mutable_input(2)->mutable_type()->mutable_tensor_type()->clear_shape();
  OnnxNode branch(body, "If", {"go"}, {"more"}, "choose");
  auto& then = branch.graph("then_branch", "t");
  OnnxNode(then, "Neg", {"s"}, {"r"});
  body_output(then, "r");
  auto& otherwise = branch.graph("else_branch", "e");
  OnnxNode(otherwise, "Identity", {"x"}, {"q"});
  body_output(otherwise, "q");
  OnnxNode(body, "Concat", {"s", "more"}, {"next"}).integer("axis", 0);
  body_output(body, "go");
  body_output(body, "next");
  model.output("y");
  Compiled compiled(model, devices());
  ASSERT_EQ(compiled.run({{"x", floats({1}, {2})}}), "");
  EXPECT_THAT(compiled.values("y"), ElementsAre(2, -2, -2, 2, -2, 2, 2, -2));
}

TEST_P(ControlFlow, ConstantTextsComeOut) {
  OnnxModel model;
  model.input("x", kFloat, {1});
  model.node("Constant", {}, {"words"})
      .strings("value_strings", {"a", "", "long enough for a heap"});
  model.node("Relu", {"x"}, {"y"});
  model.output("words");
  model.output("y");
  Compiled compiled(model, devices());
  ASSERT_EQ(compiled.run({{"x", floats({1}, {1})}}), "");
  const auto words = compiled.executor().output("words");
  ASSERT_TRUE(words) << words.error().to_string();
  ASSERT_EQ(words->dims, Dims{3});
  EXPECT_EQ(words->as<std::string>()[0], "a");
  EXPECT_EQ(words->as<std::string>()[1], "");
  EXPECT_EQ(words->as<std::string>()[2], "long enough for a heap");
}

// Elements that are no whole bytes, and texts.
TEST_P(ControlFlow, ScansWhatIsNotInBytes) {
  for (const DType dtype : {DType::kInt4, DType::kUInt2, DType::kString}) {
    SCOPED_TRACE(to_string(dtype));
    const auto type = static_cast<int>(dtype);
    OnnxModel model;
    model.input("x", type, {2, 3});
    auto node = model.node("Scan", {"x"}, {"y"}, "scan");
    node.integer("num_scan_inputs", 1).ints("scan_input_axes", {1}).ints("scan_output_axes", {1});
    node.ints("scan_output_directions", {1});
    auto& body = node.graph("body", "b");
    body_input(body, "p", type, {2});
    OnnxNode(body, "Identity", {"p"}, {"q"});
    body_output(body, "q");
    model.output("y");
    Tensor x = *Tensor::zeros(dtype, {2, 3});
    Tensor expected = *Tensor::zeros(dtype, {2, 3});
    const std::vector<std::uint8_t> order = {2, 1, 0, 5, 4, 3};  // columns from the last on
    for (std::uint8_t i = 0; i < 6; ++i) {
      if (dtype == DType::kString) {
        static_cast<std::string*>(x.mutable_data())[i] = std::to_string(i);
        static_cast<std::string*>(expected.mutable_data())[i] = std::to_string(order[i]);
      } else {
        packed_set(x.mutable_data(), i, bits_of(dtype), i);
        packed_set(expected.mutable_data(), i, bits_of(dtype), order[i]);
      }
    }
    Compiled compiled(model, devices());
    ASSERT_EQ(compiled.run({{"x", x}}), "");
    EXPECT_TRUE(Tensor::copy_of(*compiled.executor().output("y")).equals(expected));
  }
}

TEST_P(ControlFlow, SizesThatTheDataDecides) {
  OnnxModel model;
  model.input("x", kFloat, {"n"});
  model.node("NonZero", {"x"}, {"i"}, "where");
  model.node("Transpose", {"i"}, {"t"});
  model.node("GatherND", {"x", "t"}, {"g"});
  model.node("Neg", {"g"}, {"y"});
  model.node("Relu", {"x"}, {"z"});
  model.output("y");
  model.output("z");
  Compiled compiled(model, devices());
  ASSERT_EQ(compiled.run({{"x", floats({4}, {0, 2, 0, -3})}}), "");
  EXPECT_THAT(compiled.values("y"), ElementsAre(-2, 3));
  EXPECT_THAT(compiled.values("z"), ElementsAre(0, 2, 0, 0));
  ASSERT_EQ(compiled.run({{"x", floats({2}, {0, 0})}}), "");
  EXPECT_EQ(compiled.dims("y"), (Dims{0}));
}

TEST(ControlFlowReport, NodesOfBodiesSayWhereTheyStand) {
  Compiled compiled(growing_loop(), {"cpu"});
  const auto& nodes = compiled.report().nodes;
  const auto node = std::ranges::find(nodes, std::string("Mul"), &report::NodeEntry::op);
  ASSERT_NE(node, nodes.end());
  EXPECT_EQ(node->body, "grow/body");
  EXPECT_EQ(node->selected.device, "cpu");
  const auto loop = std::ranges::find(nodes, std::string("Loop"), &report::NodeEntry::op);
  ASSERT_NE(loop, nodes.end());
  EXPECT_EQ(loop->selected.kernel, "runtime.loop");
  EXPECT_EQ(loop->body, "");
}

TEST(ControlFlowErrors, NameWhatWasExpected) {
  OnnxModel model;
  model.input("c", kBool, {"n"});
  model.input("x", kFloat, {2});
  auto node = model.node("If", {"c"}, {"y"}, "choose");
  auto& then = node.graph("then_branch", "t");
  OnnxNode(then, "Relu", {"x"}, {"r"});
  body_output(then, "r");
  auto& otherwise = node.graph("else_branch", "e");
  OnnxNode(otherwise, "Neg", {"x"}, {"r"});
  body_output(otherwise, "r");
  model.output("y");
  Compiled compiled(model, {"cpu"});
  const std::vector<std::uint8_t> two = {1, 0};
  EXPECT_EQ(compiled.run({{"c", Tensor::copy_of({DType::kBool, {2}, two.data()})},
                          {"x", floats({2}, {1, 2})}}),
            "node 'choose': condition 'c': expected one element, found [2]");
}

TEST(ControlFlowErrors, SlicesOfOtherShapes) {
  OnnxModel model = growing_loop();
  auto& body = *model.graph().mutable_node(0)->mutable_attribute(0)->mutable_g();
  body.mutable_output(2)->set_name("w2");
  OnnxNode(body, "Identity", {"w"}, {"w2"});
  Compiled compiled(model, {"cpu"});
  EXPECT_THAT(
      compiled.run({{"m", ints({}, {2})}, {"x", floats({1}, {1})}, {"limit", floats({}, {100})}}),
      HasSubstr("expected slices of [2] from all iterations, found [4]"));
}

TEST(DevicesThatFail, AreLeftOutWithTheirReason) {
  const TempDir folder;
  const auto npu = folder.write("npu.json", R"({"schema": "tessera.device/1.0", "name": "npu",
      "kind": "simulated", "mock": "init_fails"})");
  OnnxModel model;
  model.input("x", kFloat, {2});
  model.node("Relu", {"x"}, {"y"});
  model.output("y");
  Compiled compiled(model, {"cpu", npu.string()});
  ASSERT_EQ(compiled.run({{"x", floats({2}, {-1, 2})}}), "");
  const auto& notes = compiled.report().near_misses;
  const auto note =
      std::ranges::find(notes, std::string("device left out"), &report::NearMiss::pattern);
  ASSERT_NE(note, notes.end());
  EXPECT_THAT(note->reason, HasSubstr("device 'npu' cannot start (mock: init_fails)"));
  compiler::CompileOptions strict;
  strict.devices = {"cpu", npu.string()};
  strict.strict = true;
  const auto failed = compiler::compile(folder.write("m.onnx", model.serialize()), strict);
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().to_string(), HasSubstr("device 'npu' cannot start"));
}

TEST(DevicesThatFail, WhatTheyCannotCompileIsPlacedElsewhere) {
  const TempDir folder;
  const auto npu = folder.write("npu.json", R"({"schema": "tessera.device/1.0", "name": "npu",
      "kind": "simulated", "launch_us": 0, "sync_us": 0, "memory_gb_per_s": 100000,
      "link": {"gb_per_s": 100000, "latency_us": 0}, "mock": {"compile_fails_for": ["b"]}})");
  OnnxModel model;
  model.input("x", kFloat, {64, 64});
  model.node("MatMul", {"x", "x"}, {"h"}, "a");
  model.node("MatMul", {"h", "x"}, {"y"}, "b");
  model.output("y");
  Compiled compiled(model, {"cpu", npu.string()});
  ASSERT_EQ(compiled.run({{"x", floats({64, 64}, Floats(4096, 0.1F))}}), "");
  const auto& nodes = compiled.report().nodes;
  EXPECT_EQ(nodes[0].selected.device, "npu");
  EXPECT_EQ(nodes[1].selected.device, "cpu");
  EXPECT_THAT(nodes[1].supported.at("npu"), HasSubstr("mock: compile_fails_for"));
}

TEST(DevicesThatFail, PartitionsBeyondTheLimitAreTheCheapOnes) {
  const TempDir folder;
  const auto npu = folder.write("npu.json", R"({"schema": "tessera.device/1.0", "name": "npu",
      "kind": "simulated", "lacks": [{"op": "Erf"}], "max_partitions": 1, "launch_us": 0,
      "sync_us": 0, "memory_gb_per_s": 100000, "link": {"gb_per_s": 100000, "latency_us": 0}})");
  OnnxModel model;
  model.input("x", kFloat, {64, 64});
  for (int i = 0; i < 6; ++i)
    model.node("Neg", {i == 0 ? "x" : "t" + std::to_string(i - 1)}, {"t" + std::to_string(i)},
               "cheap" + std::to_string(i));
  model.node("Erf", {"t5"}, {"e"}, "foreign");
  model.node("MatMul", {"e", "e"}, {"y"}, "dear");
  model.output("y");
  Compiled compiled(model, {"cpu", npu.string()});
  std::map<std::string, std::string> device_of;
  for (const auto& node : compiled.report().nodes) device_of[node.name] = node.selected.device;
  EXPECT_EQ(device_of["dear"], "npu");
  EXPECT_EQ(device_of["cheap0"], "cpu");
  EXPECT_LE(compiled.report().assignment.lower_bound_us, compiled.report().assignment.cost_us);
}

}  // namespace
}  // namespace tessera::testing
