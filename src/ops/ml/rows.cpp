#include "ops/ml/rows.h"

#include <fmt/format.h>

#include "ops/nn/nn_util.h"

namespace tessera::ops::ml {

std::int64_t rows_of(const Dims& dims) {
  return dims.size() == 1 ? 1 : dims[0];
}

Dim row_dim(InferContext& context) {
  const auto& shape = context.inputs[0].type.shape;
  if (!shape || shape->empty()) return context.fresh_symbol("rows");
  return shape->size() == 1 ? Dim(1) : shape->front();
}

Status check_features(std::string_view op, std::size_t features, const Dims& dims) {
  if (!dims.empty() && dims.size() <= 2 && dims.back() == static_cast<std::int64_t>(features))
    return {};
  return nn::op_error(
      op, fmt::format("expected rows of {} features, found {}", features, to_string(dims)));
}

}  // namespace tessera::ops::ml
