#include "solve/soft_consistency.h"

#include <algorithm>

namespace tessera::solve {
namespace {

constexpr unsigned kMaxPasses = 20;  // of single changes over all variables

class Sweeper {
 public:
  explicit Sweeper(Network& network) : net_(network) {}

  void visit(std::uint32_t var, bool forward) {
    std::size_t later = 0;
    for (const std::uint32_t edge : net_.vars[var].edges) {
      collect(edge, var);
      if (follows(edge, var, forward)) ++later;
    }
    Network::Table& unary = net_.vars[var].unary;
    const Cost least = *std::min_element(unary.begin(), unary.end());
    if (least >= net_.budget()) return net_.set_infeasible();
    net_.constant += least;
    for (Cost& cost : unary) cost = subtract(cost, least);
    if (later == 0) return;
    const std::size_t earlier = net_.vars[var].edges.size() - later;
    distribute(var, forward, static_cast<Cost>(std::max(later, earlier)));
  }

  [[nodiscard]] std::uint64_t work() const { return work_; }

 private:
  [[nodiscard]] bool follows(std::uint32_t edge, std::uint32_t var, bool forward) const {
    return (net_.other(edge, var) > var) == forward;
  }

  // The least of every row goes to the row's value.
  void collect(std::uint32_t edge, std::uint32_t var) {
    const EdgeView view(net_, edge, var);
    work_ += view.rows() * view.columns();
    Network::Table* table = nullptr;
    Network::Table& unary = net_.vars[var].unary;
    for (std::size_t row = 0; row < view.rows(); ++row) {
      Cost least = kForbidden;
      for (std::size_t column = 0; column < view.columns() && least > 0; ++column) {
        least = std::min(
            least, table == nullptr ? view.at(row, column) : (*table)[view.index(row, column)]);
      }
      if (least == 0) continue;
      if (table == nullptr) table = &net_.mutable_table(edge);
      unary[row] = add(unary[row], least);
      for (std::size_t column = 0; column < view.columns(); ++column) {
        Cost& entry = (*table)[view.index(row, column)];
        entry = subtract(entry, least);
      }
    }
  }

  // Every later table gets an equal share of the values' costs.
  void distribute(std::uint32_t var, bool forward, Cost shares) {
    Network::Table& unary = net_.vars[var].unary;
    Network::Table share(unary.size());
    const Cost forbidden = net_.budget();
    bool any = false;
    for (std::size_t i = 0; i < unary.size(); ++i) {
      share[i] = unary[i] >= forbidden ? kForbidden : unary[i] / shares;
      any = any || share[i] != 0;
    }
    if (!any) return;
    for (const std::uint32_t edge : net_.vars[var].edges) {
      if (!follows(edge, var, forward)) continue;
      const EdgeView view(net_, edge, var);
      work_ += view.rows() * view.columns();
      Network::Table& table = net_.mutable_table(edge);
      for (std::size_t row = 0; row < view.rows(); ++row) {
        if (share[row] == 0) continue;
        if (share[row] != kForbidden) unary[row] -= share[row];
        for (std::size_t column = 0; column < view.columns(); ++column) {
          Cost& entry = table[view.index(row, column)];
          entry = add(entry, share[row]);
        }
      }
    }
  }

  Network& net_;
  std::uint64_t work_ = 0;
};

// The costs of each value of `var` given the neighbours' positions where set.
constexpr std::uint32_t kUnset = ~std::uint32_t{0};
Network::Table conditional_costs(const Network& net, std::uint32_t var,
                                 const std::vector<std::uint32_t>& positions, std::uint64_t& work) {
  Network::Table costs = net.vars[var].unary;
  for (const std::uint32_t edge : net.vars[var].edges) {
    const EdgeView view(net, edge, var);
    const std::uint32_t chosen = positions[view.neighbour()];
    const Network::Table& other = net.vars[view.neighbour()].unary;
    for (std::size_t row = 0; row < view.rows(); ++row) {
      Cost least = kForbidden;
      if (chosen != kUnset) {
        least = view.at(row, chosen);
      } else {
        for (std::size_t column = 0; column < view.columns(); ++column) {
          least = std::min(least, view.at(row, column) + other[column]);
        }
      }
      costs[row] = add(costs[row], least);
    }
    work += chosen != kUnset ? view.rows() : view.rows() * view.columns();
  }
  return costs;
}

std::uint32_t least_position(const Network::Table& costs) {
  return static_cast<std::uint32_t>(std::min_element(costs.begin(), costs.end()) - costs.begin());
}

}  // namespace

std::uint64_t sweep(Network& network) {
  Sweeper sweeper(network);
  const auto count = static_cast<std::uint32_t>(network.vars.size());
  for (std::uint32_t var = 0; var < count && !network.infeasible(); ++var) {
    if (network.vars[var].live) sweeper.visit(var, true);
  }
  for (std::uint32_t var = count; var-- > 0 && !network.infeasible();) {
    if (network.vars[var].live) sweeper.visit(var, false);
  }
  return sweeper.work();
}

std::uint64_t improve_bound(Network& network, unsigned patience, std::uint64_t max_work) {
  std::uint64_t work = 0;
  while (!network.infeasible() && work < max_work) {
    const Cost before = network.constant;
    for (unsigned i = 0; i < patience && !network.infeasible(); ++i) work += sweep(network);
    if (network.constant - before <= network.budget() / 256) break;
  }
  return work;
}

std::vector<std::uint32_t> decode(const Network& network, std::uint64_t& work) {
  const auto count = static_cast<std::uint32_t>(network.vars.size());
  std::vector<std::uint32_t> positions(count, kUnset);
  for (std::uint32_t var = 0; var < count; ++var) {
    if (!network.vars[var].live) continue;
    positions[var] = least_position(conditional_costs(network, var, positions, work));
  }
  bool changed = true;
  for (unsigned pass = 0; pass < kMaxPasses && changed; ++pass) {
    changed = false;
    for (std::uint32_t var = 0; var < count; ++var) {
      if (!network.vars[var].live) continue;
      const Network::Table costs = conditional_costs(network, var, positions, work);
      const std::uint32_t best = least_position(costs);
      if (costs[best] >= costs[positions[var]]) continue;
      positions[var] = best;
      changed = true;
    }
  }
  return positions;
}

Cost cost_of(const Network& network, const std::vector<std::uint32_t>& positions) {
  Cost cost = network.constant;
  for (std::size_t var = 0; var < network.vars.size(); ++var) {
    if (network.vars[var].live) cost = add(cost, network.vars[var].unary[positions[var]]);
  }
  for (const Network::Edge& edge : network.edges) {
    if (!edge.live) continue;
    const std::size_t columns = network.vars[edge.b].values.size();
    cost = add(cost, (*edge.table)[positions[edge.a] * columns + positions[edge.b]]);
  }
  return cost;
}

}  // namespace tessera::solve
