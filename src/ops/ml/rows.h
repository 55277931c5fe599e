#pragma once

// What models over rows of features share.

#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "ops/schema_util.h"

namespace tessera::ops::ml {

inline constexpr DTypeSet kRowTypes =
    dtype_set({DType::kFp32, DType::kFp64, DType::kInt32, DType::kInt64});

// A vector is one row.
std::int64_t rows_of(const Dims& dims);
// The same where only the type of input 0 is known.
Dim row_dim(InferContext& context);

// Rows of exactly so many features: "SVMRegressor: expected rows of 3 features, found [4, 2]".
Status check_features(std::string_view op, std::size_t features, const Dims& dims);

}  // namespace tessera::ops::ml
