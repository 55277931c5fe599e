#include "backends/simulated/compile/simulated_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/simulated/run/simulated_run_device.h"
#include "testing/backend_testing.h"

namespace tessera::backends::simulated {
namespace {

using testing::BackendGraph;
using testing::describe;

constexpr double kFp32Tolerance = 1e-6;
// Inputs are exact in fp16; results are rounded to its 11 bits, relative to the largest.
constexpr double kFp16Tolerance = 1e-3;

constexpr const char* kConv =
    "input %x : fp32[1, 3, 8, 8] const %w : fp32[2, 3, 1, 1] dense [1, -2, 0.5, 0.25, 3, -1] "
    "%y = Conv(%x, %w) {pads = [1, 0, 0, 1]} name \"conv_1\" output %y";

std::unique_ptr<CompileDevice> device_of(const std::string& keys) {
  auto device =
      make_simulated_device_from_text(R"({"schema": "tessera.device/1.0", "name": "npu")" +
                                      (keys.empty() ? "" : ", " + keys) + "}");
  EXPECT_TRUE(device) << device.error().to_string();
  return *std::move(device);
}

std::unique_ptr<RunDevice> runner() {
  artefact::DeviceDecl declared;
  declared.name = "npu";
  declared.backend = "simulated";
  return *make_simulated_run_device(declared);
}

std::vector<std::string> described(const Offers& offers) {
  std::vector<std::string> list;
  for (const Candidate& candidate : offers.candidates) list.push_back(describe(candidate));
  return list;
}

TEST(SimulatedDevice, SaysWhatItIs) {
  const auto device = device_of(R"("max_partitions": 2, "link": {"gb_per_s": 3})");
  EXPECT_EQ(device->info().name, "npu");
  EXPECT_EQ(device->info().backend, "simulated");
  EXPECT_EQ(device->info().memory, "npu");
  EXPECT_TRUE(device->info().simulated);
  EXPECT_FALSE(device->info().rates_measured);
  EXPECT_EQ(device->info().max_partitions, 2);
  EXPECT_EQ(device->info().rates.link_gb_per_s, 3);
  EXPECT_NE(device->identity().at("profile"), device_of("")->identity().at("profile"))
      << "prices of another profile are other prices";
}

TEST(SimulatedDevice, OffersTheLayoutsOfItsProfileInOrder) {
  const BackendGraph graph(kConv);
  EXPECT_THAT(described(graph.offers(*device_of(""))),
              ::testing::ElementsAre("simulated nchw/fp32 baked -> nchw/fp32"));
  EXPECT_THAT(described(graph.offers(*device_of(R"("layouts": ["nhwc", "nchw", "nChw4c"])"))),
              ::testing::ElementsAre("simulated nhwc/fp32 baked -> nhwc/fp32",
                                     "simulated nchw/fp32 baked -> nchw/fp32",
                                     "simulated nChw4c/fp32 baked -> nChw4c/fp32"));
}

TEST(SimulatedDevice, ALayoutIsTakenToOtherRanks) {
  const auto device = device_of(R"("layouts": ["nhwc"])");
  EXPECT_THAT(
      described(BackendGraph("input %x : fp32[1, 2, 5] %y = Relu(%x) output %y").offers(*device)),
      ::testing::ElementsAre("simulated nwc/fp32 -> nwc/fp32"));
  EXPECT_THAT(
      described(BackendGraph("input %x : fp32[2, 5] %y = Relu(%x) output %y").offers(*device)),
      ::testing::ElementsAre("simulated nchw/fp32 -> nchw/fp32"))
      << "row-major where there are no spatial dims";
}

TEST(SimulatedDevice, LayoutsThatMakeNoDifferenceAreOneCandidate) {
  const auto device = device_of(R"("layouts": ["nhwc", "nchw"])");
  const BackendGraph graph("input %x : fp32[2, 5] %y = Relu(%x) output %y");
  EXPECT_EQ(graph.offers(*device).candidates.size(), 1U);
}

TEST(SimulatedDevice, PrecisionHalvesTheTraffic) {
  const auto device = device_of("");
  const BackendGraph graph(kConv);
  OfferOptions options;
  options.precisions = {DType::kFp32, DType::kFp16};
  const Offers offers = device->offers(graph.item(), {}, options);
  ASSERT_EQ(offers.candidates.size(), 2U);
  EXPECT_EQ(describe(offers.candidates[1]), "simulated nchw/fp16 baked -> nchw/fp16");
  EXPECT_EQ(offers.candidates[0].compute_dtype, DType::kFp32);
  EXPECT_EQ(offers.candidates[1].compute_dtype, DType::kFp16);
  EXPECT_EQ(offers.candidates[0].flops, 2.0 * 2 * 9 * 9 * 3);
  EXPECT_EQ(offers.candidates[1].flops, offers.candidates[0].flops);
  EXPECT_EQ(offers.candidates[1].bytes_moved, offers.candidates[0].bytes_moved / 2);
}

TEST(SimulatedDevice, APrecisionThatItLacksIsLeftOut) {
  const auto device = device_of(R"("supports": [{"op": "Conv", "dtypes": ["fp16"]}])");
  const BackendGraph graph(kConv);
  OfferOptions options;
  options.precisions = {DType::kFp32, DType::kFp16};
  const Offers offers = device->offers(graph.item(), {}, options);
  ASSERT_EQ(offers.candidates.size(), 1U);
  EXPECT_EQ(offers.candidates[0].compute_dtype, DType::kFp16);
  EXPECT_EQ(offers.refusal, "") << "an offer is no refusal";
  EXPECT_EQ(graph.offers(*device).refusal, "Conv: fp32 is not supported (supports: fp16)");
}

TEST(SimulatedDevice, APrecisionThatTheOperatorDoesNotTakeIsRefused) {
  const BackendGraph graph(
      "input %x : fp32[2, 5] %y, %s, %z = DynamicQuantizeLinear(%x) output %y output %s output %z");
  const Offers offers = graph.offers(*device_of(""), DType::kFp16);
  EXPECT_TRUE(offers.candidates.empty());
  EXPECT_EQ(offers.refusal,
            "DynamicQuantizeLinear: input 'x': fp16 is not supported by the operator");
}

TEST(SimulatedDevice, APrecisionThatChangesTheWidthOfABitCastIsRefused) {
  const BackendGraph graph(
      "input %x : fp32[2, 5] %t = Neg(%x) %y = BitCast(%t) {to = 6} output %y");
  EXPECT_EQ(graph.offers(*device_of("")).refusal, "");
  const Offers offers = graph.offers(*device_of(""), DType::kFp16);
  EXPECT_TRUE(offers.candidates.empty());
  EXPECT_EQ(offers.refusal,
            "BitCast: attribute 'to': expected a dtype of 16 bits as fp16 has, found int32 of 32");
}

TEST(SimulatedDevice, PackedFloatsHaveLayoutsToo) {
  const auto device = device_of(R"("layouts": ["nhwc"])");
  const BackendGraph graph(
      "input %x : fp32[1, 3, 1, 3] %t = Cast(%x) {to = 23} %y = Identity(%t) output %y");
  const Offers offers = graph.offers(*device);
  ASSERT_EQ(offers.candidates.size(), 1U) << offers.refusal;
  EXPECT_EQ(describe(offers.candidates[0]), "simulated nhwc/fp32 -> nhwc/fp4_e2m1");
  EXPECT_EQ(graph.run_error(*device, *runner(), offers.candidates[0], kFp32Tolerance), "");
}

TEST(SimulatedDevice, ResultsHaveTheDtypeThatTheOperatorGives) {
  const auto described = [](const std::string& statements) {
    const auto offers = BackendGraph(statements).offers(*device_of(""), DType::kFp16);
    return offers.candidates.empty() ? offers.refusal : describe(offers.candidates[0]);
  };
  EXPECT_EQ(described("%y = Constant() {value = tensor fp32[1] dense [1]} output %y"),
            "simulated -> nchw/fp32");
  EXPECT_EQ(described("input %x : fp32[2, 3] %y = EyeLike(%x) output %y"),
            "simulated nchw/fp16 -> nchw/fp16");
  EXPECT_EQ(described("input %x : fp32[2, 3] %y = EyeLike(%x) {dtype = 1} output %y"),
            "simulated nchw/fp16 -> nchw/fp32");
}

TEST(SimulatedDevice, RefusesWhatNoBackendRuns) {
  const auto device = device_of("");
  const BackendGraph graph("input %x : fp32[2, 5] %y = NonZero(%x) output %y");
  const Offers offers = graph.offers(*device);
  EXPECT_TRUE(offers.candidates.empty());
  EXPECT_EQ(offers.refusal, "NonZero: the sizes of its outputs depend on data");
}

TEST(SimulatedDevice, ACoverIsRefusedForTheNodeThatIsLacked) {
  const auto device = device_of(R"("lacks": [{"op": "Relu"}])");
  const BackendGraph graph(
      "input %x : fp32[1, 2, 4, 4] %t = Neg(%x) %y = Relu(%t) name \"r\" output %y");
  EXPECT_EQ(graph.offers(*device).refusal, "Relu: the operator is not supported by 'npu'");
}

TEST(SimulatedDevice, ItsCompilerMayFailForANode) {
  const auto device = device_of(R"("mock": {"compile_fails_for": ["conv_1"]})");
  const BackendGraph graph(kConv);
  const Offers offers = graph.offers(*device);
  ASSERT_FALSE(offers.candidates.empty()) << "it offers, and fails only then";
  const auto kernel = device->compile(graph.item(), offers.candidates[0]);
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(kernel.error().to_string(),
            "node 'conv_1': the compiler of 'npu' failed (mock: compile_fails_for)");
}

class SimulatedNumbers : public ::testing::TestWithParam<const char*> {};

TEST_P(SimulatedNumbers, EveryLayoutAndPrecisionAgreesWithTheReference) {
  const auto device = device_of(R"("layouts": ["nhwc", "nchw", "nChw4c"])");
  const auto run_device = runner();
  const BackendGraph graph(GetParam());
  for (const auto& [precision, tolerance] :
       {std::pair{DType::kFp32, kFp32Tolerance}, std::pair{DType::kFp16, kFp16Tolerance},
        std::pair{DType::kBf16, 8 * kFp16Tolerance}}) {
    const Offers offers = graph.offers(*device, precision);
    EXPECT_FALSE(offers.candidates.empty()) << offers.refusal;
    for (const Candidate& candidate : offers.candidates)
      EXPECT_EQ(graph.run_error(*device, *run_device, candidate, tolerance), "")
          << describe(candidate);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Graphs, SimulatedNumbers,
    ::testing::Values(
        kConv,
        "input %x : fp32[1, 3, 8, 8] input %w : fp32[6, 3, 3, 3] const %b : fp32[6] dense "
        "[1, 2, 3, 4, 5, 6] %t = Conv(%x, %w, %b) {strides = [2, 2]} %y = Relu(%t) output %y",
        "input %x : fp32[n, 5, 4, 4] input %z : fp32[n, 5, 4, 4] %y = Add(%x, %z) output %y",
        "input %c : bool[2, 3] input %x : fp32[2, 3] input %z : fp32[2, 3] "
        "%y = Where(%c, %x, %z) output %y",
        "input %x : fp32[2, 3] %y = Cast(%x) {to = 7} output %y",
        "input %x : fp32[1, 2, 4, 4] const %s : fp32[4] dense "
        "[1, 1, 2, 2] %y = Resize(%x, _, %s) {mode = \"nearest\"} output %y"));

// Turns drawn values from one form to another on the device; what comes out, row-major and fp32.
Result<Tensor> converted(const TensorForm& from, const TensorForm& to, const Tensor& values) {
  const auto device = device_of("");
  const auto run_device = runner();
  const Shape shape = to_shape(values.dims());
  const Offers offers = device->conversion(from, to, shape, {});
  if (offers.candidates.empty()) return fail(ErrorCode::kUnimplemented, offers.refusal);
  TESSERA_ASSIGN(const auto compiled,
                 device->compile_conversion(from, to, shape, offers.candidates[0]));
  TESSERA_ASSIGN(const auto kernel, run_device->load(compiled.spec, {}));
  TESSERA_ASSIGN(const auto instance, kernel->instantiate({{values.dims()}, {values.dims()}}, 1));
  const Tensor cast = testing::cast_to(values, from.dtype);
  std::vector<std::byte> source(
      static_cast<std::size_t>(layout_nbytes(from.layout, from.dtype, values.dims())));
  std::vector<std::byte> target(
      static_cast<std::size_t>(layout_nbytes(to.layout, to.dtype, values.dims())));
  convert_layout({}, cast.data(), from.layout, source.data(), from.dtype, values.dims());
  const std::byte* input = source.data();
  std::byte* output = target.data();
  TESSERA_TRY(instance->execute({{&input, 1}, {&output, 1}, nullptr, nullptr}));
  TESSERA_ASSIGN(Tensor result, Tensor::zeros(to.dtype, values.dims()));
  convert_layout(to.layout, target.data(), {}, result.mutable_data(), to.dtype, values.dims());
  return testing::cast_to(result, DType::kFp32);
}

TEST(SimulatedDevice, ConvertsBetweenForms) {
  testing::Random random(3);
  const Dims dims = {2, 5, 3, 4};
  const Tensor values =
      testing::drawn_tensor(ValueType::tensor(DType::kFp32, to_shape(dims)), dims, random);
  const std::vector<Layout> layouts = {Layout::row_major(), Layout::channels_last(4),
                                       Layout::channel_blocked(4, 4)};
  for (const Layout& from : layouts) {
    for (const Layout& to : layouts) {
      for (const DType dtype : {DType::kFp32, DType::kFp16}) {
        const auto result = converted({from, dtype}, {to, DType::kFp32}, values);
        ASSERT_TRUE(result) << result.error().to_string();
        EXPECT_TRUE(result->equals(values)) << from.to_string() << " to " << to.to_string();
      }
    }
  }
}

TEST(SimulatedDevice, AConversionIsPricedByItsBytes) {
  const Offers offers =
      device_of("")->conversion({Layout::row_major(), DType::kFp32},
                                {Layout::channel_blocked(4, 8), DType::kFp16}, {1, 3, 2, 2}, {});
  ASSERT_EQ(offers.candidates.size(), 1U);
  EXPECT_EQ(offers.candidates[0].bytes_moved, 3 * 4 * 4 + 8 * 4 * 2) << "padding included";
}

TEST(SimulatedDevice, IntegersAreNotTurnedToFloats) {
  const Offers offers = device_of("")->conversion({{}, DType::kInt64}, {{}, DType::kFp32}, {2}, {});
  EXPECT_TRUE(offers.candidates.empty());
  EXPECT_EQ(offers.refusal, "no conversion from int64 to fp32");
}

// A quantised convolution as a cover.
constexpr const char* kQuantised =
    "input %x : int8[1, 3, 8, 8] const %s : fp32[] dense [0.5] const %w : int8[2, 3, 1, 1] dense "
    "[1, -2, 5, 2, 3, -1] %dx = DequantizeLinear(%x, %s) %dw = DequantizeLinear(%w, %s) "
    "%c = Conv(%dx, %dw) %y = QuantizeLinear(%c, %s) output %y";

TEST(SimulatedDevice, QuantisedGroupsAreComputedInInt8) {
  const BackendGraph graph(kQuantised, "qdq");
  const auto offers = graph.offers(*device_of(
      R"("supports": [{"op": "Conv", "dtypes": ["fp32", "int8"]}], "layouts": ["nhwc"])"));
  ASSERT_EQ(offers.candidates.size(), 1U) << offers.refusal;
  EXPECT_EQ(offers.candidates[0].compute_dtype, DType::kInt8);
  EXPECT_EQ(graph.run_error(*device_of(R"("layouts": ["nhwc"])"), *runner(), offers.candidates[0],
                            kFp32Tolerance),
            "");
  EXPECT_EQ(graph.offers(*device_of(R"("supports": [{"op": "Conv", "dtypes": ["fp32", "fp16"]}])"))
                .refusal,
            "Conv: int8 is not supported (supports: fp32, fp16)");
}

}  // namespace
}  // namespace tessera::backends::simulated
