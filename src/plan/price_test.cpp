#include "plan/price.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/plan_testing_test.h"

namespace tessera::plan {
namespace {

using ::testing::HasSubstr;

using Entries = std::vector<Result<CostEntry>>;

constexpr const char* kRelu = R"(input %x : fp32[n, 8, 2, 2] %y = Relu(%x) name "r" output %y)";
constexpr const char* kKey =
    "cpu:fake@1|Relu(0,;)|1x8x2x2/nchw/fp32,->1x8x2x2/nchw/"
    "fp32,||threads=2,cache=resident,model=cpu";

// One node on one device whose work is measured.
struct Priced {
  explicit Priced(const std::string& statements = kRelu) : stages(statements, {{"n", 1}}) {
    auto& device = stages.devices.add("cpu");
    device.mutable_info().simulated = false;
    candidate = device.offer("r", 7, {kPlain}, kPlain);
    item = ir::work_item(stages.module, stages.graph(), *stages.graph().nodes().front());
  }
  [[nodiscard]] PriceRequest request() const { return {&item, 0, &candidate, {}, {}, {}}; }
  [[nodiscard]] Pricer pricer() { return {stages.target(), stages.table, 2, stages.point}; }

  Stages stages;
  backends::Candidate candidate;
  ir::WorkItem item;
};

TEST(Pricer, EstimatesWhatTheTableLacksAndNamesIt) {
  Priced priced;
  priced.stages.table.add("cpu:fake@1|Relu(0,;)|1x9x2x2/nchw/fp32", {1, 0, 5});
  Pricer pricer = priced.pricer();
  const Price price = pricer.price(priced.request());
  EXPECT_EQ(price.us, round_price_us(7));
  EXPECT_FALSE(price.measured);
  EXPECT_EQ(price.key, kKey);
  EXPECT_EQ(pricer.hits(), 0U);
  pricer.price(priced.request());
  ASSERT_EQ(pricer.misses().size(), 1U);
  EXPECT_EQ(pricer.misses()[0].key, kKey);
  EXPECT_EQ(pricer.misses()[0].nearest, "cpu:fake@1|Relu(0,;)|1x9x2x2/nchw/fp32");
}

TEST(Pricer, TakesWhatTheTableHas) {
  Priced priced;
  priced.stages.table.add(kKey, {50, 1, 5});
  Pricer pricer = priced.pricer();
  const Price price = pricer.price(priced.request());
  EXPECT_EQ(price.us, round_price_us(50));
  EXPECT_TRUE(price.measured);
  EXPECT_EQ(pricer.hits(), 1U);
  EXPECT_TRUE(pricer.misses().empty());
}

TEST(Pricer, SharesTheLoadAmongTheRunsThatFollowIt) {
  Priced priced;
  CostEntry entry{50, 1, 5};
  entry.prepare_us = 800;
  priced.stages.table.add(kKey, entry);
  Pricer pricer = priced.pricer();
  EXPECT_EQ(pricer.price(priced.request()).load_share_us, 0);
  pricer.set_runs_per_load(100);
  EXPECT_EQ(pricer.price(priced.request()).load_share_us, 8);
  EXPECT_EQ(pricer.price(priced.request()).us, round_price_us(50));
}

// A price that was taken while others used a core counts as missing, once.
TEST(Pricer, MeasuresABusyPriceAnew) {
  Priced priced;
  priced.stages.table.add(kKey, {50, 1, 5, true});
  Pricer pricer = priced.pricer();
  EXPECT_EQ(pricer.price(priced.request()).us, round_price_us(50));
  int measured = 0;
  pricer.set_measure(MeasureMode::kMissing,
                     [&](std::span<const PriceRequest>, const SymbolBindings&) -> Entries {
                       ++measured;
                       return {CostEntry{20, 1, 5, true}};
                     });
  EXPECT_EQ(pricer.price(priced.request()).us, round_price_us(20));
  EXPECT_EQ(pricer.price(priced.request()).us, round_price_us(20));
  EXPECT_EQ(measured, 1);
}

TEST(Pricer, SimulatedDevicesAreNeverLookedUp) {
  Priced priced;
  priced.stages.table.add(kKey, {50, 1, 5});
  dynamic_cast<testing::FakeDevice&>(*priced.stages.target().devices[0]).mutable_info().simulated =
      true;
  Pricer pricer = priced.pricer();
  const Price price = pricer.price(priced.request());
  EXPECT_EQ(price.us, round_price_us(7));
  EXPECT_EQ(price.key, "");
  EXPECT_TRUE(pricer.misses().empty());
}

TEST(Pricer, MeasuresWhatIsMissingOnce) {
  Priced priced;
  int measured = 0;
  const auto measure = [&](std::span<const PriceRequest> requests,
                           const SymbolBindings& point) -> Entries {
    EXPECT_EQ(requests.size(), 1U);
    EXPECT_EQ(requests[0].candidate, &priced.candidate);
    EXPECT_EQ(point.at("n"), 1);
    return {CostEntry{100.0 + measured++, 0, 5}};
  };
  Pricer pricer = priced.pricer();
  pricer.set_measure(MeasureMode::kMissing, measure);
  EXPECT_EQ(pricer.price(priced.request()).us, round_price_us(100));
  EXPECT_EQ(pricer.price(priced.request()).us, round_price_us(100));
  EXPECT_EQ(measured, 1);
  EXPECT_EQ(priced.stages.table.find(kKey)->time_us, 100);
}

TEST(Pricer, MeasuresEverythingAnewOnce) {
  Priced priced;
  priced.stages.table.add(kKey, {50, 1, 5});
  int measured = 0;
  Pricer pricer = priced.pricer();
  pricer.set_measure(MeasureMode::kAll,
                     [&](std::span<const PriceRequest>, const SymbolBindings&) -> Entries {
                       ++measured;
                       return {CostEntry{80, 0, 5}};
                     });
  EXPECT_EQ(pricer.price(priced.request()).us, round_price_us(80));
  EXPECT_EQ(pricer.price(priced.request()).us, round_price_us(80));
  EXPECT_EQ(measured, 1);
  EXPECT_EQ(priced.stages.table.find(kKey)->time_us, 80);
}

TEST(Pricer, ADeclinedMeasurementLeavesTheEstimate) {
  Priced priced;
  int asked = 0;
  Pricer pricer = priced.pricer();
  pricer.set_measure(MeasureMode::kMissing,
                     [&](std::span<const PriceRequest>, const SymbolBindings&) -> Entries {
                       ++asked;
                       return {fail(ErrorCode::kResourceExhausted, "budget")};
                     });
  EXPECT_EQ(pricer.price(priced.request()).us, round_price_us(7));
  EXPECT_EQ(pricer.price(priced.request()).us, round_price_us(7));
  EXPECT_EQ(asked, 1) << "what was declined once is not asked for again";
  EXPECT_EQ(pricer.misses().size(), 1U);
  EXPECT_EQ(priced.stages.table.size(), 0U);
}

// What a budget left over is measured by the next run, and nothing else.
TEST(Pricer, MeasuresTogetherWhatIsWantedAndResumes) {
  Priced priced;
  std::vector<backends::Candidate> candidates(4, priced.candidate);
  for (std::size_t i = 0; i < candidates.size(); ++i)
    candidates[i].options = {{"way", static_cast<std::int64_t>(i)}};
  std::vector<PriceRequest> requests;
  for (const auto& candidate : candidates)
    requests.push_back({&priced.item, 0, &candidate, {}, {}, {}});
  requests.push_back(requests.front());  // twice the same
  requests.push_back(requests.front());
  requests.back().estimate_only = true;
  const auto pass = [&](std::size_t budget) {
    std::vector<std::int64_t> asked;
    Pricer pricer = priced.pricer();
    pricer.set_measure(MeasureMode::kMissing,
                       [&](std::span<const PriceRequest> wanted, const SymbolBindings&) -> Entries {
                         Entries entries;
                         for (const PriceRequest& request : wanted) {
                           asked.push_back(request.candidate->options.at("way"));
                           if (asked.size() > budget)
                             entries.emplace_back(fail(ErrorCode::kResourceExhausted, "budget"));
                           else
                             entries.emplace_back(CostEntry{1, 0, 5});
                         }
                         return entries;
                       });
    pricer.measure(requests);
    for (const auto& request : requests) pricer.price(request);
    return std::pair(asked, pricer.misses().size());
  };
  using Ways = std::vector<std::int64_t>;
  EXPECT_EQ(pass(3), std::pair(Ways({0, 1, 2, 3}), std::size_t{1}));
  EXPECT_EQ(priced.stages.table.size(), 3U);
  EXPECT_EQ(pass(3), std::pair(Ways({3}), std::size_t{0}));
  EXPECT_EQ(pass(3), std::pair(Ways({}), std::size_t{0}));
}

TEST(Pricer, KeepsTheEstimatesOfWhatTheTableKnows) {
  Priced priced;
  priced.stages.table.add(kKey, {50, 1, 5});
  Pricer pricer = priced.pricer();
  pricer.price(priced.request());
  pricer.price(priced.request());
  ASSERT_EQ(pricer.estimates().size(), 1U);
  const auto& [key, estimate] = *pricer.estimates().begin();
  EXPECT_EQ(key, kKey);
  EXPECT_EQ(estimate.kernel, "cpu:fake");
  EXPECT_DOUBLE_EQ(estimate.estimate_us, 7);
  EXPECT_EQ(estimate.entry, (CostEntry{50, 1, 5}));
}

TEST(Pricer, KeysDoNotHoldNames) {
  Priced one;
  Priced other(R"(input %a : fp32[n, 8, 2, 2] %b = Relu(%a) name "r" output %b)");
  EXPECT_EQ(one.pricer().price(one.request()).key, other.pricer().price(other.request()).key);
}

TEST(Pricer, KeysHoldAttributesOptionsFormsAndBakedConstants) {
  Priced priced(R"(input %x : fp32[n, 8, 2, 2] const %w : fp32[1, 1, 1, 1] dense [3]
                   %y = Add(%x, %w) name "r" output %y)");
  priced.candidate.inputs = {kLastHalf, std::nullopt};
  priced.candidate.outputs = {kLast};
  priced.candidate.options = {{"chunk", 4}};
  priced.candidate.kernel_version = 3;
  EXPECT_EQ(priced.pricer().price(priced.request()).key,
            "cpu:fake@3|Add(0,1,;)|1x8x2x2/nhwc/fp16,1x1x1x1/baked/fp32,->1x8x2x2/nhwc/"
            "fp32,|chunk=4,|threads=2,cache=resident,model=cpu");
  Priced softmax(R"(input %x : fp32[n, 8, 2, 2] %y = Softmax(%x) {axis = 1} name "r" output %y)");
  EXPECT_THAT(softmax.pricer().price(softmax.request()).key, HasSubstr("|Softmax(0,;axis=1)|"));
}

TEST(Pricer, KeysHoldTheStateOfTheCaches) {
  Priced priced;
  Pricer pricer(priced.stages.target(), priced.stages.table, 2, priced.stages.point,
                CacheState::kStreamed);
  EXPECT_THAT(pricer.price(priced.request()).key, HasSubstr("|threads=2,cache=streamed,"));
}

TEST(Pricer, MemoryThatTheCallMakesCosts) {
  Priced priced;
  priced.item.is_loose = true;
  const Price price = priced.pricer().price(priced.request());
  EXPECT_EQ(price.us, round_price_us(7 + 1));
  EXPECT_THAT(price.key, HasSubstr("|threads=2,cache=resident,results=own,"));
  Priced simulated;
  simulated.item.is_loose = true;
  dynamic_cast<testing::FakeDevice&>(*simulated.stages.target().devices[0])
      .mutable_info()
      .simulated = true;
  EXPECT_EQ(simulated.pricer().price(simulated.request()).us, round_price_us(7))
      << "its times are those of its profile";
}

// A value whose type tells no rank has the sizes that are assumed of it.
TEST(Pricer, KeysHoldAssumedSizes) {
  Priced priced;
  const std::map<ir::ValueId, Dims> assumed = {{priced.item.outputs[0], {1, 128}}};
  priced.stages.module.methods[0].graph.value(priced.item.outputs[0]).type.shape.reset();
  EXPECT_THAT(priced.pricer().price(priced.request()).key, HasSubstr("->scalar/nchw/fp32,|"));
  priced.item.assumed = &assumed;
  EXPECT_THAT(priced.pricer().price(priced.request()).key, HasSubstr("->1x128/nchw/fp32,|"));
}

TEST(Pricer, KeysOfConversions) {
  Priced priced;
  Pricer pricer = priced.pricer();
  const PriceRequest request{nullptr, 0,     &priced.candidate,
                             kPlain,  kLast, Shape{Dim::symbol("n"), 8, 2, 2}};
  EXPECT_EQ(pricer.price(request).key,
            "cpu:fake@1|convert|1x8x2x2/nchw/fp32->1x8x2x2/nhwc/"
            "fp32||threads=2,cache=resident,model=cpu");
}

TEST(Roofline, TheLargerOfArithmeticAndTraffic) {
  backends::DeviceRates rates;
  rates.gflops = {{DType::kFp32, 100}, {DType::kFp16, 400}};
  rates.default_gflops = 10;
  rates.memory_gb_per_s = 20;
  backends::Candidate candidate;
  candidate.flops = 2e8;
  candidate.bytes_moved = 1e6;
  EXPECT_DOUBLE_EQ(roofline_us(rates, candidate), 2000);
  candidate.efficiency = 0.5;
  EXPECT_DOUBLE_EQ(roofline_us(rates, candidate), 4000);
  candidate.compute_dtype = DType::kFp16;
  EXPECT_DOUBLE_EQ(roofline_us(rates, candidate), 1000);
  candidate.compute_dtype = DType::kInt8;
  EXPECT_DOUBLE_EQ(roofline_us(rates, candidate), 40000);
  candidate.flops = 0;
  EXPECT_DOUBLE_EQ(roofline_us(rates, candidate), 50);
}

TEST(Roofline, TrafficGoesAtTheRateOfTheMemoryThatItFitsIn) {
  backends::DeviceRates rates;
  rates.memory_gb_per_s = 10;
  rates.caches = {{"L1", 1000, 100, 200}, {"L2", 100'000, 50, 80}};
  EXPECT_EQ(bandwidth_gb_per_s(rates, 1000), 100);
  EXPECT_EQ(bandwidth_gb_per_s(rates, 1001), 50);
  EXPECT_EQ(bandwidth_gb_per_s(rates, 100'001), 10);
  backends::Candidate candidate;
  candidate.bytes_moved = 100'000;
  EXPECT_DOUBLE_EQ(roofline_us(rates, candidate), 2);
  rates.hand_over_us = 1.5;
  EXPECT_DOUBLE_EQ(roofline_us(rates, candidate), 3.5);
}

TEST(Transfers, EachEndPaysItsLink) {
  Stages stages(kRelu, {{"n", 1}});
  stages.devices.add("cpu");
  for (const char* name : {"npu", "gpu", "apu"}) {
    auto& rates = stages.devices.add(name, name).mutable_info().rates;
    rates.link_latency_us = 10;
    rates.link_gb_per_s = 8;
    rates.unified = std::string(name) == "apu";
  }
  const Pricer pricer(stages.target(), stages.table, 1, stages.point);
  EXPECT_EQ(pricer.transfer_us(0, 1, 80'000), round_price_us(20));
  EXPECT_EQ(pricer.transfer_us(1, 0, 80'000), round_price_us(20));
  EXPECT_EQ(pricer.transfer_us(1, 2, 80'000), round_price_us(40));
  EXPECT_EQ(pricer.transfer_us(0, 3, 80'000), 0);
}

}  // namespace
}  // namespace tessera::plan
