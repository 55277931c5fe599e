#include "import/attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <variant>

#include "base/error.h"
#include "import/scope.h"
#include "io/onnx.pb.h"

namespace tessera::importer {
namespace {

using Kind = onnx::AttributeProto;

// The fields that hold a value, by the type that names them. A scalar that holds its default counts
// as not set: some writers put all of them down.
struct ValueField {
  int kind;
  std::string_view name;
  bool (*is_set)(const onnx::AttributeProto&);
};
constexpr ValueField kValueFields[] = {
    {Kind::FLOAT, "f", [](const Kind& proto) { return proto.f() != 0; }},
    {Kind::INT, "i", [](const Kind& proto) { return proto.i() != 0; }},
    {Kind::STRING, "s", [](const Kind& proto) { return !proto.s().empty(); }},
    {Kind::TENSOR, "t", [](const Kind& proto) { return proto.has_t(); }},
    {Kind::GRAPH, "g", [](const Kind& proto) { return proto.has_g(); }},
    {Kind::SPARSE_TENSOR, "sparse_tensor",
     [](const Kind& proto) { return proto.has_sparse_tensor(); }},
    {Kind::TYPE_PROTO, "tp", [](const Kind& proto) { return proto.has_tp(); }},
    {Kind::FLOATS, "floats", [](const Kind& proto) { return proto.floats_size() > 0; }},
    {Kind::INTS, "ints", [](const Kind& proto) { return proto.ints_size() > 0; }},
    {Kind::STRINGS, "strings", [](const Kind& proto) { return proto.strings_size() > 0; }},
    {Kind::TENSORS, "tensors", [](const Kind& proto) { return proto.tensors_size() > 0; }},
    {Kind::GRAPHS, "graphs", [](const Kind& proto) { return proto.graphs_size() > 0; }},
    {Kind::SPARSE_TENSORS, "sparse_tensors",
     [](const Kind& proto) { return proto.sparse_tensors_size() > 0; }},
    {Kind::TYPE_PROTOS, "type_protos",
     [](const Kind& proto) { return proto.type_protos_size() > 0; }},
};

// Files of the first IR version leave the type out: it is that of the value.
int kind_of(const onnx::AttributeProto& proto) {
  if (proto.type() != Kind::UNDEFINED) return proto.type();
  for (const ValueField& field : kValueFields) {
    if (field.is_set(proto)) return field.kind;
  }
  if (proto.has_f()) return Kind::FLOAT;
  if (proto.has_i()) return Kind::INT;
  if (proto.has_s()) return Kind::STRING;
  return Kind::UNDEFINED;
}

template <typename Protos, typename Read>
Result<ops::AttributeValue> read_tensors(const Protos& protos, Read read) {
  std::vector<Tensor> tensors;
  for (const auto& proto : protos) {
    TESSERA_ASSIGN(Tensor tensor, read(proto));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

template <typename T>
Result<ops::AttributeValue> as_value(Result<T> result) {
  return std::move(result).map([](T&& value) { return ops::AttributeValue(std::move(value)); });
}

Result<ops::AttributeValue> read_value(const std::string& name, const onnx::AttributeProto& proto,
                                       ConstantReader& constants, TypeReader& types) {
  const auto read = [&](const auto& tensor) { return constants.read(tensor); };
  switch (kind_of(proto)) {
    case Kind::FLOAT: return proto.f();
    case Kind::INT: return std::int64_t{proto.i()};
    case Kind::STRING: return proto.s();
    case Kind::TENSOR: return as_value(read(proto.t()));
    case Kind::SPARSE_TENSOR: return as_value(read(proto.sparse_tensor()));
    case Kind::TYPE_PROTO: return as_value(types.read(proto.tp(), name));
    case Kind::FLOATS: return std::vector<float>(proto.floats().begin(), proto.floats().end());
    case Kind::INTS: return std::vector<std::int64_t>(proto.ints().begin(), proto.ints().end());
    case Kind::STRINGS:
      return std::vector<std::string>(proto.strings().begin(), proto.strings().end());
    case Kind::TENSORS: return read_tensors(proto.tensors(), read);
    case Kind::SPARSE_TENSORS: return read_tensors(proto.sparse_tensors(), read);
    default: break;
  }
  return fail(ErrorCode::kUnimplemented,
              fmt::format("attribute type {} is not supported", kind_of(proto)));
}

std::string place_of(const std::string& name) {
  return "attribute '" + name + "'";
}

// In the order of ops::AttributeValue's alternatives.
constexpr std::array kAlternatives = {
    std::pair{ops::AttrType::kInt, "an int"},      std::pair{ops::AttrType::kFloat, "a float"},
    std::pair{ops::AttrType::kString, "a string"}, std::pair{ops::AttrType::kTensor, "a tensor"},
    std::pair{ops::AttrType::kType, "a type"},     std::pair{ops::AttrType::kInts, "ints"},
    std::pair{ops::AttrType::kFloats, "floats"},   std::pair{ops::AttrType::kStrings, "strings"},
    std::pair{ops::AttrType::kTensors, "tensors"},
};
static_assert(kAlternatives.size() == std::variant_size_v<ops::AttributeValue>);

std::string_view type_name(ops::AttrType type) {
  const auto found = std::find_if(kAlternatives.begin(), kAlternatives.end(),
                                  [&](const auto& pair) { return pair.first == type; });
  return found == kAlternatives.end() ? "a graph" : found->second;
}

// Attributes whose type is another one today; their upgrades know both.
struct Retyped {
  std::string_view op;
  std::string_view attribute;
  int before_version;
};
constexpr Retyped kRetyped[] = {{"Cast", "to", 6}, {"LpPool", "p", 2}, {"GlobalLpPool", "p", 2}};

bool was_retyped(const ops::OpSchema& op, int version, std::string_view attribute) {
  return std::any_of(std::begin(kRetyped), std::end(kRetyped), [&](const Retyped& entry) {
    return entry.op == op.name && entry.attribute == attribute && version < entry.before_version;
  });
}

// ---- Constant -----------------------------------------------------------------------------------

template <typename T>
Tensor tensor_of(DType dtype, const std::vector<T>& values, bool scalar) {
  return Tensor::of<T>(dtype, scalar ? Dims{} : Dims{static_cast<std::int64_t>(values.size())},
                       std::span<const T>(values));
}

Tensor tensor_of(const ops::AttributeValue& value) {
  if (const auto* tensor = std::get_if<Tensor>(&value)) return *tensor;
  if (const auto* i = std::get_if<std::int64_t>(&value))
    return tensor_of<std::int64_t>(DType::kInt64, {*i}, true);
  if (const auto* f = std::get_if<float>(&value)) return tensor_of<float>(DType::kFp32, {*f}, true);
  if (const auto* s = std::get_if<std::string>(&value))
    return tensor_of<std::string>(DType::kString, {*s}, true);
  if (const auto* ints = std::get_if<std::vector<std::int64_t>>(&value))
    return tensor_of(DType::kInt64, *ints, false);
  if (const auto* floats = std::get_if<std::vector<float>>(&value))
    return tensor_of(DType::kFp32, *floats, false);
  return tensor_of(DType::kString, std::get<std::vector<std::string>>(value), false);
}

// The attributes of Constant and the types that they hold.
struct ConstantForm {
  std::string_view name;
  int kind;
};
constexpr ConstantForm kConstantForms[] = {
    {"value", Kind::TENSOR},        {"sparse_value", Kind::SPARSE_TENSOR},
    {"value_int", Kind::INT},       {"value_ints", Kind::INTS},
    {"value_float", Kind::FLOAT},   {"value_floats", Kind::FLOATS},
    {"value_string", Kind::STRING}, {"value_strings", Kind::STRINGS},
};

}  // namespace

Result<BoundAttributes> bind_attributes(const onnx::NodeProto& node, Scope& scope) {
  BoundAttributes bound;
  std::set<std::string_view> names;
  for (const auto& proto : node.attribute()) {
    if (proto.name().empty())
      return fail(ErrorCode::kInvalidArgument,
                  "expected a name for each attribute, found an empty one");
    if (!names.insert(proto.name()).second) {
      return fail(ErrorCode::kAlreadyExists,
                  fmt::format("attribute '{}' stands there twice", proto.name()));
    }
    TESSERA_TRY_IN(check_attribute(proto), place_of(proto.name()));
    if (proto.ref_attr_name().empty()) {
      bound.emplace(proto.name(), BoundAttribute{&proto, &scope});
      continue;
    }
    if (scope.attributes == nullptr) {
      return fail(
          ErrorCode::kInvalidArgument,
          fmt::format(
              "attribute '{}': refers to attribute '{}' of a function, but stands outside of one",
              proto.name(), proto.ref_attr_name()));
    }
    const auto given = scope.attributes->find(proto.ref_attr_name());
    if (given != scope.attributes->end()) bound.emplace(proto.name(), given->second);
  }
  return bound;
}

Status check_attribute(const onnx::AttributeProto& proto) {
  if (proto.type() < Kind::UNDEFINED || proto.type() > Kind::TYPE_PROTOS) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("expected a known attribute type, found type {}", proto.type()));
  }
  const ValueField* found = nullptr;
  for (const ValueField& field : kValueFields) {
    if (!field.is_set(proto)) continue;
    if (!proto.ref_attr_name().empty()) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("refers to attribute '{}' of a function: expected no value, found "
                              "one in '{}'",
                              proto.ref_attr_name(), field.name));
    }
    if (found != nullptr) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("expected one value, found one in '{}' and one in '{}'", found->name,
                              field.name));
    }
    found = &field;
  }
  if (found == nullptr || proto.type() == Kind::UNDEFINED || proto.type() == found->kind) return {};
  const auto* typed =
      std::find_if(std::begin(kValueFields), std::end(kValueFields),
                   [&](const ValueField& field) { return field.kind == proto.type(); });
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("expected a value in '{}', as its type {} says, found one in '{}'",
                          typed->name, proto.type(), found->name));
}

