#include "import/types.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "io/onnx.pb.h"

namespace tessera::importer {
namespace {

// Upper estimates of what one size takes in memory.
constexpr std::uint64_t kSizeBytes = 64;
constexpr std::uint64_t kSymbolBytes = 300;    // beside its name: an expression, a row of the table
constexpr std::uint64_t kSymbolCopies = 3;     // of its name
constexpr std::uint64_t kReservedBytes = 100;  // a name that is kept free

bool is_untyped(const ValueType& type) {
  return type.is_tensor() && type.dtype == DType::kUndefined && !type.shape;
}

// Kind and dtype all the way down; an unknown dtype agrees with all.
bool same_kind(const ValueType& inferred, const ValueType& hint) {
  if (inferred.kind != hint.kind) return false;
  if (inferred.kind == ValueType::Kind::kMap && inferred.dtype != hint.dtype) return false;
  if (!inferred.is_tensor()) return same_kind(*inferred.element, *hint.element);
  return inferred.dtype == DType::kUndefined || inferred.dtype == hint.dtype;
}

}  // namespace

Status TypeReader::reserve_names(const onnx::TypeProto& type) {
  if (type.has_sequence_type()) return reserve_names(type.sequence_type().elem_type());
  if (type.has_optional_type()) return reserve_names(type.optional_type().elem_type());
  for (const auto& dim : type.tensor_type().shape().dim()) {
    if (!dim.has_dim_param() || !reserved_.insert(dim.dim_param()).second) continue;
    TESSERA_TRY(
        budget_.take(ImportBudget::Use::kSizes, kReservedBytes + dim.dim_param().size(), 0));
  }
  return {};
}

Status TypeReader::reserve_names(const onnx::GraphProto& graph) {
  for (const auto* list : {&graph.input(), &graph.output(), &graph.value_info()}) {
    for (const auto& value : *list) TESSERA_TRY(reserve_names(value.type()));
  }
  for (const auto& node : graph.node()) {
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) TESSERA_TRY(reserve_names(attribute.g()));
    }
  }
  return {};
}

void TypeReader::add_symbols(const Dim& dim) {
  std::set<std::string, std::less<>> names;
  dim.collect_symbols(names);
  for (const std::string& name : names) symbols_.emplace(name, SymbolRange{});
}

Status TypeReader::fix(const std::string& symbol, const Dim& size) {
  const auto [entry, is_new] = fixed_.emplace(symbol, size);
  if (is_new || entry->second == size) return {};
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("symbol '{}': given two sizes, {} and {}", symbol,
                          entry->second.to_string(), size.to_string()));
}

Status TypeReader::take_symbol(std::size_t name_size) {
  return budget_.take(ImportBudget::Use::kSizes, kSymbolBytes + kSymbolCopies * name_size,
                      /*count=*/0);
}

Result<Dim> TypeReader::named_size(const std::string& name) {
  if (name.empty() || name == kUnknownSize) {
    static const Dim unknown = Dim::symbol(std::string(kUnknownSize));
    return unknown;
  }
  const auto fixed = fixed_.find(name);
  if (fixed != fixed_.end()) return fixed->second;
  TESSERA_TRY(take_symbol(name.size()));
  symbols_.emplace(name, SymbolRange{});
  return Dim::symbol(name);
}

Result<Dim> TypeReader::fresh_size(std::string_view value_name, std::size_t axis) {
  TESSERA_TRY(take_symbol(value_name.size()));
  const std::string stem = fmt::format("{}_d{}", value_name, axis);
  std::string name = stem;
  for (int number = 2; symbols_.contains(name) || reserved_.contains(name); ++number)
    name = fmt::format("{}_{}", stem, number);
  symbols_.emplace(name, SymbolRange{});
  return Dim::symbol(name);
}

Result<ValueType> TypeReader::read_tensor_type(const onnx::TypeProto& type) {
  const auto& tensor = type.tensor_type();
  const int code = tensor.elem_type();
  if (code <= 0 || code >= kDTypeCount) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("expected a known element type, found type code {}{}", code,
                            code == 0 ? " (undefined)" : ""));
  }
  if (!tensor.has_shape()) return ValueType::tensor(static_cast<DType>(code), std::nullopt);
  const auto rank = static_cast<std::uint64_t>(tensor.shape().dim_size());
  TESSERA_TRY(budget_.take(ImportBudget::Use::kSizes, kSizeBytes * rank, rank));
  Shape shape;
  for (const auto& dim : tensor.shape().dim()) {
    if (dim.has_dim_value() && dim.dim_value() >= 0) {
      shape.emplace_back(dim.dim_value());
    } else {
      TESSERA_ASSIGN(Dim size, named_size(dim.dim_param()));
      shape.push_back(std::move(size));
    }
  }
  return ValueType::tensor(static_cast<DType>(code), std::move(shape));
}

