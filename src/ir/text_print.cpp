#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "ir/text.h"
#include "ir/text_lexer.h"
#include "ir/text_tensor.h"

namespace tessera::ir {
namespace {

std::string print_name(std::string_view name) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
  };
  const bool is_word = !name.empty() && !(name.front() >= '0' && name.front() <= '9') &&
                       name.front() != '.' && std::all_of(name.begin(), name.end(), is_plain);
  return is_word ? std::string(name) : quoted(name);
}

std::string print_value_name(std::string_view name) {
  const auto is_bare = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '/' || c == '-';
  };
  const bool bare = !name.empty() && std::all_of(name.begin(), name.end(), is_bare);
  return "%" + (bare ? std::string(name) : quoted(name));
}

template <typename Items, typename Print>
std::string join(const Items& items, Print print_item) {
  std::string text;
  for (const auto& item : items) text += (text.empty() ? "" : ", ") + print_item(item);
  return text;
}

class Printer {
 public:
  Printer(const PrintOptions& options, ConstantPool* pool) : options_(options), pool_(pool) {}

  std::string print_module(const Module& module);

 private:
  // Names of one graph's values: their own, or numbers in order of definition.
  class Names {
   public:
    Names(const Graph& graph, bool canonical) : graph_(graph), canonical_(canonical) {}
    std::string operator()(ValueId id) {
      if (id == kNoValue) return "_";
      if (!canonical_) return print_value_name(graph_.value(id).name);
      return "%" + std::to_string(numbers_.emplace(id, numbers_.size()).first->second);
    }

   private:
    const Graph& graph_;
    bool canonical_;
    std::map<ValueId, std::size_t> numbers_;
  };

  void print_line(int depth, std::string_view line) {
    out_ += std::string(static_cast<std::size_t>(depth) * 2, ' ') + std::string(line) + "\n";
  }
  std::string print_tensor(const Tensor& tensor);
  std::string print_attribute(const ops::AttributeValue& value);
  std::string print_node_head(const Graph& graph, const Node& node, Names& names);
  void print_constant(const Graph& graph, ValueId id, Names& names, std::set<ValueId>& printed,
                      int depth);
  void print_node(const Graph& graph, const Node& node, Names& names, int depth);
  void print_graph(const Graph& graph, Names& names, int depth);
  void print_method(const Method& method);

  const PrintOptions& options_;
  ConstantPool* pool_;
  std::string out_;
};

std::string print_type(const Value& value) {
  std::string text = value.type.to_string();
  if (!value.known) return text;
  const std::string elements =
      join(value.known->elements, [](const Dim& dim) { return dim.to_string(); });
  return text + (value.known->scalar ? " known (" + elements + ")" : " known [" + elements + "]");
}

std::string Printer::print_tensor(const Tensor& tensor) {
  if (!tensor.is_defined()) return "none";
  const std::string type =
      std::string(to_string(tensor.dtype())) + to_string(to_shape(tensor.dims()));
  if (tensor.numel() <= options_.inline_limit && !options_.canonical)
    return type + " dense " + print_elements(tensor.view());
  const std::string hash = tensor.content_hash().to_string();
  if (pool_ != nullptr) pool_->emplace(hash, tensor);
  return type + " hash " + quoted(hash);
}

// The prefix says the type of a list where its elements do not.
std::string Printer::print_attribute(const ops::AttributeValue& value) {
  struct Visitor {
    Printer& self;
    std::string operator()(std::int64_t v) const { return std::to_string(v); }
    std::string operator()(float v) const { return print_float(v); }
    std::string operator()(const std::string& v) const { return quoted(v); }
    std::string operator()(const Tensor& v) const { return "tensor " + self.print_tensor(v); }
    std::string operator()(const ValueType& v) const { return "type " + v.to_string(); }
    std::string operator()(const std::vector<std::int64_t>& v) const {
      return v.empty() ? "ints []"
                       : "[" + join(v, [](std::int64_t x) { return std::to_string(x); }) + "]";
    }
    std::string operator()(const std::vector<float>& v) const {
      return v.empty() ? "floats []" : "[" + join(v, print_float) + "]";
    }
    std::string operator()(const std::vector<std::string>& v) const {
      return v.empty() ? "strings []" : "[" + join(v, quoted) + "]";
    }
    std::string operator()(const std::vector<Tensor>& v) const {
      return "tensors [" + join(v, [this](const Tensor& x) { return self.print_tensor(x); }) + "]";
    }
  };
  return std::visit(Visitor{*this}, value);
}

