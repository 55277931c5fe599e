// TfIdfVectorizer, on the example of the standard.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/op_testing.h"

namespace tessera::ops {
namespace {

using ::testing::ElementsAre;
using testing::infer_text;
using testing::int64s;
using testing::Ints;
using testing::op_error;
using testing::run_op;
using testing::tensor;
using testing::typed;
using testing::values;

testing::AttributeList vocabulary(std::string mode, std::int64_t shortest, std::int64_t longest,
                                  std::int64_t skips) {
  return {{"mode", std::move(mode)},
          {"min_gram_length", shortest},
          {"max_gram_length", longest},
          {"max_skip_count", skips},
          {"ngram_counts", Ints{0, 4}},
          {"ngram_indexes", Ints{0, 1, 2, 3, 4, 5, 6}},
          {"pool_int64s", Ints{2, 3, 5, 4, 5, 6, 7, 8, 6, 7}}};
}

const Tensor& row() {
  static const Tensor kept = int64s({1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8});
  return kept;
}

std::vector<float> counted(const testing::AttributeList& words) {
  return values<float>(run_op("TfIdfVectorizer", {row()}, words));
}

TEST(TfIdfVectorizer, CountsNGramsWithAndWithoutSkips) {
  EXPECT_THAT(counted(vocabulary("TF", 2, 2, 0)), ElementsAre(0, 0, 0, 0, 1, 1, 1));
  EXPECT_THAT(counted(vocabulary("TF", 2, 2, 5)), ElementsAre(0, 0, 0, 0, 1, 3, 1));
  EXPECT_THAT(counted(vocabulary("TF", 1, 2, 5)), ElementsAre(0, 3, 1, 0, 1, 3, 1));
}

TEST(TfIdfVectorizer, WeighsAndTakesRowsAndStrings) {
  auto weighted = vocabulary("TFIDF", 1, 1, 0);
  weighted.emplace_back("weights", std::vector<float>{1, 0.5F, 2, 1, 1, 1, 1});
  EXPECT_THAT(counted(weighted), ElementsAre(0, 1.5F, 2, 0, 0, 0, 0));
  weighted[0].second = std::string("IDF");
  EXPECT_THAT(counted(weighted), ElementsAre(0, 0.5F, 2, 0, 0, 0, 0));
  testing::AttributeList words = {{"mode", "TF"},
                                  {"min_gram_length", 1},
                                  {"max_gram_length", 1},
                                  {"max_skip_count", 0},
                                  {"ngram_counts", Ints{0}},
                                  {"ngram_indexes", Ints{1, 0}},
                                  {"pool_strings", std::vector<std::string>{"a", "b"}}};
  EXPECT_THAT(values<float>(run_op("TfIdfVectorizer",
                                   {tensor<std::string>({2, 2}, {"a", "a", "b", "c"})}, words)),
              ElementsAre(0, 2, 1, 0));
  EXPECT_EQ(infer_text("TfIdfVectorizer", {typed("string[n, 4]")}, words), "fp32[n, 2]");
  EXPECT_EQ(op_error("TfIdfVectorizer", {row()}, words),
            "TfIdfVectorizer: expected elements as the pool has, found int64");
}

TEST(TfIdfVectorizer, TakesTheFirstOfEqualNGramsAndAddsUpOneIndex) {
  const auto counted_in = [](const std::vector<std::string>& pool, const Ints& indexes) {
    const testing::AttributeList words = {
        {"mode", "TF"},        {"min_gram_length", 1},    {"max_gram_length", 1},
        {"max_skip_count", 0}, {"ngram_counts", Ints{0}}, {"ngram_indexes", indexes},
        {"pool_strings", pool}};
    return values<float>(run_op("TfIdfVectorizer", {tensor<std::string>({2}, {"a", "b"})}, words));
  };
  EXPECT_THAT(counted_in({"a", "a"}, {0, 1}), ElementsAre(1, 0));
  EXPECT_THAT(counted_in({"a", "b"}, {0, 0}), ElementsAre(2));
}

TEST(TfIdfVectorizer, SaysWhatDoesNotFit) {
  const auto error = [](std::size_t index, AttributeValue value) {
    auto words = vocabulary("TF", 1, 2, 0);
    words[index].second = std::move(value);
    return op_error("TfIdfVectorizer", {row()}, words);
  };
  EXPECT_EQ(error(0, std::string("BM25")),
            "attribute 'mode': expected 'TF', 'IDF' or 'TFIDF', found 'BM25'");
  EXPECT_EQ(error(1, std::int64_t{3}),
            "TfIdfVectorizer: expected 1 <= min_gram_length <= max_gram_length and max_skip_count "
            "of 0 or more, found 3, 2 and 0");
  EXPECT_EQ(error(4, Ints{0, 5}),
            "attribute 'ngram_counts': expected rising positions of whole 2-grams in a pool of 10, "
            "found 5");
  EXPECT_EQ(error(5, Ints{0, 1}),
            "attribute 'ngram_indexes': expected 7 values, one for each n-gram, found 2");
  EXPECT_EQ(error(5, Ints{0, 1, 2, 3, 4, 5, -6}),
            "attribute 'ngram_indexes': expected 0 or more, found -6");
  auto both = vocabulary("TF", 1, 1, 0);
  both.emplace_back("pool_strings", std::vector<std::string>{"a"});
  EXPECT_EQ(op_error("TfIdfVectorizer", {row()}, both),
            "TfIdfVectorizer: expected one of the attributes 'pool_strings' and 'pool_int64s', "
            "found both");
  auto weights = vocabulary("TF", 1, 1, 0);
  weights.emplace_back("weights", std::vector<float>{1});
  EXPECT_EQ(op_error("TfIdfVectorizer", {row()}, weights),
            "attribute 'weights': expected 7 values, found 1");
  EXPECT_EQ(op_error("TfIdfVectorizer", {tensor<std::int64_t>({1, 1, 1}, {1})},
                     vocabulary("TF", 1, 1, 0)),
            "TfIdfVectorizer: expected rank 2 or less, found [1, 1, 1]");
}

}  // namespace
}  // namespace tessera::ops
