// The figures of delegation, layouts and fusion in the field's introductory texts, through the
// assignment and its prices.

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "ops/op_table.h"
#include "plan/plan_testing_test.h"

namespace tessera::plan {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

// A chain of `nodes` on an accelerator behind a link, and on the host. Every value has 1 MiB; a
// node takes the same time wherever it belongs, and on the host `host_us` where the accelerator has
// it too.
struct Delegation : Stages {
  Delegation(std::size_t nodes, const std::set<std::size_t>& missing, double node_us,
             double host_us)
      : Stages(statements(nodes)) {
    auto& cpu = devices.add("cpu");
    auto& npu = devices.add("npu", "npu");
    npu.mutable_info().rates.link_gb_per_s = 4;  // a round trip of 8 GB/s at each boundary
    npu.mutable_info().rates.launch_us = 50;     // and a synchronisation
    npu.mutable_info().rates.sync_us = 50;
    for (std::size_t i = 0; i < nodes; ++i) {
      const std::string name = "n" + std::to_string(i);
      const bool is_missing = missing.contains(i);
      cpu.offer(name, is_missing ? node_us : host_us, {kPlain}, kPlain);
      if (!is_missing) npu.offer(name, node_us, {kPlain}, kPlain);
    }
    assign();
  }
  static std::string statements(std::size_t nodes) {
    std::string text = "input %v : fp32[1, 1, 512, 512]\n";
    for (std::size_t i = 0; i < nodes; ++i) {
      const std::string number = std::to_string(i);
      text += "%y" + number + " = Relu(%" + (i == 0 ? "v" : "y" + std::to_string(i - 1)) +
              ") name \"n" + number + "\"\n";
    }
    return text + "output %y" + std::to_string(nodes - 1);
  }
  [[nodiscard]] double boundary_us() const { return pricer->transfer_us(0, 1, kMiB) + 50; }
  [[nodiscard]] int partitions() const {
    int count = 0;
    for (std::size_t i = 0; i < assignment.nodes.size(); ++i)
      if (assignment.nodes[i].device == 1 && (i == 0 || assignment.nodes[i - 1].device != 1))
        ++count;
    return count;
  }
};

TEST(FallbackTax, ABoundaryIsARoundTripAndASynchronisation) {
  const Delegation chain(2, {}, 10, 1000);
  EXPECT_NEAR(chain.boundary_us(), 310, 3.1);
}

TEST(FallbackTax, OnePartitionOrThirteen) {
  std::set<std::size_t> ends, scattered;
  for (std::size_t i = 0; i < 6; ++i) ends.insert({i, 119 - i});
  for (std::size_t i = 1; i <= 12; ++i) scattered.insert(i * 9);
  const double node_us = 8000.0 / 120;
  const double compute_us = 120 * round_price_us(node_us);
  const Delegation one(120, ends, node_us, 10'000);
  EXPECT_EQ(one.partitions(), 1);
  EXPECT_NEAR(one.solution.cost, compute_us + 2 * one.boundary_us(), 1e-6);
  EXPECT_NEAR(one.solution.cost, 8620, 86);
  const Delegation thirteen(120, scattered, node_us, 10'000);
  EXPECT_EQ(thirteen.partitions(), 13);
  EXPECT_NEAR(thirteen.solution.cost, compute_us + 26 * one.boundary_us(), 1e-6);
  EXPECT_NEAR(thirteen.solution.cost, 16'060, 160);
  EXPECT_NEAR(thirteen.solution.cost / one.solution.cost, 1.86, 0.02);
}

TEST(Problem2, WhereTheUnsupportedNodesStand) {
  std::set<std::size_t> middle, end, scattered;
  for (std::size_t i = 0; i < 20; ++i) {
    middle.insert(90 + i);
    end.insert(180 + i);
    scattered.insert(9 + i * 10);  // the last node is one of them
  }
  const auto cost_ms = [](const std::set<std::size_t>& missing) {
    return Delegation(200, missing, 40, 10'000).solution.cost / 1000;
  };
  EXPECT_NEAR(cost_ms(middle), 9.24, 0.09);
  EXPECT_NEAR(cost_ms(end), 8.62, 0.09);
  EXPECT_NEAR(cost_ms(scattered), 20.4, 0.2);
}

TEST(Problem2, WhereDelegationDoesNotPayTheHostRunsIt) {
  std::set<std::size_t> scattered;
  for (std::size_t i = 1; i < 40; ++i) scattered.insert(i * 5);  // 40 partitions of 0.62 ms
  Delegation chain(200, scattered, 40, 110);
  EXPECT_EQ(chain.partitions(), 0);
  const auto greedy =
      greedy_by_priority(chain.graph(), chain.choices, chain.target(), chain.problem);
  ASSERT_TRUE(greedy);
  chain.assignment = decode(chain.problem, *greedy);
  EXPECT_EQ(chain.partitions(), 40);
  EXPECT_LT(chain.solution.cost, 200 * round_price_us(40) + 80 * chain.boundary_us());
}

// Layers that want NHWC; those in `only_plain` have only NCHW. 56 x 56 x 64 floats, read and
// written at 20 GB/s by a transpose.
double layouts_ms(const std::set<std::size_t>& only_plain) {
  Stages stages(Delegation::statements(50));
  auto& cpu = stages.devices.add("cpu");
  const double transpose_us = 2 * (56.0 * 56 * 64 * 4) / 20e9 * 1e6;
  EXPECT_NEAR(transpose_us, 80, 0.5);
  EXPECT_NEAR(50 * transpose_us, 4000, 20);
  cpu.convert(kPlain, kLast, transpose_us);
  cpu.convert(kLast, kPlain, transpose_us);
  for (std::size_t i = 0; i < 50; ++i) {
    const std::string name = "n" + std::to_string(i);
    if (only_plain.contains(i)) {
      cpu.offer(name, 0, {kPlain}, kPlain);
      continue;
    }
    cpu.offer(name, 10'000, {kPlain}, kPlain);
    // the first and the last layer take over what the interface shows
    cpu.offer(name, 0, {i == 0 ? kPlain : kLast}, i == 49 ? kPlain : kLast);
  }
  stages.assign();
  return stages.solution.cost / 1000;
}

TEST(Problem4, TransposesBetweenLayouts) {
  std::set<std::size_t> scattered, contiguous;
  for (std::size_t i = 0; i < 12; ++i) {
    scattered.insert(2 + 4 * i);
    contiguous.insert(20 + i);
  }
  EXPECT_NEAR(layouts_ms(scattered), 1.93, 0.03);  // prices are rounded to powers of 1.02
  EXPECT_NEAR(layouts_ms(contiguous), 0.16, 0.003);
  EXPECT_NEAR(layouts_ms(scattered), 12 * layouts_ms(contiguous), 1e-9);
}

// Price of one operator at 200 GFLOP/s and 20 GB/s.
double operator_us(const ops::Work& work, double bytes) {
  backends::DeviceRates rates;
  rates.default_gflops = 200;
  rates.memory_gb_per_s = 20;
  backends::Candidate candidate;
  candidate.flops = work.flops;
  candidate.bytes_moved = bytes;
  return roofline_us(rates, candidate);
}

ops::Work work_of(const char* name, const ops::Attributes& attributes,
                  const std::vector<Dims>& inputs, const Dims& output) {
  std::vector<ops::TensorSpec> specs;
  for (const Dims& dims : inputs) specs.push_back({DType::kFp32, dims, true});
  const std::vector<ops::TensorSpec> outputs = {{DType::kFp32, output, true}};
  return ops::work_of(*ops::find_op("", name), attributes, specs, outputs);
}

TEST(VerticalFusion, BiasAndReluNeedNotGoThroughMemory) {
  const Dims activation = {1, 64, 56, 56};
  ops::Attributes attributes;
  attributes.set("kernel_shape", std::vector<std::int64_t>{3, 3});
  attributes.set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
  const ops::Work conv = work_of("Conv", attributes, {activation, {64, 64, 3, 3}}, activation);
  EXPECT_NEAR(conv.flops, 231e6, 1e6);
  const ops::Work bias = work_of("Add", {}, {activation, {1, 64, 1, 1}}, activation);
  const ops::Work relu = work_of("Relu", {}, {activation}, activation);
  const double extra_bytes =
      bias.bytes_read + bias.bytes_written + relu.bytes_read + relu.bytes_written;
  EXPECT_NEAR(extra_bytes, 3.21e6, 0.005e6);
  const double unfused_us = operator_us(bias, bias.bytes_read + bias.bytes_written) +
                            operator_us(relu, relu.bytes_read + relu.bytes_written);
  EXPECT_NEAR(unfused_us, 161, 1);
  const double layer_us = operator_us(conv, conv.bytes_read + conv.bytes_written);
  EXPECT_NEAR(unfused_us / layer_us, 0.14, 0.002);
}

TEST(HorizontalFusion, TheActivationIsReadOnce) {
  const Dims activation = {128, 768};
  const ops::Work one = work_of("MatMul", {}, {activation, {768, 768}}, {128, 768});
  const ops::Work all = work_of("MatMul", {}, {activation, {768, 2304}}, {128, 2304});
  EXPECT_DOUBLE_EQ(3 * one.flops, all.flops);
  EXPECT_NEAR(128 * 768 * 4, 393e3, 0.5e3);
  EXPECT_NEAR(3 * one.bytes_read - all.bytes_read, 0.79e6, 0.005e6);
  EXPECT_DOUBLE_EQ(3 * one.bytes_written, all.bytes_written);
}

TEST(ArithmeticIntensity, OfALoneRelu) {
  const ops::Work relu = work_of("Relu", {}, {{1000}}, {1000});
  EXPECT_DOUBLE_EQ(relu.flops / (relu.bytes_read + relu.bytes_written), 0.125);
}

}  // namespace
}  // namespace tessera::plan
