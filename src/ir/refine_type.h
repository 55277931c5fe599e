#pragma once

// Joins what a model declares of a type with what inference finds.

#include <functional>

#include "ir/ir.h"

namespace tessera::ir {

// True for symbols that inference made up just now for a size that only the data decides.
using IsFresh = std::function<bool(std::string_view symbol)>;

// `inferred` wherever it says something, `declared` elsewhere: an inferred size holds for every
// input, a declared one may be what the exporter saw once. A size over fresh symbols says nothing.
// An error where the two cannot both hold: another kind, dtype or rank, or a constant outside of
// what the expression can take.
Result<ValueType> refine_type(const ValueType& declared, const ValueType& inferred,
                              const SymbolTable& symbols, const IsFresh& is_fresh);

// Whether an expression holds a fresh symbol.
bool holds_fresh(const Dim& dim, const IsFresh& is_fresh);

}  // namespace tessera::ir
