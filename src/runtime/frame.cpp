#include "runtime/frame.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/string_tensor.h"

namespace tessera::runtime {
namespace {

using artefact::BufferKind;
using artefact::Instruction;
using artefact::Opcode;

bool is_plain(const ValueType& type) {
  return type.is_tensor() && type.shape && type.dtype != DType::kString;
}

}  // namespace

Frame::Frame(SessionShared& shared, std::uint32_t method)
    : shared_(shared), method_(shared.program->plan().methods[method]) {
  inputs_.resize(method_.inputs.size());
  outputs_.resize(method_.outputs.size());
  arenas_.resize(program().plan().memories.size());
  buffer_pointers_.resize(method_.buffers.size());
  slots_.resize(method_.buffers.size());
  for (const Instruction& instruction : method_.instructions) {
    operands_.push_back({input_pointers_.size(), output_pointers_.size()});
    input_pointers_.resize(input_pointers_.size() + instruction.inputs.size());
    output_pointers_.resize(output_pointers_.size() + instruction.outputs.size());
  }
  find_loose();
}

Result<std::unique_ptr<Frame>> Frame::create(SessionShared& shared, std::uint32_t method) {
  std::unique_ptr<Frame> frame(new Frame(shared, method));
  TESSERA_TRY(frame->load_constants());
  return frame;
}

void Frame::find_loose() {
  loose_.assign(method_.buffers.size(), false);
  for (std::size_t i = 0; i < method_.buffers.size(); ++i)
    loose_[i] = method_.buffers[i].is_dynamic || method_.buffers[i].tensor.dtype == DType::kString;
  for (const auto& input : method_.inputs)
    if (!is_plain(input.type)) loose_[input.buffer] = true;
  for (const Instruction& instruction : method_.instructions) {
    bool is_loose = !instruction.bodies.empty();
    for (const auto* list : {&instruction.inputs, &instruction.outputs})
      for (const std::uint32_t buffer : *list) is_loose = is_loose || loose_[buffer];
    loose_instruction_.push_back(is_loose);
  }
  any_loose_ = std::ranges::find(loose_instruction_, true) != loose_instruction_.end();
}

// Constants in host memory are read where the artefact is mapped; other memories get their own
// copy, once per frame.
Status Frame::load_constants() {
  for (std::uint32_t i = 0; i < method_.buffers.size(); ++i) {
    const auto& buffer = method_.buffers[i];
    if (buffer.kind != BufferKind::kConstant || buffer.alias_of != UINT32_MAX) continue;
    const auto bytes = program().segment(buffer.segment);
    if (loose_[i]) {
      TESSERA_ASSIGN(Tensor strings, decode_strings(bytes, *constant_dims(buffer.tensor.shape)));
      TESSERA_TRY(set_value(i, RunValue::of(std::move(strings))));
      continue;
    }
    auto& owner = program().memory_owner(buffer.memory);
    if (owner.host_memory()) continue;
    OwnedBuffer& copy = device_constants_[i];
    TESSERA_TRY(copy.ensure(owner, static_cast<std::int64_t>(bytes.size())));
    TESSERA_TRY(
        owner.copy_from_host(copy.data(), bytes.data(), static_cast<std::int64_t>(bytes.size())));
  }
  return {};
}

void Frame::bind_input(std::size_t index, std::span<const std::int64_t> dims,
                       const std::byte* data) {
  inputs_[index].value = {};
  set_input(index, dims, data);
}

void Frame::set_input(std::size_t index, std::span<const std::int64_t> dims,
                      const std::byte* data) {
  InputBinding& input = inputs_[index];
  if (!input.bound || !std::ranges::equal(input.dims, dims)) {
    input.dims.assign(dims.begin(), dims.end());
    dims_changed_ = true;
  }
  input.bound = true;
  input.data = data;
  pointers_changed_ = true;
}

void Frame::bind_input(std::size_t index, RunValue value) {
  InputBinding& input = inputs_[index];
  input.value = std::move(value);
  if (input.value.is_tensor())
    return set_input(index, input.value.tensor.dims(),
                     static_cast<const std::byte*>(input.value.tensor.data()));
  input.bound = true;
  pointers_changed_ = true;
}

void Frame::bind_output(std::size_t index, std::byte* data, std::int64_t size_bytes) {
  outputs_[index].data = data;
  outputs_[index].size_bytes = size_bytes;
  pointers_changed_ = true;
}

// Whether the last run's plan fits this one. What is known around a body may change from run to
// run.
bool Frame::is_plan_current(const SymbolBindings* inherited) const {
  if (dims_changed_) return false;
  if (inherited == nullptr) return true;
  auto size = plans_.front().first.sizes.begin();
  return std::ranges::all_of(method_.symbols, [&](const auto& symbol) {
    const auto found = inherited->find(symbol.first);
    return *size++ == (found == inherited->end() ? -1 : found->second);
  });
}

Status Frame::choose_plan(const SymbolBindings* inherited) {
  PlanKey key;
  for (const InputBinding& input : inputs_) key.dims.push_back(input.dims);
  SymbolBindings known;
  if (inherited != nullptr) {
    for (const auto& [symbol, range] : method_.symbols) {
      const auto found = inherited->find(symbol);
      if (found != inherited->end()) known.insert(*found);
      key.sizes.push_back(found == inherited->end() ? -1 : found->second);
    }
  }
  const auto found =
      std::ranges::find_if(plans_, [&](const auto& entry) { return entry.first == key; });
  if (found != plans_.end()) {
    plans_.splice(plans_.begin(), plans_, found);
  } else {
    TESSERA_ASSIGN(SymbolBindings bindings,
                   bind_symbols(method_, key.dims, std::move(known), inherited != nullptr));
    TESSERA_ASSIGN(auto plan, make_shape_plan(program(), method_, key.dims, std::move(bindings),
                                              loose_, shared_.threads, shared_.pool));
    ++shared_.shape_plans_made;
    plans_.emplace_front(std::move(key), std::move(plan));
    if (plans_.size() > kShapePlansKept) plans_.pop_back();
  }
  plan_ = plans_.front().second.get();
  return {};
}

Status Frame::prepare_states() {
  for (std::uint32_t i = 0; i < method_.buffers.size(); ++i) {
    if (method_.buffers[i].kind != BufferKind::kState || method_.buffers[i].alias_of != UINT32_MAX)
      continue;
    auto& owner = program().memory_owner(method_.buffers[i].memory);
    const auto entry = states_.find(i);
    if (entry != states_.end() && entry->second.size_bytes() != plan_->size_bytes[i])
      return fail(
          ErrorCode::kInvalidArgument,
          fmt::format("state '{}': expected {} bytes as in the first run, found {}",
                      method_.buffers[i].value, entry->second.size_bytes(), plan_->size_bytes[i]));
    if (entry != states_.end()) continue;
    OwnedBuffer state;
    TESSERA_TRY(state.ensure(owner, plan_->size_bytes[i]));
    if (method_.buffers[i].segment != UINT32_MAX) {
      const auto initial = program().segment(method_.buffers[i].segment);
      const auto found = static_cast<std::int64_t>(initial.size());
      if (found != plan_->size_bytes[i])
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("state '{}': expected {} bytes as its initial value has, found {}",
                                method_.buffers[i].value, found, plan_->size_bytes[i]));
      TESSERA_TRY(owner.copy_from_host(state.data(), initial.data(), found));
    }
    states_.emplace(i, std::move(state));
  }
  return {};
}

