#include "runtime/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

namespace tessera::runtime {
namespace {

using artefact::BufferKind;
using artefact::Instruction;
using artefact::Opcode;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// The position of `name` in a method's inputs or outputs; the error lists those that exist.
Result<std::size_t> find_interface(const std::vector<artefact::InterfaceDecl>& decls,
                                   std::string_view name, std::string_view kind) {
  for (std::size_t i = 0; i < decls.size(); ++i)
    if (decls[i].name == name) return i;
  std::string known;
  for (const auto& decl : decls) known += (known.empty() ? "'" : ", '") + decl.name + "'";
  return fail(ErrorCode::kNotFound,
              fmt::format("no {} '{}': expected one of {}", kind, name, known));
}

}  // namespace

OwnedBuffer& OwnedBuffer::operator=(OwnedBuffer&& other) noexcept {
  if (this != &other) {
    release();
    device_ = std::exchange(other.device_, nullptr);
    buffer_ = std::exchange(other.buffer_, {});
  }
  return *this;
}

void OwnedBuffer::release() {
  if (device_ != nullptr) device_->release(buffer_);
  device_ = nullptr;
  buffer_ = {};
}

Status OwnedBuffer::ensure(backends::RunDevice& device, std::int64_t size_bytes) {
  if (device_ != nullptr && buffer_.size_bytes >= size_bytes) return {};
  release();
  TESSERA_ASSIGN(buffer_, device.allocate(size_bytes));
  device_ = &device;
  return {};
}

Executor::Executor(std::shared_ptr<const LoadedProgram> program, const ExecutorOptions& options)
    : program_(std::move(program)),
      pool_(options.threads),
      threads_(options.threads),
      traced_(options.trace) {
  const auto& method = program_->method();
  inputs_.resize(method.inputs.size());
  outputs_.resize(method.outputs.size());
  arenas_.resize(program_->plan().memories.size());
  buffer_pointers_.resize(method.buffers.size());
  for (const Instruction& instruction : method.instructions) {
    operands_.push_back({input_pointers_.size(), output_pointers_.size()});
    input_pointers_.resize(input_pointers_.size() + instruction.inputs.size());
    output_pointers_.resize(output_pointers_.size() + instruction.outputs.size());
  }
  if (traced_) trace_.events.reserve(method.instructions.size());
}

Result<std::unique_ptr<Executor>> Executor::create(std::shared_ptr<const LoadedProgram> program,
                                                   const ExecutorOptions& options) {
  if (options.threads < 1)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("threads: expected at least 1, found {}", options.threads));
  std::unique_ptr<Executor> executor(new Executor(std::move(program), options));
  TESSERA_TRY(executor->load_constants());
  return executor;
}

// Constants in host memory are read where the artefact is mapped; other memories get their own
// copy, once per session.
Status Executor::load_constants() {
  const auto& method = program_->method();
  for (std::uint32_t i = 0; i < method.buffers.size(); ++i) {
    const auto& buffer = method.buffers[i];
    if (buffer.kind != BufferKind::kConstant || buffer.alias_of != UINT32_MAX) continue;
    auto& owner = program_->memory_owner(buffer.memory);
    if (owner.host_memory()) continue;
    const auto bytes = program_->segment(buffer.segment);
    OwnedBuffer& copy = device_constants_[i];
    TESSERA_TRY(copy.ensure(owner, static_cast<std::int64_t>(bytes.size())));
    TESSERA_TRY(
        owner.copy_from_host(copy.data(), bytes.data(), static_cast<std::int64_t>(bytes.size())));
  }
  return {};
}

Status Executor::bind_input(std::string_view name, DType dtype, std::span<const std::int64_t> dims,
                            const void* data) {
  const auto& decls = program_->method().inputs;
  TESSERA_ASSIGN(const std::size_t index, find_interface(decls, name, "input"));
  const ValueType& type = decls[index].type;
  if (dtype != type.dtype)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("input '{}': expected element type {}, found {}", name,
                            to_string(type.dtype), to_string(dtype)));
  if (dims.size() != type.shape->size())
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("input '{}': expected rank {} {}, found rank {} [{}]", name, type.shape->size(),
                    to_string(*type.shape), dims.size(), fmt::join(dims, ", ")));
  if (const auto negative = std::ranges::find_if(dims, [](std::int64_t size) { return size < 0; });
      negative != dims.end())
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("input '{}': dimension {}: expected at least 0, found {}", name,
                            negative - dims.begin(), *negative));
  if (data == nullptr && std::ranges::find(dims, 0) == dims.end())
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("input '{}': expected data for [{}], found a null pointer", name,
                            fmt::join(dims, ", ")));
  InputBinding& input = inputs_[index];
  if (!input.bound || !std::ranges::equal(input.dims, dims)) {
    input.dims.assign(dims.begin(), dims.end());
    dims_changed_ = true;
  }
  input.bound = true;
  input.data = static_cast<const std::byte*>(data);
  pointers_changed_ = true;
  return {};
}

