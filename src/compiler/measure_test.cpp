#include "compiler/measure.h"

#include <gtest/gtest.h>

#include "backends/registry_compile/registry_compile.h"
#include "ir/infer.h"
#include "ir/text.h"

namespace tessera::compiler {
namespace {

// A node on the CPU, with what the CPU offers for it.
struct Case {
  Case() {
    auto parsed = ir::parse(R"(tessera.ir 1 module "m" { symbol "n" in [1, 8] method "main" {
                               input %x : fp32[n, 8, 4, 4] %y = Relu(%x) name "r" output %y } })");
    EXPECT_TRUE(parsed) << parsed.error().to_string();
    module = *std::move(parsed);
    EXPECT_TRUE(ir::infer(module));
    std::vector<std::unique_ptr<backends::CompileDevice>> devices;
    auto cpu = backends::make_compile_device("cpu");
    EXPECT_TRUE(cpu) << cpu.error().to_string();
    devices.push_back(*std::move(cpu));
    target = *plan::make_target(std::move(devices));
    const ir::Graph& graph = module.methods[0].graph;
    item = ir::work_item(module, graph, *graph.nodes().front());
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

class InBothStates : public ::testing::TestWithParam<plan::CacheState> {};
INSTANTIATE_TEST_SUITE_P(Measurer, InBothStates,
                         ::testing::Values(plan::CacheState::kResident,
                                           plan::CacheState::kStreamed));

TEST_P(InBothStates, TimesKernelsInTurn) {
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

TEST(Measurer, Declines) {
  Case work;
  EXPECT_EQ(work.error(-1, {}), "the measuring budget of -1 s is used up");
  std::stop_source source;
  source.request_stop();
  EXPECT_EQ(work.error(60, source.get_token()), "stopped while measuring");
}

}  // namespace
}  // namespace tessera::compiler
