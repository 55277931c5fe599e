#pragma once

// From bytes to a parsed ModelProto whose frame is sound: an IR version, a graph.

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "import/budget.h"

namespace onnx {
class ModelProto;
}

namespace tessera::importer {

struct ModelFile {
  ModelFile();
  ~ModelFile();
  ModelFile(ModelFile&&) noexcept;
  ModelFile& operator=(ModelFile&&) noexcept;

  std::unique_ptr<onnx::ModelProto> model;
  ImportBudget budget{0};    // of the memory that the import may take
  std::string content_hash;  // of the file's bytes, without external data
};

// Errors: not there, not a regular file, empty, larger than protobuf can hold, more messages than
// the budget has memory for, not protobuf (with the place where it breaks), no graph, no or a newer
// IR version. The caller adds the path.
Result<ModelFile> read_model_file(const std::filesystem::path& path);
Result<ModelFile> parse_model(std::span<const std::byte> bytes);

}  // namespace tessera::importer
