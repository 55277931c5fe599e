#pragma once

// The operators that every backend is held to, as small graphs in the text form of the IR.

#include <string>
#include <vector>

namespace tessera::testing {

struct OpCase {
  std::string name;        // of the operator, with what is special behind a '/'
  std::string statements;  // inputs, constants, nodes, outputs; the symbol "n" is 3 when it runs
};

// Sorted by name, each name once.
const std::vector<OpCase>& op_cases();

// A backend that refuses a case, and the reason that it must give (a part of it).
struct Exclusion {
  std::string device;
  std::string op_case;
  std::string reason;
};

const std::vector<Exclusion>& exclusions();

}  // namespace tessera::testing
