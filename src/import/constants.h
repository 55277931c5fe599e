#pragma once

// Tensors of a model: inline, external, sparse, and the forms that a Constant node has.

#include <string>

#include "base/error.h"
#include "base/tensor.h"
#include "import/external_data.h"

namespace onnx {
class NodeProto;
class SparseTensorProto;
class TensorProto;
}  // namespace onnx

namespace tessera::importer {

// A dense sparse tensor may take that much; more is refused before memory is asked for.
inline constexpr std::int64_t kMaxExpandedBytes = std::int64_t{1} << 31;

// Errors name the tensor, expected and found. A message that the caller gives away loses its bytes
// to the tensor.
Result<Tensor> read_tensor(const onnx::TensorProto& proto, ExternalData& external);
Result<Tensor> read_tensor(onnx::TensorProto&& proto, ExternalData& external);

// The dense tensor: zeros but for the values, whose indices (linear, or one row each) are in range
// and strictly ascending.
Result<Tensor> read_sparse_tensor(const onnx::SparseTensorProto& proto, ExternalData& external);

}  // namespace tessera::importer
