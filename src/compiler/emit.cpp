#include "compiler/emit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/float_convert.h"
#include "base/string_tensor.h"

namespace tessera::compiler {
namespace {

using artefact::BufferKind;
using artefact::Opcode;

std::string decl_text(const artefact::TensorDecl& decl) {
  return fmt::format("{}{}{};", to_string(decl.dtype), to_string(decl.shape),
                     decl.layout.to_string());
}

// Everything that makes a kernel what it is; equal texts are one kernel.
std::string kernel_text(const artefact::KernelSpec& spec) {
  std::string text = fmt::format("{}|{}|{}|", spec.backend, spec.kernel, spec.kernel_version);
  for (const auto* list : {&spec.inputs, &spec.constants, &spec.outputs}) {
    for (const auto& decl : *list) text += decl_text(decl);
    text += "|";
  }
  for (const std::uint32_t segment : spec.constant_segments) text += fmt::format("{},", segment);
  for (const auto& step : spec.steps) {
    text += fmt::format("|{}::{}({};{};", step.domain, step.op_type, step.attributes.to_string(),
                        step.output_count);
    for (const std::int32_t input : step.inputs) text += fmt::format("{},", input);
  }
  for (const std::int32_t operand : spec.output_operands) text += fmt::format("|{}", operand);
  for (const auto& [key, value] : spec.options) text += fmt::format("|{}={}", key, value);
  return text;
}

// A constant in the form that a kernel reads it in, as bytes.
Result<Tensor> in_form(const Tensor& constant, const backends::TensorForm& form) {
  if (constant.dtype() == DType::kString) return encode_strings(constant.view());
  Tensor cast = constant;
  if (form.dtype != constant.dtype()) {
    TESSERA_ASSIGN(cast, Tensor::zeros(form.dtype, constant.dims()));
    cast_elements(constant.view(), cast.mutable_view(), true);
  }
  if (form.layout.is_row_major()) return cast;
  TESSERA_ASSIGN(
      Tensor ordered,
      Tensor::zeros(DType::kUInt8, {layout_nbytes(form.layout, form.dtype, constant.dims())}));
  convert_layout(Layout::row_major(), cast.data(), form.layout, ordered.mutable_data(), form.dtype,
                 constant.dims());
  return ordered;
}

std::vector<std::string> source_names(const ir::Module& module, const plan::LoweredStep& step) {
  std::set<ir::OriginId> origins;
  if (step.item != nullptr)
    for (const ir::Node* node : step.item->item.nodes)
      origins.insert(node->origins.begin(), node->origins.end());
  std::vector<std::string> names;
  for (const ir::OriginId origin : origins) names.push_back(module.source_nodes[origin].name);
  return names;
}

void collect_symbols(const ir::Module& module, artefact::MethodImage& method) {
  std::set<std::string, std::less<>> symbols;
  for (const auto& buffer : method.buffers)
    for (const Dim& size : buffer.tensor.shape) size.collect_symbols(symbols);
  for (const std::string& name : symbols) {
    const auto range = module.symbols.find(name);
    method.symbols[name] = range == module.symbols.end() ? SymbolRange{} : range->second;
  }
}

}  // namespace

// Kernels of two devices are two kernels, since each device loads its own.
std::uint32_t Emitter::add_kernel(const std::string& device, backends::CompiledKernel kernel) {
  for (const Tensor& constant : kernel.constants)
    kernel.spec.constant_segments.push_back(segments_.add(constant));
  auto text = device + "|" + kernel_text(kernel.spec);
  const auto [entry, is_new] =
      kernel_numbers_.emplace(std::move(text), static_cast<std::uint32_t>(image_.kernels.size()));
  if (is_new) image_.kernels.push_back(std::move(kernel.spec));
  return entry->second;
}

Result<std::uint32_t> Emitter::kernel_of(const ir::Graph& graph, const plan::LoweredStep& step) {
  auto& device = *target_.devices[step.device];
  const auto shape_of = [&](const plan::LoweredStep& conversion) {
    return *graph.value(conversion.value).type.shape;
  };
  auto kernel =
      step.opcode == Opcode::kCall
          ? device.compile(step.item->item, step.option->candidate)
          : device.compile_conversion(step.conversion.from.tensor, step.conversion.to.tensor,
                                      shape_of(step), step.conversion.candidate);
  if (!kernel && step.item != nullptr)
    failed_ = plan::Exclusion{device.info().name, plan::item_nodes(step.item->item),
                              kernel.error().to_string()};
  if (!kernel)
    return tl::unexpected(
        in_context(std::move(kernel).error(),
                   fmt::format("device '{}', node '{}'", device.info().name, step.label)));
  return add_kernel(device.info().name, *std::move(kernel));
}

Result<artefact::BufferDecl> Emitter::buffer_of(const ir::Graph& graph,
                                                const plan::LoweredBuffer& buffer) {
  const ir::Value& value = graph.value(buffer.value);
  artefact::BufferDecl decl;
  decl.value = value.name;
  decl.memory = buffer.form.memory;
  decl.tensor = {buffer.form.tensor.dtype, buffer.form.tensor.layout,
                 value.type.shape.value_or(Shape())};
  decl.kind = buffer.kind;
  decl.is_dynamic = buffer.is_dynamic;
  decl.alias_of = buffer.alias_of;
  decl.above = buffer.above;
  std::ranges::sort(decl.above);
  if (buffer.kind == BufferKind::kConstant) {
    decl.tensor.shape = to_shape(buffer.constant.dims());
    TESSERA_ASSIGN(const Tensor bytes, in_form(buffer.constant, buffer.form.tensor));
    decl.segment = segments_.add(bytes);
  }
  return decl;
}

namespace {

artefact::InterfaceDecl interface_of(const ir::Graph& graph, const plan::Lowered& lowered,
                                     std::uint32_t buffer) {
  const ir::Value& value = graph.value(lowered.buffers[buffer].value);
  return {value.name, buffer, value.type};
}

bool is_state(const ir::Method& method, std::string ir::StatePair::*member,
              const std::string& name) {
  return std::ranges::any_of(method.states,
                             [&](const ir::StatePair& state) { return state.*member == name; });
}

}  // namespace

// Buffers, instructions and the whole interface; states are taken out of it by emit().
Result<artefact::MethodImage> Emitter::method_image(const ir::Module& module,
                                                    const ir::Graph& graph,
                                                    const plan::Lowered& lowered) {
  artefact::MethodImage image;
  for (const auto& buffer : lowered.buffers) {
    TESSERA_ASSIGN(auto decl, buffer_of(graph, buffer));
    image.buffers.push_back(std::move(decl));
  }
  for (const auto& step : lowered.steps) {
    artefact::Instruction instruction;
    instruction.opcode = step.opcode;
    instruction.device = step.device;
    instruction.inputs = step.inputs;
    instruction.outputs = step.outputs;
    instruction.bodies = step.bodies;
    instruction.control = step.control;
    instruction.region = step.region;
    instruction.label = step.label;
    instruction.source_nodes = source_names(module, step);
    instruction.predicted_us = step.price_us;
    if (step.opcode == Opcode::kCall || step.opcode == Opcode::kConvert) {
      TESSERA_ASSIGN(instruction.kernel, kernel_of(graph, step));
    }
    image.instructions.push_back(std::move(instruction));
  }
  for (const std::uint32_t buffer : lowered.input_buffers)
    image.inputs.push_back(interface_of(graph, lowered, buffer));
  for (const std::uint32_t buffer : lowered.output_buffers)
    image.outputs.push_back(interface_of(graph, lowered, buffer));
  collect_symbols(module, image);
  return image;
}

Status Emitter::emit(const std::string& plan_name, const ir::Module& module,
                     const ir::Method& method, const std::vector<plan::Lowered>& lowered,
                     const SymbolBindings& point) {
  artefact::PlanImage plan;
  plan.name = plan_name;
  for (const std::string& memory : target_.memories) plan.memories.push_back({memory});
  for (std::uint32_t device = 0; device < target_.device_count(); ++device) {
    const auto& info = target_.info(device);
    plan.devices.push_back({info.name, info.backend, target_.memory_of[device], info.profile,
                            info.rates.launch_us, info.rates.sync_us});
  }
  for (const plan::Lowered& graph : lowered) {
    TESSERA_ASSIGN(auto image, method_image(module, method.graph, graph));
    image.name = method.name;
    if (graph.block != 0) {
      const ir::Block& block = method.graph.blocks[graph.block];
      image.name = method.graph.find_node(block.owner)->name + "/" + block.name;
    }
    plan.methods.push_back(std::move(image));
  }
  artefact::MethodImage& main = plan.methods.front();
  main.priced_at = point;
  std::erase_if(main.inputs, [&](const auto& entry) {
    return is_state(method, &ir::StatePair::input, entry.name);
  });
  // An output that shares its buffer with another value still has its own name.
  for (std::size_t i = 0; i < method.graph.outputs.size(); ++i) {
    const ir::Value& value = method.graph.value(method.graph.outputs[i]);
    main.outputs[i].name = value.name;
    main.outputs[i].type = value.type;
  }
  std::erase_if(main.outputs, [&](const auto& entry) {
    return is_state(method, &ir::StatePair::output, entry.name);
  });
  for (const ir::StatePair& state : method.states) {
    const std::uint32_t initial =
        state.initial.is_defined() ? segments_.add(state.initial) : UINT32_MAX;
    main.states.push_back({state.input, state.output, initial});
    for (auto& buffer : main.buffers)
      if (buffer.kind == BufferKind::kState && buffer.value == state.input)
        buffer.segment = initial;
  }
  image_.plans.push_back(std::move(plan));
  return {};
}

}  // namespace tessera::compiler
