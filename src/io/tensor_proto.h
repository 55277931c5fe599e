#pragma once

// Tensors, sequences, optionals and maps in the protobuf messages of ONNX, and in files that hold
// one of them (the data of ONNX's backend tests).

#include <filesystem>
#include <string_view>

#include "base/run_value.h"
#include "base/tensor.h"

namespace onnx {
class TensorProto;
class SequenceProto;
class OptionalProto;
}  // namespace onnx

namespace tessera::io {

// A tensor with inline data: raw_data, or the typed field of its data type. The result owns its
// elements. Errors: data type undefined or not known; dims negative or too large; bytes or elements
// that disagree with the dims ("expected 16 bytes for fp32[4], found 8"); the wrong field for the
// data type, or several; data that is external, at an unknown location, or a segment.
Result<Tensor> tensor_from_proto(const onnx::TensorProto& proto);

// The same; takes raw_data out of `proto` instead of copying it.
Result<Tensor> tensor_from_proto(onnx::TensorProto&& proto);

// The name of a field that holds elements in the message itself, "" where none does.
std::string_view data_field_of(const onnx::TensorProto& proto);

// Writes raw_data (string_data for strings). Replaces what `proto` held.
void tensor_to_proto(const Tensor& tensor, std::string_view name, onnx::TensorProto& proto);

// Files with one message. The bytes do not say which, nor what a sequence or a map without elements
// would hold: `type` is that in the model. Errors name the path: a message of another kind as far
// as it shows, sparse tensors.
Result<Tensor> read_tensor_pb(const std::filesystem::path& path);
Result<RunValue> read_value_pb(const std::filesystem::path& path, const ValueType& type);
Status write_tensor_pb(const std::filesystem::path& path, const Tensor& tensor,
                       std::string_view name);
Status write_value_pb(const std::filesystem::path& path, const RunValue& value,
                      const ValueType& type, std::string_view name);

}  // namespace tessera::io
