#include "backends/simulated/compile/support.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/glob.h"

namespace tessera::backends::simulated {
namespace {

// Dims of the first operand besides batch and channel; 0 where there are none.
std::size_t spatial_rank(const ir::WorkItem& item, const ir::Node& node) {
  if (node.inputs.empty() || node.inputs.front() == ir::kNoValue) return 0;
  const auto& type = item.graph->value(node.inputs.front()).type;
  return type.shape && type.shape->size() > 2 ? type.shape->size() - 2 : 0;
}

// The values that ONNX gives an attribute where the node leaves it out. Those whose default hangs
// on the operator are not here.
std::vector<double> default_numbers(const ir::WorkItem& item, const ir::Node& node,
                                    const std::string& name) {
  constexpr std::array<std::string_view, 9> kZero = {
      "ceil_mode", "count_include_pad", "storage_order", "align_corners",    "transA",
      "transB",    "exclusive",         "reverse",       "select_last_index"};
  constexpr std::array<std::string_view, 4> kOne = {"group", "keepdims", "largest", "sorted"};
  if (std::ranges::find(kZero, name) != kZero.end()) return {0};
  if (std::ranges::find(kOne, name) != kOne.end()) return {1};
  if (name == "strides" || name == "dilations")
    return std::vector<double>(spatial_rank(item, node), 1);
  if (name == "pads") return std::vector<double>(2 * spatial_rank(item, node), 0);
  return {};
}

std::vector<double> numbers_of(const ir::WorkItem& item, const ir::Node& node,
                               const std::string& name) {
  const auto* value = node.attributes.find(name);
  if (value == nullptr) return default_numbers(item, node, name);
  if (const auto* i = std::get_if<std::int64_t>(value)) return {static_cast<double>(*i)};
  if (const auto* f = std::get_if<float>(value)) return {*f};
  if (const auto* ints = std::get_if<std::vector<std::int64_t>>(value))
    return {ints->begin(), ints->end()};
  if (const auto* floats = std::get_if<std::vector<float>>(value))
    return {floats->begin(), floats->end()};
  return {};
}

std::string text_of(const ir::Node& node, const std::string& name) {
  if (const auto* value = node.attributes.find(name))
    if (const auto* text = std::get_if<std::string>(value)) return *text;
  if (name == "mode")
    return node.op->name == "Pad" ? "constant" : node.op->name == "Resize" ? "nearest" : "";
  return name == "auto_pad" ? "NOTSET" : "";
}

bool holds(const AttributeRule& rule, const ir::WorkItem& item, const ir::Node& node) {
  if (rule.min || rule.max) {
    const auto found = numbers_of(item, node, rule.name);
    return !found.empty() && std::ranges::all_of(found, [&](double value) {
      return (!rule.min || value >= *rule.min) && (!rule.max || value <= *rule.max);
    });
  }
  if (const auto* text = std::get_if<std::string>(&rule.equals))
    return text_of(node, rule.name) == *text;
  const auto found = numbers_of(item, node, rule.name);
  if (const auto* list = std::get_if<std::vector<double>>(&rule.equals)) return found == *list;
  return found.size() == 1 && found.front() == std::get<double>(rule.equals);
}

std::string found_text(const ir::WorkItem& item, const ir::Node& node, const std::string& name) {
  if (std::string text = text_of(node, name); !text.empty()) return text;
  const auto found = numbers_of(item, node, name);
  return found.size() == 1 ? fmt::format("{:g}", found.front())
                           : fmt::format("[{:g}]", fmt::join(found, ", "));
}

std::string expected_text(const AttributeRule& rule) {
  if (rule.min && rule.max) return fmt::format("{:g} to {:g}", *rule.min, *rule.max);
  if (rule.min) return fmt::format("at least {:g}", *rule.min);
  if (rule.max) return fmt::format("at most {:g}", *rule.max);
  if (const auto* text = std::get_if<std::string>(&rule.equals)) return *text;
  if (const auto* list = std::get_if<std::vector<double>>(&rule.equals))
    return fmt::format("[{:g}]", fmt::join(*list, ", "));
  return fmt::format("{:g}", std::get<double>(rule.equals));
}

std::size_t largest_rank(const ir::WorkItem& item, const ir::Node& node) {
  std::size_t rank = 0;
  for (const auto* list : {&node.inputs, &node.outputs})
    for (const ir::ValueId id : *list)
      if (id != ir::kNoValue) rank = std::max(rank, item.graph->value(id).type.shape->size());
  return rank;
}

// Why one entry of `supports` does not take the node; empty where it does.
std::string entry_refusal(const SupportRule& rule, const ir::WorkItem& item, const ir::Node& node,
                          DType dtype) {
  if (!rule.dtypes.empty() && std::ranges::find(rule.dtypes, dtype) == rule.dtypes.end()) {
    std::string names;
    for (const DType entry : rule.dtypes)
      names += (names.empty() ? "" : ", ") + std::string(to_string(entry));
    return fmt::format("{}: {} is not supported (supports: {})", rule.op, to_string(dtype), names);
  }
  if (rule.max_rank && static_cast<std::int64_t>(largest_rank(item, node)) > *rule.max_rank)
    return fmt::format("{}: rank {} is not supported (supports: at most {})", rule.op,
                       largest_rank(item, node), *rule.max_rank);
  for (const AttributeRule& where : rule.where)
    if (!holds(where, item, node))
      return fmt::format("{}: {}={} is not supported (supports: {})", rule.op, where.name,
                         found_text(item, node, where.name), expected_text(where));
  return {};
}

bool lacked(const SupportRule& rule, const ir::WorkItem& item, const ir::Node& node, DType dtype) {
  const bool dtype_listed =
      rule.dtypes.empty() || std::ranges::find(rule.dtypes, dtype) != rule.dtypes.end();
  return rule.op == node.op->name && dtype_listed &&
         std::ranges::all_of(rule.where,
                             [&](const AttributeRule& where) { return holds(where, item, node); });
}

std::string supports_refusal(const Profile& profile, const ir::WorkItem& item, const ir::Node& node,
                             DType dtype) {
  if (!profile.supports) return {};
  std::string reason;
  for (const SupportRule& rule : *profile.supports) {
    if (rule.op != node.op->name) continue;
    std::string entry = entry_refusal(rule, item, node, dtype);
    if (entry.empty()) return {};
    reason = std::move(entry);
  }
  return reason.empty() ? fmt::format("{}: the operator is not among those that '{}' supports",
                                      node.op->name, profile.name)
                        : reason;
}

}  // namespace

std::string refusal(const Profile& profile, const ir::WorkItem& item, const ir::Node& node,
                    DType dtype) {
  if (std::string reason = supports_refusal(profile, item, node, dtype); !reason.empty())
    return reason;
  for (const SupportRule& rule : profile.lacks) {
    if (!lacked(rule, item, node, dtype)) continue;
    if (rule.where.empty() && rule.dtypes.empty())
      return fmt::format("{}: the operator is not supported by '{}'", node.op->name, profile.name);
    if (rule.where.empty())
      return fmt::format("{}: {} is not supported", node.op->name, to_string(dtype));
    const auto& where = rule.where.front();
    return fmt::format("{}: {}={} is not supported", node.op->name, where.name,
                       found_text(item, node, where.name));
  }
  if (profile.only && std::ranges::find(*profile.only, node.op->name) == profile.only->end())
    return fmt::format("{}: '{}' supports only {}", node.op->name, profile.name,
                       fmt::join(*profile.only, ", "));
  if (profile.nodes) {
    const auto matches = [&](ir::OriginId origin) {
      return std::ranges::any_of(*profile.nodes, [&](const std::string& glob) {
        return glob_matches(glob, item.module->source_nodes[origin].name);
      });
    };
    if (!std::ranges::all_of(node.origins, matches))
      return fmt::format("{}: '{}' takes only the nodes {}", node.op->name, profile.name,
                         fmt::join(*profile.nodes, ", "));
  }
  return {};
}

}  // namespace tessera::backends::simulated
