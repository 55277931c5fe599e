// What a session does in a run: places in the arena, views, states, transfers, threads, traces.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "testing/random.h"
#include "testing/run_devices.h"
#include "testing/run_programs.h"

namespace tessera::runtime {
namespace {

using artefact::BufferKind;
using artefact::Opcode;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using testing::error_text;
using testing::ProgramBuilder;
using testing::session_of;

const Dim& symbol_n() {
  static const Dim n = Dim::symbol("n");
  return n;
}

std::vector<float> values_of(const Executor& session, std::string_view name) {
  const auto view = session.output(name);
  if (!view) return {};
  const auto* data = view->as<float>();
  return {data, data + view->numel()};
}

// Runs with `x` as the one input; the values of the output `z`.
std::vector<float> run_with(Executor& session, const Dims& dims, const std::vector<float>& x) {
  const auto bound = session.bind_input("x", DType::kFp32, dims, x.data());
  EXPECT_TRUE(bound) << error_text(bound);
  const auto status = session.run();
  EXPECT_TRUE(status) << error_text(status);
  return values_of(session, "z");
}

std::vector<float> counted(std::size_t count, float first = 1) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = first + static_cast<float>(i);
  return values;
}

// z = Relu(x) - (-x), with both operands in the arena, the second above the first.
ProgramBuilder two_temporaries(bool apart) {
  ProgramBuilder program;
  const Shape shape = {symbol_n()};
  const auto x = program.input("x", shape);
  const auto negative = program.temporary("negative", shape);
  const auto positive = program.temporary("positive", shape);
  if (apart) program.buffer(negative).above = {positive};
  program.call("Relu", {x}, {positive});
  program.call("Neg", {x}, {negative});
  program.call("Sub", {positive, negative}, {program.output("z", shape)});
  return program;
}

TEST(ExecutorArena, PlacesBuffersAboveOthersAtEverySize) {
  const auto session = session_of(two_temporaries(true).image);
  EXPECT_THAT(run_with(*session, {2}, {1, -2}), ElementsAre(2, -2));
  EXPECT_EQ(session->arena_bytes(0), 64 + 8);
  std::vector<float> expected = counted(100);
  for (float& value : expected) value *= 2;
  EXPECT_THAT(run_with(*session, {100}, counted(100)), ElementsAreArray(expected));
  EXPECT_EQ(session->arena_bytes(0), 448 + 400);
  EXPECT_THAT(run_with(*session, {3}, {1, -2, 3}), ElementsAre(2, -2, 6));
  EXPECT_EQ(session->arena_bytes(0), 448 + 400) << "memory that is there is kept";
}

TEST(ExecutorArena, SharesMemoryWhereNothingStandsInBetween) {
  const auto session = session_of(two_temporaries(false).image);
  EXPECT_THAT(run_with(*session, {2}, {1, 2}), ElementsAre(0, 0)) << "both lie at 0";
  EXPECT_EQ(session->arena_bytes(0), 8);
}

TEST(ExecutorViews, AliasesLieInOtherBuffers) {
  ProgramBuilder program;
  const Dim half = symbol_n();
  const auto x = program.input("x", {Dim(2) * half, 3});
  const auto whole = program.temporary("whole", {Dim(2) * half, 3});
  const auto lower = program.temporary("lower", {half, 3});
  const auto flat = program.temporary("flat", {Dim(3) * half});
  program.buffer(lower).alias_of = whole;
  program.buffer(lower).alias_offset_bytes = Dim(12) * half;
  program.buffer(flat).alias_of = lower;
  program.call("Neg", {x}, {whole});
  program.call("Neg", {flat}, {program.output("z", {Dim(3) * half})});
  const auto n = program.input("n", {half});
  program.call("Relu", {n}, {program.output("unused", {half})});
  const auto session = session_of(program.image);
  const std::vector<float> ignored(8);
  ASSERT_TRUE(session->bind_input("n", DType::kFp32, Dims{1}, ignored.data()));
  EXPECT_THAT(run_with(*session, {2, 3}, counted(6)), ElementsAre(4, 5, 6));
  ASSERT_TRUE(session->bind_input("n", DType::kFp32, Dims{2}, ignored.data()));
  EXPECT_THAT(run_with(*session, {4, 3}, counted(12)), ElementsAre(7, 8, 9, 10, 11, 12));
}

TEST(ExecutorViews, RefusesViewsThatLeaveTheirBuffer) {
  ProgramBuilder program;
  const auto x = program.input("x", {4});
  const auto whole = program.temporary("whole", {4});
  const auto view = program.temporary("view", {2});
  program.buffer(view).alias_of = whole;
  program.buffer(view).alias_offset_bytes = Dim(12);
  program.call("Neg", {x}, {whole});
  program.call("Neg", {view}, {program.output("z", {2})});
  const std::vector<float> data(4);
  for (const std::int64_t offset : {12, -4}) {
    program.buffer(view).alias_offset_bytes = Dim(offset);
    const auto session = session_of(program.image);
    ASSERT_TRUE(session->bind_input("x", DType::kFp32, Dims{4}, data.data()));
    EXPECT_EQ(error_text(session->run()), "value 'view': its view leaves the buffer of 'whole'");
  }
}

// The sum of all x so far, in memory `memory` of `device`.
ProgramBuilder running_sum(const Shape& shape, bool on_npu) {
  ProgramBuilder program;
  const std::uint32_t memory = on_npu ? program.simulated("npu") : 0;
  const auto x = program.input("x", shape);
  const auto moved = on_npu ? program.temporary("moved", shape, memory) : x;
  const auto state = program.add_buffer("state", BufferKind::kState, shape, DType::kFp32, memory);
  const auto sum = program.temporary("sum", shape, memory);
  if (on_npu) {
    program.buffer(sum).above = {moved};
    program.add(Opcode::kTransfer, {x}, {moved}, memory);
  }
  program.call("Add", {state, moved}, {sum}, memory);
  program.add(Opcode::kWriteBack, {sum}, {state}, memory);
  const auto z = program.output("z", shape);
  if (on_npu) {
    program.add(Opcode::kWait, {}, {}, memory);
    program.add(Opcode::kTransfer, {sum}, {z}, memory);
  } else {
    program.call("Relu", {sum}, {z});
  }
  return program;
}

TEST(ExecutorStates, KeepTheirValueFromRunToRun) {
  for (const bool on_npu : {false, true}) {
    SCOPED_TRACE(on_npu);
    // Large enough that a copy through too small a buffer would be noticed.
    const auto size = std::int64_t{100'000};
    ProgramBuilder program = running_sum({size}, on_npu);
    const auto session = session_of(program.image);
    for (int run = 1; run <= 3; ++run) {
      std::vector<float> expected = counted(static_cast<std::size_t>(size));
      for (float& value : expected) value *= static_cast<float>(run);
      EXPECT_EQ(run_with(*session, {size}, counted(static_cast<std::size_t>(size))), expected)
          << run;
    }
  }
}

TEST(ExecutorStates, StartFromTheirInitialValue) {
  for (const bool on_npu : {false, true}) {
    ProgramBuilder program = running_sum({3}, on_npu);
    const auto segment = program.segment(std::vector<float>{10, 20, 30});
    for (auto& buffer : program.method().buffers)
      if (buffer.kind == BufferKind::kState) buffer.segment = segment;
    auto loaded = testing::try_load(program.image);
    ASSERT_TRUE(loaded);
    const auto first = Executor::create(*loaded, {});
    const auto second = Executor::create(*loaded, {});
    EXPECT_THAT(run_with(**first, {3}, {1, 1, 1}), ElementsAre(11, 21, 31));
    EXPECT_THAT(run_with(**first, {3}, {1, 1, 1}), ElementsAre(12, 22, 32));
    EXPECT_THAT(run_with(**second, {3}, {1, 1, 1}), ElementsAre(11, 21, 31))
        << "states belong to a session";
  }
}

TEST(ExecutorStates, KeepTheirSize) {
  const std::vector<float> data(8);
  ProgramBuilder program = running_sum({symbol_n()}, false);
  const auto session = session_of(program.image);
  EXPECT_THAT(run_with(*session, {2}, {1, 2}), ElementsAre(1, 2));
  ASSERT_TRUE(session->bind_input("x", DType::kFp32, Dims{3}, data.data()));
  EXPECT_EQ(error_text(session->run()),
            "state 'state': expected 8 bytes as in the first run, found 12");
  EXPECT_THAT(run_with(*session, {2}, {1, 2}), ElementsAre(2, 4))
      << "the session goes on at the old size";
  program.buffer(1).segment = program.segment(std::vector<float>{1, 2, 3});
  ASSERT_EQ(program.buffer(1).kind, BufferKind::kState);
  const auto other = session_of(program.image);
  ASSERT_TRUE(other->bind_input("x", DType::kFp32, Dims{2}, data.data()));
  EXPECT_EQ(error_text(other->run()),
            "state 'state': expected 12 bytes as its initial value has, found 8");
  EXPECT_EQ(error_text(other->run()),
            "state 'state': expected 12 bytes as its initial value has, found 8");
}

artefact::KernelSpec conversion(const artefact::TensorDecl& from, const artefact::TensorDecl& to) {
  artefact::KernelSpec spec;
  spec.backend = "simulated";
  spec.kernel = "convert";
  spec.inputs = {from};
  spec.outputs = {to};
  return spec;
}

TEST(ExecutorTransfers, GoToSimulatedMemoryAndBack) {
  ProgramBuilder program;
  const auto npu = program.simulated("npu");
  const auto gpu = program.simulated("gpu");
  const Shape shape = {1, 3, symbol_n(), 2};
  const auto x = program.input("x", shape);
  const auto on_npu = program.temporary("on npu", shape, npu);
  const auto packed = program.temporary("packed", shape, npu);
  const auto relu = program.temporary("relu", shape, npu);
  const auto plain = program.temporary("plain", shape, npu);
  const auto on_gpu = program.temporary("on gpu", shape, gpu);
  const auto sum = program.temporary("sum", shape, gpu);
  const auto one = program.constant("one", {1}, std::vector<float>{1}, gpu);
  for (const auto buffer : {packed, relu})
    program.buffer(buffer).tensor = {DType::kFp16, Layout::channels_last(4), shape};
  program.buffer(packed).above = {on_npu};
  program.buffer(relu).above = {packed};
  program.buffer(plain).above = {relu};
  program.buffer(sum).above = {on_gpu};
  const auto tensor = [&](std::uint32_t buffer) { return program.buffer(buffer).tensor; };
  program.add(Opcode::kTransfer, {x}, {on_npu}, npu);
  program.call_kernel(conversion(tensor(on_npu), tensor(packed)), {on_npu}, {packed}, npu).opcode =
      Opcode::kConvert;
  program.call("Relu", {packed}, {relu}, npu);
  program.call_kernel(conversion(tensor(relu), tensor(plain)), {relu}, {plain}, npu).opcode =
      Opcode::kConvert;
  program.add(Opcode::kTransfer, {plain}, {on_gpu}, gpu);
  program.call("Add", {on_gpu, one}, {sum}, gpu);
  program.add(Opcode::kTransfer, {sum}, {program.output("z", shape)}, gpu);
  const auto session = session_of(program.image);
  for (const std::int64_t n : {2, 5000, 1}) {
    std::vector<float> x_data(static_cast<std::size_t>(6 * n));
    std::vector<float> expected;
    for (std::size_t i = 0; i < x_data.size(); ++i) {
      x_data[i] = static_cast<float>(i % 64) - 30;  // exact in fp16
      expected.push_back(std::max(x_data[i], 0.0F) + 1);
    }
    EXPECT_EQ(run_with(*session, {1, 3, n, 2}, x_data), expected) << n;
  }
}

TEST(ExecutorTransfers, RefuseOtherSizes) {
  ProgramBuilder program;
  const auto npu = program.simulated("npu");
  const auto x = program.input("x", {symbol_n()});
  program.add(Opcode::kTransfer, {x}, {program.temporary("short", {2}, npu)}, npu);
  const auto session = session_of(program.image);
  const std::vector<float> data(8);
  ASSERT_TRUE(session->bind_input("x", DType::kFp32, Dims{3}, data.data()));
  EXPECT_EQ(error_text(session->run()), "value 'short': expected [3] as in 'x', found [2]");
}

TEST(ExecutorThreads, TwoSessionsShareAProgram) {
  auto loaded = testing::try_load(two_temporaries(true).image);
  ASSERT_TRUE(loaded);
  std::array<int, 2> wrong{};
  const auto work = [&](std::size_t which) {
    auto session = Executor::create(*loaded, {.threads = 2});
    for (std::size_t run = 0; run < 200; ++run) {
      const std::size_t size = 1 + (run * (which + 3)) % 11;
      std::vector<float> x = counted(size, static_cast<float>(which * 100));
      auto expected = x;
      for (float& value : expected) value *= 2;
      if (!(*session)->bind_input("x", DType::kFp32, Dims{static_cast<std::int64_t>(size)},
                                  x.data()) ||
          !(*session)->run() || values_of(**session, "z") != expected)
        ++wrong[which];
    }
  };
  std::thread first(work, 0);
  work(1);
  first.join();
  EXPECT_THAT(wrong, ElementsAre(0, 0));
}

TEST(ExecutorThreads, EveryRunGivesEqualBits) {
  ProgramBuilder program;
  const auto x = program.input("x", {31, 67});
  testing::Random random(5);
  const auto w = program.constant("w", {67, 29}, random.floats(67 * 29));
  program.call("MatMul", {x, w}, {program.output("z", {31, 29})});
  const auto x_data = random.floats(31 * 67);
  const auto expected = run_with(*session_of(program.image), {31, 67}, x_data);
  for (const int threads : {1, 2, 4}) {
    const auto session = session_of(program.image, {.threads = threads});
    for (int run = 0; run < 50; ++run)
      ASSERT_EQ(run_with(*session, {31, 67}, x_data), expected) << threads << " " << run;
  }
}

TEST(ExecutorTrace, RecordsEveryInstructionInOrder) {
  const auto session = session_of(two_temporaries(true).image, {.trace = true});
  for (int run = 0; run < 2; ++run) {
    run_with(*session, {2}, {1, 2});
    const Trace& trace = session->trace();
    ASSERT_EQ(trace.events.size(), 3U);
    std::int64_t last_ns = 0;
    for (std::uint32_t i = 0; i < 3; ++i) {
      EXPECT_EQ(trace.events[i].instruction, i);
      EXPECT_GE(trace.events[i].start_ns, last_ns);
      EXPECT_GE(trace.events[i].end_ns, trace.events[i].start_ns);
      last_ns = trace.events[i].end_ns;
    }
    EXPECT_GE(trace.total_ns, last_ns);
  }
}

TEST(ExecutorTrace, IsEmptyUnlessAskedFor) {
  const auto session = session_of(two_temporaries(true).image);
  run_with(*session, {2}, {1, 2});
  EXPECT_TRUE(session->trace().events.empty());
}

// Names what it sees before and after each instruction; ends the run before instruction `end`.
class Log final : public Watcher {
 public:
  explicit Log(std::size_t end = SIZE_MAX) : end_(end) {}
  Status before(const Frame& frame, std::size_t instruction) override {
    if (instruction == end_) return fail(ErrorCode::kCancelled, "seen enough");
    for (const std::uint32_t buffer : frame.method().instructions[instruction].inputs) {
      const auto value = frame.borrow(buffer);
      const auto* elements = static_cast<const float*>(value.tensor.data());
      inputs.emplace_back(elements, elements + value.tensor.numel());
    }
    return {};
  }
  void after(const Frame& frame, std::size_t instruction) override {
    for (const std::uint32_t buffer : frame.method().instructions[instruction].outputs)
      outputs.push_back(frame.dims_of(buffer));
  }
  [[nodiscard]] bool wants_all_bodies() const override { return false; }

  std::vector<std::vector<float>> inputs;
  std::vector<Dims> outputs;

 private:
  std::size_t end_;
};

TEST(Watcher, SeesOperandsBeforeAndResultsAfterEachInstruction) {
  Log log;
  const auto session = session_of(two_temporaries(true).image, {.watcher = &log});
  EXPECT_THAT(run_with(*session, {2}, {1, -2}), ElementsAre(2, -2));
  EXPECT_THAT(log.inputs, ElementsAre(ElementsAre(1, -2), ElementsAre(1, -2), ElementsAre(1, 0),
                                      ElementsAre(-1, 2)));
  EXPECT_THAT(log.outputs, ElementsAre(Dims{2}, Dims{2}, Dims{2}));
}

TEST(Watcher, EndsARun) {
  Log log(1);
  const auto session = session_of(two_temporaries(true).image, {.watcher = &log});
  const std::vector<float> x = {1, -2};
  ASSERT_TRUE(session->bind_input("x", DType::kFp32, Dims{2}, x.data()));
  EXPECT_EQ(error_text(session->run()), "node 'Neg': seen enough");
  EXPECT_EQ(log.outputs.size(), 1U);
}

}  // namespace
}  // namespace tessera::runtime
