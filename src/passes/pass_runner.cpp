#include "passes/pass_runner.h"

#include <algorithm>
#include <chrono>

#include "ir/infer.h"
#include "ir/verify.h"

namespace tessera::passes {
namespace {

Result<bool> run_on(const Pass& pass, PassContext& context, ir::Graph& graph) {
  bool changed = false;
  for (const auto& node : graph.nodes()) {
    for (const auto& body : node->bodies) {
      TESSERA_ASSIGN(const bool inner, run_on(pass, context, *body));
      changed = changed || inner;
    }
  }
  TESSERA_ASSIGN(const bool outer, pass.run(context, graph));
  return changed || outer;
}

}  // namespace

void PassContext::note(std::string_view pattern, std::vector<std::string> nodes,
                       std::string reason) {
  Note made{std::string(pattern), std::move(nodes), std::move(reason)};
  if (noted.insert(made).second) notes.push_back(std::move(made));
}

PassRunner::PassRunner(ir::Module& module, const PassOptions& options, OnChange on_change)
    : module_(module), context_{options, module, {}}, on_change_(std::move(on_change)) {}

PassReport& PassRunner::report_of(std::string_view name) {
  const auto found = std::find_if(reports_.begin(), reports_.end(),
                                  [&](const PassReport& report) { return report.name == name; });
  if (found != reports_.end()) return *found;
  reports_.emplace_back().name = name;
  return reports_.back();
}

Result<bool> PassRunner::run(const Pass& pass) {
  if (context_.options.disabled.contains(pass.name)) return false;
  const std::string place = "pass " + std::string(pass.name);
  const OpCounts before = count_ops(module_);
  const auto start = std::chrono::steady_clock::now();
  bool changed = false;
  for (ir::Method& method : module_.methods) {
    auto result = run_on(pass, context_, method.graph);
    if (!result) return tl::unexpected(in_context(std::move(result).error(), place));
    changed = changed || *result;
  }
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - start;
  PassReport& report = report_of(pass.name);
  report.ms += elapsed.count();
  if (!changed) return false;
  report.changed = true;
  add_difference(before, count_ops(module_), report.added, report.removed);
  auto inferred = ir::infer(module_);
  if (!inferred) return tl::unexpected(in_context(std::move(inferred).error(), place));
  TESSERA_TRY_IN(ir::verify(module_), place);
  if (on_change_) on_change_(pass.name, module_);
  return true;
}

Status PassRunner::run_to_fixed_point(std::span<const Pass> passes, int max_rounds) {
  for (int round = 0; round < max_rounds; ++round) {
    bool changed = false;
    for (const Pass& pass : passes) {
      TESSERA_ASSIGN(const bool pass_changed, run(pass));
      changed = changed || pass_changed;
    }
    if (!changed) break;
  }
  return {};
}

}  // namespace tessera::passes
