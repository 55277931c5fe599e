#include <fmt/format.h>

#include <algorithm>

#include "ir/text.h"
#include "ir/text_lexer.h"
#include "ir/text_tensor.h"
#include "ops/op_table.h"

namespace tessera::ir {
namespace {

// Nesting of bodies in bodies that is read; models stay below 5.
constexpr int kMaxBodyDepth = 32;

class Parser {
 public:
  Parser(std::string_view text, const ConstantPool& pool) : lexer_(text), pool_(pool) {}

  Result<Module> parse_module();

 private:
  // Values of the graph that is being read, by name.
  struct Scope {
    Graph& graph;
    std::map<std::string, ValueId, std::less<>> values;
  };
  struct OutputType {
    ValueType type;
    std::optional<DimTensor> known;
  };

  Status parse_meta();
  Status parse_symbol();
  Status parse_source();
  Status parse_method();
  Status parse_state(Method& method);
  Status parse_statements(Scope& scope, int depth, Method* method);
  Status parse_input(Scope& scope);
  Status parse_constant(Scope& scope);
  Status parse_output(Scope& scope);
  Status parse_node(Scope& scope, int depth);
  Result<std::vector<std::optional<std::string>>> parse_node_outputs(Scope& scope);
  Status parse_node_tail(Scope& scope, Node& node);
  Status parse_bodies(Scope& scope, Node& node, int depth);
  Result<const ops::OpSchema*> parse_op();
  Status parse_attributes(ops::Attributes& attributes);
  Result<ops::AttributeValue> parse_attribute_value();
  Result<ops::AttributeValue> parse_plain_list();
  Result<std::vector<Tensor>> parse_tensor_list();
  Result<Tensor> parse_tensor();
  Result<ValueType> parse_type();
  Result<std::optional<DimTensor>> parse_known();
  Result<Dim> parse_one_dim();
  Result<ValueId> parse_use(Scope& scope);
  Result<std::vector<ValueId>> parse_uses(Scope& scope, std::string_view close, bool may_omit);
  Result<std::string> parse_definition(Scope& scope);

