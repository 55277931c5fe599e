// Instructions whose operands have sizes, ranks or kinds that only the run decides.

#include <fmt/format.h>

#include "runtime/frame.h"

namespace tessera::runtime {
namespace {

using artefact::Instruction;
using artefact::Opcode;

}  // namespace

void Frame::bind_loose_inputs() {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const std::uint32_t buffer = method_.inputs[i].buffer;
    if (!loose_[buffer]) continue;
    Slot& slot = slots_[buffer];
    slot.dims = inputs_[i].dims;
    slot.data = const_cast<std::byte*>(inputs_[i].data);
    slot.value = inputs_[i].value;
    if (method_.inputs[i].type.is_tensor() && !slot.value.tensor.is_defined())
      slot.value =
          RunValue::of(Tensor::borrow(method_.inputs[i].type.dtype, slot.dims, slot.data, nullptr));
  }
}

// Names each symbol that a size is, and holds the others to what they say.
Status Frame::learn_sizes(std::uint32_t buffer, const Dims& dims) {
  const auto& declared = method_.buffers[buffer].tensor.shape;
  if (declared.size() != dims.size()) return {};  // of unknown rank
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (const auto symbol = declared[d].as_symbol()) bindings_.emplace(*symbol, dims[d]);
    const auto expected = declared[d].evaluate(bindings_);
    if (expected && *expected != dims[d])
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("value '{}': dimension {}: expected {} = {}, found {}",
                              method_.buffers[buffer].value, d, declared[d].to_string(), *expected,
                              dims[d]));
  }
  return {};
}

Status Frame::set_value(std::uint32_t buffer, RunValue value) {
  Slot& slot = slots_[buffer];
  slot.value = std::move(value);
  slot.dims.clear();
  slot.data = nullptr;
  if (!slot.value.is_tensor()) return {};
  const Tensor& tensor = slot.value.tensor;
  const DType declared = method_.buffers[buffer].tensor.dtype;
  if (tensor.dtype() != declared)
    return fail(ErrorCode::kInternal,
                fmt::format("value '{}': expected {}, found {}", method_.buffers[buffer].value,
                            to_string(declared), to_string(tensor.dtype())));
  slot.dims = tensor.dims();
  slot.data = static_cast<std::byte*>(const_cast<void*>(tensor.data()));
  return learn_sizes(buffer, slot.dims);
}

// An artefact may be damaged: a loose value that no instruction made has no address.
Status Frame::check_made(std::uint32_t buffer) const {
  if (!loose_[buffer]) return {};
  const Slot& slot = slots_[buffer];
  const bool is_made = slot.value.is_tensor() && (slot.data != nullptr || numel(slot.dims) == 0);
  if (is_made && slot.dims.size() == method_.buffers[buffer].tensor.shape.size()) return {};
  return fail(
      ErrorCode::kDataLoss,
      fmt::format("value '{}': expected a tensor of rank {}, found none",
                  method_.buffers[buffer].value, method_.buffers[buffer].tensor.shape.size()));
}

// Storage of a loose buffer whose dims are known now: a tensor where it can be handed on as one.
Status Frame::allocate(std::uint32_t buffer, Dims dims) {
  const auto& decl = method_.buffers[buffer];
  Slot& slot = slots_[buffer];
  auto& owner = program().memory_owner(decl.memory);
  if (owner.host_memory() && decl.tensor.layout.is_row_major()) {
    TESSERA_ASSIGN(Tensor tensor, Tensor::zeros(decl.tensor.dtype, dims));
    slot.data = static_cast<std::byte*>(tensor.mutable_data());
    slot.value = RunValue::of(std::move(tensor));
  } else {
    TESSERA_TRY(checked_nbytes(decl.tensor.dtype, padded_dims(decl.tensor.layout, dims)));
    TESSERA_TRY(
        slot.memory.ensure(owner, layout_nbytes(decl.tensor.layout, decl.tensor.dtype, dims)));
    slot.data = slot.memory.data();
  }
  slot.dims = std::move(dims);
  return {};
}

RunValue Frame::borrow(std::uint32_t buffer) const {
  if (loose_[buffer]) return slots_[buffer].value;
  return RunValue::of(Tensor::borrow(method_.buffers[buffer].tensor.dtype, plan_->dims[buffer],
                                     buffer_pointers_[buffer], nullptr));
}

