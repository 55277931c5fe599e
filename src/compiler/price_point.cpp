#include "compiler/price_point.h"

#include <fmt/format.h>

#include <algorithm>

namespace tessera::compiler {
namespace {

constexpr std::int64_t kDefaultSpatial = 224;
constexpr std::int64_t kDefaultLength = 128;
constexpr std::int64_t kDefaultLate = 16;

Result<const ir::Value*> find_input(const ir::Graph& graph, const std::string& name) {
  std::string known;
  for (const ir::ValueId id : graph.inputs) {
    const ir::Value& value = graph.value(id);
    if (value.name == name) return &value;
    known += (known.empty() ? "'" : ", '") + value.name + "'";
  }
  return fail(ErrorCode::kNotFound,
              fmt::format("--shape: no input '{}': expected one of {}", name, known));
}

Status bind_stated(const ir::Module& module, const ir::Value& input, const Dims& dims,
                   SymbolBindings& point) {
  if (!input.type.shape || input.type.shape->size() != dims.size())
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("--shape: input '{}': expected {}, found {}", input.name,
                            input.type.to_string(), tessera::to_string(dims)));
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const Dim& declared = (*input.type.shape)[d];
    if (const auto symbol = declared.as_symbol()) point.try_emplace(*symbol, dims[d]);
    const auto expected = declared.evaluate(point);
    if (expected && *expected != dims[d])
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("--shape: input '{}': dimension {}: expected {}, found {}",
                              input.name, d, *expected, dims[d]));
    const SymbolRange range = declared.range(module.symbols);
    if (dims[d] < range.min || dims[d] > range.max)
      return fail(ErrorCode::kOutOfRange,
                  fmt::format("--shape: input '{}': dimension {}: expected {} to {}, found {}",
                              input.name, d, range.min, range.max, dims[d]));
  }
  return {};
}

std::int64_t default_size(std::size_t rank, std::size_t dim) {
  if (dim == 0) return 1;
  return rank >= 4 && dim >= 2 ? kDefaultSpatial : kDefaultLength;
}

bool all_sizes_hold(const ir::Graph& graph, const SymbolBindings& point) {
  for (ir::ValueId id = 0; id < graph.value_count(); ++id)
    if (const ValueType& type = graph.value(id).type; type.is_tensor() && type.shape)
      if (!evaluate(*type.shape, point)) return false;
  return true;
}

// Sizes that only the run decides, as they are assumed: a size of 1 broadcasts where another guess
// contradicts the sizes beside it.
void add_late_sizes(const ir::Module& module, const ir::Graph& graph, SymbolBindings& point) {
  const SymbolBindings stated = point;
  for (const std::int64_t guess : {kDefaultLate, std::int64_t{1}}) {
    point = stated;
    for (const auto& [symbol, range] : module.symbols)
      point.try_emplace(symbol, std::clamp(guess, range.min, range.max));
    if (all_sizes_hold(graph, point)) return;
  }
}

}  // namespace

Result<SymbolBindings> price_point(const ir::Module& module, const ir::Graph& graph,
                                   const std::map<std::string, Dims>& shapes) {
  SymbolBindings point;
  for (const auto& [name, dims] : shapes) {
    TESSERA_ASSIGN(const ir::Value* input, find_input(graph, name));
    TESSERA_TRY(bind_stated(module, *input, dims, point));
  }
  for (const ir::ValueId id : graph.inputs) {
    const ValueType& type = graph.value(id).type;
    if (!type.is_tensor() || !type.shape) continue;
    for (std::size_t d = 0; d < type.shape->size(); ++d) {
      const auto symbol = (*type.shape)[d].as_symbol();
      if (!symbol || point.contains(*symbol)) continue;
      const auto known = module.symbols.find(*symbol);
      const SymbolRange range = known == module.symbols.end() ? SymbolRange{} : known->second;
      point[*symbol] = std::clamp(default_size(type.shape->size(), d), range.min, range.max);
    }
  }
  add_late_sizes(module, graph, point);
  // Again, now that every symbol has a size: a stated one may be an expression over symbols that it
  // does not determine.
  for (const auto& [name, dims] : shapes)
    TESSERA_TRY(bind_stated(module, **find_input(graph, name), dims, point));
  return point;
}

}  // namespace tessera::compiler
