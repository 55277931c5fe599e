// Operators whose bodies become nodes of their own: FlexAttention's are inlined, SequenceMap's and
// that of the first version of Scan stand in a Loop. Backends and passes know none of them.

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/error.h"
#include "import/graph_builder.h"
#include "import/upgrade.h"
#include "io/onnx.pb.h"
#include "ops/op_table.h"

namespace tessera::importer {
namespace {

using Kind = ValueType::Kind;

ops::Attributes one_attribute(const char* name, ops::AttributeValue value) {
  ops::Attributes attributes;
  attributes.set(name, std::move(value));
  return attributes;
}

// The known last size of a value, an error where it is not known.
Result<std::int64_t> head_size(const ValueType* type) {
  const auto size = type != nullptr && type->shape && !type->shape->empty()
                        ? type->shape->back().constant()
                        : std::nullopt;
  if (size) return *size;
  return fail(ErrorCode::kUnimplemented,
              "input 'Q': expected a known size of one head, or the attribute 'scale'");
}

// Keys or values with each head as often as query heads share it.
ops::Operand repeat_heads(NodeUpgrade& build, ops::Operand query, ops::Operand shared) {
  const auto sizes = [&](ops::Operand of, std::int64_t start, std::int64_t end) {
    ops::Attributes range = one_attribute("start", start);
    range.set("end", end);
    return build.node("Shape", std::move(range), {of}, 1)[0];
  };
  const auto join = [&](std::vector<ops::Operand> parts) {
    return build.node("Concat", one_attribute("axis", std::int64_t{0}), std::move(parts), 1)[0];
  };
  const std::int64_t two = 2;
  const auto axis = build.constant(Tensor::of<std::int64_t>(DType::kInt64, {1}, {&two, 1}));
  const auto times = build.node("Div", {}, {sizes(query, 1, 2), sizes(shared, 1, 2)}, 1)[0];
  const auto wide = build.node("Unsqueeze", {}, {shared, axis}, 1)[0];
  const auto repeated =
      build.node("Expand", {}, {wide, join({sizes(shared, 0, 2), times, sizes(shared, 2, 4)})}, 1);
  const auto target = join({sizes(query, 0, 2), sizes(shared, 2, 4)});
  return build.node("Reshape", {}, {repeated[0], target}, 1)[0];
}

}  // namespace

Result<std::vector<ir::ValueId>> GraphBuilder::inline_body(const BoundAttribute& body,
                                                           GraphContext& context,
                                                           const std::string& prefix,
                                                           const std::vector<ir::ValueId>& inputs) {
  const onnx::GraphProto& proto = body.proto->g();
  if (static_cast<std::size_t>(proto.input_size()) != inputs.size())
    return fail(ErrorCode::kInvalidArgument, fmt::format("expected {} formal inputs, found {}",
                                                         inputs.size(), proto.input_size()));
  Scope scope;
  scope.context = &context;
  scope.outer = body.scope;
  scope.opsets = body.scope->opsets;
  scope.attributes = body.scope->attributes;
  scope.node_prefix = prefix;
  scope.value_prefix = prefix;
  scope.call_depth = body.scope->call_depth;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    scope.names.emplace(proto.input(static_cast<int>(i)).name(), inputs[i]);
  for (const auto& tensor : proto.initializer()) {
    TESSERA_ASSIGN(Tensor elements, constants_.read(tensor));
    TESSERA_ASSIGN(const ir::ValueId id,
                   context.add_constant(scope.value_name(tensor.name()), std::move(elements)));
    scope.names.emplace(tensor.name(), id);
  }
  TESSERA_TRY(read_hints(proto, scope));
  TESSERA_TRY(build_nodes(list_of(proto), scope));
  TESSERA_TRY(check_value_infos(proto, scope));
  std::vector<ir::ValueId> outputs;
  for (const auto& output : proto.output()) {
    TESSERA_ASSIGN(const auto id, scope.find(output.name()));
    if (!id || *id == ir::kNoValue)
      return fail(
          ErrorCode::kNotFound,
          fmt::format("output '{}': no node, input or initializer makes it", output.name()));
    outputs.push_back(*id);
  }
  return outputs;
}

bool GraphBuilder::has_inlined_body(const Pending& node) {
  return node.op->name == "FlexAttention" || node.op->name == "SequenceMap" ||
         (node.op->name == "Scan" && node.since_version < 9);
}

Status GraphBuilder::build_inlined(Pending& node) {
  if (node.op->name == "Scan") return build_batched_scan(node);
  return node.op->name == "FlexAttention" ? build_flex_attention(node) : build_sequence_map(node);
}

// ---- FlexAttention ------------------------------------------------------------------------------

Status GraphBuilder::modify(const Pending& node, const std::string& name, ir::ValueId& value) {
  const auto body = node.graphs.find(name);
  if (body == node.graphs.end()) return {};
  auto outputs =
      inline_body(body->second, *node.scope.context, node.name + "/" + name + "/", {value});
  if (!outputs)
    return tl::unexpected(
        in_context(std::move(outputs).error(), fmt::format("attribute '{}'", name)));
  if (outputs->size() != 1)
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("attribute '{}': expected one output, found {}", name, outputs->size()));
  value = outputs->front();
  return {};
}

