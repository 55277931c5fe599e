// LinearClassifier, LinearRegressor, SVMClassifier and SVMRegressor. Numbers are ONNX Runtime's.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/ml/coupling.h"
#include "testing/op_testing.h"

namespace tessera::ops {
namespace {

using testing::AttributeList;
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

std::string ml_name(const char* op) {
  return std::string("ai.onnx.ml::") + op;
}

struct Classified {
  std::vector<std::int64_t> labels;
  std::vector<float> scores;
};

Classified classify(const char* op, const Tensor& rows, const AttributeList& attributes) {
  const auto outputs = run_all(ml_name(op), {rows}, attributes, 2);
  return {values<std::int64_t>(outputs[0]), values<float>(outputs[1])};
}

AttributeList with(AttributeList list, const std::string& name, AttributeValue value) {
  std::erase_if(list, [&](const auto& entry) { return entry.first == name; });
  list.emplace_back(name, std::move(value));
  return list;
}

AttributeList transformed(AttributeList list, const char* transform) {
  return with(std::move(list), "post_transform", std::string(transform));
}

// ---- Linear -------------------------------------------------------------------------------------

TEST(LinearRegressor, AddsUpFeatures) {
  const Tensor rows = tensor<float>({2, 2}, {1, 2, -1, 0.5F});
  const AttributeList two = {
      {"coefficients", Floats{0.5F, -0.3F, 1, 2}}, {"intercepts", Floats{0.1F, 0}}, {"targets", 2}};
  EXPECT_THAT(values<float>(run_op(ml_name("LinearRegressor"), {rows}, two)),
              near({0, 5, -0.55F, 0}));
  EXPECT_THAT(
      values<float>(run_op(ml_name("LinearRegressor"), {rows}, transformed(two, "LOGISTIC"))),
      near({0.5F, 0.9933072F, 0.3658644F, 0.5F}));
  const AttributeList plain = {{"coefficients", Floats{0.5F, -0.3F}}};
  EXPECT_THAT(values<float>(run_op(ml_name("LinearRegressor"),
                                   {tensor<std::int64_t>({1, 2}, {4, 1})}, plain)),
              near({1.7F}));
  EXPECT_EQ(infer_text(ml_name("LinearRegressor"), {typed("fp32[n, 2]")}, two), "fp32[n, 2]");
  EXPECT_EQ(infer_text(ml_name("LinearRegressor"), {typed("fp32[2]")}, plain), "fp32[1, 1]");
  EXPECT_EQ(op_error(ml_name("LinearRegressor"), {floats({1})}, plain),
            "LinearRegressor: expected rows of 2 features, found [1]");
  EXPECT_EQ(op_error(ml_name("LinearRegressor"), {rows}, with(two, "targets", std::int64_t{3})),
            "attribute 'coefficients': expected as many values for each of 3 scores, found 4");
  EXPECT_EQ(op_error(ml_name("LinearRegressor"), {rows}, with(two, "targets", std::int64_t{0})),
            "attribute 'targets': expected 1 or more, found 0");
  EXPECT_EQ(op_error(ml_name("LinearRegressor"), {rows}, with(two, "intercepts", Floats{1})),
            "attribute 'intercepts': expected 2 values, found 1");
}

TEST(LinearClassifier, OneScoreTellsTwoClassesApart) {
  const Tensor rows = tensor<float>({3, 1}, {-2, 0.3F, 3});
  const AttributeList one = {
      {"coefficients", Floats{1}}, {"intercepts", Floats{0}}, {"classlabels_ints", Ints{10, 20}}};
  const Classified found = classify("LinearClassifier", rows, one);
  EXPECT_THAT(found.labels, ElementsAre(10, 20, 20));
  EXPECT_THAT(found.scores, near({3, -2, 0.7F, 0.3F, -2, 3}));
  EXPECT_THAT(classify("LinearClassifier", rows, transformed(one, "LOGISTIC")).scores,
              near({0.880797F, 0.119203F, 0.4255575F, 0.5744425F, 0.0474259F, 0.9525741F}));
  EXPECT_THAT(classify("LinearClassifier", rows, transformed(one, "SOFTMAX")).scores,
              near({3, -2, 0.7F, 0.3F, -2, 3}));
}

TEST(LinearClassifier, OfSeveralScoresTheHighest) {
  const Tensor rows = tensor<float>({2, 1}, {-2, 0.7F});
  const AttributeList two = {{"coefficients", Floats{-1, 1}},
                             {"intercepts", Floats{0, 0.1F}},
                             {"classlabels_ints", Ints{10, 20}}};
  const Classified found = classify("LinearClassifier", rows, two);
  EXPECT_THAT(found.labels, ElementsAre(10, 20));
  EXPECT_THAT(found.scores, near({2, -1.9F, -0.7F, 0.8F}));
  EXPECT_THAT(classify("LinearClassifier", rows, transformed(two, "SOFTMAX")).scores,
              near({0.9801598F, 0.0198403F, 0.1824255F, 0.8175745F}));
  const AttributeList equal =
      with(with(two, "coefficients", Floats{1, 1}), "intercepts", Floats{0, 0});
  EXPECT_THAT(classify("LinearClassifier", rows, equal).labels, ElementsAre(10, 10));
  AttributeList named = two;
  named.back() = {"classlabels_strings", Strings{"n", "p"}};
  EXPECT_THAT(values<std::string>(run_op(ml_name("LinearClassifier"), {rows}, named)),
              ElementsAre("n", "p"));
  EXPECT_EQ(infer_text(ml_name("LinearClassifier"), {typed("fp32[n, 1]")}, named, 2),
            "string[n]; fp32[n, 2]");
  EXPECT_EQ(
      op_error(ml_name("LinearClassifier"), {rows}, with(two, "coefficients", Floats{1, 2, 3})),
      "attribute 'coefficients': expected as many values for each of 2 scores, found 3");
  EXPECT_EQ(op_error(ml_name("LinearClassifier"), {floats({1, 2, 3})}, two),
            "LinearClassifier: expected rows of 1 features, found [3]");
}

// ---- Support vectors ----------------------------------------------------------------------------

const Tensor& points() {
  static const Tensor rows = tensor<float>({2, 2}, {1, 2, -1, 0.5F});
  return rows;
}

AttributeList machine(const char* kernel) {
  return {{"kernel_type", std::string(kernel)},
          {"kernel_params", Floats{0.5F, 0.25F, 2}},
          {"support_vectors", Floats{1, 0, 0, 1, -1, 1, 0.5F, 0.5F, 2, -1, 0, 0}}};
}

AttributeList two_classes(const char* kernel) {
  AttributeList list = machine(kernel);
  list.emplace_back("coefficients", Floats{0.5F, -0.3F, 0.8F, -0.6F, 0.2F, -0.4F});
  list.emplace_back("vectors_per_class", Ints{3, 3});
  list.emplace_back("rho", Floats{0.1F});
  list.emplace_back("classlabels_ints", Ints{10, 20});
  return list;
}

AttributeList three_classes() {
  AttributeList list = machine("RBF");
  list.emplace_back("coefficients", Floats{0.5F, -0.3F, 0.8F, -0.6F, 0.2F, -0.4F, 0.7F, -0.9F, 0.1F,
                                           0.6F, -0.5F, 0.3F});
  list.emplace_back("vectors_per_class", Ints{2, 2, 2});
  list.emplace_back("rho", Floats{0.1F, -0.2F, 0.3F});
  list.emplace_back("classlabels_ints", Ints{10, 20, 30});
  return list;
}

TEST(SVMRegressor, AddsUpKernels) {
  const auto regressed = [&](const char* kernel) {
    AttributeList list = with(machine(kernel), "support_vectors", Floats{1, 0, 0, 1, -1, 1});
    list.emplace_back("coefficients", Floats{0.5F, -0.3F, 0.8F});
    list.emplace_back("n_supports", 3);
    list.emplace_back("rho", Floats{0.1F});
    return values<float>(run_op(ml_name("SVMRegressor"), {points()}, list));
  };
  EXPECT_THAT(regressed("RBF"), near({0.122972F, 0.705136F}));
  EXPECT_THAT(regressed("POLY"), near({0.3625F, 0.85625F}));
  EXPECT_THAT(regressed("LINEAR"), near({0.8F, 0.65F}));
  EXPECT_THAT(regressed("SIGMOID"), near({0.671209F, 0.448181F}));
  const AttributeList plane = {{"coefficients", Floats{0.5F, -0.3F}}, {"rho", Floats{0.1F}}};
  EXPECT_THAT(values<float>(run_op(ml_name("SVMRegressor"), {points()}, plane)), near({0, -0.55F}));
  EXPECT_THAT(
      values<float>(run_op(ml_name("SVMRegressor"), {points()},
                           with(with(plane, "rho", Floats{0.2F}), "one_class", std::int64_t{1}))),
      ElementsAre(1, -1));
  EXPECT_EQ(infer_text(ml_name("SVMRegressor"), {typed("fp32[n, 2]")}, plane), "fp32[n, 1]");
}

// A plane, whatever the kernel's name.
TEST(SVMRegressor, IsLinearWithoutSupportVectors) {
  for (const char* kernel : {"LINEAR", "POLY", "RBF", "SIGMOID"}) {
    AttributeList plane = machine(kernel);
    plane.emplace_back("coefficients", Floats{0.5F, -0.3F});
    plane.emplace_back("rho", Floats{0.1F});
    EXPECT_THAT(values<float>(run_op(ml_name("SVMRegressor"), {points()}, plane)),
                near({0, -0.55F}))
        << kernel;
  }
}

TEST(SVMClassifier, PairsOfClassesVote) {
  const auto two = [&](const char* kernel) {
    return classify("SVMClassifier", points(), two_classes(kernel));
  };
  EXPECT_THAT(two("RBF").labels, ElementsAre(20, 10));
  EXPECT_THAT(two("RBF").scores, near({0.080418F, -0.080418F, -0.296961F, 0.296961F}));
  EXPECT_THAT(two("POLY").scores, near({0.25F, -0.25F, -1.021875F, 1.021875F}));
  EXPECT_THAT(two("SIGMOID").labels, ElementsAre(10, 10));
  EXPECT_THAT(
      classify("SVMClassifier", points(), transformed(two_classes("RBF"), "LOGISTIC")).scores,
      near({0.520094F, 0.479906F, 0.426301F, 0.573699F}));
  EXPECT_THAT(
      classify("SVMClassifier", points(), transformed(two_classes("RBF"), "SOFTMAX")).scores,
      near({1.080418F, -0.080418F, 0.703039F, 0.296961F}));
  const Classified three = classify("SVMClassifier", points(), three_classes());
  EXPECT_THAT(three.labels, ElementsAre(20, 10));
  EXPECT_THAT(three.scores,
              near({-0.048931F, -0.467843F, 0.501368F, 0.510344F, -0.811516F, 0.741816F}));
  AttributeList planes = {{"coefficients", Floats{0.5F, -0.3F, 0.8F, -0.6F, 0.2F, -0.4F}},
                          {"rho", Floats{0.1F}},
                          {"classlabels_ints", Ints{10, 20, 30}}};
  const Classified found = classify("SVMClassifier", points(), planes);
  EXPECT_THAT(found.labels, ElementsAre(10, 30));
  EXPECT_THAT(found.scores, near({0, -0.3F, -0.5F, -0.55F, -1, -0.3F}));
}

TEST(SVMClassifier, ProbabilitiesOfPairsAreCoupled) {
  AttributeList two = two_classes("RBF");
  two.emplace_back("prob_a", Floats{-1.5F});
  two.emplace_back("prob_b", Floats{0.1F});
  EXPECT_THAT(classify("SVMClassifier", points(), two).scores,
              near({0.444987F, 0.555013F, 0.585179F, 0.414821F}));
  AttributeList three = three_classes();
  three.emplace_back("prob_a", Floats{-1.5F, -0.7F, -2});
  three.emplace_back("prob_b", Floats{0.1F, 0.2F, -0.3F});
  const Classified found = classify("SVMClassifier", points(), three);
  EXPECT_THAT(found.labels, ElementsAre(20, 10));
  EXPECT_THAT(found.scores,
              near({0.280957F, 0.496633F, 0.22241F, 0.363526F, 0.398206F, 0.238267F}));
  EXPECT_EQ(infer_text(ml_name("SVMClassifier"), {typed("fp32[n, 2]")}, three_classes(), 2),
            "int64[n]; fp32[n, 3]");
}

TEST(Coupling, OfPairsThatAgree) {
  EXPECT_NEAR(ml::pair_probability(0, 3, 0), 0.5, 1e-12);
  EXPECT_EQ(ml::pair_probability(1e9, 1, 0), 1e-7);
  EXPECT_EQ(ml::pair_probability(-1e9, 1, 0), 1 - 1e-7);
  // Classes of 0.5, 0.3 and 0.2: each pair says what they say.
  const auto p = ml::couple(3, {0.5 / 0.8, 0.5 / 0.7, 0.3 / 0.5});
  EXPECT_NEAR(p[0], 0.5, 2e-3);
  EXPECT_NEAR(p[1], 0.3, 2e-3);
  EXPECT_NEAR(p[0] + p[1] + p[2], 1, 1e-12);
}

TEST(SupportVectors, SayWhatDoesNotFit) {
  const AttributeList good = two_classes("RBF");
  const auto error = [&](const char* name, AttributeValue value) {
    return op_error(ml_name("SVMClassifier"), {points()}, with(good, name, std::move(value)));
  };
  EXPECT_EQ(error("kernel_type", std::string("CHI2")),
            "attribute 'kernel_type': expected 'LINEAR', 'POLY', 'RBF' or 'SIGMOID', found 'CHI2'");
  EXPECT_EQ(error("kernel_params", Floats{1}),
            "attribute 'kernel_params': expected gamma, coef0 and degree, found 1 values");
  EXPECT_EQ(error("support_vectors", Floats{1, 2, 3}),
            "attribute 'support_vectors': expected 6 rows of equal length, found 3 values");
  EXPECT_EQ(error("coefficients", Floats{1}),
            "attribute 'coefficients': expected 6 values, found 1");
  EXPECT_EQ(error("rho", Floats{1, 2}), "attribute 'rho': expected 1 values, found 2");
  EXPECT_EQ(error("prob_a", Floats{1}), "attribute 'prob_b': expected 1 values, found 0");
  EXPECT_EQ(error("vectors_per_class", Ints{6}),
            "attribute 'vectors_per_class': expected 2 values, found 1");
  EXPECT_EQ(error("vectors_per_class", Ints{7, -1}),
            "attribute 'vectors_per_class': expected 0 or more, found -1");
  EXPECT_EQ(error("post_transform", std::string("x")),
            "attribute 'post_transform': expected 'NONE', 'SOFTMAX', 'LOGISTIC', 'SOFTMAX_ZERO' or "
            "'PROBIT', found 'x'");
  AttributeList one = with(good, "classlabels_ints", Ints{1});
  one = with(std::move(one), "vectors_per_class", Ints{6});
  EXPECT_EQ(op_error(ml_name("SVMClassifier"), {points()}, one),
            "attribute 'vectors_per_class': expected two classes or more, found one");
  AttributeList probabilities = with(good, "prob_a", Floats{1, 2});
  EXPECT_EQ(
      op_error(ml_name("SVMClassifier"), {points()}, with(probabilities, "prob_b", Floats{1, 2})),
      "attribute 'prob_a': expected 1 values, found 2");
  EXPECT_EQ(op_error(ml_name("SVMClassifier"), {floats({1, 2, 3})}, good),
            "SVMClassifier: expected rows of 2 features, found [3]");
  const AttributeList plane = {{"coefficients", Floats{1}}, {"rho", Floats{0}}};
  EXPECT_EQ(op_error(ml_name("SVMRegressor"), {points()}, plane),
            "SVMRegressor: expected rows of 1 features, found [2, 2]");
  EXPECT_EQ(
      op_error(ml_name("SVMRegressor"), {points()}, with(plane, "n_supports", std::int64_t{-1})),
      "attribute 'n_supports': expected 0 or more, found -1");
}

}  // namespace
}  // namespace tessera::ops