Status Frame::prepare_memory() {
  for (std::size_t memory = 0; memory < arenas_.size(); ++memory)
    TESSERA_TRY(arenas_[memory].ensure(program().memory_owner(memory), plan_->arena_bytes[memory]));
  auto& host = program().memory_owner(0);
  TESSERA_TRY(shared_.scratch.ensure(host, plan_->scratch_bytes));
  TESSERA_TRY(shared_.bounce.ensure(host, plan_->bounce_bytes));
  return prepare_states();
}

Status Frame::prepare_outputs() {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const std::uint32_t buffer = method_.outputs[i].buffer;
    if (loose_[buffer]) continue;
    const std::int64_t needed = plan_->size_bytes[buffer];
    if (outputs_[i].data == nullptr) {
      TESSERA_TRY(outputs_[i].own.ensure(program().memory_owner(0), needed));
    } else if (outputs_[i].size_bytes < needed) {
      return fail(
          ErrorCode::kInvalidArgument,
          fmt::format("output '{}': expected room for {} bytes ({}[{}]), found {}",
                      method_.outputs[i].name, needed, to_string(method_.outputs[i].type.dtype),
                      fmt::join(plan_->dims[buffer], ", "), outputs_[i].size_bytes));
    }
  }
  return {};
}

std::byte* Frame::resolve(std::uint32_t index) {
  const auto& buffer = method_.buffers[index];
  if (loose_[index]) return nullptr;
  if (buffer.alias_of != UINT32_MAX) return resolve(buffer.alias_of) + plan_->offset_bytes[index];
  switch (buffer.kind) {
    case BufferKind::kTemporary: return arenas_[buffer.memory].data() + plan_->offset_bytes[index];
    case BufferKind::kState: return states_[index].data();
    case BufferKind::kConstant: {
      const auto copy = device_constants_.find(index);
      if (copy != device_constants_.end()) return copy->second.data();
      // Kernels take inputs as const pointers; nothing writes through this one.
      return const_cast<std::byte*>(program().segment(buffer.segment).data());
    }
    case BufferKind::kInput:
    case BufferKind::kOutput: return buffer_pointers_[index];
  }
  return nullptr;
}

