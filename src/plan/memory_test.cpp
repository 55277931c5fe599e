#include "plan/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "plan/plan_testing_test.h"
#include "plan/random_case_test.h"
#include "testing/random.h"

namespace tessera::plan {
namespace {

using artefact::BufferKind;

// A chain on one device that takes everything in the plain form. 1x8x2x2 fp32: 128 bytes.
struct Chain : Stages {
  explicit Chain(const std::string& statements, const SymbolBindings& at = {})
      : Stages(statements, at) {
    auto& cpu = devices.add("cpu");
    for (const auto& node : graph().nodes()) cpu.offer(node->name, 1, {kPlain}, kPlain);
  }
  testing::FakeDevice& cpu() { return dynamic_cast<testing::FakeDevice&>(*target().devices[0]); }
  Status plan() {
    lower();
    return plan_memory(graph(), target(), point, lowered);
  }
  [[nodiscard]] const LoweredBuffer& buffer(std::string_view name) const {
    return *std::ranges::find_if(lowered.buffers, [&](const LoweredBuffer& entry) {
      return graph().value(entry.value).name == name;
    });
  }
  // The name of the value whose storage a value shares, or "own".
  [[nodiscard]] std::string storage(std::string_view name) const {
    const std::uint32_t alias = buffer(name).alias_of;
    return alias == UINT32_MAX ? "own" : graph().value(lowered.buffers[alias].value).name;
  }
};

TEST(Memory, InPlaceWhereTheOperandDies) {
  Chain chain(
      R"(input %x : fp32[1, 8, 2, 2] %a = Relu(%x) name "a" %b = Relu(%a) name "b" %c = Relu(%b) name "c" %d = Relu(%c) name "d" output %d)");
  ASSERT_TRUE(chain.plan());
  EXPECT_EQ(chain.storage("a"), "own");  // not over the caller's input
  EXPECT_EQ(chain.storage("b"), "a");
  EXPECT_EQ(chain.storage("c"), "b");
  EXPECT_EQ(chain.storage("d"), "own");  // the caller's output
  ASSERT_EQ(chain.lowered.memory.size(), 1U);
  EXPECT_EQ(chain.lowered.memory[0].arena_bytes, 128);
  EXPECT_EQ(chain.lowered.memory[0].peak_live_bytes, 128);
  EXPECT_EQ(chain.buffer("a").lower, 0);
  EXPECT_EQ(chain.buffer("a").upper, 4);
}

TEST(Memory, NotInPlaceWhereTheOperandIsReadLater) {
  Chain chain(
      R"(input %x : fp32[1, 8, 2, 2] %a = Relu(%x) name "a" %b = Relu(%a) name "b" %c = Add(%b, %a) name "c" %d = Exp(%c) name "d" output %d)");
  ASSERT_TRUE(chain.plan());
  EXPECT_EQ(chain.storage("b"), "own");
  EXPECT_EQ(chain.storage("c"), "b");
  EXPECT_EQ(chain.lowered.memory[0].arena_bytes, 256);
}

TEST(Memory, InPlaceOnlyAtEqualSizesEverywhere) {
  // equal at n = 1 alone
  Chain chain(
      R"(input %x : fp32[n, 8] input %y : fp32[1, 8] %a = Relu(%y) name "a" %b = Add(%a, %x) name "b" %c = Relu(%b) name "c" output %c)",
      {{"n", 1}});
  ASSERT_TRUE(chain.plan());
  EXPECT_EQ(chain.buffer("a").size_bytes, chain.buffer("b").size_bytes);
  EXPECT_EQ(chain.storage("b"), "own");
}

TEST(Memory, NotInPlaceInAnotherForm) {
  Chain chain(
      R"(input %x : fp32[1, 8, 2, 2] %a = Relu(%x) name "a" %b = Relu(%a) name "b" %c = Relu(%b) name "c" output %c)");
  Stages& stages = chain;
  stages.devices = testing::FakeTarget();
  auto& cpu = stages.devices.add("cpu");
  cpu.offer("a", 1, {kPlain}, kPlain);
  cpu.offer("b", 1, {kPlain}, kLast);
  cpu.offer("c", 1, {kLast}, kPlain);
  ASSERT_TRUE(chain.plan());
  EXPECT_EQ(chain.storage("b"), "own");
}

TEST(Memory, NotInPlaceWhereTheOtherOperandIsTheSameStorage) {
  Chain chain(
      R"(input %x : fp32[2, 3] const %i : int64[2, 3] dense [1, 0, 1, 0, 1, 0] %a = Relu(%x) name "a"
                 %b = ScatterElements(%a, %i, %a) name "b" %c = Relu(%b) name "c" %d = Add(%c, %c) name "d" %e = Relu(%d) name "e" output %e)");
  ASSERT_TRUE(chain.plan());
  EXPECT_EQ(chain.storage("b"), "own");
  EXPECT_EQ(chain.storage("d"), "c");  // element by element it does not matter
}

TEST(Memory, NotInPlaceWhereOneOperandIsAddedAfterTheOther) {
  Chain chain(
      R"(input %x : fp32[2, 3] %a = Relu(%x) name "a" %b = Mean(%a, %a, %a) name "b" %c = Relu(%b) name "c" output %c)");
  ASSERT_TRUE(chain.plan());
  EXPECT_EQ(chain.storage("b"), "own");
}

TEST(Memory, AViewSharesTheStorageForAsLongAsAnyoneReadsIt) {
  Chain chain(
      R"(input %x : fp32[1, 8, 2, 2] const %s : int64[2] dense [4, 8] %a = Relu(%x) name "a" %v = Reshape(%a, %s) name "v"
                 %b = Relu(%a) name "b" %w = Relu(%v) name "w" output %b output %w)");
  chain.cpu().offer("v", 0.5, {kPlain, kPlain}, kPlain).options["view"] = 1;
  ASSERT_TRUE(chain.plan());
  EXPECT_EQ(chain.storage("v"), "a");
  EXPECT_EQ(chain.storage("b"), "own");
  EXPECT_EQ(chain.buffer("a").upper, 4);
}

TEST(Memory, ANewStateIsNoViewOfAnOldOne) {
  const std::string statements =
      R"(input %p : fp32[8] input %q : fp32[2, 4] const %s : int64[2] dense [2, 4]
                                    %v = Reshape(%p, %s) name "v" %t = Relu(%p) name "t" %y = Relu(%v) name "y" output %y output %t output %v)";
  Chain states(statements + R"( state "p" -> "t" initial none state "q" -> "v" initial none)");
  states.cpu().offer("v", 0.5, {kPlain, kPlain}, kPlain).options["view"] = 1;
  ASSERT_TRUE(states.plan());
  EXPECT_EQ(states.storage("v"), "own");
  EXPECT_EQ(states.lowered.memory[0].state_bytes, 64);
  Chain one(statements +
            R"( state "p" -> "t" initial none)");  // here it is an output of the caller's
  one.cpu().offer("v", 0.5, {kPlain, kPlain}, kPlain).options["view"] = 1;
  ASSERT_TRUE(one.plan());
  EXPECT_EQ(one.storage("v"), "own");
}

TEST(Memory, FiguresOfEachMemory) {
  Stages stages(
      R"(input %x : fp32[1, 8, 2, 2] const %w : fp32[1] dense [2] const %k : fp32[2] dense [1, 2]
                   %a = Exp(%x) name "a" %b = Mul(%a, %w) name "b" %c = Add(%b, %k) name "c" output %c)");
  auto& cpu = stages.devices.add("cpu");
  auto& npu = stages.devices.add("npu", "npu");
  cpu.offer("a", 1, {kPlain}, kPlain);
  npu.offer("b", 1, {kPlain}, kPlain);
  cpu.offer("c", 1, {kPlain}, kPlain);
  stages.lower();
  ASSERT_TRUE(plan_memory(stages.graph(), stages.target(), {}, stages.lowered));
  ASSERT_EQ(stages.lowered.memory.size(), 2U);
  EXPECT_EQ(stages.lowered.memory[0].memory, 0U);
  EXPECT_EQ(stages.lowered.memory[0].weights_bytes, 8);
  EXPECT_EQ(stages.lowered.memory[0].arena_bytes, 128);  // a, then b: never both
  EXPECT_EQ(stages.lowered.memory[1].weights_bytes, 4);
  EXPECT_EQ(stages.lowered.memory[1].arena_bytes, 128);  // b over a
  EXPECT_EQ(stages.lowered.memory[1].peak_live_bytes, 128);
}

TEST(Memory, TooLittleOfIt) {
  Chain chain(
      R"(input %x : fp32[1, 8, 2, 2] const %w : fp32[1] dense [2] %a = Relu(%x) name "a" %b = Exp(%a) name "b" %c = Mul(%b, %w) name "c" output %c)");
  ASSERT_TRUE(chain.plan());  // 128 in the arena, 4 of weights
  const auto error_with = [&](std::int64_t bytes, const std::vector<Lowered>& graphs) {
    chain.cpu().mutable_info().rates.memory_bytes = bytes;
    const Status status = check_capacity(chain.target(), graphs);
    if (status) return std::string();
    EXPECT_EQ(status.error().code, ErrorCode::kResourceExhausted);
    return status.error().to_string();
  };
  EXPECT_EQ(error_with(0, {chain.lowered}), "");
  EXPECT_EQ(error_with(200, {chain.lowered}), "");
  EXPECT_EQ(error_with(100, {chain.lowered}),
            "device 'cpu': the plan needs 132 bytes, the device has 100");
  EXPECT_EQ(error_with(200, {chain.lowered, chain.lowered}),
            "device 'cpu': the plan needs 264 bytes, the device has 200")
      << "a body has an arena of its own";
}

TEST(Memory, SizesThatOverflow) {
  Chain chain("input %x : fp32[1, n, 2, 2] %a = Relu(%x) name \"a\" output %a", {{"n", 1}});
  ASSERT_TRUE(chain.plan());
  const Status status =
      plan_memory(chain.graph(), chain.target(), {{"n", INT64_MAX / 8}}, chain.lowered);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().to_string(),
            "value 'x': the bytes of fp32[1, 1152921504606846975, 2, 2] exceed 63 bits");
}

