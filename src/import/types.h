#pragma once

// Types of ONNX values as types of the IR; dimension names become symbols of the module.

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/shape.h"
#include "import/budget.h"

namespace onnx {
class GraphProto;
class TypeProto;
}  // namespace onnx

namespace tessera::importer {

class TypeReader {
 public:
  // Symbols go to `symbols`, what sizes take comes out of the budget; both outlive the reader.
  TypeReader(SymbolTable& symbols, ImportBudget& budget) : symbols_(symbols), budget_(budget) {}

  // Keeps the dimension names of a graph and its bodies free of names that are made up. Errors: the
  // budget.
  Status reserve_names(const onnx::GraphProto& graph);

  // From now on `size` stands wherever a type names the symbol. An error where it has another size
  // already.
  Status fix(const std::string& symbol, const Dim& size);

  // A complete type: a size without a name (or a negative one, as some exporters write) gets a
  // symbol named after value and axis. Errors: no type, a kind that the IR does not have (sparse
  // tensor, a map to anything but single elements), an unknown dtype.
  Result<ValueType> read(const onnx::TypeProto& type, std::string_view value_name);

  // What a model says of a value that inference will type anyway; a size without a name is
  // kUnknownSize.
  Result<ValueType> read_hint(const onnx::TypeProto& type);

  // A hint with a new symbol for each unknown size. Errors: the budget.
  Result<ValueType> complete(ValueType hint, std::string_view value_name);

  // A dim given from outside: its symbols enter the table.
  void add_symbols(const Dim& dim);

 private:
  Result<ValueType> read_tensor_type(const onnx::TypeProto& type);
  Result<ValueType> read_map_type(const onnx::TypeProto& type);
  Status reserve_names(const onnx::TypeProto& type);
  Status take_symbol(std::size_t name_size);
  Result<Dim> named_size(const std::string& name);
  Result<Dim> fresh_size(std::string_view value_name, std::size_t axis);

  SymbolTable& symbols_;
  ImportBudget& budget_;
  std::set<std::string, std::less<>> reserved_;
  std::map<std::string, Dim, std::less<>> fixed_;
};

// The name that a dimension without one bears in a hint; exporters write it too.
inline constexpr std::string_view kUnknownSize = "?";

// Joins a hint into what inference found, which wins: the hint gives the rank where none was found,
// and sizes for the symbols in `fresh`, which inference made up. Errors: another kind or dtype than
// inferred. Rank and sizes are checked by check_declared(), once the whole graph is typed.
Status apply_hint(ValueType& inferred, const ValueType& hint, std::string_view value_name,
                  const std::set<std::string, std::less<>>& fresh, TypeReader& reader);

// An error where kind, dtype, rank or a constant size differs from what was inferred.
Status check_declared(const ValueType& inferred, const ValueType& declared, std::string_view what);

}  // namespace tessera::importer