  Lexer lexer_;
  const ConstantPool& pool_;
  Module module_;
};

// ---- Types and tensors --------------------------------------------------------------------------

Result<ValueType> Parser::parse_type() {
  const std::size_t offset = lexer_.peek().offset;
  if (lexer_.peek().kind != Token::Kind::kWord)
    return lexer_.expected("a type such as 'fp32[2, 3]'");
  auto type = parse_value_type(lexer_.take_type());
  if (!type) return lexer_.error_at(offset, type.error().to_string());
  return *std::move(type);
}

Result<Dim> Parser::parse_one_dim() {
  const std::size_t offset = lexer_.peek().offset;
  auto dim = parse_dim(lexer_.take_dim());
  if (!dim) return lexer_.error_at(offset, dim.error().to_string());
  return *std::move(dim);
}

// `known [2, batch]` or, of a scalar, `known (batch)`.
Result<std::optional<DimTensor>> Parser::parse_known() {
  if (!lexer_.accept_word("known")) return std::nullopt;
  DimTensor known;
  known.scalar = lexer_.accept_symbol("(");
  if (known.scalar) {
    TESSERA_ASSIGN(Dim dim, parse_one_dim());
    known.elements.push_back(std::move(dim));
    TESSERA_TRY(lexer_.expect_symbol(")"));
    return known;
  }
  TESSERA_TRY(lexer_.expect_symbol("["));
  if (lexer_.accept_symbol("]")) return known;
  while (true) {
    TESSERA_ASSIGN(Dim dim, parse_one_dim());
    known.elements.push_back(std::move(dim));
    if (lexer_.accept_symbol("]")) return known;
    TESSERA_TRY(lexer_.expect_symbol(","));
  }
}

Result<Tensor> Parser::parse_tensor() {
  if (lexer_.accept_word("none")) return Tensor();
  const std::size_t offset = lexer_.peek().offset;
  TESSERA_ASSIGN(const ValueType type, parse_type());
  const auto dims = type.is_tensor() && type.shape ? constant_dims(*type.shape) : std::nullopt;
  if (!dims || type.dtype == DType::kUndefined) {
    return lexer_.error_at(
        offset,
        fmt::format("expected the type of a constant, with sizes that are numbers, found {}",
                    type.to_string()));
  }
  if (lexer_.accept_word("dense")) return parse_elements(lexer_, type.dtype, *dims);
  if (!lexer_.accept_word("hash")) return lexer_.expected("'dense' or 'hash'");
  const std::size_t hash_offset = lexer_.peek().offset;
  TESSERA_ASSIGN(const std::string hash, lexer_.expect_string("a content hash in quotes"));
  const auto found = pool_.find(hash);
  if (found == pool_.end())
    return lexer_.error_at(hash_offset,
                           fmt::format("no constant with the hash {} was given", hash));
  if (found->second.dtype() != type.dtype || found->second.dims() != *dims) {
    return lexer_.error_at(
        hash_offset,
        fmt::format("expected a constant of {} for the hash {}, found {}{}", type.to_string(), hash,
                    to_string(found->second.dtype()), to_string(to_shape(found->second.dims()))));
  }
  return found->second;
}

// ---- Attributes ---------------------------------------------------------------------------------

bool is_float_text(std::string_view text) {
  return text.find_first_of(".ex") != std::string_view::npos;
}

Result<std::vector<Tensor>> Parser::parse_tensor_list() {
  TESSERA_TRY(lexer_.expect_symbol("["));
  std::vector<Tensor> tensors;
  if (lexer_.accept_symbol("]")) return tensors;
  while (true) {
    TESSERA_ASSIGN(Tensor tensor, parse_tensor());
    tensors.push_back(std::move(tensor));
    if (lexer_.accept_symbol("]")) return tensors;
    TESSERA_TRY(lexer_.expect_symbol(","));
  }
}

// A list whose first element tells its type.
Result<ops::AttributeValue> Parser::parse_plain_list() {
  TESSERA_TRY(lexer_.expect_symbol("["));
  std::vector<std::int64_t> ints;
  std::vector<float> floats;
  std::vector<std::string> strings;
  const bool is_string = lexer_.peek().kind == Token::Kind::kString;
  const bool is_float = !is_string && is_float_text(lexer_.peek().text);
  while (true) {
    if (is_string) {
      TESSERA_ASSIGN(std::string element, lexer_.expect_string("a string"));
      strings.push_back(std::move(element));
    } else if (is_float) {
      TESSERA_ASSIGN(const float element, parse_float(lexer_));
      floats.push_back(element);
    } else {
      TESSERA_ASSIGN(const std::int64_t element, lexer_.expect_int("an int, a float or a string"));
      ints.push_back(element);
    }
    if (lexer_.accept_symbol("]")) break;
    TESSERA_TRY(lexer_.expect_symbol(","));
  }
  if (is_string) return strings;
  if (is_float) return floats;
  return ints;
}

Result<ops::AttributeValue> Parser::parse_attribute_value() {
  const auto empty_list = [&](ops::AttributeValue value) -> Result<ops::AttributeValue> {
    TESSERA_TRY(lexer_.expect_symbol("["));
    TESSERA_TRY(lexer_.expect_symbol("]"));
    return value;
  };
  if (lexer_.accept_word("ints")) return empty_list(std::vector<std::int64_t>{});
  if (lexer_.accept_word("floats")) return empty_list(std::vector<float>{});
  if (lexer_.accept_word("strings")) return empty_list(std::vector<std::string>{});
  if (lexer_.accept_word("tensors")) return parse_tensor_list();
  if (lexer_.accept_word("tensor")) return parse_tensor();
  if (lexer_.accept_word("type")) return parse_type();
  if (lexer_.at_symbol("[")) return parse_plain_list();
  if (lexer_.peek().kind == Token::Kind::kString) return lexer_.next().text;
  if (lexer_.peek().kind == Token::Kind::kNumber && is_float_text(lexer_.peek().text))
    return parse_float(lexer_);
  return lexer_.expect_int("the value of an attribute");
}

Status Parser::parse_attributes(ops::Attributes& attributes) {
  if (!lexer_.accept_symbol("{")) return {};
  while (!lexer_.accept_symbol("}")) {
    const Token::Kind kind = lexer_.peek().kind;
    if (kind != Token::Kind::kWord && kind != Token::Kind::kString)
      return lexer_.expected("the name of an attribute");
    const Token name = lexer_.next();
    if (attributes.has(name.text))
      return lexer_.error_at(name.offset, fmt::format("attribute '{}' stands twice", name.text));
    TESSERA_TRY(lexer_.expect_symbol("="));
    TESSERA_ASSIGN(ops::AttributeValue value, parse_attribute_value());
    attributes.set(name.text, std::move(value));
    if (!lexer_.at_symbol("}")) TESSERA_TRY(lexer_.expect_symbol(","));
  }
  return {};
}

// ---- Values -------------------------------------------------------------------------------------

Result<std::string> Parser::parse_definition(Scope& scope) {
  const std::size_t offset = lexer_.peek().offset;
  TESSERA_ASSIGN(std::string name, lexer_.expect_value());
  if (scope.values.contains(name))
    return lexer_.error_at(offset, fmt::format("value '%{}' is defined twice", name));
  return name;
}

Result<ValueId> Parser::parse_use(Scope& scope) {
  const std::size_t offset = lexer_.peek().offset;
  TESSERA_ASSIGN(const std::string name, lexer_.expect_value());
  const auto found = scope.values.find(name);
  if (found == scope.values.end())
    return lexer_.error_at(offset,
                           fmt::format("value '%{}' is not defined before it is read", name));
  return found->second;
}

Result<std::vector<ValueId>> Parser::parse_uses(Scope& scope, std::string_view close,
                                                bool may_omit) {
  std::vector<ValueId> ids;
  if (lexer_.accept_symbol(close)) return ids;
  while (true) {
    if (may_omit && lexer_.accept_word("_")) {
      ids.push_back(kNoValue);
    } else {
      TESSERA_ASSIGN(const ValueId id, parse_use(scope));
      ids.push_back(id);
    }
    if (lexer_.accept_symbol(close)) return ids;
    if (!lexer_.accept_symbol(",")) return lexer_.expected(fmt::format("',' or '{}'", close));
  }
}

Status Parser::parse_input(Scope& scope) {
  TESSERA_ASSIGN(const std::string name, parse_definition(scope));
  TESSERA_TRY(lexer_.expect_symbol(":"));
  TESSERA_ASSIGN(ValueType type, parse_type());
  const ValueId id = scope.graph.add_input(name, std::move(type));
  scope.values.emplace(name, id);
  TESSERA_ASSIGN(scope.graph.value(id).known, parse_known());
  return {};
}

// `const %w : TENSOR`, or with known elements `const %w : TYPE known [...] = TENSOR`.
Status Parser::parse_constant(Scope& scope) {
  TESSERA_ASSIGN(const std::string name, parse_definition(scope));
  TESSERA_TRY(lexer_.expect_symbol(":"));
  Lexer before = lexer_;
  std::optional<DimTensor> known;
  if (!lexer_.at_word("none")) {
    TESSERA_ASSIGN(const ValueType type, parse_type());
    TESSERA_ASSIGN(known, parse_known());
    if (known) {
      TESSERA_TRY(lexer_.expect_symbol("="));
    } else {
      lexer_ = before;
    }
  }
  TESSERA_ASSIGN(Tensor tensor, parse_tensor());
  const ValueId id = scope.graph.add_constant(name, std::move(tensor));
  scope.graph.value(id).known = std::move(known);
  scope.values.emplace(name, id);
  return {};
}

Status Parser::parse_output(Scope& scope) {
  TESSERA_ASSIGN(const ValueId id, parse_use(scope));
  scope.graph.outputs.push_back(id);
  return {};
}

// ---- Nodes --------------------------------------------------------------------------------------

Result<const ops::OpSchema*> Parser::parse_op() {
  const Token::Kind kind = lexer_.peek().kind;
  if (kind != Token::Kind::kWord && kind != Token::Kind::kString)
    return lexer_.expected("a statement or an operator");
  const Token token = lexer_.next();
  const std::size_t split = token.text.find("::");
  const bool has_domain = split != std::string::npos;
  const ops::OpSchema* op = has_domain
                                ? ops::find_op(std::string_view(token.text).substr(0, split),
                                               std::string_view(token.text).substr(split + 2))
                                : ops::find_op("", token.text);
  if (op == nullptr)
    return lexer_.error_at(token.offset,
                           fmt::format("expected an operator, found '{}'", token.text));
  return op;
}

// The names before '='; an omitted output has none.
Result<std::vector<std::optional<std::string>>> Parser::parse_node_outputs(Scope& scope) {
  std::vector<std::optional<std::string>> names;
  while (lexer_.peek().kind == Token::Kind::kValue || lexer_.at_word("_")) {
    const std::size_t offset = lexer_.peek().offset;
    if (lexer_.accept_word("_")) {
      names.emplace_back();
    } else {
      TESSERA_ASSIGN(std::string name, parse_definition(scope));
      if (std::find(names.begin(), names.end(), name) != names.end()) {
        return lexer_.error_at(offset, fmt::format("value '%{}' is defined twice", name));
      }
      names.emplace_back(std::move(name));
    }
    if (!lexer_.accept_symbol(",")) break;
  }
  if (!names.empty()) TESSERA_TRY(lexer_.expect_symbol("="));
  return names;
}

// `: types`, `name`, `origins`: all of them may be left out; then inference fills the types, and
// the node comes from a source node of its own.
Status Parser::parse_node_tail(Scope& scope, Node& node) {
  if (lexer_.accept_symbol(":")) {
    bool is_first = true;
    for (const ValueId id : node.outputs) {
      if (id == kNoValue) continue;
      if (!is_first) TESSERA_TRY(lexer_.expect_symbol(","));
      is_first = false;
      TESSERA_ASSIGN(scope.graph.value(id).type, parse_type());
      TESSERA_ASSIGN(scope.graph.value(id).known, parse_known());
    }
  }
  if (lexer_.accept_word("name")) {
    TESSERA_ASSIGN(node.name, lexer_.expect_string("the name of the node in quotes"));
  } else {
    node.name = scope.graph.fresh_name(std::string(node.op->name) + "_" +
                                       std::to_string(scope.graph.nodes().size()));
  }
  if (!lexer_.accept_word("origins")) {
    node.origins = {static_cast<OriginId>(module_.source_nodes.size())};
    module_.source_nodes.push_back({node.name, node.op->qualified_name()});
    return {};
  }
  TESSERA_TRY(lexer_.expect_symbol("["));
  while (!lexer_.accept_symbol("]")) {
    const std::size_t offset = lexer_.peek().offset;
    TESSERA_ASSIGN(const std::int64_t origin, lexer_.expect_int("the number of a source node"));
    if (origin < 0 || static_cast<std::size_t>(origin) >= module_.source_nodes.size()) {
      return lexer_.error_at(offset,
                             fmt::format("expected the number of one of {} source nodes, found {}",
                                         module_.source_nodes.size(), origin));
    }
    node.origins.push_back(static_cast<OriginId>(origin));
    if (!lexer_.at_symbol("]")) TESSERA_TRY(lexer_.expect_symbol(","));
  }
  return {};
}

Status Parser::parse_bodies(Scope& scope, Node& node, int depth) {
  if (!lexer_.at_word("bodies")) return {};
  if (depth >= kMaxBodyDepth)
    return lexer_.expected(fmt::format("at most {} levels of bodies", kMaxBodyDepth));
  lexer_.next();
  TESSERA_TRY(lexer_.expect_symbol("{"));
  while (lexer_.accept_word("body")) {
    auto body = std::make_unique<Graph>();
    if (!lexer_.at_word("captures")) {
      TESSERA_ASSIGN(body->name, lexer_.expect_string("the name of the body in quotes"));
    }
    TESSERA_TRY(lexer_.expect_word("captures"));
    TESSERA_TRY(lexer_.expect_symbol("["));
    TESSERA_ASSIGN(std::vector<ValueId> captured, parse_uses(scope, "]", false));
    TESSERA_TRY(lexer_.expect_symbol("{"));
    Scope inner{*body, {}};
    TESSERA_TRY(parse_statements(inner, depth + 1, nullptr));
    node.bodies.push_back(std::move(body));
    node.captures.push_back(std::move(captured));
  }
  return lexer_.expect_symbol("}");
}

Status Parser::parse_node(Scope& scope, int depth) {
  Node node;
  TESSERA_ASSIGN(const auto names, parse_node_outputs(scope));
  TESSERA_ASSIGN(node.op, parse_op());
  TESSERA_TRY(lexer_.expect_symbol("("));
  TESSERA_ASSIGN(node.inputs, parse_uses(scope, ")", true));
  TESSERA_TRY(parse_attributes(node.attributes));
  for (const auto& name : names)
    node.outputs.push_back(name ? scope.graph.add_value(*name, ValueType{}) : kNoValue);
  TESSERA_TRY(parse_node_tail(scope, node));
  TESSERA_TRY(parse_bodies(scope, node, depth));
  // Last: a node does not see its own outputs.
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i]) scope.values.emplace(*names[i], node.outputs[i]);
  }
  scope.graph.add_node(std::move(node));
  return {};
}