// ---- Properties of random plans

constexpr std::int64_t kAlignment = 64;

std::uint32_t root_of(const Lowered& lowered, std::uint32_t buffer) {
  while (lowered.buffers[buffer].alias_of != UINT32_MAX) buffer = lowered.buffers[buffer].alias_of;
  return buffer;
}

// First and last step that touches each storage; -1 where none does.
std::vector<std::pair<int, int>> lifetimes(const Lowered& lowered) {
  std::vector<std::pair<int, int>> times(lowered.buffers.size(), {-1, -1});
  for (std::size_t i = 0; i < lowered.steps.size(); ++i) {
    for (const auto* list : {&lowered.steps[i].inputs, &lowered.steps[i].outputs}) {
      for (const std::uint32_t buffer : *list) {
        auto& [first, last] = times[root_of(lowered, buffer)];
        if (first < 0) first = static_cast<int>(i);
        last = static_cast<int>(i);
      }
    }
  }
  return times;
}

// What the runtime does at any size: each buffer at the largest end of those that it lies above.
std::vector<std::int64_t> offsets_at(const ir::Graph& graph, const Lowered& lowered,
                                     const SymbolBindings& point,
                                     std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> offsets(lowered.buffers.size(), -1);
  sizes.clear();
  for (const LoweredBuffer& buffer : lowered.buffers)
    sizes.push_back(layout_nbytes(buffer.form.tensor.layout, buffer.form.tensor.dtype,
                                  *evaluate(*graph.value(buffer.value).type.shape, point)));
  const auto place = [&](const auto& self, std::uint32_t buffer) -> std::int64_t {
    if (offsets[buffer] >= 0) return offsets[buffer];
    std::int64_t end = 0;
    for (const std::uint32_t below : lowered.buffers[buffer].above)
      end = std::max(end, self(self, below) + sizes[below]);
    return offsets[buffer] = (end + kAlignment - 1) / kAlignment * kAlignment;
  };
  for (std::uint32_t i = 0; i < lowered.buffers.size(); ++i) place(place, i);
  return offsets;
}

