#include "runtime/shape_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"

namespace tessera::runtime {
namespace {

using artefact::BufferDecl;
using artefact::BufferKind;

constexpr std::int64_t kBufferAlignment = 64;

Status bind_size(const artefact::MethodImage& method, const Dim& declared, std::int64_t found,
                 SymbolBindings& bindings) {
  if (const auto name = declared.as_symbol()) {
    if (const auto known = method.symbols.find(*name); known != method.symbols.end()) {
      const auto [min, max] = known->second;
      if (found < min || found > max)
        return fail(
            ErrorCode::kInvalidArgument,
            max == INT64_MAX
                ? fmt::format("expected {} of at least {}, found {}", *name, min, found)
                : fmt::format("expected {} between {} and {}, found {}", *name, min, max, found));
    }
    bindings.emplace(*name, found);
  }
  return {};
}

Status check_size(const Dim& declared, std::int64_t found, const SymbolBindings& bindings,
                  bool is_body) {
  const auto evaluated = declared.evaluate(bindings);
  if (!evaluated && is_body) return {};
  TESSERA_ASSIGN(const std::int64_t expected, evaluated);
  if (expected == found) return {};
  if (declared.is_constant())
    return fail(ErrorCode::kInvalidArgument, fmt::format("expected {}, found {}", expected, found));
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("expected {} = {}, found {}", declared.to_string(), expected, found));
}

// Applies `visit(declared, found)` to every size of every input.
template <typename Visit>
Status for_each_size(const artefact::MethodImage& method, const std::vector<Dims>& dims,
                     Visit visit) {
  for (std::size_t i = 0; i < method.inputs.size(); ++i) {
    const ValueType& type = method.inputs[i].type;
    if (!type.is_tensor() || !type.shape) continue;
    const Shape& shape = *type.shape;
    if (shape.size() != dims[i].size())
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("input '{}': expected rank {}, found rank {}", method.inputs[i].name,
                              shape.size(), dims[i].size()));
    for (std::size_t d = 0; d < shape.size(); ++d)
      TESSERA_TRY_IN(visit(shape[d], dims[i][d]),
                     fmt::format("input '{}': dimension {}", method.inputs[i].name, d));
  }
  return {};
}

Status evaluate_buffers(const artefact::MethodImage& method, const std::vector<Dims>& input_dims,
                        const std::vector<bool>& loose, ShapePlan& plan) {
  const std::size_t count = method.buffers.size();
  plan.dims.resize(count);
  plan.size_bytes.resize(count);
  std::vector<const Dims*> bound(count, nullptr);
  for (std::size_t i = 0; i < input_dims.size(); ++i)
    bound[method.inputs[i].buffer] = &input_dims[i];
  for (std::size_t i = 0; i < count; ++i) {
    if (loose[i]) continue;
    const BufferDecl& buffer = method.buffers[i];
    const auto where = fmt::format("value '{}'", buffer.value);
    auto dims = bound[i] != nullptr ? Result<Dims>(*bound[i])
                                    : evaluate(buffer.tensor.shape, plan.bindings);
    if (!dims) return tl::unexpected(in_context(std::move(dims).error(), where));
    plan.dims[i] = *std::move(dims);
    // Both the sizes themselves and those with padding must fit; only then is the layout's own
    // count safe.
    TESSERA_TRY_IN(checked_nbytes(buffer.tensor.dtype, plan.dims[i]), where);
    TESSERA_TRY_IN(
        checked_nbytes(buffer.tensor.dtype, padded_dims(buffer.tensor.layout, plan.dims[i])),
        where);
    plan.size_bytes[i] = layout_nbytes(buffer.tensor.layout, buffer.tensor.dtype, plan.dims[i]);
  }
  return {};
}

