#include "backends/simulated/compile/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "backends/compile_common/rates_json.h"
#include "ops/op_table.h"

namespace tessera::backends::simulated {
namespace {

using Json = nlohmann::json;

constexpr double kMaxMemory = 1e12;  // in MiB or KiB: its bytes still fit in 64 bits

// A count: whole, and small enough to stay exact in JSON.
Result<std::int64_t> count(std::string_view key, const Json& value) {
  constexpr std::int64_t kMax = std::int64_t{1} << 53;
  if (!value.is_number_integer() || value < 0 || value > kMax)
    return wrong(key, "expected a whole number of at least 0, found {}", value.dump());
  return value.get<std::int64_t>();
}

Result<std::vector<std::string>> strings(std::string_view key, const Json& value) {
  std::vector<std::string> result;
  if (!value.is_array()) return wrong(key, "expected a list of strings, found {}", value.dump());
  for (const Json& entry : value) {
    if (!entry.is_string()) return wrong(key, "expected a list of strings, found {}", value.dump());
    result.push_back(entry.get<std::string>());
  }
  return result;
}

Result<AttributeRule> attribute_rule(const std::string& name, const Json& value) {
  AttributeRule rule{name, 0.0, {}, {}};
  if (value.is_number()) {
    rule.equals = value.get<double>();
  } else if (value.is_string()) {
    rule.equals = value.get<std::string>();
  } else if (value.is_array() &&
             std::ranges::all_of(value, [](const Json& entry) { return entry.is_number(); })) {
    rule.equals = value.get<std::vector<double>>();
  } else if (value.is_object()) {
    TESSERA_TRY(check_keys(name, value, {"min", "max"}));
    for (const auto& [key, bound] : value.items()) {
      if (!bound.is_number()) return wrong(key, "expected a number, found {}", bound.dump());
      (key == "min" ? rule.min : rule.max) = bound.get<double>();
    }
    if (!rule.min && !rule.max)
      return wrong(name, "expected a range with a min or a max, found {}", value.dump());
  } else {
    return wrong(name,
                 "expected a number, a text, a list of numbers or {{\"min\":, \"max\":}}, found {}",
                 value.dump());
  }
  return rule;
}

// An entry of supports (where, max_rank) or lacks (attr).
Result<SupportRule> support_rule(const Json& json, std::string_view attributes_key) {
  const bool is_support = attributes_key == "where";
  TESSERA_TRY(is_support
                  ? check_keys("an operator entry", json, {"op", "dtypes", "where", "max_rank"})
                  : check_keys("an operator entry", json, {"op", "dtypes", "attr"}));
  SupportRule rule;
  const auto op = json.find("op");
  if (op == json.end() || !op->is_string())
    return wrong("op", "expected an operator's name, found {}",
                 op == json.end() ? "nothing" : op->dump());
  rule.op = op->get<std::string>();
  if (ops::find_op("", rule.op) == nullptr)
    return wrong("op", "expected an operator of the op table, found '{}'", rule.op);
  if (const auto dtypes = json.find("dtypes"); dtypes != json.end()) {
    TESSERA_ASSIGN(const auto names, strings("dtypes", *dtypes));
    for (const std::string& name : names) {
      TESSERA_ASSIGN(const DType found, dtype("dtypes", name));
      rule.dtypes.push_back(found);
    }
  }
  if (const auto rank = json.find("max_rank"); rank != json.end()) {
    TESSERA_ASSIGN(rule.max_rank, count("max_rank", *rank));
  }
  if (const auto where = json.find(attributes_key); where != json.end()) {
    if (!where->is_object())
      return wrong(attributes_key, "expected an object, found {}", where->dump());
    for (const auto& [name, value] : where->items()) {
      TESSERA_ASSIGN(auto attribute, attribute_rule(name, value));
      rule.where.push_back(std::move(attribute));
    }
  }
  return rule;
}

Result<std::vector<SupportRule>> support_rules(const char* key, const Json& value,
                                               std::string_view attributes_key) {
  if (!value.is_array()) return wrong(key, "expected a list, found {}", value.dump());
  std::vector<SupportRule> rules;
  for (const Json& entry : value) {
    auto rule = support_rule(entry, attributes_key);
    if (!rule)
      return tl::unexpected(
          in_context(std::move(rule).error(), fmt::format("'{}'[{}]", key, rules.size())));
    rules.push_back(*std::move(rule));
  }
  return rules;
}

Status read_operators(const Json& json, Profile& profile) {
  if (const auto supports = json.find("supports"); supports != json.end()) {
    TESSERA_ASSIGN(profile.supports, support_rules("supports", *supports, "where"));
  }
  if (const auto lacks = json.find("lacks"); lacks != json.end()) {
    TESSERA_ASSIGN(profile.lacks, support_rules("lacks", *lacks, "attr"));
  }
  if (const auto only = json.find("only"); only != json.end()) {
    TESSERA_ASSIGN(profile.only, strings("only", *only));
  }
  if (const auto nodes = json.find("nodes"); nodes != json.end()) {
    TESSERA_ASSIGN(profile.nodes, strings("nodes", *nodes));
  }
  if (const auto layouts = json.find("layouts"); layouts != json.end()) {
    TESSERA_ASSIGN(profile.layouts, strings("layouts", *layouts));
    for (const std::string& name : profile.layouts)
      if (!parse_layout(name))
        return wrong("layouts",
                     "expected nchw, nhwc or a blocked layout such as nChw16c, found '{}'", name);
  }
  return {};
}

Status read_sizes(const Json& json, Profile& profile) {
  double memory_mib = 0;
  double sram_kib = 0;
  TESSERA_TRY(read_number(json, "memory_mib", memory_mib));
  TESSERA_TRY(read_number(json, "sram_kib", sram_kib));
  for (const auto& [key, size] :
       {std::pair{"memory_mib", memory_mib}, std::pair{"sram_kib", sram_kib}})
    if (size > kMaxMemory) return wrong(key, "expected at most {:g}, found {:g}", kMaxMemory, size);
  profile.rates.memory_bytes = static_cast<std::int64_t>(memory_mib * 1024 * 1024);
  profile.sram_kib = static_cast<std::int64_t>(sram_kib);
  if (const auto power = json.find("power"); power != json.end()) {
    TESSERA_TRY(check_keys("power", *power, {"active_w", "idle_w", "pj_per_byte"}));
    for (const auto& [name, value] : power->items()) {
      TESSERA_ASSIGN(profile.power[name], number(name, value));
    }
  }
  if (const auto partitions = json.find("max_partitions");
      partitions != json.end() && !partitions->is_null()) {
    TESSERA_ASSIGN(profile.max_partitions, count("max_partitions", *partitions));
  }
  return {};
}

Status read_mock(const Json& json, Mock& mock) {
  const auto found = json.find("mock");
  if (found == json.end() || found->is_null()) return {};
  if (found->is_string()) {
    if (*found != "init_fails")
      return wrong("mock", "expected \"init_fails\" or an object, found {}", found->dump());
    mock.init_fails = true;
    return {};
  }
  TESSERA_TRY(check_keys("mock", *found,
                         {"compile_fails_for", "slow_down", "after", "lost_after", "error_at",
                          "hangs_at", "wrong_at"}));
  for (const auto& [key, value] : found->items()) {
    if (key == "compile_fails_for") {
      TESSERA_ASSIGN(mock.compile_fails_for, strings(key, value));
    } else {
      TESSERA_ASSIGN(mock.run_time[key], number(key, value));
    }
  }
  return {};
}

}  // namespace

Result<Profile> parse_profile(std::string_view text) {
  TESSERA_ASSIGN(const Json json, parse_device_json(text));
  TESSERA_TRY(check_keys("the profile", json,
                         {"schema", "name", "kind", "supports", "lacks", "only", "nodes", "layouts",
                          "gflops", "memory_gb_per_s", "launch_us", "sync_us", "link", "memory_mib",
                          "sram_kib", "power", "max_partitions", "mock"}));
  Profile profile;
  const auto name = json.find("name");
  if (name == json.end() || !name->is_string() || name->get<std::string>().empty())
    return wrong("name", "expected a name, found {}",
                 name == json.end() ? "nothing" : name->dump());
  profile.name = name->get<std::string>();
  if (const auto kind = json.find("kind"); kind != json.end() && *kind != "simulated")
    return wrong("kind", "expected \"simulated\", found {}", kind->dump());
  TESSERA_TRY(read_operators(json, profile));
  TESSERA_TRY(read_rates(json, profile.rates));
  TESSERA_TRY(read_sizes(json, profile));
  TESSERA_TRY(read_mock(json, profile.mock));
  profile.text = json.dump();
  return profile;
}

}  // namespace tessera::backends::simulated