// Storage that is shared holds what its readers expect: no step reads a value after another one was
// written over it.
void check_aliases(const Lowered& lowered) {
  std::map<std::uint32_t, std::set<std::uint32_t>>
      valid;  // per storage: the buffers whose elements it holds
  for (std::uint32_t i = 0; i < lowered.buffers.size(); ++i)
    if (lowered.buffers[i].kind == BufferKind::kInput ||
        lowered.buffers[i].kind == BufferKind::kConstant)
      valid[i] = {i};
  for (const LoweredStep& step : lowered.steps) {
    for (const std::uint32_t input : step.inputs)
      ASSERT_TRUE(valid[root_of(lowered, input)].contains(input)) << step.label;
    for (const std::uint32_t output : step.outputs) {
      const bool is_view = step.option != nullptr &&
                           step.option->candidate.options.contains("view") &&
                           lowered.buffers[output].alias_of != UINT32_MAX;
      auto& held = valid[root_of(lowered, output)];
      if (!is_view) held.clear();
      held.insert(output);
      ASSERT_TRUE(lowered.buffers[output].kind == BufferKind::kTemporary ||
                  lowered.buffers[output].kind == BufferKind::kOutput);
      const bool is_in_place = !is_view && root_of(lowered, output) != output;
      ASSERT_TRUE(lowered.buffers[output].kind == BufferKind::kTemporary ||
                  lowered.buffers[output].alias_of == UINT32_MAX);
      ASSERT_TRUE(!is_in_place ||
                  lowered.buffers[root_of(lowered, output)].kind == BufferKind::kTemporary)
          << "over memory of the caller's";
    }
  }
}