// ---- Graphs, methods, the module ----------------------------------------------------------------

// Through the closing '}'. States stand only in methods.
Status Parser::parse_statements(Scope& scope, int depth, Method* method) {
  while (!lexer_.accept_symbol("}")) {
    if (lexer_.accept_word("input")) {
      TESSERA_TRY(parse_input(scope));
    } else if (lexer_.accept_word("const")) {
      TESSERA_TRY(parse_constant(scope));
    } else if (lexer_.accept_word("output")) {
      TESSERA_TRY(parse_output(scope));
    } else if (method != nullptr && lexer_.accept_word("state")) {
      TESSERA_TRY(parse_state(*method));
    } else {
      TESSERA_TRY(parse_node(scope, depth));
    }
  }
  return {};
}

Status Parser::parse_state(Method& method) {
  StatePair state;
  TESSERA_ASSIGN(state.input, lexer_.expect_string("the name of an input in quotes"));
  TESSERA_TRY(lexer_.expect_symbol("->"));
  TESSERA_ASSIGN(state.output, lexer_.expect_string("the name of an output in quotes"));
  if (lexer_.accept_word("initial")) {
    TESSERA_ASSIGN(state.initial, parse_tensor());
  }
  method.states.push_back(std::move(state));
  return {};
}

Status Parser::parse_method() {
  Method& method = module_.methods.emplace_back();
  TESSERA_ASSIGN(method.name, lexer_.expect_string("the name of the method in quotes"));
  if (lexer_.accept_word("graph")) {
    TESSERA_ASSIGN(method.graph.name, lexer_.expect_string("the name of the graph in quotes"));
  }
  if (lexer_.accept_word("weight")) {
    TESSERA_ASSIGN(method.weight, lexer_.expect_double("the weight of the method"));
  }
  TESSERA_TRY(lexer_.expect_symbol("{"));
  Scope scope{method.graph, {}};
  return parse_statements(scope, 0, &method);
}

