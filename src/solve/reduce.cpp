#include "solve/reduce.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/error.h"

namespace tessera::solve {
namespace {

// Dominance compares every two values over every neighbour; above this many entry comparisons for
// one variable it is left to the search.
constexpr std::uint64_t kDominanceWork = 2'000'000;

class Reducer {
 public:
  Reducer(Network& network, ReductionCounts& counts) : net_(network), counts_(counts) {
    queued_.assign(net_.vars.size(), false);
  }

  ReduceResult run(const std::vector<std::uint32_t>& seeds) {
    if (seeds.empty()) {
      for (std::uint32_t var = 0; var < net_.vars.size(); ++var) push(var);
    } else {
      for (const std::uint32_t var : seeds) push(var);
    }
    while (!queue_.empty() && !net_.infeasible()) {
      const std::uint32_t var = queue_.front();
      queue_.pop_front();
      queued_[var] = false;
      if (net_.vars[var].live) visit(var);
    }
    return std::move(result_);
  }

 private:
  void push(std::uint32_t var) {
    if (queued_[var] || !net_.vars[var].live) return;
    queued_[var] = true;
    queue_.push_back(var);
  }
  void push_neighbours(std::uint32_t var) {
    for (const std::uint32_t edge : net_.vars[var].edges) push(net_.other(edge, var));
  }

  void visit(std::uint32_t var) {
    shift_to_unary(var);
    if (!shift_to_constant(var) || !remove_forbidden(var)) return;
    if (eliminate_small(var)) return;
    if (remove_dominated(var)) eliminate_small(var);
  }

  // Moves the least entry of every row (value of `var`) to that value's cost, and of every column
  // to the neighbour's; drops tables that are then zero.
  void shift_to_unary(std::uint32_t var) {
    const std::vector<std::uint32_t> edges = net_.vars[var].edges;
    for (const std::uint32_t edge : edges) {
      const std::uint32_t neighbour = net_.other(edge, var);
      shift_rows(edge, var);
      if (shift_rows(edge, neighbour)) push(neighbour);
      if (is_zero(edge)) {
        net_.remove_edge(edge);
        ++counts_.dropped_pairs;
        push(neighbour);
      }
    }
  }

  bool shift_rows(std::uint32_t edge, std::uint32_t var) {
    const EdgeView view(net_, edge, var);
    Network::Table least(view.rows(), kForbidden);
    for (std::size_t row = 0; row < view.rows(); ++row) {
      for (std::size_t column = 0; column < view.columns() && least[row] > 0; ++column) {
        least[row] = std::min(least[row], view.at(row, column));
      }
    }
    result_.work += view.rows() * view.columns();
    if (std::all_of(least.begin(), least.end(), [](Cost cost) { return cost == 0; })) return false;
    Network::Table& table = net_.mutable_table(edge);
    bool changed = false;
    for (std::size_t row = 0; row < view.rows(); ++row) {
      if (least[row] == 0) continue;
      Cost& unary = net_.vars[var].unary[row];
      changed = changed || unary < kForbidden;
      unary = add(unary, least[row]);
      for (std::size_t column = 0; column < view.columns(); ++column) {
        Cost& entry = table[view.index(row, column)];
        entry = subtract(entry, least[row]);
      }
    }
    return changed;
  }

  [[nodiscard]] bool is_zero(std::uint32_t edge) const {
    const Network::Table& table = *net_.edges[edge].table;
    return std::all_of(table.begin(), table.end(), [](Cost cost) { return cost == 0; });
  }

  // False when the network turns out infeasible.
  bool shift_to_constant(std::uint32_t var) {
    Network::Table& unary = net_.vars[var].unary;
    const Cost least = *std::min_element(unary.begin(), unary.end());
    if (least >= net_.budget()) {
      net_.set_infeasible();
      return false;
    }
    net_.constant += least;
    for (Cost& cost : unary) cost = subtract(cost, least);
    return true;
  }

