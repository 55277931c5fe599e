// Models to artefacts, tensors in and out in every format, and the report of what was done.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command/models.h"
#include "command/run_command.h"
#include "io/npy.h"
#include "io/tensor_proto.h"
#include "testing/temp_dir.h"

namespace tessera::testing {
namespace {

using ::testing::HasSubstr;

class CompileAndRun : public ::testing::Test {
 protected:
  CompileAndRun() {
    folder_.write("m.onnx", add_relu_model());
    must({"compile", "m.onnx", "-o", "m.tsr", "-q"});
    EXPECT_TRUE(io::write_npz(folder_ / "in.npz", add_relu_inputs()));
  }

  CommandResult run(const std::vector<std::string>& arguments) {
    CommandOptions options;
    options.folder = folder_.path().string();
    return run_command(arguments, options);
  }
  CommandResult must(const std::vector<std::string>& arguments) {
    CommandResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result;
  }
  std::string failure(const std::vector<std::string>& arguments) {
    const CommandResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.out, "");
    return result.err;
  }

  TempDir folder_;
};

TEST_F(CompileAndRun, NpzInAndOut) {
  const CommandResult result = must({"run", "m.tsr", "--inputs", "in.npz", "--outputs", "o.npz"});
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("output 'y': fp32[2x4]\ntessera: ran 1 time, median "));
  const auto outputs = io::read_npz(folder_ / "o.npz");
  ASSERT_TRUE(outputs) << outputs.error().to_string();
  ASSERT_EQ(outputs->size(), 1U);
  EXPECT_EQ(outputs->front().first, "y");
  EXPECT_TRUE(outputs->front().second.equals(add_relu_result()));
}

TEST_F(CompileAndRun, NpyAndPbInAndOut) {
  const auto inputs = add_relu_inputs();
  ASSERT_TRUE(io::write_npy(folder_ / "x.npy", inputs[0].second));
  ASSERT_TRUE(io::write_tensor_pb(folder_ / "z.pb", inputs[1].second, "z"));
  for (const char* format : {"npy", "pb"}) {
    must({"run", "m.tsr", "--input", "x=x.npy", "--input", "z=z.pb", "--output-dir", "out",
          "--output-format", format, "-q"});
    const auto file = folder_ / (std::string("out/output_0.") + format);
    const auto output = std::string(format) == "pb" ? io::read_tensor_pb(file) : io::read_npy(file);
    ASSERT_TRUE(output) << output.error().to_string();
    EXPECT_TRUE(output->equals(add_relu_result())) << format;
  }
  must({"run", "m.onnx", "--inputs", "in.npz", "--output-dir", "out", "-q"});
  EXPECT_EQ(io::read_npz(folder_ / "out/outputs.npz")->size(), 1U);
}

TEST_F(CompileAndRun, MapsInAndOut) {
  folder_.write("zip.onnx", zip_map_model());
  must({"compile", "zip.onnx", "-o", "zip.tsr", "-q"});
  ASSERT_TRUE(io::write_npy(folder_ / "x.npy", floats_of({2, 2}, {1, 2, 3, 4})));
  const auto ran = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"run", "zip.tsr", "--input", "x=x.npy"};
    words.insert(words.end(), more.begin(), more.end());
    return must(words);
  };
  EXPECT_THAT(ran({"--output-dir", "out"}).err, HasSubstr("output 'z': a sequence of 2\n"));
  const auto tensors = io::read_npz(folder_ / "out/outputs.npz");
  ASSERT_TRUE(tensors) << tensors.error().to_string();
  ASSERT_EQ(tensors->size(), 4U);
  EXPECT_EQ((*tensors)[2].first, "z.1.keys");
  EXPECT_EQ((*tensors)[3].first, "z.1.values");
  EXPECT_TRUE((*tensors)[3].second.equals(floats_of({2}, {6, 8})));
  ran({"--output-dir", "out", "--output-format", "npy", "-q"});
  EXPECT_TRUE(io::read_npy(folder_ / "out/output_0.0.values.npy")->equals(floats_of({2}, {2, 4})));
  ran({"--output-dir", "out", "--output-format", "pb", "-q"});
  const ValueType type = *parse_value_type("seq(map(string, fp32))");
  const auto value = io::read_value_pb(folder_ / "out/output_0.pb", type);
  ASSERT_TRUE(value) << value.error().to_string();
  EXPECT_EQ(type_mismatch(type, *value), "");
  EXPECT_THAT(must({"run", "zip.onnx", "--random", "--compare", "reference"}).err,
              HasSubstr("output 'z.0.values': largest difference 0 "));

  folder_.write("spread.onnx", vectorizer_model());
  ASSERT_TRUE(io::write_value_pb(folder_ / "m.pb", value->elements[1], *type.element, "m"));
  must({"run", "spread.onnx", "--input", "m=m.pb", "--outputs", "y.npz", "-q"});
  EXPECT_TRUE(io::read_npz(folder_ / "y.npz")->front().second.equals(floats_of({1, 3}, {8, 0, 6})));
  EXPECT_EQ(failure({"run", "spread.onnx", "--input", "m=x.npy"}),
            "tessera: input 'm': expected map(string, fp32), found a tensor\n");
  EXPECT_EQ(failure({"run", "spread.onnx", "--random"}),
            "tessera: input 'm': map(string, fp32) cannot be drawn: give it with --inputs\n");
}