void Frame::resolve_pointers() {
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    buffer_pointers_[method_.inputs[i].buffer] = const_cast<std::byte*>(inputs_[i].data);
  for (std::size_t i = 0; i < outputs_.size(); ++i)
    buffer_pointers_[method_.outputs[i].buffer] =
        outputs_[i].data != nullptr ? outputs_[i].data : outputs_[i].own.data();
  for (std::uint32_t i = 0; i < buffer_pointers_.size(); ++i) buffer_pointers_[i] = resolve(i);
  for (std::size_t i = 0; i < method_.instructions.size(); ++i) {
    const Instruction& instruction = method_.instructions[i];
    for (std::size_t j = 0; j < instruction.inputs.size(); ++j)
      input_pointers_[operands_[i].first_input + j] = buffer_pointers_[instruction.inputs[j]];
    for (std::size_t j = 0; j < instruction.outputs.size(); ++j)
      output_pointers_[operands_[i].first_output + j] = buffer_pointers_[instruction.outputs[j]];
  }
}

Status Frame::transfer(const Instruction& instruction, const std::byte* source, std::byte* target,
                       std::int64_t size_bytes) {
  auto& source_owner = program().memory_owner(method_.buffers[instruction.inputs[0]].memory);
  auto& target_owner = program().memory_owner(method_.buffers[instruction.outputs[0]].memory);
  if (source_owner.host_memory()) return target_owner.copy_from_host(target, source, size_bytes);
  if (target_owner.host_memory()) return source_owner.copy_to_host(target, source, size_bytes);
  TESSERA_TRY(shared_.bounce.ensure(program().memory_owner(0), size_bytes));
  TESSERA_TRY(source_owner.copy_to_host(shared_.bounce.data(), source, size_bytes));
  return target_owner.copy_from_host(target, shared_.bounce.data(), size_bytes);
}

Status Frame::execute(std::size_t index) {
  if (loose_instruction_[index]) return execute_loose(index);
  const Instruction& instruction = method_.instructions[index];
  const Operands& at = operands_[index];
  switch (instruction.opcode) {
    case Opcode::kTransfer:
    case Opcode::kWriteBack:
      return transfer(instruction, input_pointers_[at.first_input],
                      output_pointers_[at.first_output], plan_->size_bytes[instruction.inputs[0]]);
    case Opcode::kWait: return program().device(instruction.device).synchronize();
    default: break;
  }
  return plan_->instances[index]->execute(
      {.inputs = {input_pointers_.data() + at.first_input, instruction.inputs.size()},
       .outputs = {output_pointers_.data() + at.first_output, instruction.outputs.size()},
       .scratch = shared_.scratch.data(),
       .parallel = &shared_.pool});
}

Status Frame::execute_watched(std::size_t index) {
  TESSERA_TRY(shared_.watcher->before(*this, index));
  TESSERA_TRY(execute(index));
  shared_.watcher->after(*this, index);
  return {};
}

// A control instruction takes no time of its own: what its bodies do is recorded there.
void Frame::record(std::size_t index, std::int64_t begin_ns) {
  const std::int64_t end_ns = now_ns();
  const bool is_control = !method_.instructions[index].bodies.empty();
  shared_.trace.events.push_back(
      {static_cast<std::uint32_t>(index), (is_control ? end_ns : begin_ns) - shared_.start_ns,
       end_ns - shared_.start_ns,
       static_cast<std::uint32_t>(&method_ - program().plan().methods.data())});
}

Status Frame::make_ready(const SymbolBindings* inherited) {
  if (!is_plan_current(inherited)) {
    dims_changed_ = true;  // until all is there
    TESSERA_TRY(choose_plan(inherited));
    TESSERA_TRY(prepare_memory());
    dims_changed_ = false;
    pointers_changed_ = true;
  }
  if (pointers_changed_) {
    TESSERA_TRY(prepare_outputs());
    resolve_pointers();
    pointers_changed_ = false;
  }
  return {};
}

Status Frame::run(const SymbolBindings* inherited) {
  TESSERA_TRY(make_ready(inherited));
  if (any_loose_) {
    bindings_ = plan_->bindings;
    if (inherited != nullptr) bindings_.insert(inherited->begin(), inherited->end());
  }
  bind_loose_inputs();
  for (std::size_t i = 0; i < method_.instructions.size(); ++i) {
    const std::int64_t begin_ns = shared_.traced ? now_ns() : 0;
    if (auto status = shared_.watcher == nullptr ? execute(i) : execute_watched(i); !status)
        [[unlikely]]
      return tl::unexpected(in_context(std::move(status).error(),
                                       fmt::format("node '{}'", method_.instructions[i].label)));
    if (shared_.traced) record(i, begin_ns);
  }
  return {};
}

}  // namespace tessera::runtime
