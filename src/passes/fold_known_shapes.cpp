#include "passes/fold_known_shapes.h"

#include <algorithm>

#include "passes/rewrite.h"

namespace tessera::passes {
namespace {

std::optional<Tensor> constant_elements(const ir::Value& value) {
  if (!value.known || !value.type.is_tensor()) return std::nullopt;
  std::vector<std::int64_t> elements;
  for (const Dim& dim : value.known->elements) {
    const auto number = dim.constant();
    if (!number) return std::nullopt;
    elements.push_back(*number);
  }
  Dims dims;
  if (!value.known->scalar) dims.push_back(static_cast<std::int64_t>(elements.size()));
  if (value.type.dtype == DType::kInt64)
    return Tensor::of<std::int64_t>(DType::kInt64, dims, elements);
  if (value.type.dtype != DType::kInt32) return std::nullopt;
  const std::vector<std::int32_t> narrow(elements.begin(), elements.end());
  if (!std::equal(narrow.begin(), narrow.end(), elements.begin())) return std::nullopt;
  return Tensor::of<std::int32_t>(DType::kInt32, dims, narrow);
}

}  // namespace

Result<bool> fold_known_shapes(PassContext& /*context*/, ir::Graph& graph) {
  bool changed = false;
  const std::size_t count = graph.value_count();
  for (ir::ValueId id = 0; id < count; ++id) {
    if (graph.producer(id) == nullptr || graph.is_output(id) || graph.use_count(id) == 0) continue;
    auto elements = constant_elements(graph.value(id));
    if (!elements) continue;
    const ir::ValueId to =
        graph.add_constant(graph.fresh_name(graph.value(id).name), *std::move(elements));
    TESSERA_CHECK(graph.replace_uses(id, to));
    changed = true;
  }
  return changed;
}

}  // namespace tessera::passes