// Offsets of temporaries: above the ends of the buffers that they must lie above. The verifier has
// excluded cycles.
class ArenaPlacer {
 public:
  ArenaPlacer(const artefact::MethodImage& method, const std::vector<bool>& loose, ShapePlan& plan)
      : method_(method), loose_(loose), plan_(plan) {}

  Status place_all() {
    plan_.offset_bytes.assign(method_.buffers.size(), -1);
    for (std::uint32_t i = 0; i < method_.buffers.size(); ++i) {
      const BufferDecl& buffer = method_.buffers[i];
      if (buffer.alias_of != UINT32_MAX || buffer.kind != BufferKind::kTemporary || loose_[i])
        continue;
      TESSERA_TRY(place(i));
      const auto end = checked_add(plan_.offset_bytes[i], plan_.size_bytes[i]);
      if (!end)
        return fail(ErrorCode::kOutOfRange,
                    fmt::format("value '{}': the arena overflows", buffer.value));
      plan_.arena_bytes[buffer.memory] = std::max(plan_.arena_bytes[buffer.memory], *end);
    }
    return {};
  }

 private:
  Status place(std::uint32_t root) {
    std::vector<std::uint32_t> stack = {root};
    while (!stack.empty()) {
      const std::uint32_t index = stack.back();
      if (plan_.offset_bytes[index] >= 0) {
        stack.pop_back();
        continue;
      }
      std::int64_t offset = 0;
      bool ready = true;
      for (const std::uint32_t below : method_.buffers[index].above) {
        if (plan_.offset_bytes[below] < 0) {
          stack.push_back(below);
          ready = false;
          continue;
        }
        const auto end = checked_add(plan_.offset_bytes[below], plan_.size_bytes[below]);
        if (!end || !checked_add(*end, kBufferAlignment))
          return fail(ErrorCode::kOutOfRange,
                      fmt::format("value '{}': the arena overflows", method_.buffers[below].value));
        offset = std::max(offset, align_up(*end, kBufferAlignment));
      }
      if (!ready) continue;
      plan_.offset_bytes[index] = offset;
      stack.pop_back();
    }
    return {};
  }

  const artefact::MethodImage& method_;
  const std::vector<bool>& loose_;
  ShapePlan& plan_;
};

Status place_aliases(const artefact::MethodImage& method, ShapePlan& plan) {
  for (std::size_t i = 0; i < method.buffers.size(); ++i) {
    const BufferDecl& buffer = method.buffers[i];
    if (buffer.alias_of == UINT32_MAX) continue;
    TESSERA_ASSIGN(plan.offset_bytes[i], buffer.alias_offset_bytes.evaluate(plan.bindings));
    const auto end = checked_add(plan.offset_bytes[i], plan.size_bytes[i]);
    if (plan.offset_bytes[i] < 0 || !end || *end > plan.size_bytes[buffer.alias_of])
      return fail(ErrorCode::kInternal,
                  fmt::format("value '{}': its view leaves the buffer of '{}'", buffer.value,
                              method.buffers[buffer.alias_of].value));
  }
  return {};
}

// Source and target of a transfer or a write-back have one size; both outside of host memory, it
// goes through a bounce buffer.
Status plan_copy(const LoadedProgram& program, const artefact::MethodImage& method,
                 const artefact::Instruction& instruction, ShapePlan& plan) {
  const auto& buffers = method.buffers;
  const std::uint32_t source = instruction.inputs[0];
  const std::uint32_t target = instruction.outputs[0];
  if (plan.dims[source] != plan.dims[target])
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("value '{}': expected [{}] as in '{}', found [{}]",
                            buffers[target].value, fmt::join(plan.dims[source], ", "),
                            buffers[source].value, fmt::join(plan.dims[target], ", ")));
  if (!program.memory_owner(buffers[source].memory).host_memory() &&
      !program.memory_owner(buffers[target].memory).host_memory())
    plan.bounce_bytes = std::max(plan.bounce_bytes, plan.size_bytes[source]);
  return {};
}

