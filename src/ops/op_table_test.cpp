// The table itself: every schema is sound; running and inferring by schema; attributes.

#include "ops/op_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "testing/op_testing.h"

namespace tessera::ops {
namespace {

using testing::floats;
using testing::int64s;
using testing::op_error;

TEST(OpTable, FindsByDomainAndName) {
  ASSERT_NE(find_op("", "Add"), nullptr);
  EXPECT_EQ(find_op("", "Add"), find_op("ai.onnx", "Add"));
  EXPECT_EQ(find_op("", "NoSuchOp"), nullptr);
  EXPECT_EQ(find_op("com.example", "Add"), nullptr);
  EXPECT_EQ(find_op("", "Add")->qualified_name(), "Add");
}

TEST(OpTable, SchemasAreSound) {
  std::set<std::string> names;
  for (const OpSchema& op : all_ops()) {
    SCOPED_TRACE(op.qualified_name());
    EXPECT_TRUE(names.insert(op.qualified_name()).second);
    EXPECT_NE(op.infer, nullptr);
    ASSERT_FALSE(op.versions.empty());
    EXPECT_TRUE(std::is_sorted(op.versions.begin(), op.versions.end()));
    if (op.domain.empty()) {
      EXPECT_LE(op.versions.back(), kNewestOpset);
    }
    std::set<std::string_view> variables;
    for (const TypeVariable& variable : op.type_variables) {
      EXPECT_TRUE(variables.insert(variable.name).second) << variable.name;
      EXPECT_NE(variable.allowed, 0U) << variable.name;
    }
    const auto check_params = [&](const std::vector<FormalParam>& params) {
      for (std::size_t i = 0; i < params.size(); ++i) {
        EXPECT_TRUE(params[i].type.empty() || variables.count(params[i].type) == 1)
            << params[i].name;
        EXPECT_TRUE(params[i].arity != FormalParam::Arity::kVariadic || i + 1 == params.size())
            << params[i].name;
      }
    };
    check_params(op.inputs);
    check_params(op.outputs);
    for (const std::uint8_t index : op.shape_inputs) EXPECT_LT(index, op.inputs.size());
    for (const std::uint8_t index : op.in_place_inputs) EXPECT_LT(index, op.inputs.size());
    bool gone = false;
    for (const Upgrade& upgrade : op.upgrades) {
      EXPECT_LE(upgrade.from_version, upgrade.to_version);
      EXPECT_NE(upgrade.apply, nullptr);
      EXPECT_TRUE(std::any_of(op.versions.begin(), op.versions.end(),
                              [&](int version) {
                                return version >= upgrade.from_version &&
                                       version <= upgrade.to_version;
                              }))
          << "covers no version: " << upgrade.from_version << " to " << upgrade.to_version;
      gone = gone || op.versions.back() <= upgrade.to_version;
    }
    // Without a kernel: the runtime runs bodies, or every version becomes another operator.
    if (op.kernel == nullptr) {
      EXPECT_TRUE(op.structure == Structure::kControlFlow || gone);
    }
  }
}

TEST(RunReference, ChecksItsInputs) {
  EXPECT_EQ(op_error("Add", {floats({1})}), "input 'B': expected a tensor, found none");
  EXPECT_EQ(op_error("Add", {floats({1}), int64s({1})}), "input 'B': expected fp32, found int64");
  EXPECT_EQ(op_error("Add", {floats({1}), floats({1}), floats({1})}),
            "expected at most 2 inputs, found 3");
  EXPECT_EQ(op_error("Not", {floats({1})}), "input 'X': dtype fp32 is not allowed");
  EXPECT_EQ(op_error("If", {testing::tensor<bool>({}, {true})}), "If has no reference kernel");
}

TEST(RunShape, InfersAtOnePoint) {
  const Tensor x = floats({1, 2, 3, 4});
  const Tensor shape = int64s({2, -1});
  const TensorView x_view{DType::kFp32, {4}, nullptr};
  const TensorView shape_view = shape.view();
  const std::vector<const TensorView*> inputs{&x_view, &shape_view};
  const auto specs = run_shape(testing::schema("Reshape"), {}, inputs, 1);
  ASSERT_TRUE(specs);
  EXPECT_EQ(specs->front().dims, (Dims{2, 2}));
  EXPECT_EQ(specs->front().dtype, DType::kFp32);
}

TEST(RunShape, SaysWhereDataDecides) {
  const Tensor x = floats({1, 0});
  const TensorView view = x.view();
  const std::vector<const TensorView*> inputs{&view};
  const auto specs = run_shape(testing::schema("NonZero"), {}, inputs, 1);
  ASSERT_FALSE(specs);
  EXPECT_EQ(specs.error().to_string(),
            "the size of output 0 depends on elements that are not known: int64[1, nonzero_0]");
}

TEST(WorkOf, CountsBytesAndOneFlopAnElement) {
  const std::vector<TensorSpec> inputs{{DType::kFp32, {2, 3}, true}, {DType::kFp32, {3}, true}};
  const std::vector<TensorSpec> outputs{{DType::kFp32, {2, 3}, true}};
  const Work work = work_of(testing::schema("Add"), {}, inputs, outputs);
  EXPECT_EQ(work.flops, 6);
  EXPECT_EQ(work.bytes_read, 36);
  EXPECT_EQ(work.bytes_written, 24);
}

TEST(Attributes, StaySortedAndPrint) {
  Attributes attributes;
  attributes.set("mode", "a\"b");
  attributes.set("axis", 1);
  attributes.set("alpha", 2.0F);
  attributes.set("pads", std::vector<std::int64_t>{0, 1});
  EXPECT_EQ(attributes.to_string(), R"(alpha=2.0, axis=1, mode="a\"b", pads=[0, 1])");
  attributes.set("axis", 3);
  EXPECT_EQ(attributes.get_int("axis", 0), 3);
  EXPECT_EQ(attributes.get_int("other", 7), 7);
  attributes.erase("mode");
  EXPECT_FALSE(attributes.has("mode"));
  EXPECT_EQ(attributes.get_ints("pads").size(), 2U);
}

TEST(Attributes, CompareBitByBit) {
  Attributes a;
  Attributes b;
  a.set("value", std::numeric_limits<float>::quiet_NaN());
  b.set("value", std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(a.equals(b));
  a.set("value", 0.0F);
  b.set("value", -0.0F);
  EXPECT_FALSE(a.equals(b));
  b.set("value", 0);
  EXPECT_FALSE(a.equals(b)) << "an int is no float";
}

}  // namespace
}  // namespace tessera::ops
