#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/report_samples_test.h"

namespace tessera::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ReportText, SaysWhatTheReportHolds) {
  EXPECT_EQ(to_text(small_report(), false, 400),
            R"(model name: m.onnx
device cpu: real, rates measured
device npu: simulated, rates from its profile
assignment: cost 1000.0 us, proven lower bound 990.0 us, gap 1.00 %; greedy by priority 1200.0 us; cpu alone no plan
placements
  node op   device kernel  form      price us           executed us runner-up us          refused by
  pad  Pad  cpu    cpu.pad nchw/fp32 200.0    measured  not run     -                     npu: Pad: mode=reflect is not supported (supports: constant)
  conv Conv npu    conv    nhwc/fp16 200.0    estimated 205.0       350.0 cpu:onednn.conv
regions: 2
  0 on cpu: 1 nodes, compute 200.0 us, launch 0.0 us
  1 on npu (simulated): 1 nodes, compute 200.0 us, launch 20.0 us
crossings: 1
  value from to  bytes form      sync us layout us copy us
  p     cpu  npu 4096  nhwc/fp16 30.0    20.0      500.0
accounting (modelled timeline, us)
  compute 400.0 + sync 80.0 + layout 20.0 + copy 500.0 - overlapped 0.0 + unaccounted 0.0 = 1000.0; predicted 1000.0
memory
  memory arena peak live weights state (bytes)
  host   100   90        80      70
passes
  fold: -2 Transpose +1 Conv
near misses: 1
  conv-bn at conv: two users
prices: 5 from the table, 1 estimated
)");
}

TEST(ReportText, KeepsTablesWithinTheWidth) {
  const std::string text = to_text(small_report(), false, 60);
  EXPECT_THAT(text, Not(HasSubstr("npu: Pad")));
  EXPECT_THAT(text, HasSubstr("\n  conv Conv npu    conv    nhwc/fp16 200.0    estimated 205.\n"));
}

TEST(ReportText, FoldsCoversUnlessVerbose) {
  Report report = small_report();
  NodeEntry relu = report.nodes[1];
  relu.name = "relu";
  relu.op = "Relu";
  report.nodes.push_back(relu);
  EXPECT_THAT(to_text(report, false, 400), HasSubstr("\n  conv Conv+Relu npu "));
  EXPECT_THAT(to_text(report, false, 400), Not(HasSubstr("\n  relu ")));
  EXPECT_THAT(to_text(report, true, 400), HasSubstr("\n  relu Relu npu "));
}

TEST(ReportText, NamesTheSizesThatWereAssumed) {
  Report report = small_report();
  EXPECT_THAT(to_text(report, false, 400), Not(HasSubstr("only the run decides")));
  report.options["assumed.found"] = "3, seen in a run";
  report.options["assumed.h"] = "[1x128], seen in a run";
  EXPECT_THAT(to_text(report, false, 400),
              HasSubstr("sizes that only the run decides, as priced: 2\n"
                        "  found: 3, seen in a run\n  h: [1x128], seen in a run\nplacements\n"));
  for (int i = 0; i < 20; ++i) report.options["assumed.more" + std::to_string(i)] = "16, a guess";
  EXPECT_THAT(to_text(report, false, 400), HasSubstr("  ... and 12 more\nplacements\n"));
  EXPECT_THAT(to_text(report, true, 400), HasSubstr("  more9: 16, a guess\nplacements\n"));
}

TEST(ReportText, SaysWhereThereIsNothing) {
  Report report = small_report();
  report.crossings.clear();
  report.near_misses.assign(7, {"p", {"a", "b"}, "r"});
  const std::string text = to_text(report, false);
  EXPECT_THAT(text, HasSubstr("\ncrossings: none\n"));
  EXPECT_THAT(text, HasSubstr("near misses: 7\n  p at a, b: r\n  p at a, b: r\n  p at a, b: r\n  p "
                              "at a, b: r\n  p at a, b: r\nprices"));
}

TEST(Explain, TellsAllThatIsKnownOfANode) {
  const Report report = small_report();
  const std::string pad = R"(pad (Pad), from Pad_1
  permitted: cpu, npu
  cpu: supported
  npu: refuses: Pad: mode=reflect is not supported (supports: constant)
  selected: cpu cpu.pad nchw/fp32 at 200.00 us (measured)
  runner-up: none
  executed: not run
)";
  const std::string conv = R"(conv (Conv), from Conv_2, Relu_3
  permitted: npu
  npu: supported
  selected: npu conv nhwc/fp16 at 200.00 us (estimated), inside cover 4
  runner-up: cpu onednn.conv nChw8c/fp32 at 350.00 us (measured)
  executed: npu (simulated) conv in 205.0 us
)";
  EXPECT_EQ(explain(report, "pad"), pad);
  EXPECT_EQ(explain(report, "Relu_3"), conv) << "a source node finds the node that computes it";
  EXPECT_EQ(explain(report, "*"), pad + conv);
  EXPECT_EQ(explain(report, "Co?v_*"), conv);
  EXPECT_EQ(explain(report, "Co?v"),
            "no node of the plan matches 'Co?v': it may have been folded away (see passes)\n");
  EXPECT_EQ(explain(report, ""),
            "no node of the plan matches '': it may have been folded away (see passes)\n");
}

TEST(Explain, GlobsOfManyStarsEnd) {
  Report report = small_report();
  report.nodes[0].name = std::string(2000, 'a');
  std::string glob;
  for (int i = 0; i < 40; ++i) glob += "*a";
  EXPECT_THAT(explain(report, glob), HasSubstr("(Pad)"));
  EXPECT_THAT(explain(report, glob + "b"), HasSubstr("no node of the plan matches"));
}

}  // namespace
}  // namespace tessera::report
