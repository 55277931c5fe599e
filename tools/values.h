#pragma once

// Values of any kind beside their names, and the files and lines that show them.

#include <string>
#include <utility>
#include <vector>

#include "base/run_value.h"
#include "io/npz.h"

namespace tessera::tools {

using NamedValues = std::vector<std::pair<std::string, RunValue>>;

// What files of tensors hold of a value: element 2 of a sequence 's' as 's.2', a map 'm' as
// 'm.keys' and 'm.values', what an optional 'o' holds as 'o.0'.
void append_tensors(const std::string& name, const RunValue& value, io::NamedTensors& into);
io::NamedTensors tensors_of(const NamedValues& values);

// "fp32[2x4]", "a sequence of 2", "a map of 3", "an optional of 0".
std::string describe(const RunValue& value);

}  // namespace tessera::tools