Status Parser::parse_meta() {
  const std::size_t offset = lexer_.peek().offset;
  TESSERA_ASSIGN(std::string key, lexer_.expect_string("a key in quotes"));
  TESSERA_TRY(lexer_.expect_symbol("="));
  TESSERA_ASSIGN(std::string value, lexer_.expect_string("a value in quotes"));
  if (!module_.metadata.emplace(key, std::move(value)).second) {
    return lexer_.error_at(offset, fmt::format("metadata '{}' stands twice", key));
  }
  return {};
}

Status Parser::parse_symbol() {
  const std::size_t offset = lexer_.peek().offset;
  TESSERA_ASSIGN(std::string name, lexer_.expect_string("the name of a symbol in quotes"));
  SymbolRange range;
  if (lexer_.accept_word("in")) {
    TESSERA_TRY(lexer_.expect_symbol("["));
    TESSERA_ASSIGN(range.min, lexer_.expect_int("the smallest size"));
    TESSERA_TRY(lexer_.expect_symbol(","));
    if (!lexer_.accept_word("inf")) {
      TESSERA_ASSIGN(range.max, lexer_.expect_int("the largest size or 'inf'"));
    }
    TESSERA_TRY(lexer_.expect_symbol("]"));
  }
  if (!module_.symbols.emplace(name, range).second)
    return lexer_.error_at(offset, fmt::format("symbol '{}' stands twice", name));
  return {};
}

