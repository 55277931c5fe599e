#pragma once

// Whether a profile takes a node, and why not.

#include <string>

#include "backends/simulated/compile/profile.h"
#include "ir/cover.h"

namespace tessera::backends::simulated {

// Empty where the device takes the node computed in `dtype` (that of its first float operand, or of
// its first output); else the reason: operator, attribute, what was found, what is supported.
std::string refusal(const Profile& profile, const ir::WorkItem& item, const ir::Node& node,
                    DType dtype);

}  // namespace tessera::backends::simulated