Status Executor::bind_output(std::string_view name, void* data, std::int64_t size_bytes) {
  TESSERA_ASSIGN(const std::size_t index,
                 find_interface(program_->method().outputs, name, "output"));
  outputs_[index].data = static_cast<std::byte*>(data);
  outputs_[index].size_bytes = size_bytes;
  pointers_changed_ = true;
  return {};
}

Status Executor::choose_plan() {
  std::vector<Dims> key;
  for (const InputBinding& input : inputs_) key.push_back(input.dims);
  const auto found =
      std::ranges::find_if(plans_, [&](const auto& entry) { return entry.first == key; });
  if (found != plans_.end()) {
    plans_.splice(plans_.begin(), plans_, found);
  } else {
    TESSERA_ASSIGN(const SymbolBindings bindings, bind_symbols(program_->method(), key));
    TESSERA_ASSIGN(auto plan, make_shape_plan(*program_, bindings, threads_));
    ++shape_plans_made_;
    plans_.emplace_front(std::move(key), std::move(plan));
    if (plans_.size() > kShapePlansKept) plans_.pop_back();
  }
  plan_ = plans_.front().second.get();
  return {};
}

Status Executor::prepare_states() {
  const auto& method = program_->method();
  for (std::uint32_t i = 0; i < method.buffers.size(); ++i) {
    if (method.buffers[i].kind != BufferKind::kState || method.buffers[i].alias_of != UINT32_MAX)
      continue;
    auto& owner = program_->memory_owner(method.buffers[i].memory);
    const auto entry = states_.find(i);
    if (entry != states_.end() && entry->second.size_bytes() != plan_->size_bytes[i])
      return fail(
          ErrorCode::kInvalidArgument,
          fmt::format("state '{}': expected {} bytes as in the first run, found {}",
                      method.buffers[i].value, entry->second.size_bytes(), plan_->size_bytes[i]));
    if (entry != states_.end()) continue;
    OwnedBuffer state;
    TESSERA_TRY(state.ensure(owner, plan_->size_bytes[i]));
    if (method.buffers[i].segment != UINT32_MAX) {
      const auto initial = program_->segment(method.buffers[i].segment);
      const auto found = static_cast<std::int64_t>(initial.size());
      if (found != plan_->size_bytes[i])
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("state '{}': expected {} bytes as its initial value has, found {}",
                                method.buffers[i].value, found, plan_->size_bytes[i]));
      TESSERA_TRY(owner.copy_from_host(state.data(), initial.data(), found));
    }
    states_.emplace(i, std::move(state));
  }
  return {};
}

Status Executor::prepare_memory() {
  for (std::size_t memory = 0; memory < arenas_.size(); ++memory)
    TESSERA_TRY(arenas_[memory].ensure(program_->memory_owner(memory), plan_->arena_bytes[memory]));
  auto& host = program_->memory_owner(0);
  TESSERA_TRY(scratch_.ensure(host, plan_->scratch_bytes));
  TESSERA_TRY(bounce_.ensure(host, plan_->bounce_bytes));
  return prepare_states();
}

Status Executor::prepare_outputs() {
  const auto& method = program_->method();
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const std::uint32_t buffer = method.outputs[i].buffer;
    const std::int64_t needed = plan_->size_bytes[buffer];
    if (outputs_[i].data == nullptr) {
      TESSERA_TRY(outputs_[i].own.ensure(program_->memory_owner(0), needed));
    } else if (outputs_[i].size_bytes < needed) {
      return fail(
          ErrorCode::kInvalidArgument,
          fmt::format("output '{}': expected room for {} bytes ({}[{}]), found {}",
                      method.outputs[i].name, needed, to_string(method.outputs[i].type.dtype),
                      fmt::join(plan_->dims[buffer], ", "), outputs_[i].size_bytes));
    }
  }
  return {};
}

std::byte* Executor::resolve(std::uint32_t index) {
  const auto& buffer = program_->method().buffers[index];
  if (buffer.alias_of != UINT32_MAX) return resolve(buffer.alias_of) + plan_->offset_bytes[index];
  switch (buffer.kind) {
    case BufferKind::kTemporary: return arenas_[buffer.memory].data() + plan_->offset_bytes[index];
    case BufferKind::kState: return states_[index].data();
    case BufferKind::kConstant: {
      const auto copy = device_constants_.find(index);
      if (copy != device_constants_.end()) return copy->second.data();
      // Kernels take inputs as const pointers; nothing writes through this one.
      return const_cast<std::byte*>(program_->segment(buffer.segment).data());
    }
    case BufferKind::kInput:
    case BufferKind::kOutput: return buffer_pointers_[index];
  }
  return nullptr;
}

