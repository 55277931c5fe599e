// `opt`: the named passes alone, and the graph that they leave.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "command/models.h"
#include "command/run_command.h"
#include "io/npz.h"
#include "ir/text.h"
#include "testing/temp_dir.h"

namespace tessera::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// y = Relu(x * 1 + Neg(w)), fp32[4, 8]; w has 32 elements.
std::string model_with_work() {
  OnnxModel model;
  model.input("x", kFloat, {4, 8});
  model.floats("one", {}, {1});
  model.floats("w", {4, 8}, std::vector<float>(32, 2));
  model.node("Mul", {"x", "one"}, {"m"}, "mul");
  model.node("Neg", {"w"}, {"n"}, "neg");
  model.node("Add", {"m", "n"}, {"s"}, "add");
  model.node("Relu", {"s"}, {"y"}, "relu");
  model.output("y", kFloat, {4, 8});
  return model.serialize();
}

class Opt : public ::testing::Test {
 protected:
  Opt() { folder_.write("m.onnx", model_with_work()); }
  CommandResult run(const std::vector<std::string>& arguments) {
    CommandOptions options;
    options.folder = folder_.path().string();
    std::vector<std::string> words = {"opt"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return run_command(words, options);
  }
  TempDir folder_;
};

TEST_F(Opt, RunsTheNamedPassesAndNoOther) {
  const CommandResult folded = run({"m.onnx", "--passes=fold_constants"});
  EXPECT_EQ(folded.exit_code, 0) << folded.err;
  EXPECT_EQ(folded.err, "tessera: fold_constants: -1 Neg\n");
  EXPECT_THAT(folded.out, Not(HasSubstr("Neg(")));
  EXPECT_THAT(folded.out, HasSubstr("Mul(")) << "the work of another pass";
  const CommandResult both = run({"m.onnx", "--passes", "fold_constants,simplify_algebra"});
  EXPECT_EQ(both.exit_code, 0) << both.err;
  EXPECT_THAT(both.err, HasSubstr("tessera: simplify_algebra: -1 Mul\n"));
  EXPECT_THAT(both.out, Not(HasSubstr("Mul(")));
  const CommandResult none = run({"m.onnx", "--passes=simplify_transpose"});
  EXPECT_EQ(none.err, "tessera: simplify_transpose: changed nothing\n");
  EXPECT_EQ(run({"m.onnx", "--passes=simplify_transpose", "-q"}).err, "");
}

TEST_F(Opt, WhatItWritesParsesBack) {
  const CommandResult result = run({"m.onnx", "--passes=fold_constants", "-o", "out.ir", "-q"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "");
  const auto constants = io::read_npz(folder_ / "out.ir.npz");
  ASSERT_TRUE(constants) << constants.error().to_string();
  const auto module =
      ir::parse(read_bytes(folder_ / "out.ir"), {constants->begin(), constants->end()});
  ASSERT_TRUE(module) << module.error().to_string();
  EXPECT_EQ(module->methods.front().graph.nodes().size(), 3U);
}

TEST_F(Opt, CanonicalTextHasNoNames) {
  const CommandResult result = run({"m.onnx", "--passes=fold_constants", "--canonical", "-q"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("Relu"));
  EXPECT_THAT(result.out, Not(HasSubstr("relu")));
}

TEST_F(Opt, ListNamesThePasses) {
  const CommandResult result = run({"--list"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, StartsWith("fold_constants: constants first"));
  EXPECT_THAT(result.out, HasSubstr("\neliminate_dead_code: "));
}

TEST_F(Opt, WrongWords) {
  const CommandResult unknown = run({"m.onnx", "--passes=fold_constants,fold_everything"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err,
              HasSubstr("no pass is named 'fold_everything' (there are fold_constants, "));
  const CommandResult no_passes = run({"m.onnx"});
  EXPECT_EQ(no_passes.exit_code, 2);
  EXPECT_THAT(no_passes.err, StartsWith("--passes is required"));
  const CommandResult no_model = run({"--passes=fold_constants"});
  EXPECT_EQ(no_model.exit_code, 2);
  EXPECT_THAT(no_model.err, StartsWith("MODEL is required"));
  const CommandResult absent = run({"none.onnx", "--passes=fold_constants"});
  EXPECT_EQ(absent.exit_code, 1);
  EXPECT_EQ(absent.err, "tessera: none.onnx: expected a model file, found none of that name\n");
  EXPECT_EQ(absent.out, "");
}

}  // namespace
}  // namespace tessera::testing