Status Frame::execute_loose(std::size_t index) {
  const Instruction& instruction = method_.instructions[index];
  switch (instruction.opcode) {
    case Opcode::kBranch: return run_branch(index);
    case Opcode::kLoop: return instruction.control.is_scan ? run_scan(index) : run_loop(index);
    case Opcode::kTransfer:
    case Opcode::kWriteBack: return copy_loose(index);
    default: break;
  }
  const auto& options = program().image().kernels[instruction.kernel].options;
  const auto late = options.find("late");
  return late != options.end() && late->second != 0 ? run_late(index) : run_kernel(index);
}

Status Frame::copy_loose(std::size_t index) {
  const Instruction& instruction = method_.instructions[index];
  const std::uint32_t from = instruction.inputs[0];
  const std::uint32_t to = instruction.outputs[0];
  if (loose_[from] && loose_[to] && slots_[from].value.kind != ValueType::Kind::kTensor)
    return set_value(to, slots_[from].value);
  const auto& decl = method_.buffers[from].tensor;
  if (decl.dtype == DType::kString) return set_value(to, borrow(from));
  // What lies in row-major order may have any rank: that of the buffer may not be known.
  const Slot& slot = slots_[from];
  const bool is_held = loose_[from] && slot.value.is_tensor() && decl.layout.is_row_major() &&
                       (slot.data != nullptr || numel(slot.dims) == 0);
  if (!is_held) TESSERA_TRY(check_made(from));
  if (loose_[to])
    TESSERA_TRY(allocate(to, dims_of(from)));
  else if (dims_of(from) != plan_->dims[to])
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("value '{}': expected [{}] as in '{}', found [{}]",
                            method_.buffers[to].value, fmt::join(dims_of(from), ", "),
                            method_.buffers[from].value, fmt::join(plan_->dims[to], ", ")));
  return transfer(instruction, data_of(from), data_of(to),
                  layout_nbytes(decl.layout, decl.dtype, dims_of(from)));
}

// A kernel whose result sizes follow from what is known by now.
Status Frame::run_kernel(std::size_t index) {
  const Instruction& instruction = method_.instructions[index];
  backends::InstanceDims dims;
  for (const std::uint32_t buffer : instruction.inputs) {
    TESSERA_TRY(check_made(buffer));
    dims.inputs.push_back(dims_of(buffer));
  }
  for (const std::uint32_t buffer : instruction.outputs) {
    if (loose_[buffer]) {
      auto sizes = instruction.opcode == Opcode::kConvert
                       ? Result<Dims>(dims.inputs.front())
                       : evaluate(method_.buffers[buffer].tensor.shape, bindings_);
      if (!sizes)
        return tl::unexpected(in_context(std::move(sizes).error(),
                                         fmt::format("value '{}'", method_.buffers[buffer].value)));
      TESSERA_TRY(allocate(buffer, *std::move(sizes)));
    }
    dims.outputs.push_back(dims_of(buffer));
  }
  const Operands& at = operands_[index];
  for (std::size_t i = 0; i < instruction.inputs.size(); ++i)
    input_pointers_[at.first_input + i] = data_of(instruction.inputs[i]);
  for (std::size_t i = 0; i < instruction.outputs.size(); ++i)
    output_pointers_[at.first_output + i] = data_of(instruction.outputs[i]);
  TESSERA_ASSIGN(backends::KernelInstance * instance,
                 instances_[index].find(*program().kernel(instruction.kernel), std::move(dims),
                                        shared_.threads));
  TESSERA_TRY(shared_.scratch.ensure(program().memory_owner(0), instance->scratch_bytes()));
  return instance->execute(
      {.inputs = {input_pointers_.data() + at.first_input, instruction.inputs.size()},
       .outputs = {output_pointers_.data() + at.first_output, instruction.outputs.size()},
       .scratch = shared_.scratch.data(),
       .parallel = &shared_.pool});
}

// A kernel that decides the sizes of its results.
Status Frame::run_late(std::size_t index) {
  const Instruction& instruction = method_.instructions[index];
  std::vector<RunValue> inputs;
  for (const std::uint32_t buffer : instruction.inputs) inputs.push_back(borrow(buffer));
  std::vector<const RunValue*> pointers;
  for (const RunValue& input : inputs) pointers.push_back(&input);
  TESSERA_ASSIGN(auto results,
                 program().kernel(instruction.kernel)->run_late(pointers, &shared_.pool));
  TESSERA_CHECK(results.size() == instruction.outputs.size());
  for (std::size_t i = 0; i < results.size(); ++i)
    TESSERA_TRY(set_value(instruction.outputs[i], std::move(results[i])));
  return {};
}

}  // namespace tessera::runtime
