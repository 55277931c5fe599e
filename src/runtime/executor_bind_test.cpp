// What a session is bound to: errors by text, sizes that change, memory of the caller used in
// place.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "testing/run_devices.h"
#include "testing/run_programs.h"

namespace tessera::runtime {
namespace {

using artefact::BufferKind;
using artefact::Opcode;
using ::testing::ElementsAre;
using testing::error_text;
using testing::ProgramBuilder;
using testing::session_of;
using ::testing::StartsWith;
using testing::try_load;

const Dim& symbol_n() {
  static const Dim n = Dim::symbol("n");
  return n;
}

// z = Relu(x) + y on [n, 3].
ProgramBuilder relu_add() {
  ProgramBuilder program;
  const Shape shape = {symbol_n(), 3};
  const auto x = program.input("x", shape);
  const auto y = program.input("y", shape);
  const auto r = program.temporary("r", shape);
  const auto z = program.output("z", shape);
  program.call("Relu", {x}, {r});
  program.call("Add", {r, y}, {z});
  return program;
}

std::vector<float> values_of(const Executor& session, std::string_view name) {
  const auto view = session.output(name);
  if (!view) return {};
  const auto* data = view->as<float>();
  return {data, data + view->numel()};
}

// Binds zeros of those dims to both inputs and runs.
std::string run_error(Executor& session, const Dims& x, const Dims& y) {
  static const std::vector<float> zeros(4096);
  if (auto status = session.bind_input("x", DType::kFp32, x, zeros.data()); !status)
    return status.error().to_string();
  if (auto status = session.bind_input("y", DType::kFp32, y, zeros.data()); !status)
    return status.error().to_string();
  return error_text(session.run());
}

TEST(ExecutorBind, RefusesWrongInputs) {
  const auto session = session_of(relu_add().image);
  const std::vector<float> data(12);
  const auto bind = [&](std::string_view name, DType dtype, const Dims& dims, const void* from) {
    return error_text(session->bind_input(name, dtype, dims, from));
  };
  EXPECT_EQ(bind("q", DType::kFp32, {2, 3}, data.data()), "no input 'q': expected one of 'x', 'y'");
  EXPECT_EQ(bind("x", DType::kInt64, {2, 3}, data.data()),
            "input 'x': expected element type fp32, found int64");
  EXPECT_EQ(bind("x", DType::kFp32, {3}, data.data()),
            "input 'x': expected rank 2 [n, 3], found rank 1 [3]");
  EXPECT_EQ(bind("x", DType::kFp32, {-1, 3}, data.data()),
            "input 'x': dimension 0: expected at least 0, found -1");
  EXPECT_EQ(bind("y", DType::kFp32, {2, 3}, nullptr),
            "input 'y': expected data for [2, 3], found a null pointer");
  EXPECT_EQ(bind("y", DType::kFp32, {2, 3}, data.data()), "no error");
  EXPECT_EQ(error_text(session->run()), "input 'x' is not bound");
}

TEST(ExecutorBind, RefusesSizesThatDisagree) {
  ProgramBuilder program = relu_add();
  program.method().symbols["n"] = {1, 8};
  const auto session = session_of(program.image);
  EXPECT_EQ(run_error(*session, {2, 4}, {2, 3}), "input 'x': dimension 1: expected 3, found 4");
  EXPECT_EQ(run_error(*session, {9, 3}, {9, 3}),
            "input 'x': dimension 0: expected n between 1 and 8, found 9");
  EXPECT_EQ(run_error(*session, {2, 3}, {3, 3}), "input 'y': dimension 0: expected n = 2, found 3");
  EXPECT_EQ(run_error(*session, {8, 3}, {8, 3}), "no error");
  program.method().symbols["n"] = {1, INT64_MAX};
  EXPECT_EQ(run_error(*session_of(program.image), {0, 3}, {0, 3}),
            "input 'x': dimension 0: expected n of at least 1, found 0");
}

TEST(ExecutorBind, ChecksExpressionsOfSymbols) {
  ProgramBuilder program;
  const Shape shape = {symbol_n(), Dim(2) * symbol_n()};
  const auto x = program.input("x", shape);
  program.call("Relu", {x}, {program.output("z", shape)});
  const auto session = session_of(program.image);
  const std::vector<float> data(64);
  ASSERT_TRUE(session->bind_input("x", DType::kFp32, Dims{2, 5}, data.data()));
  EXPECT_EQ(error_text(session->run()), "input 'x': dimension 1: expected 2*n = 4, found 5");
}

TEST(ExecutorBind, RefusesSizesThatOverflow) {
  ProgramBuilder program;
  const auto x = program.input("x", {symbol_n()});
  const auto third = program.temporary("third", {symbol_n()});
  const auto first = program.temporary("first", {symbol_n()});
  const auto second = program.temporary("second", {symbol_n()});
  program.call("Relu", {x}, {first});
  program.call("Relu", {first}, {second});
  program.call("Relu", {second}, {third});
  program.call("Relu", {third}, {program.output("z", {symbol_n()})});
  const float data = 0;
  const auto error_at = [&](std::int64_t size) {
    const auto session = session_of(program.image);
    EXPECT_TRUE(session->bind_input("x", DType::kFp32, Dims{size}, &data));
    return error_text(session->run());
  };
  EXPECT_EQ(error_at(INT64_MAX),
            "value 'x': the bytes of fp32[9223372036854775807] exceed 63 bits");
  program.buffer(second).above = {first};
  EXPECT_EQ(error_at(std::int64_t{1} << 60), "value 'second': the arena overflows");
  program.buffer(third).above = {second};
  EXPECT_EQ(error_at(std::int64_t{1} << 60), "value 'second': the arena overflows");
}

TEST(ExecutorBind, RefusesWrongOutputs) {
  const auto session = session_of(relu_add().image);
  std::array<float, 6> room{};
  EXPECT_EQ(error_text(session->bind_output("q", room.data(), 24)),
            "no output 'q': expected one of 'z'");
  EXPECT_EQ(error_text(session->output("z")), "output 'z': the session has not run");
  EXPECT_EQ(error_text(session->output("q")), "no output 'q': expected one of 'z'");
  ASSERT_TRUE(session->bind_output("z", room.data(), 20));
  EXPECT_EQ(run_error(*session, {2, 3}, {2, 3}),
            "output 'z': expected room for 24 bytes (fp32[2, 3]), found 20");
  EXPECT_EQ(error_text(session->run()),
            "output 'z': expected room for 24 bytes (fp32[2, 3]), found 20");
  ASSERT_TRUE(session->bind_output("z", room.data(), 24));
  EXPECT_EQ(error_text(session->run()), "no error");
}

TEST(ExecutorBind, AFailedRunLeavesNoOutput) {
  ProgramBuilder program = relu_add();
  program.method().symbols["n"] = {1, 8};
  const auto session = session_of(program.image);
  ASSERT_EQ(run_error(*session, {2, 3}, {2, 3}), "no error");
  ASSERT_TRUE(session->output("z"));
  ASSERT_NE(run_error(*session, {9, 3}, {9, 3}), "no error");
  EXPECT_EQ(error_text(session->output("z")), "output 'z': the session has not run");
  ASSERT_EQ(run_error(*session, {2, 3}, {2, 3}), "no error");
  EXPECT_TRUE(session->output("z"));
}

TEST(ExecutorBind, RefusesWrongOptions) {
  auto program = try_load(relu_add().image);
  ASSERT_TRUE(program);
  EXPECT_EQ(error_text(Executor::create(*program, {.threads = 0})),
            "threads: expected at least 1, found 0");
}

TEST(LoadedProgram, RefusesWrongPlans) {
  ProgramBuilder program = relu_add();
  program.image.plans.push_back(program.plan());
  program.image.plans.back().name = "cpu";
  EXPECT_EQ(error_text(try_load(program.image, "gpu")),
            "no plan 'gpu' in the artefact: it has main, cpu");
  EXPECT_EQ(error_text(try_load(program.image, "cpu")), "no error");
}

TEST(LoadedProgram, NamesInstructionsThatItDoesNotImplement) {
  const std::vector<std::pair<Opcode, std::string>> cases = {
      {Opcode::kEvaluateShape, "evaluate shape"}, {Opcode::kAllocate, "allocate"}};
  for (const auto& [opcode, name] : cases) {
    ProgramBuilder program = relu_add();
    program.add(opcode, {}, {});
    EXPECT_EQ(
        error_text(try_load(program.image)),
        "plan 'main', method 'main', 'step2': this runtime does not implement the instruction '" +
            name + "'");
  }
}

TEST(LoadedProgram, RefusesWrongDevicesAndKernels) {
  const auto error_of = [](const std::function<void(ProgramBuilder&)>& change) {
    ProgramBuilder program = relu_add();
    change(program);
    return error_text(try_load(program.image));
  };
  EXPECT_EQ(error_of([](auto& p) { p.plan().memories.push_back({"npu"}); }),
            "damaged artefact: no device has the memory 'npu'");
  EXPECT_EQ(error_of([](auto& p) { p.plan().devices[0].backend = "simulated"; }),
            "damaged artefact: the first memory is not host memory");
  EXPECT_EQ(error_of([](auto& p) { p.plan().devices[0].backend = "tpu"; }),
            "device 'reference' needs the backend 'tpu': this build has cpu, simulated, reference");
  EXPECT_EQ(error_of([](auto& p) { p.image.kernels[0].steps[0].op_type = "Nope"; }),
            "kernel 'Relu' of 'Relu': no reference kernel for operator 'Nope'");
  EXPECT_EQ(error_of([](auto& p) {
              p.image.kernels[1].inputs[0].layout = Layout{{1, 0}, {}};
            }),
            "kernel 'Add' of 'Add': reference: expected row-major tensors, found order:1,0");
  EXPECT_EQ(error_of([](auto& p) { p.image.kernels[1].steps.clear(); }),
            "kernel 'Add' of 'Add': reference: a kernel without steps");
}

TEST(HostRunDevice, RefusesMoreBytesThanAnAddressHas) {
  const auto device = backends::make_run_device({"reference", "reference", 0, {}, 0, 0});
  ASSERT_TRUE(device);
  EXPECT_EQ(error_text((*device)->allocate(INT64_MAX - 10)),
            "out of memory: 9223372036854775797 bytes");
}

TEST(ExecutorBind, ErrorsOfKernelsNameTheNode) {
  ProgramBuilder program;
  const auto x = program.input("x", {4});
  const auto i = program.input("i", {1}, DType::kInt64);
  program.call("Gather", {x, i}, {program.output("z", {1})});
  const auto session = session_of(program.image);
  const std::array<float, 4> x_data{1, 2, 3, 4};
  std::int64_t index = 3;
  ASSERT_TRUE(session->bind_input("x", DType::kFp32, Dims{4}, x_data.data()));
  ASSERT_TRUE(session->bind_input("i", DType::kInt64, Dims{1}, &index));
  ASSERT_TRUE(session->run());
  EXPECT_THAT(values_of(*session, "z"), ElementsAre(4));
  index = 4;
  EXPECT_THAT(error_text(session->run()), StartsWith("node 'Gather': Gather: "));
}

TEST(ExecutorBind, ReadsAndWritesTheCallersMemory) {
  const auto session = session_of(relu_add().image);
  std::array<float, 3> x{-1, 2, -3};
  const std::array<float, 3> y{10, 20, 30};
  std::array<float, 3> z{};
  const Dims dims = {1, 3};
  ASSERT_TRUE(session->bind_input("x", DType::kFp32, dims, x.data()));
  ASSERT_TRUE(session->bind_input("y", DType::kFp32, dims, y.data()));
  ASSERT_TRUE(session->bind_output("z", z.data(), sizeof(z)));
  ASSERT_TRUE(session->run());
  EXPECT_THAT(z, ElementsAre(10, 22, 30));
  EXPECT_EQ(session->output("z")->data, z.data());
  x = {1, 1, 1};  // without a bind: the session holds the pointer, not a copy
  ASSERT_TRUE(session->run());
  EXPECT_THAT(z, ElementsAre(11, 21, 31));
  std::array<float, 3> other{};
  ASSERT_TRUE(session->bind_output("z", other.data(), sizeof(other)));
  z = {};
  ASSERT_TRUE(session->run());
  EXPECT_THAT(other, ElementsAre(11, 21, 31));
  EXPECT_THAT(z, ElementsAre(0, 0, 0));
  ASSERT_TRUE(session->bind_output("z", nullptr, 0));  // back into the session's own memory
  ASSERT_TRUE(session->run());
  EXPECT_NE(session->output("z")->data, other.data());
  EXPECT_THAT(values_of(*session, "z"), ElementsAre(11, 21, 31));
}

TEST(ExecutorBind, NothingIsASizeToo) {
  const auto session = session_of(relu_add().image);
  ASSERT_TRUE(session->bind_input("x", DType::kFp32, Dims{0, 3}, nullptr));
  ASSERT_TRUE(session->bind_input("y", DType::kFp32, Dims{0, 3}, nullptr));
  ASSERT_TRUE(session->run());
  EXPECT_EQ(session->output("z")->dims, (Dims{0, 3}));
}

TEST(ExecutorSizes, KeepsABoundedNumberOfShapePlans) {
  const auto session = session_of(relu_add().image);
  const auto plans_after = [&](std::int64_t n) {
    EXPECT_EQ(run_error(*session, {n, 3}, {n, 3}), "no error");
    EXPECT_EQ(session->output("z")->dims, (Dims{n, 3}));
    return session->shape_plans_made();
  };
  static_assert(kShapePlansKept == 8);
  for (std::int64_t n = 1; n <= 8; ++n) EXPECT_EQ(plans_after(n), static_cast<std::size_t>(n));
  for (std::int64_t n = 1; n <= 8; ++n) EXPECT_EQ(plans_after(n), 8U);
  EXPECT_EQ(plans_after(1), 8U);
  EXPECT_EQ(plans_after(9), 9U);  // 2 is now the least recently used one, and goes
  EXPECT_EQ(plans_after(1), 9U);
  EXPECT_EQ(plans_after(3), 9U);
  EXPECT_EQ(plans_after(2), 10U);
}

TEST(ExecutorSizes, PreparingLeavesTheFirstRunNothingToMake) {
  const auto session = session_of(relu_add().image);
  const std::vector<float> data(6, 1.0F);
  EXPECT_EQ(error_text(session->prepare()), "input 'x' is not bound");
  for (const char* name : {"x", "y"})
    ASSERT_TRUE(session->bind_input(name, DType::kFp32, Dims{2, 3}, data.data()));
  ASSERT_TRUE(session->prepare());
  EXPECT_EQ(session->shape_plans_made(), 1U);
  EXPECT_EQ(error_text(session->output("z")), "output 'z': the session has not run");
  ASSERT_TRUE(session->run());
  EXPECT_EQ(session->shape_plans_made(), 1U);
  EXPECT_EQ(session->output("z")->dims, (Dims{2, 3}));
}

TEST(ExecutorSizes, ABindOfEqualSizesMakesNoPlan) {
  const auto session = session_of(relu_add().image);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(run_error(*session, {2, 3}, {2, 3}), "no error");
  EXPECT_EQ(session->shape_plans_made(), 1U);
}

}  // namespace
}  // namespace tessera::runtime
