#include "compiler/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "backends/registry_compile/registry_compile.h"
#include "backends/registry_run/registry_run.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/machine_facts.h"
#include "base/processors.h"
#include "compiler/assumed_sizes.h"
#include "compiler/cache_state.h"
#include "compiler/emit.h"
#include "compiler/evidence.h"
#include "compiler/measure.h"
#include "compiler/plan_method.h"
#include "compiler/plan_space.h"
#include "compiler/plan_text.h"
#include "compiler/price_point.h"
#include "import/import.h"
#include "ir/flatten.h"
#include "ir/infer.h"
#include "ir/late_sizes.h"
#include "ir/text.h"
#include "passes/canonical_text.h"
#include "passes/op_counts.h"
#include "passes/pipeline.h"
#include "passes/propose_covers.h"

namespace tessera::compiler {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSaveEveryMs = 10'000;
constexpr double kMaxLookUs = 10e6;  // as priced

double elapsed_ms(Clock::time_point since) {
  return std::chrono::duration<double, std::milli>(Clock::now() - since).count();
}

// Devices that cannot start are left out, each with its reason in `absent`; an error where nothing
// may be left out.
// `cpu_entry`: the entry that is the processor, where one is.
Result<plan::Target> open_target(const std::vector<std::string>& entries, bool strict,
                                 std::vector<std::string>& absent, std::string& cpu_entry) {
  std::vector<std::unique_ptr<backends::CompileDevice>> devices;
  for (const std::string& entry : entries) {
    auto device = backends::make_compile_device(entry);
    if (!device && device.error().code == ErrorCode::kUnavailable && !strict) {
      absent.push_back(device.error().to_string());
      continue;
    }
    if (!device) return tl::unexpected(std::move(device).error());
    if ((*device)->info().backend == "cpu") cpu_entry = entry;
    devices.push_back(*std::move(device));
  }
  return plan::make_target(std::move(devices));
}

// The parts of one compilation that several stages share.
class Compilation {
 public:
  Compilation(const std::filesystem::path& model, const CompileOptions& options)
      : path_(model), options_(options) {}

  Result<Compiled> run();

 private:
  Status begin(Stage stage) {
    if (options_.cancel.stop_requested()) return fail(ErrorCode::kCancelled, "stopped");
    if (options_.progress) options_.progress(to_string(stage), 0);
    return {};
  }
  // Prints the module where asked; true where the compilation ends here.
  bool ends_at(Stage stage) {
    if (options_.dump && stage <= Stage::kSimplify)
      options_.dump(stage, ir::print(module_, {.canonical = options_.canonical_dump}));
    return options_.stop_after == stage;
  }

  // What is wrong with the model is said of its file.
  template <typename T>
  Result<T> of_model(Result<T> result) const {
    if (result || result.error().code == ErrorCode::kCancelled) return result;
    return tl::unexpected(in_context(std::move(result).error(), path_.string()));
  }

  Status import_model();
  Status infer();
  Status simplify();
  std::vector<ir::Cover> fuse();
  std::string canonical_fuse_text(const std::vector<ir::Cover>& covers);
  Result<std::unique_ptr<Planned>> plan(plan::Target& target, plan::Pricer& pricer,
                                        std::vector<ir::Cover> covers, bool quiet);
  Result<std::unique_ptr<Planned>> plan_and_emit(plan::Target& target, plan::Pricer& pricer,
                                                 const std::vector<ir::Cover>& covers);
  Status load_prices();
  void prepare_pricer(plan::Target& target, plan::Pricer& pricer);
  Status check_requirements(const plan::Target& target) const;
  Status plan_cpu_alone(const std::vector<ir::Cover>& covers, const SymbolBindings& point);
  Result<SymbolBindings> choose_point(const std::vector<ir::Cover>& covers);
  Result<AssumedSizes> look_at_run(const std::vector<ir::Cover>& covers,
                                   const SymbolBindings& point);
  void report_assumptions(const SymbolBindings& point);
  Status save_prices();
  void fill_manifest(const plan::Target& target);
  void describe_model();

