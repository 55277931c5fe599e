#pragma once

// Pieces of the text form of the IR from which cases are put together.

#include <string>
#include <vector>

#include "base/dims.h"
#include "conformance/cases.h"

namespace tessera::testing {

std::string dims_text(const Dims& dims);
// "const %w : fp32[2, 3] dense [...]": multiples of 1/8 in [low / 8, 2].
std::string constant(const std::string& name, const Dims& dims, int low_eighths = -16,
                     const std::string& dtype = "fp32");
// Whole numbers, int64 unless said otherwise.
std::string ints(const std::string& name, const std::vector<std::int64_t>& values,
                 const std::string& dtype = "int64");
std::string scalar(const std::string& name, const std::string& dtype, const std::string& value);

// Cases by file.
void add_layer_cases(std::vector<OpCase>& cases);      // cases_layers.cpp
void add_dtype_cases(std::vector<OpCase>& cases);      // cases_dtypes.cpp
void add_attribute_cases(std::vector<OpCase>& cases);  // cases_attributes.cpp
void add_rare_cases(std::vector<OpCase>& cases);       // cases_rare.cpp

}  // namespace tessera::testing
