// Exit codes: 0 done, 1 the work failed, 2 usage; answers on standard output, messages on standard
// error.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command/models.h"
#include "command/run_command.h"
#include "testing/temp_dir.h"

namespace tessera::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class Usage : public ::testing::Test {
 protected:
  Usage() { folder_.write("m.onnx", add_relu_model()); }

  CommandResult run(const std::vector<std::string>& arguments) {
    CommandOptions options;
    options.folder = folder_.path().string();
    return run_command(arguments, options);
  }
  // Standard error of a call that must end with `code` and answer nothing.
  std::string complaint(const std::vector<std::string>& arguments, int code) {
    const CommandResult result = run(arguments);
    EXPECT_EQ(result.exit_code, code) << result.err;
    EXPECT_EQ(result.out, "");
    return result.err;
  }

  TempDir folder_;
};

bool is_one_line_of_json(const std::string& text) {
  return text.find('\n') == text.size() - 1 &&
         !nlohmann::json::parse(text, nullptr, false).is_discarded();
}

TEST_F(Usage, VersionAndHelpAreAnswers) {
  const CommandResult version = run({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_EQ(version.out, "tessera " TESSERA_VERSION "\n");
  EXPECT_EQ(version.err, "");
  const CommandResult help = run({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const char* command : {"inspect", "compile", "run", "bench", "report", "plan", "dump", "opt",
                              "measure", "devices", "solve", "allocate"})
    EXPECT_THAT(help.out, HasSubstr(command));
  EXPECT_EQ(run({"compile", "--help"}).exit_code, 0);
}

TEST_F(Usage, WordsThatAreMissingOrUnknown) {
  EXPECT_THAT(complaint({}, 2), StartsWith("A subcommand is required"));
  EXPECT_EQ(complaint({"frobnicate"}, 2),
            "tessera: no command 'frobnicate': expected one of inspect, compile, run, bench, "
            "report, plan, dump, opt, measure, devices, solve, allocate\n");
  EXPECT_THAT(complaint({"compile"}, 2), StartsWith("MODEL is required"));
  EXPECT_THAT(complaint({"compile", "m.onnx"}, 2), StartsWith("--output is required"));
  EXPECT_THAT(complaint({"run", "m.onnx", "--frob"}, 2), HasSubstr("--frob"));
}

TEST_F(Usage, ValuesOfTheWrongForm) {
  const auto of = [&](const std::string& option, const std::string& value) {
    const std::string text = complaint({"compile", "m.onnx", "-o", "m.tsr", option, value}, 2);
    EXPECT_THAT(text, HasSubstr("\nRun with --help for more information.\n"));
    return text.substr(0, text.find('\n'));
  };
  EXPECT_EQ(of("--threads", "-1"), "--threads: expected at least 1, found -1");
  EXPECT_EQ(of("--precision", "fp31"), "--precision: expected fp32, bf16 or fp16, found 'fp31'");
  EXPECT_EQ(of("--measure", "some"), "--measure: expected off, missing or all, found 'some'");
  EXPECT_EQ(of("--shape", "x"), "--shape: expected NAME=1x3x640x640, found 'x'");
  EXPECT_EQ(of("--shape", "x=2xb"), "--shape x=2xb: expected a number of at least 0, found 'b'");
  EXPECT_EQ(of("--range", "n=3"), "--range: expected SYMBOL=1..8, found 'n=3'");
  EXPECT_EQ(of("--range", "n=8..1"), "--range: expected SYMBOL=1..8, found 'n=8..1'");
  EXPECT_EQ(of("--state", "past"), "--state: expected PAST=PRESENT, found 'past'");
  EXPECT_EQ(of("--permit", "cpu"), "--permit: expected DEVICE=GLOB, found 'cpu'");
  EXPECT_EQ(of("--forbid", "cpu="), "--forbid: expected DEVICE=GLOB, found 'cpu='");
  EXPECT_EQ(of("--pin", "=cpu"), "--pin: expected GLOB=DEVICE, found '=cpu'");
  EXPECT_EQ(of("--stop-after", "lunch"),
            "no stage 'lunch': expected one of import, infer, simplify, fuse, enumerate, price, "
            "assign, legalize, schedule, allocate, emit");
  EXPECT_THAT(complaint({"dump", "m.onnx", "--stage", "lunch"}, 2),
              HasSubstr("no stage 'lunch': expected one of import, infer"));
  EXPECT_THAT(complaint({"run", "m.onnx", "--random", "--output-format", "txt"}, 2),
              HasSubstr("txt not in {npz,npy,pb}"));
  EXPECT_THAT(complaint({"run", "m.onnx", "--random", "--compare", "cpu"}, 2),
              HasSubstr("cpu not in {reference}"));
  EXPECT_THAT(complaint({"run", "m.onnx", "--random", "--repeat", "0"}, 2), HasSubstr("--repeat"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "m.tsr"));
}

TEST_F(Usage, WorkThatFails) {
  EXPECT_EQ(complaint({"inspect", "none.onnx"}, 1),
            "tessera: none.onnx: expected a model file, found none of that name\n");
  EXPECT_EQ(complaint({"compile", "m.onnx", "-o", "m.tsr", "--devices", "tpu"}, 1),
            "tessera: no device 'tpu' here: expected cpu, reference or a profile file ending in "
            ".json\n");
  EXPECT_EQ(complaint({"compile", "m.onnx", "-o", "nowhere/m.tsr"}, 1).substr(0, 52),
            "tessera: cannot write 'nowhere/m.tsr': No such file ");
  EXPECT_EQ(complaint({"compile", "m.onnx", "-o", "m.tsr", "--shape", "q=2x4"}, 1),
            "tessera: m.onnx: --shape: no input 'q': expected one of 'x', 'z'\n");
  EXPECT_EQ(complaint({"compile", "m.onnx", "-o", "m.tsr", "--pin", "conv=cpu"}, 1),
            "tessera: m.onnx: pin cpu=conv: no node of the model matches 'conv'\n");
  EXPECT_EQ(complaint({"measure", "m.onnx"}, 1),
            "tessera: measure: expected --cost-table FILE to write to\n");
  EXPECT_EQ(complaint({"solve", "m.onnx"}, 1), "tessera: m.onnx: not JSON, at byte 1\n");
  EXPECT_THAT(complaint({"compile", "m.onnx", "-o", "m.tsr", "--require-prices"}, 1),
              HasSubstr("prices are not in the cost table; the first is cpu:"));
}

TEST_F(Usage, JsonIsOneLine) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"inspect", "m.onnx", "--json"},
                                             {"devices", "--json"},
                                             {"plan", "m.onnx", "--json"},
                                             {"compile", "m.onnx", "-o", "m.tsr", "--json"},
                                             {"report", "m.tsr", "--json"},
                                             {"run", "m.tsr", "--random", "--json"},
                                             {"bench", "m.tsr", "--seconds", "0", "--json"}}) {
    const CommandResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 0) << arguments[0] << ": " << result.err;
    EXPECT_TRUE(is_one_line_of_json(result.out)) << arguments[0] << ": " << result.out;
  }
}

