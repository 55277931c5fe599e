// TreeEnsembleClassifier and TreeEnsembleRegressor. Numbers behind a transform are ONNX Runtime's.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "testing/op_testing.h"

namespace tessera::ops {
namespace {

using ::testing::ElementsAre;
using testing::floats;
using testing::infer_text;
using testing::Ints;
using testing::near;
using testing::op_error;
using testing::run_all;
using testing::run_op;
using testing::tensor;
using testing::typed;
using testing::values;

using Strings = std::vector<std::string>;
using Floats = std::vector<float>;
using testing::AttributeList;

constexpr const char* kClassifier = "ai.onnx.ml::TreeEnsembleClassifier";
constexpr const char* kRegressor = "ai.onnx.ml::TreeEnsembleRegressor";

AttributeList with(AttributeList attributes, const std::string& name, AttributeValue value) {
  for (auto& [key, held] : attributes) {
    if (key != name) continue;
    held = std::move(value);
    return attributes;
  }
  attributes.emplace_back(name, std::move(value));
  return attributes;
}

// One node that asks whether feature 0 is at most 0.5, and two leaves.
AttributeList stump() {
  return {
      {"nodes_treeids", Ints{0, 0, 0}},     {"nodes_nodeids", Ints{0, 1, 2}},
      {"nodes_featureids", Ints{0, 0, 0}},  {"nodes_modes", Strings{"BRANCH_LEQ", "LEAF", "LEAF"}},
      {"nodes_values", Floats{0.5F, 0, 0}}, {"nodes_truenodeids", Ints{1, 0, 0}},
      {"nodes_falsenodeids", Ints{2, 0, 0}}};
}

struct Weight {
  std::int64_t node, target;
  float weight;
};

AttributeList with_weights(AttributeList list, const std::string& kind,
                           const std::vector<Weight>& weights) {
  Ints trees, nodes, ids;
  Floats reals;
  for (const Weight& weight : weights) {
    trees.push_back(0);
    nodes.push_back(weight.node);
    ids.push_back(weight.target);
    reals.push_back(weight.weight);
  }
  list.emplace_back(kind + "_treeids", trees);
  list.emplace_back(kind + "_nodeids", nodes);
  list.emplace_back(kind + "_ids", ids);
  list.emplace_back(kind + "_weights", reals);
  return list;
}

AttributeList classes(const std::vector<Weight>& weights, const Ints& labels,
                      const std::string& transform = "NONE") {
  return with(with(with_weights(stump(), "class", weights), "classlabels_int64s", labels),
              "post_transform", transform);
}

AttributeList targets(const std::vector<Weight>& weights) {
  return with_weights(stump(), "target", weights);
}

const Tensor& rows() {
  static const Tensor tensor = testing::tensor<float>({2, 1}, {0.3F, 0.7F});
  return tensor;
}

struct Classified {
  std::vector<std::int64_t> labels;
  std::vector<float> scores;
};

Classified classify(const AttributeList& attributes) {
  const auto outputs = run_all(kClassifier, {rows()}, attributes, 2);
  return {values<std::int64_t>(outputs[0]), values<float>(outputs[1])};
}

TEST(TreeEnsembleRegressor, AddsUpTheLeavesOfTrees) {
  AttributeList two = targets({{1, 0, 10}, {2, 0, 20}});
  EXPECT_THAT(values<float>(run_op(kRegressor, {rows()}, two)), ElementsAre(10, 20));
  EXPECT_THAT(values<float>(run_op(kRegressor, {rows()}, with(two, "base_values", Floats{0.5F}))),
              ElementsAre(10.5F, 20.5F));
  // A second tree of one leaf, which says 30.
  two = with(two, "nodes_treeids", Ints{0, 0, 0, 7});
  two = with(two, "nodes_nodeids", Ints{0, 1, 2, 5});
  two = with(two, "nodes_featureids", Ints{0, 0, 0, 0});
  two = with(two, "nodes_modes", Strings{"BRANCH_LEQ", "LEAF", "LEAF", "LEAF"});
  two = with(two, "nodes_values", Floats{0.5F, 0, 0, 0});
  two = with(two, "nodes_truenodeids", Ints{1, 0, 0, 0});
  two = with(two, "nodes_falsenodeids", Ints{2, 0, 0, 0});
  two = with(two, "target_treeids", Ints{0, 0, 7});
  two = with(two, "target_nodeids", Ints{1, 2, 5});
  two = with(two, "target_ids", Ints{0, 0, 0});
  two = with(two, "target_weights", Floats{10, 20, 30});
  const auto folded = [&](const char* fold) {
    return values<float>(
        run_op(kRegressor, {rows()}, with(two, "aggregate_function", std::string(fold))));
  };
  EXPECT_THAT(folded("SUM"), ElementsAre(40, 50));
  EXPECT_THAT(folded("AVERAGE"), ElementsAre(20, 25));
  EXPECT_THAT(folded("MIN"), ElementsAre(10, 20));
  EXPECT_THAT(folded("MAX"), ElementsAre(30, 30));
  EXPECT_EQ(infer_text(kRegressor, {typed("int64[n, 4]")}, two), "fp32[n, 1]");
}

TEST(TreeEnsembleRegressor, AsksInEveryMode) {
  const Tensor row = tensor<float>({4, 1}, {0.25F, 0.5F, 0.75F, NAN});
  const AttributeList yes_or_no = targets({{1, 0, 1}, {2, 0, 0}});
  const auto answers = [&](const char* mode, const Ints& missing = {0, 0, 0}) {
    auto list = with(yes_or_no, "nodes_modes", Strings{mode, "LEAF", "LEAF"});
    list = with(std::move(list), "nodes_missing_value_tracks_true", missing);
    return values<float>(run_op(kRegressor, {row}, list));
  };
  EXPECT_THAT(answers("BRANCH_LEQ"), ElementsAre(1, 1, 0, 0));
  EXPECT_THAT(answers("BRANCH_LT"), ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(answers("BRANCH_GTE"), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(answers("BRANCH_GT"), ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(answers("BRANCH_EQ"), ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(answers("BRANCH_NEQ"), ElementsAre(1, 0, 1, 1));
  EXPECT_THAT(answers("BRANCH_LEQ", {1, 0, 0}), ElementsAre(1, 1, 0, 1));
}

// Version 3 has tensors of doubles in the place of the lists: 0.1 lies below the double 0.1 + 2^-40
// and not below its fp32.
TEST(TreeEnsembleRegressor, ReadsTensorsOfDoubles) {
  AttributeList wide = targets({{1, 0, 1}, {2, 0, 2}});
  std::erase_if(wide, [](const auto& entry) {
    return entry.first == "nodes_values" || entry.first == "target_weights";
  });
  const double split = 0.1 + std::ldexp(1.0, -40);
  wide.emplace_back("nodes_values_as_tensor", tensor<double>({3}, {split, 0, 0}));
  wide.emplace_back("target_weights_as_tensor", tensor<double>({2}, {1, 2}));
  const Tensor row = tensor<double>({2, 1}, {0.1, std::nextafter(split, 1.0)});
  EXPECT_THAT(values<float>(run_op(kRegressor, {row}, wide)), ElementsAre(1, 2));
}

TEST(TreeEnsembleClassifier, OfManyClassesTheHighestScore) {
  const std::vector<Weight> three = {{1, 0, 0.7F}, {1, 1, 0.2F}, {1, 2, 0.1F}, {2, 2, 0.8F}};
  Classified found = classify(classes(three, {1, 2, 3}));
  EXPECT_THAT(found.labels, ElementsAre(1, 3));
  EXPECT_THAT(found.scores, ElementsAre(0.7F, 0.2F, 0.1F, 0, 0, 0.8F));
  EXPECT_THAT(classify(classes(three, {1, 2, 3}, "LOGISTIC")).scores,
              near({0.66819F, 0.54983F, 0.52498F, 0.5F, 0.5F, 0.68997F}));
  EXPECT_THAT(classify(classes(three, {1, 2, 3}, "SOFTMAX")).scores,
              near({0.46396F, 0.28141F, 0.25463F, 0.23666F, 0.23666F, 0.52669F}));
  EXPECT_THAT(classify(classes(three, {1, 2, 3}, "SOFTMAX_ZERO")).scores,
              near({0.46396F, 0.28141F, 0.25463F, 0, 0, 1}));
  const std::vector<Weight> negative = {{1, 0, -0.7F}, {1, 1, -0.2F}, {2, 2, -0.8F}};
  EXPECT_THAT(classify(classes(negative, {1, 2, 3})).labels, ElementsAre(2, 3));
  found = classify(with(classes(negative, {1, 2, 3}), "base_values", Floats{0.1F, 0.2F, 0.3F}));
  EXPECT_THAT(found.labels, ElementsAre(3, 2));
  EXPECT_THAT(found.scores, near({-0.6F, 0, 0.3F, 0.1F, 0.2F, -0.5F}));
}

TEST(TreeEnsembleClassifier, OneColumnTellsTwoClassesApart) {
  const std::vector<Weight> positive = {{1, 0, 0.3F}, {2, 0, 0.8F}};
  Classified found = classify(classes(positive, {10, 20}));
  EXPECT_THAT(found.labels, ElementsAre(10, 20));
  EXPECT_THAT(found.scores, near({0.7F, 0.3F, 0.2F, 0.8F}));
  EXPECT_THAT(classify(classes(positive, {10, 20}, "LOGISTIC")).scores,
              near({0.42556F, 0.57444F, 0.31003F, 0.68997F}));
  EXPECT_THAT(classify(classes(positive, {10, 20}, "SOFTMAX")).scores,
              near({0.7F, 0.3F, 0.2F, 0.8F}));
  found = classify(with(classes(positive, {10, 20}), "base_values", Floats{0.4F}));
  EXPECT_THAT(found.labels, ElementsAre(20, 20));
  EXPECT_THAT(found.scores, near({0.3F, 0.7F, -0.2F, 1.2F}));
  // With weights below 0 the border is 0, and the other class has the opposite.
  const std::vector<Weight> mixed = {{1, 0, -0.3F}, {2, 0, 0.8F}};
  found = classify(classes(mixed, {10, 20}));
  EXPECT_THAT(found.labels, ElementsAre(10, 20));
  EXPECT_THAT(found.scores, near({0.3F, -0.3F, -0.8F, 0.8F}));
  // A column of the second class stays there, and the first one's is empty.
  found = classify(classes({{1, 1, 0.3F}, {2, 1, 0.8F}}, {10, 20}, "LOGISTIC"));
  EXPECT_THAT(found.labels, ElementsAre(10, 20));
  EXPECT_THAT(found.scores, near({0.5F, 0.57444F, 0.5F, 0.68997F}));
}

TEST(TreeEnsembleClassifier, LabelsAreStringsOrNumbers) {
  AttributeList named = with_weights(stump(), "class", {{1, 0, 0.7F}, {2, 0, -0.8F}});
  named.emplace_back("classlabels_strings", Strings{"n", "p"});
  const auto outputs = run_all(kClassifier, {rows()}, named, 2);
  EXPECT_THAT(values<std::string>(outputs[0]), ElementsAre("p", "n"));
  EXPECT_THAT(values<std::string>(run_op(kClassifier, {rows()}, named)), ElementsAre("p", "n"));
  EXPECT_EQ(infer_text(kClassifier, {typed("fp64[n, 1]")}, named, 2), "string[n]; fp32[n, 2]");
  EXPECT_THAT(classify(classes({{1, 0, 0.7F}, {2, 0, -0.8F}}, {5})).labels, ElementsAre(5, 5));
}

TEST(TreeModels, SayWhatDoesNotFit) {
  const AttributeList good = targets({{1, 0, 10}, {2, 0, 20}});
  const auto error = [&](const std::string& name, AttributeValue value) {
    return op_error(kRegressor, {rows()}, with(good, name, std::move(value)));
  };
  const std::string op = "TreeEnsembleRegressor: ";
  EXPECT_EQ(error("nodes_modes", Strings{}),
            op + "attribute 'nodes_modes': expected a mode for each node, found none");
  EXPECT_EQ(error("nodes_modes", Strings{"LEQ", "LEAF", "LEAF"}),
            op + "attribute 'nodes_modes': expected 'BRANCH_LEQ', 'BRANCH_LT', 'BRANCH_GTE', "
                 "'BRANCH_GT', 'BRANCH_EQ', 'BRANCH_NEQ' or 'LEAF', found 'LEQ'");
  EXPECT_EQ(error("nodes_featureids", Ints{0, 0}),
            op + "attribute 'nodes_featureids': expected 3 values, found 2");
  EXPECT_EQ(error("nodes_featureids", Ints{-1, 0, 0}),
            op + "attribute 'nodes_featureids': expected 0 or more, found -1");
  EXPECT_EQ(error("nodes_values", Floats{1}),
            op + "attribute 'nodes_values': expected 3 values, found 1");
  EXPECT_EQ(error("nodes_values_as_tensor", floats({1, 2, 3})),
            op + "attribute 'nodes_values': expected it or 'nodes_values_as_tensor', found both");
  EXPECT_EQ(error("base_values_as_tensor", testing::int64s({1})),
            "attribute 'base_values_as_tensor': expected floats, found int64");
  EXPECT_EQ(error("nodes_nodeids", Ints{0, 1, 1}),
            op + "attribute 'nodes_nodeids': expected each node once, found node 1 of tree 0 "
                 "twice");
  EXPECT_EQ(error("nodes_truenodeids", Ints{9, 0, 0}),
            op + "attribute 'nodes_truenodeids': expected nodes of the tree, found node 9 of tree "
                 "0");
  EXPECT_EQ(error("nodes_falsenodeids", Ints{0, 0, 0}),
            op + "the tree of root 0 has nodes in a circle");
  EXPECT_EQ(error("target_ids", Ints{0, 1}),
            op + "attribute 'target_ids': expected numbers from 0 to 0, found 1");
  EXPECT_EQ(error("n_targets", std::int64_t{0}),
            "attribute 'n_targets': expected 1 to 1048576, found 0");
  EXPECT_EQ(error("base_values", Floats{1, 2}),
            "attribute 'base_values': expected 1 values, found 2");
  EXPECT_EQ(error("aggregate_function", std::string("MEAN")),
            "attribute 'aggregate_function': expected 'AVERAGE', 'SUM', 'MIN' or 'MAX', found "
            "'MEAN'");
  EXPECT_EQ(error("post_transform", std::string("TANH")),
            "attribute 'post_transform': expected 'NONE', 'SOFTMAX', 'LOGISTIC', 'SOFTMAX_ZERO' or "
            "'PROBIT', found 'TANH'");
  EXPECT_EQ(op_error(kRegressor, {floats({1})}, good),
            "TreeEnsembleRegressor: expected rows of 1 features or more, found [1]");
  const AttributeList labels = classes({{1, 0, 1}, {2, 1, 1}, {2, 2, 1}}, {1, 2, 3});
  EXPECT_EQ(op_error(kClassifier, {rows()}, with(labels, "base_values", Floats{1, 2})),
            "attribute 'base_values': expected 3 values, found 2");
  EXPECT_EQ(op_error(kClassifier, {rows()}, with(labels, "classlabels_strings", Strings{"a"})),
            "expected one of the attributes 'classlabels_strings' and 'classlabels_int64s', found "
            "both");
  EXPECT_EQ(op_error(kClassifier, {rows()}, stump()),
            "expected one of the attributes 'classlabels_strings' and 'classlabels_int64s', found "
            "none");
  EXPECT_EQ(op_error(kClassifier, {rows()}, with(labels, "classlabels_int64s", Ints{})),
            "attribute 'classlabels_int64s': expected a label or more, found none");
  EXPECT_EQ(op_error(kClassifier, {floats({1})}, labels),
            "TreeEnsembleClassifier: expected rows of 1 features or more, found [1]");
}

TEST(TreeEnsembleClassifier, TakesTheFirstOfEqualClassesThatHaveAWeight) {
  EXPECT_THAT(classify(classes({{1, 0, 1}, {1, 1, 1}, {2, 1, -1}}, {10, 20})).labels,
              ElementsAre(10, 20));
}

}  // namespace
}  // namespace tessera::ops
