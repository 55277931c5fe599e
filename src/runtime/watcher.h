#pragma once

// Looks at a run from outside: the sizes and contents that each instruction finds.

#include <cstddef>

#include "base/error.h"

namespace tessera::runtime {

class Frame;

// Called on the thread that runs. The frame is to be looked at only during the call.
class Watcher {
 public:
  virtual ~Watcher() = default;
  // `instruction` of the frame's method has its operands. An error ends the run.
  virtual Status before(const Frame& frame, std::size_t instruction) = 0;
  // It has its results too.
  virtual void after(const Frame& frame, std::size_t instruction) = 0;
  // Whether bodies run that this run has no use for: the branch that an If does not take, and once
  // the body of a Loop that has no iteration. What fails there is ignored.
  [[nodiscard]] virtual bool wants_all_bodies() const = 0;
};

}  // namespace tessera::runtime
