#include "backends/compile_common/spec_builder.h"

#include <fmt/format.h>

#include <map>

namespace tessera::backends {
namespace {

artefact::TensorDecl decl_of(const ir::Value& value, const TensorForm& form) {
  return {form.dtype, form.layout, value.type.shape.value_or(Shape())};
}

Result<std::vector<ops::TensorSpec>> specs_at(const ir::WorkItem& item,
                                              const std::vector<ir::ValueId>& values,
                                              const SymbolBindings& point) {
  std::vector<ops::TensorSpec> specs;
  for (const ir::ValueId id : values) {
    ops::TensorSpec spec;
    spec.present = id != ir::kNoValue;
    if (spec.present) {
      spec.dtype = item.graph->value(id).type.dtype;
      TESSERA_ASSIGN(spec.dims, dims_at(item, id, point));
    }
    specs.push_back(std::move(spec));
  }
  return specs;
}

std::string tensor_refusal(const ir::Value& value) {
  if (!value.type.is_tensor())
    return fmt::format("value '{}' is {}: expected a tensor", value.name, value.type.to_string());
  if (!value.type.shape) return fmt::format("value '{}': its rank is unknown", value.name);
  if (value.type.dtype == DType::kString)
    return fmt::format("value '{}' holds strings", value.name);
  return {};
}

}  // namespace

CompiledKernel build_spec(const ir::WorkItem& item, const Candidate& candidate,
                          const DeviceInfo& device) {
  CompiledKernel result;
  artefact::KernelSpec& spec = result.spec;
  spec.backend = device.backend;
  spec.kernel = candidate.kernel;
  spec.kernel_version = candidate.kernel_version;
  spec.options = candidate.options;
  std::map<ir::ValueId, std::int32_t> operands;
  const auto next = [&] { return static_cast<std::int32_t>(operands.size()); };
  for (std::size_t i = 0; i < item.inputs.size(); ++i) {
    if (!candidate.inputs[i]) continue;
    spec.inputs.push_back(decl_of(item.graph->value(item.inputs[i]), *candidate.inputs[i]));
    operands.emplace(item.inputs[i], next());
  }
  for (std::size_t i = 0; i < item.inputs.size(); ++i) {
    if (candidate.inputs[i]) continue;
    const ir::Value& value = item.graph->value(item.inputs[i]);
    spec.constants.push_back(
        {value.type.dtype, Layout::row_major(), to_shape(value.constant.dims())});
    result.constants.push_back(value.constant);
    operands.emplace(item.inputs[i], next());
  }
  auto number = next();
  for (const ir::Node* node : item.nodes) {
    artefact::KernelStep step;
    step.domain = std::string(node->op->domain);
    step.op_type = std::string(node->op->name);
    step.attributes = node->attributes;
    for (const ir::ValueId id : node->inputs)
      step.inputs.push_back(id == ir::kNoValue ? -1 : operands.at(id));
    step.output_count = static_cast<std::uint32_t>(node->outputs.size());
    for (const ir::ValueId id : node->outputs) {
      if (id != ir::kNoValue) operands.emplace(id, number);
      ++number;
    }
    spec.steps.push_back(std::move(step));
  }
  for (std::size_t i = 0; i < item.outputs.size(); ++i) {
    spec.outputs.push_back(decl_of(item.graph->value(item.outputs[i]), candidate.outputs[i]));
    spec.output_operands.push_back(operands.at(item.outputs[i]));
  }
  return result;
}

Result<Dims> dims_at(const ir::WorkItem& item, ir::ValueId id, const SymbolBindings& point) {
  const ir::Value& value = item.graph->value(id);
  if (!value.type.is_tensor() || !value.type.shape) {
    if (item.assumed != nullptr)
      if (const auto known = item.assumed->find(id); known != item.assumed->end())
        return known->second;
    return fail(ErrorCode::kUnimplemented,
                fmt::format("value '{}': its rank is unknown", value.name));
  }
  auto dims = evaluate(*value.type.shape, point);
  if (!dims)
    return tl::unexpected(
        in_context(std::move(dims).error(), fmt::format("value '{}'", value.name)));
  return dims;
}

Result<std::vector<ops::TensorSpec>> input_specs(const ir::WorkItem& item, const ir::Node& node,
                                                 const SymbolBindings& point) {
  return specs_at(item, node.inputs, point);
}

Result<std::vector<ops::TensorSpec>> output_specs(const ir::WorkItem& item, const ir::Node& node,
                                                  const SymbolBindings& point) {
  return specs_at(item, node.outputs, point);
}

Result<ops::Work> work_at(const ir::WorkItem& item, const SymbolBindings& point) {
  ops::Work total;
  for (const ir::Node* node : item.nodes) {
    TESSERA_ASSIGN(const auto inputs, input_specs(item, *node, point));
    TESSERA_ASSIGN(const auto outputs, output_specs(item, *node, point));
    const ops::Work work = ops::work_of(*node->op, node->attributes, inputs, outputs);
    total.flops += work.flops;
    if (item.nodes.size() == 1) return work;
  }
  const auto bytes = [&](const std::vector<ir::ValueId>& values) -> Result<double> {
    double sum = 0;
    for (const ir::ValueId id : values) {
      TESSERA_ASSIGN(const Dims dims, dims_at(item, id, point));
      sum += static_cast<double>(nbytes(item.graph->value(id).type.dtype, dims));
    }
    return sum;
  };
  TESSERA_ASSIGN(total.bytes_read, bytes(item.inputs));
  TESSERA_ASSIGN(total.bytes_written, bytes(item.outputs));
  return total;
}

std::string general_refusal(const ir::WorkItem& item) {
  for (const ir::Node* node : item.nodes) {
    const auto name = node->op->qualified_name();
    if (node->op->kernel == nullptr) return fmt::format("{}: no backend runs control flow", name);
    if (node->op->data_dependent_shape)
      return fmt::format("{}: the sizes of its outputs depend on data", name);
    for (const auto* list : {&node->inputs, &node->outputs})
      for (const ir::ValueId id : *list)
        if (id != ir::kNoValue)
          if (auto reason = tensor_refusal(item.graph->value(id)); !reason.empty())
            return fmt::format("{}: {}", name, reason);
    if (item.is_late) return fmt::format("{}: the sizes of its outputs depend on data", name);
  }
  return {};
}

}  // namespace tessera::backends
