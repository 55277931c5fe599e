#include <fmt/format.h>

#include "artefact/read/reader.h"
#include "base/string_tensor.h"

namespace tessera::artefact {
namespace {

template <typename... Args>
tl::unexpected<Error> wrong(fmt::format_string<Args...> format, Args&&... args) {
  return fail(ErrorCode::kDataLoss,
              "damaged artefact: " + fmt::format(format, std::forward<Args>(args)...));
}

// More than any operator of ONNX gives; a larger number would only make a loader reserve memory for
// nothing.
constexpr std::uint32_t kMaxStepOutputs = 1 << 16;

// Bytes of a constant are only known for static shapes; symbolic constants do not exist.
Status verify_segment(const ProgramImage& image, const TensorDecl& decl, std::uint32_t segment,
                      const std::string& where) {
  if (segment >= image.segments.size())
    return wrong("{}: segment {} of {}", where, segment, image.segments.size());
  const auto dims = constant_dims(decl.shape);
  if (!dims) return wrong("{}: a constant of symbolic shape {}", where, to_string(decl.shape));
  TESSERA_TRY_IN(checked_nbytes(decl.dtype, *dims), where);
  TESSERA_TRY_IN(checked_nbytes(decl.dtype, padded_dims(decl.layout, *dims)), where);
  if (decl.dtype == DType::kString) {
    const auto strings = decode_strings(image.segments[segment].bytes, *dims);
    return strings ? Status() : wrong("{}: {}", where, strings.error().to_string());
  }
  const auto expected = layout_nbytes(decl.layout, decl.dtype, *dims);
  const auto found = static_cast<std::int64_t>(image.segments[segment].bytes.size());
  if (expected != found)
    return wrong("{}: expected {} bytes in its segment, found {}", where, expected, found);
  return {};
}

Status verify_layout_ranks(const TensorDecl& decl, const std::string& where) {
  const auto rank = decl.shape.size();
  if (!decl.layout.order.empty() && decl.layout.order.size() != rank)
    return wrong("{}: layout {} for rank {}", where, decl.layout.to_string(), rank);
  for (const auto& [dim, size] : decl.layout.blocks)
    if (dim >= rank || size == 0)
      return wrong("{}: layout {} for rank {}", where, decl.layout.to_string(), rank);
  return {};
}

Status verify_kernel(const ProgramImage& image, std::size_t index) {
  const KernelSpec& spec = image.kernels[index];
  const auto where = fmt::format("kernel {}", index);
  if (spec.constants.size() != spec.constant_segments.size())
    return wrong("{}: {} constants and {} segments", where, spec.constants.size(),
                 spec.constant_segments.size());
  for (const auto* list : {&spec.inputs, &spec.constants, &spec.outputs})
    for (const TensorDecl& decl : *list) TESSERA_TRY(verify_layout_ranks(decl, where));
  for (std::size_t i = 0; i < spec.constants.size(); ++i)
    TESSERA_TRY(verify_segment(image, spec.constants[i], spec.constant_segments[i], where));
  auto defined = static_cast<std::int64_t>(spec.inputs.size() + spec.constants.size());
  for (const KernelStep& step : spec.steps) {
    for (const std::int32_t operand : step.inputs)
      if (operand < -1 || operand >= defined)
        return wrong("{}: step {} reads operand {} of {}", where, step.op_type, operand, defined);
    if (step.output_count > kMaxStepOutputs)
      return wrong("{}: step {}: expected at most {} outputs, found {}", where, step.op_type,
                   kMaxStepOutputs, step.output_count);
    defined += step.output_count;
  }
  if (spec.steps.empty()) {
    if (spec.inputs.size() != 1 || spec.outputs.size() != 1)
      return wrong("{}: a conversion has one input and one output", where);
    return {};
  }
  if (spec.output_operands.size() != spec.outputs.size())
    return wrong("{}: {} outputs and {} output operands", where, spec.outputs.size(),
                 spec.output_operands.size());
  for (const std::int32_t operand : spec.output_operands)
    if (operand < 0 || operand >= defined)
      return wrong("{}: output operand {} of {}", where, operand, defined);
  return {};
}

Status verify_buffer(const ProgramImage& image, const PlanImage& plan, const MethodImage& method,
                     std::size_t index) {
  const BufferDecl& buffer = method.buffers[index];
  const auto where =
      fmt::format("plan '{}', method '{}', buffer {}", plan.name, method.name, index);
  if (buffer.memory >= plan.memories.size())
    return wrong("{}: memory {} of {}", where, buffer.memory, plan.memories.size());
  TESSERA_TRY(verify_layout_ranks(buffer.tensor, where));
  if (buffer.kind == BufferKind::kConstant)
    TESSERA_TRY(verify_segment(image, buffer.tensor, buffer.segment, where));
  // Initial bytes of a state whose shape is symbolic are compared with its size when that is known.
  if (buffer.kind == BufferKind::kState && buffer.segment != UINT32_MAX &&
      buffer.segment >= image.segments.size())
    return wrong("{}: segment {} of {}", where, buffer.segment, image.segments.size());
  // An alias chain ends, and a buffer lies above earlier-placed ones only: both refer to other
  // buffers and have no cycle, which the order of evaluation checks (an alias or an `above` of a
  // buffer may not lead back to it).
  if (buffer.alias_of != UINT32_MAX && buffer.alias_of >= method.buffers.size())
    return wrong("{}: alias of buffer {} of {}", where, buffer.alias_of, method.buffers.size());
  if (buffer.alias_of != UINT32_MAX && method.buffers[buffer.alias_of].memory != buffer.memory)
    return wrong("{}: an alias in memory {} of a buffer in memory {}", where, buffer.memory,
                 method.buffers[buffer.alias_of].memory);
  for (const std::uint32_t below : buffer.above)
    if (below >= method.buffers.size())
      return wrong("{}: above buffer {} of {}", where, below, method.buffers.size());
  return {};
}

// Depth-first over alias_of and above; a buffer that is met again while it is open closes a cycle.
Status verify_acyclic(const MethodImage& method, const std::string& where) {
  enum : std::uint8_t { kNew, kOpen, kDone };
  std::vector<std::uint8_t> state(method.buffers.size(), kNew);
  std::vector<std::pair<std::uint32_t, std::size_t>> stack;
  const auto next_of = [&](std::uint32_t buffer, std::size_t step) -> std::uint32_t {
    const BufferDecl& decl = method.buffers[buffer];
    if (step < decl.above.size()) return decl.above[step];
    return step == decl.above.size() ? decl.alias_of : UINT32_MAX;
  };
  for (std::uint32_t root = 0; root < method.buffers.size(); ++root) {
    if (state[root] != kNew) continue;
    stack.emplace_back(root, 0);
    state[root] = kOpen;
    while (!stack.empty()) {
      auto& [buffer, step] = stack.back();
      if (step > method.buffers[buffer].above.size()) {
        state[buffer] = kDone;
        stack.pop_back();
        continue;
      }
      const std::uint32_t next = next_of(buffer, step++);
      if (next == UINT32_MAX || state[next] == kDone) continue;
      if (state[next] == kOpen)
        return wrong("{}: the place of buffer {} depends on itself", where, next);
      state[next] = kOpen;
      stack.emplace_back(next, 0);
    }
  }
  return {};
}

std::string form_text(const TensorDecl& decl) {
  return fmt::format("{} of rank {} in {}", to_string(decl.dtype), decl.shape.size(),
                     decl.layout.to_string());
}

bool equal_forms(const TensorDecl& a, const TensorDecl& b) {
  return a.dtype == b.dtype && a.layout == b.layout && a.shape.size() == b.shape.size();
}

// What a kernel is handed must be what it was compiled for.
Status verify_operands(const MethodImage& method, const std::vector<std::uint32_t>& buffers,
                       const std::vector<TensorDecl>& declared, const std::string& where,
                       std::string_view kind) {
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const TensorDecl& found = method.buffers[buffers[i]].tensor;
    if (!equal_forms(declared[i], found))
      return wrong("{}: {} {}: expected {}, found {}", where, kind, i, form_text(declared[i]),
                   form_text(found));
  }
  return {};
}

// kCall and kConvert; the others have no kernel.
Status verify_kernel_use(const ProgramImage& image, const MethodImage& method,
                         const Instruction& in, const std::string& where) {
  if (in.opcode != Opcode::kCall && in.opcode != Opcode::kConvert) {
    if (in.kernel != UINT32_MAX)
      return wrong("{}: kernel {} for an instruction that has none", where, in.kernel);
    return {};
  }
  if (in.kernel >= image.kernels.size())
    return wrong("{}: kernel {} of {}", where, in.kernel, image.kernels.size());
  const KernelSpec& spec = image.kernels[in.kernel];
  if (spec.inputs.size() != in.inputs.size() || spec.outputs.size() != in.outputs.size())
    return wrong("{}: {} inputs and {} outputs for a kernel of {} and {}", where, in.inputs.size(),
                 in.outputs.size(), spec.inputs.size(), spec.outputs.size());
  TESSERA_TRY(verify_operands(method, in.inputs, spec.inputs, where, "input"));
  return verify_operands(method, in.outputs, spec.outputs, where, "output");
}

// A buffer of a body is what its caller hands in: the same form in the same memory.
Status verify_capture(const BufferDecl& given, const BufferDecl& taken, const std::string& where) {
  if (given.memory == taken.memory && equal_forms(given.tensor, taken.tensor)) return {};
  return wrong("{}: a capture: expected {}, found {}", where, form_text(taken.tensor),
               form_text(given.tensor));
}

// Values that the runtime itself hands over lie in host memory, row-major.
Status verify_handed(const MethodImage& method, const std::vector<std::uint32_t>& buffers,
                     const std::string& where) {
  for (const std::uint32_t buffer : buffers)
    if (method.buffers[buffer].memory != 0 || !method.buffers[buffer].tensor.layout.is_row_major())
      return wrong("{}: '{}': expected a buffer in host memory, row-major", where,
                   method.buffers[buffer].value);
  return {};
}

// kBranch and kLoop: as many operands as the bodies take and give.
Status verify_control(const PlanImage& plan, const MethodImage& method, const Instruction& in,
                      const std::string& where) {
  const ControlDecl& control = in.control;
  const bool is_branch = in.opcode == Opcode::kBranch;
  if (in.bodies.size() != (is_branch ? 2U : 1U))
    return wrong("{}: expected {} bodies, found {}", where, is_branch ? 2 : 1, in.bodies.size());
  const auto own = static_cast<std::size_t>(&method - plan.methods.data());
  const std::size_t flags =
      static_cast<std::size_t>(control.has_trips) + static_cast<std::size_t>(control.has_condition);
  const std::size_t carried = control.carried + control.scan_inputs.size();
  std::size_t at = is_branch ? 1 : flags + carried;  // of the first capture
  if (at > in.inputs.size())
    return wrong("{}: expected at least {} inputs, found {}", where, at, in.inputs.size());
  TESSERA_TRY(
      verify_handed(method, {in.inputs.begin(), in.inputs.begin() + static_cast<long>(at)}, where));
  TESSERA_TRY(verify_handed(method, in.outputs, where));
  if (control.has_trips && method.buffers[in.inputs[0]].tensor.dtype != DType::kInt64)
    return wrong("{}: expected a trip count of int64, found {}", where,
                 to_string(method.buffers[in.inputs[0]].tensor.dtype));
  const std::size_t arguments = is_branch ? 0 : carried + (control.is_scan ? 0 : 2);
  std::size_t results = SIZE_MAX;
  for (const std::uint32_t number : in.bodies) {
    if (number <= own) return wrong("{}: body {} is no later method", where, number);
    const MethodImage& body = plan.methods[number];
    if (body.inputs.size() < arguments || in.inputs.size() - at < body.inputs.size() - arguments)
      return wrong("{}: '{}' takes {} inputs", where, body.name, body.inputs.size());
    for (std::size_t i = arguments; i < body.inputs.size(); ++i)
      TESSERA_TRY(verify_capture(method.buffers[in.inputs[at++]],
                                 body.buffers[body.inputs[i].buffer], where));
    for (const InterfaceDecl& result : body.outputs)
      TESSERA_TRY(verify_handed(body, {result.buffer}, where));
    results = std::min(results, body.outputs.size());
  }
  if (at != in.inputs.size())
    return wrong("{}: expected {} inputs, found {}", where, at, in.inputs.size());
  const std::size_t given = control.carried + control.scan_outputs.size();
  if (!is_branch && results != given + (control.is_scan ? 0 : 1))
    return wrong("{}: expected {} results, found {}", where, given + (control.is_scan ? 0 : 1),
                 results);
  if (control.kept.size() != in.outputs.size())
    return wrong("{}: {} outputs for {} kept results", where, in.outputs.size(),
                 control.kept.size());
  for (std::size_t i = 0; i < control.kept.size(); ++i) {
    if (control.kept[i] >= (is_branch ? results : given))
      return wrong("{}: result {} of {}", where, control.kept[i], is_branch ? results : given);
    if (!method.buffers[in.outputs[i]].is_dynamic)
      return wrong("{}: output {}: expected a dynamic buffer", where, i);
  }
  return {};
}

Status verify_instruction(const ProgramImage& image, const PlanImage& plan,
                          const MethodImage& method, std::size_t index) {
  const Instruction& in = method.instructions[index];
  const auto where =
      fmt::format("plan '{}', method '{}', instruction {}", plan.name, method.name, index);
  if (in.device >= plan.devices.size())
    return wrong("{}: device {} of {}", where, in.device, plan.devices.size());
  for (const auto* list : {&in.inputs, &in.outputs})
    for (const std::uint32_t buffer : *list)
      if (buffer >= method.buffers.size())
        return wrong("{}: buffer {} of {}", where, buffer, method.buffers.size());
  for (const std::uint32_t body : in.bodies)
    if (body >= plan.methods.size())
      return wrong("{}: body {} of {}", where, body, plan.methods.size());
  TESSERA_TRY(verify_kernel_use(image, method, in, where));
  if (in.opcode == Opcode::kBranch || in.opcode == Opcode::kLoop)
    return verify_control(plan, method, in, where);
  if (in.opcode != Opcode::kTransfer && in.opcode != Opcode::kWriteBack) return {};
  if (in.inputs.size() != 1 || in.outputs.size() != 1)
    return wrong("{}: expected one input and one output, found {} and {}", where, in.inputs.size(),
                 in.outputs.size());
  return verify_operands(method, in.outputs, {method.buffers[in.inputs[0]].tensor}, where,
                         "output");
}

// Bodies take captures in any form, so only their numbers are checked here.
Status verify_interface(const MethodImage& method, const InterfaceDecl& entry,
                        std::string_view where, bool is_body) {
  if (entry.buffer >= method.buffers.size())
    return wrong("{} '{}': buffer {} of {}", where, entry.name, entry.buffer,
                 method.buffers.size());
  if (is_body) return {};
  if (!entry.type.is_tensor() || !entry.type.shape) {
    if (where != "output" || method.buffers[entry.buffer].is_dynamic) return {};
    return wrong("{} '{}': expected a dynamic buffer for {}", where, entry.name,
                 entry.type.to_string());
  }
  const TensorDecl& tensor = method.buffers[entry.buffer].tensor;
  const auto found = ValueType::tensor(tensor.dtype, tensor.shape);
  if (!(found == entry.type) || !tensor.layout.is_row_major())
    return wrong("{} '{}': expected a buffer of {} in nchw, found {} in {}", where, entry.name,
                 entry.type.to_string(), found.to_string(), tensor.layout.to_string());
  return {};
}

// Every input buffer is bound by an input, so that none is read without an address.
Status verify_inputs_are_bound(const MethodImage& method, const std::string& where) {
  std::vector<bool> bound(method.buffers.size(), false);
  for (const auto* list : {&method.inputs, &method.outputs})
    for (const InterfaceDecl& entry : *list) bound[entry.buffer] = true;
  for (std::size_t i = 0; i < method.buffers.size(); ++i) {
    const BufferDecl& buffer = method.buffers[i];
    if ((buffer.kind == BufferKind::kInput || buffer.kind == BufferKind::kOutput) &&
        buffer.alias_of == UINT32_MAX && !bound[i])
      return wrong("{}, buffer {}: no input or output binds it", where, i);
  }
  return {};
}

Status verify_method(const ProgramImage& image, const PlanImage& plan, const MethodImage& method) {
  const bool is_body = &method != plan.methods.data();
  const auto where = fmt::format("plan '{}', method '{}'", plan.name, method.name);
  for (std::size_t i = 0; i < method.buffers.size(); ++i)
    TESSERA_TRY(verify_buffer(image, plan, method, i));
  TESSERA_TRY(verify_acyclic(method, where));
  for (const InterfaceDecl& entry : method.inputs)
    TESSERA_TRY(verify_interface(method, entry, "input", is_body));
  for (const InterfaceDecl& entry : method.outputs)
    TESSERA_TRY(verify_interface(method, entry, "output", is_body));
  TESSERA_TRY(verify_inputs_are_bound(method, where));
  for (const StateDecl& state : method.states)
    if (state.initial_segment != UINT32_MAX && state.initial_segment >= image.segments.size())
      return wrong("state '{}': segment {} of {}", state.input, state.initial_segment,
                   image.segments.size());
  return {};
}

}  // namespace

Status verify_program(const ProgramImage& image) {
  if (image.plans.empty()) return wrong("no plan");
  for (std::size_t i = 0; i < image.kernels.size(); ++i) TESSERA_TRY(verify_kernel(image, i));
  for (const PlanImage& plan : image.plans) {
    for (const DeviceDecl& device : plan.devices)
      if (device.memory >= plan.memories.size())
        return wrong("device '{}': memory {} of {}", device.name, device.memory,
                     plan.memories.size());
    if (plan.methods.empty()) return wrong("plan '{}': no method", plan.name);
    for (const MethodImage& method : plan.methods) TESSERA_TRY(verify_method(image, plan, method));
    for (const MethodImage& method : plan.methods)  // now that what they refer to is sound
      for (std::size_t i = 0; i < method.instructions.size(); ++i)
        TESSERA_TRY(verify_instruction(image, plan, method, i));
  }
  return {};
}

}  // namespace tessera::artefact
