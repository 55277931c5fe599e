#include "compiler/assumed_sizes.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/drawn.h"
#include "compiler/seen_run.h"

namespace tessera::compiler {
namespace {

constexpr std::int64_t kMaxDrawnBytes = std::int64_t{256} << 20;

Result<std::vector<Tensor>> draw_inputs(const artefact::MethodImage& method, std::int64_t integer) {
  std::vector<Tensor> inputs;
  std::uint32_t seed = 1;
  std::int64_t size_bytes = 0;
  for (const auto& input : method.inputs) {
    if (!input.type.is_tensor() || !input.type.shape)
      return fail(ErrorCode::kUnimplemented, fmt::format("input '{}': {} cannot be drawn",
                                                         input.name, input.type.to_string()));
    TESSERA_ASSIGN(const Dims dims, evaluate(*input.type.shape, method.priced_at));
    TESSERA_ASSIGN(const std::int64_t input_bytes, checked_nbytes(input.type.dtype, dims));
    size_bytes += input_bytes;
    if (input_bytes > kMaxDrawnBytes || size_bytes > kMaxDrawnBytes)
      return fail(ErrorCode::kResourceExhausted,
                  fmt::format("input '{}': drawing the inputs takes more than {} bytes; --shape "
                              "states smaller sizes",
                              input.name, kMaxDrawnBytes));
    TESSERA_ASSIGN(inputs.emplace_back(), drawn_tensor(input.type.dtype, dims, seed++, integer));
  }
  return inputs;
}

bool says_something(const Dims& dims) {
  return std::ranges::all_of(dims, [](std::int64_t size) { return size > 0; });
}

class Assumptions {
 public:
  Assumptions(const ir::Graph& graph, const runtime::LoadedProgram& program)
      : graph_(graph), program_(program) {
    for (ir::ValueId id = 0; id < graph.value_count(); ++id)
      values_.emplace(graph.value(id).name, id);
  }

  // What is there stays.
  void add(const SeenRun& seen) {
    for (const auto& [symbol, size] : seen.symbols)
      if (size > 0) sizes_.symbols.emplace(symbol, size);
    for (const auto& [name, dims] : seen.dims) {
      const auto value = values_.find(name);
      if (value == values_.end() || graph_.value(value->second).type.shape) continue;
      if (says_something(dims)) sizes_.dims.emplace(value->second, dims);
    }
    for (const auto& [place, call] : seen.calls) {
      const auto& method = program_.plan().methods[place.first];
      const auto& instruction = method.instructions[place.second];
      for (std::size_t i = 0; i < call.operands.size(); ++i) {
        const auto value = values_.find(method.buffers[instruction.inputs[i]].value);
        if (value != values_.end()) sizes_.operands.emplace(value->second, call.operands[i]);
      }
    }
  }
  AssumedSizes take(std::string gap) {
    sizes_.gap = std::move(gap);
    return std::move(sizes_);
  }

 private:
  const ir::Graph& graph_;
  const runtime::LoadedProgram& program_;
  std::map<std::string, ir::ValueId> values_;  // by name
  AssumedSizes sizes_;
};

}  // namespace

AssumedSizes assume_sizes(const ir::Graph& graph,
                          const std::shared_ptr<const runtime::LoadedProgram>& program, int threads,
                          const std::stop_token& cancel) {
  Assumptions assumptions(graph, *program);
  std::string gap;
  for (const std::int64_t integer : {1, 0}) {
    const auto inputs = draw_inputs(program->method(), integer);
    if (!inputs) return assumptions.take(inputs.error().to_string());
    const auto seen =
        see_run(program, *inputs, {.threads = threads, .all_bodies = true, .cancel = cancel});
    if (!seen) return assumptions.take(seen.error().to_string());
    assumptions.add(*seen);
    if (!seen->ended) return assumptions.take({});
    if (gap.empty()) gap = seen->ended->to_string();
  }
  return assumptions.take(std::move(gap));
}

}  // namespace tessera::compiler
