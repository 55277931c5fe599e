#pragma once

// The processors that this process may use.

#include <optional>
#include <string_view>
#include <vector>

namespace tessera {

// At least 1: those of the affinity mask, at most the quota of the control group (cpu.max, rounded
// up).
int usable_processors();

// Those of the affinity mask, in order; at least one.
std::vector<int> allowed_processors();

// The processor that the calling thread runs on; -1: not known.
int current_processor();

// Moves the calling thread to a processor, which it may leave again: its affinity mask stays what
// it is. False where the mask or the system forbids it.
bool move_to_processor(int processor);

// Moves the calling thread away from `taken` where it runs there: to the one that stands `number`
// places after the next one among the allowed ones, in a circle without `taken`. Where it moved to;
// nothing where it stays: it runs elsewhere, or no other is allowed.
std::optional<int> leave_processor(int taken, int number);

// The quota in a control group's cpu.max ("QUOTA PERIOD" in microseconds), in processors, rounded
// up. Nothing for "max", or what is no quota.
std::optional<int> quota_processors(std::string_view cpu_max);

}  // namespace tessera
