#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/compile/kernel_check.h"

namespace tessera::backends::cpu {
namespace {

using Ints = std::vector<std::int64_t>;

struct ConvCase {
  std::string name;
  std::int64_t in, out, group;
  Ints kernel, strides, pads, dilations;
  Dims size;
};

void PrintTo(const ConvCase& c, std::ostream* os) {
  *os << c.name;
}

class Conv : public ::testing::TestWithParam<ConvCase> {};

// Every candidate, priced at batch 1, at batch 1 and 3 and at another size.
TEST_P(Conv, MatchesReference) {
  const ConvCase& c = GetParam();
  Bench bench;
  Shape shape = {Dim::symbol("n"), c.in};
  for (std::size_t i = 0; i < c.size.size(); ++i)
    shape.push_back(Dim::symbol("s" + std::to_string(i)));
  const auto x = bench.input("x", shape);
  Dims weights = {c.out, c.in / c.group};
  weights.insert(weights.end(), c.kernel.begin(), c.kernel.end());
  const auto w = bench.random_constant("w", weights);
  const auto b = bench.random_constant("b", {c.out});
  const auto y = bench.op("Conv", {x, w, b},
                          attributes({{"group", c.group},
                                      {"strides", c.strides},
                                      {"pads", c.pads},
                                      {"dilations", c.dilations},
                                      {"kernel_shape", c.kernel}}));
  bench.output(y);
  SymbolBindings one{{"n", 1}};
  for (std::size_t i = 0; i < c.size.size(); ++i) one["s" + std::to_string(i)] = c.size[i];
  SymbolBindings three = one;
  three["n"] = 3;
  SymbolBindings other = one;
  other["s0"] = c.size[0] + 5;
  const double depth = static_cast<double>(numel(weights) / c.out);
  EXPECT_GE(bench.check(one, {one, three, other}, 1e-6 * std::sqrt(depth)), 1U);
}

// Minus infinity is 0 behind a Relu, whatever computes it.
TEST_P(Conv, InfinitiesMeetARelu) {
  const ConvCase& c = GetParam();
  for (const float sign : {-1.0F, 1.0F}) {
    Bench bench;
    bench.middle = sign * std::numeric_limits<float>::infinity();
    Shape shape = {1, c.in};
    for (const std::int64_t size : c.size) shape.push_back(size);
    Dims weights = {c.out, c.in / c.group};
    weights.insert(weights.end(), c.kernel.begin(), c.kernel.end());
    const auto y = bench.op("Conv", {bench.input("x", shape), bench.random_constant("w", weights)},
                            attributes({{"group", c.group},
                                        {"strides", c.strides},
                                        {"pads", c.pads},
                                        {"dilations", c.dilations}}));
    bench.output(bench.op("Relu", {y}));
    EXPECT_GE(bench.check(1e-4), 1U);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Conv,
    ::testing::Values(
        ConvCase{"dense", 16, 32, 1, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, {14, 13}},
        ConvCase{"first", 3, 20, 1, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, {33, 30}},
        ConvCase{"first7", 3, 64, 1, {7, 7}, {2, 2}, {3, 3, 3, 3}, {1, 1}, {40, 40}},
        ConvCase{"odd", 17, 5, 1, {3, 3}, {1, 1}, {0, 1, 2, 1}, {1, 1}, {11, 9}},
        ConvCase{"pointwise", 24, 40, 1, {1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, {12, 12}},
        ConvCase{"pointwise_odd", 19, 21, 1, {1, 1}, {2, 2}, {0, 0, 0, 0}, {1, 1}, {12, 11}},
        ConvCase{"depthwise", 32, 32, 32, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, {20, 20}},
        ConvCase{"depthwise_odd", 13, 13, 13, {5, 5}, {1, 1}, {2, 2, 2, 2}, {1, 1}, {20, 21}},
        ConvCase{"grouped", 32, 64, 2, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, {15, 15}},
        ConvCase{"grouped_odd", 12, 18, 3, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, {15, 15}},
        ConvCase{"dilated", 16, 16, 1, {3, 3}, {1, 1}, {2, 2, 2, 2}, {2, 2}, {19, 18}},
        ConvCase{"single", 24, 1, 1, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, {30, 30}},
        ConvCase{"line", 16, 24, 1, {5}, {1}, {2, 2}, {1}, {50}},
        ConvCase{
            "volume", 8, 16, 1, {3, 3, 3}, {1, 1, 1}, {1, 1, 1, 1, 1, 1}, {1, 1, 1}, {7, 8, 9}}),
    [](const auto& param) { return param.param.name; });

// A bench with a convolution of 16 to `out` channels at 10x10, for an epilogue.
struct EpilogueBench : Bench {
  explicit EpilogueBench(std::int64_t out = 20, bool bias = true) : channels(out) {
    std::vector<ir::ValueId> inputs = {input("x", {Dim::symbol("n"), 16, 10, 10}),
                                       random_constant("w", {out, 16, 3, 3})};
    if (bias) inputs.push_back(random_constant("b", {out}));
    conv = op("Conv", inputs, attributes({{"pads", Ints{1, 1, 1, 1}}}));
  }
  ir::ValueId scalar(const std::string& name, float value) {
    return constant(name, Tensor::of<float>(DType::kFp32, {}, std::vector<float>{value}));
  }
  void run() { EXPECT_GE(check({{"n", 1}}, {{{"n", 1}}, {{"n", 2}}}, 2e-5), 2U); }
  std::int64_t channels;
  ir::ValueId conv = 0;
};

TEST(ConvEpilogue, Relu) {
  EpilogueBench bench;
  bench.output(bench.op("Relu", {bench.conv}));
  bench.run();
}

// What is infinite stays so without a bound, and becomes the bound with one.
TEST(ConvEpilogue, RangesOfInfinities) {
  for (const float sign : {-1.0F, 1.0F}) {
    for (const int bounds : {0, 1, 2, 3}) {
      SCOPED_TRACE(std::to_string(sign) + " " + std::to_string(bounds));
      EpilogueBench bench;
      bench.middle = sign * std::numeric_limits<float>::infinity();
      const auto low = (bounds & 1) != 0 ? bench.scalar("lo", 0) : ir::kNoValue;
      const auto high = (bounds & 2) != 0 ? bench.scalar("hi", 6) : ir::kNoValue;
      bench.output(bench.op("Clip", {bench.conv, low, high}));
      bench.run();
    }
  }
}

TEST(ConvEpilogue, BoundsThatAreNan) {
  EpilogueBench bench;
  bench.output(bench.op("Clip", {bench.conv, bench.scalar("lo", 0),
                                 bench.scalar("hi", std::numeric_limits<float>::quiet_NaN())}));
  bench.run();
}

TEST(ConvEpilogue, ClipAndSigmoidOfPaddedChannels) {
  EpilogueBench bench(13);
  const auto clipped = bench.op("Clip", {bench.conv, bench.scalar("lo", 0), bench.scalar("hi", 6)});
  bench.output(bench.op("Sigmoid", {clipped}));
  bench.run();
}

TEST(ConvEpilogue, ResidualBehindRelu) {
  EpilogueBench bench;
  const auto skip = bench.input("skip", {Dim::symbol("n"), 20, 10, 10});
  bench.output(bench.op("Relu", {bench.op("Add", {skip, bench.conv})}));
  bench.run();
}

TEST(ConvEpilogue, HardSwishInFourSteps) {
  EpilogueBench bench;
  const auto gate = bench.op("Clip", {bench.op("Add", {bench.conv, bench.scalar("three", 3)}),
                                      bench.scalar("lo", 0), bench.scalar("hi", 6)});
  bench.output(bench.op("Div", {bench.op("Mul", {bench.conv, gate}), bench.scalar("six", 6)}));
  bench.run();
}

TEST(ConvEpilogue, SwishInTwoSteps) {
  EpilogueBench bench;
  bench.output(bench.op("Mul", {bench.conv, bench.op("Sigmoid", {bench.conv})}));
  bench.run();
}

TEST(ConvEpilogue, BiasAsAddOfChannels) {
  EpilogueBench bench(20, false);
  const auto biased = bench.op("Add", {bench.conv, bench.random_constant("c", {20, 1, 1})});
  bench.output(bench.op("HardSigmoid", {biased}));
  bench.run();
}

TEST(ConvEpilogue, ScaledByChannelsAndByATensorOfOneValueAChannel) {
  EpilogueBench bench(17);
  const auto scaled =
      bench.op("Mul", {bench.op("Relu", {bench.conv}), bench.random_constant("c", {1, 17, 1, 1})});
  const auto gate = bench.input("gate", {Dim::symbol("n"), 17, 1, 1});
  bench.output(bench.op("Mul", {scaled, gate}));
  bench.run();
}

TEST(ConvEpilogue, StepsThatOneDnnLacksRunBehindIt) {
  EpilogueBench bench(12);
  const auto power = bench.op("Softplus", {bench.op("Mul", {bench.conv, bench.conv})});
  bench.output(bench.op("Sub", {bench.scalar("one", 1), power}));
  bench.run();
}

TEST(ConvTranspose, MatchesReference) {
  for (const std::int64_t out : {24, 1, 9}) {
    Bench bench;
    const auto x = bench.input("x", {Dim::symbol("n"), 24, Dim::symbol("h"), 7});
    const auto y = bench.op(
        "ConvTranspose",
        {x, bench.random_constant("w", {24, out, 2, 2}), bench.random_constant("b", {out})},
        attributes({{"strides", Ints{2, 2}}, {"kernel_shape", Ints{2, 2}}}));
    bench.output(bench.op("Sigmoid", {y}));
    EXPECT_GE(bench.check({{"n", 1}, {"h", 6}}, {{{"n", 1}, {"h", 6}}, {{"n", 2}, {"h", 9}}}, 1e-5),
              1U);
  }
}

TEST(ConvTranspose, InfinitiesMeetARelu) {
  for (const float sign : {-1.0F, 1.0F}) {
    for (const std::int64_t out : {24, 1, 9}) {
      for (const Ints& strides : {Ints{1, 1}, Ints{2, 2}}) {
        Bench bench;
        bench.middle = sign * std::numeric_limits<float>::infinity();
        const auto y =
            bench.op("ConvTranspose",
                     {bench.input("x", {1, 24, 6, 7}), bench.random_constant("w", {24, out, 3, 3})},
                     attributes({{"strides", strides}}));
        bench.output(bench.op("Relu", {y}));
        EXPECT_GE(bench.check(1e-5), 1U);
      }
    }
  }
}

// What no tap meets is 0 beside a weight that is not finite, too.
TEST(ConvTranspose, WeightsThatAreNotFinite) {
  for (const std::int64_t out : {24, 1, 9}) {
    for (const Ints& strides : {Ints{1, 1}, Ints{2, 2}}) {
      SCOPED_TRACE(std::to_string(out) + " " + std::to_string(strides[0]));
      std::vector<float> elements(static_cast<std::size_t>(24 * out * 9), 0.5F);
      elements[0] = std::numeric_limits<float>::infinity();
      Bench bench;
      bench.low = 0.5F;
      bench.output(bench.op(
          "ConvTranspose",
          {bench.input("x", {1, 24, 6, 7}),
           bench.constant("w", Tensor::of<float>(DType::kFp32, {24, out, 3, 3}, elements))},
          attributes({{"strides", strides}})));
      EXPECT_GE(bench.check(1e-5), 1U);
    }
  }
}

TEST(ConvTranspose, GroupsPadsAndOutputPadding) {
  Bench bench;
  const auto x = bench.input("x", {2, 6, 5, 7});
  bench.output(bench.op("ConvTranspose", {x, bench.random_constant("w", {6, 2, 3, 3})},
                        attributes({{"strides", Ints{2, 2}},
                                    {"group", std::int64_t{3}},
                                    {"pads", Ints{1, 0, 1, 1}},
                                    {"output_padding", Ints{1, 0}}})));
  EXPECT_GE(bench.check(1e-5), 1U);
}

// Less than the whole result, more than it, and shared between both ends in either way.
TEST(ConvTranspose, OutputShapeGivesThePads) {
  for (const Ints& wanted : {Ints{8, 9}, Ints{12, 16}, Ints{9, 15}})
    for (const char* auto_pad : {"NOTSET", "SAME_UPPER", "SAME_LOWER"})
      for (const std::int64_t padding : {0, 1}) {
        Bench bench;
        const auto x = bench.input("x", {1, 3, 5, 7});
        bench.output(bench.op("ConvTranspose", {x, bench.random_constant("w", {3, 2, 3, 3})},
                              attributes({{"strides", Ints{2, 2}},
                                          {"auto_pad", std::string(auto_pad)},
                                          {"output_padding", Ints{padding, padding}},
                                          {"output_shape", wanted}})));
        EXPECT_GE(bench.check(1e-5), 1U) << auto_pad << wanted[0] << padding;
      }
}

TEST(ConvOffers, WeightsFromOutsideAreRowMajor) {
  Bench bench;
  const auto x = bench.input("x", {1, 8, 9, 9});
  bench.output(bench.op("Conv", {x, bench.input("w", {16, 8, 3, 3})}));
  EXPECT_GE(bench.check(1e-5), 1U);
}

TEST(ConvOffers, SamePaddingAtEverySize) {
  Bench bench;
  const auto x = bench.input("x", {1, 8, Dim::symbol("h"), 9});
  bench.output(
      bench.op("Conv", {x, bench.random_constant("w", {16, 8, 3, 3})},
               attributes({{"auto_pad", std::string("SAME_UPPER")}, {"strides", Ints{2, 2}}})));
  EXPECT_GE(bench.check({{"h", 8}}, {{{"h", 8}}, {{"h", 9}}, {{"h", 12}}}, 1e-5), 1U);
}

TEST(ConvOffers, RefusesOtherDtypes) {
  Bench bench;
  const auto x = bench.input("x", {1, 8, 9, 9}, DType::kFp16);
  bench.output(bench.op("Conv", {x, bench.input("w", {16, 8, 3, 3}, DType::kFp16)}));
  EXPECT_EQ(bench.offers({}).refusal, "Conv: expected fp32, found fp16");
}

// One gate for all channels of each position, in every layout.
TEST(Conv, GateOfEveryPosition) {
  for (const std::int64_t group : {1, 48}) {
    SCOPED_TRACE(group);
    Bench bench;
    const auto x = bench.input("x", {1, 48, 30, 30});
    auto y = bench.op("Conv", {x, bench.random_constant("w", {48, 48 / group, 3, 3})},
                      attributes({{"group", group}, {"pads", Ints{1, 1, 1, 1}}}));
    y = bench.op("Add", {y, bench.input("r", {1, 48, 30, 30})});
    y = bench.op("Mul", {y, bench.random_constant("s", {1, 48, 1, 1})});
    y = bench.op("Mul", {y, bench.input("gate", {1, 1, 30, 30})});
    bench.output(bench.op("Sigmoid", {y}));
    bench.check(2e-5);
  }
}

}  // namespace
}  // namespace tessera::backends::cpu
