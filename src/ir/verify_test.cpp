#include "ir/verify.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "ops/op_table.h"

namespace tessera::ir {
namespace {

constexpr const char* kSound = R"(tessera.ir 1
module "m" {
  symbol "n" in [1, 8]
  source 0 = "add" : "Add"
  method "main" {
    input %x : fp32[n, 2]
    input %past : fp32[2]
    const %c : fp32[2] dense [1, 2]
    %sum = Add(%x, %c) : fp32[n, 2] name "add" origins [0]
    %y = Relu(%sum) : fp32[n, 2] name "relu" origins [0]
    %next = Add(%past, %c) : fp32[2] name "step" origins [0]
    output %y
    output %next
    state "past" -> "next"
  }
})";

Module sound() {
  auto module = parse(kSound);
  EXPECT_TRUE(module) << module.error().to_string();
  return *std::move(module);
}

// What the verifier says of a module after `change`.
template <typename Change>
std::string fault(Change change) {
  Module module = sound();
  change(module, module.methods[0].graph);
  const Status status = verify(module);
  EXPECT_FALSE(status);
  return status ? "" : status.error().to_string();
}

Node& node(Graph& graph, std::size_t index) {
  return *graph.nodes()[index];
}

ValueId named(const Graph& graph, std::string_view name) {
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    if (graph.value(id).name == name) return id;
  }
  return kNoValue;
}

TEST(Verify, AcceptsASoundModule) {
  const Status status = verify(sound());
  EXPECT_TRUE(status) << status.error().to_string();
}

TEST(Verify, ValuesThatNobodyReadsMayBeUnproduced) {
  Module module = sound();
  module.methods[0].graph.add_value("y",
                                    ValueType::tensor(DType::kFp32, Shape{Dim::symbol("unknown")}));
  EXPECT_TRUE(verify(module));
}

TEST(Verify, FindsFaultsOfValues) {
  EXPECT_EQ(fault([](Module&, Graph& g) { g.value(named(g, "y")).name = "x"; }),
            "method 'main': value name 'x' is used twice");
  EXPECT_EQ(fault([](Module& m, Graph&) { m.symbols.clear(); }),
            "method 'main': value 'x': symbol 'n' is not in the symbol table");
  EXPECT_EQ(fault([](Module&, Graph& g) {
              g.value(named(g, "c")).type = ValueType::tensor(DType::kFp32, Shape{3});
            }),
            "method 'main': value 'c': expected the type of its elements, fp32[2], found fp32[3]");
  EXPECT_EQ(fault([](Module&, Graph& g) { g.value(named(g, "c")).constant = Tensor(); }),
            "method 'main': value 'c': constant has no elements");
  EXPECT_EQ(fault([](Module&, Graph& g) { g.inputs.erase(g.inputs.begin()); }),
            "method 'main': value 'x': is an input, but the graph does not list it");
  EXPECT_EQ(fault([](Module&, Graph& g) { g.inputs.push_back(g.inputs[0]); }),
            "method 'main': input 'x' is listed twice");
  EXPECT_EQ(fault([](Module&, Graph& g) { g.inputs.push_back(named(g, "c")); }),
            "method 'main': input 'c' is not of kind input");
  EXPECT_EQ(fault([](Module&, Graph& g) { g.outputs.push_back(1000); }),
            "method 'main': an output is not a value of the graph");
  EXPECT_EQ(fault([](Module&, Graph& g) { g.outputs.push_back(g.add_value("z", {})); }),
            "method 'main': value 'z': is read, but nothing produces it");
  EXPECT_EQ(fault([](Module&, Graph& g) {
              g.value(named(g, "next")).known = DimTensor{false, {1, 2, 3}};
            }),
            "method 'main': value 'next': expected 2 known elements, found 3");
  EXPECT_EQ(
      fault([](Module&, Graph& g) {
        g.value(named(g, "y")).known = DimTensor{true, {1}};
      }),
      "method 'main': value 'y': expected known elements only of rank 0 and 1, found fp32[n, 2]");
}

