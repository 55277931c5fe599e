#pragma once

// The oracle of the tests: runs a graph of the IR node by node through the reference kernels of the
// op table, bodies of If and Loop included (not Scan).

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "ir/ir.h"
#include "ops/op_table.h"

namespace tessera::testing {

Result<std::vector<Tensor>> interpret(const ir::Graph& graph, std::span<const Tensor> inputs);

namespace interpret_detail {

class Interpreter {
 public:
  explicit Interpreter(const ir::Graph& graph) : graph_(graph), values_(graph.value_count()) {
    for (ir::ValueId id = 0; id < graph.value_count(); ++id) values_[id] = graph.value(id).constant;
  }

  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs) {
    if (inputs.size() != graph_.inputs.size()) {
      return fail(ErrorCode::kInvalidArgument, "expected " + std::to_string(graph_.inputs.size()) +
                                                   " inputs, found " +
                                                   std::to_string(inputs.size()));
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) values_[graph_.inputs[i]] = inputs[i];
    for (const auto& node : graph_.nodes()) {
      auto results = run_node(*node);
      if (!results)
        return tl::unexpected(in_context(std::move(results).error(), "node '" + node->name + "'"));
      for (std::size_t i = 0; i < node->outputs.size(); ++i) {
        if (node->outputs[i] != ir::kNoValue) values_[node->outputs[i]] = (*results)[i];
      }
    }
    return gather(graph_.outputs);
  }

 private:
  [[nodiscard]] std::vector<Tensor> gather(const std::vector<ir::ValueId>& ids) const {
    std::vector<Tensor> tensors;
    for (const ir::ValueId id : ids) tensors.push_back(id == ir::kNoValue ? Tensor() : values_[id]);
    return tensors;
  }

  [[nodiscard]] Result<std::vector<Tensor>> run_node(const ir::Node& node) const {
    const std::vector<Tensor> inputs = gather(node.inputs);
    if (node.op->name == "If") {
      const std::size_t branch = inputs.at(0).span<bool>()[0] ? 0 : 1;
      return interpret(*node.bodies.at(branch), gather(node.captures.at(branch)));
    }
    if (node.op->name == "Loop") return run_loop(node, inputs);
    return ops::run_reference(*node.op, node.attributes, inputs, node.outputs.size());
  }

  // Inputs: trip count, condition, carried values. Body: number, condition, carried -> condition,
  // carried, elements of the stacked outputs.
  [[nodiscard]] Result<std::vector<Tensor>> run_loop(const ir::Node& node,
                                                     const std::vector<Tensor>& inputs) const {
    const ir::Graph& body = *node.bodies.at(0);
    const std::int64_t trips =
        inputs.at(0).is_defined() ? inputs[0].span<std::int64_t>()[0] : INT64_MAX;
    bool goes_on = inputs.size() < 2 || !inputs[1].is_defined() || inputs[1].span<bool>()[0];
    std::vector<Tensor> carried(
        inputs.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(2, inputs.size())),
        inputs.end());
    std::vector<std::vector<Tensor>> stacked(body.outputs.size() - 1 - carried.size());
    const std::vector<Tensor> captured = gather(node.captures.at(0));
    for (std::int64_t trip = 0; goes_on && trip < trips; ++trip) {
      std::vector<Tensor> arguments = {
          Tensor::of<std::int64_t>(DType::kInt64, {}, std::vector{trip}), bool_scalar(true)};
      arguments.insert(arguments.end(), carried.begin(), carried.end());
      arguments.insert(arguments.end(), captured.begin(), captured.end());
      TESSERA_ASSIGN(const std::vector<Tensor> results, interpret(body, arguments));
      goes_on = results.at(0).span<bool>()[0];
      for (std::size_t i = 0; i < carried.size(); ++i) carried[i] = results.at(1 + i);
      for (std::size_t i = 0; i < stacked.size(); ++i)
        stacked[i].push_back(results.at(1 + carried.size() + i));
    }
    for (std::size_t i = 0; i < stacked.size(); ++i) {
      if (stacked[i].empty())
        return fail(ErrorCode::kUnimplemented, "a Loop of no trips with stacked outputs");
      carried.push_back(stack(stacked[i]));
    }
    return carried;
  }

  static Tensor bool_scalar(bool value) {
    Tensor tensor = *Tensor::zeros(DType::kBool, {});
    *static_cast<bool*>(tensor.mutable_data()) = value;
    return tensor;
  }

  static Tensor stack(const std::vector<Tensor>& parts) {
    Dims dims = parts[0].dims();
    dims.insert(dims.begin(), static_cast<std::int64_t>(parts.size()));
    Tensor whole = *Tensor::zeros(parts[0].dtype(), dims);
    auto* at = static_cast<char*>(whole.mutable_data());
    for (const Tensor& part : parts) {
      std::memcpy(at, part.data(), static_cast<std::size_t>(part.nbytes()));
      at += part.nbytes();
    }
    return whole;
  }

  const ir::Graph& graph_;
  std::vector<Tensor> values_;
};

}  // namespace interpret_detail

// Outputs in the order of the graph. Errors name the node.
inline Result<std::vector<Tensor>> interpret(const ir::Graph& graph,
                                             std::span<const Tensor> inputs) {
  return interpret_detail::Interpreter(graph).run(inputs);
}

}  // namespace tessera::testing