  const std::filesystem::path& path_;
  const CompileOptions& options_;
  ir::Module module_;
  ir::Method flat_;  // the method with its bodies in one graph, once it is simplified
  plan::CostTable table_;
  std::vector<plan::Exclusion> excluded_;  // what devices failed to compile
  ContentHash saved_hash_;                 // of the table as the file has it
  Clock::time_point saved_at_ = Clock::now();
  plan::CacheState caches_ = plan::CacheState::kResident;  // in which kernels are priced
  AssumedSizes assumed_;                                   // where only the run decides sizes
  std::unique_ptr<Measurer> measurer_;
  std::string cpu_entry_ = "cpu";  // of --devices: with measured rates, where the user gave some
  Compiled result_;
};

Status Compilation::import_model() {
  const auto start = Clock::now();
  importer::ImportOptions import_options;
  import_options.ranges = options_.ranges;
  import_options.states = options_.states;
  TESSERA_ASSIGN(module_, importer::import_file(path_, import_options));
  result_.import_ms = elapsed_ms(start);
  report::PassEntry& entry = result_.report.passes.emplace_back();
  entry.name = "import";
  entry.ms = result_.import_ms;
  passes::add_difference(passes::count_source_ops(module_), passes::count_ops(module_), entry.added,
                         entry.removed);
  return {};
}

Status Compilation::infer() {
  TESSERA_ASSIGN(const auto unknown, ir::infer(module_));
  for (const auto& entry : unknown)
    result_.report.near_misses.push_back(
        {"shape inference",
         {entry.node},
         fmt::format("value '{}': {}", entry.value, entry.reason)});
  return {};
}

Status Compilation::simplify() {
  passes::PassOptions pass_options;
  pass_options.disabled = {options_.disabled_passes.begin(), options_.disabled_passes.end()};
  pass_options.exact = options_.exact;
  TESSERA_ASSIGN(auto outcome, passes::simplify(module_, pass_options));
  for (auto& pass : outcome.passes)
    result_.report.passes.push_back(
        {std::move(pass.name), pass.ms, std::move(pass.added), std::move(pass.removed)});
  for (auto& note : outcome.notes)
    result_.report.near_misses.push_back(
        {std::move(note.pattern), std::move(note.nodes), std::move(note.reason)});
  return {};
}

std::vector<ir::Cover> Compilation::fuse() {
  std::vector<passes::Note> notes;
  auto covers = passes::propose_covers(module_, flat_.graph, notes);
  for (auto& note : notes)
    result_.report.near_misses.push_back(
        {std::move(note.pattern), std::move(note.nodes), std::move(note.reason)});
  return covers;
}

// The canonical print is one of a module; this one has the flattened method.
std::string Compilation::canonical_fuse_text(const std::vector<ir::Cover>& covers) {
  ir::Module shown;
  shown.name = module_.name;
  shown.symbols = module_.symbols;
  shown.source_nodes = module_.source_nodes;
  shown.metadata = module_.metadata;
  shown.methods.push_back(std::move(flat_));
  std::string text = passes::canonical_text(shown, covers);
  flat_ = std::move(shown.methods.front());
  return text;
}

Status Compilation::load_prices() {
  if (!options_.cost_table.empty()) {
    TESSERA_ASSIGN(table_, plan::CostTable::load(options_.cost_table));
  }
  saved_hash_ = table_.content_hash();
  return {};
}

Status Compilation::save_prices() {
  saved_at_ = Clock::now();
  if (options_.cost_table.empty() || table_.content_hash() == saved_hash_) return {};
  TESSERA_TRY(table_.save(options_.cost_table));
  saved_hash_ = table_.content_hash();
  return {};
}

// At a guess, the model is compiled for the processor and run once: it shows the sizes, unless that
// takes too long.
Result<AssumedSizes> Compilation::look_at_run(const std::vector<ir::Cover>& covers,
                                              const SymbolBindings& point) {
  std::vector<std::string> absent;
  TESSERA_ASSIGN(plan::Target target, open_target({cpu_entry_}, true, absent, cpu_entry_));
  plan::CostTable no_prices;
  plan::Pricer pricer(target, no_prices, options_.threads, point);
  CompileOptions options;
  options.threads = options_.threads;
  options.cancel = options_.cancel;
  TESSERA_ASSIGN(const auto planned, plan_method(module_, flat_, covers, target, pricer, options));
  if (planned->solution.cost > kMaxLookUs)
    return fail(
        ErrorCode::kResourceExhausted,
        fmt::format("a run that shows them takes {:.0f} s by the rates of the processor, of "
                    "{:.0f} s allowed; --shape states smaller sizes",
                    planned->solution.cost * 1e-6, kMaxLookUs * 1e-6));
  artefact::ProgramImage image;
  TESSERA_TRY(Emitter(image, target).emit("main", module_, flat_, planned->lowered, point));
  TESSERA_ASSIGN(const auto program,
                 runtime::LoadedProgram::create(std::move(image), "", backends::make_run_device));
  return assume_sizes(flat_.graph, program, options_.threads, options_.cancel);
}

Result<SymbolBindings> Compilation::choose_point(const std::vector<ir::Cover>& covers) {
  TESSERA_ASSIGN(SymbolBindings point, price_point(module_, flat_.graph, options_.shapes));
  if (ir::find_late_sizes(flat_.graph).nodes.empty()) return point;
  auto assumed = look_at_run(covers, point);
  if (options_.cancel.stop_requested()) return fail(ErrorCode::kCancelled, "stopped");
  if (assumed)
    assumed_ = *std::move(assumed);
  else
    assumed_.gap = assumed.error().to_string();
  return price_point(module_, flat_.graph, options_.shapes, assumed_.symbols);
}

void Compilation::report_assumptions(const SymbolBindings& point) {
  auto& options = result_.report.options;
  for (const auto& [symbol, size] : point) options["priced_at." + symbol] = std::to_string(size);
  for (const std::string& symbol : late_symbols(flat_.graph)) {
    const auto seen = assumed_.symbols.find(symbol);
    const auto size = point.find(symbol);
    if (size == point.end()) continue;
    const bool is_seen = seen != assumed_.symbols.end() && seen->second == size->second;
    options["assumed." + symbol] =
        fmt::format("{}, {}", size->second, is_seen ? "seen in a run" : "a guess");
  }
  for (const auto& [id, dims] : assumed_.dims)
    options["assumed." + flat_.graph.value(id).name] =
        fmt::format("[{}], seen in a run", tessera::to_string(dims));
  if (!assumed_.gap.empty())
    result_.report.near_misses.push_back({"sizes that only the run decides", {}, assumed_.gap});
}

void Compilation::prepare_pricer(plan::Target& target, plan::Pricer& pricer) {
  pricer.set_assumed(assumed_.dims);
  pricer.set_runs_per_load(options_.runs_per_load);
  if (options_.measure == plan::MeasureMode::kOff) return;
  auto progress = [this](double share) {
    if (options_.progress) options_.progress("measure", share);
  };
  measurer_ = std::make_unique<Measurer>(target, options_.threads, caches_,
                                         options_.measure_seconds, options_.cancel, progress);
  measurer_->set_operands(assumed_.operands);
  pricer.set_measure(options_.measure, [this](std::span<const plan::PriceRequest> requests,
                                              const SymbolBindings& point) {
    // A run that ends by force loses little. Where the file cannot be written, the end says so.
    if (elapsed_ms(saved_at_) > kSaveEveryMs) (void)save_prices();
    return measurer_->measure(requests, point);
  });
}

Result<std::unique_ptr<Planned>> Compilation::plan(plan::Target& target, plan::Pricer& pricer,
                                                   std::vector<ir::Cover> covers, bool quiet) {
  CompileOptions options = options_;
  if (quiet) {
    options.dump = nullptr;
    options.stop_after = Stage::kEmit;
    options.rules.clear();  // rules may name devices that this target lacks
  }
  return of_model(
      plan_method(module_, flat_, std::move(covers), target, pricer, options, excluded_));
}

// Kernels are compiled and weights packed last, for what was chosen and for nothing else. What a
// device fails to compile it may not take, and the question is asked again without it; an error
// where nothing may be left out.
Result<std::unique_ptr<Planned>> Compilation::plan_and_emit(plan::Target& target,
                                                            plan::Pricer& pricer,
                                                            const std::vector<ir::Cover>& covers) {
  while (true) {
    auto planned_or = plan(target, pricer, covers, /*quiet=*/false);
    TESSERA_TRY(save_prices());  // also of a plan that failed, or was stopped: prices took time
    TESSERA_ASSIGN(auto planned, std::move(planned_or));
    if (options_.stop_after != Stage::kEmit) return planned;
    TESSERA_TRY(begin(Stage::kEmit));
    result_.image = {};
    Emitter emitter(result_.image, target);
    const auto status = emitter.emit("main", module_, flat_, planned->lowered, pricer.point());
    if (status) return planned;
    if (!emitter.failed() || options_.strict)
      return tl::unexpected(in_context(status.error(), path_.string()));
    excluded_.push_back(*emitter.failed());
    std::vector<std::string> names;
    for (const ir::NodeId id : excluded_.back().nodes)
      names.push_back(flat_.graph.find_node(id)->name);
    result_.report.near_misses.push_back(
        {"placed elsewhere", names,
         fmt::format("device '{}': {}", excluded_.back().device, excluded_.back().reason)});
  }
}

// What the CPU alone costs, and the plan for it that an artefact for several devices carries.
Status Compilation::plan_cpu_alone(const std::vector<ir::Cover>& covers,
                                   const SymbolBindings& point) {
  std::vector<std::string> absent;
  TESSERA_ASSIGN(plan::Target target, open_target({cpu_entry_}, true, absent, cpu_entry_));
  plan::Pricer pricer(target, table_, options_.threads, point, caches_);
  pricer.set_assumed(assumed_.dims);
  pricer.set_runs_per_load(options_.runs_per_load);
  auto planned = plan(target, pricer, covers, /*quiet=*/true);
  if (!planned)
    return {};  // the CPU alone cannot run the model: the report says "null", the artefact has one
                // plan
  result_.report.assignment.cpu_only_us = (*planned)->solution.cost;
  if (options_.stop_after != Stage::kEmit || !options_.fallback) return {};
  return Emitter(result_.image, target).emit("cpu", module_, flat_, (*planned)->lowered, point);
}

Status Compilation::check_requirements(const plan::Target& target) const {
  const auto& nodes = flat_.graph.nodes();
  for (const Requirement& requirement : options_.requirements) {
    const auto name = fmt::format("--require {}={}", requirement.device, requirement.glob);
    const auto names = [&](const ir::SourceNode& source) {
      return plan::names_source(requirement.glob, source);
    };
    if (target.find(requirement.device) == target.device_count())
      return fail(ErrorCode::kNotFound,
                  fmt::format("{}: no device '{}': expected one of {}", name, requirement.device,
                              plan::device_names(target)));
    if (std::ranges::none_of(module_.source_nodes, names))
      return fail(ErrorCode::kNotFound,
                  fmt::format("{}: no node of the model matches '{}'", name, requirement.glob));
    std::string elsewhere;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const report::NodeEntry& node = result_.report.nodes[i];
      const bool matches = std::ranges::any_of(nodes[i]->origins, [&](ir::OriginId origin) {
        return names(module_.source_nodes[origin]);
      });
      if (!matches || node.selected.device == requirement.device) continue;
      const std::string& refusal = node.supported.at(requirement.device);
      elsewhere += fmt::format("\n  {} ({}) is on {}: {}", node.name, node.op, node.selected.device,
                               refusal.empty() ? "it costs less there" : refusal);
    }
    if (!elsewhere.empty())
      return fail(ErrorCode::kFailedPrecondition, fmt::format("{}:{}", name, elsewhere));
  }
  return {};
}