TEST_F(Usage, BenchGivesItsFigures) {
  const auto json = nlohmann::json::parse(run({"bench", "m.onnx", "--seconds", "0", "--json"}).out,
                                          nullptr, false);
  ASSERT_TRUE(json.is_object());
  for (const char* key : {"us", "p99_us", "load_ms", "first_ms", "rss_mib"})
    EXPECT_GT(json.value(key, 0.0), 0) << key;
  EXPECT_EQ(json.value("runs", 0), 5) << "the fewest";
}

TEST_F(Usage, QuietSaysNothing) {
  const CommandResult result = run({"compile", "m.onnx", "-o", "m.tsr", "-q"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, "");
}

TEST_F(Usage, MessagesOfWorkDoneGoToStandardError) {
  const CommandResult result = run({"compile", "m.onnx", "-o", "m.tsr"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("tessera: compiled m.onnx in "));
  EXPECT_THAT(result.err, HasSubstr("prices: 0 from the table, "));
}

TEST_F(Usage, DevicesWithAProfile) {
  folder_.write("small.json",
                R"({"schema": "tessera.device/1.0", "name": "small", "memory_gb_per_s": 4})");
  const CommandResult result = run({"devices", "small.json"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("cpu: real, memory host"));
  EXPECT_THAT(result.out, HasSubstr("small: simulated, memory small, stated rates\n"));
  EXPECT_THAT(result.out, HasSubstr("memory: 4 GB/s; launch 20 us, sync 20 us\n"));
  folder_.write("bad.json", "{}");
  EXPECT_EQ(complaint({"devices", "bad.json"}, 1),
            "tessera: bad.json: 'schema': expected tessera.device/1.0, found null\n");
}

}  // namespace
}  // namespace tessera::testing
