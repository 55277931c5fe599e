#include "base/zeroed_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace tessera {
namespace {

constexpr std::int64_t kLine = 64;
constexpr std::int64_t kPage = 4096;
constexpr std::int64_t kHugePage = std::int64_t{2} << 20;

std::size_t round_up(std::int64_t size, std::int64_t unit) {
  return static_cast<std::size_t>((size + unit - 1) / unit * unit);
}

// A mapping that begins at a huge page.
std::byte* map_aligned(std::int64_t size_bytes) {
  const std::size_t size = round_up(size_bytes, kPage);
  const std::size_t mapped = size + kHugePage;
  void* all = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) return nullptr;
  auto* begin = static_cast<std::byte*>(all);
  const std::size_t before =
      (kHugePage - reinterpret_cast<std::uintptr_t>(all) % kHugePage) % kHugePage;
  if (before > 0) munmap(begin, before);
  munmap(begin + before + size, mapped - before - size);
  // A system without huge pages refuses, which costs nothing but speed.
  madvise(begin + before, size, MADV_HUGEPAGE);
  return begin + before;
}

}  // namespace

std::byte* allocate_zeroed(std::int64_t size_bytes) {
  if (size_bytes < 0 || size_bytes > INT64_MAX - 2 * kHugePage) return nullptr;
  if (size_bytes >= kHugePage) return map_aligned(size_bytes);
  const std::size_t size = round_up(std::max<std::int64_t>(size_bytes, 1), kLine);
  void* data = std::aligned_alloc(kLine, size);
  if (data != nullptr) std::memset(data, 0, size);
  return static_cast<std::byte*>(data);
}

void release_zeroed(std::byte* data, std::int64_t size_bytes) {
  if (data == nullptr) return;
  if (size_bytes >= kHugePage) {
    munmap(data, round_up(size_bytes, kPage));
  } else {
    std::free(data);
  }
}

}  // namespace tessera
