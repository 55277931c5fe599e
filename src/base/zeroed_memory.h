#pragma once

// Memory for tensors: zeros, aligned to a cache line.

#include <cstddef>
#include <cstdint>

namespace tessera {

// Null where there is not that much; 0 bytes are one line. Pieces of 2 MiB and more lie in huge
// pages where the system has any: the first touch of a page costs as much as reading it several
// times, and most of a first run.
std::byte* allocate_zeroed(std::int64_t size_bytes);

// `size_bytes` as it was asked for.
void release_zeroed(std::byte* data, std::int64_t size_bytes);

}  // namespace tessera
