#include "solve/soft_consistency.h"

#include <algorithm>
#include <array>
#include <span>

// The program's loader picks the clone with code of this file, before the thread sanitizer that
// instruments it is there.
#if defined(__SANITIZE_THREAD__)
#define TESSERA_AVX2_CLONE
#else
#define TESSERA_AVX2_CLONE [[gnu::target_clones("avx2", "default")]]
#endif

namespace tessera::solve {
namespace {

constexpr unsigned kMaxPasses = 20;  // of single changes over all variables

// While sweeping: a table entry or a value that no assignment below the top holds. Shifts stay
// below kMaxShift between sweeps, and within 2.5 budgets (a budget is at most kForbidden / 4) in
// one; so a sum with this in it reaches kForbidden, and no other sum of an entry and a shift does.
constexpr Cost kBarred = 2 * kForbidden;
constexpr Cost kMaxShift = kForbidden / 8;

// least[row] = min over columns of table[row][column] + shift[column].
TESSERA_AVX2_CLONE void least_of_rows(const Cost* table, std::span<const Cost> shift,
                                      std::span<Cost> least) {
  const std::size_t columns = shift.size();
  for (std::size_t row = 0; row < least.size(); ++row, table += columns) {
    Cost low = kBarred;
    for (std::size_t column = 0; column < columns; ++column) {
      low = std::min(low, table[column] + shift[column]);
    }
    least[row] = low;
  }
}

// least[column] = min over rows of table[row][column] + shift[row].
TESSERA_AVX2_CLONE void least_of_columns(const Cost* table, std::span<const Cost> shift,
                                         std::span<Cost> least) {
  std::fill(least.begin(), least.end(), kBarred);
  for (const Cost row_shift : shift) {
    for (std::size_t column = 0; column < least.size(); ++column) {
      least[column] = std::min(least[column], table[column] + row_shift);
    }
    table += least.size();
  }
}

// Sweeps over a network. The tables are read only: what moves in and out of their rows and columns
// stands beside them, as one shift per value of each end, until `store` adds it to them.
class Sweeper {
 public:
  explicit Sweeper(Network& network) : net_(network), starts_(network.edges.size(), 0) { load(); }

  // Forward and backward once.
  void sweep() {
    const auto count = static_cast<std::uint32_t>(net_.vars.size());
    for (std::uint32_t var = 0; var < count && !net_.infeasible(); ++var) {
      if (net_.vars[var].live) visit(var, true);
    }
    for (std::uint32_t var = count; var-- > 0 && !net_.infeasible();) {
      if (net_.vars[var].live) visit(var, false);
    }
    if (net_.infeasible() || !any_shift_above(kMaxShift)) return;
    store();
    load();
  }

  void store() {
    for (std::uint32_t edge = 0; edge < net_.edges.size(); ++edge) {
      if (!net_.edges[edge].live) continue;
      const std::vector<Cost>& columns = ends_[edge][1].shift;
      const Cost* from = &entries_[starts_[edge]];
      Cost* to = net_.mutable_table(edge).data();
      for (const Cost row : ends_[edge][0].shift) {
        for (const Cost column : columns) {
          const bool barred = std::max({*from, row, column}) == kBarred;
          *to++ = barred ? kForbidden : std::min(*from + row + column, kForbidden);
          ++from;
        }
      }
    }
    work_ += entries_.size();
  }

  [[nodiscard]] std::uint64_t work() const { return work_; }

 private:
  // One end of a table. An entry costs what the table says and the shifts of its two values.
  struct End {
    std::vector<Cost> shift;
    bool may_collect = true;  // the least of some row may be above zero
  };

