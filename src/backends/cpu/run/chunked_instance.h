#pragma once

// Instances that are one function over chunks.

#include <memory>
#include <utility>

#include "backends/run_interface.h"

namespace tessera::backends::cpu {

// body(args, chunk, chunks, scratch): the chunk's own scratch of `scratch_each` bytes (a multiple
// of 64).
template <typename Body>
class ChunkedInstance final : public KernelInstance {
 public:
  ChunkedInstance(std::int64_t chunks, std::int64_t scratch_each, Body body)
      : chunks_(chunks), scratch_each_(scratch_each), body_(std::move(body)) {}
  [[nodiscard]] std::int64_t scratch_bytes() const override { return scratch_each_ * chunks_; }
  Status execute(const ExecuteArgs& args) override {
    const auto one = [&](std::int64_t i) {
      body_(args, i, chunks_, args.scratch + i * scratch_each_);
    };
    args.parallel->run(chunks_, one);
    return {};
  }

 private:
  std::int64_t chunks_;
  std::int64_t scratch_each_;
  Body body_;
};

template <typename Body>
std::unique_ptr<KernelInstance> chunked(std::int64_t chunks, Body body,
                                        std::int64_t scratch_each = 0) {
  return std::make_unique<ChunkedInstance<Body>>(chunks, (scratch_each + 63) / 64 * 64,
                                                 std::move(body));
}

}  // namespace tessera::backends::cpu