std::string Printer::print_node_head(const Graph& graph, const Node& node, Names& names) {
  const auto print_id = [&](ValueId id) { return names(id); };
  const std::string inputs = join(node.inputs, print_id);
  std::string line = join(node.outputs, print_id);
  if (!node.outputs.empty()) line += " = ";
  line += print_name(node.op->qualified_name()) + "(" + inputs + ")";
  if (!node.attributes.entries().empty()) {
    line += " {" +
            join(node.attributes.entries(),
                 [&](const auto& entry) {
                   return print_name(entry.first) + " = " + print_attribute(entry.second);
                 }) +
            "}";
  }
  std::vector<ValueId> named;
  std::copy_if(node.outputs.begin(), node.outputs.end(), std::back_inserter(named),
               [](ValueId id) { return id != kNoValue; });
  if (!named.empty())
    line += " : " + join(named, [&](ValueId id) { return print_type(graph.value(id)); });
  if (options_.canonical) return line;
  line += " name " + quoted(node.name);
  line += " origins [" + join(node.origins, [](OriginId id) { return std::to_string(id); }) + "]";
  return line;
}

void Printer::print_constant(const Graph& graph, ValueId id, Names& names,
                             std::set<ValueId>& printed, int depth) {
  if (id == kNoValue || graph.value(id).kind != ValueKind::kConstant || !printed.insert(id).second)
    return;
  const Value& value = graph.value(id);
  std::string line = "const " + names(id) + " : ";
  if (value.known) line += print_type(value) + " = ";
  print_line(depth, line + print_tensor(value.constant));
}

void Printer::print_node(const Graph& graph, const Node& node, Names& names, int depth) {
  std::string head = print_node_head(graph, node, names);
  if (node.bodies.empty()) return print_line(depth, head);
  print_line(depth, head + " bodies {");
  for (std::size_t i = 0; i < node.bodies.size(); ++i) {
    const Graph& body = *node.bodies[i];
    const std::string name = options_.canonical ? "" : quoted(body.name) + " ";
    print_line(depth + 1, "body " + name + "captures [" + join(node.captures[i], [&](ValueId id) {
                            return names(id);
                          }) + "] {");
    Names body_names(body, options_.canonical);
    print_graph(body, body_names, depth + 2);
    print_line(depth + 1, "}");
  }
  print_line(depth, "}");
}

void Printer::print_graph(const Graph& graph, Names& names, int depth) {
  for (const ValueId id : graph.inputs)
    print_line(depth, "input " + names(id) + " : " + print_type(graph.value(id)));
  std::set<ValueId> printed;
  for (const auto& node : graph.nodes()) {
    for (const ValueId id : node->inputs) print_constant(graph, id, names, printed, depth);
    for (const auto& captured : node->captures) {
      for (const ValueId id : captured) print_constant(graph, id, names, printed, depth);
    }
    print_node(graph, *node, names, depth);
  }
  for (const ValueId id : graph.outputs) print_constant(graph, id, names, printed, depth);
  for (const ValueId id : graph.outputs) print_line(depth, "output " + names(id));
}

void Printer::print_method(const Method& method) {
  std::string head = "method " + quoted(method.name);
  if (!options_.canonical) head += " graph " + quoted(method.graph.name);
  print_line(1, head + " weight " + print_double(method.weight) + " {");
  Names names(method.graph, options_.canonical);
  print_graph(method.graph, names, 2);
  for (const StatePair& state : method.states) {
    print_line(2, "state " + quoted(state.input) + " -> " + quoted(state.output) + " initial " +
                      print_tensor(state.initial));
  }
  print_line(1, "}");
}

std::string Printer::print_module(const Module& module) {
  print_line(0, "tessera.ir 1");
  print_line(0, "module " + quoted(options_.canonical ? "" : module.name) + " {");
  if (!options_.canonical) {
    for (const auto& [key, value] : module.metadata)
      print_line(1, "meta " + quoted(key) + " = " + quoted(value));
    for (const auto& [name, range] : module.symbols) {
      print_line(1, fmt::format("symbol {} in [{}, {}]", quoted(name), range.min,
                                range.max == INT64_MAX ? "inf" : std::to_string(range.max)));
    }
    for (std::size_t i = 0; i < module.source_nodes.size(); ++i) {
      print_line(1, fmt::format("source {} = {} : {}", i, quoted(module.source_nodes[i].name),
                                quoted(module.source_nodes[i].op_type)));
    }
  }
  for (const Method& method : module.methods) print_method(method);
  print_line(0, "}");
  return std::move(out_);
}

}  // namespace

std::string print(const Module& module, const PrintOptions& options, ConstantPool* pool) {
  return Printer(options, pool).print_module(module);
}

}  // namespace tessera::ir