Status GraphBuilder::build_flex_attention(Pending& node) {
  NodeUpgrade build(emitter_, *node.scope.context, node.name, node.origin);
  if (node.inputs.size() != 3)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("expected the inputs Q, K and V, found {}", node.inputs.size()));
  const std::vector<ops::Operand> in = to_operands(node.inputs);
  const ValueType* query = build.type(in[0]);
  const bool is_double = query != nullptr && query->dtype == DType::kFp64;
  const auto precision = node.attributes.get_int(
      "softmax_precision", static_cast<std::int64_t>(is_double ? DType::kFp64 : DType::kFp32));
  if (node.graphs.empty()) {
    node.attributes.set("softmax_precision", precision);
    const auto y = build.node("Attention", node.attributes, in, 1);
    TESSERA_TRY(build.status());
    return bind_replacement(node, build, y);
  }
  if (!node.attributes.has("scale")) {
    TESSERA_ASSIGN(const std::int64_t size, head_size(query));
    node.attributes.set("scale", 1 / std::sqrt(static_cast<float>(size)));
  }
  const float scale = node.attributes.get_float("scale", 1);
  const auto cast = [&](ops::Operand of) {
    return build.node("Cast", one_attribute("to", precision), {of}, 1)[0];
  };
  const auto factor = cast(build.constant(Tensor::of<float>(DType::kFp32, {}, {&scale, 1})));
  const auto scaled = build.node("Mul", {}, {cast(in[0]), factor}, 1)[0];
  const auto keys =
      build.node("Transpose", one_attribute("perm", std::vector<std::int64_t>{0, 1, 3, 2}),
                 {cast(repeat_heads(build, in[0], in[1]))}, 1);
  auto scores = static_cast<ir::ValueId>(build.node("MatMul", {}, {scaled, keys[0]}, 1)[0]);
  TESSERA_TRY(build.status());
  TESSERA_TRY(modify(node, "score_mod", scores));
  auto weights =
      static_cast<ir::ValueId>(build.node("Softmax", one_attribute("axis", std::int64_t{-1}),
                                          {static_cast<ops::Operand>(scores)}, 1)[0]);
  TESSERA_TRY(build.status());
  TESSERA_TRY(modify(node, "prob_mod", weights));
  const auto values = cast(repeat_heads(build, in[0], in[2]));
  const auto y = build.node("MatMul", {}, {static_cast<ops::Operand>(weights), values}, 1);
  const auto result = build.node("CastLike", {}, {y[0], in[0]}, 1);
  TESSERA_TRY(build.status());
  return bind_replacement(node, build, result);
}

// ---- Scan with a batch axis ---------------------------------------------------------------------

