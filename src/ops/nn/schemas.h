#pragma once

// Schemas that a group of groups.h collects from several source files of this folder.

#include "ops/op.h"

namespace tessera::ops::nn {

// Products.
OpSchema gemm_schema();
OpSchema matmul_schema();
OpSchema einsum_schema();
std::vector<OpSchema>
quantize_schemas();  // QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear
std::vector<OpSchema>
quantized_product_schemas();  // MatMulInteger, QLinearMatMul, ConvInteger, QLinearConv

// Normalisation.
OpSchema batch_normalization_schema();
std::vector<OpSchema> group_normalization_schemas();  // InstanceNormalization, GroupNormalization
std::vector<OpSchema> layer_normalization_schemas();  // LayerNormalization, RMSNormalization
std::vector<OpSchema>
response_normalization_schemas();  // LRN, MeanVarianceNormalization, LpNormalization

}  // namespace tessera::ops::nn
