#include "runtime/thread_governor.h"

#include <algorithm>

namespace tessera::runtime {
namespace {

double share(std::int64_t part_ns, std::int64_t wall_ns) {
  return static_cast<double>(part_ns) / static_cast<double>(std::max<std::int64_t>(wall_ns, 1));
}

}  // namespace

void ThreadGovernor::observe(const MachineUse& use) {
  since_raise_ns_ = std::min(since_raise_ns_ + use.wall_ns, kLastsNs);
  busy_ns_ += use.wall_ns - use.caller_idle_ns;
  waited_ns_ += use.waited_ns;
  if (busy_ns_ >= kTakenNs) {
    const bool taken = share(waited_ns_, busy_ns_) > kWaitedShare;
    busy_ns_ = waited_ns_ = 0;
    if (taken && active_ > 1) return lower();
  }
  if (active_ == all_) return;
  seen_.wall_ns += use.wall_ns;
  seen_.idle_ns += use.idle_ns - use.caller_idle_ns;
  if (seen_.wall_ns < needed_free_ns_) return;
  if (share(seen_.idle_ns, seen_.wall_ns) >= kFreeCores) return raise();
  seen_ = {};
}

void ThreadGovernor::lower() {
  needed_free_ns_ =
      since_raise_ns_ < kLastsNs ? std::min(2 * needed_free_ns_, kMaxFreeNs) : kFreeNs;
  --active_;
  seen_ = {};
}

void ThreadGovernor::raise() {
  ++active_;
  since_raise_ns_ = 0;
  busy_ns_ = waited_ns_ = 0;
  seen_ = {};
}

}  // namespace tessera::runtime