void Compilation::fill_manifest(const plan::Target& target) {
  auto& manifest = result_.image.manifest;
  manifest["tessera.version"] = TESSERA_VERSION;
  manifest["cost_table.hash"] = table_.content_hash().to_string();
  for (const auto& [key, value] : result_.report.model) manifest["model." + key] = value;
  for (const auto& [key, value] : result_.report.options) manifest["option." + key] = value;
  for (const auto& device : target.devices)
    for (const auto& [key, value] : device->identity())
      manifest[fmt::format("device.{}.{}", device->info().name, key)] = value;
}

void Compilation::describe_model() {
  auto& model = result_.report.model;
  model["name"] = module_.name;
  for (const auto& [key, value] : module_.metadata) model[key] = value;
  model["nodes"] = std::to_string(module_.source_nodes.size());
  auto& options = result_.report.options;
  options["threads"] = std::to_string(options_.threads);
  options["precision"] = std::string(to_string(options_.precision));
  options["runs_per_load"] = fmt::format("{}", options_.runs_per_load);
  options["exact"] = options_.exact ? "true" : "false";
}

Result<Compiled> Compilation::run() {
  TESSERA_TRY(begin(Stage::kImport));  // first: everything else works on the IR alone
  TESSERA_TRY(import_model());
  describe_model();
  if (ends_at(Stage::kImport)) return std::move(result_);
  TESSERA_TRY(begin(Stage::kInfer));  // types and known sizes, which every later stage reads
  TESSERA_TRY(of_model(infer()));
  if (ends_at(Stage::kInfer)) return std::move(result_);
  TESSERA_TRY(begin(Stage::kSimplify));  // before covers: they should see the smallest graph
  TESSERA_TRY(simplify());
  if (ends_at(Stage::kSimplify)) return std::move(result_);
  TESSERA_TRY(begin(Stage::kFuse));  // proposals only: whether to fuse is part of the assignment
  flat_ = ir::flatten(module_.methods.front(), options_.control);
  const auto covers = fuse();
  if (options_.dump)
    options_.dump(Stage::kFuse, options_.canonical_dump ? canonical_fuse_text(covers)
                                                        : covers_text(flat_.graph, covers));
  if (options_.stop_after == Stage::kFuse) return std::move(result_);

  // Enumerate, price, assign, legalize, schedule and allocate, on the devices that the user named.
  TESSERA_TRY(begin(Stage::kAssign));
  std::vector<std::string> absent;
  TESSERA_ASSIGN(plan::Target target,
                 open_target(options_.devices, options_.strict, absent, cpu_entry_));
  for (std::string& reason : absent)
    result_.report.near_misses.push_back({"device left out", {}, std::move(reason)});
  TESSERA_TRY(load_prices());
  TESSERA_ASSIGN(const SymbolBindings point, of_model(choose_point(covers)));
  report_assumptions(point);
  caches_ = cache_state(touched_bytes(flat_.graph, point), data_caches(allowed_processors()));
  result_.report.options["caches"] = std::string(plan::to_string(caches_));
  plan::Pricer pricer(target, table_, options_.threads, point, caches_);
  prepare_pricer(target, pricer);
  TESSERA_ASSIGN(const auto planned, plan_and_emit(target, pricer, covers));
  if (options_.explore && options_.stop_after == Stage::kEmit)
    TESSERA_TRY(
        options_.explore(PlanSpace(module_, flat_, target, pricer.point(), *planned, options_)));
  if (measurer_ != nullptr)
    result_.measuring = {measurer_->measured(), measurer_->spent_s(), measurer_->budget_s()};
  result_.estimates = pricer.estimates();
  if (options_.stop_after < Stage::kAllocate) return std::move(result_);
  add_plan_evidence(module_, flat_, *planned, target, pricer, result_.report);
  TESSERA_TRY(check_requirements(target));
  const bool cpu_is_all = options_.devices == std::vector<std::string>{cpu_entry_};
  if (cpu_is_all) {
    result_.report.assignment.cpu_only_us = planned->solution.cost;
  } else {
    TESSERA_TRY(plan_cpu_alone(covers, point));
  }
  fill_manifest(target);
  report::Report stored = result_.report;
  for (auto& pass : stored.passes) pass.ms = 0;  // equal inputs give equal bytes
  result_.image.evidence = report::to_json(stored);
  return std::move(result_);
}

}  // namespace

Result<Compiled> compile(const std::filesystem::path& model, const CompileOptions& options) {
  const auto start = Clock::now();
  auto compiled = Compilation(model, options).run();
  if (!compiled) return compiled;
  compiled->total_ms = elapsed_ms(start);
  return compiled;
}

}  // namespace tessera::compiler
