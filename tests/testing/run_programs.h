#pragma once

// Small programs by hand, ready to write or to run. For tests that link tessera_runtime or
// tessera_artefact_write; those that run one also include testing/run_devices.h.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "artefact/read/program_image.h"

namespace tessera::testing {

// Builds the one method of the one plan of an image. Everything is row-major unless a caller
// changes it in `image`.
class ProgramBuilder {
 public:
  ProgramBuilder() {
    image.plans.push_back({"main", {{"host"}}, {{"reference", "reference", 0, {}, 0, 0}}, {}});
    plan().methods.emplace_back().name = "main";
  }

  [[nodiscard]] artefact::PlanImage& plan() { return image.plans.front(); }
  [[nodiscard]] artefact::MethodImage& method() { return plan().methods.front(); }
  [[nodiscard]] artefact::BufferDecl& buffer(std::uint32_t number) {
    return method().buffers[number];
  }

  // A simulated device with memory of its own; gives the number of both.
  std::uint32_t simulated(const std::string& name) {
    const auto memory = static_cast<std::uint32_t>(plan().memories.size());
    plan().memories.push_back({name});
    plan().devices.push_back({name, "simulated", memory, {}, 0, 0});
    return memory;
  }

  std::uint32_t add_buffer(const std::string& value, artefact::BufferKind kind, const Shape& shape,
                           DType dtype = DType::kFp32, std::uint32_t memory = 0) {
    artefact::BufferDecl decl;
    decl.value = value;
    decl.memory = memory;
    decl.tensor = {dtype, Layout::row_major(), shape};
    decl.kind = kind;
    method().buffers.push_back(std::move(decl));
    return static_cast<std::uint32_t>(method().buffers.size() - 1);
  }
  std::uint32_t temporary(const std::string& value, const Shape& shape, std::uint32_t memory = 0) {
    return add_buffer(value, artefact::BufferKind::kTemporary, shape, DType::kFp32, memory);
  }
  std::uint32_t input(const std::string& name, const Shape& shape, DType dtype = DType::kFp32) {
    const auto number = add_buffer(name, artefact::BufferKind::kInput, shape, dtype);
    method().inputs.push_back({name, number, ValueType::tensor(dtype, shape)});
    return number;
  }
  std::uint32_t output(const std::string& name, const Shape& shape, DType dtype = DType::kFp32) {
    const auto number = add_buffer(name, artefact::BufferKind::kOutput, shape, dtype);
    method().outputs.push_back({name, number, ValueType::tensor(dtype, shape)});
    return number;
  }

  std::uint32_t segment(std::span<const float> values) {
    const Tensor tensor =
        Tensor::of<float>(DType::kFp32, {static_cast<std::int64_t>(values.size())}, values);
    const auto owner = std::make_shared<const Tensor>(tensor);
    const auto size_bytes = static_cast<std::size_t>(owner->nbytes());
    image.segments.push_back({hash_bytes(owner->data(), size_bytes),
                              {static_cast<const std::byte*>(owner->data()), size_bytes}});
    image.owners.push_back(owner);
    return static_cast<std::uint32_t>(image.segments.size() - 1);
  }
  std::uint32_t constant(const std::string& value, const Dims& dims, std::span<const float> values,
                         std::uint32_t memory = 0) {
    const auto number =
        add_buffer(value, artefact::BufferKind::kConstant, to_shape(dims), DType::kFp32, memory);
    buffer(number).segment = segment(values);
    return number;
  }

  // A kernel of one operator, called on `device` with the forms of its buffers.
  artefact::Instruction& call(const std::string& op_type, const std::vector<std::uint32_t>& inputs,
                              const std::vector<std::uint32_t>& outputs, std::uint32_t device = 0,
                              const ops::Attributes& attributes = {}) {
    artefact::KernelSpec spec;
    spec.backend = plan().devices[device].backend;
    spec.kernel = op_type;
    for (const std::uint32_t number : inputs) spec.inputs.push_back(buffer(number).tensor);
    for (const std::uint32_t number : outputs) spec.outputs.push_back(buffer(number).tensor);
    artefact::KernelStep step{
        "", op_type, attributes, {}, static_cast<std::uint32_t>(outputs.size())};
    for (std::size_t i = 0; i < inputs.size(); ++i)
      step.inputs.push_back(static_cast<std::int32_t>(i));
    for (std::size_t i = 0; i < outputs.size(); ++i)
      spec.output_operands.push_back(static_cast<std::int32_t>(inputs.size() + i));
    spec.steps.push_back(std::move(step));
    return call_kernel(std::move(spec), inputs, outputs, device);
  }
  artefact::Instruction& call_kernel(artefact::KernelSpec spec,
                                     const std::vector<std::uint32_t>& inputs,
                                     const std::vector<std::uint32_t>& outputs,
                                     std::uint32_t device = 0) {
    auto& added = add(artefact::Opcode::kCall, inputs, outputs, device);
    added.kernel = static_cast<std::uint32_t>(image.kernels.size());
    added.label = spec.kernel;
    image.kernels.push_back(std::move(spec));
    return added;
  }
  artefact::Instruction& add(artefact::Opcode opcode, const std::vector<std::uint32_t>& inputs,
                             const std::vector<std::uint32_t>& outputs, std::uint32_t device = 0) {
    artefact::Instruction instruction;
    instruction.opcode = opcode;
    instruction.device = device;
    instruction.inputs = inputs;
    instruction.outputs = outputs;
    instruction.label = "step" + std::to_string(method().instructions.size());
    method().instructions.push_back(std::move(instruction));
    return method().instructions.back();
  }

  artefact::ProgramImage image;
};

}  // namespace tessera::testing
