#pragma once

// Tensors whose bytes lie in files beside the model.

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/tensor.h"

namespace onnx {
class TensorProto;
}

namespace tessera {
class MappedFile;
}

namespace tessera::importer {

// Where a model's external data may lie, and the files of it that are mapped so far.
//
// A location is a relative path without "..". What it names, all links followed, must be a regular
// file in the model's folder, or in the folder where the model file itself lies once its links are
// followed: download caches keep model and data as links into one folder of blobs. Anything else is
// refused.
class ExternalData {
 public:
  // No folder: every external tensor is refused.
  ExternalData() = default;
  // The folder of a model file.
  static ExternalData beside(const std::filesystem::path& model_path);
  // A folder as such.
  static ExternalData inside(const std::filesystem::path& folder);

  // The tensor, over the mapped file: nothing is read before somebody looks at the elements. `dims`
  // are checked already. Errors name key, expected and found; the caller adds the tensor's name.
  Result<Tensor> read(const onnx::TensorProto& proto, DType dtype, const Dims& dims);

 private:
  Result<std::filesystem::path> resolve(const std::string& location) const;
  Result<std::shared_ptr<const MappedFile>> map(const std::string& location);

  std::optional<std::filesystem::path> folder_;          // as the user named it
  std::optional<std::filesystem::path> resolved_model_;  // where the model file really lies
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;  // by location
};

}  // namespace tessera::importer
