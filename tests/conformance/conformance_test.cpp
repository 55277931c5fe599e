// Every backend over every case: all that it offers is compiled, loaded, run and compared with the
// reference kernels. What it refuses stands in exclusions.cpp with the reason; an entry that no
// longer holds is a failure too.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "backends/registry_compile/registry_compile.h"
#include "backends/registry_run/registry_run.h"
#include "conformance/cases.h"
#include "testing/backend_testing.h"
#include "testing/shared_data.h"

namespace tessera::testing {
namespace {

struct Way {
  DType precision;
  double tolerance;  // relative to the largest element of the reference
};

// The cpu's fast functions and other orders of summation.
constexpr Way kFp32{DType::kFp32, 2e-5};
// A few roundings to 11 and to 8 bits.
constexpr Way kFp16{DType::kFp16, 4e-3};
constexpr Way kBf16{DType::kBf16, 3e-2};

struct Device {
  std::unique_ptr<backends::CompileDevice> compiler;
  std::unique_ptr<backends::RunDevice> runner;
  std::vector<Way> ways;
};

const std::vector<std::string> kDevices = {"reference", "cpu", "npu", "gpu"};

Device make_device(const std::string& name) {
  const bool simulated = name == "npu" || name == "gpu";
  const std::string entry =
      simulated ? (source_dir() / "profiles" / (name + ".json")).string() : name;
  Device device;
  auto compiler = backends::make_compile_device(entry);
  EXPECT_TRUE(compiler) << compiler.error().to_string();
  device.compiler = *std::move(compiler);
  const backends::DeviceInfo& info = device.compiler->info();
  artefact::DeviceDecl declared;
  declared.name = info.name;
  declared.backend = info.backend;
  declared.profile = info.profile;
  auto runner = backends::make_run_device(declared);
  EXPECT_TRUE(runner) << runner.error().to_string();
  device.runner = *std::move(runner);
  device.ways = {kFp32};
  if (simulated) device.ways = {kFp32, kFp16, kBf16};
  return device;
}

// A rounding of the dtype that the graph itself computes in, where that is small: the reference and
// a kernel may round at other places.
double tolerance_of(const BackendGraph& graph, const Way& way) {
  double tolerance = way.tolerance;
  for (const ir::ValueId id : graph.item().outputs) {
    const DType dtype = graph.graph().value(id).type.dtype;
    if (dtype == DType::kFp16) tolerance = std::max(tolerance, kFp16.tolerance);
    if (dtype == DType::kBf16) tolerance = std::max(tolerance, kBf16.tolerance);
  }
  return tolerance;
}

const Exclusion* exclusion_of(const std::string& device, const std::string& op_case) {
  for (const Exclusion& entry : exclusions()) {
    if (entry.device == device && entry.op_case == op_case) return &entry;
  }
  return nullptr;
}

class Conformance : public ::testing::TestWithParam<std::string> {};

void check_case(Device& device, const OpCase& op_case) {
  const BackendGraph graph(op_case.statements);
  const Exclusion* excluded = exclusion_of(device.compiler->info().name, op_case.name);
  for (const Way& way : device.ways) {
    SCOPED_TRACE(to_string(way.precision));
    const backends::Offers offers = graph.offers(*device.compiler, way.precision);
    if (excluded != nullptr) {
      EXPECT_TRUE(offers.candidates.empty()) << "a stale exclusion: it is offered now";
      EXPECT_THAT(offers.refusal, ::testing::HasSubstr(excluded->reason));
      continue;
    }
    // Some operators are those of fp32 alone.
    if (way.precision != DType::kFp32 &&
        offers.refusal.ends_with("is not supported by the operator"))
      continue;
    EXPECT_FALSE(offers.candidates.empty()) << "refused: " << offers.refusal;
    for (const backends::Candidate& candidate : offers.candidates)
      EXPECT_EQ(
          graph.run_error(*device.compiler, *device.runner, candidate, tolerance_of(graph, way)),
          "")
          << describe(candidate);
    for (const backends::Candidate& candidate : offers.candidates)
      for (const std::size_t input : graph.in_place_inputs(candidate))
        EXPECT_EQ(graph.run_error(*device.compiler, *device.runner, candidate,
                                  tolerance_of(graph, way), 1, input),
                  "")
            << describe(candidate) << " over input " << input;
  }
}

TEST_P(Conformance, WhatIsOfferedComputesWhatTheReferenceDoes) {
  Device device = make_device(GetParam());
  for (const OpCase& op_case : op_cases()) {
    SCOPED_TRACE(op_case.name);
    check_case(device, op_case);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, Conformance, ::testing::ValuesIn(kDevices),
                         [](const auto& device) { return device.param; });

TEST(ConformanceTable, EveryExclusionNamesACaseAndADevice) {
  std::set<std::string> names;
  for (const OpCase& op_case : op_cases())
    EXPECT_TRUE(names.insert(op_case.name).second) << op_case.name << " stands twice";
  for (const Exclusion& entry : exclusions()) {
    EXPECT_TRUE(names.contains(entry.op_case)) << entry.op_case;
    EXPECT_THAT(kDevices, ::testing::Contains(entry.device));
    EXPECT_NE(entry.reason, "");
  }
}

// Control flow runs bodies, which no backend does; CausalConvWithState, Scatter, SequenceMap,
// SimplifiedLayerNormalization, SwiGLU and Upsample are replaced when a model is imported;
// sequences, optionals and strings lie in no buffer, and how many boxes are left only the run
// decides.
TEST(ConformanceTable, EveryOperatorHasACase) {
  const std::set<std::string_view> without = {"CausalConvWithState",
                                              "If",
                                              "Loop",
                                              "Scan",
                                              "Scatter",
                                              "SwiGLU",
                                              "Upsample",
                                              "ConcatFromSequence",
                                              "NonMaxSuppression",
                                              "Optional",
                                              "OptionalGetElement",
                                              "OptionalHasElement",
                                              "RegexFullMatch",
                                              "SequenceAt",
                                              "SequenceConstruct",
                                              "SequenceEmpty",
                                              "SequenceErase",
                                              "SequenceInsert",
                                              "SequenceLength",
                                              "SequenceMap",
                                              "SimplifiedLayerNormalization",
                                              "SplitToSequence",
                                              "StringConcat",
                                              "StringNormalizer",
                                              "StringSplit",
                                              "TfIdfVectorizer"};
  std::set<std::string> tried;
  for (const OpCase& op_case : op_cases()) {
    const BackendGraph graph(op_case.statements);
    for (const auto& node : graph.graph().nodes()) tried.insert(std::string(node->op->name));
  }
  for (const ops::OpSchema& op : ops::all_ops()) {
    if (!op.domain.empty()) continue;
    EXPECT_NE(tried.contains(std::string(op.name)), without.contains(op.name)) << op.name;
  }
}

TEST(ConformanceTable, UnknownDevicesAreNamedWithTheKnownOnes) {
  const auto compiler = backends::make_compile_device("tpu");
  ASSERT_FALSE(compiler);
  EXPECT_EQ(compiler.error().to_string(),
            "no device 'tpu' here: expected cpu, reference or a profile file ending in .json");
  artefact::DeviceDecl declared;
  declared.name = "t";
  declared.backend = "tpu";
  const auto runner = backends::make_run_device(declared);
  ASSERT_FALSE(runner);
  EXPECT_EQ(runner.error().to_string(),
            "device 't' needs the backend 'tpu': this build has cpu, simulated, reference");
}

}  // namespace
}  // namespace tessera::testing
