#include "ir/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/op_table.h"
#include "testing/random_module.h"

namespace tessera::ir {
namespace {

using testing::Random;
using testing::RandomModule;

constexpr const char* kSmall = R"(tessera.ir 1
module "small" {
  meta "producer" = "by hand"
  symbol "batch" in [1, 8]
  symbol "p2o.Dim.0" in [0, inf]
  source 0 = "conv1" : "Conv"
  source 1 = "relu1" : "Relu"
  method "main" graph "g" weight 1 {
    input %x : fp32[batch, 3, `p2o.Dim.0`, 8]
    const %w : fp32[2, 3, 1, 1] dense [1, -2.5, 0.1, 0x7fc00000, 0, 1e-07]
    %"y 1" = Conv(%x, %w) {group = 1, kernel_shape = [1, 1]} : fp32[batch, 2, `p2o.Dim.0`, 8] name "conv1" origins [0]
    %z = Relu(%"y 1") : fp32[batch, 2, `p2o.Dim.0`, 8] name "relu1" origins [0, 1]
    output %z
    state "x" -> "z" initial none
  }
}
)";

Module parsed(std::string_view text) {
  auto module = parse(text);
  EXPECT_TRUE(module) << module.error().to_string();
  return module ? *std::move(module) : Module{};
}

std::string parse_error(std::string_view text) {
  const auto module = parse(text);
  EXPECT_FALSE(module);
  return module ? "" : module.error().to_string();
}

// The text around one statement of a method, which stands in line 4.
std::string statement_error(std::string_view statement) {
  return parse_error("tessera.ir 1\nmodule \"m\" {\nmethod \"main\" {\n" + std::string(statement) +
                     "\n}\n}\n");
}

TEST(IrText, PrintsAndParsesBackTheSameText) {
  EXPECT_EQ(print(parsed(kSmall)), kSmall);
}

TEST(IrText, CarriesSequencesOptionalsAndMaps) {
  constexpr const char* kText = R"(tessera.ir 1
module "m" {
  symbol "n" in [0, inf]
  source 0 = "a" : "SequenceAt"
  method "main" graph "" weight 1 {
    input %s : seq(fp32[n, 2])
    input %o : opt(seq(string[?]))
    input %m : seq(map(string, fp32))
    const %i : int64[] dense [-1]
    %x = SequenceAt(%s, %i) : fp32[?] name "a" origins [0]
    %e = Optional() {type = type fp32[2]} : opt(fp32[2]) name "e" origins [0]
    %q = OptionalGetElement(%o) : seq(string[?]) name "q" origins [0]
    %n = Identity(%m) : seq(map(string, fp32)) name "n" origins [0]
    output %x
    output %e
    output %q
    output %n
  }
}
)";
  EXPECT_EQ(print(parsed(kText)), kText);
}

TEST(IrText, ReadsWhatItSays) {
  const Module module = parsed(kSmall);
  ASSERT_EQ(module.methods.size(), 1U);
  const Graph& graph = module.methods[0].graph;
  ASSERT_EQ(graph.nodes().size(), 2U);
  EXPECT_EQ(graph.nodes()[0]->op, ops::find_op("", "Conv"));
  EXPECT_EQ(graph.value(graph.nodes()[0]->outputs[0]).name, "y 1");
  EXPECT_EQ(graph.nodes()[1]->origins, (std::vector<OriginId>{0, 1}));
  EXPECT_EQ(module.symbols.at("batch"), (SymbolRange{1, 8}));
  const Tensor& weights = graph.value(graph.nodes()[0]->inputs[1]).constant;
  EXPECT_EQ(weights.span<float>()[1], -2.5F);
  EXPECT_EQ(weights.span<float>()[5], 1e-07F);
}

TEST(IrText, FillsWhatIsLeftOut) {
  const Module module = parsed(R"(tessera.ir 1
module "m" { method "main" { input %x : fp32[2]  %y = Relu(%x)  output %y } })");
  const Node& node = *module.methods[0].graph.nodes()[0];
  EXPECT_EQ(node.name, "Relu_0");
  ASSERT_EQ(node.origins, std::vector<OriginId>{0});
  EXPECT_EQ(module.source_nodes[0].name, "Relu_0");
  EXPECT_EQ(module.methods[0].weight, 1);
}

