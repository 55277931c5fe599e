#include "backends/cpu/compile/spec_draft.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "backends/compile_common/spec_builder.h"
#include "backends/cpu/run/elementwise_program.h"
#include "backends/cpu/run/layout_copy.h"
#include "backends/cpu/run/physical.h"

namespace tessera::backends::cpu {
namespace {

Result<artefact::TensorDecl> declare(const ir::Value& value, bool is_late) {
  if (!value.type.is_tensor() || (!value.type.shape && !is_late)) {
    return fail(ErrorCode::kUnimplemented,
                fmt::format("value '{}': expected a tensor of known rank, found {}", value.name,
                            value.type.to_string()));
  }
  if (bits_of(value.type.dtype) < 8) {
    return fail(ErrorCode::kUnimplemented,
                fmt::format("value '{}': expected elements of whole bytes, found {}", value.name,
                            to_string(value.type.dtype)));
  }
  return artefact::TensorDecl{value.type.dtype, {}, value.type.shape.value_or(Shape())};
}

}  // namespace

std::vector<std::span<const std::byte>> SpecDraft::constant_bytes() const {
  std::vector<std::span<const std::byte>> result;
  for (const Tensor& tensor : constants)
    result.emplace_back(static_cast<const std::byte*>(tensor.data()),
                        static_cast<std::size_t>(tensor.nbytes()));
  return result;
}

Result<SpecDraft> draft_spec(const ir::WorkItem& item) {
  SpecDraft draft;
  draft.spec.backend = "cpu";
  draft.is_late = item.is_late;
  std::map<ir::ValueId, std::int32_t> numbers;
  std::vector<ir::ValueId> baked;
  for (const ir::ValueId id : item.inputs) {
    const ir::Value& value = item.graph->value(id);
    TESSERA_ASSIGN(auto decl, declare(value, item.is_late));
    if (value.kind == ir::ValueKind::kConstant) {
      baked.push_back(id);
      draft.spec.constants.push_back(std::move(decl));
      draft.spec.constants.back().shape = to_shape(value.constant.dims());
      draft.constants.push_back(value.constant);
    } else {
      numbers[id] = static_cast<std::int32_t>(draft.spec.inputs.size());
      draft.spec.inputs.push_back(std::move(decl));
    }
  }
  for (std::size_t i = 0; i < baked.size(); ++i)
    numbers[baked[i]] = static_cast<std::int32_t>(draft.spec.inputs.size() + i);
  for (const ir::ValueId id : item.inputs) draft.item_inputs.push_back(numbers[id]);
  auto next = static_cast<std::int32_t>(draft.spec.inputs.size() + draft.spec.constants.size());
  for (const ir::Node* node : item.nodes) {
    if (!node->bodies.empty())
      return fail(ErrorCode::kUnimplemented, fmt::format("{}: expected an operator without bodies",
                                                         node->op->qualified_name()));
    artefact::KernelStep step;
    step.domain = node->op->domain;
    step.op_type = node->op->name;
    step.attributes = node->attributes;
    for (const ir::ValueId id : node->inputs)
      step.inputs.push_back(id == ir::kNoValue ? -1 : numbers.at(id));
    step.output_count = static_cast<std::uint32_t>(node->outputs.size());
    for (const ir::ValueId id : node->outputs) {
      if (id != ir::kNoValue) numbers[id] = next;
      ++next;
    }
    draft.spec.steps.push_back(std::move(step));
  }
  for (const ir::ValueId id : item.outputs) {
    TESSERA_ASSIGN(auto decl, declare(item.graph->value(id), item.is_late));
    draft.spec.outputs.push_back(std::move(decl));
    draft.spec.output_operands.push_back(numbers.at(id));
  }
  return draft;
}

Result<InstanceDims> dims_at(const artefact::KernelSpec& spec, const SymbolBindings& point) {
  InstanceDims dims;
  for (const auto& decl : spec.inputs) {
    TESSERA_ASSIGN(auto sizes, evaluate(decl.shape, point));
    dims.inputs.push_back(std::move(sizes));
  }
  for (const auto& decl : spec.outputs) {
    TESSERA_ASSIGN(auto sizes, evaluate(decl.shape, point));
    dims.outputs.push_back(std::move(sizes));
  }
  return dims;
}

InstanceDims late_dims(const ir::WorkItem& item, const SymbolBindings& point) {
  InstanceDims dims;
  for (const ir::ValueId id : item.inputs) {
    if (item.graph->value(id).kind == ir::ValueKind::kConstant) continue;
    auto sizes = backends::dims_at(item, id, point);
    if (!sizes) return {};
    dims.inputs.push_back(*std::move(sizes));
  }
  for (const ir::ValueId id : item.outputs) {
    auto sizes = backends::dims_at(item, id, point);
    if (!sizes) return {};
    dims.outputs.push_back(*std::move(sizes));
  }
  return dims;
}

void relayout_constant(SpecDraft& draft, std::size_t index, const Layout& layout,
                       const std::optional<Dims>& dims) {
  auto& decl = draft.spec.constants[index];
  const Tensor& old = draft.constants[index];
  TESSERA_CHECK(decl.layout.is_row_major());
  const Dims sizes = dims.value_or(*constant_dims(decl.shape));
  decl.shape = to_shape(sizes);
  if (layout.is_row_major()) {
    draft.constants[index] = old.reshaped(sizes);
    return;
  }
  decl.layout = layout;
  const Dims stored = physical_dims(layout, sizes);
  auto packed = Tensor::zeros(decl.dtype, stored);
  TESSERA_CHECK(packed.has_value());
  const LayoutCopy copy({}, layout, sizes, bits_of(decl.dtype) / 8);
  copy.run(static_cast<const std::byte*>(old.data()),
           static_cast<std::byte*>(packed->mutable_data()), 0, copy.rows());
  draft.constants[index] = *std::move(packed);
}

void align_elementwise_constants(SpecDraft& draft, std::size_t first_step) {
  const auto& spec = draft.spec;
  const Layout layout = spec.outputs[0].layout;
  const std::size_t rank = spec.outputs[0].shape.size();
  const int block = channel_block_of(layout);
  for (std::size_t c = 0; c < spec.constants.size(); ++c) {
    const auto number = static_cast<std::int32_t>(spec.inputs.size() + c);
    bool elementwise = false;
    bool elsewhere = false;
    for (std::size_t s = 0; s < spec.steps.size(); ++s) {
      const auto& inputs = spec.steps[s].inputs;
      if (std::find(inputs.begin(), inputs.end(), number) == inputs.end()) continue;
      (s >= first_step && is_simd_elementwise(spec.steps[s].domain, spec.steps[s].op_type)
           ? elementwise
           : elsewhere) = true;
    }
    const auto dims = constant_dims(spec.constants[c].shape);
    if (!elementwise || elsewhere || !dims || numel(*dims) == 1 || dims->size() > rank ||
        !spec.constants[c].layout.is_row_major())
      continue;
    Dims wide(rank - dims->size(), 1);
    wide.insert(wide.end(), dims->begin(), dims->end());
    const bool broadcast_channel = block > 1 && wide[1] == 1;
    relayout_constant(draft, c, broadcast_channel ? Layout{} : layout, wide);
  }
}

Status check_tail(const SpecDraft& draft, const InstanceDims& dims, std::size_t first_step) {
  if (draft.spec.steps.size() <= first_step) return {};
  const auto bytes = draft.constant_bytes();
  TESSERA_ASSIGN(const auto tail, ElementwiseProgram::parse(draft.spec, bytes, first_step));
  TESSERA_TRY(tail.bind(dims));
  return {};
}

void apply_forms(SpecDraft& draft, const Candidate& candidate) {
  for (std::size_t i = 0; i < candidate.inputs.size(); ++i) {
    if (candidate.inputs[i])
      draft.spec.inputs[static_cast<std::size_t>(draft.item_inputs[i])].layout =
          candidate.inputs[i]->layout;
  }
  for (std::size_t i = 0; i < candidate.outputs.size(); ++i)
    draft.spec.outputs[i].layout = candidate.outputs[i].layout;
}

}  // namespace tessera::backends::cpu