// The body of a loop over the batch: one sample of each operand, scanned as the newest version
// does.
Result<GraphBuilder::Body> GraphBuilder::build_scan_of_sample(const Pending& node) {
  Body body;
  body.graph = std::make_unique<ir::Graph>();
  body.graph->name = node.name;
  GraphContext context(*body.graph, budget_);
  context.parent = node.scope.context;
  const auto formal = [&](const char* name, DType dtype) {
    return context.add_input(context.unique_value_name(name), ValueType::tensor(dtype, Shape{}));
  };
  TESSERA_ASSIGN(const ir::ValueId counter, formal("sample", DType::kInt64));
  TESSERA_ASSIGN(const ir::ValueId condition, formal("condition", DType::kBool));
  const auto emit = [&](NewNode added) {
    added.origin = node.origin;
    return emitter_.emit(context, std::move(added));
  };
  NewNode scan;
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    NewNode gather;
    gather.op = ops::find_op("", "Gather");
    gather.name = node.name + "/Gather";
    TESSERA_ASSIGN(const ir::ValueId operand, context.capture(*node.scope.context, node.inputs[i]));
    gather.inputs = {operand, counter};
    gather.outputs = {context.unique_value_name(gather.name + "_out")};
    TESSERA_ASSIGN(const auto made, emit(std::move(gather)));
    scan.inputs.push_back(made.front());
  }
  Scope scope;
  scope.context = &context;
  scope.outer = &node.scope;
  scope.opsets = node.scope.opsets;
  scope.call_depth = node.scope.call_depth;
  Pending sample{node.proto,  scope,        node.name, node.place,  node.op,    9,
                 scan.inputs, node.outputs, {},        node.graphs, node.origin};
  TESSERA_ASSIGN(auto bodies, build_bodies(sample));
  scan.op = node.op;
  scan.name = node.name + "/Scan";
  scan.attributes.set("num_scan_inputs", node.attributes.get_int("num_scan_inputs", 0));
  if (node.attributes.has("directions"))
    scan.attributes.set("scan_input_directions", node.attributes.get_ints("directions"));
  scan.bodies.push_back(std::move(bodies.front().graph));
  scan.captures.push_back(std::move(bodies.front().captures));
  for (std::size_t i = 0; i < node.outputs.size(); ++i)
    scan.outputs.push_back(context.unique_value_name(scan.name + "_out"));
  TESSERA_ASSIGN(const auto results, emit(std::move(scan)));
  NewNode again;
  again.op = ops::find_op("", "Identity");
  again.name = node.name + "/Identity";
  again.inputs = {condition};
  again.outputs = {context.unique_value_name(again.name + "_out")};
  TESSERA_ASSIGN(body.graph->outputs, emit(std::move(again)));
  body.graph->outputs.insert(body.graph->outputs.end(), results.begin(), results.end());
  forget_types(*body.graph);
  body.captures = std::move(context.capture_sources);
  return body;
}

// All results are gathered along the first axis, which is that of the batch.
Status GraphBuilder::build_batched_scan(Pending& node) {
  if (node.inputs.size() < 2)
    return fail(ErrorCode::kInvalidArgument, "Scan: expected an input to scan, found none");
  if (node.inputs[0] != ir::kNoValue)
    return fail(ErrorCode::kUnimplemented,
                "Scan: input 'sequence_lens' of version 8 is not supported");
  auto sample = build_scan_of_sample(node);
  if (!sample) return tl::unexpected(std::move(sample).error());
  NodeUpgrade build(emitter_, *node.scope.context, node.name, node.origin);
  ops::Attributes first = one_attribute("start", std::int64_t{0});
  first.set("end", std::int64_t{1});
  const auto batch =
      build.node("Shape", first, {static_cast<ops::Operand>(node.inputs.back())}, 1)[0];
  ops::UpgradeNode loop;
  loop.op_type = "Loop";
  loop.inputs = {build.node("Squeeze", {}, {batch}, 1)[0], ops::kNoOperand};
  TESSERA_TRY(build.status());
  node.op = ops::find_op("", "Loop");
  std::vector<Body> bodies;
  bodies.push_back(*std::move(sample));
  return emit_operator(node, std::move(loop), std::move(bodies));
}

// ---- SequenceMap --------------------------------------------------------------------------------