TEST(Verify, FindsFaultsOfNodes) {
  EXPECT_EQ(fault([](Module&, Graph& g) { node(g, 0).inputs[1] = named(g, "y"); }),
            "method 'main': node 'add' (Add): reads 'y' before a node produces it");
  EXPECT_EQ(fault([](Module&, Graph& g) { node(g, 1).name = "add"; }),
            "method 'main': node name 'add' is used twice");
  EXPECT_EQ(fault([](Module&, Graph& g) { node(g, 0).op = nullptr; }),
            "method 'main': node 'add' has no operator");
  EXPECT_EQ(fault([](Module&, Graph& g) { node(g, 0).inputs[0] = 1000; }),
            "method 'main': node 'add' names a value that the graph does not have");
  EXPECT_EQ(fault([](Module&, Graph& g) { node(g, 0).outputs[0] = named(g, "y"); }),
            "method 'main': node 'add' (Add): output 'y' does not name this node as its producer");
  EXPECT_EQ(fault([](Module&, Graph& g) { node(g, 0).origins.clear(); }),
            "method 'main': node 'add' (Add): has no origins");
  EXPECT_EQ(fault([](Module&, Graph& g) { node(g, 0).origins = {1}; }),
            "method 'main': node 'add' (Add): origin 1 is unknown: the module has 1 source nodes");
  EXPECT_EQ(fault([](Module&, Graph& g) {
              node(g, 0).origins = {0, 0};
            }),
            "method 'main': node 'add' (Add): origins are not sorted");
  EXPECT_EQ(fault([](Module&, Graph& g) { node(g, 0).inputs[1] = node(g, 0).inputs[0]; }),
            "method 'main': what a node reads was changed without the graph's knowledge");
}

TEST(Verify, FindsFaultsOfSignatures) {
  EXPECT_EQ(fault([](Module&, Graph& g) { node(g, 0).inputs.pop_back(); }),
            "method 'main': node 'add' (Add): expected at least 2 inputs, found 1");
  EXPECT_EQ(fault([](Module&, Graph& g) { node(g, 0).inputs.push_back(0); }),
            "method 'main': node 'add' (Add): expected at most 2 inputs, found 3");
  EXPECT_EQ(fault([](Module&, Graph& g) { node(g, 0).inputs[0] = kNoValue; }),
            "method 'main': node 'add' (Add): input 'A': is required, but omitted");
  EXPECT_EQ(fault([](Module&, Graph& g) { node(g, 0).outputs.push_back(kNoValue); }),
            "method 'main': node 'add' (Add): expected at most 1 outputs, found 2");
  EXPECT_EQ(fault([](Module&, Graph& g) { node(g, 0).attributes.set("axis", std::int64_t{1}); }),
            "method 'main': node 'add' (Add): attribute 'axis' is unknown");
  EXPECT_EQ(
      fault([](Module&, Graph& g) { g.value(named(g, "x")).type.dtype = DType::kInt64; }),
      "method 'main': node 'add' (Add): input 'B': expected int64 as input 'A' has, found fp32");
  const std::string refused =
      fault([](Module&, Graph& g) { g.value(named(g, "sum")).type.dtype = DType::kString; });
  EXPECT_TRUE(
      refused.starts_with("method 'main': node 'relu' (Relu): input 'X': expected one of fp32, "))
      << refused;
  EXPECT_TRUE(refused.ends_with(", found string")) << refused;
  EXPECT_EQ(
      fault([](Module&, Graph& g) { node(g, 0).captures.emplace_back(); }),
      "method 'main': node 'add' (Add): expected 0 lists of captures, one for each body, found 1");
}

