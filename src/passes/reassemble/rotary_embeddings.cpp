// RotaryEmbedding as exporters spell it: x * cos + concat(-x[half:], x[:half]) * sin, with tables
// whose two halves are equal.

#include <fmt/format.h>

#include <cstring>

#include "passes/reassemble/assembler.h"
#include "passes/rewrite.h"

namespace tessera::passes::reassemble {
namespace {

using Judged = std::optional<std::string>;

constexpr std::size_t kMaxTableDepth = 16;

// ---- The turned halves --------------------------------------------------------------------------

// [begin, end) of the last axis that a value takes of x; nothing where it is no such part.
struct Part {
  ir::ValueId of = ir::kNoValue;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

std::optional<std::int64_t> single(const ir::Graph& graph, const ir::Node& node,
                                   std::size_t index) {
  const Tensor* tensor = constant_of(graph, input_of(node, index));
  if (tensor == nullptr || tensor->numel() != 1) return std::nullopt;
  return to_int64_vector(tensor->view())[0];
}

std::optional<Part> sliced_part(const ir::Graph& graph, const ir::Node& node, std::int64_t rank,
                                std::int64_t size) {
  const auto begin = single(graph, node, 1);
  const auto end = single(graph, node, 2);
  const auto axis = single(graph, node, 3);
  const auto step = input_of(node, 4) == ir::kNoValue ? 1 : single(graph, node, 4);
  if (!begin || !end || !axis || step != 1 || (*axis != rank - 1 && *axis != -1))
    return std::nullopt;
  const auto clamped = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size);
  };
  return Part{node.inputs[0], clamped(*begin), clamped(*end)};
}

std::optional<Part> split_part(const ir::Graph& graph, const ir::Node& node, ir::ValueId result,
                               std::int64_t rank) {
  const std::int64_t axis = node.attributes.get_int("axis", 0);
  if (axis != rank - 1 && axis != -1) return std::nullopt;
  Part part{node.inputs[0], 0, 0};
  for (const ir::ValueId output : node.outputs) {
    if (output == ir::kNoValue || !graph.value(output).type.shape) return std::nullopt;
    const auto size = graph.value(output).type.shape->back().constant();
    if (!size) return std::nullopt;
    part.end = part.begin + *size;
    if (output == result) return part;
    part.begin = part.end;
  }
  return std::nullopt;
}

std::optional<Part> part_of(const ir::Graph& graph, ir::ValueId id) {
  id = behind_noise(graph, id);
  const ir::Node* node = graph.producer(id);
  if (node == nullptr) return std::nullopt;
  const auto& shape = graph.value(node->inputs[0]).type.shape;
  if (!shape || shape->empty() || !shape->back().constant()) return std::nullopt;
  const auto rank = static_cast<std::int64_t>(shape->size());
  return is_op(*node, "Slice") ? sliced_part(graph, *node, rank, *shape->back().constant())
                               : split_part(graph, *node, id, rank);
}

// ---- Tables -------------------------------------------------------------------------------------

// Whether both halves of the last axis are equal, and the value that is one half, where there is
// one.
struct Table {
  bool halves_are_equal = false;
  ir::ValueId half = ir::kNoValue;
};

bool constant_has_equal_halves(const Tensor& tensor) {
  const auto width = tensor.dims().empty() ? 0 : tensor.dims().back();
  if (width < 2 || width % 2 != 0 || bits_of(tensor.dtype()) < 8) return false;
  const auto row = static_cast<std::size_t>(width * bits_of(tensor.dtype()) / 8);
  const auto* bytes = static_cast<const char*>(tensor.data());
  for (std::int64_t at = 0; at < tensor.numel() / width; ++at, bytes += row)
    if (std::memcmp(bytes, bytes + row / 2, row / 2) != 0) return false;
  return true;
}

bool has_equal_halves(const ir::Graph& graph, ir::ValueId id, std::size_t depth);

// Operators that leave every element of the last axis where it is.
bool keeps_last_axis(const ir::Graph& graph, const ir::Node& node, std::size_t depth) {
  const auto below = [&](std::size_t input) {
    return has_equal_halves(graph, node.inputs[input], depth + 1);
  };
  if (is_op(node, "Cos") || is_op(node, "Sin") || is_op(node, "Cast") || is_op(node, "Identity"))
    return below(0);
  if (is_op(node, "Mul") || is_op(node, "Add")) {
    for (const std::size_t scalar : {0U, 1U})
      if (scalar_of(graph, node.inputs[scalar])) return below(1 - scalar);
    return false;
  }
  if (is_op(node, "Gather")) {
    const auto& shape = graph.value(node.inputs[0]).type.shape;
    return node.attributes.get_int("axis", 0) == 0 && shape && shape->size() > 1 && below(0);
  }
  if (is_op(node, "Unsqueeze") || is_op(node, "Squeeze") || is_op(node, "Reshape")) {
    const auto& before = graph.value(node.inputs[0]).type.shape;
    const auto& after = graph.value(node.outputs[0]).type.shape;
    return before && after && !before->empty() && !after->empty() &&
           before->back() == after->back() && below(0);
  }
  return false;
}

bool has_equal_halves(const ir::Graph& graph, ir::ValueId id, std::size_t depth) {
  if (depth > kMaxTableDepth) return false;
  if (const Tensor* tensor = constant_of(graph, id)) return constant_has_equal_halves(*tensor);
  const ir::Node* node = graph.producer(id);
  if (node == nullptr) return false;
  if (!is_op(*node, "Concat")) return keeps_last_axis(graph, *node, depth);
  const auto& shape = graph.value(id).type.shape;
  const std::int64_t axis = node->attributes.get_int("axis", 0);
  return shape && node->inputs.size() == 2 &&
         (axis == -1 || axis == static_cast<std::int64_t>(shape->size()) - 1) &&
         behind_noise(graph, node->inputs[0]) == behind_noise(graph, node->inputs[1]);
}

Table read_table(const ir::Graph& graph, ir::ValueId id) {
  Table table{has_equal_halves(graph, id, 0), ir::kNoValue};
  const ir::Node* node = graph.producer(id);
  if (table.halves_are_equal && is_op(node, "Concat")) table.half = node->inputs[0];
  return table;
}

// The table belongs to (batch, position): [batch, 1, length, size] beside x, or fewer dims where
// batch is 1.
std::string table_reason(const Assembler& assembler, ir::ValueId table, const Shape& x,
                         const char* name) {
  const auto& shape = assembler.type(table).shape;
  if (!shape || shape->size() < 2 || shape->size() > 4)
    return fmt::format("{} {} has another rank than 2, 3 or 4", name, assembler.quoted(table));
  Shape wide(4 - shape->size(), Dim(1));
  wide.insert(wide.end(), shape->begin(), shape->end());
  const Shape wanted = {x[0], Dim(1), x[2], x[3]};
  if (wide != wanted)
    return fmt::format("{} {} of shape {} has not one row for each batch and position of {}", name,
                       assembler.quoted(table), to_string(*shape), to_string(x));
  if (!read_table(assembler.view().graph(), table).halves_are_equal)
    return fmt::format("the halves of {} {} are not known to be equal", name,
                       assembler.quoted(table));
  return {};
}

// ---- The family ---------------------------------------------------------------------------------

Judged check(const Assembler& assembler, const Match& match, ir::ValueId result) {
  const ir::Graph& graph = assembler.view().graph();
  const ir::ValueId x = match.value("x");
  const ir::Node& concat = *match.node("concat");
  const auto& shape = assembler.type(x).shape;
  if (!shape || shape->empty() || concat.inputs.size() != 2) return std::nullopt;
  const auto rank = static_cast<std::int64_t>(shape->size());
  const std::int64_t axis = concat.attributes.get_int("axis", 0);
  const auto upper = part_of(graph, match.node("negated")->inputs[0]);
  const auto lower = part_of(graph, concat.inputs[1]);
  const auto size = shape->back().constant();
  if (!upper || !lower || !size || (axis != -1 && axis != rank - 1)) return std::nullopt;
  const bool halves = lower->begin == 0 && lower->end == *size / 2 && upper->begin == *size / 2 &&
                      upper->end == *size && *size % 2 == 0;
  if (!halves)
    return fmt::format("{} is cut at {} and {}: expected two halves of {}", assembler.quoted(x),
                       lower->end, upper->begin, *size);
  if (rank != 4) return fmt::format("{} has rank {}: expected 4", assembler.quoted(x), rank);
  if (!same_type(graph, x, result)) return fmt::format("the tables widen {}", assembler.quoted(x));
  std::string reason = table_reason(assembler, match.value("cosine"), *shape, "cosine");
  if (reason.empty()) reason = table_reason(assembler, match.value("sine"), *shape, "sine");
  return reason;
}

ir::ValueId int64s(Program& program, const char* stem, std::vector<std::int64_t> elements) {
  const auto count = static_cast<std::int64_t>(elements.size());
  return program.constant(stem, Tensor::of<std::int64_t>(DType::kInt64, {count}, elements));
}

// One half of a table as [batch, length, half].
ir::ValueId half_table(Assembler& assembler, Program& program, ir::ValueId id) {
  const auto rank = static_cast<std::int64_t>(assembler.type(id).shape->size());
  const std::int64_t size = *assembler.type(id).shape->back().constant();
  ir::ValueId half = read_table(assembler.graph(), id).half;
  if (half == ir::kNoValue) {
    half = program.step("Slice", {},
                        {id, int64s(program, "starts", {0}), int64s(program, "ends", {size / 2}),
                         int64s(program, "axes", {rank - 1})});
  }
  if (rank == 3) return half;
  return rank == 4 ? program.step("Squeeze", {}, {half, int64s(program, "axes", {1})})
                   : program.step("Unsqueeze", {}, {half, int64s(program, "axes", {0})});
}

void build(Assembler& assembler, const Match& match, Program& program) {
  const ir::ValueId cosine = half_table(assembler, program, match.value("cosine"));
  const ir::ValueId sine = half_table(assembler, program, match.value("sine"));
  program.finish("", "RotaryEmbedding", {}, {match.value("x"), cosine, sine});
}

}  // namespace

void propose_rotary_embeddings(Assembler& assembler) {
  const PatternPtr x = value("x");
  const PatternPtr turned = op(
      "Concat", {op("Neg", {op("Slice|Split", {x})}, "negated"), op("Slice|Split", {x})}, "concat");
  propose(assembler, {"RotaryEmbedding",
                      "Add",
                      {sum({op("Mul", {x, value("cosine")}), op("Mul", {turned, value("sine")})})},
                      check,
                      build});
}

}  // namespace tessera::passes::reassemble
