#include "runtime/kept_instances.h"

#include <algorithm>

namespace tessera::runtime {

Result<backends::KernelInstance*> KeptInstances::find(const backends::LoadedKernel& kernel,
                                                      backends::InstanceDims dims, int threads) {
  const auto found = std::ranges::find_if(kept_, [&](const auto& entry) {
    return entry.first.inputs == dims.inputs && entry.first.outputs == dims.outputs;
  });
  if (found != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, found);
  } else {
    TESSERA_ASSIGN(auto made, kernel.instantiate(dims, threads));
    kept_.emplace_front(std::move(dims), std::move(made));
    if (kept_.size() > kInstancesKept) kept_.pop_back();
  }
  return kept_.front().second.get();
}

}  // namespace tessera::runtime