// Keys are integers or strings; a value is one element, whatever rank the model gives it.
Result<ValueType> TypeReader::read_map_type(const onnx::TypeProto& type) {
  const int code = type.map_type().key_type();
  const DType key = code > 0 && code < kDTypeCount ? static_cast<DType>(code) : DType::kUndefined;
  if (!is_integer(key) && key != DType::kString)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("expected a map with keys of an integer type or strings, found {}",
                            to_string(key)));
  TESSERA_ASSIGN(const ValueType value, read_hint(type.map_type().value_type()));
  bool is_single = value.is_tensor();
  if (is_single && value.shape)
    for (const Dim& dim : *value.shape) is_single = is_single && dim == Dim(1);
  if (is_single) return ValueType::map(key, value.dtype);
  return fail(ErrorCode::kUnimplemented,
              fmt::format("expected a map to single elements, found one to {}", value.to_string()));
}

Result<ValueType> TypeReader::read_hint(const onnx::TypeProto& type) {
  if (type.has_tensor_type()) return read_tensor_type(type);
  if (type.has_sequence_type()) {
    TESSERA_ASSIGN(ValueType element, read_hint(type.sequence_type().elem_type()));
    return ValueType::sequence(std::move(element));
  }
  if (type.has_optional_type()) {
    TESSERA_ASSIGN(ValueType element, read_hint(type.optional_type().elem_type()));
    return ValueType::optional(std::move(element));
  }
  if (type.has_map_type()) return read_map_type(type);
  const bool is_other = type.value_case() != onnx::TypeProto::VALUE_NOT_SET;
  return fail(is_other ? ErrorCode::kUnimplemented : ErrorCode::kInvalidArgument,
              std::string("expected a tensor, sequence, optional or map type, found ") +
                  (is_other ? "a sparse tensor or opaque type" : "no type"));
}

Result<ValueType> TypeReader::complete(ValueType hint, std::string_view value_name) {
  if (!hint.is_tensor()) {
    TESSERA_ASSIGN(ValueType element, complete(*hint.element, value_name));
    return hint.with_element(std::move(element));
  }
  if (!hint.shape) return hint;
  for (std::size_t axis = 0; axis < hint.shape->size(); ++axis) {
    Dim& dim = (*hint.shape)[axis];
    if (dim.as_symbol() != kUnknownSize) continue;
    TESSERA_ASSIGN(dim, fresh_size(value_name, axis));
  }
  return hint;
}

Result<ValueType> TypeReader::read(const onnx::TypeProto& type, std::string_view value_name) {
  TESSERA_ASSIGN(ValueType hint, read_hint(type));
  return complete(std::move(hint), value_name);
}

Status apply_hint(ValueType& inferred, const ValueType& hint, std::string_view value_name,
                  const std::set<std::string, std::less<>>& fresh, TypeReader& reader) {
  if (is_untyped(inferred)) {
    TESSERA_ASSIGN(inferred, reader.complete(hint, value_name));
    return {};
  }
  if (!same_kind(inferred, hint)) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("value '{}': declared {}, inferred {}", value_name, hint.to_string(),
                            inferred.to_string()));
  }
  if (!inferred.is_tensor()) return {};
  inferred.dtype = hint.dtype;
  if (!hint.shape) return {};
  if (!inferred.shape) {
    TESSERA_ASSIGN(inferred.shape, reader.complete(hint, value_name).map([](ValueType&& complete) {
      return std::move(complete.shape);
    }));
    return {};
  }
  if (inferred.shape->size() != hint.shape->size()) return {};
  for (std::size_t axis = 0; axis < hint.shape->size(); ++axis) {
    const auto symbol = (*inferred.shape)[axis].as_symbol();
    const Dim& said = (*hint.shape)[axis];
    if (symbol && fresh.contains(*symbol) && said.as_symbol() != kUnknownSize)
      (*inferred.shape)[axis] = said;
  }
  return {};
}

Status check_declared(const ValueType& inferred, const ValueType& declared, std::string_view what) {
  if (is_untyped(inferred)) return {};
  bool agrees = same_kind(inferred, declared);
  if (agrees && inferred.is_tensor() && inferred.shape && declared.shape) {
    agrees = inferred.shape->size() == declared.shape->size();
    for (std::size_t axis = 0; agrees && axis < inferred.shape->size(); ++axis) {
      const auto found = (*inferred.shape)[axis].constant();
      const auto said = (*declared.shape)[axis].constant();
      agrees = !found || !said || *found == *said;
    }
  }
  if (agrees) return {};
  return fail(ErrorCode::kInvalidArgument, fmt::format("{}: declared {}, inferred {}", what,
                                                       declared.to_string(), inferred.to_string()));
}

}  // namespace tessera::importer
