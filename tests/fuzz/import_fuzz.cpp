// Bytes as an ONNX model.

#include <cstddef>
#include <cstdint>
#include <span>

#include "import/import.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)tessera::importer::import_bytes(std::as_bytes(std::span(data, size)), nullptr);
  return 0;
}