  void load() {
    entries_.clear();
    ends_.assign(net_.edges.size(), {});
    const Cost budget = net_.budget();
    for (std::size_t edge = 0; edge < net_.edges.size(); ++edge) {
      const Network::Edge& from = net_.edges[edge];
      if (!from.live) continue;
      starts_[edge] = entries_.size();
      for (const Cost cost : *from.table) entries_.push_back(cost >= budget ? kBarred : cost);
      ends_[edge][0].shift.assign(net_.vars[from.a].values.size(), 0);
      ends_[edge][1].shift.assign(net_.vars[from.b].values.size(), 0);
    }
    work_ += entries_.size();
  }

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

  [[nodiscard]] bool follows(std::uint32_t edge, std::uint32_t var, bool forward) const {
    return (net_.other(edge, var) > var) == forward;
  }

  // The least of every row goes to the row's value.
  void collect(std::uint32_t edge, std::uint32_t var) {
    const bool by_row = net_.edges[edge].a == var;
    End& own = ends_[edge][by_row ? 0 : 1];
    if (!own.may_collect) return;
    own.may_collect = false;
    const End& other = ends_[edge][by_row ? 1 : 0];
    const Cost* table = &entries_[starts_[edge]];
    least_.resize(own.shift.size());
    if (by_row) {
      least_of_rows(table, other.shift, least_);
    } else {
      least_of_columns(table, other.shift, least_);
    }
    work_ += own.shift.size() * other.shift.size();
    Network::Table& unary = net_.vars[var].unary;
    for (std::size_t i = 0; i < least_.size(); ++i) {
      if (own.shift[i] == kBarred) continue;
      if (least_[i] >= kForbidden) {
        unary[i] = kForbidden;
        own.shift[i] = kBarred;
      } else {
        unary[i] = add(unary[i], least_[i] + own.shift[i]);
        own.shift[i] = -least_[i];
      }
    }
  }

  // Every later table gets an equal share of the values' costs.
  void distribute(std::uint32_t var, bool forward, Cost shares) {
    Network::Table& unary = net_.vars[var].unary;
    const Cost forbidden = net_.budget();
    share_.resize(unary.size());
    bool any = false;
    for (std::size_t i = 0; i < unary.size(); ++i) {
      share_[i] = unary[i] >= forbidden ? kBarred : unary[i] / shares;
      any = any || share_[i] != 0;
    }
    if (!any) return;
    for (const std::uint32_t edge : net_.vars[var].edges) {
      if (!follows(edge, var, forward)) continue;
      std::vector<Cost>& shift = ends_[edge][net_.edges[edge].a == var ? 0 : 1].shift;
      for (std::size_t i = 0; i < shift.size(); ++i) {
        if (share_[i] == kBarred) {
          shift[i] = kBarred;
        } else {
          shift[i] += share_[i];
          unary[i] -= share_[i];
        }
      }
      for (End& end : ends_[edge]) end.may_collect = true;
    }
  }

  [[nodiscard]] bool any_shift_above(Cost most) const {
    for (const std::array<End, 2>& ends : ends_) {
      for (const End& end : ends) {
        for (const Cost shift : end.shift) {
          if (shift != kBarred && (shift > most || shift < -most)) return true;
        }
      }
    }
    return false;
  }

  Network& net_;
  std::vector<Cost> entries_;             // of all tables, one after the other
  std::vector<std::size_t> starts_;       // by edge: its table's first entry
  std::vector<std::array<End, 2>> ends_;  // by edge: the rows' end (a), the columns' end (b)
  std::vector<Cost> least_, share_;       // of one visit
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
  sweeper.sweep();
  sweeper.store();
  return sweeper.work();
}

std::uint64_t improve_bound(Network& network, unsigned patience, std::uint64_t max_work) {
  Sweeper sweeper(network);
  while (!network.infeasible() && sweeper.work() < max_work) {
    const Cost before = network.constant;
    for (unsigned i = 0; i < patience && !network.infeasible(); ++i) sweeper.sweep();
    if (network.constant - before <= network.budget() / 256) break;
  }
  sweeper.store();
  return sweeper.work();
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
