#include "solve/branch_and_bound.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "solve/bucket_elimination.h"
#include "solve/components.h"
#include "solve/reduce.h"
#include "solve/soft_consistency.h"

namespace tessera::solve {
namespace {

constexpr unsigned kRootRounds = 30;                 // of sweeps and a decoded assignment each
constexpr unsigned kRootPatience = 10;               // sweeps per round at the root
constexpr std::uint64_t kNodeSweepWork = 4;          // sweeps at a node, in sizes of the network
constexpr std::uint64_t kNodeElimination = 16;       // tables at a node are this much smaller
constexpr std::uint64_t kMaxOpenEdges = 16'000'000;  // in all networks on the path: about 1 GB
constexpr std::uint64_t kMaxDepth = 1'000;           // of nested components: keeps the stack small
constexpr std::uint64_t kProgressNodes = 256;
constexpr Cost kScoreSteps = 64;  // an edge's mean cost counts in steps of budget / 64

// The best assignment of one (sub)network, by its own variables.
struct Outcome {
  Cost lower_bound = 0;
  Cost cost = kForbidden;
  std::vector<std::uint32_t> choice;
};

Outcome nothing_below(Cost top) {
  return {top, kForbidden, {}};
}

class Search {
 public:
  explicit Search(const SearchLimits& limits) : limits_(limits) {}

  SearchResult run(Network network) {
    std::uint32_t last = 0;
    for (const Network::Var& var : network.vars) last = std::max(last, var.id);
    failures_.assign(std::size_t{last} + 1, 0);
    Outcome outcome = solve(std::move(network), {});
    result_.lower_bound = outcome.lower_bound;
    result_.choice = std::move(outcome.choice);
    result_.cost = outcome.cost;
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool out_of_work() const {
    return result_.work >= limits_.work || depth_ >= kMaxDepth || open_edges_ >= kMaxOpenEdges ||
           limits_.cancel.stop_requested();
  }
  [[nodiscard]] bool stopped() const { return result_.nodes >= limits_.nodes || out_of_work(); }
  [[nodiscard]] bool at_root() const { return result_.nodes == 0; }

  Outcome solve(Network network, const std::vector<std::uint32_t>& seeds) {
    const ReduceResult reduced = reduce(network, result_.reductions, seeds);
    result_.work += reduced.work;
    if (network.infeasible()) return nothing_below(network.top);
    return solve_reduced(network, reduced.eliminations);
  }

  // Solves the components of what is live, and puts their assignments together.
  Outcome solve_reduced(const Network& network, const std::vector<Elimination>& eliminations) {
    std::vector<Component> components = split(network);
    Cost bound = network.constant;
    for (Component& component : components) {
      component.network.top = network.budget();
      if (components.size() > 1) tighten(component.network);
      bound = add(bound, component.network.constant);
    }
    Outcome outcome{0, network.constant, std::vector<std::uint32_t>(network.vars.size(), 0)};
    for (Component& component : components) {
      if (bound >= network.top) return nothing_below(network.top);
      const Cost own = component.network.constant;
      component.network.top = network.top - (bound - own);
      ++depth_;
      const Outcome part = solve_component(std::move(component.network));
      --depth_;
      bound += std::max(Cost{0}, part.lower_bound - own);
      outcome.cost = add(outcome.cost, part.cost);
      for (std::size_t i = 0; i < part.choice.size(); ++i) {
        outcome.choice[component.vars[i]] = part.choice[i];
      }
    }
    outcome.lower_bound = std::min(bound, network.top);
    if (outcome.cost >= kForbidden) return {outcome.lower_bound, kForbidden, {}};
    restore(eliminations, outcome.choice);
    return outcome;
  }

  // A compact, connected network.
  Outcome solve_component(Network network) {
    const std::uint64_t most = limits_.elimination_entries / (at_root() ? 1 : kNodeElimination);
    if (const auto order = elimination_order(network, most)) {
      return solve_by_elimination(network, *order);
    }
    Outcome best = nothing_below(network.top);
    bound_and_decode(network, best);
    if (network.infeasible() || stopped()) return close(network, std::move(best));
    const ReduceResult reduced = reduce(network, result_.reductions);
    result_.work += reduced.work;
    if (network.infeasible()) return close(network, std::move(best));
    Outcome inner = reduced.eliminations.empty() ? branch(std::move(network))
                                                 : solve_reduced(network, reduced.eliminations);
    inner.lower_bound = std::min(inner.lower_bound, best.cost);
    if (inner.cost < best.cost) return inner;
    best.lower_bound = inner.lower_bound;
    return best;
  }

  // What is known of a network that is not searched any further.
  static Outcome close(const Network& network, Outcome best) {
    best.lower_bound = std::min(network.constant, network.top);
    return best;
  }

  Outcome solve_by_elimination(const Network& network, const EliminationOrder& order) {
    result_.work += order.work;
    const EliminationResult solved = eliminate_buckets(network, order);
    if (at_root()) result_.reductions.bucket_eliminated += order.vars.size();
    if (solved.cost >= network.top) return nothing_below(network.top);
    return {solved.cost, solved.cost, choices_at(network, solved.positions)};
  }

  void tighten(Network& network) {
    if (out_of_work()) return;
    const std::uint64_t most =
        at_root() ? limits_.work / 8 : kNodeSweepWork * table_entries(network);
    result_.work += improve_bound(network, at_root() ? kRootPatience : 1, most);
  }

  // Raises the bound, and lowers the top to assignments found on the way.
  void bound_and_decode(Network& network, Outcome& best) {
    const unsigned rounds = at_root() ? kRootRounds : 1;
    for (unsigned round = 0; round < rounds && !network.infeasible(); ++round) {
      const Cost before = network.constant;
      tighten(network);
      if (network.infeasible()) return;
      const std::vector<std::uint32_t> positions = decode(network, result_.work);
      const Cost cost = cost_of(network, positions);
      if (cost < network.top) {
        network.top = cost;
        best = {0, cost, choices_at(network, positions)};
      }
      if (network.constant - before <= network.budget() / 256) return;
    }
  }

  Outcome branch(Network network) {
    const std::uint32_t var = branching_variable(network);
    const Network::Table bounds = value_bounds(network, var);
    std::vector<std::uint32_t> order(bounds.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t x, std::uint32_t y) { return bounds[x] < bounds[y]; });
    Outcome best = nothing_below(network.top);
    open_edges_ += network.edges.size();
    for (const std::uint32_t value : order) {
      const Cost bound = add(network.constant, bounds[value]);
      if (bound >= network.top) break;
      if (stopped()) {
        best.lower_bound = std::min(best.lower_bound, bound);
        break;  // the bounds of the values after this one are no lower
      }
      count_node();
      Outcome child = solve(fixed(network, var, value), {var});
      best.lower_bound = std::min(best.lower_bound, std::max(bound, child.lower_bound));
      if (child.cost < network.top) {
        network.top = child.cost;
        best.cost = child.cost;
        best.choice = std::move(child.choice);
      } else if (child.lower_bound >= network.top) {
        ++failures_[network.vars[var].id];
      }
    }
    open_edges_ -= network.edges.size();
    best.lower_bound = std::min(best.lower_bound, network.top);
    return best;
  }

