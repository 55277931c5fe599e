// Which source files hold the schemas of the normalisations.

#include "ops/groups.h"
#include "ops/nn/schemas.h"

namespace tessera::ops {

std::vector<OpSchema> normalization_ops() {
  std::vector<OpSchema> ops{nn::batch_normalization_schema()};
  for (const auto& schemas : {nn::group_normalization_schemas(), nn::layer_normalization_schemas(),
                              nn::response_normalization_schemas()}) {
    ops.insert(ops.end(), schemas.begin(), schemas.end());
  }
  return ops;
}

}  // namespace tessera::ops
