#include "solve/bucket_elimination.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"

namespace tessera::solve {
namespace {

constexpr std::uint64_t kTotalFactor = 8;

std::uint64_t saturating_multiply(std::uint64_t x, std::uint64_t y) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(x, y, &product) ? ~std::uint64_t{0} : product;
}

// A cost function over some variables; the last of `scope` runs fastest in the table.
struct Function {
  std::vector<std::uint32_t> scope;
  std::vector<Cost> table;
};

// Steps through all assignments of a scope and keeps the index into each of some functions' tables.
class Odometer {
 public:
  Odometer(const Network& network, const std::vector<std::uint32_t>& scope,
           const std::vector<const Function*>& functions)
      : digits_(scope.size(), 0), indices_(functions.size(), 0) {
    for (const std::uint32_t var : scope) sizes_.push_back(network.vars[var].values.size());
    for (const Function* function : functions) {
      std::vector<std::size_t> strides(scope.size(), 0);
      std::size_t stride = 1;
      for (std::size_t i = function->scope.size(); i-- > 0;) {
        const auto at = std::find(scope.begin(), scope.end(), function->scope[i]);
        if (at != scope.end()) strides[static_cast<std::size_t>(at - scope.begin())] = stride;
        stride *= network.vars[function->scope[i]].values.size();
      }
      strides_.push_back(std::move(strides));
    }
  }

  [[nodiscard]] std::size_t index(std::size_t function) const { return indices_[function]; }

  bool advance() {
    for (std::size_t digit = digits_.size(); digit-- > 0;) {
      const bool carry = ++digits_[digit] == sizes_[digit];
      for (std::size_t f = 0; f < indices_.size(); ++f) {
        indices_[f] += strides_[f][digit];
        if (carry) indices_[f] -= strides_[f][digit] * sizes_[digit];
      }
      if (!carry) return true;
      digits_[digit] = 0;
    }
    return false;
  }

 private:
  std::vector<std::size_t> digits_, sizes_, indices_;
  std::vector<std::vector<std::size_t>> strides_;  // by function, by digit
};

// The functions on one variable when its turn came, and the variable's stride in each.
struct Bucket {
  std::uint32_t var = 0;
  std::vector<Function> functions;
};

std::size_t stride_of(const Network& network, const Function& function, std::uint32_t var) {
  std::size_t stride = 1;
  for (std::size_t i = function.scope.size(); i-- > 0;) {
    if (function.scope[i] == var) return stride;
    stride *= network.vars[function.scope[i]].values.size();
  }
  TESSERA_CHECK(false);
  return 0;
}

// The least cost over the bucket's variable, for every assignment of the others.
Function combine(const Network& network, const Bucket& bucket) {
  std::set<std::uint32_t> others;
  std::vector<const Function*> functions;
  std::vector<std::size_t> strides;
  for (const Function& function : bucket.functions) {
    others.insert(function.scope.begin(), function.scope.end());
    functions.push_back(&function);
    strides.push_back(stride_of(network, function, bucket.var));
  }
  others.erase(bucket.var);
  Function result{{others.begin(), others.end()}, {}};
  std::size_t entries = 1;
  for (const std::uint32_t var : result.scope) entries *= network.vars[var].values.size();
  result.table.reserve(entries);
  const Network::Table& unary = network.vars[bucket.var].unary;
  Network::Table costs(unary.size());
  Odometer odometer(network, result.scope, functions);
  do {
    costs = unary;
    for (std::size_t f = 0; f < functions.size(); ++f) {
      const Cost* at = functions[f]->table.data() + odometer.index(f);
      for (std::size_t i = 0; i < costs.size(); ++i) costs[i] = add(costs[i], at[i * strides[f]]);
    }
    result.table.push_back(*std::min_element(costs.begin(), costs.end()));
  } while (odometer.advance());
  return result;
}

std::uint32_t best_position(const Network& network, const Bucket& bucket,
                            const std::vector<std::uint32_t>& positions) {
  Network::Table costs = network.vars[bucket.var].unary;
  for (const Function& function : bucket.functions) {
    std::size_t base = 0;
    std::size_t stride = 1;
    for (std::size_t i = function.scope.size(); i-- > 0;) {
      const std::uint32_t var = function.scope[i];
      if (var != bucket.var) base += positions[var] * stride;
      stride *= network.vars[var].values.size();
    }
    const std::size_t own = stride_of(network, function, bucket.var);
    for (std::size_t i = 0; i < costs.size(); ++i) {
      costs[i] = add(costs[i], function.table[base + i * own]);
    }
  }
  return static_cast<std::uint32_t>(std::min_element(costs.begin(), costs.end()) - costs.begin());
}

}  // namespace

