#include "ir/refine_type.h"

#include <algorithm>

#include "base/error.h"

namespace tessera::ir {
namespace {

bool is_unknown(const ValueType& type) {
  return type.is_tensor() && type.dtype == DType::kUndefined && !type.shape;
}

// The two sizes cannot be equal, whatever the symbols are.
bool contradict(const Dim& a, const Dim& b, const SymbolTable& symbols) {
  const SymbolRange range_a = a.range(symbols);
  const SymbolRange range_b = b.range(symbols);
  return range_a.max < range_b.min || range_b.max < range_a.min;
}

}  // namespace

bool holds_fresh(const Dim& dim, const IsFresh& is_fresh) {
  std::set<std::string, std::less<>> names;
  dim.collect_symbols(names);
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return is_fresh(name); });
}

Result<ValueType> refine_type(const ValueType& declared, const ValueType& inferred,
                              const SymbolTable& symbols, const IsFresh& is_fresh) {
  if (is_unknown(declared)) return inferred;
  if (is_unknown(inferred)) return declared;
  const auto contradiction = [&] {
    return fail(ErrorCode::kInvalidArgument,
                "declared " + declared.to_string() + ", inferred " + inferred.to_string());
  };
  if (declared.kind != inferred.kind) return contradiction();
  if (!declared.is_tensor()) {
    if (declared.dtype != inferred.dtype) return contradiction();
    auto element = refine_type(*declared.element, *inferred.element, symbols, is_fresh);
    if (!element) return contradiction();
    return inferred.with_element(*std::move(element));
  }
  ValueType refined = inferred;
  if (refined.dtype == DType::kUndefined) refined.dtype = declared.dtype;
  if (declared.dtype != DType::kUndefined && declared.dtype != refined.dtype)
    return contradiction();
  if (!refined.shape) refined.shape = declared.shape;
  if (!declared.shape) return refined;
  if (declared.shape->size() != refined.shape->size()) return contradiction();
  for (std::size_t i = 0; i < declared.shape->size(); ++i) {
    const Dim& said = (*declared.shape)[i];
    Dim& found = (*refined.shape)[i];
    if (holds_fresh(found, is_fresh)) {
      found = said;
    } else if (contradict(said, found, symbols)) {
      return contradiction();
    }
  }
  return refined;
}

}  // namespace tessera::ir
