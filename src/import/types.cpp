#include "import/types.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "io/onnx.pb.h"

namespace tessera::importer {
namespace {

void collect_names(const onnx::TypeProto& type, std::set<std::string, std::less<>>& into) {
  if (type.has_sequence_type()) return collect_names(type.sequence_type().elem_type(), into);
  if (type.has_optional_type()) return collect_names(type.optional_type().elem_type(), into);
  for (const auto& dim : type.tensor_type().shape().dim()) {
    if (dim.has_dim_param()) into.insert(dim.dim_param());
  }
}

// Kind and dtype all the way down; an unknown dtype agrees with all.
bool same_kind(const ValueType& inferred, const ValueType& hint) {
  if (inferred.kind != hint.kind) return false;
  if (inferred.kind == ValueType::Kind::kMap && inferred.dtype != hint.dtype) return false;
  if (!inferred.is_tensor()) return same_kind(*inferred.element, *hint.element);
  return inferred.dtype == DType::kUndefined || inferred.dtype == hint.dtype;
}

}  // namespace

void TypeReader::reserve_names(const onnx::GraphProto& graph) {
  for (const auto* list : {&graph.input(), &graph.output(), &graph.value_info()}) {
    for (const auto& value : *list) collect_names(value.type(), reserved_);
  }
  for (const auto& node : graph.node()) {
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) reserve_names(attribute.g());
    }
  }
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

Dim TypeReader::named_size(const std::string& name) {
  if (name.empty() || name == kUnknownSize) return Dim::symbol(std::string(kUnknownSize));
  const auto fixed = fixed_.find(name);
  if (fixed != fixed_.end()) return fixed->second;
  symbols_.emplace(name, SymbolRange{});
  return Dim::symbol(name);
}

Dim TypeReader::fresh_size(std::string_view value_name, std::size_t axis) {
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
  Shape shape;
  for (const auto& dim : tensor.shape().dim()) {
    const bool is_number = dim.has_dim_value() && dim.dim_value() >= 0;
    shape.push_back(is_number ? Dim(dim.dim_value()) : named_size(dim.dim_param()));
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

ValueType TypeReader::complete(ValueType hint, std::string_view value_name) {
  if (!hint.is_tensor()) {
    return hint.with_element(complete(*hint.element, value_name));
  }
  if (!hint.shape) return hint;
  for (std::size_t axis = 0; axis < hint.shape->size(); ++axis) {
    Dim& dim = (*hint.shape)[axis];
    if (dim.as_symbol() == kUnknownSize) dim = fresh_size(value_name, axis);
  }
  return hint;
}

Result<ValueType> TypeReader::read(const onnx::TypeProto& type, std::string_view value_name) {
  TESSERA_ASSIGN(ValueType hint, read_hint(type));
  return complete(std::move(hint), value_name);
}

Status apply_hint(ValueType& inferred, const ValueType& hint, std::string_view value_name,
                  const std::set<std::string, std::less<>>& fresh, TypeReader& reader) {
  const bool is_untyped =
      inferred.is_tensor() && inferred.dtype == DType::kUndefined && !inferred.shape;
  if (is_untyped) {
    inferred = reader.complete(hint, value_name);
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
    inferred.shape = reader.complete(hint, value_name).shape;
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
  if (!inferred.is_tensor() || !declared.is_tensor() || !inferred.shape || !declared.shape)
    return {};
  bool agrees = inferred.shape->size() == declared.shape->size();
  for (std::size_t axis = 0; agrees && axis < inferred.shape->size(); ++axis) {
    const auto found = (*inferred.shape)[axis].constant();
    const auto said = (*declared.shape)[axis].constant();
    agrees = !found || !said || *found == *said;
  }
  if (agrees) return {};
  return fail(ErrorCode::kInvalidArgument, fmt::format("{}: declared {}, inferred {}", what,
                                                       declared.to_string(), inferred.to_string()));
}

}  // namespace tessera::importer
