// How the compiler's front end grows with the number of nodes: import, inference and passes of
// models of 1,000, 10,000 and 100,000 nodes. Linear: the time per node stays.

#include <benchmark/benchmark.h>

#include <array>
#include <string>

#include "import/import.h"
#include "ir/flatten.h"
#include "ir/infer.h"
#include "passes/pipeline.h"
#include "passes/propose_covers.h"
#include "testing/onnx_builder.h"

namespace tessera {
namespace {

using testing::kFloat;
using testing::OnnxModel;

constexpr std::int64_t kWidth = 64;

// Builds a model node by node, with names as exporters give them.
class Writer {
 public:
  explicit Writer(std::int64_t nodes) : wanted_(nodes) {}

  bool wants_more() const { return made_ < wanted_; }
  std::string add(const std::string& op, const std::vector<std::string>& inputs) {
    const std::string place = "/model/layers." + std::to_string(made_++) + "/" + op;
    std::string name = place + "_output_0";
    testing::OnnxNode node = model.node(op, inputs, {name}, place);
    if (op == "ReduceMean") node.ints("axes", {-1});
    if (op == "Transpose") node.ints("perm", {0, 2, 1});
    if (op == "Concat" || op == "Unsqueeze") node.integer("axis", 0);
    if (op == "MaxPool") node.ints("kernel_shape", {3, 3}).ints("pads", {1, 1, 1, 1});
    return name;
  }
  std::string weight(const std::vector<std::int64_t>& dims) {
    std::int64_t count = 1;
    for (const std::int64_t dim : dims) count *= dim;
    std::string name = "w" + std::to_string(weights_++);
    model.floats(name, dims, std::vector<float>(static_cast<std::size_t>(count), 0.01F));
    return name;
  }
  std::string number(float value) {
    std::string name = "c" + std::to_string(weights_++);
    model.floats(name, {}, {value});
    return name;
  }
  std::string ints(const std::vector<std::int64_t>& values) {
    std::string name = "i" + std::to_string(weights_++);
    model.ints(name, {static_cast<std::int64_t>(values.size())}, values);
    return name;
  }

  OnnxModel model;

 private:
  std::int64_t wanted_;
  std::int64_t made_ = 0;
  std::int64_t weights_ = 0;
};

// Normalisation and Gelu in pieces, products with biases, attention in pieces, as exporters write
// them.
std::string transformer(std::int64_t nodes) {
  Writer to(nodes);
  to.model.input("x", kFloat, {"batch", 16, kWidth});
  const std::string matrix = to.weight({kWidth, kWidth});
  const std::string bias = to.weight({kWidth});
  const std::string two = to.number(2);
  const std::string half = to.number(0.5F);
  const std::string one = to.number(1);
  const std::string root = to.number(1.41421356F);
  const std::string epsilon = to.number(1e-5F);
  const auto linear = [&](const std::string& x) {
    return to.add("Add", {to.add("MatMul", {x, matrix}), bias});
  };
  std::string x = "x";
  while (to.wants_more()) {
    const std::string centred = to.add("Sub", {x, to.add("ReduceMean", {x})});
    const std::string variance = to.add("ReduceMean", {to.add("Pow", {centred, two})});
    const std::string deviation = to.add("Sqrt", {to.add("Add", {variance, epsilon})});
    const std::string normal =
        to.add("Add", {to.add("Mul", {to.add("Div", {centred, deviation}), bias}), bias});
    const std::string scores =
        to.add("MatMul", {linear(normal), to.add("Transpose", {linear(normal)})});
    const std::string weights = to.add("Softmax", {to.add("Mul", {scores, half})});
    const std::string attended = linear(to.add("MatMul", {weights, linear(normal)}));
    const std::string residual = to.add("Add", {x, attended});
    const std::string wide = linear(residual);
    const std::string erf = to.add("Add", {to.add("Erf", {to.add("Div", {wide, root})}), one});
    const std::string gelu = to.add("Mul", {to.add("Mul", {wide, erf}), half});
    x = to.add("Add", {residual, linear(gelu)});
  }
  to.model.output(x);
  return to.model.serialize();
}

// Residual blocks with normalisation of their own and activations in pieces.
std::string convolutions(std::int64_t nodes) {
  Writer to(nodes);
  to.model.input("x", kFloat, {1, 8, "height", "width"});
  const std::string kernel = to.weight({8, 8, 1, 1});
  const std::string channel = to.weight({8});
  const auto block = [&](const std::string& x) {
    return to.add("BatchNormalization",
                  {to.add("Conv", {x, kernel}), channel, channel, channel, channel});
  };
  std::string x = "x";
  while (to.wants_more()) {
    const std::string inner = block(x);
    const std::string swish = to.add("Mul", {inner, to.add("Sigmoid", {inner})});
    x = to.add("Relu", {to.add("Add", {block(to.add("MaxPool", {swish})), x})});
  }
  to.model.output(x);
  return to.model.serialize();
}

// Shapes worked out at run: Shape, Gather, Concat, Reshape around each operation.
std::string shape_chains(std::int64_t nodes) {
  Writer to(nodes);
  to.model.input("x", kFloat, {"batch", "time", kWidth});
  const std::string zero = to.ints({0});
  const std::string one = to.ints({1});
  const std::string rest = to.ints({-1, kWidth / 2, 2});
  const std::string back = to.ints({kWidth});
  std::string x = "x";
  while (to.wants_more()) {
    const std::string shape = to.add("Shape", {x});
    const std::string batch = to.add("Gather", {shape, zero});
    const std::string time = to.add("Gather", {shape, one});
    const std::string split = to.add("Reshape", {x, to.add("Concat", {batch, rest})});
    const std::string joined = to.add("Concat", {batch, time, back});
    x = to.add("Relu", {to.add("Reshape", {to.add("Neg", {split}), joined})});
  }
  to.model.output(x);
  return to.model.serialize();
}

using MakeModel = std::string (*)(std::int64_t nodes);

void front_end(benchmark::State& state, MakeModel make) {
  const std::string bytes = make(state.range(0));
  for (auto _ : state) {
    auto module = importer::import_bytes(testing::bytes_of(bytes), nullptr);
    if (!module) return state.SkipWithError(module.error().to_string().c_str());
    if (!ir::infer(*module)) return state.SkipWithError("inference failed");
    if (!passes::simplify(*module)) return state.SkipWithError("the passes failed");
    ir::Method flat = ir::flatten(module->methods.front(), {});
    std::vector<passes::Note> notes;
    benchmark::DoNotOptimize(passes::propose_covers(*module, flat.graph, notes));
  }
  state.counters["us_per_node"] = benchmark::Counter(
      static_cast<double>(state.range(0)) / 1e6,
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void sizes(benchmark::internal::Benchmark* of) {
  for (const std::int64_t nodes : {1'000, 10'000, 100'000}) of->Arg(nodes);
  of->Unit(benchmark::kMillisecond);
}
BENCHMARK_CAPTURE(front_end, transformer, transformer)->Apply(sizes);
BENCHMARK_CAPTURE(front_end, convolutions, convolutions)->Apply(sizes);
BENCHMARK_CAPTURE(front_end, shape_chains, shape_chains)->Apply(sizes);

}  // namespace
}  // namespace tessera
