#pragma once

// Small ONNX models, written down in C++. For tests that link tessera_onnx_proto.
//
//   OnnxModel model(17);
//   model.input("x", kFloat, {2, 3});
//   model.node("Relu", {"x"}, {"y"}, "r");
//   model.output("y", kFloat, {2, 3});
//   import_bytes(bytes_of(model.serialize()), ...)

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "io/onnx.pb.h"

namespace tessera::testing {

inline constexpr int kFloat = onnx::TensorProto::FLOAT;
inline constexpr int kInt64 = onnx::TensorProto::INT64;
inline constexpr int kBool = onnx::TensorProto::BOOL;

// A size, or the name of one.
using OnnxDim = std::variant<int, std::int64_t, const char*>;
using OnnxDims = std::vector<OnnxDim>;

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

inline void set_tensor_type(onnx::TypeProto& type, int dtype, const OnnxDims& dims) {
  type.mutable_tensor_type()->set_elem_type(dtype);
  auto& shape = *type.mutable_tensor_type()->mutable_shape();
  for (const OnnxDim& dim : dims) {
    auto& added = *shape.add_dim();
    if (const auto* name = std::get_if<const char*>(&dim)) {
      if (**name != '\0') added.set_dim_param(*name);
    } else {
      added.set_dim_value(std::holds_alternative<int>(dim) ? std::get<int>(dim)
                                                           : std::get<std::int64_t>(dim));
    }
  }
}

inline void set_value(onnx::ValueInfoProto& value, const std::string& name, int dtype,
                      const OnnxDims& dims) {
  value.set_name(name);
  set_tensor_type(*value.mutable_type(), dtype, dims);
}

// A tensor whose elements lie in the typed field.
inline void set_floats(onnx::TensorProto& tensor, const std::string& name,
                       const std::vector<std::int64_t>& dims, const std::vector<float>& values) {
  tensor.set_name(name);
  tensor.set_data_type(kFloat);
  for (const std::int64_t dim : dims) tensor.add_dims(dim);
  for (const float value : values) tensor.add_float_data(value);
}

inline void set_ints(onnx::TensorProto& tensor, const std::string& name,
                     const std::vector<std::int64_t>& dims,
                     const std::vector<std::int64_t>& values) {
  tensor.set_name(name);
  tensor.set_data_type(kInt64);
  for (const std::int64_t dim : dims) tensor.add_dims(dim);
  for (const std::int64_t value : values) tensor.add_int64_data(value);
}

// Adds nodes to anything that has a list of them: GraphProto, FunctionProto.
class OnnxNode {
 public:
  template <typename Owner>
  OnnxNode(Owner& owner, const std::string& op_type, const std::vector<std::string>& inputs,
           const std::vector<std::string>& outputs, const std::string& name = "",
           const std::string& domain = "")
      : node_(*owner.add_node()) {
    node_.set_op_type(op_type);
    for (const std::string& input : inputs) node_.add_input(input);
    for (const std::string& output : outputs) node_.add_output(output);
    if (!name.empty()) node_.set_name(name);
    if (!domain.empty()) node_.set_domain(domain);
  }

