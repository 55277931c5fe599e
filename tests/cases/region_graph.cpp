#include "cases/region_graph.h"

#include <algorithm>
#include <functional>
#include <map>

namespace tessera::testing {
namespace {

std::uint32_t root(const artefact::MethodImage& method, std::uint32_t buffer) {
  while (method.buffers[buffer].alias_of != UINT32_MAX) buffer = method.buffers[buffer].alias_of;
  return buffer;
}

}  // namespace

RegionGraph::RegionGraph(const artefact::MethodImage& method) {
  std::map<std::uint32_t, std::size_t> numbers;
  for (const auto& instruction : method.instructions)
    if (instruction.region != UINT32_MAX) numbers.try_emplace(instruction.region, numbers.size());
  region_count_ = numbers.size();
  std::size_t parts = region_count_;
  std::vector<std::size_t> part_of;
  for (const auto& instruction : method.instructions)
    part_of.push_back(instruction.region != UINT32_MAX ? numbers.at(instruction.region) : parts++);
  needs_.assign(parts, std::vector<bool>(parts, false));
  std::map<std::uint32_t, std::size_t> writer;
  for (std::size_t i = 0; i < method.instructions.size(); ++i) {
    for (const std::uint32_t buffer : method.instructions[i].inputs) {
      const auto made = writer.find(root(method, buffer));
      if (made != writer.end() && made->second != part_of[i])
        needs_[made->second][part_of[i]] = true;
    }
    for (const std::uint32_t buffer : method.instructions[i].outputs)
      writer[root(method, buffer)] = part_of[i];
  }
  for (std::size_t middle = 0; middle < parts; ++middle)
    for (std::size_t from = 0; from < parts; ++from)
      if (needs_[from][middle])
        for (std::size_t to = 0; to < parts; ++to)
          if (needs_[middle][to]) needs_[from][to] = true;
}

bool RegionGraph::is_dag() const {
  for (std::size_t i = 0; i < needs_.size(); ++i)
    if (needs_[i][i]) return false;
  return true;
}

// Dilworth: as many as there are regions, less the largest matching of the pairs that need one
// another.
std::size_t RegionGraph::width() const {
  std::vector<std::size_t> partner(region_count_, SIZE_MAX);
  std::vector<bool> seen;
  const std::function<bool(std::size_t)> match = [&](std::size_t from) {
    for (std::size_t to = 0; to < region_count_; ++to) {
      if (!needs_[from][to] || seen[to]) continue;
      seen[to] = true;
      if (partner[to] != SIZE_MAX && !match(partner[to])) continue;
      partner[to] = from;
      return true;
    }
    return false;
  };
  std::size_t matched = 0;
  for (std::size_t from = 0; from < region_count_; ++from) {
    seen.assign(region_count_, false);
    if (match(from)) ++matched;
  }
  return region_count_ - matched;
}

}  // namespace tessera::testing
