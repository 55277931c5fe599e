#include "report/trace_file.h"

#include <gtest/gtest.h>

#include "report/report_samples_test.h"

namespace tessera::report {
namespace {

// The boundary example: 0.2 ms on the CPU, 0.6 ms to cross, 0.2 ms on the NPU.
std::vector<TraceSpan> boundary_spans(double region_us, bool simulated) {
  return {{"pad", "compute", "cpu", "cpu.pad", {"Pad_1"}, 0, region_us, region_us, false},
          {"to nhwc", "layout", "cpu", "cpu.reorder", {}, region_us, 20, 20, false},
          {"p", "copy", "npu", "", {}, region_us + 20, 500, 500, false},
          {"conv",
           "compute",
           "npu",
           "conv",
           {"Conv_2", "Relu_3"},
           region_us + 600,
           region_us,
           region_us,
           simulated}};
}

std::string error_of(const std::string& text) {
  const auto trace = parse_chrome_json(text);
  return trace ? "no error" : trace.error().to_string();
}

std::string error_with(const std::string& from, const std::string& to) {
  std::string text = to_chrome_json(boundary_spans(200, true), 1000);
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from << " in " << text;
  if (at == std::string::npos) return {};
  return error_of(text.replace(at, from.size(), to));
}

TEST(TraceFile, ReadsWhatItWrote) {
  const auto spans = boundary_spans(200.125, true);
  const auto read = parse_chrome_json(to_chrome_json(spans, 1234.5));
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->spans, spans);
  EXPECT_EQ(read->total_us, 1234.5);
}

TEST(TraceFile, IsChromesFormatWithAThreadPerDevice) {
  EXPECT_EQ(
      to_chrome_json({{"pad", "compute", "cpu", "cpu.pad", {"Pad_1"}, 1, 2.5, 3, false},
                      {"p", "copy", "npu", "", {}, 4, 5, 6, true}},
                     9),
      R"({"schema":"tessera.trace/1.0","traceEvents":[{"name":"thread_name","ph":"M","pid":1,"tid":1,"args":{"name":"cpu"}},)"
      R"({"name":"pad","cat":"compute","ph":"X","ts":1.0,"dur":2.5,"pid":1,"tid":1,"args":{"device":"cpu","kernel":"cpu.pad",)"
      R"("source_nodes":["Pad_1"],"predicted_us":3.0,"simulated":false}},)"
      R"({"name":"thread_name","ph":"M","pid":1,"tid":2,"args":{"name":"npu"}},)"
      R"({"name":"p","cat":"copy","ph":"X","ts":4.0,"dur":5.0,"pid":1,"tid":2,"args":{"device":"npu","kernel":"",)"
      R"("source_nodes":[],"predicted_us":6.0,"simulated":true}}],"otherData":{"total_us":9.0}})");
}

TEST(TraceFile, RefusesWhatIsNoTrace) {
  EXPECT_EQ(error_of("]"), "not a trace: expected a JSON object");
  EXPECT_EQ(error_of("3"), "not a trace: expected a JSON object");
  EXPECT_EQ(error_of(R"({"schema": 3})"),
            "not a trace: expected schema tessera.trace/1.0, found 3");
  EXPECT_EQ(error_with("trace/1.0", "trace/2.0"),
            "not a trace: expected schema tessera.trace/1.0, found \"tessera.trace/2.0\"");
  EXPECT_EQ(error_with("traceEvents", "events"), "trace: expected a list 'traceEvents'");
}

TEST(TraceFile, NamesEventAndField) {
  EXPECT_EQ(error_with(R"("name":"pad")", R"("name":7)"),
            "trace: event 1: 'name': expected a text, found 7");
  EXPECT_EQ(error_with(R"("cat":"compute",)", ""),
            "trace: event 1: 'cat': expected a text, found nothing");
  EXPECT_EQ(error_with(R"("ts":0.0)", R"("ts":"now")"),
            "trace: event 1: 'ts': expected a number, found \"now\"");
  EXPECT_EQ(error_with(R"("dur":200.0)", R"("dur":[])"),
            "trace: event 1: 'dur': expected a number, found []");
  EXPECT_EQ(error_with(R"("args":{"device":"cpu",)", R"("args":4,"x":{"device":"cpu",)"),
            "trace: event 1: 'args': expected an object");
  EXPECT_EQ(error_with(R"("device":"cpu",)", ""),
            "trace: event 1: 'device': expected a text, found nothing");
  EXPECT_EQ(error_with(R"("source_nodes":["Pad_1"])", R"("source_nodes":"Pad_1")"),
            "trace: event 1: 'source_nodes': expected a list of texts, found \"Pad_1\"");
  EXPECT_EQ(error_with(R"("predicted_us":200.0)", R"("predicted_us":null)"),
            "trace: event 1: 'predicted_us': expected a number, found null");
  EXPECT_EQ(error_with(R"("simulated":false)", R"("simulated":"no")"),
            "trace: event 1: 'simulated': expected true or false, found \"no\"");
  EXPECT_EQ(error_with(R"("total_us":1000.0)", R"("total_us":"1 ms")"),
            "trace: 'otherData.total_us': expected a number, found \"1 ms\"");
}

// On the modelled timeline the terms are the prices, with launches and waits as planned: 0.2 + 0.6
// + 0.2 = 1.0 ms; with both regions halved 0.8 ms, since the boundary stays.
TEST(AddExecution, ModelsTheBoundaryExample) {
  for (const double region_us : {200.0, 100.0}) {
    Report report = small_report();
    add_execution(report, boundary_spans(region_us, true), 123456);
    const Accounting& sum = report.accounting;
    EXPECT_EQ(sum.timeline, "modelled");
    EXPECT_DOUBLE_EQ(sum.compute_us, 2 * region_us);
    EXPECT_DOUBLE_EQ(sum.sync_us, 80);
    EXPECT_DOUBLE_EQ(sum.layout_us, 20);
    EXPECT_DOUBLE_EQ(sum.copy_us, 500);
    EXPECT_DOUBLE_EQ(sum.unaccounted_us, 0);
    EXPECT_DOUBLE_EQ(sum.total_us, 600 + 2 * region_us);
    EXPECT_DOUBLE_EQ(sum.predicted_us, 1000);
  }
}

TEST(AddExecution, AccountsForTheWallClock) {
  Report report = small_report();
  add_execution(report, boundary_spans(200, false), 1000);
  const Accounting& sum = report.accounting;
  EXPECT_EQ(sum.timeline, "wall");
  EXPECT_DOUBLE_EQ(sum.compute_us, 400);
  EXPECT_DOUBLE_EQ(sum.sync_us, 0);
  EXPECT_DOUBLE_EQ(sum.layout_us, 20);
  EXPECT_DOUBLE_EQ(sum.copy_us, 500);
  EXPECT_DOUBLE_EQ(sum.total_us, 1000);
  EXPECT_DOUBLE_EQ(sum.unaccounted_us, 80);
  EXPECT_DOUBLE_EQ(sum.compute_us + sum.sync_us + sum.layout_us + sum.copy_us - sum.overlapped_us +
                       sum.unaccounted_us,
                   sum.total_us);
}

TEST(AddExecution, SaysWhereEachNodeRan) {
  Report report = small_report();
  report.nodes.push_back({});
  report.nodes.back().origins = {"Unknown_9"};
  report.nodes.back().executed = Execution{"cpu", "stale", 1};
  auto spans = boundary_spans(200, true);
  spans.back().duration_us = 7;  // what the host took to model it
  spans.front().duration_us = 210;
  add_execution(report, spans, 1000);
  EXPECT_EQ(report.nodes[0].executed->device, "cpu");
  EXPECT_EQ(report.nodes[0].executed->kernel, "cpu.pad");
  EXPECT_EQ(report.nodes[0].executed->us, 210);
  EXPECT_EQ(report.nodes[1].executed->device, "npu");
  EXPECT_EQ(report.nodes[1].executed->us, 200) << "a simulated device's time is its price";
  EXPECT_FALSE(report.nodes[2].executed) << "a node that no span names was not run";
}

}  // namespace
}  // namespace tessera::report
