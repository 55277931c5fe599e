#pragma once

// Tensors of a model: inline, external, sparse, and the forms that a Constant node has.

#include <map>
#include <string>

#include "base/error.h"
#include "base/tensor.h"
#include "import/budget.h"
#include "import/external_data.h"

namespace onnx {
class NodeProto;
class SparseTensorProto;
class TensorProto;
}  // namespace onnx

namespace tessera::importer {

// A dense sparse tensor may take that much; more is refused before memory is asked for.
inline constexpr std::int64_t kMaxExpandedBytes = std::int64_t{1} << 31;

// Messages to tensors. What a message of a local function or a body holds is read once, however
// often that is expanded. Errors name the tensor, expected and found.
class ConstantReader {
 public:
  // Both outlive the reader. Elements come out of the budget, but for those of mapped files.
  ConstantReader(ExternalData& external, ImportBudget& budget)
      : external_(external), budget_(budget) {}

  Result<Tensor> read(const onnx::TensorProto& proto);
  // The message loses its bytes to the tensor.
  Result<Tensor> read(onnx::TensorProto&& proto);
  // The dense tensor: zeros but for the values, whose indices (linear, or one row each) are in
  // range and strictly ascending.
  Result<Tensor> read(const onnx::SparseTensorProto& proto);

 private:
  template <typename Proto>
  Result<Tensor> read_any(Proto&& proto);
  Result<Tensor> read_external(const onnx::TensorProto& proto);
  Result<Tensor> expand(const onnx::SparseTensorProto& proto);

  ExternalData& external_;
  ImportBudget& budget_;
  std::map<const void*, Tensor> known_;  // by message
};

}  // namespace tessera::importer