std::optional<EliminationOrder> elimination_order(const Network& network,
                                                  std::uint64_t max_entries) {
  std::vector<std::set<std::uint32_t>> neighbours(network.vars.size());
  for (const Network::Edge& edge : network.edges) {
    if (!edge.live) continue;
    neighbours[edge.a].insert(edge.b);
    neighbours[edge.b].insert(edge.a);
  }
  const auto entries_of = [&](std::uint32_t var) {
    std::uint64_t entries = network.vars[var].values.size();
    for (const std::uint32_t other : neighbours[var]) {
      entries = saturating_multiply(entries, network.vars[other].values.size());
    }
    return entries;
  };
  std::set<std::pair<std::uint64_t, std::uint32_t>> queue;
  std::vector<std::uint64_t> entries(network.vars.size(), 0);
  for (std::uint32_t var = 0; var < network.vars.size(); ++var) {
    if (!network.vars[var].live) continue;
    entries[var] = entries_of(var);
    queue.emplace(entries[var], var);
  }
  EliminationOrder order;
  while (!queue.empty()) {
    const auto [size, var] = *queue.begin();
    queue.erase(queue.begin());
    order.vars.push_back(var);
    order.largest_table = std::max(order.largest_table, size);
    if (size > max_entries) return std::nullopt;
    order.work += size;
    if (order.work > saturating_multiply(max_entries, kTotalFactor)) return std::nullopt;
    const std::set<std::uint32_t> around = std::move(neighbours[var]);
    for (const std::uint32_t other : around) {
      neighbours[other].insert(around.begin(), around.end());
      neighbours[other].erase(other);
      neighbours[other].erase(var);
      queue.erase({entries[other], other});
      entries[other] = entries_of(other);
      queue.emplace(entries[other], other);
    }
  }
  return order;
}

EliminationResult eliminate_buckets(const Network& network, const EliminationOrder& order) {
  std::vector<std::size_t> turn(network.vars.size(), 0);
  for (std::size_t i = 0; i < order.vars.size(); ++i) turn[order.vars[i]] = i;
  std::vector<Bucket> buckets(order.vars.size());
  for (std::size_t i = 0; i < order.vars.size(); ++i) buckets[i].var = order.vars[i];
  const auto place = [&](Function function) {
    std::size_t first = order.vars.size();
    for (const std::uint32_t var : function.scope) first = std::min(first, turn[var]);
    buckets[first].functions.push_back(std::move(function));
  };
  for (const Network::Edge& edge : network.edges) {
    if (edge.live) place({{edge.a, edge.b}, *edge.table});
  }
  EliminationResult result;
  result.cost = network.constant;
  for (const Bucket& bucket : buckets) {
    Function combined = combine(network, bucket);
    if (combined.scope.empty()) {
      result.cost = add(result.cost, combined.table[0]);
    } else {
      place(std::move(combined));
    }
  }
  result.positions.assign(network.vars.size(), 0);
  for (std::size_t i = buckets.size(); i-- > 0;) {
    result.positions[buckets[i].var] = best_position(network, buckets[i], result.positions);
  }
  return result;
}

}  // namespace tessera::solve
