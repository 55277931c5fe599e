#pragma once

// Writes an artefact. The same image gives the same bytes.

#include <filesystem>
#include <string>

#include "artefact/read/program_image.h"
#include "base/error.h"

namespace tessera::artefact {

// Adds segments by content: equal bytes are stored once.
class SegmentPool {
 public:
  explicit SegmentPool(ProgramImage& image) : image_(image) {}
  // The number of the segment that holds the bytes of `tensor`, which the image keeps alive.
  std::uint32_t add(const Tensor& tensor);

 private:
  ProgramImage& image_;
  std::map<ContentHash, std::uint32_t> by_hash_;
};

// Verifies, then writes to a temporary name and renames. Errors name the path.
Status write_program(const ProgramImage& image, const std::filesystem::path& path);

// The bytes that write_program stores.
Result<std::string> serialize_program(const ProgramImage& image);

}  // namespace tessera::artefact
