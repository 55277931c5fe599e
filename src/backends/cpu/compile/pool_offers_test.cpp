#include <gtest/gtest.h>

#include <limits>

#include "backends/cpu/compile/kernel_check.h"
#include "backends/cpu/run/kernels.h"

namespace tessera::backends::cpu {
namespace {

using Ints = std::vector<std::int64_t>;

struct PoolCase {
  const char* op;
  std::int64_t channels;
  Ints kernel, strides, pads;
  std::int64_t ceil, include;
};

TEST(Pool, MatchesReferenceInEveryLayout) {
  const std::vector<PoolCase> cases = {{"MaxPool", 16, {3, 3}, {2, 2}, {1, 1, 1, 1}, 0, 0},
                                       {"MaxPool", 5, {3, 3}, {2, 2}, {0, 0, 0, 0}, 1, 0},
                                       {"MaxPool", 17, {2, 3}, {1, 2}, {0, 1, 1, 1}, 0, 0},
                                       {"AveragePool", 24, {3, 3}, {1, 1}, {1, 1, 1, 1}, 0, 0},
                                       {"AveragePool", 13, {3, 3}, {2, 2}, {1, 1, 1, 1}, 0, 1},
                                       {"AveragePool", 8, {3, 3}, {2, 2}, {1, 1, 1, 1}, 1, 1},
                                       {"AveragePool", 8, {2, 2}, {2, 2}, {0, 0, 0, 0}, 1, 0}};
  for (const PoolCase& c : cases) {
    SCOPED_TRACE(std::string(c.op) + " " + std::to_string(c.channels));
    Bench bench;
    const auto x = bench.input("x", {Dim::symbol("n"), c.channels, Dim::symbol("h"), 14});
    auto attrs = attributes({{"kernel_shape", c.kernel},
                             {"strides", c.strides},
                             {"pads", c.pads},
                             {"ceil_mode", c.ceil}});
    if (std::string(c.op) == "AveragePool") attrs.set("count_include_pad", c.include);
    bench.output(bench.op(c.op, {x}, attrs));
    EXPECT_EQ(
        bench.check({{"n", 1}, {"h", 15}},
                    {{{"n", 1}, {"h", 15}}, {{"n", 3}, {"h", 15}}, {{"n", 1}, {"h", 32}}}, 2e-6),
        3U);
  }
}

TEST(Pool, DilatedAndOfOtherRanks) {
  Bench dilated;
  dilated.output(dilated.op("MaxPool", {dilated.input("x", {1, 9, 12, 12})},
                            attributes({{"kernel_shape", Ints{3, 3}}, {"dilations", Ints{2, 2}}})));
  EXPECT_EQ(dilated.check(0), 3U);
  Bench line;
  line.output(line.op("MaxPool", {line.input("x", {2, 9, 40})},
                      attributes({{"kernel_shape", Ints{3}}, {"strides", Ints{2}}})));
  EXPECT_EQ(line.check(0), 3U);
  Bench volume;
  volume.output(volume.op("AveragePool", {volume.input("x", {1, 4, 6, 7, 8})},
                          attributes({{"kernel_shape", Ints{2, 3, 2}}})));
  EXPECT_EQ(volume.check(2e-6), 3U);
}

TEST(Pool, NanAndMinusInfinityStay) {
  for (const float middle :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    for (const std::int64_t channels : {1, 5, 16, 19}) {
      for (const std::int64_t kernel : {1, 2, 3}) {
        SCOPED_TRACE(std::to_string(middle) + " " + std::to_string(channels) + " " +
                     std::to_string(kernel));
        Bench bench;
        bench.middle = middle;
        bench.output(bench.op("MaxPool", {bench.input("x", {1, channels, 9, 11})},
                              attributes({{"kernel_shape", Ints{kernel, kernel}}})));
        EXPECT_EQ(bench.check(0), 3U);
      }
    }
  }
}

TEST(Pool, AllNan) {
  for (const Ints& dilations : {Ints{1, 1}, Ints{2, 1}}) {
    Bench bench;
    bench.low = bench.high = std::numeric_limits<float>::quiet_NaN();
    bench.output(bench.op("MaxPool", {bench.input("x", {2, 10, 9, 11})},
                          attributes({{"kernel_shape", Ints{3, 3}},
                                      {"strides", Ints{2, 2}},
                                      {"pads", Ints{1, 1, 1, 1}},
                                      {"dilations", dilations}})));
    EXPECT_EQ(bench.check(0), 3U);
  }
}

TEST(Pool, WindowsOfPaddingAlone) {
  for (const char* op : {"MaxPool", "AveragePool"}) {
    SCOPED_TRACE(op);
    Bench bench;
    bench.output(bench.op(op, {bench.input("x", {2, 10, 6, 7})},
                          attributes({{"kernel_shape", Ints{2, 2}}, {"pads", Ints{3, 2, 2, 0}}})));
    EXPECT_EQ(bench.check(1e-6), 3U);
  }
}

TEST(Pool, MaxPoolIsOwnCode) {
  Bench bench;
  bench.output(bench.op("MaxPool", {bench.input("x", {1, 16, 8, 8})},
                        attributes({{"kernel_shape", Ints{2, 2}}})));
  for (const Candidate& candidate : bench.offers({}).candidates)
    EXPECT_EQ(candidate.kernel, "simd.pool");
}

TEST(Pool, IndicesAreRefused) {
  Bench bench;
  const auto outputs = bench.node("MaxPool", {bench.input("x", {1, 2, 8, 8})},
                                  attributes({{"kernel_shape", Ints{2, 2}}}), 2);
  bench.output(outputs[0]);
  EXPECT_EQ(bench.offers({}).refusal, "MaxPool: expected one output, found 2");
}

TEST(GlobalPool, AverageAndMax) {
  for (const char* op : {"GlobalAveragePool", "GlobalMaxPool"}) {
    for (const std::int64_t channels : {3, 64}) {
      Bench bench;
      bench.output(
          bench.op(op, {bench.input("x", {Dim::symbol("n"), channels, Dim::symbol("h"), 9})}));
      EXPECT_EQ(
          bench.check({{"n", 1}, {"h", 7}},
                      {{{"n", 1}, {"h", 7}}, {{"n", 2}, {"h", 50}}, {{"n", 2}, {"h", 0}}}, 2e-6),
          3U);
    }
  }
}

TEST(GlobalPool, NanAndInfinityStay) {
  for (const char* op : {"GlobalAveragePool", "GlobalMaxPool"}) {
    for (const float middle :
         {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
      for (const std::int64_t size : {1, 9}) {
        Bench bench;
        bench.middle = middle;
        bench.output(bench.op(op, {bench.input("x", {1, 10, size, size})}));
        EXPECT_EQ(bench.check(2e-6), 3U);
      }
    }
  }
}

TEST(Reduce, EveryKindAndAxes) {
  for (const char* op :
       {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSumSquare",
        "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp"}) {
    for (const Ints& axes :
         {Ints{-1}, Ints{0}, Ints{1}, Ints{0, 2}, Ints{2, 3}, Ints{0, 1, 2, 3}}) {
      SCOPED_TRACE(op);
      Bench bench;
      bench.low = 0.5F;
      bench.high = 1.5F;
      const auto axes_value = bench.constant(
          "axes",
          Tensor::of<std::int64_t>(DType::kInt64, {static_cast<std::int64_t>(axes.size())}, axes));
      bench.output(bench.op(op, {bench.input("x", {3, 4, 5, 6}), axes_value},
                            attributes({{"keepdims", std::int64_t{axes.size() == 1 ? 0 : 1}}})));
      EXPECT_GE(bench.check(1e-5), 1U);
    }
  }
}

TEST(Reduce, ArgMax) {
  for (const std::int64_t axis : {0, 1, -1}) {
    Bench bench;
    bench.output(bench.op("ArgMax", {bench.input("x", {4, 7, 5})},
                          attributes({{"axis", axis}, {"keepdims", std::int64_t{0}}})));
    EXPECT_EQ(bench.check(0), 1U);
  }
}

TEST(Reduce, ArgMaxOfNothingIsAnError) {
  artefact::KernelSpec spec;
  spec.inputs = {{DType::kFp32, {}, {Dim::symbol("n"), 3}}};
  spec.outputs = {{DType::kInt64, {}, {1, 3}}};
  spec.steps = {{"", "ArgMax", attributes({{"axis", std::int64_t{0}}}), {0}, 1}};
  const auto kernel = load_reduce(spec, {});
  ASSERT_TRUE(kernel) << kernel.error().to_string();
  const auto instance = (*kernel)->instantiate({{{0, 3}}, {{1, 3}}}, 1);
  ASSERT_FALSE(instance);
  EXPECT_EQ(instance.error().to_string(), "ArgMax and ArgMin: axis 0 of 0x3 has no elements");
  EXPECT_TRUE((*kernel)->instantiate({{{0, 0}}, {{1, 0}}}, 1)) << "nothing is asked for";
}

TEST(Reduce, ArgMaxOfNanIsAmongNan) {
  for (const char* op : {"ArgMax", "ArgMin"})
    for (const std::int64_t last : {0, 1}) {
      Bench bench;
      bench.low = bench.high = std::numeric_limits<float>::quiet_NaN();
      bench.output(bench.op(op, {bench.input("x", {4, 7})},
                            attributes({{"axis", std::int64_t{1}}, {"select_last_index", last}})));
      EXPECT_EQ(bench.check(0), 1U);
    }
}

TEST(Softmax, EveryAxis) {
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    for (const std::int64_t axis : {0, 1, -1}) {
      Bench bench;
      bench.low = -30;
      bench.high = 30;
      bench.output(
          bench.op(op, {bench.input("x", {4, Dim::symbol("k"), 6})}, attributes({{"axis", axis}})));
      EXPECT_EQ(bench.check({{"k", 9}}, {{{"k", 9}}, {{"k", 1000}}}, 2e-6), 1U);
    }
  }
}

TEST(LayerNormalization, LastAxes) {
  Bench bench;
  bench.output(bench.node("LayerNormalization",
                          {bench.input("x", {Dim::symbol("n"), 6, 33}),
                           bench.random_constant("s", {33}), bench.random_constant("b", {33})},
                          attributes({{"axis", std::int64_t{-1}}}), 1)[0]);
  EXPECT_EQ(bench.check({{"n", 1}}, {{{"n", 1}}, {{"n", 50}}}, 2e-5), 1U);
}

}  // namespace
}  // namespace tessera::backends::cpu
