#include "random_models/model.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "io/onnx.pb.h"
#include "io/tensor_proto.h"
#include "ops/op_table.h"

namespace tessera::random_models {
namespace {

std::string name_of(const Model& model, ValueId id) {
  return id == kOmitted ? "" : model.values[static_cast<std::size_t>(id)].name;
}

struct AttributeWriter {
  onnx::AttributeProto& to;
  void operator()(std::int64_t value) const {
    to.set_type(onnx::AttributeProto::INT);
    to.set_i(value);
  }
  void operator()(float value) const {
    to.set_type(onnx::AttributeProto::FLOAT);
    to.set_f(value);
  }
  void operator()(const std::string& value) const {
    to.set_type(onnx::AttributeProto::STRING);
    to.set_s(value);
  }
  void operator()(const Tensor& value) const {
    to.set_type(onnx::AttributeProto::TENSOR);
    io::tensor_to_proto(value, "", *to.mutable_t());
  }
  void operator()(const std::vector<std::int64_t>& values) const {
    to.set_type(onnx::AttributeProto::INTS);
    for (const std::int64_t value : values) to.add_ints(value);
  }
  void operator()(const std::vector<float>& values) const {
    to.set_type(onnx::AttributeProto::FLOATS);
    for (const float value : values) to.add_floats(value);
  }
  void operator()(const std::vector<std::string>& values) const {
    to.set_type(onnx::AttributeProto::STRINGS);
    for (const std::string& value : values) to.add_strings(value);
  }
  void operator()(const ValueType& /*value*/) const { TESSERA_CHECK(false); }
  void operator()(const std::vector<Tensor>& /*value*/) const { TESSERA_CHECK(false); }
};

void write_input(const Value& value, onnx::ValueInfoProto& to) {
  to.set_name(value.name);
  auto& type = *to.mutable_type()->mutable_tensor_type();
  type.set_elem_type(static_cast<int>(value.elements[0].dtype()));
  auto& shape = *type.mutable_shape();
  for (std::size_t axis = 0; axis < value.symbols.size(); ++axis) {
    auto& dim = *shape.add_dim();
    if (value.symbols[axis].empty())
      dim.set_dim_value(value.elements[0].dims()[axis]);
    else
      dim.set_dim_param(value.symbols[axis]);
  }
}

void write_node(const Model& model, const Node& node, onnx::NodeProto& to) {
  to.set_name(node.name);
  to.set_op_type(std::string(node.op->name));
  to.set_domain(std::string(node.op->domain));
  for (const ValueId id : node.inputs) to.add_input(name_of(model, id));
  for (const ValueId id : node.outputs) to.add_output(name_of(model, id));
  for (const auto& [name, value] : node.attributes.entries()) {
    auto& attribute = *to.add_attribute();
    attribute.set_name(name);
    std::visit(AttributeWriter{attribute}, value);
  }
}

std::string type_text(const Value& value) {
  std::string text = std::string(tessera::to_string(value.elements[0].dtype())) + "[";
  for (std::size_t axis = 0; axis < value.elements[0].dims().size(); ++axis) {
    const std::string size = std::to_string(value.elements[0].dims()[axis]);
    const bool dynamic = axis < value.symbols.size() && !value.symbols[axis].empty();
    text += (axis == 0 ? "" : ", ") + (dynamic ? value.symbols[axis] + "=" + size + "|" +
                                                     std::to_string(value.elements[1].dims()[axis])
                                               : size);
  }
  return text + "]";
}

}  // namespace

Model pruned(const Model& model) {
  std::vector<bool> used(model.values.size(), false);
  const auto use = [&](ValueId id) {
    if (id != kOmitted) used[static_cast<std::size_t>(id)] = true;
  };
  for (const ValueId id : model.outputs) use(id);
  std::vector<bool> kept(model.nodes.size(), false);
  for (std::size_t i = model.nodes.size(); i-- > 0;) {
    const Node& node = model.nodes[i];
    kept[i] = std::ranges::any_of(node.outputs, [&](ValueId id) {
      return id != kOmitted && used[static_cast<std::size_t>(id)];
    });
    if (!kept[i]) continue;
    for (const ValueId id : node.inputs) use(id);
    for (const ValueId id : node.outputs) use(id);
  }
  Model small;
  std::vector<ValueId> renumbered(model.values.size(), kOmitted);
  for (std::size_t id = 0; id < model.values.size(); ++id) {
    if (!used[id]) continue;
    renumbered[id] = static_cast<ValueId>(small.values.size());
    small.values.push_back(model.values[id]);
  }
  const auto renumber = [&](std::vector<ValueId>& ids) {
    for (ValueId& id : ids)
      if (id != kOmitted) id = renumbered[static_cast<std::size_t>(id)];
  };
  for (std::size_t i = 0; i < model.nodes.size(); ++i) {
    if (!kept[i]) continue;
    renumber(small.nodes.emplace_back(model.nodes[i]).inputs);
    renumber(small.nodes.back().outputs);
  }
  small.outputs = model.outputs;
  renumber(small.outputs);
  return small;
}

onnx::ModelProto to_onnx(const Model& model, const std::vector<DType>& dtypes) {
  onnx::ModelProto proto;
  proto.set_ir_version(ops::kNewestIrVersion);
  auto& opset = *proto.add_opset_import();
  opset.set_domain("");
  opset.set_version(ops::kNewestOpset);
  auto& graph = *proto.mutable_graph();
  graph.set_name("random");
  for (const Value& value : model.values) {
    if (value.source == Source::kInput) write_input(value, *graph.add_input());
    if (value.source == Source::kConstant)
      io::tensor_to_proto(value.elements[0], value.name, *graph.add_initializer());
  }
  for (const Node& node : model.nodes) write_node(model, node, *graph.add_node());
  for (const ValueId id : model.outputs) {
    auto& output = *graph.add_output();
    output.set_name(name_of(model, id));
    output.mutable_type()->mutable_tensor_type()->set_elem_type(
        static_cast<int>(dtypes[static_cast<std::size_t>(id)]));
  }
  return proto;
}

std::string to_string(const Model& model) {
  std::string text;
  for (const Value& value : model.values) {
    if (value.source == Source::kNode) continue;
    text += fmt::format("{} {} : {}\n", value.source == Source::kInput ? "input" : "constant",
                        value.name, type_text(value));
  }
  const auto names = [&](const std::vector<ValueId>& ids) {
    std::string list;
    for (const ValueId id : ids)
      list += (list.empty() ? "" : ", ") + (id == kOmitted ? "_" : name_of(model, id));
    return list;
  };
  for (const Node& node : model.nodes)
    text += fmt::format("{} = {}({}) {{{}}}\n", names(node.outputs), node.op->qualified_name(),
                        names(node.inputs), node.attributes.to_string());
  return text + "output " + names(model.outputs) + "\n";
}

}  // namespace tessera::random_models
