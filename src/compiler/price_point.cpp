#include "compiler/price_point.h"

#include <fmt/format.h>

#include <algorithm>

namespace tessera::compiler {
namespace {

constexpr std::int64_t kDefaultSpatial = 224;
constexpr std::int64_t kDefaultLength = 128;
constexpr std::int64_t kDefaultLate = 16;
constexpr std::int64_t kMaxScale = 256;       // of lengths: 32768
constexpr std::int64_t kMaxSpatialScale = 8;  // 1792

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

std::int64_t default_size(std::size_t rank, std::size_t dim, std::int64_t scale) {
  if (dim == 0) return 1;
  const std::int64_t size = rank >= 4 && dim >= 2
                                ? kDefaultSpatial * std::min(scale, kMaxSpatialScale)
                                : kDefaultLength * scale;
  return std::max<std::int64_t>(size, 1);
}

// How well the sizes of a graph fit a point.
enum class Fit : std::uint8_t {
  kContradicts,  // one has no value
  kImpossible,   // one is below 0, or the bytes of a tensor overflow
  kEmpty,        // one is 0
  kGood,
};

Fit fit_of(const ir::Graph& graph, const SymbolBindings& point) {
  std::int64_t smallest = 1;
  bool overflows = false;
  for (ir::ValueId id = 0; id < graph.value_count(); ++id) {
    const ValueType& type = graph.value(id).type;
    if (!type.is_tensor() || !type.shape) continue;
    const auto dims = evaluate(*type.shape, point);
    if (!dims) return Fit::kContradicts;
    if (graph.value(id).kind == ir::ValueKind::kConstant) continue;
    for (const std::int64_t size : *dims) smallest = std::min(smallest, size);
    overflows = overflows || !checked_nbytes(type.dtype, *dims);
  }
  return smallest < 0 || overflows ? Fit::kImpossible : smallest == 0 ? Fit::kEmpty : Fit::kGood;
}

// Sizes that only the run decides, as they are assumed: a size of 1 broadcasts where another guess
// contradicts the sizes beside it.
Fit add_late_sizes(const ir::Module& module, const ir::Graph& graph, const SymbolBindings& seen,
                   SymbolBindings& point) {
  const SymbolBindings stated = point;
  for (const SymbolBindings& known : {seen, SymbolBindings()}) {
    for (const std::int64_t guess : {kDefaultLate, std::int64_t{1}}) {
      point = stated;
      for (const auto& [symbol, range] : module.symbols) {
        const auto found = known.find(symbol);
        point.try_emplace(
            symbol, std::clamp(found == known.end() ? guess : found->second, range.min, range.max));
      }
      if (const Fit fit = fit_of(graph, point); fit != Fit::kContradicts) return fit;
    }
  }
  return Fit::kContradicts;
}

// Sizes of inputs that nobody stated: the defaults, times `scale` where they are no batch.
void add_defaults(const ir::Module& module, const ir::Graph& graph, std::int64_t scale,
                  SymbolBindings& point) {
  for (const ir::ValueId id : graph.inputs) {
    const ValueType& type = graph.value(id).type;
    if (!type.is_tensor() || !type.shape) continue;
    for (std::size_t d = 0; d < type.shape->size(); ++d) {
      const auto symbol = (*type.shape)[d].as_symbol();
      if (!symbol || point.contains(*symbol)) continue;
      const auto known = module.symbols.find(*symbol);
      const SymbolRange range = known == module.symbols.end() ? SymbolRange{} : known->second;
      point[*symbol] = std::clamp(default_size(type.shape->size(), d, scale), range.min, range.max);
    }
  }
}

// A signal of 128 samples may be shorter than a window of the model: the smallest multiple of the
// defaults counts at which every size can be and none is 0, else at which every size can be.
SymbolBindings complete(const ir::Module& module, const ir::Graph& graph,
                        const SymbolBindings& stated, const SymbolBindings& seen) {
  SymbolBindings best;
  Fit best_fit = Fit::kContradicts;
  for (std::int64_t scale = 1; scale <= kMaxScale; scale *= 2) {
    SymbolBindings point = stated;
    add_defaults(module, graph, scale, point);
    const Fit fit = add_late_sizes(module, graph, seen, point);
    if (best.empty() || fit > best_fit) {
      best = std::move(point);
      best_fit = fit;
    }
    if (fit == Fit::kGood) break;
  }
  if (best_fit > Fit::kImpossible) return best;
  // A kernel of guessed size may be larger than its image, a tensor of high rank too large for
  // any machine: all are 1 then.
  SymbolBindings ones = stated;
  add_defaults(module, graph, 0, ones);
  return add_late_sizes(module, graph, seen, ones) > best_fit ? ones : best;
}

}  // namespace

Result<SymbolBindings> price_point(const ir::Module& module, const ir::Graph& graph,
                                   const std::map<std::string, Dims>& shapes,
                                   const SymbolBindings& seen) {
  SymbolBindings point;
  for (const auto& [name, dims] : shapes) {
    TESSERA_ASSIGN(const ir::Value* input, find_input(graph, name));
    TESSERA_TRY(bind_stated(module, *input, dims, point));
  }
  point = complete(module, graph, point, seen);
  // Again, now that every symbol has a size: a stated one may be an expression over symbols that it
  // does not determine.
  for (const auto& [name, dims] : shapes)
    TESSERA_TRY(bind_stated(module, **find_input(graph, name), dims, point));
  return point;
}

std::set<std::string> late_symbols(const ir::Graph& graph) {
  std::set<std::string, std::less<>> of_inputs;
  std::set<std::string, std::less<>> all;
  const auto add = [&](const ir::Value& value, auto& symbols) {
    if (value.type.is_tensor() && value.type.shape)
      for (const Dim& size : *value.type.shape) size.collect_symbols(symbols);
  };
  for (const ir::ValueId id : graph.inputs) add(graph.value(id), of_inputs);
  for (const auto& node : graph.nodes())
    for (const ir::ValueId id : node->outputs)
      if (id != ir::kNoValue) add(graph.value(id), all);
  std::set<std::string> late;
  for (const std::string& symbol : all)
    if (!of_inputs.contains(symbol)) late.insert(symbol);
  return late;
}

}  // namespace tessera::compiler
