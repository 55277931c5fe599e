#include "solve/components.h"

#include <algorithm>

namespace tessera::solve {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};

void flood(const Network& network, std::uint32_t start, std::uint32_t label,
           std::vector<std::uint32_t>& labels) {
  std::vector<std::uint32_t> stack = {start};
  labels[start] = label;
  while (!stack.empty()) {
    const std::uint32_t var = stack.back();
    stack.pop_back();
    for (const std::uint32_t edge : network.vars[var].edges) {
      const std::uint32_t other = network.other(edge, var);
      if (labels[other] != kNone) continue;
      labels[other] = label;
      stack.push_back(other);
    }
  }
}

}  // namespace

std::vector<Component> split(const Network& network) {
  std::vector<std::uint32_t> labels(network.vars.size(), kNone);
  std::vector<std::uint32_t> local(network.vars.size(), kNone);
  std::vector<Component> components;
  for (std::uint32_t var = 0; var < network.vars.size(); ++var) {
    const Network::Var& variable = network.vars[var];
    if (!variable.live) continue;
    if (labels[var] == kNone) {
      flood(network, var, static_cast<std::uint32_t>(components.size()), labels);
      components.emplace_back().network.top = network.top;
    }
    Component& component = components[labels[var]];
    local[var] = static_cast<std::uint32_t>(component.vars.size());
    component.vars.push_back(var);
    component.network.vars.push_back({variable.id, variable.values, variable.unary, {}, true});
  }
  for (const Network::Edge& edge : network.edges) {
    if (!edge.live) continue;
    Network& part = components[labels[edge.a]].network;
    const auto id = static_cast<std::uint32_t>(part.edges.size());
    part.edges.push_back({local[edge.a], local[edge.b], edge.table, true});
    part.vars[local[edge.a]].edges.push_back(id);
    part.vars[local[edge.b]].edges.push_back(id);
  }
  std::stable_sort(
      components.begin(), components.end(),
      [](const Component& x, const Component& y) { return x.vars.size() < y.vars.size(); });
  return components;
}

}  // namespace tessera::solve