// The instance of one instruction's kernel; nothing for an instruction without one.
Result<std::unique_ptr<backends::KernelInstance>> make_instance(
    const LoadedProgram& program, const artefact::Instruction& instruction, int threads,
    const ShapePlan& plan) {
  if (instruction.kernel == UINT32_MAX) return nullptr;
  backends::InstanceDims dims;
  for (const std::uint32_t buffer : instruction.inputs) dims.inputs.push_back(plan.dims[buffer]);
  for (const std::uint32_t buffer : instruction.outputs) dims.outputs.push_back(plan.dims[buffer]);
  auto instance = program.kernel(instruction.kernel)->instantiate(dims, threads);
  if (!instance)
    return tl::unexpected(
        in_context(std::move(instance).error(), fmt::format("node '{}'", instruction.label)));
  return instance;
}

// Libraries generate code for an instance: all threads make them, side by side.
Status make_instances(const LoadedProgram& program, const artefact::MethodImage& method,
                      const std::vector<bool>& loose, int threads, backends::Parallel& parallel,
                      ShapePlan& plan) {
  const auto is_loose = [&](std::uint32_t buffer) { return loose[buffer]; };
  std::vector<std::size_t> planned;
  for (std::size_t i = 0; i < method.instructions.size(); ++i) {
    const auto& instruction = method.instructions[i];
    if (std::ranges::any_of(instruction.inputs, is_loose) ||
        std::ranges::any_of(instruction.outputs, is_loose))
      continue;
    if (instruction.opcode == artefact::Opcode::kTransfer ||
        instruction.opcode == artefact::Opcode::kWriteBack)
      TESSERA_TRY(plan_copy(program, method, instruction, plan));
    planned.push_back(i);
  }
  std::vector<Result<std::unique_ptr<backends::KernelInstance>>> made(planned.size());
  parallel.run(static_cast<std::int64_t>(planned.size()), [&](std::int64_t i) {
    const auto index = static_cast<std::size_t>(i);
    made[index] = make_instance(program, method.instructions[planned[index]], threads, plan);
  });
  plan.instances.resize(method.instructions.size());
  for (std::size_t i = 0; i < made.size(); ++i) {
    TESSERA_ASSIGN(auto instance, std::move(made[i]));
    if (instance == nullptr) continue;
    plan.scratch_bytes = std::max(plan.scratch_bytes, instance->scratch_bytes());
    plan.instances[planned[i]] = std::move(instance);
  }
  return {};
}

}  // namespace

Result<SymbolBindings> bind_symbols(const artefact::MethodImage& method,
                                    const std::vector<Dims>& dims, SymbolBindings known,
                                    bool is_body) {
  TESSERA_TRY(for_each_size(method, dims, [&](const Dim& declared, std::int64_t found) {
    return bind_size(method, declared, found, known);
  }));
  TESSERA_TRY(for_each_size(method, dims, [&](const Dim& declared, std::int64_t found) {
    return check_size(declared, found, known, is_body);
  }));
  return known;
}

Result<std::unique_ptr<ShapePlan>> make_shape_plan(const LoadedProgram& program,
                                                   const artefact::MethodImage& method,
                                                   const std::vector<Dims>& input_dims,
                                                   SymbolBindings bindings,
                                                   const std::vector<bool>& loose, int threads,
                                                   backends::Parallel& parallel) {
  auto plan = std::make_unique<ShapePlan>();
  plan->bindings = std::move(bindings);
  plan->arena_bytes.assign(program.plan().memories.size(), 0);
  TESSERA_TRY(evaluate_buffers(method, input_dims, loose, *plan));
  TESSERA_TRY(ArenaPlacer(method, loose, *plan).place_all());
  TESSERA_TRY(place_aliases(method, *plan));
  TESSERA_TRY(make_instances(program, method, loose, threads, parallel, *plan));
  return plan;
}

}  // namespace tessera::runtime
