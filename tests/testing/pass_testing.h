#pragma once

// Tests of passes: text in, text out, and the same values before and after.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "ir/infer.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "passes/pass_runner.h"
#include "testing/interpret.h"
#include "testing/random.h"

namespace tessera::testing {

// A module with one method of these statements, inferred and verified. Symbols "n" and "m" are
// there.
inline ir::Module module_of(const std::string& statements) {
  auto module = ir::parse(
      "tessera.ir 1 module \"test\" { symbol \"n\" in [1, 64] symbol \"m\" in [1, 64] method "
      "\"main\" {\n" +
      statements + "\n} }");
  if (!module) {
    ADD_FAILURE() << module.error().to_string();
    return {};
  }
  const auto inferred = ir::infer(*module);
  EXPECT_TRUE(inferred) << inferred.error().to_string();
  const Status verified = ir::verify(*module);
  EXPECT_TRUE(verified) << verified.error().to_string();
  return *std::move(module);
}

// One node per line: "y = Add(x, w)"; constants of at most 8 elements by value, larger ones by
// name.
inline std::string brief(const ir::Graph& graph) {
  std::string text;
  const auto name_of = [&](ir::ValueId id) {
    if (id == ir::kNoValue) return std::string("_");
    const ir::Value& value = graph.value(id);
    if (value.kind != ir::ValueKind::kConstant || value.constant.numel() > 8) return value.name;
    ir::Module single;
    ir::Graph& holder = single.methods.emplace_back().graph;
    holder.outputs = {holder.add_constant("c", value.constant)};
    const std::string printed = ir::print(single);
    const std::size_t begin = printed.find(" dense ") + 7;
    return printed.substr(begin, printed.find('\n', begin) - begin);
  };
  for (const auto& node : graph.nodes()) {
    std::string outputs;
    for (const ir::ValueId id : node->outputs)
      outputs += (outputs.empty() ? "" : ", ") + name_of(id);
    std::string inputs;
    for (const ir::ValueId id : node->inputs) inputs += (inputs.empty() ? "" : ", ") + name_of(id);
    const std::string attributes = node->attributes.to_string();
    text += outputs + " = " + node->op->qualified_name() + "(" + inputs + ")" +
            (attributes.empty() ? "" : " {" + attributes + "}") + "\n";
  }
  return text;
}

// Random values for the inputs; symbols in their shapes become 3.
inline std::vector<Tensor> random_inputs(const ir::Graph& graph, Random& random) {
  std::vector<Tensor> inputs;
  for (const ir::ValueId id : graph.inputs) {
    const ValueType& type = graph.value(id).type;
    const Dims dims = *evaluate(*type.shape, {{"n", 3}, {"m", 3}});
    Tensor tensor = *Tensor::zeros(type.dtype, dims);
    for (std::int64_t i = 0; i < tensor.numel(); ++i) {
      void* data = tensor.mutable_data();
      if (type.dtype == DType::kFp32)
        static_cast<float*>(data)[i] = static_cast<float>(random.real(-4, 4));
      if (type.dtype == DType::kInt64) static_cast<std::int64_t*>(data)[i] = random.integer(-9, 9);
      if (type.dtype == DType::kInt32)
        static_cast<std::int32_t*>(data)[i] = static_cast<std::int32_t>(random.integer(-9, 9));
      if (type.dtype == DType::kBool) static_cast<bool*>(data)[i] = random.chance(0.5);
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

inline void expect_close(const Tensor& actual, const Tensor& expected, double tolerance) {
  ASSERT_EQ(actual.dtype(), expected.dtype());
  ASSERT_EQ(actual.dims(), expected.dims());
  if (expected.dtype() != DType::kFp32) {
    EXPECT_TRUE(actual.equals(expected));
    return;
  }
  for (std::int64_t i = 0; i < expected.numel(); ++i) {
    const double a = actual.span<float>()[static_cast<std::size_t>(i)];
    const double e = expected.span<float>()[static_cast<std::size_t>(i)];
    if (a == e || (std::isnan(e) && std::isnan(a))) continue;  // infinities too
    ASSERT_LE(std::abs(a - e), tolerance * std::max(1.0, std::abs(e)))
        << "element " << i << ": " << a << ", expected " << e;
  }
}

struct PassResult {
  std::string text;  // brief() of the graph afterwards
  bool changed = false;
  std::vector<passes::Note> notes;
  ir::Module module;
};

// Runs the passes once, in order, and compares the values of the outputs before and after.
inline PassResult run_passes(const std::string& statements, const std::vector<passes::Pass>& list,
                             const passes::PassOptions& options = {}, double tolerance = 1e-5) {
  PassResult result;
  result.module = module_of(statements);
  if (result.module.methods.empty()) return result;
  const ir::Graph& graph = result.module.methods[0].graph;
  Random random(7);
  const std::vector<Tensor> inputs = random_inputs(graph, random);
  const auto before = interpret(graph, inputs);
  EXPECT_TRUE(before) << before.error().to_string();
  passes::PassRunner runner(result.module, options);
  for (const passes::Pass& pass : list) {
    const auto changed = runner.run(pass);
    EXPECT_TRUE(changed) << changed.error().to_string();
    result.changed = result.changed || (changed && *changed);
  }
  result.text = brief(graph);
  result.notes = runner.notes();
  const auto after = interpret(graph, inputs);
  EXPECT_TRUE(after) << after.error().to_string();
  if (!before || !after) return result;
  EXPECT_EQ(before->size(), after->size());
  for (std::size_t i = 0; i < std::min(before->size(), after->size()); ++i)
    expect_close((*after)[i], (*before)[i], tolerance);
  return result;
}

}  // namespace tessera::testing
