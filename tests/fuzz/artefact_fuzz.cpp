// Bytes as an artefact. Random bytes seldom get past the header, so a sound one is put in front of
// every second input.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "artefact/read/file_format.h"
#include "artefact/read/reader.h"
#include "base/file.h"
#include "base/hash.h"
#include "testing/temp_dir.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const tessera::testing::TempDir folder;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (size % 2 == 0) {
    tessera::artefact::FileHeader header;
    const auto hash = tessera::hash_bytes(data, size);
    header.metadata_offset = tessera::artefact::kSegmentAlignment;
    header.metadata_size = size;
    header.metadata_hash_high = hash.high;
    header.metadata_hash_low = hash.low;
    header.file_size = header.metadata_offset + size;
    std::string front(tessera::artefact::kSegmentAlignment, '\0');
    std::memcpy(front.data(), &header, sizeof(header));
    bytes.insert(0, front);
  }
  const auto path = folder.path() / "fuzz.tsr";
  if (tessera::write_file_atomically(path, bytes)) (void)tessera::artefact::read_program(path);
  return 0;
}