TEST_F(CompileAndRun, ModelsRunWithoutAnArtefact) {
  must({"run", "m.onnx", "--inputs", "in.npz", "--outputs", "a.npz", "-q"});
  must({"run", "m.tsr", "--inputs", "in.npz", "--outputs", "b.npz", "-q"});
  EXPECT_EQ(read_bytes(folder_ / "a.npz"), read_bytes(folder_ / "b.npz"));
}

TEST_F(CompileAndRun, EqualModelsMakeEqualArtefacts) {
  must({"compile", "m.onnx", "-o", "again.tsr", "-q"});
  EXPECT_EQ(read_bytes(folder_ / "m.tsr"), read_bytes(folder_ / "again.tsr"));
  EXPECT_NE(read_bytes(folder_ / "m.tsr"), "");
}

TEST_F(CompileAndRun, ComplexInputsAreDrawn) {
  OnnxModel model;
  model.input("x", onnx::TensorProto::COMPLEX64, {2});
  model.node("Identity", {"x"}, {"y"}, "same");
  model.output("y", onnx::TensorProto::COMPLEX64, {2});
  folder_.write("complex.onnx", model.serialize());
  must({"run", "complex.onnx", "--random", "--outputs", "c.npz", "-q"});
  EXPECT_EQ(io::read_npz(folder_ / "c.npz")->front().second.dtype(), DType::kComplex64);
}

TEST_F(CompileAndRun, DrawnInputsDependOnTheSeed) {
  const auto drawn = [&](const std::string& seed) {
    must({"run", "m.tsr", "--random", "--seed", seed, "--outputs", "r.npz", "-q"});
    return read_bytes(folder_ / "r.npz");
  };
  const std::string first = drawn("1");
  EXPECT_EQ(drawn("1"), first);
  EXPECT_NE(drawn("2"), first);
}

TEST_F(CompileAndRun, InputsOfTheWrongKind) {
  const auto with = [&](const char* name, Tensor x) {
    EXPECT_TRUE(
        io::write_npz(folder_ / "bad.npz",
                      {{name, std::move(x)}, {"z", floats_of({2, 4}, {1, 1, 1, 1, 1, 1, 1, 1})}}));
    return failure({"run", "m.tsr", "--inputs", "bad.npz", "--outputs", "o.npz"});
  };
  EXPECT_EQ(with("x", Tensor::zeros(DType::kFp64, {2, 4}).value()),
            "tessera: input 'x': expected element type fp32, found fp64\n");
  EXPECT_EQ(with("x", Tensor::zeros(DType::kFp32, {4}).value()),
            "tessera: input 'x': expected rank 2 [n, 4], found rank 1 [4]\n");
  EXPECT_EQ(with("x", Tensor::zeros(DType::kFp32, {2, 5}).value()),
            "tessera: input 'x': dimension 1: expected 4, found 5\n");
  EXPECT_EQ(with("x", Tensor::zeros(DType::kFp32, {3, 4}).value()),
            "tessera: input 'z': dimension 0: expected n = 3, found 2\n");
  EXPECT_EQ(with("q", Tensor::zeros(DType::kFp32, {2, 4}).value()),
            "tessera: no input 'q': expected one of 'x', 'z'\n");
  EXPECT_EQ(failure({"run", "m.tsr"}),
            "tessera: input 'x' is missing: give it with --inputs, or draw it with --random\n");
  EXPECT_EQ(failure({"run", "m.tsr", "--inputs", "none.npz"}),
            "tessera: cannot open 'none.npz': No such file or directory\n");
  EXPECT_EQ(failure({"run", "m.tsr", "--inputs", "m.onnx"}),
            "tessera: m.onnx: expected a zip archive, found no directory at its end\n");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "o.npz"));
}

