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

namespace tessera::compiler {

class TimedKernel {
 public:
  // Runs the kernel once or twice, to see how often it must run to be timed. `device` loaded
  // `kernel` from `spec` with `constants`; all of them but the spec, and the surroundings, must
  // outlive what is made. Errors: a size that `point` does not give, memory, a kernel that does not
  // run.
  static Result<std::unique_ptr<TimedKernel>> create(
      backends::RunDevice& device, const backends::LoadedKernel& kernel,
      const artefact::KernelSpec& spec, std::vector<std::span<const std::byte>> constants,
      const SymbolBindings& point, Surroundings& surroundings);
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
  TimedKernel(backends::RunDevice& device, std::vector<std::span<const std::byte>> constants,
              Surroundings& surroundings)
      : device_(device), constants_(std::move(constants)), surroundings_(surroundings) {}
  Result<std::byte*> allocate(const artefact::TensorDecl& decl, const Dims& dims);
  Status make_ready(const backends::LoadedKernel& kernel, const artefact::KernelSpec& spec,
                    const SymbolBindings& point);
  Status warm_up();
  Status execute();
  double timed_run();
  bool keep(double total_us, int runs, std::vector<double>& samples);

  backends::RunDevice& device_;
  std::vector<std::span<const std::byte>> constants_;
  Surroundings& surroundings_;
  std::vector<backends::DeviceBuffer> operands_;  // inputs, then outputs
  std::vector<const std::byte*> inputs_;
  std::vector<std::byte*> outputs_;
  std::unique_ptr<backends::KernelInstance> instance_;
  backends::DeviceBuffer scratch_;
  SamplePlan plan_;
  KernelSamples samples_;
  double prepare_us_ = 0;
  double busy_total_us_ = 0;
  std::optional<Error> failed_;
};

}  // namespace tessera::compiler
