#include "plan/memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "solve/memory_greedy.h"
#include "solve/memory_problem.h"
#include "solve/memory_validate.h"

namespace tessera::plan {
namespace {

using artefact::BufferKind;
using artefact::Opcode;

constexpr std::int64_t kAlignment = 64;

class MemoryPlanner {
 public:
  MemoryPlanner(const ir::Graph& graph, const Target& target, const SymbolBindings& point,
                Lowered& lowered)
      : graph_(graph), target_(target), point_(point), lowered_(lowered) {}

  Status run() {
    TESSERA_TRY(compute_sizes());
    find_aliases();
    find_lifetimes();
    for (std::uint32_t memory = 0; memory < target_.memories.size(); ++memory)
      TESSERA_TRY(place(memory));
    return {};
  }

 private:
  [[nodiscard]] std::uint32_t root_of(std::uint32_t buffer) const {
    while (lowered_.buffers[buffer].alias_of != UINT32_MAX)
      buffer = lowered_.buffers[buffer].alias_of;
    return buffer;
  }
  [[nodiscard]] bool is_written_back(std::uint32_t buffer) const {
    return std::ranges::any_of(lowered_.steps, [&](const LoweredStep& step) {
      return step.opcode == Opcode::kWriteBack && step.inputs.front() == buffer;
    });
  }
  // A node that reads the same storage through two operands, not element by element, or one operand
  // after the other (Sum of many): a result in place would change the other one.
  [[nodiscard]] bool reads_elsewhere(const LoweredStep& step, std::uint32_t root) const {
    const ir::Node& node = *step.item->item.nodes.front();
    if (node.op->structure == ops::Structure::kElementwise && node.inputs.size() <= 2) return false;
    const auto in_root = [&](ir::ValueId value) {
      return std::ranges::any_of(step.inputs, [&](std::uint32_t buffer) {
        return lowered_.buffers[buffer].value == value && root_of(buffer) == root;
      });
    };
    return std::ranges::count_if(node.inputs, in_root) > 1;
  }
  Status compute_sizes();
  void find_aliases();
  [[nodiscard]] bool try_view(const LoweredStep& step);
  [[nodiscard]] bool try_in_place(const LoweredStep& step, std::size_t index,
                                  const std::vector<std::size_t>& last_read);
  void find_lifetimes();
  Status place(std::uint32_t memory);
  void record_order(const std::vector<std::uint32_t>& placed);

