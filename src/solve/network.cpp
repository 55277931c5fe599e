#include "solve/network.h"

#include <utility>

#include "base/error.h"

namespace tessera::solve {

std::optional<std::uint32_t> Network::find_edge(std::uint32_t a, std::uint32_t b) const {
  if (vars[a].edges.size() > vars[b].edges.size()) std::swap(a, b);
  for (const std::uint32_t edge : vars[a].edges) {
    if (other(edge, a) == b) return edge;
  }
  return std::nullopt;
}

Network::Table& Network::mutable_table(std::uint32_t edge) {
  std::shared_ptr<Table>& table = edges[edge].table;
  if (table.use_count() != 1) table = std::make_shared<Table>(*table);
  return *table;
}

bool Network::add_table(std::uint32_t a, std::uint32_t b, Table table) {
  TESSERA_CHECK(table.size() == vars[a].values.size() * vars[b].values.size());
  const std::optional<std::uint32_t> found = find_edge(a, b);
  if (!found) {
    const auto id = static_cast<std::uint32_t>(edges.size());
    edges.push_back({a, b, std::make_shared<Table>(std::move(table)), true});
    vars[a].edges.push_back(id);
    vars[b].edges.push_back(id);
    return false;
  }
  const EdgeView view(*this, *found, a);
  Table& sum = mutable_table(*found);
  for (std::size_t row = 0; row < view.rows(); ++row) {
    for (std::size_t column = 0; column < view.columns(); ++column) {
      Cost& entry = sum[view.index(row, column)];
      entry = add(entry, table[row * view.columns() + column]);
    }
  }
  return true;
}

void Network::remove_edge(std::uint32_t edge) {
  for (const std::uint32_t var : {edges[edge].a, edges[edge].b}) {
    std::vector<std::uint32_t>& list = vars[var].edges;
    list.erase(std::find(list.begin(), list.end(), edge));
  }
  edges[edge].live = false;
  edges[edge].table.reset();
}

void Network::keep_values(std::uint32_t var, const std::vector<std::uint32_t>& positions) {
  for (const std::uint32_t edge : vars[var].edges) {
    const EdgeView view(*this, edge, var);
    auto kept = std::make_shared<Table>(positions.size() * view.columns());
    const bool by_row = edges[edge].a == var;
    for (std::size_t row = 0; row < positions.size(); ++row) {
      for (std::size_t column = 0; column < view.columns(); ++column) {
        const std::size_t index =
            by_row ? row * view.columns() + column : column * positions.size() + row;
        (*kept)[index] = view.at(positions[row], column);
      }
    }
    edges[edge].table = std::move(kept);
  }
  Var& variable = vars[var];
  for (std::size_t i = 0; i < positions.size(); ++i) {
    variable.values[i] = variable.values[positions[i]];
    variable.unary[i] = variable.unary[positions[i]];
  }
  variable.values.resize(positions.size());
  variable.unary.resize(positions.size());
}

EdgeView::EdgeView(const Network& network, std::uint32_t edge, std::uint32_t row_var)
    : data_(network.edges[edge].table->data()),
      neighbour_(network.other(edge, row_var)),
      rows_(network.vars[row_var].values.size()),
      columns_(network.vars[neighbour_].values.size()),
      row_stride_(network.edges[edge].a == row_var ? columns_ : 1),
      column_stride_(network.edges[edge].a == row_var ? 1 : rows_) {}

Network::Table value_bounds(const Network& network, std::uint32_t var) {
  Network::Table bounds = network.vars[var].unary;
  for (const std::uint32_t edge : network.vars[var].edges) {
    const EdgeView view(network, edge, var);
    const Network::Table& costs = network.vars[view.neighbour()].unary;
    for (std::size_t row = 0; row < view.rows(); ++row) {
      Cost least = kForbidden;
      for (std::size_t column = 0; column < view.columns(); ++column) {
        least = std::min(least, view.at(row, column) + costs[column]);
      }
      bounds[row] = add(bounds[row], least);
    }
  }
  return bounds;
}

std::uint64_t table_entries(const Network& network) {
  std::uint64_t entries = 0;
  for (const Network::Edge& edge : network.edges) {
    if (edge.live) entries += edge.table->size();
  }
  return entries;
}

}  // namespace tessera::solve