bool holds_graph(const onnx::AttributeProto& proto) {
  return kind_of(proto) == Kind::GRAPH;
}

Result<ops::AttributeValue> read_attribute(const std::string& name,
                                           const onnx::AttributeProto& proto,
                                           ConstantReader& constants, TypeReader& types) {
  auto value = read_value(name, proto, constants, types);
  if (!value) return tl::unexpected(in_context(std::move(value).error(), place_of(name)));
  return value;
}

Result<Tensor> read_constant(const BoundAttributes& attributes, ConstantReader& constants,
                             TypeReader& types) {
  const onnx::AttributeProto* found = nullptr;
  std::string found_name;
  for (const auto& [name, attribute] : attributes) {
    const auto form = std::find_if(
        std::begin(kConstantForms), std::end(kConstantForms),
        [&name = name](const ConstantForm& candidate) { return candidate.name == name; });
    if (form == std::end(kConstantForms))
      return fail(ErrorCode::kInvalidArgument, fmt::format("attribute '{}' is unknown", name));
    if (kind_of(*attribute.proto) != form->kind) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("attribute '{}': expected attribute type {}, found {}", name,
                              form->kind, kind_of(*attribute.proto)));
    }
    if (found != nullptr) {
      return fail(
          ErrorCode::kInvalidArgument,
          fmt::format("expected one value, found attributes '{}' and '{}'", found_name, name));
    }
    found = attribute.proto;
    found_name = name;
  }
  if (found == nullptr)
    return fail(ErrorCode::kInvalidArgument, "expected an attribute with its value, found none");
  return read_attribute(found_name, *found, constants, types)
      .map([](const ops::AttributeValue& value) { return tensor_of(value); });
}

Status check_attribute_types(const ops::OpSchema& op, int version,
                             const ops::Attributes& attributes) {
  for (const ops::FormalAttr& formal : op.attributes) {
    const ops::AttributeValue* value = attributes.find(formal.name);
    if (value == nullptr || was_retyped(op, version, formal.name)) continue;
    const auto& [found, text] = kAlternatives[value->index()];
    if (found != formal.type) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("attribute '{}': expected {}, found {}", formal.name,
                              type_name(formal.type), text));
    }
  }
  return {};
}

}  // namespace tessera::importer
