#include "plan/choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "base/glob.h"
#include "ir/describe.h"
#include "ir/late_sizes.h"

namespace tessera::plan {
namespace {

bool rule_matches(const PlacementRule& rule, const ir::Module& module, const ir::Node& node) {
  return std::ranges::any_of(node.origins, [&](ir::OriginId origin) {
    return names_source(rule.glob, module.source_nodes[origin]);
  });
}

// Permits for a device leave it only to the nodes that they name; forbids take nodes away; a pin
// leaves one device.
std::vector<bool> permitted_devices(const ir::Module& module, const ir::Node& node,
                                    const Target& target, const std::vector<PlacementRule>& rules) {
  std::vector<bool> permitted(target.device_count(), true);
  for (std::uint32_t device = 0; device < target.device_count(); ++device) {
    bool has_permit = false;
    bool is_permitted = false;
    for (const PlacementRule& rule : rules) {
      if (target.info(device).name != rule.device || rule.kind != PlacementRule::Kind::kPermit)
        continue;
      has_permit = true;
      is_permitted = is_permitted || rule_matches(rule, module, node);
    }
    permitted[device] = !has_permit || is_permitted;
  }
  for (const PlacementRule& rule : rules) {
    if (!rule_matches(rule, module, node)) continue;
    const std::uint32_t device = target.find(rule.device);
    if (rule.kind == PlacementRule::Kind::kForbid) permitted[device] = false;
    if (rule.kind == PlacementRule::Kind::kPin)
      for (std::uint32_t other = 0; other < target.device_count(); ++other)
        permitted[other] = permitted[other] && other == device;
  }
  return permitted;
}

std::string_view kind_name(PlacementRule::Kind kind) {
  switch (kind) {
    case PlacementRule::Kind::kPermit: return "permit";
    case PlacementRule::Kind::kForbid: return "forbid";
    case PlacementRule::Kind::kPin: return "pin";
  }
  return "";
}

Status check_rules(const ir::Module& module, const Target& target,
                   const std::vector<PlacementRule>& rules) {
  for (const PlacementRule& rule : rules) {
    const auto name = fmt::format("{} {}={}", kind_name(rule.kind), rule.device, rule.glob);
    if (target.find(rule.device) == target.device_count())
      return fail(ErrorCode::kNotFound, fmt::format("{}: no device '{}': expected one of {}", name,
                                                    rule.device, device_names(target)));
    if (std::ranges::none_of(module.source_nodes, [&](const ir::SourceNode& source) {
          return names_source(rule.glob, source);
        }))
      return fail(ErrorCode::kNotFound,
                  fmt::format("{}: no node of the model matches '{}'", name, rule.glob));
  }
  return {};
}

// Prices take sizes for granted: the bytes of each tensor of known rank can be counted at the
// point.
Status check_sizes(const ir::Graph& graph, const SymbolBindings& point) {
  std::map<ir::ValueId, const ir::Node*> values;  // with the node that gives them
  for (const ir::ValueId id : graph.inputs) values.emplace(id, nullptr);
  for (const auto& node : graph.nodes()) {
    for (const ir::ValueId id : node->inputs) values.emplace(id, nullptr);
    for (const ir::ValueId id : node->outputs) values[id] = node.get();
  }
  values.erase(ir::kNoValue);
  for (const auto& [id, node] : values) {
    const ir::Value& value = graph.value(id);
    if (!value.type.is_tensor() || !value.type.shape) continue;
    const auto place =
        fmt::format("{}value '{}'", node == nullptr ? "" : describe(*node) + ": ", value.name);
    auto dims = evaluate(*value.type.shape, point);
    if (!dims) return tl::unexpected(in_context(std::move(dims).error(), place));
    TESSERA_TRY_IN(checked_nbytes(value.type.dtype, *dims), place);
  }
  return {};
}

// The runtime itself runs control flow, on the host: it reads and gives what interfaces show.
void add_control(ItemOptions& entry, const Target& target) {
  const ir::Node& node = *entry.item.nodes.front();
  Option option;
  option.device = host_device(target);
  for (std::uint32_t device = 0; device < target.device_count(); ++device)
    if (device != option.device)
      entry.refusals[device] = node.op->qualified_name() + ": the host runs control flow";
  option.candidate.kernel = fmt::format("runtime.{}", node.op->name);
  std::ranges::transform(option.candidate.kernel, option.candidate.kernel.begin(),
                         [](char c) { return static_cast<char>(std::tolower(c)); });
  for (const ir::ValueId id : entry.item.inputs)
    option.candidate.inputs.push_back(
        backends::TensorForm{Layout::row_major(), entry.item.graph->value(id).type.dtype});
  for (const ir::ValueId id : entry.item.outputs)
    option.candidate.outputs.push_back(
        {Layout::row_major(), entry.item.graph->value(id).type.dtype});
  entry.options.push_back(std::move(option));
}

const Exclusion* exclusion_of(const std::vector<Exclusion>& excluded, const std::string& device,
                              const std::vector<ir::NodeId>& nodes) {
  const auto found = std::ranges::find_if(excluded, [&](const Exclusion& exclusion) {
    return exclusion.device == device && exclusion.nodes == nodes;
  });
  return found == excluded.end() ? nullptr : &*found;
}

// A device that is never fast does not win by an estimate against a real one that was measured, at
// sizes so small that the estimate is nothing.
void raise_last_resorts(std::vector<Option>& options, const Target& target) {
  constexpr double kAtLeast = 2;  // times the cheapest other way
  double other_us = std::numeric_limits<double>::infinity();
  for (const Option& option : options) {
    const auto& info = target.info(option.device);
    if (!info.last_resort && !info.simulated) other_us = std::min(other_us, option.price.us);
  }
  if (std::isinf(other_us)) return;
  for (Option& option : options)
    if (target.info(option.device).last_resort)
      option.price.us = std::max(option.price.us, round_price_us(kAtLeast * other_us));
}

void add_options(ItemOptions& entry, Target& target, const backends::OfferOptions& offer_options,
                 Pricer& pricer, const std::vector<Exclusion>& excluded) {
  const std::vector<ir::NodeId> nodes = item_nodes(entry.item);
  for (std::uint32_t device = 0; device < target.device_count(); ++device) {
    if (!entry.permitted[device]) {
      entry.refusals[device] = "not permitted by the options";
      continue;
    }
    if (const Exclusion* exclusion = exclusion_of(excluded, target.info(device).name, nodes)) {
      entry.refusals[device] = exclusion->reason;
      continue;
    }
    auto offers = target.devices[device]->offers(entry.item, pricer.point(), offer_options);
    if (offers.candidates.empty()) entry.refusals[device] = std::move(offers.refusal);
    for (backends::Candidate& candidate : offers.candidates)
      entry.options.push_back({device, std::move(candidate), {}});
  }
  const bool has_alternative = std::ranges::any_of(
      entry.options, [&](const Option& option) { return !target.info(option.device).last_resort; });
  std::vector<PriceRequest> requests;
  for (const Option& option : entry.options)
    requests.push_back(
        {.item = &entry.item,
         .device = option.device,
         .candidate = &option.candidate,
         .from = {},
         .to = {},
         .shape = {},
         .estimate_only = has_alternative && target.info(option.device).last_resort});
  pricer.measure(requests);
  for (std::size_t i = 0; i < requests.size(); ++i)
    entry.options[i].price = pricer.price(requests[i]);
  raise_last_resorts(entry.options, target);
}

tl::unexpected<Error> nobody_takes(const ItemOptions& entry, const Target& target) {
  std::string reasons;
  for (const auto& [device, reason] : entry.refusals)
    reasons += fmt::format("; {}: {}", target.info(device).name, reason);
  const ir::Node& node = *entry.item.nodes.front();
  return fail(ErrorCode::kUnimplemented,
              fmt::format("node '{}' ({}): no device takes it{}", node.name,
                          node.op->qualified_name(), reasons));
}

// What the item alone does not tell: what only the run decides about it.
void set_late(ir::WorkItem& item, const ir::LateSizes& late, const Pricer& pricer) {
  for (const ir::NodeId id : item_nodes(item))
    item.is_late = item.is_late || late.nodes.contains(id);
  item.is_loose = std::ranges::any_of(item.outputs,
                                      [&](ir::ValueId id) { return late.allocated.contains(id); });
  item.assumed = pricer.assumed();
}

}  // namespace

std::vector<ir::NodeId> item_nodes(const ir::WorkItem& item) {
  if (item.cover != nullptr) return item.cover->nodes;
  return {item.nodes.front()->id};
}

bool names_source(std::string_view glob, const ir::SourceNode& source) {
  return glob.starts_with("op:") ? glob_matches(glob.substr(3), source.op_type)
                                 : glob_matches(glob, source.name);
}

Result<Choices> enumerate_choices(const ir::Module& module, const ir::Graph& graph,
                                  std::vector<ir::Cover> covers, Target& target,
                                  const std::vector<PlacementRule>& rules,
                                  const backends::OfferOptions& offer_options, Pricer& pricer,
                                  const std::vector<Exclusion>& excluded) {
  TESSERA_TRY(check_rules(module, target, rules));
  TESSERA_TRY(check_sizes(graph, pricer.point()));
  const ir::LateSizes late = ir::find_late_sizes(graph);
  Choices choices;
  choices.covers = std::move(covers);
  std::map<ir::NodeId, std::size_t> positions;
  for (const auto& node : graph.nodes()) {
    positions[node->id] = choices.nodes.size();
    ItemOptions entry{ir::work_item(module, graph, *node),
                      {},
                      {},
                      permitted_devices(module, *node, target, rules)};
    set_late(entry.item, late, pricer);
    if (node->op->structure == ops::Structure::kControlFlow)
      add_control(entry, target);
    else
      add_options(entry, target, offer_options, pricer, excluded);
    choices.nodes.push_back(std::move(entry));
  }
  for (const ir::Cover& cover : choices.covers) {
    ItemOptions entry{ir::work_item(module, graph, cover),
                      {},
                      {},
                      std::vector<bool>(target.device_count(), true)};
    set_late(entry.item, late, pricer);
    for (const ir::NodeId id : cover.nodes)
      for (std::uint32_t device = 0; device < target.device_count(); ++device)
        entry.permitted[device] =
            entry.permitted[device] && choices.nodes[positions[id]].permitted[device];
    add_options(entry, target, offer_options, pricer, excluded);
    choices.cover_options.push_back(std::move(entry));
  }
  std::set<ir::NodeId> covered;
  for (std::size_t c = 0; c < choices.covers.size(); ++c)
    if (!choices.cover_options[c].options.empty())
      covered.insert(choices.covers[c].nodes.begin(), choices.covers[c].nodes.end());
  for (const ItemOptions& entry : choices.nodes)
    if (entry.options.empty() && !covered.contains(entry.item.nodes.front()->id))
      return nobody_takes(entry, target);
  return choices;
}

}  // namespace tessera::plan
