// Operators in pieces: every spelling bears its operator and gives the values of its pieces; what
// breaks a condition stays in pieces and says why.

#include "passes/reassemble/reassemble.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/reassemble/assemble_test.h"

namespace tessera::passes {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// ---- Activations --------------------------------------------------------------------------------

const std::string kX = "input %x : fp32[n, 4] ";

std::string number(const std::string& name, const std::string& digits) {
  return "const %" + name + " : fp32[] dense [" + digits + "] ";
}

const std::string kGelu = kX + number("r", "0.70710678") + number("s", "1.41421356") +
                          number("h", "0.5") + number("o", "1") + number("t", "2");

TEST(Gelu, EverySpellingByErf) {
  for (const char* spelling : {
           "%a = Div(%x, %s) %e = Erf(%a) %p = Add(%e, %o) %q = Mul(%x, %p) %y = Mul(%q, %h)",
           "%g = Mul(%x, %h) %a = Div(%x, %s) %e = Erf(%a) %p = Add(%e, %o) %y = Mul(%g, %p)",
           "%a = Mul(%r, %x) %e = Erf(%a) %p = Add(%o, %e) %q = Mul(%h, %p) %y = Mul(%q, %x)",
           "%a = Mul(%r, %x) %e = Erf(%a) %p = Add(%o, %e) %q = Div(%p, %t) %y = Mul(%q, %x)",
           "%a = Mul(%r, %x) %e = Erf(%a) %p = Mul(%h, %e) %q = Add(%p, %h) %y = Mul(%q, %x)",
           "%a = Mul(%r, %x) %e = Erf(%a) %p = Mul(%x, %e) %q = Add(%p, %x) %y = Mul(%q, %h)",
           "%i = Identity(%x) %a = Mul(%r, %i) %b = Identity(%a) %e = Erf(%b) %p = Add(%o, %e) "
           "%q = Mul(%h, %p) %y = Mul(%q, %x)",
       }) {
    SCOPED_TRACE(spelling);
    const auto made = assemble(kGelu + spelling + " output %y", 1e-5);
    EXPECT_THAT(made.text, HasSubstr("y = Gelu("));
    EXPECT_THAT(made.notes, IsEmpty());
  }
}

TEST(Gelu, EverySpellingByTanh) {
  const std::string numbers = kX + number("c", "0.044715") + number("r", "0.7978845608") +
                              number("d", "1.5957691216") + number("h", "0.5") + number("o", "1") +
                              number("three", "3");
  for (const char* spelling : {
           "%k = Pow(%x, %three) %m = Mul(%c, %k) %p = Add(%x, %m) %q = Mul(%r, %p) %u = Tanh(%q) "
           "%v = Add(%u, %o) %w = Mul(%x, %h) %y = Mul(%w, %v)",
           "%k = Mul(%x, %x) %l = Mul(%k, %x) %m = Mul(%l, %c) %p = Add(%m, %x) %q = Mul(%p, %r) "
           "%u = Tanh(%q) %v = Add(%o, %u) %w = Mul(%h, %v) %y = Mul(%x, %w)",
           "%k = Mul(%x, %x) %m = Mul(%k, %c) %p = Add(%m, %o) %l = Mul(%x, %r) %q = Mul(%l, %p) "
           "%u = Tanh(%q) %v = Mul(%u, %h) %w = Add(%v, %h) %y = Mul(%w, %x)",
           "%k = Pow(%x, %three) %m = Mul(%c, %k) %p = Add(%x, %m) %q = Mul(%d, %p) "
           "%u = Sigmoid(%q) %y = Mul(%x, %u)",
       }) {
    SCOPED_TRACE(spelling);
    EXPECT_THAT(assemble(numbers + spelling + " output %y").text,
                HasSubstr("y = Gelu(x) {approximate=\"tanh\"}"));
  }
}

TEST(Gelu, NearMisses) {
  const std::string pieces =
      "%a = Mul(%r, %x) %e = Erf(%a) %p = Add(%o, %e) %q = Mul(%h, %p) %y = Mul(%q, %x) ";
  const std::string off = kX + number("r", "0.7") + number("h", "0.5") + number("o", "1");
  EXPECT_EQ(assemble(off + pieces + "output %y").notes,
            (std::vector<std::string>{"Gelu: constant root: expected 0.7071068, found 0.7"}));
  EXPECT_EQ(assemble(kGelu + pieces + "output %y output %e").notes,
            (std::vector<std::string>{"Gelu: intermediate 'e' is an output of the graph"}));
  EXPECT_EQ(assemble(kGelu + pieces + "%z = Softmax(%p) name \"reader\" output %y output %z").notes,
            (std::vector<std::string>{"Gelu: shared intermediate 'p' is read by 'reader'"}));
}

TEST(Swish, WholeAndSpelledSigmoids) {
  const std::string numbers =
      kX + number("a", "1.702") + number("b", "0.5") + number("o", "1") + number("m", "-1.702");
  const auto text = [&](const std::string& spelling) {
    return assemble(numbers + spelling + " output %y").text;
  };
  EXPECT_EQ(text("%s = Sigmoid(%x) %y = Mul(%s, %x)"), "y = Swish(x)\n");
  EXPECT_EQ(text("%k = Mul(%x, %b) %s = Sigmoid(%k) %y = Mul(%s, %x)"),
            "y = Swish(x) {alpha=0.5}\n");
  EXPECT_EQ(text("%k = Mul(%x, %a) %s = Sigmoid(%k) %y = Mul(%x, %s)"),
            "y = com.microsoft::QuickGelu(x) {alpha=1.702}\n");
  EXPECT_EQ(text("%k = Neg(%x) %e = Exp(%k) %s = Add(%e, %o) %y = Div(%x, %s)"), "y = Swish(x)\n");
  EXPECT_EQ(text("%k = Mul(%x, %m) %e = Exp(%k) %s = Add(%o, %e) %q = Div(%o, %s) %y = Mul(%q, "
                 "%x)"),
            "y = com.microsoft::QuickGelu(x) {alpha=1.702}\n");
}

TEST(HardSwish, ByClipMinMaxAndHardSigmoid) {
  const std::string numbers = kX + number("three", "3") + number("six", "6") + number("zero", "0") +
                              number("sixth", "0.16666667");
  for (const char* spelling : {
           "%a = Add(%x, %three) %c = Clip(%a, %zero, %six) %m = Mul(%x, %c) %y = Div(%m, %six)",
           "%a = Add(%three, %x) %c = Clip(%a, %zero, %six) %m = Mul(%c, %sixth) %y = Mul(%m, %x)",
           "%a = Add(%x, %three) %b = Max(%a, %zero) %c = Min(%b, %six) %m = Mul(%x, %c) "
           "%y = Div(%m, %six)",
           "%a = Add(%x, %three) %b = Relu(%a) %c = Min(%six, %b) %m = Mul(%x, %c) "
           "%y = Div(%m, %six)",
           "%c = HardSigmoid(%x) {alpha = 0.16666667, beta = 0.5} %y = Mul(%c, %x)",
       }) {
    SCOPED_TRACE(spelling);
    EXPECT_EQ(assemble(numbers + spelling + " output %y").text, "y = HardSwish(x)\n");
  }
  EXPECT_EQ(assemble(kX + "%c = HardSigmoid(%x) %y = Mul(%c, %x) output %y").notes,
            (std::vector<std::string>{"HardSwish: constant alpha: expected 0.1666667, found 0.2"}));
}

TEST(Mish, WholeAndSpelledSoftplus) {
  EXPECT_EQ(assemble(kX + "%s = Softplus(%x) %t = Tanh(%s) %y = Mul(%x, %t) output %y").text,
            "y = Mish(x)\n");
  EXPECT_EQ(assemble(kX + number("o", "1") +
                     "%e = Exp(%x) %s = Add(%e, %o) %l = Log(%s) %t = Tanh(%l) %y = Mul(%t, %x) "
                     "output %y")
                .text,
            "y = Mish(x)\n");
}

// ---- Normalisations -----------------------------------------------------------------------------

const std::string kNorm =
    "input %x : fp32[n, 3, 4] const %ax : int64[1] dense [-1] const %g : fp32[4] dense [1, 2, -1, "
    "0.5] const %b : fp32[4] dense [0.5, -1, 2, 3] " +
    number("eps", "1e-5") + number("two", "2") + number("half", "0.5") + number("one", "1") +
    number("minus", "-0.5") + number("quarter", "0.25");
const std::string kMean = "%m = ReduceMean(%x, %ax) %d = Sub(%x, %m) ";
const std::string kVariance = kMean + "%q = Pow(%d, %two) %v = ReduceMean(%q, %ax) ";

TEST(LayerNormalization, EverySpelling) {
  for (const std::string& spelling : {
           kVariance + "%w = Add(%v, %eps) %s = Sqrt(%w) %n = Div(%d, %s) %k = Mul(%n, %g) "
                       "%y = Add(%k, %b)",
           kMean + "%q = Mul(%d, %d) %v = ReduceMean(%q, %ax) %w = Add(%eps, %v) %s = Sqrt(%w) "
                   "%n = Div(%d, %s) %k = Mul(%g, %n) %y = Add(%b, %k)",
           kVariance + "%w = Add(%v, %eps) %s = Sqrt(%w) %r = Reciprocal(%s) %n = Mul(%d, %r) "
                       "%k = Mul(%n, %g) %y = Add(%k, %b)",
           kVariance + "%w = Add(%v, %eps) %s = Pow(%w, %half) %r = Div(%one, %s) %n = Mul(%r, %d) "
                       "%k = Mul(%n, %g) %y = Add(%k, %b)",
           kVariance + "%w = Add(%v, %eps) %r = Pow(%w, %minus) %f = Mul(%r, %g) %k = Mul(%f, %d) "
                       "%y = Add(%k, %b)",
           kVariance + "%w = Add(%v, %eps) %s = Sqrt(%w) %f = Mul(%g, %d) %k = Div(%f, %s) "
                       "%y = Add(%k, %b)",
           std::string("%t = ReduceSum(%x, %ax) %m = Mul(%t, %quarter) %d = Sub(%x, %m) "
                       "%q = Mul(%d, %d) %u = ReduceSum(%q, %ax) %v = Mul(%u, %quarter) "
                       "%w = Add(%v, %eps) %s = Sqrt(%w) %n = Div(%d, %s) %k = Mul(%n, %g) "
                       "%y = Add(%k, %b)"),
       }) {
    SCOPED_TRACE(spelling);
    const auto made = assemble(kNorm + spelling + " output %y", 2e-5);
    EXPECT_EQ(made.text,
              "y = LayerNormalization(x, [1, 2, -1, 0.5], [0.5, -1, 2, 3]) {axis=-1, "
              "epsilon=1e-05}\n");
    EXPECT_THAT(made.notes, IsEmpty());
  }
}

TEST(LayerNormalization, WithoutScaleOrBias) {
  const std::string normal = kVariance + "%w = Add(%v, %eps) %s = Sqrt(%w) ";
  EXPECT_EQ(assemble(kNorm + normal + "%y = Div(%d, %s) output %y").text,
            "y = LayerNormalization(x, [1, 1, 1, 1]) {axis=-1, epsilon=1e-05}\n");
  EXPECT_EQ(assemble(kNorm + normal + "%n = Div(%d, %s) %y = Mul(%n, %g) output %y").text,
            "y = LayerNormalization(x, [1, 2, -1, 0.5]) {axis=-1, epsilon=1e-05}\n");
  EXPECT_EQ(assemble(kNorm + normal + "%n = Div(%d, %s) %y = Add(%n, %b) output %y").text,
            "y = LayerNormalization(x, [1, 1, 1, 1], [0.5, -1, 2, 3]) {axis=-1, "
            "epsilon=1e-05}\n");
}

std::string layer_with(const std::string& first, const std::string& second,
                       const std::string& constants = "") {
  return kNorm + constants + "%m = ReduceMean(%x, " + first + " name \"mean\" %d = Sub(%x, %m) " +
         "%q = Mul(%d, %d) %v = ReduceMean(%q, " + second +
         " name \"variance\" %w = Add(%v, %eps) %s = Sqrt(%w) %n = Div(%d, %s) "
         "%k = Mul(%n, %g) %y = Add(%k, %b) output %y";
}

TEST(LayerNormalization, NearMisses) {
  // Sizes at which keepdims=0 broadcasts all the same.
  const std::string square = "input %x : fp32[4, 4, 4]";
  const auto notes = [&](std::string statements) {
    return assemble(statements.replace(0, square.size() + 1, square + " ")).notes;
  };
  EXPECT_THAT(notes(layer_with("%ax) {keepdims = 0}", "%ax)")),
              Contains("LayerNormalization: 'mean' has keepdims=0: the mean stands in other places "
                       "of its rows"));
  EXPECT_THAT(notes(layer_with("%ax)", "%ax) {keepdims = 0}")),
              Contains("LayerNormalization: 'variance' has keepdims=0: the mean stands in other "
                       "places of its rows"));
  const std::string outer = "const %o : int64[2] dense [0, 2] ";
  EXPECT_EQ(assemble(layer_with("%o)", "%o)", outer)).notes,
            (std::vector<std::string>{
                "LayerNormalization: 'mean' has axes [0, 2]: expected the last ones"}));
  const std::string both = "const %o : int64[2] dense [-2, -1] ";
  EXPECT_THAT(assemble(layer_with("%o)", "%ax)", both)).notes,
              Contains("LayerNormalization: 'mean' and 'variance' have other axes"));
  EXPECT_THAT(assemble(layer_with("%o)", "%o)", both)).text, HasSubstr("{axis=-2, epsilon=1e-05}"))
      << "a row of scales for two axes is spread over both: twelve elements, by name";
}

TEST(LayerNormalization, ParametersThatDoNotBroadcast) {
  const auto made = assemble(
      kNorm + "const %wide : fp32[2, 1, 1, 4] dense [1, 2, 3, 4, 5, 6, 7, 8] " + kVariance +
      "%w = Add(%v, %eps) %s = Sqrt(%w) %n = Div(%d, %s) %y = Mul(%n, %wide) output %y");
  EXPECT_EQ(made.notes,
            (std::vector<std::string>{"LayerNormalization: scale 'wide' of shape [2, 1, 1, 4] does "
                                      "not broadcast to the input [n, 3, 4]"}));
  EXPECT_THAT(made.text, HasSubstr("n = LayerNormalization(x, [1, 1, 1, 1])"));
}

TEST(LayerNormalization, ASumIsNoMeanByAnotherFactor) {
  const auto made =
      assemble(kNorm +
               "%t = ReduceSum(%x, %ax) name \"sum\" %m = Mul(%t, %half) %d = Sub(%x, %m) "
               "%q = Mul(%d, %d) %v = ReduceMean(%q, %ax) %w = Add(%v, %eps) %s = Sqrt(%w) "
               "%y = Div(%d, %s) output %y");
  EXPECT_EQ(made.notes,
            (std::vector<std::string>{"LayerNormalization: the sum 'sum' over 4 elements is "
                                      "multiplied by 0.5: no mean"}));
  EXPECT_EQ(made.covers, (std::vector<std::string>{"RMSNormalization"}))
      << "of what is left of the rows";
}

TEST(LayerNormalization, AResidualSumIsNoBias) {
  const auto made = assemble(kNorm + "input %z : fp32[n, 3, 4] " + kVariance +
                             "%w = Add(%v, %eps) %s = Sqrt(%w) %n = Div(%d, %s) %y = Add(%n, %z) "
                             "output %y");
  EXPECT_THAT(made.text, HasSubstr("n = LayerNormalization(x"));
  EXPECT_THAT(made.notes, IsEmpty());
}

TEST(RmsNormalization, EverySpelling) {
  const std::string root = "%q = Mul(%x, %x) %v = ReduceMean(%q, %ax) %w = Add(%v, %eps) ";
  for (const char* spelling : {
           "%s = Sqrt(%w) %n = Div(%x, %s) %y = Mul(%n, %g)",
           "%s = Sqrt(%w) %r = Reciprocal(%s) %n = Mul(%r, %x) %y = Mul(%g, %n)",
           "%s = Sqrt(%w) %r = Div(%one, %s) %n = Mul(%x, %r) %y = Mul(%n, %g)",
           "%r = Pow(%w, %minus) %n = Mul(%x, %r) %y = Mul(%n, %g)",
       }) {
    SCOPED_TRACE(spelling);
    EXPECT_EQ(assemble(kNorm + root + spelling + " output %y").text,
              "y = RMSNormalization(x, [1, 2, -1, 0.5]) {axis=-1, epsilon=1e-05}\n");
  }
}

TEST(RmsNormalization, InAWiderTypeThanItsInput) {
  const auto made = assemble(
      "input %given : fp32[n, 4] const %ax : int64[1] dense [-1] const %g : fp16[4] dense [1, 2, "
      "-1, 0.5] " +
          number("eps", "1e-5") +
          "%x = Cast(%given) {to = 10} %c = Cast(%x) {to = 1} %q = Mul(%c, %c) "
          "%v = ReduceMean(%q, %ax) %w = Add(%v, %eps) %s = Sqrt(%w) %n = Div(%c, %s) "
          "%h = Cast(%n) {to = 10} %z = Mul(%h, %g) %y = Cast(%z) {to = 1} output %y",
      2e-3);
  EXPECT_THAT(made.text, HasSubstr("z = RMSNormalization(x, [1, 2, -1, 0.5])"));
}

TEST(BatchNormalization, OfConstantsByChannel) {
  const std::string statements =
      "input %x : fp32[n, 2, 3] const %m : fp32[2, 1] dense [1, -2] const %k : fp32[2, 1] dense "
      "[0.5, 3] const %g : fp32[1, 2, 1] dense [2, -1] const %b : fp32[2, 1] dense [4, 5] ";
  EXPECT_EQ(assemble(statements + "%d = Sub(%x, %m) %s = Mul(%d, %k) %t = Mul(%s, %g) "
                                  "%y = Add(%t, %b) output %y")
                .text,
            "y = BatchNormalization(x, [1, -3], [4, 5], [1, -2], [1, 1]) {epsilon=0.0}\n");
  EXPECT_EQ(
      assemble(statements + "%d = Sub(%x, %m) %s = Div(%d, %k) %y = Add(%b, %s) output %y", 1e-5)
          .covers,
      std::vector<std::string>{"BatchNormalization"});
  const auto last = assemble(
      "input %x : fp32[n, 2, 3] const %m : fp32[3] dense [1, 2, 3] const %k : fp32[3] dense "
      "[1, 2, 3] %d = Sub(%x, %m) %s = Mul(%d, %k) %y = Add(%s, %m) output %y");
  EXPECT_THAT(last.notes,
              Contains("BatchNormalization: mean 'm' has not one element for each channel of 'y'"));
  EXPECT_THAT(last.covers, IsEmpty());
}

TEST(BatchNormalization, StaysInTheRangeOfFp16) {
  const auto made = assemble(
      "input %x : fp16[n, 2, 3] const %m : fp16[2, 1] dense [1, -2] const %k : fp16[2, 1] dense "
      "[2000, 1] const %g : fp16[2, 1] dense [60, 1] const %b : fp16[2, 1] dense [4, 5] "
      "%d = Sub(%x, %m) %s = Mul(%d, %k) %t = Mul(%s, %g) %y = Add(%t, %b) output %y");
  EXPECT_THAT(made.notes, Contains("BatchNormalization: the scale of channel 0 is 120000, out of "
                                   "the range of fp16"));
  EXPECT_THAT(made.covers, IsEmpty());
}

// ---- Softmax, products --------------------------------------------------------------------------

TEST(Softmax, SpelledOut) {
  const std::string x = "input %x : fp32[n, 3, 4] const %ax : int64[1] dense [1] ";
  EXPECT_EQ(assemble(x + "%m = ReduceMax(%x, %ax) %d = Sub(%x, %m) %e = Exp(%d) "
                         "%s = ReduceSum(%e, %ax) %y = Div(%e, %s) output %y")
                .text,
            "y = Softmax(x) {axis=1}\n");
  EXPECT_EQ(assemble(x + "%e = Exp(%x) %s = ReduceSum(%e, %ax) %y = Div(%e, %s) output %y").notes,
            (std::vector<std::string>{"Softmax: no maximum is subtracted: exp may overflow"}));
}

TEST(Products, BiasOfAConvolution) {
  const std::string conv =
      "input %x : fp32[n, 2, 4] const %w : fp32[3, 2, 1] dense [1, 2, 3, 4, 5, 6] "
      "%c = Conv(%x, %w) name \"conv\" ";
  EXPECT_EQ(
      assemble(conv + "const %b : fp32[1, 3, 1] dense [1, 2, 3] %y = Add(%b, %c) output %y").text,
      "y = Conv(x, [1, 2, 3, 4, 5, 6], [1, 2, 3])\n");
  EXPECT_THAT(
      assemble(conv + "const %b : fp32[4] dense [1, 2, 3, 4] %y = Add(%b, %c) output %y").notes,
      Contains("Conv: bias 'b' has not one element for each channel"));
  EXPECT_THAT(
      assemble(conv + "const %b : fp32[2, 1, 1, 1] dense [1, 2] %y = Add(%b, %c) output %y").notes,
      Contains("Conv: bias 'b' widens the result of 'conv'"));
}

TEST(Products, BiasOfAProduct) {
  const std::string product =
      "input %x : fp32[n, 2] const %w : fp32[2, 1] dense [1, 2] const %b : fp32[1] dense [3] "
      "const %wide : fp32[1, 4] dense [1, 2, 3, 4] " +
      number("a", "0.5") + "%m = MatMul(%x, %w) name \"mm\" ";
  EXPECT_EQ(assemble(product + "%y = Add(%m, %b) output %y").text, "y = Gemm(x, [1, 2], [3])\n");
  EXPECT_EQ(assemble(product + "%s = Mul(%m, %a) %y = Add(%b, %s) output %y").text,
            "y = Gemm(x, [1, 2], [3]) {alpha=0.5}\n");
  EXPECT_THAT(assemble(product + "%s = Mul(%m, %a) %y = Add(%s, %wide) output %y").notes,
              Contains("Gemm: bias 'wide' widens the result of 'mm'"));
}

// ---- Rotary embedding ---------------------------------------------------------------------------

const std::string kRotary =
    "input %x : fp32[n, 3, 5, 4] input %angle : fp32[n, 1, 5, 2] const %lo : int64[1] dense [0] "
    "const %mid : int64[1] dense [2] const %hi : int64[1] dense [9223372036854775807] "
    "const %ax : int64[1] dense [3] ";
const std::string kTables =
    "%c = Cos(%angle) %s = Sin(%angle) %cc = Concat(%c, %c) {axis = -1} %ss = Concat(%s, %s) "
    "{axis = -1} ";
const std::string kTurn =
    "%u = Slice(%x, %mid, %hi, %ax) %v = Slice(%x, %lo, %mid, %ax) %neg = Neg(%u) "
    "%t = Concat(%neg, %v) {axis = -1} ";
const std::string kSum = "%p = Mul(%x, %cc) %q = Mul(%ss, %t) %y = Add(%p, %q) output %y";

TEST(RotaryEmbedding, AsLlamaSpellsIt) {
  const auto made = assemble(kRotary + kTables + kTurn + kSum);
  EXPECT_THAT(made.text, HasSubstr("y = RotaryEmbedding(x, "));
  EXPECT_THAT(made.notes, IsEmpty());
}

TEST(RotaryEmbedding, TablesThatAreWhole) {
  // cos(concat(a, a)) has no half of its own: one is sliced out.
  const auto made =
      assemble(kRotary + "%e = Concat(%angle, %angle) {axis = -1} %cc = Cos(%e) %ss = Sin(%e) " +
               kTurn + kSum);
  EXPECT_THAT(made.text, HasSubstr("Slice(cc, "));
  EXPECT_THAT(made.text, HasSubstr("y = RotaryEmbedding(x, "));
}

TEST(RotaryEmbedding, NearMisses) {
  EXPECT_THAT(assemble(kRotary + "input %cc : fp32[n, 1, 5, 4] input %ss : fp32[n, 1, 5, 4] " +
                       kTurn + kSum)
                  .notes,
              Contains("RotaryEmbedding: the halves of cosine 'cc' are not known to be equal"));
  const std::string other =
      "%u = Slice(%x, %one, %hi, %ax) %v = Slice(%x, %lo, %one, %ax) %neg = Neg(%u) "
      "%t = Concat(%neg, %v) {axis = -1} ";
  EXPECT_THAT(assemble(kRotary + "const %one : int64[1] dense [1] " + kTables + other + kSum).notes,
              Contains("RotaryEmbedding: 'x' is cut at 1 and 1: expected two halves of 4"));
}

}  // namespace
}  // namespace tessera::passes
