#pragma once

// Measures kernels on this machine: compiles a candidate, loads it, runs it on drawn data.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "backends/run_interface.h"
#include "plan/price.h"
#include "runtime/thread_pool.h"

namespace tessera::compiler {

// Protocol: one run to warm up, then runs until at least 5 samples and 3 ms, at most 25 samples;
// the entry is the median and the distance of the quartiles. Samples taken while the pool goes
// without a thread, since others use a core, do not count; after 100 ms of them they are all there
// is, and the entry says so. Inputs are drawn from a fixed seed in [-1, 1]. Same threads as the
// plan. One thread at a time.
class Measurer {
 public:
  // `budget_s`: after that many seconds every further request is declined.
  Measurer(plan::Target& target, int threads, double budget_s, std::stop_token cancel,
           std::function<void(double)> progress);

  // Errors: budget used up, cancelled, a kernel that does not compile or run.
  Result<plan::CostEntry> measure(const plan::PriceRequest& request, const SymbolBindings& point);

 private:
  Result<backends::RunDevice*> run_device(std::uint32_t device);
  Result<plan::CostEntry> time_kernel(backends::RunDevice& device,
                                      const backends::CompiledKernel& kernel,
                                      const SymbolBindings& point);

  Result<std::vector<double>> sample(backends::KernelInstance& instance,
                                     const backends::ExecuteArgs& args, bool& busy);

  plan::Target& target_;
  int threads_;
  runtime::ThreadPool pool_;
  double budget_s_;
  std::stop_token cancel_;
  std::function<void(double)> progress_;
  std::chrono::steady_clock::time_point start_;
  std::map<std::uint32_t, std::unique_ptr<backends::RunDevice>> devices_;
};

}  // namespace tessera::compiler
