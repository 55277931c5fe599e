#pragma once

// Reads an artefact: maps the file, checks it, gives the image. Nothing is repacked; segments stay
// in the mapped file.

#include <filesystem>

#include "artefact/read/program_image.h"
#include "base/error.h"

namespace tessera::artefact {

struct ReadOptions {
  bool verify_segments = false;  // hash every segment too
};

// Errors: not an artefact, truncated, another format version (both named), the manifest's hash
// disagrees, an index out of bounds (which table, which entry), a damaged segment (with
// verify_segments).
Result<ProgramImage> read_program(const std::filesystem::path& path,
                                  const ReadOptions& options = {});

// Checks every index, count and shape of an image against its tables; the writer runs it too.
Status verify_program(const ProgramImage& image);

}  // namespace tessera::artefact