Status Parser::parse_source() {
  const std::size_t offset = lexer_.peek().offset;
  TESSERA_ASSIGN(const std::int64_t number, lexer_.expect_int("the number of the source node"));
  const std::size_t count = module_.source_nodes.size();
  if (number != static_cast<std::int64_t>(count)) {
    return lexer_.error_at(offset,
                           fmt::format("expected source node {} next, found {}", count, number));
  }
  SourceNode source;
  TESSERA_TRY(lexer_.expect_symbol("="));
  TESSERA_ASSIGN(source.name, lexer_.expect_string("the name of the source node in quotes"));
  TESSERA_TRY(lexer_.expect_symbol(":"));
  TESSERA_ASSIGN(source.op_type, lexer_.expect_string("the operator of the source node in quotes"));
  module_.source_nodes.push_back(std::move(source));
  return {};
}

Result<Module> Parser::parse_module() {
  TESSERA_TRY(lexer_.expect_word("tessera.ir"));
  const std::size_t offset = lexer_.peek().offset;
  TESSERA_ASSIGN(const std::int64_t version, lexer_.expect_int("the version of the text form"));
  if (version != 1)
    return lexer_.error_at(offset,
                           fmt::format("expected version 1 of the text form, found {}", version));
  TESSERA_TRY(lexer_.expect_word("module"));
  TESSERA_ASSIGN(module_.name, lexer_.expect_string("the name of the module in quotes"));
  TESSERA_TRY(lexer_.expect_symbol("{"));
  while (!lexer_.accept_symbol("}")) {
    if (lexer_.accept_word("meta")) {
      TESSERA_TRY(parse_meta());
    } else if (lexer_.accept_word("symbol")) {
      TESSERA_TRY(parse_symbol());
    } else if (lexer_.accept_word("source")) {
      TESSERA_TRY(parse_source());
    } else if (lexer_.accept_word("method")) {
      TESSERA_TRY(parse_method());
    } else {
      return lexer_.expected("'meta', 'symbol', 'source', 'method' or '}'");
    }
  }
  if (lexer_.peek().kind != Token::Kind::kEnd) return lexer_.expected("the end of the text");
  return std::move(module_);
}

}  // namespace

Result<Module> parse(std::string_view text, const ConstantPool& pool) {
  return Parser(text, pool).parse_module();
}

}  // namespace tessera::ir
