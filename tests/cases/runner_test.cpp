// The runner on small cases of its own: every judge must be able to say no.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cases/case_file.h"
#include "cases/judges.h"
#include "testing/onnx_builder.h"

namespace tessera::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// y = Relu(x + x), transposed there and back; fp32[2, 3].
std::string small_model(const char* extra_op = nullptr) {
  OnnxModel model(17);
  model.input("x", kFloat, {2, 3});
  model.node("Add", {"x", "x"}, {"s"}, "add");
  if (extra_op != nullptr) model.node(extra_op, {"s"}, {"dead"}, "dead");
  model.node("Relu", {"s"}, {"y"}, "relu");
  model.output("y", kFloat, {2, 3});
  return model.serialize();
}

class Runner : public ::testing::Test {
 protected:
  Runner() {
    folder_.write("c/model.onnx", small_model());
    write_tensors("inputs.npz", "x", {2, 3}, {-1, 0, 1, 2, 3, 4});
    write_tensors("expected.npz", "y", {2, 3}, {0, 0, 2, 4, 6, 8});
    expect_ = {{"run", "ok"}, {"rtol", 0}, {"atol", 0}};
  }

  void write_tensors(const std::string& file, const std::string& name, Dims dims,
                     const std::vector<float>& values) {
    const auto status = io::write_npz(
        folder_ / ("c/" + file),
        {{name, Tensor::of<float>(DType::kFp32, std::move(dims), std::span(values))}});
    ASSERT_TRUE(status) << status.error().to_string();
  }

  // "key: detail" of every verdict that does not hold, or "HELD" before the held ones' keys.
  std::map<std::string, std::string> judge() {
    folder_.write("c/case.json", json{{"id", "C"}, {"kind", "shapes"}, {"expect", expect_}}.dump());
    const auto tested = read_case(folder_ / "c");
    EXPECT_TRUE(tested) << tested.error().to_string();
    std::map<std::string, std::string> details;
    if (!tested) return details;
    for (const Verdict& verdict : judge_case(*tested))
      details[verdict.key] = verdict.outcome == Outcome::kHeld ? "holds" : verdict.detail;
    return details;
  }

  TempDir folder_;
  json expect_;
};

using Details = std::map<std::string, std::string>;

TEST_F(Runner, ACaseThatHolds) {
  EXPECT_EQ(judge(), (Details{{"run", "holds"}, {"values", "holds"}}));
}

TEST_F(Runner, WrongValues) {
  write_tensors("expected.npz", "y", {2, 3}, {0, 0, 2, 4, 6, 9});
  const std::string found = judge().at("values");
  for (const char* way : {"cpu: output 'y'", "reference: output 'y'", "split: output 'y'"})
    EXPECT_THAT(found, HasSubstr(way));
  EXPECT_THAT(found, HasSubstr("the first at 5: expected 9, found 8"));
}

TEST_F(Runner, ErrorsAndTheirWords) {
  folder_.write("c/model.onnx", small_model("Frobnicate"));
  EXPECT_THAT(judge().at("run"), HasSubstr("Frobnicate"));
  expect_ = {{"run", "error"},
             {"error_mentions", {"frobnicate", "nonsense"}},
             {"error_mentions_any", {"nonsense", "rubbish"}},
             {"error_at", "run"}};
  const Details found = judge();
  EXPECT_EQ(found.at("run"), "holds");
  EXPECT_THAT(found.at("error_mentions"), HasSubstr("no 'nonsense' in: "));
  EXPECT_THAT(found.at("error_mentions_any"), HasSubstr("none of 'nonsense', 'rubbish' in: "));
  EXPECT_THAT(found.at("error_at"), HasSubstr("failed at load: "));
  expect_ = {{"run", "ok_or_error"}, {"error_mentions", {"frobnicate", "nonsense"}}};
  const Details either = judge();
  EXPECT_EQ(either.at("run"), "holds");
  EXPECT_THAT(either.at("error_mentions"), HasSubstr("no 'nonsense' in: "));
  folder_.write("c/model.onnx", small_model());
  EXPECT_EQ(judge(), (Details{{"run", "holds"}, {"values", "holds"}})) << "no error, no words";
}

TEST_F(Runner, ThePathOfTheCaseIsNoWordOfTheError) {
  folder_.write("c/model.onnx", small_model("Frobnicate"));
  expect_ = {{"run", "error"}, {"error_mentions", {folder_.path().filename().string()}}};
  EXPECT_THAT(judge().at("error_mentions"), Not("holds"));
}

