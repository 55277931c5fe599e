#pragma once

// The run-time contract of a backend. Its compile-time half is compile_interface.h.
//
// Ownership: a RunDevice outlives what it loads; a LoadedKernel outlives its instances; memory is
// freed by who holds it. Threads: a RunDevice and a LoadedKernel are shared by sessions and their
// const members may be called from any thread; a KernelInstance belongs to one session and is used
// by one thread at a time. Errors: bad or foreign specs at load, out of memory at allocate and
// instantiate, a lost device at execute. Execute allocates nothing, locks nothing and touches no
// strings, unless the instance says otherwise through `steady_allocations()`.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "artefact/read/program_image.h"
#include "base/error.h"
#include "base/run_value.h"

namespace tessera::backends {

// A callable that is not owned: for parallel loops without allocation.
template <typename Signature>
class FunctionRef;
template <typename R, typename... Args>
class FunctionRef<R(Args...)> {
 public:
  // NOLINTBEGIN(google-explicit-constructor,bugprone-forwarding-reference-overload): it stands in
  // for the callable, and the constraint leaves copies to the copy constructor.
  template <typename F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>) FunctionRef(F&& callable)
      : object_(const_cast<void*>(static_cast<const void*>(&callable))),
        call_([](void* object, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(object))(static_cast<Args>(args)...);
        }) {}
  // NOLINTEND(google-explicit-constructor,bugprone-forwarding-reference-overload)
  R operator()(Args... args) const { return call_(object_, static_cast<Args>(args)...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

// Threads of the session, lent for one execute. Implemented by the runtime's pool.
class Parallel {
 public:
  virtual ~Parallel() = default;
  [[nodiscard]] virtual int threads() const = 0;  // how many it would use now, the caller included
  // body(chunk) for each chunk in [0, chunks), in any order, on any of the threads; returns when
  // all are done. A single chunk runs on the caller's.
  virtual void run(std::int64_t chunks, FunctionRef<void(std::int64_t)> body) = 0;
};

// Memory of a device. For host memory `data` is the address; a simulated device keeps its own
// storage behind it too, which only it and RunDevice::copy may touch.
struct DeviceBuffer {
  std::byte* data = nullptr;
  std::int64_t size_bytes = 0;
};

// Everything that one execute needs. Pointers are in the device's memory, in the order of the
// spec's inputs and outputs.
struct ExecuteArgs {
  std::span<const std::byte* const> inputs;
  std::span<std::byte* const> outputs;
  std::byte* scratch = nullptr;  // scratch_bytes() of it, 64-byte aligned
  Parallel* parallel = nullptr;
};

// A kernel ready for one set of dims.
class KernelInstance {
 public:
  virtual ~KernelInstance() = default;
  [[nodiscard]] virtual std::int64_t scratch_bytes() const { return 0; }
  virtual Status execute(const ExecuteArgs& args) = 0;
};

// The dims of one instance, in the order of the spec's inputs and outputs.
struct InstanceDims {
  std::vector<Dims> inputs;
  std::vector<Dims> outputs;
};

// A kernel loaded from an artefact, for any dims that its spec allows. Weights are used where they
// lie in the mapped file.
class LoadedKernel {
 public:
  virtual ~LoadedKernel() = default;
  virtual Result<std::unique_ptr<KernelInstance>> instantiate(const InstanceDims& dims,
                                                              int threads) const = 0;
  // A call that decides the sizes of its results, or works on strings, sequences and optionals: for
  // kernels with the option "late", in host memory, row-major. Allocates. Inputs are in the spec's
  // order; gives as many values as the spec has outputs.
  virtual Result<std::vector<RunValue>> run_late(std::span<const RunValue* const> inputs,
                                                 Parallel* parallel) const;
};

inline Result<std::vector<RunValue>> LoadedKernel::run_late(std::span<const RunValue* const>,
                                                            Parallel*) const {
  return fail(ErrorCode::kUnimplemented, "the kernel needs sizes that are known before it runs");
}

class RunDevice {
 public:
  virtual ~RunDevice() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  // Whether its memory is plain host memory (cpu, reference).
  [[nodiscard]] virtual bool host_memory() const = 0;
  // True for a device that only a file describes: its times are modelled, never measured.
  [[nodiscard]] virtual bool simulated() const = 0;

  // `constants` are the bytes of the spec's constants, in order, alive as long as the kernel.
  virtual Result<std::unique_ptr<LoadedKernel>> load(
      const artefact::KernelSpec& spec, std::span<const std::span<const std::byte>> constants) = 0;

  virtual Result<DeviceBuffer> allocate(std::int64_t size_bytes) = 0;  // 64-byte aligned, zeroed
  virtual void release(DeviceBuffer buffer) = 0;
  // Copies between this device's memory and host memory; returns when it is done.
  virtual Status copy_from_host(std::byte* device_data, const std::byte* host_data,
                                std::int64_t size_bytes) = 0;
  virtual Status copy_to_host(std::byte* host_data, const std::byte* device_data,
                              std::int64_t size_bytes) = 0;
  virtual Status synchronize() = 0;
};

}  // namespace tessera::backends