void check_offsets(const ir::Graph& graph, const Lowered& lowered, const SymbolBindings& point) {
  const auto times = lifetimes(lowered);
  std::vector<std::int64_t> sizes;
  const auto offsets = offsets_at(graph, lowered, point, sizes);
  const auto is_placed = [&](std::uint32_t i) {
    return lowered.buffers[i].kind == BufferKind::kTemporary &&
           lowered.buffers[i].alias_of == UINT32_MAX && times[i].first >= 0;
  };
  for (std::uint32_t a = 0; a < lowered.buffers.size(); ++a) {
    for (std::uint32_t b = 0; b < a; ++b) {
      if (!is_placed(a) || !is_placed(b) ||
          lowered.buffers[a].form.memory != lowered.buffers[b].form.memory)
        continue;
      if (times[a].first > times[b].second || times[b].first > times[a].second) continue;
      ASSERT_TRUE(offsets[a] + sizes[a] <= offsets[b] || offsets[b] + sizes[b] <= offsets[a])
          << "buffers " << a << " and " << b << " at " << offsets[a] << "+" << sizes[a] << " and "
          << offsets[b] << "+" << sizes[b];
    }
  }
}

TEST(Memory, WhatLiesAboveHoldsAtEverySize) {
  int several = 0;
  int shared = 0;
  for (const std::uint64_t seed : testing::seeds(300)) {
    SCOPED_TRACE(testing::seed_text(seed));
    RandomCase random_case(seed);
    Target& target = random_case.devices.target();
    const ir::Graph& graph = random_case.graph();
    const AssignmentProblem problem =
        build_assignment_problem(graph, random_case.choices, target, *random_case.conversions);
    const auto solution = solve::solve(problem.problem);
    if (!solution) continue;
    const Assignment assignment = decode(problem, solution->choice);
    if (!cyclic_covers(graph, random_case.choices, assignment).empty()) continue;
    Lowered lowered = legalize(random_case.module.methods.front(), random_case.choices, assignment,
                               target, *random_case.conversions)
                          .front();
    const Status planned = plan_memory(graph, target, random_case.point, lowered);
    ASSERT_TRUE(planned) << planned.error().to_string();
    ASSERT_EQ(lowered.memory.size(), target.memories.size());
    check_aliases(lowered);
    std::vector<std::int64_t> sizes;
    const auto offsets = offsets_at(graph, lowered, random_case.point, sizes);
    int placed = 0;
    for (std::size_t i = 0; i < lowered.buffers.size(); ++i) {
      const LoweredBuffer& buffer = lowered.buffers[i];
      shared += buffer.alias_of != UINT32_MAX ? 1 : 0;
      if (buffer.kind != BufferKind::kTemporary || buffer.alias_of != UINT32_MAX) continue;
      ++placed;
      EXPECT_EQ(buffer.size_bytes, sizes[i]);
      EXPECT_LE(offsets[i], buffer.offset_bytes);  // no hole grows
      EXPECT_LE(buffer.offset_bytes + buffer.size_bytes,
                lowered.memory[buffer.form.memory].arena_bytes);
    }
    several += placed > 2 ? 1 : 0;
    testing::Random random(seed);
    for (int i = 0; i < 5; ++i)
      check_offsets(graph, lowered, {{"n", random.integer(1, 64)}, {"m", random.integer(1, 64)}});
    check_offsets(graph, lowered, {{"n", 0}, {"m", 3}});
    if (HasFailure()) return;
  }
  if (testing::seeds(300).size() < 300) return;
  EXPECT_GT(several, 50);
  EXPECT_GT(shared, 50);
}

}  // namespace
}  // namespace tessera::plan
