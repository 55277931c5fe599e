// Which source files hold the schemas of the products.

#include "ops/groups.h"
#include "ops/nn/schemas.h"

namespace tessera::ops {

std::vector<OpSchema> product_ops() {
  std::vector<OpSchema> ops{nn::gemm_schema(), nn::matmul_schema(), nn::einsum_schema()};
  for (const auto& schemas : {nn::quantize_schemas(), nn::quantized_product_schemas()})
    ops.insert(ops.end(), schemas.begin(), schemas.end());
  return ops;
}

}  // namespace tessera::ops
