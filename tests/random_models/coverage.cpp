#include "random_models/coverage.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/op_table.h"
#include "random_models/generate.h"
#include "random_models/recipes.h"

namespace tessera::random_models {
namespace {

DType key_dtype(const Model& model, const Evaluation& evaluation, const Node& node) {
  const auto recipe = std::ranges::lower_bound(all_recipes(), node.op->name, {}, &Recipe::op);
  const int key =
      recipe == all_recipes().end() || recipe->op != node.op->name ? 0 : recipe->key_input;
  const auto at = static_cast<std::size_t>(std::max(key, 0));
  const bool has_key = key >= 0 && at < node.inputs.size() && node.inputs[at] != kOmitted;
  const auto made =
      std::ranges::find_if(node.outputs, [](ValueId output) { return output != kOmitted; });
  const ValueId id = has_key ? node.inputs[at] : *made;
  TESSERA_CHECK(id != kOmitted && static_cast<std::size_t>(id) < model.values.size());
  return evaluation[static_cast<std::size_t>(id)][0].dtype();
}

double share(std::size_t part, std::size_t whole) {
  return whole == 0 ? 1 : static_cast<double>(part) / static_cast<double>(whole);
}

// Attributes that a recipe could set; subgraphs are none.
template <typename Visit>
void each_attribute(const Visit& visit) {
  for (const Recipe& recipe : all_recipes())
    for (const auto& attribute : ops::find_op("", recipe.op)->attributes)
      if (attribute.type != ops::AttrType::kGraph) visit(recipe.op, attribute.name);
}

}  // namespace

void Coverage::add(const Model& model, const Evaluation& evaluation) {
  for (const Node& node : model.nodes) {
    Seen& seen = operators_[std::string(node.op->name)];
    ++seen.nodes;
    ++seen.dtypes[key_dtype(model, evaluation, node)];
    for (const auto& [name, value] : node.attributes.entries()) {
      const auto* word = std::get_if<std::string>(&value);
      ++seen.attributes[word != nullptr && name != "equation" ? name + "=" + *word : name];
    }
  }
}

bool Coverage::has_attribute(std::string_view op, std::string_view name) const {
  const auto seen = operators_.find(op);
  return seen != operators_.end() &&
         std::ranges::any_of(seen->second.attributes, [&](const auto& entry) {
           return entry.first == name || entry.first.starts_with(std::string(name) + "=");
         });
}

double Coverage::operators() const {
  const auto covered = std::ranges::count_if(
      all_recipes(), [&](const Recipe& recipe) { return operators_.contains(recipe.op); });
  return share(static_cast<std::size_t>(covered), all_recipes().size());
}

double Coverage::dtypes() const {
  const auto covered = std::ranges::count_if(all_targets(), [&](const Target& target) {
    const auto seen = operators_.find(target.op);
    return seen != operators_.end() && seen->second.dtypes.contains(target.dtype);
  });
  return share(static_cast<std::size_t>(covered), all_targets().size());
}

double Coverage::attributes() const {
  std::size_t covered = 0;
  std::size_t all = 0;
  each_attribute([&](std::string_view op, std::string_view name) {
    ++all;
    covered += has_attribute(op, name) ? 1 : 0;
  });
  return share(covered, all);
}

std::vector<std::string> Coverage::missing() const {
  std::vector<std::string> names;
  for (const Target& target : all_targets()) {
    const auto seen = operators_.find(target.op);
    if (seen == operators_.end() || !seen->second.dtypes.contains(target.dtype))
      names.push_back(fmt::format("{}/{}", target.op, tessera::to_string(target.dtype)));
  }
  each_attribute([&](std::string_view op, std::string_view name) {
    if (!has_attribute(op, name)) names.push_back(fmt::format("{}.{}", op, name));
  });
  return names;
}

std::string Coverage::to_string() const {
  std::string text;
  for (const auto& [op, seen] : operators_) {
    text += fmt::format("{:<28}{:>6} ", op, seen.nodes);
    for (const auto& [dtype, count] : seen.dtypes)
      text += fmt::format(" {}:{}", tessera::to_string(dtype), count);
    for (const auto& [name, count] : seen.attributes) text += fmt::format(" {}:{}", name, count);
    text += "\n";
  }
  text += fmt::format("operators {:.1f} %, operators at dtypes {:.1f} %, attributes {:.1f} %\n",
                      100 * operators(), 100 * dtypes(), 100 * attributes());
  std::string names;
  for (const std::string& name : missing()) names += " " + name;
  return text + (names.empty() ? "" : "missing:" + names + "\n");
}

}  // namespace tessera::random_models
