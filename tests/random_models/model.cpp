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

void write_type(const ValueType& type, onnx::TypeProto& to) {
  if (type.kind == ValueType::Kind::kSequence)
    return write_type(*type.element, *to.mutable_sequence_type()->mutable_elem_type());
  TESSERA_CHECK(type.is_tensor());
  to.mutable_tensor_type()->set_elem_type(static_cast<int>(type.dtype));
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
  void operator()(const ValueType& value) const {
    to.set_type(onnx::AttributeProto::TYPE_PROTO);
    write_type(value, *to.mutable_tp());
  }
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

void write_graph(const Model& model, const std::vector<DType>& output_dtypes,
                 onnx::GraphProto& graph);

// Formals have an element type alone: their sizes are those of the call.
void write_body(const Body& body, onnx::GraphProto& graph) {
  graph.set_name(body.attribute);
  for (const ValueId id : body.formals) {
    const Value& value = body.graph.values[static_cast<std::size_t>(id)];
    auto& input = *graph.add_input();
    input.set_name(value.name);
    input.mutable_type()->mutable_tensor_type()->set_elem_type(
        static_cast<int>(value.elements[0].dtype()));
  }
  write_graph(body.graph, body.output_dtypes, graph);
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
  for (const Body& body : node.bodies) {
    auto& attribute = *to.add_attribute();
    attribute.set_name(body.attribute);
    attribute.set_type(onnx::AttributeProto::GRAPH);
    write_body(body, *attribute.mutable_g());
  }
}

// All but the inputs.
void write_graph(const Model& model, const std::vector<DType>& output_dtypes,
                 onnx::GraphProto& graph) {
  for (const Value& value : model.values)
    if (value.source == Source::kConstant)
      io::tensor_to_proto(value.elements[0], value.name, *graph.add_initializer());
  for (const Node& node : model.nodes) write_node(model, node, *graph.add_node());
  for (std::size_t i = 0; i < model.outputs.size(); ++i) {
    auto& output = *graph.add_output();
    output.set_name(name_of(model, model.outputs[i]));
    output.mutable_type()->mutable_tensor_type()->set_elem_type(static_cast<int>(output_dtypes[i]));
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

// Keeps what `keep` and the outputs need; `renumbered` is the new id of each value.
Model keep_used(const Model& model, const std::vector<ValueId>& keep,
                std::vector<ValueId>& renumbered) {
  std::vector<bool> used(model.values.size(), false);
  const auto use = [&](ValueId id) {
    if (id != kOmitted) used[static_cast<std::size_t>(id)] = true;
  };
  for (const auto* ids : {&keep, &model.outputs})
    for (const ValueId id : *ids) use(id);
  std::vector<bool> kept(model.nodes.size(), false);
  for (std::size_t i = model.nodes.size(); i-- > 0;) {
    const Node& node = model.nodes[i];
    kept[i] = std::ranges::any_of(node.outputs, [&](ValueId id) {
      return id != kOmitted && used[static_cast<std::size_t>(id)];
    });
    if (!kept[i]) continue;
    for (const auto* ids : {&node.inputs, &node.outputs})
      for (const ValueId id : *ids) use(id);
    for (const Body& body : node.bodies)
      for (const auto& capture : body.captures) use(capture.second);
  }
  Model small;
  renumbered.assign(model.values.size(), kOmitted);
  for (std::size_t id = 0; id < model.values.size(); ++id) {
    if (!used[id]) continue;
    renumbered[id] = static_cast<ValueId>(small.values.size());
    small.values.push_back(model.values[id]);
  }
  const auto renumber = [&](ValueId& id) {
    if (id != kOmitted) id = renumbered[static_cast<std::size_t>(id)];
  };
  for (std::size_t i = 0; i < model.nodes.size(); ++i) {
    if (!kept[i]) continue;
    Node& node = small.nodes.emplace_back(model.nodes[i]);
    std::ranges::for_each(node.inputs, renumber);
    std::ranges::for_each(node.outputs, renumber);
    for (Body& body : node.bodies)
      for (auto& capture : body.captures) renumber(capture.second);
  }
  small.outputs = model.outputs;
  std::ranges::for_each(small.outputs, renumber);
  return small;
}

Model with_pruned_bodies(Model model);

Body pruned_body(const Body& body) {
  Body small = body;
  std::vector<ValueId> renumbered;
  small.graph = keep_used(with_pruned_bodies(body.graph), body.formals, renumbered);
  for (ValueId& id : small.formals) id = renumbered[static_cast<std::size_t>(id)];
  std::erase_if(small.captures, [&](const auto& capture) {
    return renumbered[static_cast<std::size_t>(capture.first)] == kOmitted;
  });
  for (auto& capture : small.captures)
    capture.first = renumbered[static_cast<std::size_t>(capture.first)];
  return small;
}

Model with_pruned_bodies(Model model) {
  for (Node& node : model.nodes)
    for (Body& body : node.bodies) body = pruned_body(body);
  return model;
}

std::string graph_text(const Model& model, const std::string& indent) {
  std::string text;
  for (const Value& value : model.values) {
    if (value.source == Source::kNode || value.source == Source::kOuter) continue;
    text +=
        fmt::format("{}{} {} : {}\n", indent, value.source == Source::kInput ? "input" : "constant",
                    value.name, type_text(value));
  }
  const auto names = [&](const std::vector<ValueId>& ids) {
    std::string list;
    for (const ValueId id : ids)
      list += (list.empty() ? "" : ", ") + (id == kOmitted ? "_" : name_of(model, id));
    return list;
  };
  for (const Node& node : model.nodes) {
    text += fmt::format("{}{} = {}({}) {{{}}}\n", indent, names(node.outputs),
                        node.op->qualified_name(), names(node.inputs), node.attributes.to_string());
    for (const Body& body : node.bodies)
      text += indent + "  " + body.attribute + ":\n" + graph_text(body.graph, indent + "    ");
  }
  return text + indent + "output " + names(model.outputs) + "\n";
}

}  // namespace

Model pruned(const Model& model) {
  std::vector<ValueId> renumbered;
  return keep_used(with_pruned_bodies(model), {}, renumbered);
}

onnx::ModelProto to_onnx(const Model& model, const std::vector<DType>& dtypes) {
  onnx::ModelProto proto;
  proto.set_ir_version(ops::kNewestIrVersion);
  auto& opset = *proto.add_opset_import();
  opset.set_domain("");
  opset.set_version(ops::kNewestOpset);
  auto& graph = *proto.mutable_graph();
  graph.set_name("random");
  for (const Value& value : model.values)
    if (value.source == Source::kInput) write_input(value, *graph.add_input());
  std::vector<DType> output_dtypes;
  for (const ValueId id : model.outputs)
    output_dtypes.push_back(dtypes[static_cast<std::size_t>(id)]);
  write_graph(model, output_dtypes, graph);
  return proto;
}

std::string to_string(const Model& model) {
  return graph_text(model, "");
}

}  // namespace tessera::random_models