TEST(IrText, LargeConstantsStandByHash) {
  Module module;
  Graph& graph = module.methods.emplace_back().graph;
  const std::vector<float> elements(17, 2.0F);
  graph.outputs = {graph.add_constant("w", Tensor::of<float>(DType::kFp32, {17}, elements))};
  ConstantPool pool;
  const std::string text = print(module, {}, &pool);
  const std::string hash = graph.value(0).constant.content_hash().to_string();
  EXPECT_THAT(text, ::testing::HasSubstr("const %w : fp32[17] hash \"" + hash + "\""));
  ASSERT_TRUE(pool.contains(hash));
  const auto back = parse(text, pool);
  ASSERT_TRUE(back) << back.error().to_string();
  EXPECT_TRUE(equal(*back, module));
  EXPECT_THAT(parse_error(text),
              ::testing::HasSubstr("no constant with the hash " + hash + " was given"));
  pool[hash] = Tensor::of<float>(DType::kFp32, {16}, elements);
  EXPECT_THAT(parse(text, pool).error().to_string(),
              ::testing::HasSubstr("expected a constant of fp32[17] for the hash " + hash +
                                   ", found fp32[16]"));
}

TEST(IrText, CanonicalTextForgetsNamesAndOrigins) {
  const char* other = R"(tessera.ir 1
module "else" {
  method "main" {
    input %in : fp32[batch, 3, `p2o.Dim.0`, 8]
    const %k : fp32[2, 3, 1, 1] dense [1, -2.5, 0.1, 0x7fc00000, 0, 1e-07]
    %a = Conv(%in, %k) {kernel_shape = [1, 1], group = 1} : fp32[batch, 2, `p2o.Dim.0`, 8]
    %b = Relu(%a) : fp32[batch, 2, `p2o.Dim.0`, 8] name "another"
    output %b
    state "x" -> "z"
  }
})";
  const PrintOptions canonical{.inline_limit = 16, .canonical = true};
  EXPECT_EQ(print(parsed(other), canonical), print(parsed(kSmall), canonical));
  EXPECT_FALSE(equal(parsed(other), parsed(kSmall)));
}

TEST(IrText, RandomModulesSurviveTheRoundTrip) {
  for (const std::uint64_t seed : testing::seeds(500)) {
    SCOPED_TRACE(testing::seed_text(seed));
    Random random(seed);
    const Module module = RandomModule(random).make();
    ConstantPool pool;
    const PrintOptions options{.inline_limit = random.integer(0, 16), .canonical = false};
    const std::string text = print(module, options, &pool);
    const auto back = parse(text, pool);
    ASSERT_TRUE(back) << back.error().to_string() << "\n" << text;
    ASSERT_TRUE(equal(module, *back)) << text;
    ASSERT_EQ(print(*back, options, &pool), text);
  }
}

TEST(IrText, EqualSeesEveryDifference) {
  const auto differs = [](std::string_view from, std::string_view to) {
    std::string text = kSmall;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    return !equal(parsed(text), parsed(kSmall));
  };
  EXPECT_TRUE(differs("\"small\"", "\"other\""));
  EXPECT_TRUE(differs("\"by hand\"", "\"by foot\""));
  EXPECT_TRUE(differs("in [1, 8]", "in [1, 9]"));
  EXPECT_TRUE(differs("\"conv1\" : \"Conv\"", "\"conv1\" : \"Cons\""));
  EXPECT_TRUE(differs("graph \"g\"", "graph \"h\""));
  EXPECT_TRUE(differs("weight 1", "weight 2"));
  EXPECT_TRUE(differs("x : fp32[batch, 3", "x : fp32[batch, 4"));
  EXPECT_TRUE(differs("-2.5", "2.5"));
  EXPECT_TRUE(differs("0x7fc00000", "0x7fc00001"));
  EXPECT_TRUE(differs("group = 1", "group = 2"));
  EXPECT_TRUE(differs("Relu(", "Exp("));
  EXPECT_TRUE(differs("name \"relu1\"", "name \"relu2\""));
  EXPECT_TRUE(differs("origins [0, 1]", "origins [1]"));
  EXPECT_TRUE(differs("output %z", "output %x"));
  EXPECT_TRUE(differs("\"x\" -> \"z\"", "\"x\" -> \"y\""));
  EXPECT_TRUE(differs("initial none", "initial fp32[] dense [0]"));
}