TEST_F(CompileAndRun, EveryElementIsComparedWithTheReference) {
  const CommandResult result =
      must({"run", "m.onnx", "--inputs", "in.npz", "--compare", "reference"});
  EXPECT_THAT(result.err, HasSubstr("output 'y': largest difference 0 (largest element 4), 0 "
                                    "elements outside rtol 0.001, atol 0.0001\n"));
  EXPECT_EQ(failure({"run", "m.tsr", "--random", "--compare", "reference"}),
            "tessera: --compare reference: expected a model; an artefact holds no plan for the "
            "reference\n");
}

TEST_F(CompileAndRun, PlansOfTheArtefact) {
  EXPECT_EQ(failure({"run", "m.tsr", "--random", "--plan", "npu"}),
            "tessera: no plan 'npu' in the artefact: it has main\n");
  folder_.write("npu.json", R"({"schema": "tessera.device/1.0", "name": "npu"})");
  must({"compile", "m.onnx", "-o", "two.tsr", "--devices", "cpu,npu.json", "--pin", "relu=npu",
        "-q"});
  for (const char* plan : {"main", "cpu"}) {
    must({"run", "two.tsr", "--inputs", "in.npz", "--plan", plan, "--outputs", "o.npz", "-q"});
    EXPECT_TRUE(io::read_npz(folder_ / "o.npz")->front().second.equals(add_relu_result())) << plan;
  }
}

TEST_F(CompileAndRun, TheReportSaysWhereAndWhy) {
  const CommandResult report = must({"report", "m.tsr"});
  EXPECT_THAT(report.out, HasSubstr("device cpu: real"));
  EXPECT_THAT(report.out, HasSubstr("crossings: none"));
  EXPECT_THAT(report.out, HasSubstr("not run"));
  EXPECT_THAT(must({"report", "m.tsr", "--why", "relu"}).out, HasSubstr("relu (Relu)"));
  EXPECT_EQ(failure({"report", "m.onnx"}),
            "tessera: m.onnx: not a tessera artefact: expected a file that starts with "
            "'TESSERA'\n");
}

TEST_F(CompileAndRun, ATraceSaysWhatWasExecuted) {
  must({"run", "m.tsr", "--inputs", "in.npz", "--trace", "t.json", "--strict", "-q"});
  EXPECT_FALSE(
      nlohmann::json::parse(read_bytes(folder_ / "t.json"), nullptr, false).is_discarded());
  const auto json = nlohmann::json::parse(
      must({"report", "m.tsr", "--trace", "t.json", "--json"}).out, nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["accounting"]["timeline"], "wall");
  ASSERT_FALSE(json["nodes"].empty());
  EXPECT_EQ(json["nodes"][0]["executed"]["device"], json["nodes"][0]["selected"]["device"]);
  EXPECT_EQ(failure({"report", "m.tsr", "--trace", "m.onnx"}),
            "tessera: m.onnx: not a trace: expected a JSON object\n");
}

TEST_F(CompileAndRun, CostTablesAreWrittenAndRead) {
  const auto measured =
      must({"measure", "m.onnx", "--cost-table", "c.json", "--devices", "cpu"}).err;
  EXPECT_THAT(measured, HasSubstr("tessera: measured "));
  EXPECT_THAT(measured, HasSubstr(" of 30 s; c.json holds "));
  EXPECT_THAT(measured, HasSubstr("; 0 of this model still estimated\n"));
  EXPECT_THAT(measured, HasSubstr("estimate / measured          entries  median   worst"));
  const std::string table = read_bytes(folder_ / "c.json");
  EXPECT_THAT(table, HasSubstr("\"tessera.cost_table/1.1\""));
  EXPECT_THAT(
      must({"compile", "m.onnx", "-o", "p.tsr", "--cost-table", "c.json", "--require-prices"}).err,
      HasSubstr("from the table, 0 estimated"));
  EXPECT_EQ(read_bytes(folder_ / "c.json"), table) << "reading does not write";
}

