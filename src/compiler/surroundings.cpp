#include "compiler/surroundings.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>

#include "base/machine_facts.h"
#include "base/processors.h"

namespace tessera::compiler {
namespace {

constexpr std::int64_t kLineBytes = 64;
constexpr std::int64_t kPageBytes = 4096;
// What is read to push all else out: of caches larger than this (or unknown) a part stays.
constexpr std::int64_t kMaxOtherBytes = std::int64_t{64} << 20;

// Writes each line of [begin, end) as it is: this core's cache has it then, and no other.
void rewrite(std::byte* begin, const std::byte* end) {
  for (volatile std::byte* at = begin; at < end; at += kLineBytes) *at = *at;
}

// Takes bytes out of every cache; false where the processor has no way to.
bool flush(const std::byte* begin, const std::byte* end) {
#if defined(__x86_64__)
  for (const std::byte* at = begin; at < end; at += kLineBytes) _mm_clflush(at);
  _mm_mfence();
  return true;
#else
  return begin == end;
#endif
}

}  // namespace

Surroundings::Surroundings(int threads, plan::CacheState caches)
    : threads_(threads), caches_(caches), pool_(threads) {
  const auto levels = data_caches(allowed_processors());
  const std::int64_t all = levels.empty() ? kMaxOtherBytes : 2 * levels.back().size_bytes;
  const std::int64_t own = levels.size() < 2 ? all : 2 * levels[levels.size() - 2].size_bytes;
  const auto share = [&](std::int64_t bytes) { return std::min(bytes, kMaxOtherBytes) / threads; };
  private_bytes_ = share(own);
  other_bytes_.assign(static_cast<std::size_t>(threads),
                      std::vector<std::byte>(static_cast<std::size_t>(share(all)), std::byte{1}));
}

// Threads read bytes of their own, so that private caches are emptied too, not only the shared one.
void Surroundings::read_others(std::int64_t size_bytes, std::int64_t step_bytes) {
  pool_.run(threads_, [&](std::int64_t part) {
    auto& bytes = other_bytes_[static_cast<std::size_t>(part)];
    std::byte sum{};
    for (std::int64_t i = 0; i < size_bytes; i += step_bytes)
      sum ^= bytes[static_cast<std::size_t>(i)];
    bytes[0] = sum;
  });
}

void Surroundings::empty_caches() {
  read_others(static_cast<std::int64_t>(other_bytes_.front().size()), kLineBytes);
}

// Flushing needs the addresses of the pages, which then have to go as well.
void Surroundings::stream_out(std::span<const std::span<const std::byte>> constants) {
  const auto is_flushed = [](std::span<const std::byte> bytes) {
    return flush(bytes.data(), bytes.data() + bytes.size());
  };
  if (!std::ranges::all_of(constants, is_flushed)) return empty_caches();
  read_others(static_cast<std::int64_t>(other_bytes_.front().size()), kPageBytes);
  read_others(private_bytes_, kLineBytes);
}

void Surroundings::hand_over(std::span<const backends::DeviceBuffer> operands,
                             std::span<const std::span<const std::byte>> constants) {
  if (caches_ == plan::CacheState::kShared) read_others(private_bytes_, kLineBytes);
  if (caches_ == plan::CacheState::kStreamed) stream_out(constants);
  for (std::size_t i = operands.size(); i-- > 0;) {
    const backends::DeviceBuffer& operand = operands[i];
    const std::int64_t pages = (operand.size_bytes + kPageBytes - 1) / kPageBytes;
    pool_.run(std::min<std::int64_t>(threads_, pages), [&](std::int64_t part) {
      for (std::int64_t page = part; page < pages; page += threads_) {
        const std::int64_t end = std::min((page + 1) * kPageBytes, operand.size_bytes);
        rewrite(operand.data + page * kPageBytes, operand.data + end);
      }
    });
  }
}

}  // namespace tessera::compiler
