#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/report_samples_test.h"
#include "testing/random.h"

namespace tessera::report {
namespace {

std::string error_of(const std::string& text) {
  const auto report = from_json(text);
  return report ? "no error" : report.error().to_string();
}

// The JSON of the small report with one occurrence of `from` replaced.
std::string error_with(const std::string& from, const std::string& to) {
  std::string text = to_json(small_report());
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from << " in " << text;
  if (at == std::string::npos) return {};
  return error_of(text.replace(at, from.size(), to));
}

std::string random_text(testing::Random& random) {
  static const std::vector<std::string> texts = {"",           "conv_1",    "a \"b\"",
                                                 "\xc3\xa9\n", "nhwc/fp16", "x"};
  return random.pick(texts);
}

std::vector<std::string> random_texts(testing::Random& random) {
  std::vector<std::string> texts(random.index(3));
  for (auto& text : texts) text = random_text(random);
  return texts;
}

double random_us(testing::Random& random) {
  return random.chance(0.2) ? 0.1 : random.real(0, 1e7);
}

Selection random_selection(testing::Random& random) {
  return {random_text(random), random_text(random), random_text(random),
          random_text(random), random_us(random),   random.chance(0.5)};
}

NodeEntry random_node(testing::Random& random) {
  NodeEntry node{random_text(random),
                 random_text(random),
                 random_texts(random),
                 random_texts(random),
                 {},
                 random_selection(random),
                 {},
                 {},
                 {},
                 random.chance(0.3) ? random_text(random) : ""};
  for (const char* device : {"cpu", "npu"})
    if (random.chance(0.7)) node.supported[device] = random_text(random);
  if (random.chance(0.5)) node.runner_up = random_selection(random);
  if (random.chance(0.5))
    node.executed = Execution{random_text(random), random_text(random), random_us(random)};
  if (random.chance(0.5)) node.cover = static_cast<std::uint32_t>(random.bits());
  return node;
}

Report random_report(testing::Random& random) {
  Report report = small_report();
  report.model[random_text(random)] = random_text(random);
  report.assignment.greedy_us =
      random.chance(0.5) ? std::optional(random_us(random)) : std::nullopt;
  report.assignment.cpu_only_us =
      random.chance(0.5) ? std::optional(random_us(random)) : std::nullopt;
  report.assignment.search_nodes = random.bits();
  for (std::size_t i = random.index(4); i-- > 0;) report.nodes.push_back(random_node(random));
  for (std::size_t i = random.index(3); i-- > 0;)
    report.crossings.push_back({random_text(random), "cpu", "npu", random.integer(0, INT64_MAX),
                                random_us(random), random_us(random), random_us(random),
                                random_text(random)});
  for (std::size_t i = random.index(3); i-- > 0;)
    report.price_misses.push_back({random_text(random), random_text(random)});
  report.price_hits = random.bits();
  return report;
}

TEST(ReportJson, ReadsWhatItWrote) {
  for (const std::uint64_t seed : testing::seeds(300)) {
    SCOPED_TRACE(testing::seed_text(seed));
    testing::Random random(seed);
    const Report report = random_report(random);
    const std::string text = to_json(report);
    EXPECT_EQ(text.find('\n'), std::string::npos);
    const auto read = from_json(text);
    ASSERT_TRUE(read) << read.error().to_string();
    EXPECT_EQ(to_json(*read), text);
    EXPECT_EQ(to_text(*read, true), to_text(report, true));
  }
}

// The names of formats.md, in its order.
TEST(ReportJson, HasTheFieldsOfTheFormat) {
  EXPECT_EQ(
      to_json(small_report()),
      R"({"schema":"tessera.report/1.0","model":{"name":"m.onnx"},"options":{"precision":"fp32"},)"
      R"("devices":[{"name":"cpu","kind":"real","rates":"measured"},{"name":"npu","kind":"simulated","rates":"profile"}],)"
      R"("assignment":{"objective":"sum","cost_us":1000.0,"lower_bound_us":990.0,"gap":0.01,"greedy_us":1200.0,"cpu_only_us":null,)"
      R"("order":"topological","search_nodes":17},)"
      R"("nodes":[{"name":"pad","op":"Pad","origins":["Pad_1"],"permitted":["cpu","npu"],)"
      R"J("supported":{"cpu":true,"npu":{"refused":"Pad: mode=reflect is not supported (supports: constant)"}},)J"
      R"("selected":{"device":"cpu","kernel":"cpu.pad","layout":"nchw","dtype":"fp32","price_us":200.0,"price":"measured"},)"
      R"("runner_up":null,"executed":"not run","cover":null,"body":""},)"
      R"({"name":"conv","op":"Conv","origins":["Conv_2","Relu_3"],"permitted":["npu"],"supported":{"npu":true},)"
      R"("selected":{"device":"npu","kernel":"conv","layout":"nhwc","dtype":"fp16","price_us":200.0,"price":"estimated"},)"
      R"("runner_up":{"device":"cpu","kernel":"onednn.conv","layout":"nChw8c","dtype":"fp32","price_us":350.0,"price":"measured"},)"
      R"("executed":{"device":"npu","kernel":"conv","us":205.0},"cover":4,"body":""}],)"
      R"("regions":[{"id":0,"device":"cpu","nodes":["pad"],"compute_us":200.0,"launch_us":0.0},)"
      R"({"id":1,"device":"npu","nodes":["conv"],"compute_us":200.0,"launch_us":20.0}],)"
      R"("crossings":[{"value":"p","from":"cpu","to":"npu","bytes":4096,"sync_us":30.0,"layout_us":20.0,"copy_us":500.0,"form":"nhwc/fp16"}],)"
      R"("accounting":{"timeline":"modelled","compute_us":400.0,"sync_us":80.0,"layout_us":20.0,"copy_us":500.0,"overlapped_us":0.0,)"
      R"("unaccounted_us":0.0,"total_us":1000.0,"predicted_us":1000.0},)"
      R"("memory":[{"device":"host","arena_bytes":100,"peak_live_bytes":90,"weights_bytes":80,"state_bytes":70,"scratch_bytes":60}],)"
      R"("passes":[{"name":"fold","ms":0.0,"added":{"Conv":1},"removed":{"Transpose":2}}],)"
      R"("near_misses":[{"pattern":"conv-bn","nodes":["conv"],"reason":"two users"}],)"
      R"("prices":{"hits":5,"misses":[{"key":"Conv|1","nearest":"Conv|2"}]}})");
}

TEST(ReportJson, RefusesWhatIsNoReport) {
  EXPECT_EQ(error_of("{"), "not a report: expected a JSON object");
  EXPECT_EQ(error_of("[]"), "not a report: expected a JSON object");
  EXPECT_EQ(error_of("{}"), "not a report: expected schema tessera.report/1.0, found null");
  EXPECT_EQ(error_with("report/1.0", "report/2.0"),
            "not a report: expected schema tessera.report/1.0, found \"tessera.report/2.0\"");
  EXPECT_EQ(error_with("report/1.0", "report/1.9"), "no error")
      << "a later minor version adds fields only";
}

TEST(ReportJson, NamesFieldsOfTheWrongType) {
  EXPECT_EQ(error_with(R"("model":{"name":"m.onnx"})", R"("model":{"name":3})"),
            "report: 'model': expected an object of texts, found {\"name\":3}");
  EXPECT_EQ(error_with(R"("kind":"real")", R"("kind":"virtual")"),
            "report: 'devices[0].kind': expected \"simulated\" or \"real\", found \"virtual\"");
  EXPECT_EQ(error_with(R"("kind":"real")", R"("kind":null)"),
            "report: 'devices[0].kind': expected a text, found null");
  EXPECT_EQ(error_with(R"("rates":"profile")", R"("rates":"guess")"),
            "report: 'devices[1].rates': expected \"measured\" or \"profile\", found \"guess\"");
  EXPECT_EQ(error_with(R"("cost_us":1000.0)", R"("cost_us":true)"),
            "report: 'assignment.cost_us': expected a number, found true");
  EXPECT_EQ(error_with(R"("greedy_us":1200.0)", R"("greedy_us":"no")"),
            "report: 'assignment.greedy_us': expected a number, found \"no\"");
  EXPECT_EQ(error_with(R"("search_nodes":17)", R"("search_nodes":-1)"),
            "report: 'assignment.search_nodes': expected a whole number of at least 0, found -1");
  EXPECT_EQ(error_with(R"("origins":["Pad_1"])", R"("origins":[1])"),
            "report: 'nodes[0].origins': expected a list of texts, found [1]");
  EXPECT_EQ(error_with(R"J({"refused":"Pad: mode=reflect is not supported (supports: constant)"})J",
                       "false"),
            "report: 'nodes[0].supported': expected true or {\"refused\": reason}, found false");
  EXPECT_EQ(error_with(R"("supported":{"npu":true})", R"("supported":[])"),
            "report: 'nodes[1].supported': expected an object, found []");
  EXPECT_EQ(error_with(R"("runner_up":null)", R"("runner_up":5)"),
            "report: 'nodes[0].runner_up': expected an object, found number");
  EXPECT_EQ(error_with(R"("us":205.0)", R"("us":"fast")"),
            "report: 'nodes[1].executed.us': expected a number, found \"fast\"");
  EXPECT_EQ(error_with(R"("cover":4)", R"("cover":5000000000)"),
            "report: 'nodes[1].cover': expected a whole number of at least 0, found 5000000000");
  EXPECT_EQ(error_with(R"("bytes":4096)", R"("bytes":1.5)"),
            "report: 'crossings[0].bytes': expected a whole number, found 1.5");
  EXPECT_EQ(error_with(R"("accounting":{)", R"("accounting":[],"x":{)"),
            "report: 'accounting': expected an object, found array");
  EXPECT_EQ(error_with(R"("added":{"Conv":1})", R"("added":[1])"),
            "report: 'passes[0].added': expected an object of numbers, found [1]");
  EXPECT_EQ(error_with(R"("regions":[)", R"("regions":{},"x":[)"),
            "report: 'regions': expected a list, found object");
  EXPECT_EQ(error_with(R"("regions":[)", R"("regions":[7,)"),
            "report: 'regions[0]': expected an object, found number");
}

TEST(ReportJson, NamesFieldsThatAreMissing) {
  EXPECT_EQ(error_with(R"("op":"Conv",)", ""), "report: 'nodes[1].op': missing");
  EXPECT_EQ(error_with(R"("hits":5,)", ""), "report: 'prices.hits': missing");
  EXPECT_EQ(error_with(R"("timeline":"modelled",)", ""), "report: 'accounting.timeline': missing");
  EXPECT_EQ(error_with(R"("memory":)", R"("memories":)"), "report: 'memory': missing");
}

}  // namespace
}  // namespace tessera::report
