#pragma once

// Elements of constants in the text form of the IR. Internal to ir/.

#include <string>

#include "base/tensor.h"
#include "ir/text_lexer.h"

namespace tessera::ir {

// "[1, 2.5, 0x7fc00000]", row-major, flat: floats as the shortest decimal that reads back to the
// same bits, or as bits where they are not finite; 8- and 4-bit floats always as bits; complex
// numbers as two elements; strings in quotes.
std::string print_elements(const TensorView& view);

// Reads them back. Errors: as many elements as `dims` say are not there, or one is not of the
// dtype.
Result<Tensor> parse_elements(Lexer& lexer, DType dtype, Dims dims);

// A float of an attribute: always with a '.', an exponent or "0x", so that it differs from an int.
std::string print_float(float value);
std::string print_double(double value);  // reads back through Lexer::expect_double

// Reads "0.5" or "0x7fc00000".
Result<float> parse_float(Lexer& lexer);

}  // namespace tessera::ir
