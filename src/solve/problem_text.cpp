#include "solve/problem_text.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error.h"
#include "solve/validate.h"

namespace tessera::solve {
namespace {

using Json = nlohmann::json;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

tl::unexpected<Error> invalid(std::string message) {
  return fail(ErrorCode::kInvalidArgument, std::move(message));
}

// A value of a document and where it stands ("edges.costs[3]").
struct Located {
  const Json* json = nullptr;
  std::string place;

  [[nodiscard]] Located at(std::size_t index) const {
    return {&(*json)[index], fmt::format("{}[{}]", place, index)};
  }
  [[nodiscard]] std::optional<Located> member(const char* key) const {
    const auto found = json->find(key);
    if (found == json->end()) return std::nullopt;
    return Located{&*found, place.empty() ? std::string(key) : place + "." + key};
  }
};

tl::unexpected<Error> wrong_type(const Located& located, std::string_view expected) {
  std::string found = located.json->dump(-1, ' ', false, Json::error_handler_t::replace);
  if (found.size() > 40) found = found.substr(0, 40) + "...";
  const std::string place = located.place.empty() ? "document" : located.place;
  return invalid(fmt::format("{}: expected {}, found {}", place, expected, found));
}

Result<Json> parse_json(std::string_view text) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    return invalid(fmt::format("not JSON, at byte {}", error.byte));
  } catch (const Json::exception&) {
    return invalid("not JSON: a number is out of range");
  }
}

Status expect_object(const Located& located) {
  if (!located.json->is_object()) return wrong_type(located, "an object");
  return {};
}
Status expect_array(const Located& located) {
  if (!located.json->is_array()) return wrong_type(located, "an array");
  return {};
}

Result<Located> required(const Located& parent, const char* key) {
  if (const auto member = parent.member(key)) return *member;
  const std::string place = parent.place.empty() ? "document" : parent.place;
  return invalid(fmt::format("{}: '{}' is missing", place, key));
}

// null and "inf" are infinite.
Result<double> parse_cost(const Located& located) {
  const Json& json = *located.json;
  if (json.is_number()) return json.get<double>();
  if (json.is_null() || (json.is_string() && json.get_ref<const std::string&>() == "inf")) {
    return kInfinity;
  }
  return wrong_type(located, "a number, null or \"inf\"");
}

