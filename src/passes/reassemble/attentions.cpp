// Attention in pieces: softmax(scale * Q K^T + mask) V in the many ways that exporters spell it.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "passes/float_elements.h"
#include "passes/reassemble/attention_parts.h"
#include "passes/rewrite.h"

namespace tessera::passes::reassemble {
namespace {

ops::Attributes attributes_of(const AttentionParts& parts) {
  ops::Attributes attributes;
  attributes.set("scale", static_cast<float>(parts.scale));
  if (parts.nan_rows != 0) attributes.set("nan_rows", parts.nan_rows);
  if (parts.softmax_dtype)
    attributes.set("softmax_precision", static_cast<std::int64_t>(*parts.softmax_dtype));
  return attributes;
}

ir::ValueId operand(Program& program, const Operand& part) {
  if (!part.perm) return part.source;
  ops::Attributes attributes;
  attributes.set("perm", *part.perm);
  return program.step("Transpose", std::move(attributes), {part.source});
}

ir::ValueId scalar(Program& program, DType dtype, double element) {
  return program.constant("mask", from_float_elements(dtype, {}, {round_to(dtype, element)}));
}

// What the operator reads as attn_mask: added scores, or true where a key takes part.
ir::ValueId mask(Assembler& assembler, Program& program, const AttentionParts& parts) {
  const Mask& mask = parts.mask;
  if (mask.kind == Mask::Kind::kNone) return ir::kNoValue;
  ir::ValueId id = mask.value;
  const DType dtype = parts.softmax_dtype.value_or(assembler.type(parts.scores->outputs[0]).dtype);
  if (mask.kind != Mask::Kind::kAdded && std::isfinite(mask.low)) {
    const ir::ValueId zero = scalar(program, dtype, 0);
    const ir::ValueId low = scalar(program, dtype, mask.low);
    const bool keeps = mask.kind == Mask::Kind::kKept;
    id = program.step("Where", {}, {id, keeps ? zero : low, keeps ? low : zero});
  } else if (mask.kind == Mask::Kind::kDropped) {
    id = program.step("Not", {}, {id});
  }
  // The operator's scores have an axis of heads between batch and queries.
  const bool lacks_heads = assembler.type(parts.scores->outputs[0]).shape->size() == 3;
  if (lacks_heads && id != ir::kNoValue && assembler.type(id).shape->size() == 3) {
    const std::vector<std::int64_t> axis = {1};
    id = program.step(
        "Unsqueeze", {},
        {id, program.constant("axes", Tensor::of<std::int64_t>(DType::kInt64, {1}, axis))});
  }
  return id;
}

// Heads of operands of rank 3, where they lie side by side in the last axis.
struct Heads {
  std::int64_t query = 1;
  std::int64_t key = 1;
};

bool try_add(Assembler& assembler, const Candidate& candidate, const AttentionParts& parts,
             const Heads& heads, const std::vector<ir::ValueId>& past) {
  Program program = assembler.program(candidate);
  ops::Attributes attributes = attributes_of(parts);
  if (assembler.type(parts.query.source).shape->size() == 3) {
    attributes.set("q_num_heads", heads.query);
    attributes.set("kv_num_heads", heads.key);
  }
  std::vector<ir::ValueId> inputs = {operand(program, parts.query), operand(program, parts.key),
                                     operand(program, parts.value)};
  inputs.push_back(mask(assembler, program, parts));
  inputs.insert(inputs.end(), past.begin(), past.end());
  program.finish("", "Attention", std::move(attributes), std::move(inputs));
  return assembler.add(candidate, program);
}

// ---- With the cache -----------------------------------------------------------------------------

// concat(past, new) along the positions, which the graph gives back; null where it is none.
const ir::Node* cache_append(const Assembler& assembler, const Operand& part,
                             const Candidate& candidate) {
  const ir::Node* node = assembler.view().graph().producer(part.source);
  if (part.perm || !is_op(node, "Concat") || node->inputs.size() != 2) return nullptr;
  const auto& shape = assembler.type(part.source).shape;
  const std::int64_t axis = node->attributes.get_int("axis", 0);
  if (shape->size() != 4 || (axis != 2 && axis != -2)) return nullptr;
  if (!assembler.view().uses().is_output(part.source)) return nullptr;
  for (const ir::Graph::Use& use : assembler.view().uses().uses(part.source))
    if (std::find(candidate.nodes.begin(), candidate.nodes.end(), use.node) ==
        candidate.nodes.end())
      return nullptr;
  return node;
}

void propose_with_cache(Assembler& assembler, Candidate candidate, AttentionParts parts) {
  const ir::Node* key = cache_append(assembler, parts.key, candidate);
  const ir::Node* value = cache_append(assembler, parts.value, candidate);
  if (key == nullptr || value == nullptr || key == value) return;
  candidate.nodes.push_back(key);
  candidate.nodes.push_back(value);
  candidate.outputs.insert(candidate.outputs.begin(), {key->outputs[0], value->outputs[0]});
  parts.key.source = key->inputs[1];
  parts.value.source = value->inputs[1];
  try_add(assembler, candidate, parts, {}, {key->inputs[0], value->inputs[0]});
}

// ---- With the heads side by side ----------------------------------------------------------------

bool moves_heads(const ir::Node* node) {
  const std::vector<std::int64_t> perm = {0, 2, 1, 3};
  return is_op(node, "Transpose") && node->attributes.get_ints("perm") == perm;
}

// Follows an operand back to [batch, length, heads * size]: through the Transpose that moves the
// heads, whether it is a node or is still to come, and the Reshape that tells them apart. Gives the
// heads; 0 where it is spelled otherwise.
std::int64_t flatten(const Assembler& assembler, Operand& part, Candidate& candidate) {
  const ir::UseIndex& uses = assembler.view().uses();
  const ir::Graph& graph = assembler.view().graph();
  const std::vector<std::int64_t> perm = {0, 2, 1, 3};
  ir::ValueId id = part.source;
  if (part.perm ? *part.perm != perm : !moves_heads(graph.producer(id))) return 0;
  if (!part.perm) {
    const ir::Node* moved = graph.producer(id);
    if (uses.sole_reader(id) == nullptr) return 0;
    candidate.nodes.push_back(moved);
    id = moved->inputs[0];
  }
  const ir::Node* reshape = graph.producer(id);
  if (!is_op(reshape, "Reshape") || uses.sole_reader(id) == nullptr) return 0;
  const auto& apart = assembler.type(id).shape;
  const auto& flat = assembler.type(reshape->inputs[0]).shape;
  if (!apart || !flat || apart->size() != 4 || flat->size() != 3) return 0;
  const Shape joined = {(*apart)[0], (*apart)[1], (*apart)[2] * (*apart)[3]};
  if (*flat != joined) return 0;
  candidate.nodes.push_back(reshape);
  part = {reshape->inputs[0], std::nullopt};
  return (*apart)[2].constant().value_or(0);
}

void propose_flat(Assembler& assembler, Candidate candidate, AttentionParts parts) {
  if (assembler.type(parts.result).shape->size() != 4) return;
  const std::int64_t query = flatten(assembler, parts.query, candidate);
  const std::int64_t key = flatten(assembler, parts.key, candidate);
  const std::int64_t value = flatten(assembler, parts.value, candidate);
  const ir::UseIndex& uses = assembler.view().uses();
  const ir::Node* moved = uses.sole_reader(parts.result);
  if (query == 0 || key == 0 || key != value || !moves_heads(moved)) return;
  const ir::Node* reshape = uses.sole_reader(moved->outputs[0]);
  if (!is_op(reshape, "Reshape")) return;
  const auto& apart = assembler.type(moved->outputs[0]).shape;
  const auto& flat = assembler.type(reshape->outputs[0]).shape;
  if (!flat || *flat != Shape{(*apart)[0], (*apart)[1], (*apart)[2] * (*apart)[3]}) return;
  candidate.nodes.push_back(moved);
  candidate.nodes.push_back(reshape);
  candidate.outputs = {reshape->outputs[0]};
  try_add(assembler, candidate, parts, {query, key}, {});
}

void propose_at(Assembler& assembler, const ir::Node& softmax) {
  auto parts = read_attention(assembler, softmax);
  if (!parts) return;
  const Candidate candidate{"Attention", parts->nodes, {parts->result}};
  std::string reason = parts->reason;
  if (reason.empty()) reason = assembler.open_reason(candidate);
  if (!reason.empty()) return assembler.note(candidate, std::move(reason));
  if (!try_add(assembler, candidate, *parts, {}, {})) return;
  propose_with_cache(assembler, candidate, *parts);
  propose_flat(assembler, candidate, *parts);
}

}  // namespace

void propose_attentions(Assembler& assembler) {
  for (const auto& node : assembler.graph().nodes())
    if (is_op(*node, "Softmax") && assembler.view().has_float_result(*node))
      propose_at(assembler, *node);
}

}  // namespace tessera::passes::reassemble