  bool remove_forbidden(std::uint32_t var) {
    const Network::Table bounds = value_bounds(net_, var);
    for (const std::uint32_t edge : net_.vars[var].edges) {
      result_.work += net_.edges[edge].table->size();
    }
    std::vector<std::uint32_t> kept;
    for (std::uint32_t i = 0; i < bounds.size(); ++i) {
      if (bounds[i] < net_.budget()) kept.push_back(i);
    }
    if (kept.empty()) {
      net_.set_infeasible();
      return false;
    }
    counts_.forbidden_choices += keep(var, kept);
    return true;
  }

  // Returns how many values went.
  std::uint64_t keep(std::uint32_t var, const std::vector<std::uint32_t>& kept) {
    const std::uint64_t removed = net_.vars[var].values.size() - kept.size();
    if (removed == 0) return 0;
    net_.keep_values(var, kept);
    push(var);
    push_neighbours(var);
    return removed;
  }

  // True when the variable is gone.
  bool eliminate_small(std::uint32_t var) {
    const Network::Var& variable = net_.vars[var];
    if (variable.values.size() == 1) {
      fold_single(var);
      ++counts_.single_choice;
      return true;
    }
    switch (variable.edges.size()) {
      case 0: ++counts_.degree0; break;
      case 1:
        fold_degree1(var);
        ++counts_.degree1;
        break;
      case 2:
        fold_degree2(var);
        ++counts_.degree2;
        break;
      default: return false;
    }
    push_neighbours(var);
    const std::vector<std::uint32_t> edges = net_.vars[var].edges;
    if (edges.empty())
      net_.constant += *std::min_element(variable.unary.begin(), variable.unary.end());
    eliminate(net_, var, result_.eliminations);
    if (pending_table_.empty()) return true;
    if (net_.add_table(pending_a_, pending_b_, std::move(pending_table_))) ++counts_.merged_pairs;
    pending_table_.clear();
    return true;
  }

  void fold_single(std::uint32_t var) {
    push_neighbours(var);
    net_.constant = add(net_.constant, net_.vars[var].unary[0]);
    for (const std::uint32_t edge : net_.vars[var].edges) {
      const EdgeView view(net_, edge, var);
      Network::Table& unary = net_.vars[view.neighbour()].unary;
      for (std::size_t column = 0; column < view.columns(); ++column) {
        unary[column] = add(unary[column], view.at(0, column));
      }
    }
    net_.vars[var].unary[0] = 0;
    eliminate(net_, var, result_.eliminations);
  }

  void fold_degree1(std::uint32_t var) {
    const EdgeView view(net_, net_.vars[var].edges[0], var);
    const Network::Table& own = net_.vars[var].unary;
    Network::Table& unary = net_.vars[view.neighbour()].unary;
    for (std::size_t column = 0; column < view.columns(); ++column) {
      Cost least = kForbidden;
      for (std::size_t row = 0; row < view.rows(); ++row) {
        least = std::min(least, own[row] + view.at(row, column));
      }
      unary[column] = add(unary[column], least);
    }
    result_.work += view.rows() * view.columns();
  }

  void fold_degree2(std::uint32_t var) {
    const EdgeView first(net_, net_.vars[var].edges[0], var);
    const EdgeView second(net_, net_.vars[var].edges[1], var);
    const Network::Table& own = net_.vars[var].unary;
    pending_a_ = first.neighbour();
    pending_b_ = second.neighbour();
    pending_table_.assign(first.columns() * second.columns(), kForbidden);
    for (std::size_t row = 0; row < first.rows(); ++row) {
      for (std::size_t i = 0; i < first.columns(); ++i) {
        const Cost cost = own[row] + first.at(row, i);
        Cost* out = &pending_table_[i * second.columns()];
        for (std::size_t j = 0; j < second.columns(); ++j) {
          out[j] = std::min(out[j], cost + second.at(row, j));
        }
      }
    }
    result_.work += first.rows() * first.columns() * second.columns();
  }