Result<std::int64_t> parse_integer(const Located& located) {
  const Json& json = *located.json;
  const bool fits = json.is_number_integer() &&
                    !(json.is_number_unsigned() &&
                      json.get<std::uint64_t>() >
                          static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
  if (!fits) return wrong_type(located, "a whole number of 64 bits");
  return json.get<std::int64_t>();
}

Result<std::uint32_t> parse_index(const Located& located) {
  TESSERA_ASSIGN(const std::int64_t value, parse_integer(located));
  if (value < 0 || value > std::numeric_limits<std::uint32_t>::max()) {
    return wrong_type(located, "an index");
  }
  return static_cast<std::uint32_t>(value);
}

Result<std::string> parse_string(const Located& located) {
  if (!located.json->is_string()) return wrong_type(located, "a string");
  return located.json->get<std::string>();
}

Result<double> parse_number(const Located& located) {
  if (!located.json->is_number()) return wrong_type(located, "a number");
  return located.json->get<double>();
}

template <typename T>
Result<std::vector<T>> parse_list(const Located& located, Result<T> (*parse)(const Located&)) {
  TESSERA_TRY(expect_array(located));
  std::vector<T> values;
  values.reserve(located.json->size());
  for (std::size_t i = 0; i < located.json->size(); ++i) {
    TESSERA_ASSIGN(T value, parse(located.at(i)));
    values.push_back(std::move(value));
  }
  return values;
}

// The member `key` of `nodes`, one entry per node, if it is there.
Result<std::optional<Located>> per_node(const Located& nodes, const char* key, std::size_t count) {
  const auto member = nodes.member(key);
  if (!member) return std::optional<Located>();
  TESSERA_TRY(expect_array(*member));
  if (member->json->size() != count) {
    return invalid(fmt::format("{}: expected {} entries (one per node), found {}", member->place,
                               count, member->json->size()));
  }
  return member;
}

Status check_count(const Located& located, std::size_t expected, std::size_t found) {
  if (expected == found) return {};
  return invalid(fmt::format("{}: expected {} values, found {}", located.place, expected, found));
}

// Calls fill(variable, entry) for every node, where the member is there.
template <typename Fill>
Status fill_nodes(const Located& nodes, const char* key, Problem& problem, const Fill& fill) {
  TESSERA_ASSIGN(const auto member, per_node(nodes, key, problem.variables.size()));
  if (!member) return {};
  for (std::size_t i = 0; i < problem.variables.size(); ++i) {
    TESSERA_TRY(fill(problem.variables[i], member->at(i)));
  }
  return {};
}

Status parse_interval(Variable& variable, const Located& entry) {
  TESSERA_ASSIGN(const std::vector<std::int64_t> ends, parse_list(entry, &parse_integer));
  TESSERA_TRY(check_count(entry, 2, ends.size()));
  variable.interval = {ends[0], ends[1]};
  if (ends[0] > ends[1]) return wrong_type(entry, "[lower, upper]");
  return {};
}

Status parse_usages(Variable& variable, const Located& entry) {
  TESSERA_ASSIGN(variable.usages, parse_list(entry, &parse_integer));
  TESSERA_TRY(check_count(entry, variable.costs.size(), variable.usages.size()));
  for (std::size_t i = 0; i < variable.usages.size(); ++i) {
    if (variable.usages[i] < 0) return wrong_type(entry.at(i), "a usage that is not negative");
  }
  return {};
}

Status parse_choice_names(Variable& variable, const Located& entry) {
  TESSERA_ASSIGN(variable.choice_names, parse_list(entry, &parse_string));
  if (variable.choice_names.empty()) return {};
  return check_count(entry, variable.costs.size(), variable.choice_names.size());
}

Status parse_nodes(const Located& nodes, Problem& problem) {
  TESSERA_TRY(expect_object(nodes));
  TESSERA_ASSIGN(const Located costs, required(nodes, "costs"));
  TESSERA_TRY(expect_array(costs));
  for (std::size_t i = 0; i < costs.json->size(); ++i) {
    Variable& variable = problem.variables.emplace_back();
    TESSERA_ASSIGN(variable.costs, parse_list(costs.at(i), &parse_cost));
    if (variable.costs.empty()) return wrong_type(costs.at(i), "at least one cost");
  }
  TESSERA_TRY(
      fill_nodes(nodes, "names", problem, [](Variable& variable, const Located& entry) -> Status {
        TESSERA_ASSIGN(variable.name, parse_string(entry));
        return {};
      }));
  TESSERA_TRY(fill_nodes(nodes, "choices", problem, parse_choice_names));
  TESSERA_TRY(fill_nodes(nodes, "usages", problem, parse_usages));
  return fill_nodes(nodes, "intervals", problem, parse_interval);
}

Status parse_edge(const Located& ends, const Located& costs, Problem& problem) {
  TESSERA_ASSIGN(const std::vector<std::uint32_t> nodes, parse_list(ends, &parse_index));
  TESSERA_TRY(check_count(ends, 2, nodes.size()));
  for (std::size_t i = 0; i < 2; ++i) {
    if (nodes[i] >= problem.variables.size()) {
      return invalid(fmt::format("{}: node {} does not exist (there are {})", ends.at(i).place,
                                 nodes[i], problem.variables.size()));
    }
  }
  if (nodes[0] == nodes[1]) return wrong_type(ends, "two different nodes");
  PairCost& pair = problem.pairs.emplace_back(PairCost{nodes[0], nodes[1], {}});
  TESSERA_ASSIGN(pair.costs, parse_list(costs, &parse_cost));
  const std::size_t rows = problem.variables[pair.a].costs.size();
  const std::size_t columns = problem.variables[pair.b].costs.size();
  if (pair.costs.size() == rows * columns) return {};
  return invalid(fmt::format("{}: expected {} values ({} x {}), found {}", costs.place,
                             rows * columns, rows, columns, pair.costs.size()));
}

Status parse_edges(const Located& edges, Problem& problem) {
  TESSERA_TRY(expect_object(edges));
  TESSERA_ASSIGN(const Located nodes, required(edges, "nodes"));
  TESSERA_ASSIGN(const Located costs, required(edges, "costs"));
  TESSERA_TRY(expect_array(nodes));
  TESSERA_TRY(expect_array(costs));
  if (nodes.json->size() != costs.json->size()) {
    return invalid(fmt::format("{}: expected {} entries (one per edge), found {}", costs.place,
                               nodes.json->size(), costs.json->size()));
  }
  for (std::size_t i = 0; i < nodes.json->size(); ++i) {
    TESSERA_TRY(parse_edge(nodes.at(i), costs.at(i), problem));
  }
  return {};
}

Json cost_json(double cost) {
  return std::isinf(cost) ? Json() : Json(cost);
}

Json costs_json(const std::vector<double>& costs) {
  Json out = Json::array();
  for (const double cost : costs) out.push_back(cost_json(cost));
  return out;
}

Json nodes_json(const Problem& problem) {
  bool names = false;
  bool choices = false;
  bool usages = false;
  bool intervals = false;
  Json nodes = {{"costs", Json::array()}};
  for (const Variable& variable : problem.variables) {
    nodes["costs"].push_back(costs_json(variable.costs));
    names = names || !variable.name.empty();
    choices = choices || !variable.choice_names.empty();
    usages = usages || !variable.usages.empty();
    intervals = intervals || variable.interval != Interval{};
  }
  for (const Variable& variable : problem.variables) {
    if (names) nodes["names"].push_back(variable.name);
    if (choices) nodes["choices"].push_back(variable.choice_names);
    if (usages && variable.usages.empty()) {
      nodes["usages"].push_back(std::vector<int>(variable.costs.size(), 0));
    } else if (usages) {
      nodes["usages"].push_back(variable.usages);
    }
    if (intervals) nodes["intervals"].push_back({variable.interval.lower, variable.interval.upper});
  }
  return nodes;
}

}  // namespace