// One step of the loop: elements of all sequences at the counter, the body, its results appended.
// `dtypes` are those of the results.
Result<GraphBuilder::Body> GraphBuilder::build_map_step(const Pending& node,
                                                        std::vector<DType>& dtypes) {
  const BoundAttribute& proto = node.graphs.at("body");
  const auto result_count = static_cast<std::size_t>(proto.proto->g().output_size());
  Body body;
  body.graph = std::make_unique<ir::Graph>();
  body.graph->name = node.name;
  GraphContext context(*body.graph, budget_);
  context.parent = node.scope.context;
  const auto emit = [&](const char* type, std::vector<ir::ValueId> inputs) -> Result<ir::ValueId> {
    NewNode added;
    added.op = ops::find_op("", type);
    added.name = node.name + "/" + type;
    added.inputs = std::move(inputs);
    added.outputs = {context.unique_value_name(added.name + "_out")};
    added.origin = node.origin;
    return emitter_.emit(context, std::move(added)).map([](const auto& ids) { return ids[0]; });
  };
  const auto formal = [&](const char* name, ValueType type) {
    return context.add_input(context.unique_value_name(name), std::move(type));
  };
  const auto scalar = [](DType dtype) { return ValueType::tensor(dtype, Shape{}); };
  TESSERA_ASSIGN(const ir::ValueId counter, formal("iteration", scalar(DType::kInt64)));
  TESSERA_ASSIGN(const ir::ValueId condition, formal("condition", scalar(DType::kBool)));
  std::vector<ir::ValueId> gathered(result_count);
  for (ir::ValueId& sequence : gathered) {
    TESSERA_ASSIGN(sequence, formal("gathered", {}));
  }
  std::vector<ir::ValueId> elements;
  for (const ir::ValueId input : node.inputs) {
    TESSERA_ASSIGN(const ir::ValueId here, context.capture(*node.scope.context, input));
    elements.push_back(here);
    if (here != ir::kNoValue && body.graph->value(here).type.kind == Kind::kSequence) {
      TESSERA_ASSIGN(elements.back(), emit("SequenceAt", {here, counter}));
    }
  }
  TESSERA_ASSIGN(const auto results, inline_body(proto, context, node.name + "/", elements));
  TESSERA_ASSIGN(const ir::ValueId again, emit("Identity", {condition}));
  body.graph->outputs = {again};
  for (std::size_t i = 0; i < result_count; ++i) {
    const ValueType& type = body.graph->value(results[i]).type;
    if (!type.is_tensor())
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("output {}: expected a tensor, found {}", i, type.to_string()));
    dtypes.push_back(type.dtype);
    body.graph->value(gathered[i]).type =
        ValueType::sequence(ValueType::tensor(type.dtype, std::nullopt));
    TESSERA_ASSIGN(const ir::ValueId longer, emit("SequenceInsert", {gathered[i], results[i]}));
    body.graph->outputs.push_back(longer);
  }
  forget_types(*body.graph);
  body.captures = std::move(context.capture_sources);
  return body;
}

Status GraphBuilder::build_sequence_map(Pending& node) {
  const ir::Graph& graph = *node.scope.context->graph;
  const bool over_sequence = !node.inputs.empty() && node.inputs[0] != ir::kNoValue &&
                             graph.value(node.inputs[0]).type.kind == Kind::kSequence;
  if (!over_sequence)
    return fail(ErrorCode::kInvalidArgument, "input 'input_sequence': expected a sequence");
  if (!node.graphs.contains("body"))
    return fail(ErrorCode::kInvalidArgument, "attribute 'body': expected a graph, found none");
  std::vector<DType> dtypes;
  auto step = build_map_step(node, dtypes);
  if (!step) return tl::unexpected(in_context(std::move(step).error(), "attribute 'body'"));
  NodeUpgrade build(emitter_, *node.scope.context, node.name, node.origin);
  ops::UpgradeNode loop;
  loop.op_type = "Loop";
  loop.inputs = {
      build.node("SequenceLength", {}, {static_cast<ops::Operand>(node.inputs[0])}, 1)[0],
      ops::kNoOperand};
  for (const DType dtype : dtypes)
    loop.inputs.push_back(build.node(
        "SequenceEmpty", one_attribute("dtype", static_cast<std::int64_t>(dtype)), {}, 1)[0]);
  TESSERA_TRY(build.status());
  while (node.outputs.size() < dtypes.size()) node.outputs.emplace_back();
  node.op = ops::find_op("", "Loop");
  std::vector<Body> bodies;
  bodies.push_back(*std::move(step));
  return emit_operator(node, std::move(loop), std::move(bodies));
}

}  // namespace tessera::importer
