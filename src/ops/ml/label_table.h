#pragma once

// Elements replaced by what a table says.

#include <string_view>

#include "base/error.h"
#include "base/tensor.h"
#include "ops/schema_util.h"

namespace tessera::ops::ml {

inline constexpr DTypeSet kLabelTypes = dtype_set(
    {DType::kString, DType::kInt64, DType::kFp32, DType::kFp64, DType::kInt32, DType::kInt16});

// As many keys as values, both of kLabelTypes; `fallback` is one element of the values' dtype.
struct LabelTable {
  Tensor keys, values, fallback;
};

// Output 0: for each element of input 0 the value of its key, or the fallback. The last of equal
// keys counts. Error: elements of another dtype than the keys.
Status look_up(KernelContext& context, const LabelTable& table, std::string_view op);

}  // namespace tessera::ops::ml
