// Operators of ai.onnx.ml.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/ml/post_transform.h"
#include "testing/op_testing.h"

namespace tessera::ops {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using testing::floats;
using testing::infer_text;
using testing::int64s;
using testing::Ints;
using testing::op_error;
using ::testing::Pointwise;
using testing::run_op;
using testing::tensor;
using testing::typed;
using testing::values;

using Strings = std::vector<std::string>;
using Floats = std::vector<float>;

std::string ml_name(const char* op) {
  return std::string("ai.onnx.ml::") + op;
}

TEST(LabelEncoder, MapsKeysToValues) {
  const testing::AttributeList names = {{"keys_strings", Strings{"a", "b", "a"}},
                                        {"values_int64s", Ints{1, 2, 3}},
                                        {"default_int64", 42}};
  const Tensor words = tensor<std::string>({2, 2}, {"a", "x", "b", "a"});
  EXPECT_THAT(values<std::int64_t>(run_op(ml_name("LabelEncoder"), {words}, names)),
              ElementsAre(3, 42, 2, 3));
  const testing::AttributeList back = {{"keys_floats", Floats{NAN, 1}},
                                       {"values_strings", Strings{"nan", "one"}}};
  EXPECT_THAT(values<std::string>(run_op(ml_name("LabelEncoder"), {floats({1, NAN, 2})}, back)),
              ElementsAre("one", "nan", "_Unused"));
  const testing::AttributeList dense = {{"keys_tensor", int64s({1, 2})},
                                        {"values_tensor", tensor<std::int16_t>({2}, {10, 20})},
                                        {"default_tensor", tensor<std::int16_t>({1}, {-1})}};
  EXPECT_THAT(values<std::int16_t>(run_op(ml_name("LabelEncoder"), {int64s({2, 3})}, dense)),
              ElementsAre(20, -1));
  EXPECT_EQ(infer_text(ml_name("LabelEncoder"), {typed("string[n]")}, names), "int64[n]");
}

TEST(LabelEncoder, SaysWhatDoesNotFit) {
  EXPECT_EQ(op_error(ml_name("LabelEncoder"), {int64s({1})}, {{"values_int64s", Ints{1}}}),
            "expected exactly one of the attributes 'keys_tensor', 'keys_strings', 'keys_int64s' "
            "and 'keys_floats', found 0");
  EXPECT_EQ(op_error(ml_name("LabelEncoder"), {int64s({1})},
                     {{"keys_int64s", Ints{1, 2}}, {"values_int64s", Ints{1}}}),
            "expected as many values as keys, found 2 keys and 1 values");
  EXPECT_EQ(
      op_error(
          ml_name("LabelEncoder"), {int64s({1})},
          {{"keys_int64s", Ints{1}}, {"values_int64s", Ints{1}}, {"default_tensor", floats({1})}}),
      "attribute 'default_tensor': expected one element of int64");
}

TEST(LabelEncoder, FirstVersionCountsItsClasses) {
  ops::UpgradeNode node;
  node.op_type = "ai.onnx.ml::LabelEncoder";
  node.inputs = {0};
  node.attributes.set("classes_strings", Strings{"a", "b"});
  testing::RecordingBuilder builder;
  builder.types[0] = ValueType::tensor(DType::kString, Shape{2});
  ASSERT_TRUE(testing::upgrade(node, 1, builder));
  EXPECT_EQ(node.attributes.to_string(), R"(keys_strings=["a", "b"], values_int64s=[0, 1])");
  builder.types.clear();
  node.attributes.set("classes_strings", Strings{"a"});
  EXPECT_EQ(testing::upgrade(node, 1, builder).error().to_string(),
            "input 'X': its dtype is not known, and the upgrade of version 1 needs it");
}

TEST(Features, ExtractBinarizeScaleAndImpute) {
  const Tensor rows = tensor<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(values<float>(run_op(ml_name("ArrayFeatureExtractor"), {rows, int64s({2, 0})})),
              ElementsAre(3, 1, 6, 4));
  EXPECT_THAT(values<float>(run_op(ml_name("ArrayFeatureExtractor"), {rows, int64s({-1})})),
              ElementsAre(3, 6));
  EXPECT_EQ(op_error(ml_name("ArrayFeatureExtractor"), {rows, int64s({3})}),
            "ArrayFeatureExtractor: index 3 is out of range for axis 1 of size 3");
  EXPECT_EQ(infer_text(ml_name("ArrayFeatureExtractor"), {typed("fp32[5]"), typed("int64[1, 2]")}),
            "fp32[1, 2]");
  EXPECT_THAT(
      values<float>(run_op(ml_name("Binarizer"), {floats({1, 2, 3})}, {{"threshold", 2.0F}})),
      ElementsAre(0, 0, 1));
  EXPECT_THAT(values<float>(run_op(ml_name("Scaler"), {rows},
                                   {{"offset", Floats{1}}, {"scale", Floats{1, 2, 3}}})),
              ElementsAre(0, 2, 6, 3, 8, 15));
  EXPECT_EQ(op_error(ml_name("Scaler"), {rows}, {{"scale", Floats{1, 2}}}),
            "Scaler: scale: expected 1 or 3 values, found 2");
  EXPECT_THAT(values<float>(
                  run_op(ml_name("Imputer"), {floats({NAN, 2})},
                         {{"imputed_value_floats", Floats{7, 8}}, {"replaced_value_float", NAN}})),
              ElementsAre(7, 2));
  EXPECT_THAT(values<std::int64_t>(
                  run_op(ml_name("Imputer"), {int64s({-1, 2})},
                         {{"imputed_value_int64s", Ints{9}}, {"replaced_value_int64", -1}})),
              ElementsAre(9, 2));
}

TEST(Features, NormalizeEncodeAndJoin) {
  const Tensor rows = tensor<float>({2, 2}, {3, -4, 0, 0});
  const auto normalized = [&](const char* norm) {
    return values<float>(run_op(ml_name("Normalizer"), {rows}, {{"norm", std::string(norm)}}));
  };
  EXPECT_THAT(normalized("L2"), Pointwise(FloatNear(1e-6F), Floats{0.6F, -0.8F, 0, 0}));
  EXPECT_THAT(normalized("L1"), Pointwise(FloatNear(1e-6F), Floats{3 / 7.0F, -4 / 7.0F, 0, 0}));
  EXPECT_THAT(normalized("MAX"), Pointwise(FloatNear(1e-6F), Floats{1, -4 / 3.0F, 0, 0}));
  EXPECT_EQ(infer_text(ml_name("Normalizer"), {typed("fp32[n, 2]")}, {{"norm", "L3"}}),
            "attribute 'norm': expected 'MAX', 'L1' or 'L2', found 'L3'");
  EXPECT_THAT(values<float>(run_op(ml_name("OneHotEncoder"), {floats({2.7F, 5})},
                                   {{"cats_int64s", Ints{1, 2}}})),
              ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(values<float>(run_op(ml_name("OneHotEncoder"), {tensor<std::string>({1}, {"1"})},
                                   {{"cats_int64s", Ints{1, 2}}})),
              ElementsAre(0, 0));
  EXPECT_EQ(op_error(ml_name("OneHotEncoder"), {tensor<std::string>({1}, {"z"})},
                     {{"cats_strings", Strings{"a"}}, {"zeros", 0}}),
            "OneHotEncoder: element 0: expected one of the 1 categories");
  EXPECT_EQ(op_error(ml_name("OneHotEncoder"), {floats({1})}),
            "expected one of the attributes 'cats_strings' and 'cats_int64s', found none");
  EXPECT_THAT(
      values<float>(run_op(ml_name("FeatureVectorizer"), {rows, tensor<float>({2, 1}, {8, 9})})),
      ElementsAre(3, -4, 8, 0, 0, 9));
  EXPECT_EQ(infer_text(ml_name("FeatureVectorizer"), {typed("fp32[n, 2]"), typed("fp32[n, c]")}),
            "fp32[n, c + 2]");
  EXPECT_THAT(
      values<float>(run_op(ml_name("FeatureVectorizer"), {rows, tensor<float>({2, 1}, {8, 9})},
                           {{"inputdimensions", Ints{1, 2}}})),
      ElementsAre(3, 8, 0, 0, 9, 0));
  EXPECT_EQ(infer_text(ml_name("FeatureVectorizer"), {typed("fp32[n, 2]"), typed("fp32[n, c]")},
                       {{"inputdimensions", Ints{1, 3}}}),
            "fp32[n, 4]");
  EXPECT_EQ(infer_text(ml_name("FeatureVectorizer"), {typed("fp32[n, 2]")},
                       {{"inputdimensions", Ints{1, 3}}}),
            "attribute 'inputdimensions': expected 1 values, one of each input, found 2");
  EXPECT_EQ(infer_text(ml_name("FeatureVectorizer"), {typed("fp32[n, 2]")},
                       {{"inputdimensions", Ints{-1}}}),
            "attribute 'inputdimensions': expected 0 or more, found -1");
  EXPECT_EQ(op_error(ml_name("FeatureVectorizer"), {rows, floats({1})}),
            "FeatureVectorizer: expected [2, features], found [1]");
}

// One tree: feature 0 is at most 1.5 (leaf 10 for target 0), or among {3, 4} (leaf 20), else leaf
// 30 for target 1.
testing::AttributeList tree() {
  return {{"nodes_splits", floats({1.5F, 0})},
          {"nodes_modes", tensor<std::uint8_t>({2}, {0, 6})},
          {"nodes_featureids", Ints{0, 0}},
          {"nodes_truenodeids", Ints{0, 1}},
          {"nodes_trueleafs", Ints{1, 1}},
          {"nodes_falsenodeids", Ints{1, 2}},
          {"nodes_falseleafs", Ints{0, 1}},
          {"leaf_targetids", Ints{0, 0, 1}},
          {"leaf_weights", floats({10, 20, 30})},
          {"membership_values", floats({4, 3, NAN})},
          {"n_targets", 2},
          {"tree_roots", Ints{0}}};
}

testing::AttributeList tree_with(const std::string& name, AttributeValue value) {
  auto attributes = tree();
  for (auto& [key, held] : attributes)
    if (key == name) held = value;
  if (std::none_of(attributes.begin(), attributes.end(),
                   [&](const auto& entry) { return entry.first == name; }))
    attributes.emplace_back(name, value);
  return attributes;
}

TEST(TreeEnsemble, WalksToLeaves) {
  const Tensor rows = tensor<float>({4, 1}, {1, 3, 5, NAN});
  EXPECT_THAT(values<float>(run_op(ml_name("TreeEnsemble"), {rows}, tree())),
              ElementsAre(10, 0, 20, 0, 0, 30, 0, 30));
  EXPECT_THAT(values<float>(run_op(ml_name("TreeEnsemble"), {rows},
                                   tree_with("nodes_missing_value_tracks_true", Ints{1, 0}))),
              ElementsAre(10, 0, 20, 0, 0, 30, 10, 0));
  // Two roots: 3 comes to the leaf of 20 from both.
  for (const auto& [fold, expected] :
       {std::pair<std::int64_t, float>{0, 20}, {1, 40}, {2, 20}, {3, 20}}) {
    auto twice = tree_with("tree_roots", Ints{0, 1});
    twice.emplace_back("aggregate_function", fold);
    EXPECT_EQ(
        values<float>(run_op(ml_name("TreeEnsemble"), {tensor<float>({1, 1}, {3})}, twice))[0],
        expected)
        << fold;
  }
  EXPECT_EQ(infer_text(ml_name("TreeEnsemble"), {typed("fp32[n, 1]")}, tree()), "fp32[n, 2]");
}

// The row of NaN goes to the leaf of 10 where it holds.
TEST(TreeEnsemble, NanIsNotEqualToASplit) {
  const Tensor row = tensor<float>({1, 1}, {NAN});
  for (std::uint8_t mode = 0; mode < 6; ++mode) {
    const auto asked = tree_with("nodes_modes", tensor<std::uint8_t>({2}, {mode, 6}));
    EXPECT_EQ(values<float>(run_op(ml_name("TreeEnsemble"), {row}, asked))[0], mode == 5 ? 10 : 0)
        << int{mode};
    auto tracked = asked;
    tracked.emplace_back("nodes_missing_value_tracks_true", Ints{1, 0});
    EXPECT_EQ(values<float>(run_op(ml_name("TreeEnsemble"), {row}, tracked))[0], 10) << int{mode};
  }
}

TEST(TreeEnsemble, ATargetWithoutALeafIsZero) {
  EXPECT_THAT(values<float>(run_op(ml_name("TreeEnsemble"), {tensor<float>({1, 1}, {3})},
                                   tree_with("aggregate_function", std::int64_t{2}))),
              ElementsAre(20, 0));
}

TEST(TreeEnsemble, SaysWhatDoesNotFit) {
  const Tensor row = tensor<float>({1, 1}, {3});
  const auto error = [&](const std::string& name, AttributeValue value) {
    return op_error(ml_name("TreeEnsemble"), {row}, tree_with(name, std::move(value)));
  };
  EXPECT_EQ(error("nodes_featureids", Ints{0}),
            "attribute 'nodes_featureids': expected 2 values, found 1");
  EXPECT_EQ(error("nodes_truenodeids", Ints{0, 9}),
            "attribute 'nodes_truenodeids': expected numbers below 3, found 9");
  EXPECT_EQ(error("leaf_targetids", Ints{0, 0, 2}),
            "attribute 'leaf_targetids': expected numbers from 0 to 1, found 2");
  EXPECT_EQ(error("membership_values", floats({4, 3})),
            "attribute 'membership_values': expected a set of values, with a NaN behind it, for "
            "each node of mode 6, found fewer");
  EXPECT_EQ(error("tree_roots", Ints{2}),
            "attribute 'tree_roots': expected numbers below 2, found 2");
  EXPECT_EQ(error("aggregate_function", std::int64_t{4}),
            "attribute 'aggregate_function': expected a number from 0 to 3, found 4");
  EXPECT_EQ(error("post_transform", std::int64_t{7}),
            "attribute 'post_transform': expected a number from 0 to 4, found 7");
  EXPECT_EQ(error("n_targets", std::int64_t{0}),
            "attribute 'n_targets': expected 1 to 1048576, found 0");
  auto circle = tree_with("nodes_falsenodeids", Ints{1, 1});
  for (auto& [key, held] : circle)
    if (key == "nodes_falseleafs") held = Ints{0, 0};
  EXPECT_EQ(op_error(ml_name("TreeEnsemble"), {tensor<float>({1, 1}, {9})}, circle),
            "TreeEnsemble: the tree of root 0 has nodes in a circle");
  EXPECT_EQ(op_error(ml_name("TreeEnsemble"), {tensor<float>({1, 0}, {})}, tree()),
            "TreeEnsemble: expected rows of 1 features or more, found [1, 0]");
}

TEST(PostTransform, OfEachKind) {
  const auto applied = [](ml::PostTransform transform, std::vector<double> scores) {
    ml::apply(transform, scores);
    return scores;
  };
  EXPECT_EQ(applied(ml::PostTransform::kNone, {1, 2}), (std::vector<double>{1, 2}));
  EXPECT_NEAR(applied(ml::PostTransform::kSoftmax, {0, 1})[1], 0.7310586, 1e-6);
  EXPECT_NEAR(applied(ml::PostTransform::kLogistic, {1})[0], 0.7310586, 1e-6);
  const auto zero = applied(ml::PostTransform::kSoftmaxZero, {0, 1, 1});
  EXPECT_EQ(zero[0], 0);
  EXPECT_NEAR(zero[1], 0.5, 1e-6);
  EXPECT_NEAR(applied(ml::PostTransform::kProbit, {0.975})[0], 1.96, 5e-3);
}

}  // namespace
}  // namespace tessera::ops