Result<Problem> parse_problem(std::string_view json) {
  TESSERA_ASSIGN(const Json document, parse_json(json));
  Located top{&document, ""};
  TESSERA_TRY(expect_object(top));
  if (const auto inner = top.member("problem")) top = Located{inner->json, ""};
  TESSERA_TRY(expect_object(top));
  Problem problem;
  if (const auto name = top.member("name")) {
    TESSERA_ASSIGN(problem.name, parse_string(*name));
  }
  if (const auto constant = top.member("constant")) {
    TESSERA_ASSIGN(problem.constant, parse_number(*constant));
  }
  TESSERA_ASSIGN(const Located nodes, required(top, "nodes"));
  TESSERA_TRY(parse_nodes(nodes, problem));
  if (const auto edges = top.member("edges")) TESSERA_TRY(parse_edges(*edges, problem));
  if (const auto limit = top.member("usage_limit"); limit && !limit->json->is_null()) {
    TESSERA_ASSIGN(problem.usage_limit, parse_integer(*limit));
  }
  TESSERA_TRY(check_problem(problem));
  return problem;
}

std::string print_problem(const Problem& problem) {
  Json out;
  if (!problem.name.empty()) out["name"] = problem.name;
  if (problem.constant != 0) out["constant"] = problem.constant;
  out["nodes"] = nodes_json(problem);
  Json& edges = out["edges"] = {{"nodes", Json::array()}, {"costs", Json::array()}};
  for (const PairCost& pair : problem.pairs) {
    edges["nodes"].push_back({pair.a, pair.b});
    edges["costs"].push_back(costs_json(pair.costs));
  }
  if (problem.usage_limit) out["usage_limit"] = *problem.usage_limit;
  return Json{{"problem", std::move(out)}}.dump(-1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

std::string print_solution(const Solution& solution, double seconds) {
  nlohmann::ordered_json out;
  out["cost"] = solution.cost;
  out["lower_bound"] = solution.lower_bound;
  out["gap"] = solution.gap;
  out["seconds"] = seconds;
  out["solution"] = solution.choice;
  return out.dump() + "\n";
}

Result<Solution> parse_solution(std::string_view json) {
  TESSERA_ASSIGN(const Json document, parse_json(json));
  Located top{&document, ""};
  Solution solution;
  if (document.is_array()) {
    top.place = "solution";
    TESSERA_ASSIGN(solution.choice, parse_list(top, &parse_index));
    return solution;
  }
  TESSERA_TRY(expect_object(top));
  TESSERA_ASSIGN(const Located choice, required(top, "solution"));
  TESSERA_ASSIGN(solution.choice, parse_list(choice, &parse_index));
  for (const auto& [key, target] :
       {std::pair{"cost", &solution.cost}, std::pair{"lower_bound", &solution.lower_bound},
        std::pair{"gap", &solution.gap}}) {
    if (const auto member = top.member(key)) {
      TESSERA_ASSIGN(*target, parse_number(*member));
    }
  }
  solution.optimal = solution.cost == solution.lower_bound;
  return solution;
}

}  // namespace tessera::solve