  OnnxNode& ints(const std::string& name, const std::vector<std::int64_t>& values) {
    auto& attribute = add(name, onnx::AttributeProto::INTS);
    for (const std::int64_t value : values) attribute.add_ints(value);
    return *this;
  }
  OnnxNode& floats(const std::string& name, const std::vector<float>& values) {
    auto& attribute = add(name, onnx::AttributeProto::FLOATS);
    for (const float value : values) attribute.add_floats(value);
    return *this;
  }
  OnnxNode& strings(const std::string& name, const std::vector<std::string>& values) {
    auto& attribute = add(name, onnx::AttributeProto::STRINGS);
    for (const std::string& value : values) attribute.add_strings(value);
    return *this;
  }
  OnnxNode& integer(const std::string& name, std::int64_t value) {
    add(name, onnx::AttributeProto::INT).set_i(value);
    return *this;
  }
  OnnxNode& real(const std::string& name, float value) {
    add(name, onnx::AttributeProto::FLOAT).set_f(value);
    return *this;
  }
  OnnxNode& text(const std::string& name, const std::string& value) {
    add(name, onnx::AttributeProto::STRING).set_s(value);
    return *this;
  }
  // An attribute that takes the value of `from` of the function around the node.
  OnnxNode& reference(const std::string& name, int type, const std::string& from) {
    add(name, type).set_ref_attr_name(from);
    return *this;
  }
  onnx::TensorProto& tensor(const std::string& name) {
    return *add(name, onnx::AttributeProto::TENSOR).mutable_t();
  }
  onnx::SparseTensorProto& sparse_tensor(const std::string& name) {
    return *add(name, onnx::AttributeProto::SPARSE_TENSOR).mutable_sparse_tensor();
  }
  onnx::GraphProto& graph(const std::string& name, const std::string& graph_name) {
    auto& graph = *add(name, onnx::AttributeProto::GRAPH).mutable_g();
    graph.set_name(graph_name);
    return graph;
  }
  onnx::AttributeProto& add(const std::string& name, int type) {
    auto& attribute = *node_.add_attribute();
    attribute.set_name(name);
    attribute.set_type(type);
    return attribute;
  }
  onnx::NodeProto& proto() { return node_; }

 private:
  onnx::NodeProto& node_;
};

class OnnxModel {
 public:
  explicit OnnxModel(int opset = 17, int ir_version = 8) {
    proto_.set_ir_version(ir_version);
    proto_.mutable_graph()->set_name("test");
    opset_import("", opset);
  }

  onnx::ModelProto& proto() { return proto_; }
  onnx::GraphProto& graph() { return *proto_.mutable_graph(); }

  void opset_import(const std::string& domain, int version) {
    auto& import = *proto_.add_opset_import();
    import.set_domain(domain);
    import.set_version(version);
  }
  void input(const std::string& name, int dtype, const OnnxDims& dims) {
    set_value(*graph().add_input(), name, dtype, dims);
  }
  void output(const std::string& name, int dtype, const OnnxDims& dims) {
    set_value(*graph().add_output(), name, dtype, dims);
  }
  // An output that declares no type.
  void output(const std::string& name) { graph().add_output()->set_name(name); }
  void value_info(const std::string& name, int dtype, const OnnxDims& dims) {
    set_value(*graph().add_value_info(), name, dtype, dims);
  }
  onnx::TensorProto& floats(const std::string& name, const std::vector<std::int64_t>& dims,
                            const std::vector<float>& values) {
    auto& tensor = *graph().add_initializer();
    set_floats(tensor, name, dims, values);
    return tensor;
  }
  onnx::TensorProto& ints(const std::string& name, const std::vector<std::int64_t>& dims,
                          const std::vector<std::int64_t>& values) {
    auto& tensor = *graph().add_initializer();
    set_ints(tensor, name, dims, values);
    return tensor;
  }
  OnnxNode node(const std::string& op_type, const std::vector<std::string>& inputs,
                const std::vector<std::string>& outputs, const std::string& name = "",
                const std::string& domain = "") {
    return OnnxNode(graph(), op_type, inputs, outputs, name, domain);
  }
  // A local function; its operator sets are the caller's to add.
  onnx::FunctionProto& function(const std::string& domain, const std::string& name,
                                const std::vector<std::string>& inputs,
                                const std::vector<std::string>& outputs, int opset = 17) {
    auto& function = *proto_.add_functions();
    function.set_domain(domain);
    function.set_name(name);
    for (const std::string& input : inputs) function.add_input(input);
    for (const std::string& output : outputs) function.add_output(output);
    auto& import = *function.add_opset_import();
    import.set_domain("");
    import.set_version(opset);
    return function;
  }

  [[nodiscard]] std::string serialize() const { return proto_.SerializeAsString(); }

 private:
  onnx::ModelProto proto_;
};

}  // namespace tessera::testing
