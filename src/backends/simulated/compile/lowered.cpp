#include "backends/simulated/compile/lowered.h"

#include <fmt/format.h>

#include <algorithm>

namespace tessera::backends::simulated {
namespace {

std::string_view formal_type(const std::vector<ops::FormalParam>& formals, std::size_t index) {
  return formals[std::min(index, formals.size() - 1)].type;
}

bool follows(const ir::WorkItem& item, ir::ValueId value) {
  for (const ir::Node* node : item.nodes)
    for (std::size_t i = 0; i < node->inputs.size(); ++i)
      if (node->inputs[i] == value &&
          formal_type(node->op->inputs, i) != node->op->inputs.front().type)
        return false;
  return true;
}

Status check_takes(const ir::Node& node, std::size_t input, DType precision) {
  for (const ops::TypeVariable& variable : node.op->type_variables)
    if (variable.name == formal_type(node.op->inputs, input) &&
        (variable.allowed & ops::dtype_bit(precision)) == 0)
      return fail(ErrorCode::kUnimplemented,
                  fmt::format("{}: input '{}': {} is not supported by the operator",
                              node.op->qualified_name(), node.op->inputs[input].name,
                              to_string(precision)));
  return {};
}

// Inference with the lowered dtypes: results are what the operator gives for them.
Status infer_outputs(const ir::WorkItem& item, const ir::Node& node,
                     std::map<ir::ValueId, DType>& dtypes) {
  ops::InferContext context{
      .op = *node.op,
      .attributes = node.attributes,
      .inputs = {},
      .outputs = std::vector<ValueType>(node.outputs.size()),
      .output_values = {},
      .fresh_symbol = [](std::string_view hint) { return Dim::symbol(std::string(hint)); },
      .infer_body = {}};
  context.output_values.resize(node.outputs.size());
  for (const ir::ValueId id : node.inputs) {
    ops::InferInput& input = context.inputs.emplace_back();
    if (id == ir::kNoValue) continue;
    const ir::Value& value = item.graph->value(id);
    input.present = true;
    input.type = value.type;
    if (input.type.is_tensor()) input.type.dtype = dtypes.at(id);
    if (value.constant.is_defined()) input.constant = &value.constant;
    input.value = value.known;
  }
  // A BitCast, for one, whose operand would be narrower than its result.
  TESSERA_TRY_IN(node.op->infer(context), node.op->qualified_name());
  for (std::size_t i = 0; i < node.outputs.size(); ++i)
    if (node.outputs[i] != ir::kNoValue) dtypes[node.outputs[i]] = context.outputs[i].dtype;
  return {};
}

}  // namespace

Result<std::map<ir::ValueId, DType>> lowered_dtypes(const ir::WorkItem& item, DType precision) {
  std::map<ir::ValueId, DType> dtypes;
  for (const ir::ValueId id : item.inputs) {
    const DType dtype = item.graph->value(id).type.dtype;
    dtypes[id] = dtype == DType::kFp32 && follows(item, id) ? precision : dtype;
  }
  for (const ir::Node* node : item.nodes) {
    for (std::size_t i = 0; i < node->inputs.size(); ++i) {
      const ir::ValueId id = node->inputs[i];
      if (id != ir::kNoValue && item.graph->value(id).type.dtype == DType::kFp32 &&
          dtypes.at(id) == precision)
        TESSERA_TRY(check_takes(*node, i, precision));
    }
    TESSERA_TRY(infer_outputs(item, *node, dtypes));
  }
  return dtypes;
}

}  // namespace tessera::backends::simulated