  const ir::Graph& graph_;
  const Target& target_;
  const SymbolBindings& point_;
  Lowered& lowered_;
};

Status MemoryPlanner::compute_sizes() {
  for (LoweredBuffer& buffer : lowered_.buffers) {
    const ir::Value& value = graph_.value(buffer.value);
    if (!value.type.is_tensor() || !value.type.shape) continue;
    auto dims = evaluate(*value.type.shape, point_);
    if (!dims)
      return tl::unexpected(
          in_context(std::move(dims).error(), fmt::format("value '{}'", value.name)));
    TESSERA_TRY_IN(
        checked_nbytes(buffer.form.tensor.dtype, padded_dims(buffer.form.tensor.layout, *dims)),
        fmt::format("value '{}'", value.name));
    buffer.size_bytes = layout_nbytes(buffer.form.tensor.layout, buffer.form.tensor.dtype, *dims);
  }
  return {};
}

// A view shares its operand's storage: the same bytes in the same order. Outputs of the caller stay
// apart from it, and so does what is written back over a state: it must not change while other
// states are written.
bool MemoryPlanner::try_view(const LoweredStep& step) {
  const auto flag = step.option->candidate.options.find("view");
  if (flag == step.option->candidate.options.end() || flag->second == 0 || step.inputs.empty() ||
      step.outputs.size() != 1)
    return false;
  LoweredBuffer& result = lowered_.buffers[step.outputs.front()];
  const LoweredBuffer& operand = lowered_.buffers[step.inputs.front()];
  if (result.kind != BufferKind::kTemporary || result.is_dynamic ||
      lowered_.buffers[root_of(step.inputs.front())].is_dynamic ||
      operand.form.memory != result.form.memory || operand.size_bytes != result.size_bytes)
    return false;
  if (lowered_.buffers[root_of(step.inputs.front())].kind == BufferKind::kState &&
      is_written_back(step.outputs.front()))
    return false;
  result.alias_of = step.inputs.front();
  return true;
}

// The result overwrites an operand that dies here, where the op table allows it and sizes agree at
// every point.
bool MemoryPlanner::try_in_place(const LoweredStep& step, std::size_t index,
                                 const std::vector<std::size_t>& last_read) {
  if (step.item->item.nodes.size() != 1 || step.outputs.size() != 1) return false;
  const ir::Node& node = *step.item->item.nodes.front();
  LoweredBuffer& result = lowered_.buffers[step.outputs.front()];
  if (result.kind != BufferKind::kTemporary || result.is_dynamic) return false;
  for (const std::uint8_t input : node.op->in_place_inputs) {
    if (input >= node.inputs.size() || node.inputs[input] == ir::kNoValue) continue;
    const auto operand = std::ranges::find_if(step.inputs, [&](std::uint32_t buffer) {
      return lowered_.buffers[buffer].value == node.inputs[input];
    });
    if (operand == step.inputs.end()) continue;
    const std::uint32_t root = root_of(*operand);
    const LoweredBuffer& storage = lowered_.buffers[root];
    const bool same =
        lowered_.buffers[*operand].form == result.form && storage.size_bytes == result.size_bytes &&
        *graph_.value(node.inputs[input]).type.shape == *graph_.value(result.value).type.shape;
    if (!same || storage.kind != BufferKind::kTemporary || storage.is_dynamic ||
        last_read[root] > index || reads_elsewhere(step, root))
      continue;
    result.alias_of = *operand;
    return true;
  }
  return false;
}

void MemoryPlanner::find_aliases() {
  // Last step that reads a root's storage through any of its names; grows as views join.
  std::vector<std::size_t> last_read(lowered_.buffers.size(), 0);
  for (std::size_t i = 0; i < lowered_.steps.size(); ++i)
    for (const std::uint32_t buffer : lowered_.steps[i].inputs) last_read[buffer] = i;
  for (std::size_t i = 0; i < lowered_.steps.size(); ++i) {
    const LoweredStep& step = lowered_.steps[i];
    if (step.opcode != Opcode::kCall || (!try_view(step) && !try_in_place(step, i, last_read)))
      continue;
    const std::uint32_t result = step.outputs.front();
    std::size_t& last = last_read[root_of(result)];
    last = std::max(last, last_read[result]);
  }
}

void MemoryPlanner::find_lifetimes() {
  for (LoweredBuffer& buffer : lowered_.buffers) buffer.lower = buffer.upper = 0;
  for (std::size_t i = 0; i < lowered_.steps.size(); ++i) {
    for (const auto* list : {&lowered_.steps[i].inputs, &lowered_.steps[i].outputs}) {
      for (const std::uint32_t buffer : *list) {
        LoweredBuffer& owner = lowered_.buffers[root_of(buffer)];
        if (owner.upper == 0) owner.lower = static_cast<std::int64_t>(i);
        owner.upper = static_cast<std::int64_t>(i) + 1;
      }
    }
  }
}

// Which buffers each must lie above: those below it that are alive at the same time, less what
// follows from others.
void MemoryPlanner::record_order(const std::vector<std::uint32_t>& placed) {
  std::vector<std::uint32_t> by_offset = placed;
  std::ranges::stable_sort(
      by_offset, {}, [&](std::uint32_t buffer) { return lowered_.buffers[buffer].offset_bytes; });
  const auto overlaps = [&](std::uint32_t a, std::uint32_t b) {
    return lowered_.buffers[a].lower < lowered_.buffers[b].upper &&
           lowered_.buffers[b].lower < lowered_.buffers[a].upper;
  };
  std::map<std::uint32_t, std::vector<bool>>
      reaches;  // by place in by_offset: everything that a buffer lies above
  for (std::size_t i = 0; i < by_offset.size(); ++i) {
    std::vector<bool>& reached = reaches[by_offset[i]];
    reached.assign(by_offset.size(), false);
    for (std::size_t j = i; j-- > 0;) {
      if (reached[j] || !overlaps(by_offset[i], by_offset[j])) continue;
      lowered_.buffers[by_offset[i]].above.push_back(by_offset[j]);
      reached[j] = true;
      const std::vector<bool>& through = reaches[by_offset[j]];
      for (std::size_t k = 0; k < j; ++k) reached[k] = reached[k] || through[k];
    }
  }
}

Status MemoryPlanner::place(std::uint32_t memory) {
  MemoryFigures figures;
  figures.memory = memory;
  solve::MemoryProblem problem;
  std::vector<std::uint32_t> placed;
  for (std::uint32_t i = 0; i < lowered_.buffers.size(); ++i) {
    const LoweredBuffer& buffer = lowered_.buffers[i];
    if (buffer.form.memory != memory || buffer.alias_of != UINT32_MAX) continue;
    if (buffer.kind == BufferKind::kConstant) figures.weights_bytes += buffer.size_bytes;
    if (buffer.kind == BufferKind::kState) figures.state_bytes += buffer.size_bytes;
    if (buffer.kind != BufferKind::kTemporary || buffer.is_dynamic) continue;
    placed.push_back(i);
    problem.buffers.push_back(
        {.id = {},
         .lower = buffer.lower,
         .upper = buffer.upper,
         .size_bytes = (buffer.size_bytes + kAlignment - 1) / kAlignment * kAlignment,
         .alignment = kAlignment,
         .fixed_offset = {}});
  }
  for (const LoweredStep& step : lowered_.steps)
    if (step.option != nullptr && target_.memory_of[step.device] == memory)
      figures.weights_bytes += step.option->candidate.packed_bytes;
  TESSERA_ASSIGN(const solve::MemorySolution solution, solve::allocate_greedy(problem));
  TESSERA_TRY(solve::validate(problem, solution));
  for (std::size_t i = 0; i < placed.size(); ++i)
    lowered_.buffers[placed[i]].offset_bytes = solution.offsets[i];
  record_order(placed);
  figures.arena_bytes = solution.arena_bytes;
  figures.peak_live_bytes = solution.peak_live_bytes;
  lowered_.memory.push_back(figures);
  return {};
}

}  // namespace

Status plan_memory(const ir::Graph& graph, const Target& target, const SymbolBindings& point,
                   Lowered& lowered) {
  return MemoryPlanner(graph, target, point, lowered).run();
}

Status check_capacity(const Target& target, const std::vector<Lowered>& graphs) {
  for (std::uint32_t device = 0; device < target.device_count(); ++device) {
    const std::int64_t available = target.info(device).rates.memory_bytes;
    std::int64_t needed = 0;
    for (const Lowered& graph : graphs)
      for (const MemoryFigures& figures : graph.memory)
        if (figures.memory == target.memory_of[device])
          needed += figures.arena_bytes + figures.weights_bytes + figures.state_bytes;
    if (available > 0 && needed > available)
      return fail(ErrorCode::kResourceExhausted,
                  fmt::format("device '{}': the plan needs {} bytes, the device has {}",
                              target.info(device).name, needed, available));
  }
  return {};
}

}  // namespace tessera::plan
