#pragma once

// What becomes of the dtypes of an item when its fp32 operands are held in a smaller float.

#include <map>

#include "base/error.h"
#include "ir/cover.h"

namespace tessera::backends::simulated {

// The dtype of each value that the item reads or writes, with fp32 computed in `precision`. An
// operand goes along where every node that reads it takes it in the type of its first operand (the
// scales of a Resize, for one, stay what they are); results are what the operators then give.
// Errors: an operator that does not take `precision`, named.
Result<std::map<ir::ValueId, DType>> lowered_dtypes(const ir::WorkItem& item, DType precision);

}  // namespace tessera::backends::simulated