void Executor::resolve_pointers() {
  const auto& method = program_->method();
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    buffer_pointers_[method.inputs[i].buffer] = const_cast<std::byte*>(inputs_[i].data);
  for (std::size_t i = 0; i < outputs_.size(); ++i)
    buffer_pointers_[method.outputs[i].buffer] =
        outputs_[i].data != nullptr ? outputs_[i].data : outputs_[i].own.data();
  for (std::uint32_t i = 0; i < buffer_pointers_.size(); ++i) buffer_pointers_[i] = resolve(i);
  for (std::size_t i = 0; i < method.instructions.size(); ++i) {
    const Instruction& instruction = method.instructions[i];
    for (std::size_t j = 0; j < instruction.inputs.size(); ++j)
      input_pointers_[operands_[i].first_input + j] = buffer_pointers_[instruction.inputs[j]];
    for (std::size_t j = 0; j < instruction.outputs.size(); ++j)
      output_pointers_[operands_[i].first_output + j] = buffer_pointers_[instruction.outputs[j]];
  }
}

Status Executor::transfer(const Instruction& instruction, std::size_t index) {
  const auto& buffers = program_->method().buffers;
  auto& source_owner = program_->memory_owner(buffers[instruction.inputs[0]].memory);
  auto& target_owner = program_->memory_owner(buffers[instruction.outputs[0]].memory);
  const std::byte* source = input_pointers_[operands_[index].first_input];
  std::byte* target = output_pointers_[operands_[index].first_output];
  const std::int64_t size = plan_->size_bytes[instruction.inputs[0]];
  if (source_owner.host_memory()) return target_owner.copy_from_host(target, source, size);
  if (target_owner.host_memory()) return source_owner.copy_to_host(target, source, size);
  TESSERA_TRY(source_owner.copy_to_host(bounce_.data(), source, size));
  return target_owner.copy_from_host(target, bounce_.data(), size);
}

Status Executor::execute(std::size_t index) {
  const Instruction& instruction = program_->method().instructions[index];
  switch (instruction.opcode) {
    case Opcode::kTransfer: return transfer(instruction, index);
    case Opcode::kWriteBack: return transfer(instruction, index);
    case Opcode::kWait: return program_->device(instruction.device).synchronize();
    default: break;
  }
  const Operands& at = operands_[index];
  return plan_->instances[index]->execute(
      {.inputs = {input_pointers_.data() + at.first_input, instruction.inputs.size()},
       .outputs = {output_pointers_.data() + at.first_output, instruction.outputs.size()},
       .scratch = scratch_.data(),
       .parallel = &pool_});
}

Status Executor::run() {
  const auto& method = program_->method();
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (!inputs_[i].bound)
      return fail(ErrorCode::kFailedPrecondition,
                  fmt::format("input '{}' is not bound", method.inputs[i].name));
  has_run_ = false;
  if (dims_changed_) {
    TESSERA_TRY(choose_plan());
    TESSERA_TRY(prepare_memory());
    dims_changed_ = false;
    pointers_changed_ = true;
  }
  if (pointers_changed_) {
    TESSERA_TRY(prepare_outputs());
    resolve_pointers();
    pointers_changed_ = false;
  }
  trace_.events.clear();
  const std::int64_t start_ns = now_ns();
  for (std::size_t i = 0; i < method.instructions.size(); ++i) {
    const std::int64_t begin_ns = traced_ ? now_ns() : 0;
    if (auto status = execute(i); !status) [[unlikely]]
      return tl::unexpected(in_context(std::move(status).error(),
                                       fmt::format("node '{}'", method.instructions[i].label)));
    if (traced_)
      trace_.events.push_back(
          {static_cast<std::uint32_t>(i), begin_ns - start_ns, now_ns() - start_ns});
  }
  trace_.total_ns = now_ns() - start_ns;
  has_run_ = true;
  return {};
}

Result<const Dims*> Executor::output_dims(std::string_view name) const {
  const auto& decls = program_->method().outputs;
  TESSERA_ASSIGN(const std::size_t index, find_interface(decls, name, "output"));
  if (!has_run_)
    return fail(ErrorCode::kFailedPrecondition,
                fmt::format("output '{}': the session has not run", name));
  return &plan_->dims[decls[index].buffer];
}

Result<TensorView> Executor::output(std::string_view name) const {
  TESSERA_ASSIGN(const Dims* dims, output_dims(name));
  const auto& decls = program_->method().outputs;
  TESSERA_ASSIGN(const std::size_t index, find_interface(decls, name, "output"));
  return TensorView{decls[index].type.dtype, *dims, buffer_pointers_[decls[index].buffer]};
}

}  // namespace tessera::runtime