  static Network fixed(const Network& network, std::uint32_t var, std::uint32_t value) {
    Network child = network;
    child.keep_values(var, {value});
    return child;
  }

  void count_node() {
    ++result_.nodes;
    if (limits_.progress && result_.nodes % kProgressNodes == 0) limits_.progress(result_.nodes);
  }

  // The most failures and mean table costs per value; ties: the lowest index.
  [[nodiscard]] std::uint32_t branching_variable(const Network& network) {
    const Cost step = std::max(Cost{1}, network.budget() / kScoreSteps);
    std::vector<Cost> weight(network.vars.size(), 0);
    for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = failures_[network.vars[i].id];
    for (const Network::Edge& edge : network.edges) {
      if (!edge.live) continue;
      Cost sum = 0;
      for (const Cost cost : *edge.table) sum += std::min(cost / step, kScoreSteps);
      const Cost score = 1 + sum / static_cast<Cost>(edge.table->size());
      weight[edge.a] += score;
      weight[edge.b] += score;
    }
    result_.work += table_entries(network);
    std::uint32_t best = 0;
    for (std::uint32_t i = 1; i < weight.size(); ++i) {
      const auto size = static_cast<Cost>(network.vars[i].values.size());
      const auto best_size = static_cast<Cost>(network.vars[best].values.size());
      if (weight[i] * best_size > weight[best] * size) best = i;
    }
    return best;
  }

  static std::vector<std::uint32_t> choices_at(const Network& network,
                                               const std::vector<std::uint32_t>& positions) {
    std::vector<std::uint32_t> choice(network.vars.size(), 0);
    for (std::size_t i = 0; i < choice.size(); ++i) {
      choice[i] = network.vars[i].values[positions[i]];
    }
    return choice;
  }

  const SearchLimits& limits_;
  SearchResult result_;
  std::vector<Cost> failures_;  // by variable of the problem: branches without an assignment
  std::uint64_t depth_ = 0;
  std::uint64_t open_edges_ = 0;
};

}  // namespace

SearchResult branch_and_bound(Network network, const SearchLimits& limits) {
  return Search(limits).run(std::move(network));
}

}  // namespace tessera::solve
