#pragma once

// Connected components of a network.

#include <cstdint>
#include <vector>

#include "solve/network.h"

namespace tessera::solve {

struct Component {
  Network network;                  // compact: all live, constant 0, the whole network's top
  std::vector<std::uint32_t> vars;  // the whole network's variable for each of its own
};

// The components of the live variables, smallest first (ties: by lowest variable). Variables keep
// their order. Tables are shared with the network.
std::vector<Component> split(const Network& network);

}  // namespace tessera::solve