TEST_F(Runner, AnErrorThatDoesNotCome) {
  expect_ = {{"run", "error"}, {"error_mentions_any", {"x"}}};
  EXPECT_EQ(judge(), (Details{{"run",
                               "cpu: runs, but an error is expected; reference: runs, but an error "
                               "is expected; split: runs, but an error is expected"}}));
}

TEST_F(Runner, StepsAreRunInTurn) {
  write_tensors("inputs_2.npz", "x", {2, 3}, {1, 1, 1, 1, 1, 1});
  write_tensors("expected_2.npz", "y", {2, 3}, {2, 2, 2, 2, 2, 0});
  expect_["steps"] = {{{"inputs", "inputs.npz"}, {"expected", "expected.npz"}},
                      {{"inputs", "inputs_2.npz"}, {"expected", "expected_2.npz"}}};
  expect_["inputs_unchanged"] = true;
  expect_["outputs_of_earlier_runs_unchanged"] = true;
  expect_["outputs_equal_inputs_alias_safe"] = false;
  expect_["memory_after_all_runs_max_ratio_to_largest_run"] = 1.0;
  Details found = judge();
  EXPECT_THAT(found.at("values"), HasSubstr("step 2: output 'y': 1 of 6"));
  found.erase("values");
  for (const auto& [key, detail] : found) EXPECT_EQ(detail, "holds") << key;
  EXPECT_EQ(found.size(), 5U);
}

TEST_F(Runner, FilesAreCopiedBeforeAStep) {
  folder_.write("c/other.onnx", small_model("Exp"));
  OnnxModel other(17);
  other.input("x", kFloat, {2, 3});
  other.node("Neg", {"x"}, {"y"}, "neg");
  other.output("y", kFloat, {2, 3});
  folder_.write("c/other.onnx", other.serialize());
  write_tensors("expected_2.npz", "y", {2, 3}, {1, 0, -1, -2, -3, -4});
  expect_["steps"] = {{{"inputs", "inputs.npz"}, {"expected", "expected.npz"}},
                      {{"inputs", "inputs.npz"}, {"expected", "expected_2.npz"}}};
  expect_["before_step"] = {{"2", {{"copy", {"other.onnx", "model.onnx"}}}}};
  EXPECT_EQ(judge(), (Details{{"run", "holds"}, {"values", "holds"}}));
  EXPECT_EQ(read_bytes(folder_ / "c/model.onnx"), small_model()) << "the case itself stays";
}

TEST_F(Runner, WhatTheGraphHolds) {
  folder_.write("c/model.onnx", small_model("Exp"));
  expect_["absent_nodes_expected"] = {"dead"};
  expect_["absent_ops_expected"] = {"Relu"};
  expect_["fused_ops_expected"] = {"Gelu"};
  expect_["fused_ops_forbidden"] = {"Add"};
  expect_["min_rank_known"] = {{"y", 3}};
  expect_["qdq_groups_intact"] = true;
  const Details found = judge();
  EXPECT_EQ(found.at("absent_nodes_expected"), "holds");
  EXPECT_EQ(found.at("absent_ops_expected"), "Relu is there");
  EXPECT_THAT(found.at("fused_ops_expected"), HasSubstr("no Gelu among "));
  EXPECT_EQ(found.at("fused_ops_forbidden"), "Add is there");
  EXPECT_THAT(found.at("min_rank_known"), HasSubstr("'y' is "));
  EXPECT_EQ(found.at("qdq_groups_intact"), "the model has no quantised groups");
}

TEST_F(Runner, WhatThePlanHolds) {
  OnnxModel model(17);
  model.input("x", kFloat, {2, 3});
  model.node("Transpose", {"x"}, {"t"}, "turn");
  model.node("Concat", {"t", "t"}, {"y"}, "join").integer("axis", 0);
  model.output("y", kFloat, {6, 2});
  folder_.write("c/model.onnx", model.serialize());
  write_tensors("expected.npz", "y", {6, 2}, {-1, 2, 0, 3, 1, 4, -1, 2, 0, 3, 1, 4});
  expect_["max_transposes"] = 0;
  expect_["max_copies"] = 0;
  expect_["max_artifact_bytes"] = 10;
  expect_["report_is_valid_json"] = true;
  expect_["unread_outputs_do_not_overlap_live"] = true;
  const Details found = judge();
  EXPECT_EQ(found.at("values"), "holds");
  EXPECT_EQ(found.at("max_transposes"), "expected at most 0, found 1");
  EXPECT_EQ(found.at("max_copies"), "expected at most 0, found 1");
  EXPECT_THAT(found.at("max_artifact_bytes"), HasSubstr("expected at most 10, found "));
  EXPECT_EQ(found.at("report_is_valid_json"), "holds");
  EXPECT_EQ(found.at("unread_outputs_do_not_overlap_live"), "holds");
}

