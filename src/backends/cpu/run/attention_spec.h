#pragma once

// An Attention read from a spec, with the transpose of its keys that may stand before it.

#include "backends/cpu/run/spec_util.h"

namespace tessera::backends::cpu {

// How the operand that holds the keys lies in memory.
enum class KeyOrder : std::uint8_t {
  kHeadsBeforeRows,  // as the operator reads them
  kTurned,           // [batch, heads, size, length]
  kHeadsBehindRows,  // [batch, length, heads, size]
};

// Errors: other steps before the operator.
Result<KeyOrder> key_order(const artefact::KernelSpec& spec);

// Input `index` of the operator, from outside: the keys behind their transpose.
std::int32_t attention_operand(const artefact::KernelSpec& spec, std::size_t index);

// The shape of the keys as the operator reads them.
Shape in_operator_order(const Shape& keys, KeyOrder order);

}  // namespace tessera::backends::cpu
