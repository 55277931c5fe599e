#include "base/dim_expr.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

namespace tessera {
namespace {

Dim symbol(const char* name) {
  return Dim::symbol(name);
}

Dim parsed(std::string_view text) {
  auto dim = parse_dim(text);
  EXPECT_TRUE(dim.has_value()) << text << ": " << dim.error().to_string();
  return dim.value_or(Dim(-999));
}

std::string parse_error(std::string_view text) {
  auto dim = parse_dim(text);
  EXPECT_FALSE(dim.has_value()) << text << " parsed as " << dim->to_string();
  return dim ? "" : dim.error().to_string();
}

TEST(DimTest, CanonicalSums) {
  const Dim h = symbol("h");
  const Dim w = symbol("w");
  EXPECT_EQ((h + w).to_string(), "h + w");
  EXPECT_EQ((w + h).to_string(), "h + w");
  EXPECT_EQ(h + w, w + h);
  EXPECT_EQ(h - h, Dim(0));
  EXPECT_EQ((h + w) * (h - w), h * h - w * w);
  EXPECT_EQ(((h + 1) * 2 - 3).to_string(), "2*h - 1");
  EXPECT_EQ((Dim(3) - h).to_string(), "-h + 3");
  EXPECT_EQ((h * w * 2 + h).to_string(), "2*h*w + h");
  EXPECT_EQ(Dim(INT64_MIN).to_string(), "-9223372036854775808");
  EXPECT_EQ(Dim(), Dim(0));
  EXPECT_NE(h, w);
  EXPECT_NE(h, Dim(0));
}

TEST(DimTest, Accessors) {
  const Dim h = symbol("h");
  EXPECT_EQ(Dim(4).constant(), 4);
  EXPECT_FALSE(h.constant().has_value());
  EXPECT_EQ((h - h + 5).constant(), 5);
  EXPECT_EQ(h.as_symbol(), "h");
  EXPECT_FALSE((h + 1).as_symbol().has_value());
  EXPECT_FALSE((h * 2).as_symbol().has_value());
  EXPECT_FALSE((h * h).as_symbol().has_value());
  EXPECT_FALSE(Dim(3).as_symbol().has_value());
  std::set<std::string, std::less<>> names;
  parsed("b*floordiv(h + 1, w) + min(c, 7)").collect_symbols(names);
  EXPECT_EQ(names, (std::set<std::string, std::less<>>{"b", "c", "h", "w"}));
}

struct Rewrite {
  const char* from;
  const char* to;
};

class DimRewriteTest : public testing::TestWithParam<Rewrite> {};

TEST_P(DimRewriteTest, SimplifiesTo) {
  EXPECT_EQ(parsed(GetParam().from).to_string(), GetParam().to);
}

INSTANTIATE_TEST_SUITE_P(
    FloorDiv, DimRewriteTest,
    testing::Values(Rewrite{"floordiv(h, 1)", "h"}, Rewrite{"floordiv(h, -1)", "-h"},
                    Rewrite{"floordiv(0, h)", "0"}, Rewrite{"floordiv(7, 2)", "3"},
                    Rewrite{"floordiv(-7, 2)", "-4"}, Rewrite{"floordiv(h, h)", "1"},
                    Rewrite{"floordiv(2*h + 3, 2)", "h + 1"},
                    Rewrite{"floordiv(4*h + w, 4)", "h + floordiv(w, 4)"},
                    Rewrite{"floordiv(5*h + 3, 2)", "2*h + floordiv(h + 1, 2) + 1"},
                    Rewrite{"floordiv(2*h + 1, 4)", "floordiv(h, 2)"},
                    Rewrite{"floordiv(floordiv(h, 2), 3)", "floordiv(h, 6)"},
                    Rewrite{"floordiv(floordiv(h + 1, 2) + 1, 2)", "floordiv(h + 3, 4)"},
                    Rewrite{"floordiv(h, -2)", "-h + floordiv(h, 2)"},
                    Rewrite{"floordiv(b*h*w, b)", "h*w"}, Rewrite{"floordiv(6*b*h, 2*b)", "3*h"},
                    Rewrite{"floordiv(b*h + w, b)", "h + floordiv(w, b)"},
                    Rewrite{"floordiv((h + 1)*w, h + 1)", "w"},
                    Rewrite{"floordiv(h, 0)", "floordiv(h, 0)"}));

INSTANTIATE_TEST_SUITE_P(
    CeilDivAndMod, DimRewriteTest,
    testing::Values(Rewrite{"ceildiv(h, 2)", "floordiv(h + 1, 2)"}, Rewrite{"ceildiv(7, 2)", "4"},
                    Rewrite{"ceildiv(-7, 2)", "-3"},
                    Rewrite{"ceildiv(ceildiv(h, 2), 2)", "floordiv(h + 3, 4)"},
                    Rewrite{"ceildiv(h, w)", "ceildiv(h, w)"}, Rewrite{"ceildiv(w*h, w)", "h"},
                    Rewrite{"mod(h, 1)", "0"}, Rewrite{"mod(4*h, 2)", "0"},
                    Rewrite{"mod(4*h + 3, 2)", "1"}, Rewrite{"mod(5*h + 7, 4)", "mod(h + 3, 4)"},
                    Rewrite{"mod(2*h + 1, 4)", "2*mod(h, 2) + 1"}, Rewrite{"mod(-7, 4)", "1"},
                    Rewrite{"mod(7, -4)", "-1"}, Rewrite{"mod(mod(h, 4), 2)", "mod(h, 2)"},
                    Rewrite{"mod(mod(h, 2), 4)", "mod(h, 2)"}, Rewrite{"mod(h*w, w)", "0"},
                    Rewrite{"mod(h*w + b, w)", "mod(b, w)"}));

INSTANTIATE_TEST_SUITE_P(
    MinMaxBroadcast, DimRewriteTest,
    testing::Values(Rewrite{"min(h, h)", "h"}, Rewrite{"min(3, 5)", "3"}, Rewrite{"max(3, 5)", "5"},
                    Rewrite{"min(w, h)", "min(h, w)"}, Rewrite{"min(h, h + 1)", "h"},
                    Rewrite{"max(h - 2, h)", "h"}, Rewrite{"min(min(h, 4), 2)", "min(h, 2)"},
                    Rewrite{"max(c, max(b, a))", "max(max(a, b), c)"},
                    Rewrite{"broadcast(1, h)", "h"}, Rewrite{"broadcast(h, 1)", "h"},
                    Rewrite{"broadcast(h, h)", "h"}, Rewrite{"broadcast(h, 5)", "5"},
                    Rewrite{"broadcast(w, h)", "broadcast(h, w)"},
                    Rewrite{"broadcast(broadcast(h, w), h)", "broadcast(h, w)"},
                    Rewrite{"broadcast(3, 2)", "broadcast(2, 3)"}));

TEST(DimTest, ExactDivision) {
  EXPECT_EQ(parsed("6*h*w + 4*w").exact_div(parsed("2*w")), parsed("3*h + 2"));
  EXPECT_EQ(parsed("h*h - w*w").exact_div(parsed("h - w")), parsed("h + w"));
  EXPECT_EQ(Dim(12).exact_div(Dim(-4)), Dim(-3));
  EXPECT_EQ(Dim(0).exact_div(parsed("h")), Dim(0));
  EXPECT_FALSE(parsed("3*h").exact_div(Dim(2)).has_value());
  EXPECT_FALSE(parsed("h").exact_div(Dim(0)).has_value());
  EXPECT_FALSE(parsed("h + 1").exact_div(parsed("h")).has_value());
  EXPECT_FALSE(Dim(INT64_MIN).exact_div(Dim(-1)).has_value());
}

TEST(DimTest, EvaluationErrors) {
  EXPECT_EQ(parsed("h*w").evaluate({{"h", 2}}).error().to_string(), "symbol 'w' has no value");
  EXPECT_EQ(parsed("floordiv(h, w)").evaluate({{"h", 2}, {"w", 0}}).error().to_string(),
            "division by zero in floordiv(2, 0)");
  EXPECT_EQ(parsed("mod(h, 0)").evaluate({{"h", 2}}).error().to_string(),
            "division by zero in mod(2, 0)");
  EXPECT_EQ(parsed("h*h").evaluate({{"h", INT64_MAX}}).error().to_string(),
            "the value of a dimension exceeds 64 bits");
  EXPECT_EQ(parsed("h + w").evaluate({{"h", INT64_MAX}, {"w", 1}}).error().code,
            ErrorCode::kOutOfRange);
  EXPECT_EQ(parsed("broadcast(h, w)").evaluate({{"h", 2}, {"w", 3}}).error().to_string(),
            "sizes 2 and 3 do not broadcast");
  EXPECT_EQ(broadcast(Dim(2), Dim(3)).error().to_string(), "sizes 2 and 3 do not broadcast");
}

TEST(DimTest, IntermediateSumsMayExceed64Bits) {
  const SymbolBindings at = {{"h", INT64_MAX}, {"w", INT64_MAX}, {"x", INT64_MAX}};
  EXPECT_EQ(parsed("h + w - x").evaluate(at), INT64_MAX);
}

TEST(DimTest, TooLargeExpressionsStayBounded) {
  const Dim overflow = Dim(INT64_MAX) + Dim(1);
  EXPECT_FALSE(overflow.is_constant());
  EXPECT_EQ(overflow.evaluate({}).error().to_string(),
            "the expression of a dimension is too large");
  EXPECT_EQ(overflow + 1, overflow);
  EXPECT_EQ(overflow - overflow, overflow);
  EXPECT_EQ(floordiv(overflow, 2), overflow);
  EXPECT_EQ(parsed(overflow.to_string()), overflow);
  EXPECT_EQ(overflow.range({}), (SymbolRange{INT64_MIN, INT64_MAX}));
  Dim squared = symbol("h") + symbol("w");
  for (int i = 0; i < 30; ++i) squared = squared * squared;
  EXPECT_EQ(squared, overflow);
  Dim shared = symbol("h");
  for (int i = 0; i < 60; ++i) shared = min(shared * symbol("w"), shared + 3);
  EXPECT_EQ(shared, overflow);
}

TEST(DimTest, DeepExpressionsPrintAndParse) {
  Dim deep = symbol("h");
  for (int i = 0; i < 600; ++i) deep = floordiv(deep, symbol("w"));
  ASSERT_TRUE(deep.evaluate({{"h", 5}, {"w", 1}}).has_value());
  EXPECT_EQ(parsed(deep.to_string()), deep);
}

TEST(DimTest, Substitution) {
  const Dim dim = parsed("2*h + floordiv(w + 1, 2)");
  EXPECT_EQ(dim.substitute({{"w", Dim(7)}}), parsed("2*h + 4"));
  EXPECT_EQ(dim.substitute({{"w", parsed("2*b + 1")}, {"h", symbol("w")}}), parsed("2*w + b + 1"));
  EXPECT_EQ(dim.substitute({}), dim);
  EXPECT_EQ(Dim(3).substitute({{"w", Dim(7)}}), Dim(3));
}

TEST(DimTest, SymbolsThatAreNotIdentifiers) {
  const std::string names[] = {"p2o.Dim.0", "batch size", "",        "a`b",        "a\\b",
                               "1h",        "h w*2",      "höhe",    "two\nlines", "\x1b[2J",
                               "\xff",      "\\x41",      "\xc2\x9b"};
  for (const std::string& name : names) {
    const Dim dim = Dim::symbol(name) * 2 + 1;
    EXPECT_EQ(parsed(dim.to_string()), dim) << name;
    EXPECT_EQ(parsed(Dim::symbol(name).to_string()).as_symbol(), name);
  }
  EXPECT_EQ(Dim::symbol("p2o.Dim.0").to_string(), "`p2o.Dim.0`");
  EXPECT_EQ(Dim::symbol("a\n\xff").to_string(), "`a\\x0a\\xff`");
  EXPECT_EQ(Dim::symbol("a`b\\").to_string(), "`a\\`b\\\\`");
  EXPECT_EQ(parsed("min").as_symbol(), "min");
}

TEST(DimTest, ParseErrors) {
  EXPECT_EQ(parse_error(""),
            "expected a number, a symbol, '-' or '(' in a dimension, found the end of the text");
  EXPECT_EQ(parse_error("h +"),
            "expected a number, a symbol, '-' or '(' in a dimension, found the end of the text");
  EXPECT_EQ(parse_error("h h"), "expected the end of a dimension, found 'h'");
  EXPECT_EQ(parse_error("(h"), "expected ')' in a dimension, found the end of the text");
  EXPECT_EQ(parse_error("floordiv(h)"), "expected ',' in a dimension, found ')'");
  EXPECT_EQ(parse_error("floordiv(h, 2"), "expected ')' in a dimension, found the end of the text");
  EXPECT_EQ(parse_error("gcd(h, 2)"),
            "expected one of floordiv, ceildiv, mod, min, max and broadcast in a dimension, found "
            "'gcd(h, 2)'");
  EXPECT_EQ(parse_error("`h"), "expected a closing '`' in a dimension, found '`h'");
  EXPECT_EQ(parse_error("9223372036854775808"),
            "the number 9223372036854775808 in a dimension exceeds 64 bits");
  EXPECT_EQ(parse_error(std::string(100000, '(')), "a dimension nests deeper than 2112 levels");
  EXPECT_EQ(parse_error(std::string(100000, '-')), "a dimension nests deeper than 2112 levels");
}

TEST(DimTest, Ranges) {
  const SymbolTable symbols = {{"h", {1, 10}}, {"w", {0, 4}}, {"x", {-3, 5}}, {"u", {}}};
  const auto range = [&](const char* text) { return parsed(text).range(symbols); };
  EXPECT_EQ(range("h + w"), (SymbolRange{1, 14}));
  EXPECT_EQ(range("h - w"), (SymbolRange{-3, 10}));
  EXPECT_EQ(range("h*x"), (SymbolRange{-30, 50}));
  EXPECT_EQ(range("floordiv(h + 1, 2)"), (SymbolRange{1, 5}));
  EXPECT_EQ(range("mod(h, 4)"), (SymbolRange{0, 3}));
  EXPECT_EQ(range("mod(w, 7)"), (SymbolRange{0, 4}));
  EXPECT_EQ(range("min(h, 4)"), (SymbolRange{1, 4}));
  EXPECT_EQ(range("max(h, x)"), (SymbolRange{1, 10}));
  EXPECT_EQ(range("broadcast(h, w)"), (SymbolRange{0, 10}));
  EXPECT_EQ(range("2*u"), (SymbolRange{0, INT64_MAX}));
  EXPECT_EQ(range("2*u - 5"), (SymbolRange{-5, INT64_MAX}));
  EXPECT_EQ(range("3 - u"), (SymbolRange{INT64_MIN, 3}));
  EXPECT_EQ(range("unknown"), (SymbolRange{0, INT64_MAX}));
  EXPECT_EQ(range("floordiv(u, h)"), (SymbolRange{0, INT64_MAX}));
  EXPECT_EQ(range("7"), (SymbolRange{7, 7}));
}

// A random expression, as a dim and as direct arithmetic at one point. nothing: the direct
// arithmetic has no value there.
struct RandomExpression {
  Dim dim;
  std::function<std::optional<std::int64_t>(const SymbolBindings&)> value;
};

using Value = std::optional<std::int64_t>;

Value direct(int op, Value a, Value b) {
  if (!a || !b) return std::nullopt;
  const auto floor = [&] {
    const std::int64_t q = *a / *b;
    return q * *b == *a || (*a < 0) == (*b < 0) ? q : q - 1;
  };
  switch (op) {
    case 0: return *a + *b;
    case 1: return *a - *b;
    case 2: return *a * *b;
    case 3: return *b == 0 ? Value() : floor();
    case 4: return *b == 0 ? Value() : *a - floor() * *b;
    case 5: return *b == 0 ? Value() : floor() + (*a - floor() * *b != 0 ? 1 : 0);
    case 6: return std::min(*a, *b);
    case 7: return std::max(*a, *b);
    default: return *a == *b || *b == 1 ? a : *a == 1 ? b : Value();
  }
}

Dim build(int op, const Dim& a, const Dim& b) {
  switch (op) {
    case 0: return a + b;
    case 1: return a - b;
    case 2: return a * b;
    case 3: return floordiv(a, b);
    case 4: return mod(a, b);
    case 5: return ceildiv(a, b);
    case 6: return min(a, b);
    case 7: return max(a, b);
    default: return Dim::combine(Dim::Op::kBroadcast, a, b);
  }
}

RandomExpression random_expression(std::mt19937& random, int depth) {
  const int kind = static_cast<int>(random() % 6);
  if (depth == 0 || kind == 0) {
    if (random() % 2 == 0) {
      const std::int64_t constant = static_cast<std::int64_t>(random() % 9) - 2;
      return {Dim(constant), [constant](const SymbolBindings&) { return Value(constant); }};
    }
    const std::string name(1, static_cast<char>('a' + random() % 3));
    return {Dim::symbol(name), [name](const SymbolBindings& at) { return Value(at.at(name)); }};
  }
  const int op = static_cast<int>(random() % 9);
  const auto a = random_expression(random, depth - 1);
  const auto b = random_expression(random, depth - 1);
  return {build(op, a.dim, b.dim), [op, left = a.value, right = b.value](const SymbolBindings& at) {
            return direct(op, left(at), right(at));
          }};
}

TEST(DimPropertyTest, EvaluatesLikeDirectArithmeticAndPrintsExactly) {
  constexpr unsigned kSeed = 20240611;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937 random(kSeed);
  int compared = 0;
  for (int i = 0; i < 4000; ++i) {
    const auto expression = random_expression(random, 4);
    const std::string text = expression.dim.to_string();
    ASSERT_EQ(parsed(text), expression.dim) << text;
    ASSERT_EQ(parsed(text).to_string(), text);
    SymbolTable symbols;
    for (const char* name : {"a", "b", "c"}) {
      const std::int64_t low = static_cast<std::int64_t>(random() % 8) - 3;
      symbols[name] = {low, low + static_cast<std::int64_t>(random() % 6)};
    }
    const SymbolRange range = expression.dim.range(symbols);
    for (int point = 0; point < 12; ++point) {
      SymbolBindings at;
      std::map<std::string, Dim, std::less<>> constants;
      for (const auto& [name, bounds] : symbols) {
        const auto width = static_cast<std::uint64_t>(bounds.max - bounds.min + 1);
        at[name] = bounds.min + static_cast<std::int64_t>(random() % width);
        constants[name] = Dim(at[name]);
      }
      const Value expected = expression.value(at);
      if (!expected) continue;
      ++compared;
      const auto found = expression.dim.evaluate(at);
      ASSERT_TRUE(found.has_value()) << text << ": " << found.error().to_string();
      ASSERT_EQ(*found, *expected) << text;
      ASSERT_EQ(expression.dim.substitute(constants), Dim(*expected)) << text;
      ASSERT_LE(range.min, *expected) << text;
      ASSERT_GE(range.max, *expected) << text;
    }
  }
  EXPECT_GT(compared, 10000);
}

// A sum of random summands, added in the order `order` gives, with each product in random order as
// well.
TEST(DimPropertyTest, OrderOfConstructionDoesNotMatter) {
  constexpr unsigned kSeed = 7;
  std::mt19937 random(kSeed);
  for (int i = 0; i < 500; ++i) {
    std::vector<std::pair<Dim, Dim>> products;
    for (int k = 0; k < 5; ++k) {
      products.emplace_back(random_expression(random, 2).dim, random_expression(random, 2).dim);
    }
    Dim forwards = 0;
    for (const auto& [a, b] : products) forwards = forwards + a * b;
    std::shuffle(products.begin(), products.end(), random);
    Dim shuffled = 0;
    for (const auto& [a, b] : products) shuffled = b * a + shuffled;
    ASSERT_EQ(forwards, shuffled) << "seed " << kSeed;
    ASSERT_EQ(forwards.to_string(), shuffled.to_string());
    ASSERT_FALSE(forwards < shuffled || shuffled < forwards);
  }
}

TEST(DimPropertyTest, MinMaxAndBroadcastDoNotDependOnGrouping) {
  std::mt19937 random(11);
  for (const auto op : {Dim::Op::kMin, Dim::Op::kMax, Dim::Op::kBroadcast}) {
    for (int i = 0; i < 300; ++i) {
      std::vector<Dim> operands;
      for (int k = 0; k < 4; ++k) operands.push_back(random_expression(random, 2).dim);
      const Dim left = Dim::combine(
          op, Dim::combine(op, Dim::combine(op, operands[0], operands[1]), operands[2]),
          operands[3]);
      const Dim right =
          Dim::combine(op, operands[3],
                       Dim::combine(op, operands[1], Dim::combine(op, operands[2], operands[0])));
      ASSERT_EQ(left, right) << left.to_string() << " and " << right.to_string();
    }
  }
}

}  // namespace
}  // namespace tessera
