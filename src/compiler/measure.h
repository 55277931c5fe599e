#pragma once

// Measures kernels on this machine: compiles candidates, loads them, runs them on drawn data.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "backends/run_interface.h"
#include "compiler/surroundings.h"
#include "compiler/timed_kernel.h"
#include "plan/price.h"

namespace tessera::compiler {

// Protocol: the candidates for one piece of work are timed in turn with one another, in the rounds
// of sampling.h, each run among the Surroundings that a run of the model gives it; the entry is the
// median of the samples, with the distance of the quartiles. Samples taken while the pool goes
// without a thread, since others use a core, do not count; after 100 ms of them they are all there
// is, and the entry says so. Inputs are drawn from a fixed seed in [-1, 1]. Same threads as the
// plan. One thread at a time.
class Measurer {
 public:
  // `budget_s`: once so much time was spent here, every further request is declined. `progress` is
  // told the share of the budget that is used.
  Measurer(plan::Target& target, int threads, plan::CacheState caches, double budget_s,
           std::stop_token cancel, std::function<void(double)> progress);
  ~Measurer();

  // What the runs of nodes that decide sizes read, by value; where nothing is known of one it is
  // drawn. Outlives this.
  void set_operands(const std::map<ir::ValueId, RunValue>& operands) { operands_ = &operands; }

  // One entry for each request. Errors: budget used up, cancelled, a kernel that does not compile
  // or run.
  std::vector<Result<plan::CostEntry>> measure(std::span<const plan::PriceRequest> requests,
                                               const SymbolBindings& point);

  [[nodiscard]] std::size_t measured() const { return measured_; }
  [[nodiscard]] double spent_s() const { return spent_s_; }
  [[nodiscard]] double budget_s() const { return budget_s_; }

 private:
  struct Candidate;  // a kernel ready to run, with what it needs
  Status check_budget() const;
  Result<backends::RunDevice*> run_device(std::uint32_t device);
  Result<std::unique_ptr<Candidate>> prepare(const plan::PriceRequest& request,
                                             const SymbolBindings& point);
  Result<TimedCall> call_of(const plan::PriceRequest& request, const artefact::KernelSpec& spec,
                            const SymbolBindings& point) const;
  Result<RunValue> operand(const ir::WorkItem& item, ir::ValueId id,
                           const SymbolBindings& point) const;

  plan::Target& target_;
  const std::map<ir::ValueId, RunValue>* operands_ = nullptr;
  Surroundings surroundings_;
  double budget_s_;
  std::stop_token cancel_;
  std::function<void(double)> progress_;
  double spent_s_ = 0;
  std::size_t measured_ = 0;
  std::chrono::steady_clock::time_point begin_;  // of the measuring that goes on
  std::map<std::uint32_t, std::unique_ptr<backends::RunDevice>> devices_;
};

}  // namespace tessera::compiler
