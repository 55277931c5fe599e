// Inference of operators with bodies; a lambda answers for the body.

#include <gtest/gtest.h>

#include "testing/op_testing.h"

namespace tessera::ops {
namespace {

using testing::infer_text;
using testing::known;
using testing::omitted;
using testing::tensor;
using testing::typed;

using Types = std::span<const ValueType>;
using Answer = Result<std::vector<ValueType>>;

ValueType type(std::string_view text) {
  return typed(text).type;
}

TEST(If, GivesWhatBothBranchesAre) {
  const auto branches = [](std::size_t index, Types) -> Answer {
    return std::vector{type(index == 0 ? "fp32[n, 3]" : "fp32[n, 4]")};
  };
  EXPECT_EQ(infer_text("If", {typed("bool[]")}, {}, 1, branches), "fp32[n, _0]");
  EXPECT_EQ(infer_text("If", {known(tensor<bool>({}, {false}))}, {}, 1, branches), "fp32[n, 4]");
}

TEST(If, RefusesBranchesThatDisagree) {
  const auto types = [](std::size_t index, Types) -> Answer {
    return std::vector{type(index == 0 ? "fp32[n]" : "int64[n]")};
  };
  EXPECT_EQ(infer_text("If", {typed("bool[]")}, {}, 1, types),
            "output 0 of body 'else_branch': expected fp32[n], found int64[n]");
  const auto counts = [](std::size_t index, Types) -> Answer {
    return std::vector<ValueType>(index + 1, type("fp32[n]"));
  };
  EXPECT_EQ(infer_text("If", {typed("bool[]")}, {}, 1, counts),
            "body 'else_branch': expected 1 outputs, found 2");
}

TEST(Loop, KeepsSizesThatStayAndFreesThoseThatChange) {
  // v grows by one row in each iteration; its columns stay.
  const auto body = [](std::size_t, Types inputs) -> Answer {
    Shape grown = *inputs[2].shape;
    grown[0] = grown[0] + Dim(1);
    return std::vector{type("bool[]"), ValueType::tensor(DType::kFp32, grown), type("fp32[7]")};
  };
  EXPECT_EQ(infer_text("Loop", {typed("int64[]"), omitted(), typed("fp32[n, 3]")}, {}, 2, body),
            "fp32[_1, 3]; fp32[_2, 7]");
}

TEST(Loop, ForgetsARankThatChanges) {
  const auto body = [](std::size_t, Types inputs) -> Answer {
    if (!inputs[2].shape) return std::vector{type("bool[]"), type("fp32[?]")};
    return std::vector{type("bool[]"), type("fp32[1, 1]")};
  };
  EXPECT_EQ(infer_text("Loop", {typed("int64[]"), omitted(), typed("fp32[1]")}, {}, 1, body),
            "fp32[?]");
}

TEST(Loop, FreesSizesInsideOfSequencesAndOptionals) {
  const auto grows = [](std::size_t, Types inputs) -> Answer {
    Shape grown = *inputs[2].element->shape;
    grown[0] = grown[0] + Dim(1);
    const ValueType tensor = ValueType::tensor(DType::kFp32, grown);
    const bool is_sequence = inputs[2].kind == ValueType::Kind::kSequence;
    return std::vector{type("bool[]"),
                       is_sequence ? ValueType::sequence(tensor) : ValueType::optional(tensor)};
  };
  EXPECT_EQ(
      infer_text("Loop", {typed("int64[]"), omitted(), typed("seq(fp32[2, 3])")}, {}, 1, grows),
      "seq(fp32[_1, 3])");
  EXPECT_EQ(
      infer_text("Loop", {typed("int64[]"), omitted(), typed("opt(fp32[n, 3])")}, {}, 1, grows),
      "opt(fp32[_1, 3])");
  const auto other = [](std::size_t, Types) -> Answer {
    return std::vector{type("bool[]"), type("seq(fp32[5])")};
  };
  EXPECT_EQ(
      infer_text("Loop", {typed("int64[]"), omitted(), typed("seq(fp32[2, 3])")}, {}, 1, other),
      "seq(fp32[?])");
  EXPECT_EQ(infer_text("Loop", {typed("int64[]"), omitted(), typed("fp32[2, 3]")}, {}, 1, other),
            "output 1 of body 'body': expected fp32[2, 3], found seq(fp32[5])");
}

TEST(Loop, CountsTheOutputsOfItsBody) {
  const auto body = [](std::size_t, Types) -> Answer { return std::vector{type("bool[]")}; };
  EXPECT_EQ(infer_text("Loop", {typed("int64[]"), omitted(), typed("fp32[1]")}, {}, 1, body),
            "body 'body': expected at least 2 outputs, found 1");
}

TEST(Loop, GoesOnByATruth) {
  const auto body = [](std::size_t, Types) -> Answer {
    return std::vector{type("int64[]"), type("fp32[1]")};
  };
  EXPECT_EQ(infer_text("Loop", {typed("int64[]"), omitted(), typed("fp32[1]")}, {}, 1, body),
            "output 0 of body 'body': expected a condition of type bool, found int64[]");
}

TEST(Scan, TakesTheScannedAxisOutAndPutsItBack) {
  const auto body = [](std::size_t, Types inputs) -> Answer {
    EXPECT_EQ(inputs[1].to_string(), "fp32[b]");
    return std::vector{inputs[0], inputs[1]};
  };
  const testing::AttributeList list{{"num_scan_inputs", 1},
                                    {"scan_input_axes", testing::Ints{1}},
                                    {"scan_output_axes", testing::Ints{-1}}};
  EXPECT_EQ(infer_text("Scan", {typed("fp32[4]"), typed("fp32[b, t]")}, list, 2, body),
            "fp32[4]; fp32[b, t]");
  EXPECT_EQ(
      infer_text("Scan", {typed("fp32[4]")}, {{"num_scan_inputs", 2}}, 1, body),
      "attribute 'num_scan_inputs': expected a value from 1 to 1, the number of inputs, found 2");
  const auto with = [&](const char* name, testing::Ints values) {
    return infer_text("Scan", {typed("fp32[4]"), typed("fp32[b, t]")},
                      {{"num_scan_inputs", 1}, {name, std::move(values)}}, 2, body);
  };
  EXPECT_EQ(with("scan_input_axes", {0, 0}),
            "attribute 'scan_input_axes': expected 1 values, found 2");
  EXPECT_EQ(with("scan_output_directions", {0, 0, 0}),
            "attribute 'scan_output_directions': expected 1 values, found 3");
  EXPECT_EQ(with("scan_input_directions", {7}),
            "attribute 'scan_input_directions': expected 0 or 1, found 7");
}

}  // namespace
}  // namespace tessera::ops
