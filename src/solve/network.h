#pragma once

// The solver's own form of a problem: non-negative 64-bit integer costs, so that costs can be
// shifted between tables without error.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace tessera::solve {

using Cost = std::int64_t;

// Stands for infinity; sums stop here. Every Network::top is far below it.
inline constexpr Cost kForbidden = Cost{1} << 60;

inline Cost add(Cost x, Cost y) {
  return std::min(x + y, kForbidden);
}
inline Cost subtract(Cost x, Cost y) {
  return x >= kForbidden ? kForbidden : x - y;
}

// Invariants: all unary costs and table entries lie in [0, kForbidden]; at most one edge per pair
// of variables; the cost of an assignment is constant + its unary costs + its table entries; only
// assignments that cost less than `top` matter. Tables are shared between copies of a network and
// cloned when written, so that a copy is cheap.
class Network {
 public:
  using Table = std::vector<Cost>;

  struct Var {
    std::uint32_t id = 0;               // index into Problem::variables
    std::vector<std::uint32_t> values;  // the remaining choices, as numbered by the problem
    Table unary;                        // one cost per value
    std::vector<std::uint32_t> edges;   // ids of the live edges on it
    bool live = true;
  };
  struct Edge {
    std::uint32_t a = 0, b = 0;
    std::shared_ptr<Table> table;  // row-major, |values of a| x |values of b|
    bool live = true;
  };

  Cost constant = 0;
  Cost top = kForbidden / 4;
  std::vector<Var> vars;
  std::vector<Edge> edges;

  // What an assignment may still cost above the constant: a unary cost of `budget()` is forbidden.
  [[nodiscard]] Cost budget() const { return top - constant; }
  [[nodiscard]] bool infeasible() const { return constant >= top; }
  void set_infeasible() { constant = std::max(constant, top); }

  [[nodiscard]] std::uint32_t other(std::uint32_t edge, std::uint32_t var) const {
    return edges[edge].a == var ? edges[edge].b : edges[edge].a;
  }
  [[nodiscard]] std::optional<std::uint32_t> find_edge(std::uint32_t a, std::uint32_t b) const;

  // The table for writing (a clone, if another network reads it).
  Table& mutable_table(std::uint32_t edge);

  // Adds `table` (|a| x |b|) to the edge on a and b, made if there is none. True if it was there.
  bool add_table(std::uint32_t a, std::uint32_t b, Table table);

  void remove_edge(std::uint32_t edge);

  // Keeps the values at these positions (ascending) of a variable, in its tables too.
  void keep_values(std::uint32_t var, const std::vector<std::uint32_t>& positions);
};

// One edge seen from one of its ends: rows are that end's values.
class EdgeView {
 public:
  EdgeView(const Network& network, std::uint32_t edge, std::uint32_t row_var);

  [[nodiscard]] std::uint32_t neighbour() const { return neighbour_; }
  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] std::size_t columns() const { return columns_; }
  [[nodiscard]] std::size_t index(std::size_t row, std::size_t column) const {
    return row * row_stride_ + column * column_stride_;
  }
  [[nodiscard]] Cost at(std::size_t row, std::size_t column) const {
    return data_[index(row, column)];
  }

 private:
  const Cost* data_;
  std::uint32_t neighbour_;
  std::size_t rows_, columns_, row_stride_, column_stride_;
};

// The least that each value of `var` costs with its tables and its neighbours' costs.
Network::Table value_bounds(const Network& network, std::uint32_t var);

// The entries of all tables of live edges.
std::uint64_t table_entries(const Network& network);

}  // namespace tessera::solve
