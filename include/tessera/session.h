#pragma once

// One caller's state: bindings, memory, threads. A session is used by one thread at a time;
// sessions of one program are independent of one another.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "tessera/dtype.h"
#include "tessera/error.h"
#include "tessera/program.h"

namespace tessera {

namespace runtime {
class Executor;
}

struct SessionOptions {
  // At most so many at a time, the caller's included: it is helped by workers that all sessions of
  // the process share. With 1, run() stays on the caller's thread.
  int threads = 1;
  bool trace = false;  // record when each instruction ran
};

// An output after a run. `data` lives until the next bind, run or the session's end.
struct TensorRef {
  DType dtype = DType::kUndefined;
  std::span<const std::int64_t> dims;
  const void* data = nullptr;
  std::size_t size_bytes = 0;
};

class Session {
 public:
  // Errors: out of memory; a kernel that cannot be made on this machine.
  static Result<Session> create(const Program& program, const SessionOptions& options = {});
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // The elements are read where they lie (dense, row-major; no copy) at each run until the input is
  // bound anew. Errors: no such input (and those that exist), another dtype, rank or size (expected
  // and found).
  Status bind_input(std::string_view name, DType dtype, std::span<const std::int64_t> dims,
                    const void* data);

  // Results go where the caller says; unbound outputs go to memory of the session. Errors: no such
  // output; at run: too small.
  Status bind_output(std::string_view name, void* data, std::size_t size_bytes);

  // Makes kernels and memory ready for the inputs that are bound, all threads at work: what the
  // first run at these sizes would do otherwise. The bodies of loops and branches come with their
  // first run. Errors: as of run(), but for those of the data.
  Status prepare();

  // Errors: an input that is not bound, sizes that contradict one another, data that a kernel
  // refuses (an index out of range). After the first run at given sizes, a run allocates and locks
  // nothing of ours.
  Status run();

  [[nodiscard]] Result<TensorRef> output(std::string_view name) const;

  [[nodiscard]] runtime::Executor& executor() { return *executor_; }

 private:
  explicit Session(std::unique_ptr<runtime::Executor> executor);
  std::unique_ptr<runtime::Executor> executor_;
};

}  // namespace tessera
