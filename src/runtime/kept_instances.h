#pragma once

// Instances of one kernel for the sizes that calls came with: for calls whose sizes only the run
// knows.

#include <list>
#include <memory>
#include <utility>

#include "backends/run_interface.h"

namespace tessera::runtime {

inline constexpr std::size_t kInstancesKept = 4;  // least recently used ones go

class KeptInstances {
 public:
  // The instance for `dims`, made where it is not there yet; it stays at least until the next call.
  // Errors: see LoadedKernel::instantiate.
  Result<backends::KernelInstance*> find(const backends::LoadedKernel& kernel,
                                         backends::InstanceDims dims, int threads);

 private:
  // Most recently used first.
  std::list<std::pair<backends::InstanceDims, std::unique_ptr<backends::KernelInstance>>> kept_;
};

}  // namespace tessera::runtime
