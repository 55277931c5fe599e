#include "ir/infer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/text.h"
#include "ir/verify.h"
#include "ops/op_table.h"

namespace tessera::ir {
namespace {

Module parsed(std::string_view statements) {
  auto module = parse(
      "tessera.ir 1 module \"m\" { symbol \"n\" in [1, 8] symbol \"s\" in [0, inf] method \"main\" "
      "{\n" +
      std::string(statements) + "\n} }");
  EXPECT_TRUE(module) << module.error().to_string();
  return *std::move(module);
}

const Value& named(const Module& module, std::string_view name) {
  const Graph& graph = module.methods[0].graph;
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    if (graph.value(id).name == name) return graph.value(id);
  }
  ADD_FAILURE() << "no value " << name;
  return graph.value(0);
}

std::string type_of(const Module& module, std::string_view name) {
  return named(module, name).type.to_string();
}

std::string error_of(std::string_view statements) {
  Module module = parsed(statements);
  const auto unknown = infer(module);
  return unknown ? "" : unknown.error().to_string();
}

TEST(Infer, FillsTypesInOrder) {
  Module module =
      parsed("input %x : fp32[n, 1] input %b : fp32[3] %y = Add(%x, %b) %z = Relu(%y) output %z");
  const auto unknown = infer(module);
  ASSERT_TRUE(unknown) << unknown.error().to_string();
  EXPECT_TRUE(unknown->empty());
  EXPECT_EQ(type_of(module, "z"), "fp32[n, 3]");
}

TEST(Infer, RefinesDeclaredTypes) {
  Module module = parsed("input %x : fp32[n, 4] %y = Relu(%x) : fp32[s, s] output %y");
  ASSERT_TRUE(infer(module));
  EXPECT_EQ(type_of(module, "y"), "fp32[n, 4]") << "what is inferred holds for every input";
}

TEST(Infer, KeepsWhatOnlyTheModelKnows) {
  Module module = parsed("input %x : fp32[?] %y = Relu(%x) : fp32[2, 3] output %y");
  ASSERT_TRUE(infer(module));
  EXPECT_EQ(type_of(module, "y"), "fp32[2, 3]");
}

TEST(Infer, TypesSequencesAndOptionalsAndKeepsThemWhenAskedAgain) {
  Module module = parsed(
      "input %a : fp32[n, 2] input %b : fp32[3, 2] const %i : int64[] dense [0] "
      "%s = SequenceConstruct(%a, %b) %t = SequenceInsert(%s, %b, %i) %x = SequenceAt(%t, %i) "
      "%z = SequenceAt(%t, %i) %o = Optional(%t) %q = OptionalGetElement(%o) "
      "%y = ConcatFromSequence(%q) {axis = 0} output %x output %y output %z");
  for (int round = 0; round < 2; ++round) {
    const auto unknown = infer(module);
    ASSERT_TRUE(unknown) << unknown.error().to_string();
    EXPECT_EQ(type_of(module, "t"), "seq(fp32[n, 2])");
    EXPECT_EQ(type_of(module, "x"), "fp32[element, 2]");
    EXPECT_EQ(type_of(module, "z"), "fp32[element_1, 2]") << "another element, another size";
    EXPECT_EQ(type_of(module, "q"), "seq(fp32[n, 2])");
    EXPECT_EQ(type_of(module, "y"), "fp32[joined, 2]");
    EXPECT_TRUE(verify(module));
  }
  EXPECT_EQ(error_of("input %a : fp32[n] %s = SequenceConstruct(%a) : seq(int64[n]) name \"s\" "
                     "output %s"),
            "node 's' (SequenceConstruct): output 'output_sequence' ('s'): declared "
            "seq(int64[n]), inferred seq(fp32[n])");
  EXPECT_EQ(
      error_of("input %x : fp32[n, 2] %z = \"ai.onnx.ml::ZipMap\"(%x) {classlabels_int64s = [1, "
               "2]} : seq(map(string, fp32)) name \"z\" output %z"),
      "node 'z' (ai.onnx.ml::ZipMap): output 'Z' ('z'): declared seq(map(string, fp32)), "
      "inferred seq(map(int64, fp32))");
}

TEST(Infer, ContradictionsNameBothSides) {
  EXPECT_EQ(error_of("input %x : fp32[2] %y = Relu(%x) : fp32[3] name \"r\" output %y"),
            "node 'r' (Relu): output 'Y' ('y'): declared fp32[3], inferred fp32[2]");
  EXPECT_EQ(error_of("input %x : fp32[2] %y = Relu(%x) : fp16[2] name \"r\" output %y"),
            "node 'r' (Relu): output 'Y' ('y'): declared fp16[2], inferred fp32[2]");
  EXPECT_EQ(error_of("input %x : fp32[n] %y = Relu(%x) : fp32[9] name \"r\" output %y"),
            "node 'r' (Relu): output 'Y' ('y'): declared fp32[9], inferred fp32[n]");
  EXPECT_EQ(error_of("input %x : fp32[n] %y = Relu(%x) : fp32[n, 1] name \"r\" output %y"),
            "node 'r' (Relu): output 'Y' ('y'): declared fp32[n, 1], inferred fp32[n]");
  EXPECT_EQ(error_of("input %x : fp32[n] %y = Relu(%x) : seq(fp32[n]) name \"r\" output %y"),
            "node 'r' (Relu): output 'Y' ('y'): declared seq(fp32[n]), inferred fp32[n]");
  EXPECT_EQ(error_of("input %x : fp32[n] %y = Relu(%x) : fp32[8] output %y"), "") << "n may be 8";
}

TEST(Infer, SignaturesAreCheckedFirst) {
  EXPECT_EQ(error_of("input %x : fp32[2] %y = Add(%x) name \"a\" output %y"),
            "node 'a' (Add): expected at least 2 inputs, found 1");
}

TEST(Infer, UnknownRanksAreListedWithTheirReason) {
  Module module = parsed("input %x : fp32[?] %y = Relu(%x) name \"r\" output %y");
  const auto unknown = infer(module);
  ASSERT_TRUE(unknown) << unknown.error().to_string();
  ASSERT_EQ(unknown->size(), 1U);
  EXPECT_EQ((*unknown)[0].value, "y");
  EXPECT_EQ((*unknown)[0].node, "r");
  EXPECT_EQ((*unknown)[0].reason, "the rank of input 'X' ('x') is not known");
}

TEST(Infer, IntegerConstantsAreKnownElements) {
  Module module = parsed(
      "input %x : int64[2] known [n, 3] const %c : int64[2] dense [1, 4] %y = Add(%x, %c) output "
      "%y");
  ASSERT_TRUE(infer(module));
  ASSERT_TRUE(named(module, "y").known);
  EXPECT_EQ(*named(module, "y").known, (DimTensor{false, {Dim::symbol("n") + 1, 7}}));
}

// ---- Operators of the test's own ----------------------------------------------------------------

Status infer_pick(ops::InferContext& context) {
  context.outputs[0] = ValueType::tensor(DType::kInt64, Shape{context.fresh_symbol("picked"), 2});
  return {};
}

// Asks its body twice, first with [1], then with [n], as Loop may do when a carried size changes.
Status infer_run(ops::InferContext& context) {
  TESSERA_TRY(context.infer_body(0, std::vector{ValueType::tensor(DType::kFp32, Shape{1})}));
  TESSERA_ASSIGN(
      auto types,
      context.infer_body(0, std::vector{ValueType::tensor(DType::kFp32, Shape{Dim::symbol("n")})}));
  context.outputs[0] = types.at(0);
  return {};
}

ops::OpSchema schema(std::string_view name, ops::InferFn function) {
  ops::OpSchema op;
  op.name = name;
  op.inputs = {{"x", "", ops::FormalParam::Arity::kOptional}};
  op.outputs = {{"y", "", ops::FormalParam::Arity::kRequired}};
  op.infer = function;
  return op;
}

Node& add(Module& module, const ops::OpSchema& op, std::vector<ValueId> inputs,
          ValueType declared = {}) {
  Graph& graph = module.methods[0].graph;
  Node node;
  node.op = &op;
  node.name = "node";
  node.inputs = std::move(inputs);
  node.outputs = {graph.add_value("made", std::move(declared))};
  node.origins = {0};
  return graph.add_node(std::move(node));
}

TEST(Infer, SizesThatTheDataDecidesGetSymbols) {
  ops::OpSchema pick = schema("Pick", infer_pick);
  pick.data_dependent_shape = true;
  Module module = parsed("input %x : fp32[n] output %x");
  add(module, pick, {0});
  for (int round = 0; round < 2; ++round) {
    const auto unknown = infer(module);
    ASSERT_TRUE(unknown) << unknown.error().to_string();
    EXPECT_EQ(type_of(module, "made"), "int64[picked, 2]");
    EXPECT_EQ(module.symbols.size(), 3U) << "no new symbol in a second run";
    ASSERT_EQ(unknown->size(), 1U);
    EXPECT_EQ((*unknown)[0].reason, "the size depends on the data");
  }
}

TEST(Infer, ADeclaredSizeStandsForAFreshSymbol) {
  const ops::OpSchema pick = schema("Pick", infer_pick);
  Module module = parsed("input %x : fp32[n] output %x");
  add(module, pick, {},
      ValueType::tensor(DType::kInt64, Shape{Dim::symbol("s"), Dim::symbol("n")}));
  ASSERT_TRUE(infer(module));
  EXPECT_EQ(type_of(module, "made"), "int64[s, 2]");
  EXPECT_FALSE(module.symbols.contains("picked"));
}

// The body: formal input "a", captures of x and of the constant c; it gives a + c.
Module with_body(const ops::OpSchema& run) {
  Module module = parsed("input %x : fp32[n] const %c : fp32[1] dense [1] output %x output %c");
  Node& node = add(module, run, {});
  node.bodies.push_back(std::make_unique<Graph>());
  Graph& body = *node.bodies[0];
  body.name = "inner";
  const ValueId a = body.add_input("a", {});
  body.add_input("outer_x", {});
  const ValueId c = body.add_input("outer_c", {});
  Node inner;
  inner.op = ops::find_op("", "Add");
  inner.name = "sum";
  inner.inputs = {a, c};
  inner.outputs = {body.add_value("sum", {})};
  inner.origins = {0};
  body.outputs = inner.outputs;
  body.add_node(std::move(inner));
  node.captures = {{0, 1}};
  return module;
}

TEST(Infer, BodiesSeeTheirCaptures) {
  ops::OpSchema run = schema("Run", infer_run);
  run.attributes = {{"body", ops::AttrType::kGraph, true}};
  Module module = with_body(run);
  for (int round = 0; round < 2; ++round) {
    const auto unknown = infer(module);
    ASSERT_TRUE(unknown) << unknown.error().to_string();
    EXPECT_EQ(type_of(module, "made"), "fp32[n]") << "the second, more general answer";
    const Graph& body = *module.methods[0].graph.nodes()[0]->bodies[0];
    EXPECT_EQ(body.value(body.inputs[1]).type.to_string(), "fp32[n]");
    EXPECT_EQ(body.value(body.outputs[0]).type.to_string(), "fp32[n]");
  }
}

TEST(Infer, ErrorsOfBodiesNameTheBody) {
  ops::OpSchema run = schema("Run", infer_run);
  run.attributes = {{"body", ops::AttrType::kGraph, true}};
  Module module = with_body(run);
  module.methods[0].graph.nodes()[0]->bodies[0]->nodes()[0]->inputs.pop_back();
  EXPECT_EQ(
      infer(module).error().to_string(),
      "node 'node' (Run): body 'inner': node 'sum' (Add): expected at least 2 inputs, found 1");
  module.methods[0].graph.nodes()[0]->captures[0].pop_back();
  EXPECT_EQ(infer(module).error().to_string(),
            "node 'node' (Run): body 'inner': expected 1 formal inputs, found 2");
}

}  // namespace
}  // namespace tessera::ir