  // Value `better` never costs more than `worse`, whatever the neighbours choose.
  [[nodiscard]] bool dominates(std::uint32_t var, std::size_t better, std::size_t worse) {
    const Network::Var& variable = net_.vars[var];
    Cost slack = variable.unary[worse] - variable.unary[better];
    for (const std::uint32_t edge : variable.edges) {
      if (slack < 0) return false;
      const EdgeView view(net_, edge, var);
      const Cost forbidden = net_.budget();
      Cost most = -kForbidden;
      for (std::size_t column = 0; column < view.columns(); ++column) {
        const Cost cost = view.at(worse, column);
        if (cost < forbidden) most = std::max(most, view.at(better, column) - cost);
      }
      if (most != -kForbidden) slack -= most;
      result_.work += view.columns();
    }
    return slack >= 0;
  }

  // True when some value went.
  bool remove_dominated(std::uint32_t var) {
    const Network::Var& variable = net_.vars[var];
    const std::size_t size = variable.values.size();
    std::uint64_t work = 0;
    for (const std::uint32_t edge : variable.edges) {
      work += size * size * net_.vars[net_.other(edge, var)].values.size();
    }
    if (work > kDominanceWork) return false;
    std::vector<bool> gone(size, false);
    for (std::size_t worse = size; worse-- > 0;) {
      for (std::size_t better = 0; better < size && !gone[worse]; ++better) {
        gone[worse] = better != worse && !gone[better] && dominates(var, better, worse);
      }
    }
    std::vector<std::uint32_t> kept;
    for (std::uint32_t i = 0; i < size; ++i) {
      if (!gone[i]) kept.push_back(i);
    }
    const std::uint64_t removed = keep(var, kept);
    counts_.dominated_choices += removed;
    return removed != 0;
  }

  Network& net_;
  ReductionCounts& counts_;
  ReduceResult result_;
  std::deque<std::uint32_t> queue_;
  std::vector<bool> queued_;
  // The table that replaces a variable of degree 2; added once the variable's own tables are gone.
  std::uint32_t pending_a_ = 0, pending_b_ = 0;
  Network::Table pending_table_;
};

}  // namespace

void restore(const std::vector<Elimination>& eliminations, std::vector<std::uint32_t>& choice) {
  for (auto it = eliminations.rbegin(); it != eliminations.rend(); ++it) {
    Network::Table costs = it->unary;
    for (const Elimination::Neighbour& neighbour : it->neighbours) {
      const auto found =
          std::find(neighbour.values.begin(), neighbour.values.end(), choice[neighbour.var]);
      TESSERA_CHECK(found != neighbour.values.end());
      const auto position = static_cast<std::size_t>(found - neighbour.values.begin());
      for (std::size_t i = 0; i < costs.size(); ++i) {
        const std::size_t index =
            neighbour.by_row ? i * neighbour.values.size() + position : position * costs.size() + i;
        costs[i] = add(costs[i], (*neighbour.table)[index]);
      }
    }
    const auto best = std::min_element(costs.begin(), costs.end()) - costs.begin();
    choice[it->var] = it->values[static_cast<std::size_t>(best)];
  }
}

void eliminate(Network& network, std::uint32_t var, std::vector<Elimination>& eliminations) {
  Network::Var& variable = network.vars[var];
  Elimination record{var, variable.values, variable.unary, {}};
  const std::vector<std::uint32_t> edges = variable.edges;
  for (const std::uint32_t edge : edges) {
    const std::uint32_t neighbour = network.other(edge, var);
    record.neighbours.push_back({neighbour, network.vars[neighbour].values,
                                 network.edges[edge].table, network.edges[edge].a == var});
    network.remove_edge(edge);
  }
  variable.live = false;
  eliminations.push_back(std::move(record));
}

ReduceResult reduce(Network& network, ReductionCounts& counts,
                    const std::vector<std::uint32_t>& seeds) {
  return Reducer(network, counts).run(seeds);
}

}  // namespace tessera::solve
