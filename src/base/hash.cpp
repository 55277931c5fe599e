#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/error.h"

namespace tessera {
namespace {

XXH3_state_t* xxh(void* state) {
  return static_cast<XXH3_state_t*>(state);
}

// Each piece is its kind and its length, then its bytes.
void add_piece(void* state, std::uint64_t kind, const void* data, std::size_t size_bytes) {
  const std::uint64_t head[2] = {kind, size_bytes};
  XXH3_128bits_update(xxh(state), head, sizeof(head));
  if (size_bytes != 0) XXH3_128bits_update(xxh(state), data, size_bytes);
}

constexpr std::uint64_t kTextKind = 1;
constexpr std::uint64_t kNumberKind = 2;
constexpr std::uint64_t kBytesKind = 3;

}  // namespace

std::string ContentHash::to_string() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint64_t half : {high, low}) {
    for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[(half >> shift) & 15U];
  }
  return text;
}

ContentHash hash_bytes(const void* data, std::size_t size_bytes) {
  const XXH128_hash_t hash = XXH3_128bits(data, size_bytes);
  return {hash.high64, hash.low64};
}

Hasher::Hasher() : state_(XXH3_createState()) {
  TESSERA_CHECK(state_ != nullptr);
  XXH3_128bits_reset(xxh(state_));
}

Hasher::~Hasher() {
  XXH3_freeState(xxh(state_));
}

Hasher& Hasher::add(std::string_view text) {
  add_piece(state_, kTextKind, text.data(), text.size());
  return *this;
}

Hasher& Hasher::add(std::int64_t number) {
  add_piece(state_, kNumberKind, &number, sizeof(number));
  return *this;
}

Hasher& Hasher::add_bytes(const void* data, std::size_t size_bytes) {
  add_piece(state_, kBytesKind, data, size_bytes);
  return *this;
}

ContentHash Hasher::finish() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(xxh(state_));
  return {hash.high64, hash.low64};
}

}  // namespace tessera