TEST_F(Runner, Partitions) {
  OnnxModel model(17);  // with an output between the nodes, so that no kernel takes both
  model.input("x", kFloat, {2, 3});
  model.node("Add", {"x", "x"}, {"s"}, "add");
  model.node("Relu", {"s"}, {"y"}, "relu");
  model.output("s", kFloat, {2, 3});
  model.output("y", kFloat, {2, 3});
  folder_.write("c/model.onnx", model.serialize());
  const auto tensor = [](const std::vector<float>& values) {
    return Tensor::of<float>(DType::kFp32, {2, 3}, std::span(values));
  };
  ASSERT_TRUE(io::write_npz(folder_ / "c/expected.npz", {{"s", tensor({-2, 0, 2, 4, 6, 8})},
                                                         {"y", tensor({0, 0, 2, 4, 6, 8})}}));
  expect_["partition"] = {{"devices", {"cpu", {{"name", "accel"}, {"lacks", {{{"op", "Relu"}}}}}}},
                          {"must_be_dag", true},
                          {"max_partitions", 1},
                          {"independent_partitions_min", 2},
                          {"copies_of_value_max", {{"s", 0}}},
                          {"must_place_on_accel", {"add", "relu"}},
                          {"must_not_win_slot", {"add", "relu"}},
                          {"report_mentions", {"relu", "accel", "Relu"}},
                          {"nonstrict_report_mentions", {"tpu"}},
                          {"strict_error_mentions", {"accel", "relu"}},
                          {"artifact_forbidden_ops", {"Rel*"}},
                          {"artifact_reload_on", {"cpu"}},
                          {"loop_body_devices", 1},
                          {"hoisted", {"add"}},
                          {"captures_of_add", {"x"}},
                          {"frobnicate", 1}};
  const Details found = judge();
  const auto of = [&](const std::string& key) { return found.at("partition." + key); };
  EXPECT_EQ(found.at("values"), "holds");
  EXPECT_EQ(of("must_be_dag"), "holds");
  EXPECT_EQ(of("max_partitions"), "holds") << "borders are dear: all of it is on the CPU";
  EXPECT_EQ(of("independent_partitions_min"), "free borders: expected at least 2, found 1");
  EXPECT_EQ(of("copies_of_value_max"), "free borders: 's': expected at most 0, found 1");
  EXPECT_EQ(of("must_place_on_accel"), "free borders: 'relu' is on cpu");
  EXPECT_EQ(of("must_not_win_slot"), "free borders: 'add' is on accel");
  EXPECT_EQ(of("report_mentions"), "holds");
  EXPECT_EQ(of("nonstrict_report_mentions"),
            "free borders: nothing in the report mentions [\"tpu\"]");
  EXPECT_EQ(of("strict_error_mentions"), "holds");
  EXPECT_THAT(of("artifact_forbidden_ops"), HasSubstr("the artefact holds Relu"));
  EXPECT_EQ(of("artifact_reload_on"), "holds");
  EXPECT_EQ(of("loop_body_devices"), "dear borders: the program has no body");
  EXPECT_THAT(of("hoisted"), HasSubstr("the program has no body"));
  EXPECT_EQ(of("captures_of_add"), "expected x, found ");
  EXPECT_EQ(of("frobnicate"), "no judge knows this key");
}

TEST_F(Runner, KeysThatNobodyKnowsOrCanJudge) {
  expect_["max_load_seconds"] = 1;
  expect_["frobnicate"] = true;
  expect_["max_copies"] = nullptr;
  EXPECT_EQ(judge(), (Details{{"run", "holds"},
                              {"values", "holds"},
                              {"max_load_seconds", "no test depends on the time"},
                              {"frobnicate", "no judge knows this key"}}));
}

TEST_F(Runner, FoldersThatAreNoCases) {
  EXPECT_THAT(read_case(folder_.path()).error().to_string(),
              HasSubstr("expected a case folder, found: "));
  EXPECT_THAT(case_folders(folder_ / "nowhere"), IsEmpty());
}

TEST_F(Runner, LinksThatACheckoutFlattened) {
  folder_.write("c/blobs/b1", small_model());
  folder_.write("c/snapshots/model.onnx", "../blobs/b1");
  expect_["model_path"] = "snapshots/model.onnx";
  EXPECT_EQ(judge(), (Details{{"run", "holds"}, {"values", "holds"}}));
}

}  // namespace
}  // namespace tessera::testing
