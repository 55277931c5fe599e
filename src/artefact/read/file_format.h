#pragma once

// The fixed header of an artefact file, little endian. Behind it lies the metadata (a FlatBuffer),
// then the segments.

#include <array>
#include <cstdint>

namespace tessera::artefact {

inline constexpr std::array<char, 8> kMagic = {'T', 'E', 'S', 'S', 'E', 'R', 'A', '\n'};
inline constexpr std::uint32_t kFormatVersion = 1;
inline constexpr std::int64_t kSegmentAlignment = 64;

struct FileHeader {
  std::array<char, 8> magic = kMagic;
  std::uint32_t format_version = kFormatVersion;
  std::uint32_t reserved = 0;
  std::uint64_t file_size = 0;
  std::uint64_t metadata_offset = 0;
  std::uint64_t metadata_size = 0;
  std::uint64_t metadata_hash_high = 0;  // XXH3-128 of the metadata
  std::uint64_t metadata_hash_low = 0;
};
static_assert(sizeof(FileHeader) == 56);

}  // namespace tessera::artefact
