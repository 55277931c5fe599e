#pragma once

// What operators over sequences and optionals share.

#include <cstdint>
#include <string>

#include "base/error.h"
#include "ops/op.h"

namespace tessera::ops {

// ---- Inference
// -------------------------------------------------------------------------------------------------
// The element type of a sequence holds for every element: a size there that is no number says only
// that the size is open, and two elements may differ in it. Rank unknown: elements may differ in
// rank, or none is there yet.

// The element type of a sequence input. Errors: omitted, no sequence. An input without a type gives
// one without dtype and shape.
Result<ValueType> sequence_element(const InferContext& context, std::size_t index);

// The element type of a sequence that holds elements of both types, which have one dtype.
ValueType joined_element(const InferContext& context, const ValueType& a, const ValueType& b);

// The type of one element: each open size is a new symbol.
ValueType taken_element(const InferContext& context, ValueType element, std::string_view hint);

// ---- Kernels
// -------------------------------------------------------------------------------------------------

// "a sequence", "an optional", "a map", "fp32[2, 3]" or "none".
std::string found_kind(const RunValue* value);

// Input `index`, which must be a sequence. Errors name the operator.
Result<const RunValue*> sequence_input(const KernelContext& context, std::size_t index,
                                       std::string_view op);

// Input `index`, a value of any kind; a tensor that the caller keeps in memory of its own is
// copied.
Result<RunValue> owned_input(const KernelContext& context, std::size_t index);

// Gives a tensor to output 0.
Status give_tensor(KernelContext& context, const Tensor& tensor);
// Gives a value of any kind to output 0.
Status give_value(KernelContext& context, const RunValue& value);

// The element of an integer tensor of one element, counted from the front of a sequence where it is
// negative. Positions go from -count to count - 1 + beyond.
Result<std::size_t> checked_position(const TensorView& position, std::size_t count,
                                     std::int64_t beyond, std::string_view op);

}  // namespace tessera::ops
