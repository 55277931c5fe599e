#pragma once

// How many threads take part while others use the machine too. On a core that is taken, a thread
// stands still for milliseconds in the middle of its chunk, and everyone waits for it: one thread
// less is then faster.

#include <cstdint>

namespace tessera::runtime {

// What happened between two looks at the machine.
struct MachineUse {
  std::int64_t wall_ns = 0;
  std::int64_t caller_idle_ns = 0;  // of that, the calling thread had nothing to do
  std::int64_t waited_ns = 0;       // our active threads, together: ready to run, without a core
  std::int64_t idle_ns = 0;         // the cores that we may use, together
};

class ThreadGovernor {
 public:
  explicit ThreadGovernor(int threads) : all_(threads), active_(threads) {}

  [[nodiscard]] int active() const { return active_; }

  // One thread less where the active ones waited for more than kWaitedShare of kTakenNs of our
  // time, which is longer than what a passing task takes; one more where kFreeCores of the cores
  // had nothing to do for some time. A raise that does not last makes the next one come later.
  void observe(const MachineUse& use);

  static constexpr double kWaitedShare = 0.15;
  static constexpr std::int64_t kTakenNs = 12'000'000;
  static constexpr double kFreeCores = 0.7;
  static constexpr std::int64_t kFreeNs = 25'000'000;      // for so long, at first
  static constexpr std::int64_t kMaxFreeNs = 800'000'000;  // after raises that did not last
  static constexpr std::int64_t kLastsNs = 200'000'000;    // a raise that has held for so long

 private:
  void lower();
  void raise();

  int all_;
  int active_;
  std::int64_t needed_free_ns_ = kFreeNs;
  std::int64_t since_raise_ns_ = kLastsNs;
  std::int64_t busy_ns_ = 0;  // of kTakenNs
  std::int64_t waited_ns_ = 0;
  MachineUse seen_;  // since the last decision, or the start of this window of needed_free_ns_
};

}  // namespace tessera::runtime