TEST_F(CompileAndRun, ABudgetThatIsUsedUpLeavesEstimatesForTheNextRun) {
  EXPECT_THAT(must({"measure", "m.onnx", "--cost-table", "b.json", "--measure-seconds", "-1"}).err,
              HasSubstr("tessera: measured 0 prices in 0.0 of -1 s; b.json holds 0; "));
  const auto rest = must({"measure", "m.onnx", "--cost-table", "b.json"}).err;
  EXPECT_THAT(rest, HasSubstr("; 0 of this model still estimated\n"));
  EXPECT_THAT(must({"measure", "m.onnx", "--cost-table", "b.json", "-q"}).err,
              ::testing::IsEmpty());
}

TEST_F(CompileAndRun, RatesAreMeasuredIntoAFileThatDevicesTakes) {
  EXPECT_THAT(must({"measure", "--rates", "cpu.json", "--threads", "1"}).err,
              HasSubstr("tessera: cpu.json holds the rates of 1 threads"));
  EXPECT_THAT(must({"devices", "cpu.json"}).out,
              HasSubstr("cpu: real, memory host, measured rates"));
  EXPECT_THAT(must({"compile", "m.onnx", "-o", "r.tsr", "--devices", "cpu.json"}).err,
              HasSubstr("cpu alone "));
  EXPECT_EQ(failure({"measure"}),
            "tessera: measure: expected a MODEL, or --rates FILE to measure the machine alone\n");
  EXPECT_EQ(failure({"measure", "--rates", "cpu.txt"}),
            "tessera: --rates: expected a file ending in .json, found 'cpu.txt'\n");
}

TEST_F(CompileAndRun, StagesAreDumped) {
  const CommandResult dump = must({"dump", "m.onnx", "--stage", "import"});
  EXPECT_THAT(dump.out, HasSubstr("%y = Relu(%s) : fp32[n, 4] name \"relu\""));
  EXPECT_THAT(must({"dump", "m.onnx", "--stage", "infer"}).out,
              ::testing::Not(HasSubstr("// not known")));
  OnnxModel chosen;
  chosen.input("x", kFloat, {"n"});
  chosen.node("NonZero", {"x"}, {"places"}, "choose");
  chosen.output("places");
  folder_.write("chosen.onnx", chosen.serialize());
  EXPECT_THAT(
      must({"dump", "chosen.onnx", "--stage", "infer"}).out,
      HasSubstr("// not known: node 'choose': value 'places': the size depends on the data\n"));
  const CommandResult inspect = must({"inspect", "m.onnx"});
  EXPECT_THAT(inspect.out, HasSubstr("input 'x' fp32[n, 4]\n"));
  EXPECT_THAT(inspect.out, HasSubstr("operator Relu 1\n"));
}

TEST_F(CompileAndRun, InspectShowsNamesThatTerminalsWouldObey) {
  OnnxModel model;
  const std::string name = "a\nb\x1b[2J\xff";
  set_value(*model.graph().add_input(), name, kFloat, OnnxDims(1000, "n"));
  model.node("Relu", {name}, {"y"}, "r\n");
  model.output("y");
  folder_.write("m.onnx", model.serialize());
  EXPECT_THAT(
      must({"inspect", "m.onnx"}).out,
      HasSubstr("input 'a\\x0ab\\x1b[2J\\xff' fp32[n, n, n, n, n, n, n, n, n, n, n, n, n, n, "
                "n, n, ... (984 more)]\n"));
  const std::string json = must({"inspect", "m.onnx", "--json"}).out;
  EXPECT_THAT(json, HasSubstr(R"("name":"a\nb\u001b[2J)"
                              "\xef\xbf\xbd\""));
  EXPECT_EQ(json.find("more)"), std::string::npos) << "JSON holds all of it";
}

}  // namespace
}  // namespace tessera::testing
