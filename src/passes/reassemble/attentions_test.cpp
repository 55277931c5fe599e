// Attention in pieces: every spelling becomes the operator, with the values of its pieces, rows
// without any key included; what breaks a condition stays and says why.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "passes/reassemble/assemble_test.h"

namespace tessera::passes {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::string kInputs =
    "input %q : fp32[n, 2, 4, 3] input %k : fp32[n, 2, 5, 3] input %v : fp32[n, 2, 5, 6] "
    "input %m : fp32[n, 1, 4, 5] const %c : fp32[] dense [0.5] const %d : fp32[] dense [2] "
    "const %low : fp32[] dense [0xff800000] const %huge : fp32[] dense [-3.4028235e38] "
    "const %few : fp32[] dense [-10000] const %zero : fp32[] dense [0] ";
const std::string kTurn = "%kt = Transpose(%k) {perm = [0, 1, 3, 2]} ";
const std::string kScores = kTurn + "%s = MatMul(%q, %kt) ";
const std::string kEnd = "%y = MatMul(%p, %v) output %y";

TEST(Attention, EverySideOfScaleAndMask) {
  for (const std::string& spelling : {
           kScores + "%a = Mul(%s, %c) %b = Add(%a, %m) ",
           kScores + "%a = Mul(%c, %s) %b = Add(%m, %a) ",
           kScores + "%a = Div(%s, %d) %b = Add(%m, %a) ",
           kTurn + "%e = Mul(%q, %c) %s = MatMul(%e, %kt) %b = Add(%s, %m) ",
           kTurn + "%e = Div(%q, %d) %s = MatMul(%e, %kt) %b = Add(%s, %m) ",
           kTurn + "%e = Mul(%q, %d) %f = Mul(%kt, %c) %s = MatMul(%e, %f) %g = Mul(%s, %c) "
                   "%b = Add(%g, %m) ",
           std::string("%f = Mul(%k, %c) %kt = Transpose(%f) {perm = [0, 1, 3, 2]} "
                       "%s = MatMul(%q, %kt) %b = Add(%s, %m) "),
           std::string("%qt = Transpose(%q) {perm = [0, 1, 3, 2]} %r = MatMul(%k, %qt) "
                       "%s = Transpose(%r) {perm = [0, 1, 3, 2]} %a = Mul(%s, %c) "
                       "%b = Add(%a, %m) "),
       }) {
    SCOPED_TRACE(spelling);
    const auto made = assemble(kInputs + spelling + "%p = Softmax(%b) {axis = -1} " + kEnd);
    EXPECT_EQ(made.text, "y = Attention(q, k, v, m) {nan_rows=1, scale=0.5}\n");
    EXPECT_THAT(made.notes, IsEmpty());
  }
}

TEST(Attention, WithoutScaleOrMask) {
  EXPECT_EQ(assemble(kInputs + kScores + "%p = Softmax(%s) " + kEnd).text,
            "y = Attention(q, k, v) {scale=1.0}\n");
}

TEST(Attention, KeysThatAreTurnedElsewhere) {
  // No transpose to look through: one is put before the operator.
  const auto given = assemble(
      "input %q : fp32[n, 2, 4, 3] input %kt : fp32[n, 2, 3, 5] input %v : fp32[n, 2, 5, 6] "
      "%s = MatMul(%q, %kt) %p = Softmax(%s) %y = MatMul(%p, %v) output %y");
  EXPECT_THAT(given.text, HasSubstr("Transpose(kt) {perm=[0, 1, 3, 2]}\n"));
  EXPECT_THAT(given.text, HasSubstr("y = Attention(q, "));
  // Heads and the last axis moved by one transpose.
  const auto moved = assemble(
      "input %q : fp32[n, 2, 4, 3] input %x : fp32[n, 5, 2, 3] input %v : fp32[n, 2, 5, 6] "
      "%kt = Transpose(%x) {perm = [0, 2, 3, 1]} %s = MatMul(%q, %kt) %p = Softmax(%s) "
      "%y = MatMul(%p, %v) output %y");
  EXPECT_THAT(moved.text, HasSubstr("Transpose(x) {perm=[0, 2, 1, 3]}\n"));
}

TEST(Attention, MasksByWhere) {
  const std::string mask = "input %b : bool[n, 1, 4, 5] ";
  EXPECT_THAT(
      assemble(kInputs + mask + kScores + "%w = Where(%b, %s, %low) %p = Softmax(%w) " + kEnd).text,
      HasSubstr("y = Attention(q, k, v, b) {nan_rows=1, scale=1.0}"));
  EXPECT_THAT(
      assemble(kInputs + mask + kScores + "%w = Where(%b, %low, %s) %p = Softmax(%w) " + kEnd).text,
      HasSubstr("= Not(b)\n"));
  const auto huge =
      assemble(kInputs + mask + kScores + "%w = Where(%b, %s, %huge) %p = Softmax(%w) " + kEnd);
  EXPECT_THAT(huge.text, HasSubstr("= Where(b, "));
  EXPECT_THAT(huge.text, HasSubstr("y = Attention(q, k, v, "));
  EXPECT_THAT(assemble(kInputs + mask + kScores +
                       "%w = Where(%b, %s, %few) name \"fill\" "
                       "%p = Softmax(%w) " +
                       kEnd)
                  .notes,
              Contains("Attention: 'fill' puts -10000 in the place of masked scores: expected "
                       "minus infinity"));
}

// Rows 0 of each matrix are masked throughout.
std::vector<Tensor> masked_inputs() {
  std::vector<Tensor> inputs;
  testing::Random random(5);
  for (const Dims& dims :
       {Dims{1, 2, 4, 3}, Dims{1, 2, 5, 3}, Dims{1, 2, 5, 6}, Dims{1, 1, 4, 5}}) {
    Tensor tensor = *Tensor::zeros(DType::kFp32, dims);
    auto* elements = static_cast<float*>(tensor.mutable_data());
    for (std::int64_t i = 0; i < tensor.numel(); ++i)
      elements[i] = static_cast<float>(random.real(-1, 1));
    inputs.push_back(std::move(tensor));
  }
  std::fill_n(static_cast<float*>(inputs[3].mutable_data()), 5, -HUGE_VALF);
  return inputs;
}

void expect_same_masked_rows(const std::string& statements, bool nan) {
  ir::Module module = testing::module_of(kInputs + statements);
  std::vector<Note> notes;
  const auto covers = propose_covers(module, module.methods[0].graph, notes);
  const ir::Module made = assembled_module(module, covers);
  EXPECT_THAT(testing::brief(made.methods[0].graph), HasSubstr("y = Attention("));
  const auto inputs = masked_inputs();
  const auto pieces = testing::interpret(module.methods[0].graph, inputs);
  const auto whole = testing::interpret(made.methods[0].graph, inputs);
  ASSERT_TRUE(pieces) << pieces.error().to_string();
  ASSERT_TRUE(whole) << whole.error().to_string();
  testing::expect_close((*whole)[0], (*pieces)[0], 1e-5);
  EXPECT_EQ(std::isnan((*whole)[0].span<float>()[0]), nan);
}

TEST(Attention, RowsWithoutAnyKeyStayWhatTheyAre) {
  const std::string scores = kScores + "%b = Add(%s, %m) %p0 = Softmax(%b) ";
  expect_same_masked_rows(kScores + "%b = Add(%s, %m) %p = Softmax(%b) " + kEnd, true);
  expect_same_masked_rows(scores + "%nan = IsNaN(%p0) %p = Where(%nan, %zero, %p0) " + kEnd, false);
}

TEST(Attention, HeadsInGroups) {
  const std::string start =
      "input %q : fp32[n, 4, 3, 2] input %k : fp32[n, 2, 5, 2] input %v : fp32[n, 2, 5, 2] "
      "const %ax : int64[1] dense [2] const %first : int64[1] dense [1] const %wide : int64[5] "
      "dense [1, 2, 2, 5, 2] const %joined : int64[4] dense [-1, 4, 5, 2] ";
  const auto shared = [](const std::string& from, const std::string& axis) {
    return "%" + from + "u = Unsqueeze(%" + from + ", %" + axis + ") %" + from + "e = Expand(%" +
           from + "u, %wide) name \"repeat_" + from + "\" %" + from + "r = Reshape(%" + from +
           "e, %joined) ";
  };
  const std::string end =
      "%kt = Transpose(%kr) {perm = [0, 1, 3, 2]} %s = MatMul(%q, %kt) %p = Softmax(%s) "
      "%y = MatMul(%p, %vr) output %y";
  EXPECT_EQ(assemble(start + shared("k", "ax") + shared("v", "ax") + end).text,
            "y = Attention(q, k, v) {scale=1.0}\n");
  EXPECT_THAT(assemble(start + shared("k", "first") + shared("v", "first") + end).notes,
              Contains("Attention: 'repeat_k' repeats all heads one after the other: expected each "
                       "beside its own"));
  const std::string one =
      "input %q : fp32[2, 4, 3, 2] input %k : fp32[2, 1, 5, 2] input %v : fp32[2, 1, 5, 2] "
      "const %wide : int64[4] dense [2, 4, 5, 2] %kr = Expand(%k, %wide) %vr = Expand(%v, %wide) ";
  EXPECT_EQ(assemble(one + end).text, "y = Attention(q, k, v) {scale=1.0}\n");
}

TEST(Attention, WithItsCache) {
  const std::string cached =
      "input %q : fp32[1, 2, 1, 3] input %k : fp32[1, 2, 1, 3] input %v : fp32[1, 2, 1, 3] "
      "input %pk : fp32[1, 2, m, 3] input %pv : fp32[1, 2, m, 3] "
      "%kk = Concat(%pk, %k) {axis = 2} %vv = Concat(%pv, %v) {axis = 2} "
      "%kt = Transpose(%kk) {perm = [0, 1, 3, 2]} %s = MatMul(%q, %kt) %p = Softmax(%s) "
      "%y = MatMul(%p, %vv) output %y ";
  EXPECT_EQ(assemble(cached + "output %kk output %vv").text,
            "y, kk, vv = Attention(q, k, v, _, pk, pv) {scale=1.0}\n");
  const auto read = assemble(cached + "%z = Neg(%kk) output %kk output %vv output %z");
  EXPECT_THAT(read.text, HasSubstr("y = Attention(q, kk, vv) {scale=1.0}\n"))
      << "the cache is read by others: it is no part of the operator";
}

TEST(Attention, HeadsSideBySide) {
  const auto made = assemble(
      "input %a : fp32[n, 4, 6] input %b : fp32[n, 5, 6] input %c : fp32[n, 5, 6] const %shape : "
      "int64[4] dense [0, 0, 2, 3] const %flat : int64[3] dense [0, 0, 6] "
      "%ar = Reshape(%a, %shape) %q = Transpose(%ar) {perm = [0, 2, 1, 3]} "
      "%br = Reshape(%b, %shape) %kt = Transpose(%br) {perm = [0, 2, 3, 1]} "
      "%cr = Reshape(%c, %shape) %v = Transpose(%cr) {perm = [0, 2, 1, 3]} "
      "%s = MatMul(%q, %kt) %p = Softmax(%s) %o = MatMul(%p, %v) "
      "%t = Transpose(%o) {perm = [0, 2, 1, 3]} %y = Reshape(%t, %flat) output %y");
  EXPECT_EQ(made.text, "y = Attention(a, b, c) {kv_num_heads=2, q_num_heads=2, scale=1.0}\n");
}

TEST(Attention, OfOneHeadWithoutAnAxisForIt) {
  const auto made = assemble(
      "input %q : fp32[n, 4, 3] input %k : fp32[n, 5, 3] input %v : fp32[n, 5, 2] "
      "input %m : fp32[n, 4, 5] %kt = Transpose(%k) {perm = [0, 2, 1]} %s = MatMul(%q, %kt) "
      "%b = Add(%s, %m) %p = Softmax(%b) %y = MatMul(%p, %v) output %y");
  EXPECT_THAT(made.text, HasSubstr("Unsqueeze(m, "));
  EXPECT_THAT(made.text, HasSubstr("kv_num_heads=1, nan_rows=1, q_num_heads=1, scale=1.0"));
}

TEST(Attention, NearMisses) {
  EXPECT_THAT(assemble(kInputs + kScores +
                       "%p = Softmax(%s) %y = MatMul(%p, %v) output %y "
                       "output %p")
                  .notes,
              Contains("Attention: intermediate 'p' is an output of the graph"));
  EXPECT_THAT(assemble(kInputs + kScores +
                       "%b = Add(%s, %m) %a = Mul(%b, %c) name \"scale\" "
                       "%p = Softmax(%a) " +
                       kEnd)
                  .notes,
              Contains("Attention: 'scale' scales the mask as well"));
  EXPECT_THAT(assemble(kInputs + kScores +
                       "%b = Add(%s, %m) %a = Add(%b, %m) name \"second\" "
                       "%p = Softmax(%a) " +
                       kEnd)
                  .notes,
              Contains("Attention: 'second' adds a second mask"));
  EXPECT_THAT(assemble(kInputs + "input %row : fp32[n, 1, 4, 1] " + kScores +
                       "%b = Add(%s, %row) %p = Softmax(%b) " + kEnd)
                  .notes,
              Contains("Attention: mask 'row' of shape [n, 1, 4, 1] has not the scores' last size "
                       "5"));
  const auto wide = assemble(
      "input %q : fp32[1, 2, 4, 3] input %k : fp32[1, 2, 5, 3] input %v : fp32[1, 2, 5, 6] "
      "input %m : fp32[3, 1, 4, 5] " +
      kScores + "%b = Add(%s, %m) %p = Softmax(%b) " + kEnd);
  EXPECT_THAT(wide.notes, Contains("Attention: mask 'm' widens the scores"));
  EXPECT_THAT(wide.covers, Not(Contains("Attention")));
}

}  // namespace
}  // namespace tessera::passes
