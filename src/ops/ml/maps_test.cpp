// CategoryMapper, and the operators that make and read maps.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/op_testing.h"

namespace tessera::ops {
namespace {

using testing::AttributeList;
using ::testing::ElementsAre;
using testing::floats;
using testing::infer_text;
using testing::int64s;
using testing::Ints;
using testing::op_error;
using testing::run_op;
using testing::tensor;
using testing::typed;
using testing::values;

using Strings = std::vector<std::string>;
using Floats = std::vector<float>;

std::string ml_name(const char* op) {
  return std::string("ai.onnx.ml::") + op;
}

Result<RunValue> try_value(const char* op, const RunValue& input, const AttributeList& list) {
  const RunValue* inputs[] = {&input};
  TESSERA_ASSIGN(auto outputs,
                 run_reference(testing::schema(ml_name(op)), testing::attributes(list), inputs, 1));
  return outputs[0];
}

Tensor run_map(const char* op, const RunValue& input, const AttributeList& list = {}) {
  auto result = try_value(op, input, list);
  if (result) return result->tensor;
  ADD_FAILURE() << result.error().to_string();
  return {};
}

std::string error(const char* op, const RunValue& input, const AttributeList& list = {}) {
  const auto result = try_value(op, input, list);
  return result ? "no error" : result.error().to_string();
}

Tensor strings(const Strings& texts) {
  return Tensor::of<std::string>(DType::kString, {static_cast<std::int64_t>(texts.size())}, texts);
}

TEST(CategoryMapper, GoesEitherWay) {
  const AttributeList cats = {{"cats_strings", Strings{"a", "b"}}, {"cats_int64s", Ints{5, 6}}};
  EXPECT_THAT(values<std::int64_t>(run_op(ml_name("CategoryMapper"), {strings({"b", "x"})}, cats)),
              ElementsAre(6, -1));
  EXPECT_THAT(values<std::string>(run_op(ml_name("CategoryMapper"), {int64s({5, 7})}, cats)),
              ElementsAre("a", "_Unused"));
  EXPECT_EQ(infer_text(ml_name("CategoryMapper"), {typed("string[n]")}, cats), "int64[n]");
  EXPECT_EQ(infer_text(ml_name("CategoryMapper"), {typed("int64[n]")}, cats), "string[n]");
  EXPECT_EQ(op_error(ml_name("CategoryMapper"), {int64s({5})}, {{"cats_int64s", Ints{5, 6}}}),
            "attribute 'cats_strings': expected 2 values as in 'cats_int64s', found 0");
}

TEST(CategoryMapper, TakesTheLastOfEqualKeys) {
  EXPECT_THAT(values<std::int64_t>(
                  run_op(ml_name("CategoryMapper"), {strings({"a"})},
                         {{"cats_strings", Strings{"a", "a"}}, {"cats_int64s", Ints{5, 6}}})),
              ElementsAre(6));
}

TEST(ZipMap, MakesAMapOfEachRow) {
  const AttributeList names = {{"classlabels_strings", Strings{"n", "p"}}};
  const auto zipped =
      try_value("ZipMap", RunValue::of(tensor<float>({2, 2}, {0.75F, 0.25F, 1, 0})), names);
  ASSERT_TRUE(zipped) << zipped.error().to_string();
  ASSERT_EQ(zipped->elements.size(), 2U);
  EXPECT_EQ(type_mismatch(*parse_value_type("seq(map(string, fp32))"), *zipped), "");
  const RunValue& first = zipped->elements[0];
  EXPECT_THAT(values<std::string>(first.elements[0].tensor), ElementsAre("n", "p"));
  EXPECT_THAT(values<float>(first.elements[1].tensor), ElementsAre(0.75F, 0.25F));
  EXPECT_EQ(infer_text(ml_name("ZipMap"), {typed("fp32[n, 2]")}, names), "seq(map(string, fp32))");
  const AttributeList numbers = {{"classlabels_int64s", Ints{4, 2}}};
  EXPECT_EQ(infer_text(ml_name("ZipMap"), {typed("fp32[n, 2]")}, numbers), "seq(map(int64, fp32))");
  EXPECT_EQ(error("ZipMap", RunValue::of(floats({1, 2, 3})), numbers),
            "ZipMap: expected rows of 2 features, found [3]");
}

TEST(DictVectorizer, PutsValuesWhereTheirKeysStand) {
  const AttributeList words = {{"string_vocabulary", Strings{"c", "a", "b"}}};
  const RunValue map = RunValue::map(strings({"a", "x", "c"}), floats({1, 2, 3}));
  const Tensor dense = run_map("DictVectorizer", map, words);
  EXPECT_EQ(dense.dims(), (Dims{1, 3}));
  EXPECT_THAT(values<float>(dense), ElementsAre(3, 1, 0));
  const RunValue texts = RunValue::map(int64s({7}), strings({"seven"}));
  EXPECT_THAT(
      values<std::string>(run_map("DictVectorizer", texts, {{"int64_vocabulary", Ints{8, 7}}})),
      ElementsAre("", "seven"));
  EXPECT_EQ(infer_text(ml_name("DictVectorizer"), {typed("map(string, fp64)")}, words),
            "fp64[1, 3]");
  EXPECT_EQ(infer_text(ml_name("DictVectorizer"), {typed("map(int64, fp64)")}, words),
            "input 'X': expected a map with keys of string, found map(int64, fp64)");
  EXPECT_EQ(infer_text(ml_name("DictVectorizer"), {typed("fp32[2]")}, words),
            "input 'X': expected a map, found fp32[2]");
  EXPECT_EQ(infer_text(ml_name("DictVectorizer"), {testing::omitted()}, words),
            "input 'X': expected a map, found none");
  EXPECT_EQ(error("DictVectorizer", texts, words),
            "DictVectorizer: expected keys of string, found int64");
  EXPECT_EQ(error("DictVectorizer", RunValue::sequence({}), words),
            "DictVectorizer: input 0: expected a map, found a sequence");
}

TEST(CastMap, GivesValuesInTheOrderOfTheirKeys) {
  const RunValue map = RunValue::map(int64s({3, 0}), floats({1.5F, 2}));
  EXPECT_THAT(values<float>(run_map("CastMap", map)), ElementsAre(2, 1.5F));
  EXPECT_THAT(values<std::int64_t>(run_map("CastMap", map, {{"cast_to", std::string("TO_INT64")}})),
              ElementsAre(2, 1));
  const AttributeList sparse = {{"map_form", std::string("SPARSE")}, {"max_map", 5}};
  EXPECT_THAT(values<float>(run_map("CastMap", map, sparse)), ElementsAre(2, 0, 0, 1.5F, 0));
  AttributeList texts = sparse;
  texts.emplace_back("cast_to", std::string("TO_STRING"));
  EXPECT_THAT(values<std::string>(run_map("CastMap", map, texts)),
              ElementsAre("2", "", "", "1.5", ""));
  const RunValue words = RunValue::map(int64s({1}), strings({"2.5"}));
  EXPECT_THAT(values<float>(run_map("CastMap", words)), ElementsAre(2.5F));
  EXPECT_EQ(infer_text(ml_name("CastMap"), {typed("map(int64, string)")}), "fp32[1, _0]");
  EXPECT_EQ(infer_text(ml_name("CastMap"), {typed("map(int64, string)")}, sparse), "fp32[1, 5]");
}

// As in a dictionary that is filled in their order.
TEST(Maps, TheLastOfEqualKeysCounts) {
  const RunValue map = RunValue::map(int64s({3, 0, 3}), floats({1, 2, 4}));
  const Tensor dense = run_map("CastMap", map);
  EXPECT_EQ(dense.dims(), (Dims{1, 2}));
  EXPECT_THAT(values<float>(dense), ElementsAre(2, 4));
  EXPECT_THAT(
      values<float>(run_map("CastMap", map, {{"map_form", std::string("SPARSE")}, {"max_map", 4}})),
      ElementsAre(2, 0, 0, 4));
  EXPECT_THAT(values<float>(run_map("DictVectorizer", map, {{"int64_vocabulary", Ints{0, 3}}})),
              ElementsAre(2, 4));
}

TEST(CastMap, SaysWhatDoesNotFit) {
  const RunValue map = RunValue::map(int64s({3}), floats({1}));
  const auto text = [](const char* name, const char* value) {
    return AttributeList{{name, std::string(value)}};
  };
  EXPECT_EQ(error("CastMap", map, text("cast_to", "TO_BOOL")),
            "attribute 'cast_to': expected 'TO_FLOAT', 'TO_STRING' or 'TO_INT64', found 'TO_BOOL'");
  EXPECT_EQ(error("CastMap", map, text("map_form", "THIN")),
            "attribute 'map_form': expected 'DENSE' or 'SPARSE', found 'THIN'");
  AttributeList sparse = text("map_form", "SPARSE");
  sparse.emplace_back("max_map", 0);
  EXPECT_EQ(error("CastMap", map, sparse), "attribute 'max_map': expected 1 or more, found 0");
  sparse.back() = {"max_map", 3};
  EXPECT_EQ(error("CastMap", map, sparse), "CastMap: expected keys from 0 to 2, found 3");
  EXPECT_EQ(error("CastMap", RunValue::map(int64s({-1}), floats({1})), sparse),
            "CastMap: expected keys from 0 to 2, found -1");
  EXPECT_EQ(error("CastMap", RunValue::map(strings({"a"}), floats({1}))),
            "CastMap: expected keys of int64, found string");
  EXPECT_EQ(infer_text(ml_name("CastMap"), {typed("map(string, fp32)")}),
            "input 'X': expected a map with keys of int64, found map(string, fp32)");
}

}  // namespace
}  // namespace tessera::ops