TEST(IrText, ErrorsNameTheirPlace) {
  EXPECT_EQ(parse_error(""), "line 1:1: expected 'tessera.ir', found the end of the text");
  EXPECT_EQ(parse_error("tessera.ir 2"), "line 1:12: expected version 1 of the text form, found 2");
  EXPECT_EQ(parse_error("tessera.ir 1\nmodule m {"),
            "line 2:8: expected the name of the module in quotes, found 'm'");
  EXPECT_EQ(parse_error("tessera.ir 1\nmodule \"m\" {\n  oops"),
            "line 3:3: expected 'meta', 'symbol', 'source', 'method' or '}', found 'oops'");
  EXPECT_EQ(parse_error("tessera.ir 1\nmodule \"m\" {} x"),
            "line 2:15: expected the end of the text, found 'x'");
  EXPECT_EQ(
      parse_error("tessera.ir 1 module \"m"),
      "line 1:21: expected the name of the module in quotes, found a string that is not closed");
  EXPECT_EQ(statement_error("input %x : fp99[2]"),
            "line 4:12: expected an element type, 'seq(', 'opt(' or 'map(' in a type, found "
            "'fp99[2]'");
  EXPECT_EQ(statement_error("%y = Nonesuch()"), "line 4:6: expected an operator, found 'Nonesuch'");
  EXPECT_EQ(statement_error("%y = Relu(%x)"),
            "line 4:11: value '%x' is not defined before it is read");
  EXPECT_EQ(statement_error("%y = Relu(%y)"),
            "line 4:11: value '%y' is not defined before it is read");
  EXPECT_EQ(statement_error("input %x : fp32[]\n%x = Relu(%x)"),
            "line 5:1: value '%x' is defined twice");
  EXPECT_EQ(statement_error("%x, %x = Relu()"), "line 4:5: value '%x' is defined twice");
  EXPECT_EQ(statement_error("const %c : fp32[2] dense [1]"),
            "line 4:26: expected 2 elements for fp32[2], found 1");
  EXPECT_EQ(statement_error("const %c : uint8[1] dense [256]"),
            "line 4:28: expected an element of uint8, found '256'");
  EXPECT_EQ(statement_error("const %c : int4[1] dense [8]"),
            "line 4:27: expected an element of int4, found '8'");
  EXPECT_EQ(
      statement_error("const %c : fp32[n] dense [1]"),
      "line 4:12: expected the type of a constant, with sizes that are numbers, found fp32[n]");
  EXPECT_EQ(statement_error("const %c : fp32[1] sparse [1]"),
            "line 4:20: expected 'dense' or 'hash', found 'sparse'");
  EXPECT_EQ(statement_error("Relu() {a = 1, a = 2}"), "line 4:16: attribute 'a' stands twice");
  EXPECT_EQ(statement_error("Relu() {a = ?}"),
            "line 4:13: expected the value of an attribute, found '?'");
  EXPECT_EQ(statement_error("Relu() name \"r\" origins [0]"),
            "line 4:26: expected the number of one of 0 source nodes, found 0");
  EXPECT_EQ(parse_error("tessera.ir 1 module \"m\" { source 1 = \"a\" : \"b\" }"),
            "line 1:34: expected source node 0 next, found 1");
}

TEST(IrText, DeepBodiesAreRefused) {
  std::string statement;
  for (int i = 0; i < 100; ++i) statement += "Relu() bodies { body captures [] { ";
  EXPECT_THAT(statement_error(statement),
              ::testing::HasSubstr("expected at most 32 levels of bodies, found 'bodies'"));
}

TEST(IrText, DamagedTextIsAnErrorAtMost) {
  int refused = 0;
  for (const std::uint64_t seed : testing::seeds(1500)) {
    SCOPED_TRACE(testing::seed_text(seed));
    Random random(seed);
    std::string text = print(RandomModule(random).make());
    for (std::int64_t i = random.integer(1, 3); i > 0; --i) {
      const std::size_t at = random.index(text.size());
      const auto length = static_cast<std::size_t>(random.integer(0, 12));
      switch (random.integer(0, 3)) {
        case 0: text[at] = static_cast<char>(random.bits()); break;
        case 1: text.erase(at, length); break;
        case 2: text.insert(random.index(text.size()), text.substr(at, length)); break;
        default: text.resize(at + 1); break;
      }
    }
    const auto module = parse(text);
    if (!module) {
      ++refused;
      EXPECT_THAT(module.error().message, ::testing::StartsWith("line "));
    }
  }
  const bool is_repeat = std::getenv("TESSERA_SEED") != nullptr;
  EXPECT_TRUE(is_repeat || refused > 500) << refused;
}

}  // namespace
}  // namespace tessera::ir
