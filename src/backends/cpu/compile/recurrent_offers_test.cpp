// LSTM, GRU and RNN against the reference kernels.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "backends/cpu/compile/cpu_device.h"
#include "backends/cpu/compile/kernel_check.h"
#include "backends/cpu/run/cpu_run_device.h"

namespace tessera::backends::cpu {
namespace {

const Dim kSteps = Dim::symbol("t");
const Dim kBatch = Dim::symbol("n");
const SymbolBindings kPoint = {{"t", 5}, {"n", 2}};
const std::vector<SymbolBindings> kSizes = {
    kPoint, {{"t", 1}, {"n", 1}}, {{"t", 3}, {"n", 13}}, {{"t", 0}, {"n", 2}}};
constexpr double kTolerance = 1e-5;
constexpr float kWeight = 0.2F;  // larger ones let differences of rounding grow from step to step

// What an operator is given besides X, W and R.
struct Extras {
  bool bias = true;
  bool lengths = false;
  bool states = false;
  bool peepholes = false;
  bool constant_weights = true;
};

struct Cell {
  const char* op = "LSTM";
  std::int64_t gates = 4;
  std::int64_t input = 5;
  std::int64_t hidden = 3;
};

constexpr Cell kLstm{};
constexpr Cell kGru{"GRU", 3};
constexpr Cell kRnn{"RNN", 1};

// All outputs of the cell in use.
Bench bench_of(const Cell& cell, const Extras& extras, ops::Attributes attrs) {
  Bench bench;
  const bool lstm = std::string_view(cell.op) == "LSTM";
  const bool batch_first = attrs.get_int("layout", 0) == 1;
  const std::int64_t d = attrs.get_string("direction", "forward") == "bidirectional" ? 2 : 1;
  const std::int64_t rows = cell.gates * cell.hidden;
  const auto weights = [&](const char* name, const Dims& dims) {
    return extras.constant_weights ? bench.random_constant(name, dims, -kWeight, kWeight)
                                   : bench.input(name, to_shape(dims));
  };
  const Shape state = batch_first ? Shape{kBatch, d, cell.hidden} : Shape{d, kBatch, cell.hidden};
  std::vector<ir::ValueId> inputs = {
      bench.input(
          "x", batch_first ? Shape{kBatch, kSteps, cell.input} : Shape{kSteps, kBatch, cell.input}),
      weights("w", {d, rows, cell.input}),
      weights("r", {d, rows, cell.hidden}),
      extras.bias ? weights("b", {d, 2 * rows}) : ir::kNoValue,
      extras.lengths ? bench.input("l", {kBatch}, DType::kInt32) : ir::kNoValue,
      extras.states ? bench.input("h", state) : ir::kNoValue};
  if (lstm) {
    inputs.push_back(extras.states ? bench.input("c", state) : ir::kNoValue);
    inputs.push_back(extras.peepholes ? weights("p", {d, 3 * cell.hidden}) : ir::kNoValue);
  }
  for (const ir::ValueId output : bench.node(cell.op, inputs, std::move(attrs), lstm ? 3 : 2))
    bench.output(output);
  return bench;
}

TEST(RecurrentOffers, EveryDirectionAndLayout) {
  for (const Cell& cell : {kLstm, kGru, kRnn}) {
    for (const char* direction : {"forward", "reverse", "bidirectional"}) {
      for (const std::int64_t layout : {0, 1}) {
        SCOPED_TRACE(fmt::format("{} {} layout {}", cell.op, direction, layout));
        Bench bench = bench_of(cell, {.states = layout == 1},
                               attributes({{"direction", direction}, {"layout", layout}}));
        EXPECT_EQ(bench.check(kPoint, kSizes, kTolerance), 1U);
      }
    }
  }
}

TEST(RecurrentOffers, LengthsOfEachItem) {
  for (const Cell& cell : {kLstm, kGru, kRnn}) {
    for (const char* direction : {"forward", "bidirectional"}) {
      SCOPED_TRACE(fmt::format("{} {}", cell.op, direction));
      Bench bench =
          bench_of(cell, {.lengths = true, .states = true}, attributes({{"direction", direction}}));
      bench.low = 0;
      bench.high = 6;  // lengths from 0 to 5
      EXPECT_EQ(bench.check(kPoint, {kPoint, {{"t", 7}, {"n", 9}}}, kTolerance), 1U);
    }
  }
}

TEST(RecurrentOffers, PeepholesClipAndCoupledGates) {
  Bench lstm = bench_of(kLstm, {.states = true, .peepholes = true},
                        attributes({{"clip", 0.7F}, {"direction", "bidirectional"}}));
  EXPECT_EQ(lstm.check(kPoint, kSizes, kTolerance), 1U);
  Bench coupled = bench_of(kLstm, {.bias = false, .peepholes = true},
                           attributes({{"input_forget", std::int64_t{1}}}));
  EXPECT_EQ(coupled.check(kPoint, kSizes, kTolerance), 1U);
}

TEST(RecurrentOffers, ResetGateOnBothSides) {
  for (const std::int64_t after : {0, 1}) {
    for (const bool bias : {false, true}) {
      Bench gru = bench_of(kGru, {.bias = bias, .states = true},
                           attributes({{"linear_before_reset", after}, {"clip", 0.9F}}));
      EXPECT_EQ(gru.check(kPoint, kSizes, kTolerance), 1U);
    }
  }
}

TEST(RecurrentOffers, UnitsThatFillPanels) {
  for (Cell cell : {kLstm, kGru, kRnn}) {
    for (const std::int64_t hidden : {16, 33, 64}) {
      SCOPED_TRACE(fmt::format("{} of {}", cell.op, hidden));
      cell.hidden = hidden;
      cell.input = 37;
      Bench bench = bench_of(cell, {}, attributes({{"direction", "bidirectional"}}));
      EXPECT_EQ(bench.check(kPoint, {{{"t", 60}, {"n", 3}}, {{"t", 2}, {"n", 70}}}, kTolerance),
                1U);
    }
  }
}

// Threads share the units of each step where the weights are large and nothing else is there to
// share.
TEST(RecurrentOffers, LargeWeightsOfOneItem) {
  for (Cell cell : {kLstm, kGru}) {
    cell.hidden = 440;
    Bench bench = bench_of(cell, {}, {});
    EXPECT_EQ(bench.check({{"t", 3}, {"n", 1}}, {{{"t", 3}, {"n", 1}}}, 1e-4), 1U);
  }
}

TEST(RecurrentOffers, WeightsThatTheRunGives) {
  for (const Cell& cell : {kLstm, kGru, kRnn}) {
    Bench bench = bench_of(cell, {.peepholes = true, .constant_weights = false},
                           attributes({{"direction", "bidirectional"}}));
    EXPECT_EQ(bench.check(kPoint, kSizes, kTolerance), 1U);
  }
}

TEST(RecurrentOffers, OneOutputAlone) {
  for (const std::size_t used : {0, 1, 2}) {
    Bench bench;
    const auto outputs =
        bench.node("LSTM",
                   {bench.input("x", {kSteps, kBatch, 5}), bench.random_constant("w", {1, 12, 5}),
                    bench.random_constant("r", {1, 12, 3})},
                   {}, 3);
    bench.output(outputs[used]);
    EXPECT_EQ(bench.check(kPoint, kSizes, kTolerance), 1U);
  }
}

// A bench of an LSTM whose weights are constants or not.
Bench lstm_of(bool constant_weights) {
  Bench bench;
  const ir::ValueId x = bench.input("x", {3, 2, 5});
  const ir::ValueId w =
      constant_weights ? bench.random_constant("w", {1, 12, 5}) : bench.input("w", {1, 12, 5});
  const ir::ValueId r = bench.random_constant("r", {1, 12, 3});
  for (const ir::ValueId output : bench.node("LSTM", {x, w, r}, {}, 3)) bench.output(output);
  return bench;
}

// Compiled as an item whose sizes only the run knows.
CompiledKernel compiled_late(const Bench& bench) {
  ir::WorkItem item = bench.item();
  item.is_late = true;
  const auto compiler = make_cpu_device();
  const Offers offers = compiler->offers(item, {}, {});
  EXPECT_EQ(offers.candidates.size(), 1U) << offers.refusal;
  EXPECT_EQ(offers.candidates.at(0).options.at("late"), 1);
  return *compiler->compile(item, offers.candidates[0]);
}

std::unique_ptr<LoadedKernel> loaded(RunDevice& runner, const CompiledKernel& compiled) {
  std::vector<std::span<const std::byte>> constants;
  for (const Tensor& tensor : compiled.constants)
    constants.emplace_back(static_cast<const std::byte*>(tensor.data()),
                           static_cast<std::size_t>(tensor.nbytes()));
  auto kernel = runner.load(compiled.spec, constants);
  EXPECT_TRUE(kernel) << kernel.error().to_string();
  return *std::move(kernel);
}

// What an instance for known sizes gives.
std::vector<Tensor> run_planned(const LoadedKernel& kernel, const InstanceDims& dims,
                                const Tensor& x) {
  const auto instance = kernel.instantiate(dims, 1);
  EXPECT_TRUE(instance) << instance.error().to_string();
  std::vector<Tensor> results;
  std::vector<std::byte*> to;
  for (const Dims& sizes : dims.outputs) {
    results.push_back(*Tensor::zeros(DType::kFp32, sizes));
    to.push_back(static_cast<std::byte*>(results.back().mutable_data()));
  }
  std::vector<std::byte> scratch(static_cast<std::size_t>((*instance)->scratch_bytes()));
  const std::byte* const from[] = {static_cast<const std::byte*>(x.data())};
  EXPECT_TRUE((*instance)->execute({.inputs = from, .outputs = to, .scratch = scratch.data()}));
  return results;
}

TEST(RecurrentOffers, SizesThatOnlyTheRunKnows) {
  const CompiledKernel compiled = compiled_late(lstm_of(true));
  const auto runner = make_cpu_run_device();
  const auto kernel = loaded(*runner, compiled);
  std::vector<float> elements(40);
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<float>(i) / 40;
  const RunValue x = RunValue::of(Tensor::of<float>(DType::kFp32, {4, 2, 5}, elements));
  const RunValue* const inputs[] = {&x};
  const auto late = kernel->run_late(inputs, nullptr);
  ASSERT_TRUE(late) << late.error().to_string();
  ASSERT_EQ(late->size(), 3U);
  const auto planned =
      run_planned(*kernel, {{{4, 2, 5}}, {{4, 1, 2, 3}, {1, 2, 3}, {1, 2, 3}}}, x.tensor);
  for (std::size_t o = 0; o < planned.size(); ++o)
    EXPECT_TRUE((*late)[o].tensor.equals(planned[o])) << "output " << o;

  const RunValue flat = RunValue::of(Tensor::of<float>(DType::kFp32, {8, 5}, elements));
  const RunValue* const wrong[] = {&flat};
  EXPECT_EQ(kernel->run_late(wrong, nullptr).error().to_string(),
            "LSTM: input 'X': expected rank 3, found rank 2");
}

// What is assumed of sizes prices the kernel, and refuses nothing: the run decides.
TEST(RecurrentOffers, LateOnesCostWhatTheirSizesSay) {
  Bench bench = lstm_of(true);
  ir::WorkItem item = bench.item();
  item.is_late = true;
  const auto device = make_cpu_device();
  const auto known = device->offers(item, {}, {}).candidates.at(0);
  item.is_late = false;
  const auto planned = device->offers(item, {}, {}).candidates.at(0);
  EXPECT_GT(known.flops, 0);
  EXPECT_EQ(known.flops, planned.flops);
  EXPECT_EQ(known.bytes_moved, planned.bytes_moved);

  item.is_late = true;
  auto& graph = const_cast<ir::Graph&>(*item.graph);
  std::map<ir::ValueId, Dims> assumed;
  for (const ir::ValueId id : item.inputs) {
    if (graph.value(id).kind == ir::ValueKind::kConstant) continue;
    graph.value(id).type.shape.reset();
    assumed[id] = {3, 2, 5};
  }
  EXPECT_EQ(device->offers(item, {}, {}).candidates.at(0).flops, 0);
  item.assumed = &assumed;
  EXPECT_EQ(device->offers(item, {}, {}).candidates.at(0).flops, planned.flops);
  for (auto& [id, dims] : assumed) dims = {2, 5};
  EXPECT_EQ(device->offers(item, {}, {}).candidates.at(0).flops, 0) << "no such LSTM";
}

TEST(RecurrentOffers, LateOnesNeedConstantWeights) {
  const Bench bench = lstm_of(false);
  ir::WorkItem item = bench.item();
  item.is_late = true;
  EXPECT_EQ(make_cpu_device()->offers(item, {}, {}).refusal,
            "LSTM: inputs 'W' and 'R': expected constants where the sizes of its outputs depend on "
            "data");
}

TEST(RecurrentOffers, Refusals) {
  const auto refusal = [](const char* op, std::int64_t gates, DType dtype,
                          const ops::Attributes& attrs) {
    Bench bench;
    bench.output(
        bench.op(op,
                 {bench.input("x", {2, 1, 4}, dtype), bench.input("w", {1, gates * 3, 4}, dtype),
                  bench.input("r", {1, gates * 3, 3}, dtype)},
                 attrs));
    return bench.offers({}).refusal;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(refusal("LSTM", 4, DType::kFp64, {}), "LSTM: input 'X': expected fp32, found fp64");
  EXPECT_EQ(refusal("GRU", 3, DType::kFp32, attributes({{"activations", Names{"Relu", "Tanh"}}})),
            "GRU: attribute 'activations': expected Sigmoid, Tanh, found Relu, Tanh");
  EXPECT_EQ(refusal("RNN", 1, DType::kFp32, attributes({{"activations", Names{"Relu"}}})),
            "RNN: attribute 'activations': expected Tanh, found Relu");
  EXPECT_EQ(refusal("LSTM", 4, DType::kFp32,
                    attributes({{"activations", Names{"Sigmoid", "Tanh", "HardSigmoid"}}})),
            "LSTM: attribute 'activations': expected Sigmoid, Tanh, Tanh, found Sigmoid, Tanh, "
            "HardSigmoid");
}

}  // namespace
}  // namespace tessera::backends::cpu
