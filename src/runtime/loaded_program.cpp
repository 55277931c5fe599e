#include "runtime/loaded_program.h"

#include <fmt/format.h>

#include <algorithm>

namespace tessera::runtime {
namespace {

using artefact::Opcode;

// The instructions that this runtime executes; the others of the schema are refused at load.
std::string_view unimplemented_name(Opcode opcode) {
  switch (opcode) {
    case Opcode::kCall:
    case Opcode::kConvert:
    case Opcode::kTransfer:
    case Opcode::kWait:
    case Opcode::kBranch:
    case Opcode::kLoop:
    case Opcode::kWriteBack: return {};
    case Opcode::kEvaluateShape: return "evaluate shape";
    case Opcode::kAllocate: return "allocate";
  }
  return "unknown";
}

Result<const artefact::PlanImage*> find_plan(const artefact::ProgramImage& image,
                                             std::string_view name) {
  if (name.empty()) return &image.plans.front();
  std::string known;
  for (const auto& plan : image.plans) {
    if (plan.name == name) return &plan;
    known += known.empty() ? plan.name : ", " + plan.name;
  }
  return fail(ErrorCode::kNotFound,
              fmt::format("no plan '{}' in the artefact: it has {}", name, known));
}

Status check_instructions(const artefact::PlanImage& plan) {
  for (const auto& method : plan.methods)
    for (const auto& instruction : method.instructions)
      if (const auto name = unimplemented_name(instruction.opcode); !name.empty())
        return fail(ErrorCode::kUnimplemented,
                    fmt::format("plan '{}', method '{}', '{}': this runtime does not implement the "
                                "instruction '{}'",
                                plan.name, method.name, instruction.label, name));
  return {};
}

}  // namespace

Result<std::shared_ptr<const LoadedProgram>> LoadedProgram::create(artefact::ProgramImage image,
                                                                   std::string_view plan,
                                                                   DeviceFactory make_device) {
  std::shared_ptr<LoadedProgram> program(new LoadedProgram());
  program->image_ = std::move(image);
  TESSERA_ASSIGN(program->plan_, find_plan(program->image_, plan));
  TESSERA_TRY(check_instructions(*program->plan_));
  TESSERA_TRY(program->load_devices(make_device));
  TESSERA_TRY(program->load_kernels());
  return std::shared_ptr<const LoadedProgram>(std::move(program));
}

Status LoadedProgram::load_devices(DeviceFactory make_device) {
  memory_owners_.assign(plan_->memories.size(), SIZE_MAX);
  for (std::size_t i = 0; i < plan_->devices.size(); ++i) {
    const auto& decl = plan_->devices[i];
    TESSERA_ASSIGN(auto device, make_device(decl));
    devices_.push_back(std::move(device));
    if (memory_owners_[decl.memory] == SIZE_MAX) memory_owners_[decl.memory] = i;
  }
  for (std::size_t memory = 0; memory < memory_owners_.size(); ++memory)
    if (memory_owners_[memory] == SIZE_MAX)
      return fail(ErrorCode::kDataLoss,
                  fmt::format("damaged artefact: no device has the memory '{}'",
                              plan_->memories[memory].name));
  if (!memory_owner(0).host_memory())
    return fail(ErrorCode::kDataLoss, "damaged artefact: the first memory is not host memory");
  return {};
}

Status LoadedProgram::load_kernels() {
  kernels_.resize(image_.kernels.size());
  for (const auto& method : plan_->methods) {
    for (const auto& instruction : method.instructions) {
      if (instruction.kernel == UINT32_MAX || kernels_[instruction.kernel] != nullptr) continue;
      const auto& spec = image_.kernels[instruction.kernel];
      std::vector<std::span<const std::byte>> constants;
      for (const std::uint32_t number : spec.constant_segments)
        constants.push_back(segment(number));
      auto kernel = devices_[instruction.device]->load(spec, constants);
      if (!kernel)
        return tl::unexpected(
            in_context(std::move(kernel).error(),
                       fmt::format("kernel '{}' of '{}'", spec.kernel, instruction.label)));
      kernels_[instruction.kernel] = *std::move(kernel);
    }
  }
  return {};
}

}  // namespace tessera::runtime
