#include "compiler/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/registry_compile/registry_compile.h"
#include "ir/infer.h"
#include "ir/text.h"

namespace tessera::compiler {
namespace {

constexpr const char* kRelu = R"(input %x : fp32[n, 8, 4, 4] %y = Relu(%x) name "r" output %y)";

// A node on a device, with what that offers for it.
struct Case {
  explicit Case(const std::string& statements = kRelu, const std::string& device = "cpu",
                bool is_late = false) {
    auto parsed = ir::parse(R"(tessera.ir 1 module "m" { symbol "n" in [1, 8] method "main" {)" +
                            statements + " } }");
    EXPECT_TRUE(parsed) << parsed.error().to_string();
    module = *std::move(parsed);
    EXPECT_TRUE(ir::infer(module));
    std::vector<std::unique_ptr<backends::CompileDevice>> devices;
    auto made = backends::make_compile_device(device);
    EXPECT_TRUE(made) << made.error().to_string();
    devices.push_back(*std::move(made));
    target = *plan::make_target(std::move(devices));
    const ir::Graph& graph = module.methods[0].graph;
    item = ir::work_item(module, graph, *graph.nodes().front());
    item.is_late = is_late;
    item.is_loose = is_late;
    offers = target.devices[0]->offers(item, {{"n", 2}}, {});
    EXPECT_FALSE(offers.candidates.empty()) << offers.refusal;
  }
  [[nodiscard]] plan::PriceRequest request() const {
    return {&item, 0, &offers.candidates.front(), {}, {}, {}};
  }
  [[nodiscard]] std::string error(double budget_s, const std::stop_token& cancel) {
    Measurer measurer(target, 1, plan::CacheState::kResident, budget_s, cancel, nullptr);
    const plan::PriceRequest one = request();
    const auto entry = measurer.measure({&one, 1}, {{"n", 2}}).front();
    return entry ? "no error" : entry.error().to_string();
  }

  ir::Module module;
  plan::Target target;
  ir::WorkItem item;
  backends::Offers offers;
};

class InEveryState : public ::testing::TestWithParam<plan::CacheState> {};
INSTANTIATE_TEST_SUITE_P(Measurer, InEveryState,
                         ::testing::Values(plan::CacheState::kResident, plan::CacheState::kShared,
                                           plan::CacheState::kStreamed));

TEST_P(InEveryState, TimesKernelsInTurn) {
  Case work;
  double share = -1;
  Measurer measurer(work.target, 1, GetParam(), 60, {}, [&](double done) { share = done; });
  const std::vector<plan::PriceRequest> requests(2, work.request());
  const auto entries = measurer.measure(requests, {{"n", 2}});
  ASSERT_EQ(entries.size(), 2U);
  for (const auto& entry : entries) {
    ASSERT_TRUE(entry) << entry.error().to_string();
    EXPECT_GT(entry->time_us, 0);
    EXPECT_GE(entry->spread_us, 0);
    EXPECT_GE(entry->samples, 3);
    EXPECT_LE(entry->samples, 25);
    EXPECT_GT(entry->cold_us, 0);
    EXPECT_GT(entry->prepare_us, 0);
  }
  EXPECT_EQ(measurer.measured(), 2U);
  EXPECT_GT(measurer.spent_s(), 0);
  EXPECT_GE(share, 0);
  EXPECT_LE(share, 1);
}

TEST(Measurer, TimesCallsThatMakeMemoryForTheirResults) {
  Case work;
  work.item.is_loose = true;
  Measurer measurer(work.target, 1, plan::CacheState::kResident, 60, {}, nullptr);
  const plan::PriceRequest one = work.request();
  const auto entry = measurer.measure({&one, 1}, {{"n", 2}}).front();
  ASSERT_TRUE(entry) << entry.error().to_string();
  EXPECT_GT(entry->time_us, 0);
  EXPECT_GT(entry->prepare_us, 0);
}

// A kernel that decides sizes runs on what a run gave it, else on drawn data of the sizes that are
// assumed.
TEST(Measurer, TimesKernelsThatDecideSizes) {
  Case work(R"(input %x : fp32[n] input %s : int64[2] %y = Reshape(%x, %s) name "r" output %y)",
            "reference", true);
  const auto& inputs = work.item.inputs;
  const auto entry_with = [&](const std::map<ir::ValueId, RunValue>& operands) {
    Measurer measurer(work.target, 1, plan::CacheState::kResident, 60, {}, nullptr);
    measurer.set_operands(operands);
    const plan::PriceRequest one = work.request();
    const auto entry = measurer.measure({&one, 1}, {{"n", 2}}).front();
    return entry ? std::to_string(entry->time_us > 0) : entry.error().to_string();
  };
  const std::vector<std::int64_t> sizes = {2, 1};
  const RunValue shape = RunValue::of(Tensor::of<std::int64_t>(DType::kInt64, {2}, sizes));
  EXPECT_EQ(entry_with({{inputs[1], shape}}), "1");
  EXPECT_THAT(entry_with({}), ::testing::StartsWith("Reshape: ")) << "to no elements at all";
  work.module.methods[0].graph.value(inputs[0]).type.shape.reset();
  EXPECT_EQ(entry_with({{inputs[1], shape}}), "value 'x': its rank is unknown");
  const std::map<ir::ValueId, Dims> assumed = {{inputs[0], {2}}};
  work.item.assumed = &assumed;
  EXPECT_EQ(entry_with({{inputs[1], shape}}), "1");
}

TEST(Measurer, Declines) {
  Case work;
  EXPECT_EQ(work.error(-1, {}), "the measuring budget of -1 s is used up");
  std::stop_source source;
  source.request_stop();
  EXPECT_EQ(work.error(60, source.get_token()), "stopped while measuring");
}

}  // namespace
}  // namespace tessera::compiler