TEST(Verify, FindsWrongAttributes) {
  const auto of = [](std::string_view op, std::string_view attributes) {
    auto module = parse(
        "tessera.ir 1 module \"m\" { method \"main\" { input %x : fp32[2] %y = " + std::string(op) +
        "(%x) {" + std::string(attributes) + "} name \"n\" output %y } }");
    EXPECT_TRUE(module) << module.error().to_string();
    const Graph& graph = module->methods[0].graph;
    const Status status = verify_signature(graph, *graph.nodes()[0]);
    return status ? "" : status.error().to_string();
  };
  EXPECT_EQ(of("LeakyRelu", "alpha = 0.5"), "");
  EXPECT_EQ(of("LeakyRelu", "alpha = 1"), "attribute 'alpha': expected a float, found an int");
  EXPECT_EQ(of("LeakyRelu", "alpha = [1.0]"), "attribute 'alpha': expected a float, found floats");
  EXPECT_EQ(of("LeakyRelu", "alpha = \"x\""),
            "attribute 'alpha': expected a float, found a string");
  EXPECT_EQ(of("Cast", "saturate = 1"), "attribute 'to' is required, but absent");
}

TEST(Verify, FindsFaultsOfStates) {
  EXPECT_EQ(fault([](Module& m, Graph&) { m.methods[0].states[0].input = "pasta"; }),
            "method 'main': state: no input is named 'pasta'");
  EXPECT_EQ(fault([](Module& m, Graph&) { m.methods[0].states[0].output = "text"; }),
            "method 'main': state: no output is named 'text'");
  EXPECT_EQ(fault([](Module& m, Graph&) { m.methods[0].states[0].input = "x"; }),
            "method 'main': state: expected output 'next' to have the type of input 'x', fp32[n, "
            "2], found fp32[2]");
  EXPECT_EQ(fault([](Module& m, Graph&) { m.methods[0].states.push_back(m.methods[0].states[0]); }),
            "method 'main': state: input 'past' stands in two states");
  EXPECT_EQ(fault([](Module& m, Graph&) {
              m.methods[0].states[0].initial = *Tensor::zeros(DType::kInt8, {2});
            }),
            "method 'main': state: expected a first value of fp32 for input 'past', found int8");
}

TEST(Verify, FindsMethodsOfOneName) {
  Module module = sound();
  module.methods.emplace_back().name = "main";
  EXPECT_EQ(verify(module).error().to_string(), "method name 'main' is used twice");
}

// A schema with a body, so that the test does not lean on the op table.
TEST(Verify, ChecksBodies) {
  ops::OpSchema op;
  op.name = "Run";
  op.inputs = {{"x", "", ops::FormalParam::Arity::kOptional}};
  op.outputs = {{"y", "", ops::FormalParam::Arity::kOptional}};
  op.attributes = {{"body", ops::AttrType::kGraph, true}};
  const auto fault_of = [&](auto change) {
    Module module = sound();
    Graph& graph = module.methods[0].graph;
    Node run;
    run.op = &op;
    run.name = "run";
    run.origins = {0};
    run.bodies.push_back(std::make_unique<Graph>());
    Graph& body = *run.bodies[0];
    body.outputs = {body.add_input("inner", graph.value(graph.inputs[0]).type)};
    run.captures = {{graph.inputs[0]}};
    change(graph.add_node(std::move(run)), body);
    const Status status = verify(module);
    return status ? "" : status.error().to_string();
  };
  EXPECT_EQ(fault_of([](Node&, Graph&) {}), "");
  EXPECT_EQ(fault_of([](Node& run, Graph&) { run.bodies.pop_back(); }),
            "method 'main': node 'run' (Run): expected 1 bodies, found 0");
  EXPECT_EQ(fault_of([](Node& run, Graph&) { run.captures[0].push_back(1); }),
            "method 'main': node 'run' (Run): body 0: expected at least 2 inputs, one for each "
            "capture, found 1");
  EXPECT_EQ(fault_of([](Node&, Graph& body) { body.value(0).type.dtype = DType::kInt8; }),
            "method 'main': node 'run' (Run): body 0: capture 'inner': expected fp32[n, 2] as 'x' "
            "outside has, found int8[n, 2]");
  EXPECT_EQ(fault_of([](Node&, Graph& body) { body.outputs[0] = 5; }),
            "method 'main': node 'run' (Run): body 0: an output is not a value of the graph");
}

}  // namespace
}  // namespace tessera::ir
