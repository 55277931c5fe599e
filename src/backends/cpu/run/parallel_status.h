#pragma once

// Chunks that may fail: the first error in chunk order is what the caller gets.

#include <atomic>
#include <optional>

#include "backends/run_interface.h"

namespace tessera::backends::cpu {

// Runs body(chunk) -> Status for every chunk, on the caller's thread where there is one chunk.
template <typename Body>
Status run_chunks(Parallel* parallel, std::int64_t chunks, const Body& body) {
  if (chunks == 1 || parallel == nullptr) {
    for (std::int64_t i = 0; i < chunks; ++i) TESSERA_TRY(body(i));
    return {};
  }
  std::atomic<std::int64_t> failed{INT64_MAX};
  parallel->run(chunks, [&](std::int64_t i) {
    if (body(i)) return;
    std::int64_t seen = failed.load();
    while (i < seen && !failed.compare_exchange_weak(seen, i)) {
    }
  });
  if (failed.load() == INT64_MAX) return {};
  return body(failed.load());  // once more, for its message
}

}  // namespace tessera::backends::cpu
