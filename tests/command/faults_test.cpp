// Damaged files, full disks and interrupts: an error with its reason, and nothing half-written.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "command/models.h"
#include "command/run_command.h"
#include "testing/onnx_builder.h"
#include "testing/temp_dir.h"

namespace tessera::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Faults : public ::testing::Test {
 protected:
  Faults() { folder_.write("m.onnx", add_relu_model()); }

  CommandResult run(const std::vector<std::string>& arguments, CommandOptions options = {}) {
    options.folder = folder_.path().string();
    return run_command(arguments, options);
  }
  std::string failure(const std::vector<std::string>& arguments,
                      const CommandOptions& options = {}) {
    const CommandResult result = run(arguments, options);
    EXPECT_EQ(result.exit_code, 1) << result.err;
    return result.err;
  }
  [[nodiscard]] std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      names.insert(entry.path().filename().string());
    return names;
  }
  std::string compiled() {
    EXPECT_EQ(run({"compile", "m.onnx", "-o", "m.tsr", "-q"}).exit_code, 0);
    return read_bytes(folder_ / "m.tsr");
  }

  TempDir folder_;
};

TEST_F(Faults, DamagedArtefacts) {
  const std::string whole = compiled();
  ASSERT_GT(whole.size(), 400U);
  folder_.write("short.tsr", whole.substr(0, 300));
  EXPECT_EQ(failure({"run", "short.tsr", "--random"}),
            "tessera: short.tsr: damaged artefact: expected " + std::to_string(whole.size()) +
                " bytes, found 300\n");
  std::string flipped = whole;
  flipped[200] = static_cast<char>(flipped[200] ^ 1);
  folder_.write("flipped.tsr", flipped);
  EXPECT_EQ(failure({"report", "flipped.tsr"}),
            "tessera: flipped.tsr: damaged artefact: the metadata does not match its hash\n");
}

TEST_F(Faults, DamagedModels) {
  folder_.write("cut.onnx", add_relu_model().substr(0, 40));
  EXPECT_THAT(failure({"compile", "cut.onnx", "-o", "cut.tsr"}),
              StartsWith("tessera: cut.onnx: expected an ONNX model (protobuf), which does not "
                         "parse: "));
  folder_.write("empty.onnx", "");
  EXPECT_THAT(failure({"compile", "empty.onnx", "-o", "cut.tsr"}),
              StartsWith("tessera: empty.onnx: "));
  EXPECT_EQ(files(), (std::set<std::string>{"cut.onnx", "empty.onnx", "m.onnx"}));
}

TEST_F(Faults, ModelsThatNobodyCanCompile) {
  OnnxModel model;
  model.input("x", kFloat, {"n", 1});
  model.input("z", kFloat, {std::int64_t{1} << 40});
  model.node("Add", {"x", "z"}, {"y"}, "sum");
  model.output("y");
  folder_.write("wide.onnx", model.serialize());
  EXPECT_EQ(failure({"compile", "wide.onnx", "-o", "wide.tsr", "--shape", "x=16777216x1"}),
            "tessera: wide.onnx: node 'sum' (Add): value 'y': the number of elements of [16777216, "
            "1099511627776] overflows 63 bits\n");
  EXPECT_EQ(failure({"compile", "wide.onnx", "-o", "wide.tsr", "--shape", "q=1x1"}),
            "tessera: wide.onnx: --shape: no input 'q': expected one of 'x', 'z'\n");
  EXPECT_EQ(files(), (std::set<std::string>{"m.onnx", "wide.onnx"}));
}

TEST_F(Faults, DamagedCostTables) {
  const std::vector<std::string> compile = {"compile", "m.onnx",       "-o",
                                            "m.tsr",   "--cost-table", "c.json"};
  folder_.write("c.json", "not json");
  EXPECT_EQ(failure(compile), "tessera: c.json: not a cost table: expected a JSON object\n");
  folder_.write("c.json", R"({"schema": "tessera.device/1.0"})");
  EXPECT_EQ(failure(compile),
            "tessera: c.json: not a cost table: expected schema tessera.cost_table/1.1, found "
            "\"tessera.device/1.0\"\n");
  folder_.write(
      "c.json",
      R"({"schema": "tessera.cost_table/1.0", "prices": {"k": {"us": -1, "spread_us": 0, "samples": 1}}})");
  EXPECT_EQ(failure(compile),
            "tessera: c.json: price 'k': 'us': expected a number of at least 0, found -1\n");
  EXPECT_EQ(files(), (std::set<std::string>{"c.json", "m.onnx"})) << "no artefact";
}

TEST_F(Faults, AFullDiskLeavesNothing) {
  CommandOptions full;
  full.max_file_bytes = 64;
  EXPECT_EQ(failure({"compile", "m.onnx", "-o", "m.tsr"}, full),
            "tessera: cannot write 'm.tsr': File too large\n");
  EXPECT_EQ(files(), (std::set<std::string>{"m.onnx"}));
  const std::string whole = compiled();
  EXPECT_EQ(failure({"compile", "m.onnx", "-o", "m.tsr"}, full),
            "tessera: cannot write 'm.tsr': File too large\n");
  EXPECT_EQ(read_bytes(folder_ / "m.tsr"), whole) << "the old file stays";
  EXPECT_THAT(failure({"run", "m.tsr", "--random", "--outputs", "o.npz"}, full),
              HasSubstr("cannot write 'o.npz': File too large\n"));
  EXPECT_EQ(failure({"run", "m.tsr", "--random", "--trace", "t.json"}, full),
            "tessera: cannot write 't.json': File too large\n");
  for (const char* format : {"npz", "npy", "pb"})
    EXPECT_THAT(
        failure({"run", "m.tsr", "--random", "--output-dir", "out", "--output-format", format},
                CommandOptions{{}, 8, {}}),
        HasSubstr("File too large"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "out"));
  EXPECT_EQ(failure({"measure", "m.onnx", "--cost-table", "c.json"}, full),
            "tessera: cannot write 'c.json': File too large\n");
  EXPECT_EQ(files(), (std::set<std::string>{"m.onnx", "m.tsr", "out"}));
}

TEST_F(Faults, AFolderIsNoFile) {
  std::filesystem::create_directory(folder_ / "d");
  EXPECT_EQ(failure({"compile", "m.onnx", "-o", "d"}),
            "tessera: cannot write 'd': expected a regular file or a new name\n");
  EXPECT_EQ(failure({"run", "d", "--random"}), "tessera: cannot read 'd': Is a directory\n");
}

TEST_F(Faults, AnInterruptStopsTheWorkAndLeavesNoPart) {
  // Work that lasts whatever the machine: the interrupt comes while it runs.
  CommandOptions interrupted;
  interrupted.interrupt_after_ms = 500;
  EXPECT_THAT(failure({"bench", "m.onnx", "--seconds", "600"}, interrupted), HasSubstr("stopped"));
  EXPECT_EQ(files(), (std::set<std::string>{"m.onnx"}));
}

}  // namespace
}  // namespace tessera::testing
