#pragma once

// One kernel on drawn data, ready to be timed.

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "backends/run_interface.h"
#include "base/dim_expr.h"
#include "compiler/sampling.h"
#include "compiler/surroundings.h"
#include "runtime/kept_instances.h"

namespace tessera::compiler {

// What a kernel is called with.
struct TimedCall {
  backends::InstanceDims dims;
  // Of a kernel that decides the sizes of its results (its spec's option "late"), which are not in
  // `dims` then: what it reads, each with storage of its own.
  std::vector<RunValue> operands;
  // The call makes memory for row-major results and looks for its instance, as the runtime does
  // where a result's size is not known before a run.
  bool is_loose = false;
};

// For sizes that are known before a run. Errors: a size that `point` does not give.
Result<TimedCall> call_at(const artefact::KernelSpec& spec, const SymbolBindings& point);

class TimedKernel {
 public:
  // Runs the kernel once or twice, to see how often it must run to be timed. `device` loaded
  // `kernel` from `spec` with `constants`; all of them but the spec, and the surroundings, must
  // outlive what is made. Errors: memory, a kernel that does not run.
  static Result<std::unique_ptr<TimedKernel>> create(
      backends::RunDevice& device, const backends::LoadedKernel& kernel,
      const artefact::KernelSpec& spec, std::vector<std::span<const std::byte>> constants,
      TimedCall call, Surroundings& surroundings);
  ~TimedKernel();
  TimedKernel(const TimedKernel&) = delete;
  TimedKernel& operator=(const TimedKernel&) = delete;

  [[nodiscard]] const SamplePlan& plan() const { return plan_; }
  [[nodiscard]] std::int64_t operand_bytes() const;
  // Nothing more is to be had from it: it failed, or others took a core for too long.
  [[nodiscard]] bool is_done() const;

  void take_cold_sample();
  void take_samples();  // those of one round

  // Of the samples so far, which it takes away. Errors: a run that failed.
  Result<plan::CostEntry> entry();

 private:
  TimedKernel(backends::RunDevice& device, const backends::LoadedKernel& kernel,
              std::vector<std::span<const std::byte>> constants, TimedCall call,
              Surroundings& surroundings)
      : device_(device),
        kernel_(kernel),
        constants_(std::move(constants)),
        call_(std::move(call)),
        surroundings_(surroundings) {}
  Result<std::byte*> allocate(const artefact::TensorDecl& decl, const Dims& dims);
  Status make_ready(const artefact::KernelSpec& spec);
  void make_late();
  Status warm_up();
  Status execute();
  Status execute_loose();
  Status execute_late();
  double timed_run();
  bool keep(double total_us, int runs, std::vector<double>& samples);

  backends::RunDevice& device_;
  const backends::LoadedKernel& kernel_;
  std::vector<std::span<const std::byte>> constants_;
  TimedCall call_;
  Surroundings& surroundings_;
  std::vector<backends::DeviceBuffer> operands_;  // inputs, then outputs: what is handed over
  std::vector<backends::DeviceBuffer> owned_;     // of them, what this has from the device
  std::vector<const std::byte*> inputs_;
  std::vector<std::byte*> outputs_;
  std::unique_ptr<backends::KernelInstance> instance_;  // null where the call is loose or late
  runtime::KeptInstances kept_;
  std::vector<std::optional<DType>> made_dtypes_;  // loose: of outputs that each call makes
  std::vector<RunValue> made_;                     // by the last loose or late call
  bool is_late_ = false;
  backends::DeviceBuffer scratch_;
  SamplePlan plan_;
  KernelSamples samples_;
  double prepare_us_ = 0;
  double busy_total_us_ = 0;
  std::optional<Error> failed_;
};

}  // namespace tessera::compiler
