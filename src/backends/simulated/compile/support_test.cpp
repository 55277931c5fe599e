#include "backends/simulated/compile/support.h"

#include <gtest/gtest.h>

#include "testing/backend_testing.h"

namespace tessera::backends::simulated {
namespace {

using testing::BackendGraph;

constexpr const char* kConv =
    "input %x : fp32[1, 2, 6, 6] input %w : fp32[2, 2, 3, 3] %y = Conv(%x, %w) name \"conv_1\" "
    "output %y";

// Why a device of this profile refuses the first node of `statements`; empty where it takes it.
std::string refusal_of(const std::string& profile_keys, const std::string& statements = kConv,
                       DType dtype = DType::kFp32) {
  const auto profile =
      parse_profile(R"({"schema": "tessera.device/1.0", "name": "npu", )" + profile_keys + "}");
  if (!profile) return "the profile: " + profile.error().to_string();
  const BackendGraph graph(statements);
  return refusal(*profile, graph.item(), *graph.graph().nodes().at(0), dtype);
}

std::string conv(const std::string& attributes) {
  return "input %x : fp32[1, 2, 6, 6] input %w : fp32[2, 2, 1, 1] %y = Conv(%x, %w) {" +
         attributes + "} output %y";
}

TEST(Support, AbsentMeansEverything) {
  EXPECT_EQ(refusal_of(R"("launch_us": 1)"), "");
}

TEST(Support, OnlyListedOperators) {
  EXPECT_EQ(refusal_of(R"("supports": [{"op": "Conv"}])"), "");
  EXPECT_EQ(refusal_of(R"("supports": [{"op": "Relu"}])"),
            "Conv: the operator is not among those that 'npu' supports");
  EXPECT_EQ(refusal_of(R"("supports": [])"),
            "Conv: the operator is not among those that 'npu' supports");
}

TEST(Support, Dtypes) {
  const std::string keys = R"("supports": [{"op": "Conv", "dtypes": ["fp16", "int8"]}])";
  EXPECT_EQ(refusal_of(keys), "Conv: fp32 is not supported (supports: fp16, int8)");
  EXPECT_EQ(refusal_of(keys, kConv, DType::kFp16), "");
}

TEST(Support, Ranks) {
  EXPECT_EQ(refusal_of(R"("supports": [{"op": "Conv", "max_rank": 4}])"), "");
  EXPECT_EQ(refusal_of(R"("supports": [{"op": "Conv", "max_rank": 3}])"),
            "Conv: rank 4 is not supported (supports: at most 3)");
}

TEST(Support, TextAttributes) {
  const std::string keys = R"("supports": [{"op": "Pad", "where": {"mode": "constant"}}])";
  const auto pad = [](const std::string& attributes) {
    return "input %x : fp32[1, 4] const %p : int64[4] dense [0, 1, 0, 1] %y = Pad(%x, %p)" +
           attributes + " output %y";
  };
  EXPECT_EQ(refusal_of(keys, pad(" {mode = \"reflect\"}")),
            "Pad: mode=reflect is not supported (supports: constant)");
  EXPECT_EQ(refusal_of(keys, pad(" {mode = \"constant\"}")), "");
  EXPECT_EQ(refusal_of(keys, pad("")), "") << "constant is what ONNX means where it is left out";
}

TEST(Support, NumbersListsAndRanges) {
  const std::string group = R"("supports": [{"op": "Conv", "where": {"group": 1}}])";
  EXPECT_EQ(refusal_of(group), "") << "the default";
  EXPECT_EQ(refusal_of(group,
                       "input %x : fp32[1, 2, 6, 6] input %w : fp32[2, 1, 1, 1] "
                       "%y = Conv(%x, %w) {group = 2} output %y"),
            "Conv: group=2 is not supported (supports: 1)");
  const std::string dilations = R"("supports": [{"op": "Conv", "where": {"dilations": [1, 1]}}])";
  EXPECT_EQ(refusal_of(dilations), "") << "the default";
  EXPECT_EQ(refusal_of(dilations, conv("dilations = [2, 1]")),
            "Conv: dilations=[2, 1] is not supported (supports: [1, 1])");
  const std::string strides =
      R"("supports": [{"op": "Conv", "where": {"strides": {"min": 1, "max": 2}}}])";
  EXPECT_EQ(refusal_of(strides, conv("strides = [2, 1]")), "");
  EXPECT_EQ(refusal_of(strides, conv("strides = [2, 3]")),
            "Conv: strides=[2, 3] is not supported (supports: 1 to 2)");
  EXPECT_EQ(refusal_of(R"("supports": [{"op": "Conv", "where": {"strides": {"min": 2}}}])"),
            "Conv: strides=[1, 1] is not supported (supports: at least 2)");
  EXPECT_EQ(refusal_of(R"("supports": [{"op": "Conv", "where": {"pads": {"max": 1}}}])",
                       conv("pads = [2, 0, 0, 0]")),
            "Conv: pads=[2, 0, 0, 0] is not supported (supports: at most 1)");
}

TEST(Support, DefaultsOfOtherOperators) {
  const std::string pool =
      "input %x : fp32[1, 2, 6, 6] %y = MaxPool(%x) {kernel_shape = [2, 2]} "
      "output %y";
  EXPECT_EQ(refusal_of(R"("supports": [{"op": "MaxPool", "where": {"ceil_mode": 0}}])", pool), "");
  EXPECT_EQ(refusal_of(R"("supports": [{"op": "MaxPool", "where": {"ceil_mode": 1}}])", pool),
            "MaxPool: ceil_mode=0 is not supported (supports: 1)");
  const std::string range =
      "const %a : fp32[] dense [0] const %b : fp32[] dense [3] const %c : "
      "fp32[] dense [1] %y = Range(%a, %b, %c) output %y";
  EXPECT_EQ(refusal_of(R"("supports": [{"op": "Range", "where": {"strides": [1, 1]}}])", range),
            "Range: strides=[] is not supported (supports: [1, 1])");
}

TEST(Support, OneEntryOfSeveralIsEnough) {
  const std::string keys =
      R"("supports": [{"op": "Conv", "dtypes": ["int8"]}, {"op": "Conv", "max_rank": 4}])";
  EXPECT_EQ(refusal_of(keys), "");
  EXPECT_EQ(
      refusal_of(
          R"("supports": [{"op": "Conv", "dtypes": ["int8"]}, {"op": "Conv", "max_rank": 3}])"),
      "Conv: rank 4 is not supported (supports: at most 3)")
      << "the reason of the last entry";
}

TEST(Support, WhatIsLackedIsTakenAway) {
  EXPECT_EQ(refusal_of(R"("lacks": [{"op": "Relu"}])"), "");
  EXPECT_EQ(refusal_of(R"("lacks": [{"op": "Conv"}])"),
            "Conv: the operator is not supported by 'npu'");
  EXPECT_EQ(refusal_of(R"("supports": [{"op": "Conv"}], "lacks": [{"op": "Conv"}])"),
            "Conv: the operator is not supported by 'npu'");
  const std::string keys = R"("lacks": [{"op": "Conv", "dtypes": ["int8"]}])";
  EXPECT_EQ(refusal_of(keys), "");
  EXPECT_EQ(refusal_of(keys, kConv, DType::kInt8), "Conv: int8 is not supported");
  EXPECT_EQ(refusal_of(R"("lacks": [{"op": "Conv", "attr": {"strides": [2, 2]}}])",
                       conv("strides = [2, 2]")),
            "Conv: strides=[2, 2] is not supported");
  EXPECT_EQ(refusal_of(R"("lacks": [{"op": "Conv", "attr": {"strides": [2, 2]}}])"), "");
}

TEST(Support, OnlyAndNodes) {
  EXPECT_EQ(refusal_of(R"("only": ["Conv"])"), "");
  EXPECT_EQ(refusal_of(R"("only": ["Relu", "Add"])"), "Conv: 'npu' supports only Relu, Add");
  EXPECT_EQ(refusal_of(R"("nodes": ["relu", "conv_*"])"), "");
  EXPECT_EQ(refusal_of(R"("nodes": ["con?_1"])"), "");
  EXPECT_EQ(refusal_of(R"("nodes": ["conv", "a*"])"), "Conv: 'npu' takes only the nodes conv, a*");
}

}  // namespace
}  // namespace tessera::backends::simulated
