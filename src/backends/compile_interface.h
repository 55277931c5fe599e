#pragma once

// The compile-time contract of a backend: what it can run and how (candidates, or a refusal with
// its reason), and the compiled kernel. Its run-time half is run_interface.h.
//
// Ownership: devices are owned by the caller of make_compile_device; a WorkItem points into a
// module that outlives the call. Threads: one device is used by one thread at a time. Errors:
// refusals are answers, not errors; Result errors are failures.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "artefact/read/program_image.h"
#include "base/error.h"
#include "base/layout.h"
#include "ir/cover.h"

namespace tessera::backends {

// What one level of caches holds and gives, all threads together.
struct CacheRates {
  std::string name;  // "L1"
  std::int64_t size_bytes = 0;
  double copy_gb_per_s = 0;  // bytes read plus bytes written
  double read_gb_per_s = 0;
  friend bool operator==(const CacheRates&, const CacheRates&) = default;
};

// Rates of a device, measured or from its profile.
struct DeviceRates {
  std::map<DType, double> gflops;  // peak arithmetic per dtype; others at `default_gflops`
  double default_gflops = 100;
  double memory_gb_per_s = 10;  // a copy: bytes read plus bytes written
  double read_gb_per_s = 0;     // of reading alone; 0: not known
  // The smallest first; none: everything at the memory's rate.
  std::vector<CacheRates> caches = {};
  double hand_over_us = 0;   // of every kernel: until all threads are at it, while they spin
  double wake_up_us = 0;     // the same after a pause, once they sleep; in no price
  double launch_us = 20;     // starting a region on its queue
  double sync_us = 20;       // waiting for it
  double link_gb_per_s = 8;  // to and from host memory
  double link_latency_us = 10;
  bool unified = false;           // shares host memory: a crossing copies nothing
  std::int64_t memory_bytes = 0;  // 0: no limit
};

struct MeasuredRates {
  DeviceRates rates;
  std::map<std::string, double> spreads;  // by rate, as shares of it: between the quartiles
  bool busy = false;                      // taken while others used a core
};

struct DeviceInfo {
  std::string name;     // "cpu", "npu"
  std::string backend;  // "cpu", "reference", "simulated"
  std::string memory;   // memory space: "host" for cpu and reference, else the device's own name
  std::string profile;  // JSON of a simulated one
  bool simulated = false;
  bool rates_measured = false;
  // Correct, never fast: its kernels are timed only where no other device takes the item.
  bool last_resort = false;
  DeviceRates rates;
  std::optional<std::int64_t> max_partitions;
};

// A tensor's order in memory and element type. With a memory space it is a form.
struct TensorForm {
  Layout layout;
  DType dtype = DType::kUndefined;
  friend auto operator<=>(const TensorForm&, const TensorForm&) = default;
};

// What the user permits, as far as candidates depend on it.
struct OfferOptions {
  int threads = 1;
  std::vector<DType> precisions = {DType::kFp32};  // in which fp32 operations may be computed
  bool exact = false;                              // no algorithm with a wider error bound
};

// One way to run a work item on a device.
struct Candidate {
  std::string kernel;  // "onednn.conv"
  std::uint32_t kernel_version = 1;
  // For each WorkItem::inputs: the form that it must come in; nothing where it is a constant that
  // the kernel bakes in.
  std::vector<std::optional<TensorForm>> inputs;
  std::vector<TensorForm> outputs;  // for each WorkItem::outputs
  std::map<std::string, std::int64_t> options;
  std::int64_t packed_bytes = 0;  // baked-in constants
  std::int64_t scratch_bytes = 0;
  double flops = 0;  // of the call at the price point
  double bytes_moved = 0;
  DType compute_dtype = DType::kFp32;
  double efficiency =
      1;  // share of the peak arithmetic that kernels of this kind reach, where nothing is measured
};

struct Offers {
  std::vector<Candidate> candidates;  // empty: refused
  std::string refusal;                // why: attribute, expected, found; never just "unsupported"
};

// A kernel spec with the tensors of its constants (spec.constant_segments is filled when the
// artefact is emitted).
struct CompiledKernel {
  artefact::KernelSpec spec;
  std::vector<Tensor> constants;
};

class CompileDevice {
 public:
  virtual ~CompileDevice() = default;
  [[nodiscard]] virtual const DeviceInfo& info() const = 0;

  // Candidates for a node or a cover, at concrete sizes. Deterministic, in order of preference.
  virtual Offers offers(const ir::WorkItem& item, const SymbolBindings& point,
                        const OfferOptions& options) = 0;

  // Compiles a candidate that offers() gave for the same item. Packs weights.
  virtual Result<CompiledKernel> compile(const ir::WorkItem& item, const Candidate& candidate) = 0;

  // A kernel that turns a tensor from one form into another within this device's memory, or a
  // refusal.
  virtual Offers conversion(const TensorForm& from, const TensorForm& to, const Shape& shape,
                            const SymbolBindings& point) = 0;
  virtual Result<CompiledKernel> compile_conversion(const TensorForm& from, const TensorForm& to,
                                                    const Shape& shape,
                                                    const Candidate& candidate) = 0;

  // What price keys and the manifest must name: processor model and ISA, library versions. Sorted
  // name/value pairs.
  [[nodiscard]] virtual std::map<std::string, std::string> identity() const = 0;
};

}  // namespace tessera::backends
