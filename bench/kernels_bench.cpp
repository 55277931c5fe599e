// The cpu's kernels against the roofline of this machine's measured rates. Each kernel is timed by
// the protocol that prices come from (docs/measuring.md); `share` is the time that its arithmetic
// or traffic would take at those rates, by the time that it took. TESSERA_BENCH_THREADS: 2 where it
// is not set.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "backends/registry_compile/registry_compile.h"
#include "compiler/machine_rates.h"
#include "compiler/measure.h"
#include "import/import.h"
#include "ir/infer.h"
#include "passes/propose_covers.h"
#include "testing/onnx_builder.h"
#include "testing/random.h"
#include "testing/temp_dir.h"

namespace tessera {
namespace {

using testing::OnnxModel;

struct Case {
  std::string name;
  std::function<void(OnnxModel&)> build;
};

void weights(OnnxModel& model, const std::string& name, const std::vector<std::int64_t>& dims) {
  std::int64_t count = 1;
  for (const std::int64_t size : dims) count *= size;
  testing::Random random(1);
  model.floats(name, dims, random.floats(static_cast<std::size_t>(count)));
}

Case conv(const std::string& name, int channels, int filters, int size, int kernel, int group) {
  return {name, [=](OnnxModel& model) {
            model.input("x", testing::kFloat, {1, channels, size, size});
            weights(model, "w", {filters, channels / group, kernel, kernel});
            const std::int64_t pad = kernel / 2;
            model.node("Conv", {"x", "w"}, {"y"}, "n")
                .ints("pads", {pad, pad, pad, pad})
                .integer("group", group);
            model.output("y");
          }};
}

// One input, one operator; `more` adds attributes and constants.
Case single(const std::string& op, const testing::OnnxDims& dims,
            const std::vector<std::string>& inputs = {"x"},
            const std::function<void(OnnxModel&, testing::OnnxNode&)>& more = nullptr) {
  return {op, [=](OnnxModel& model) {
            model.input("x", testing::kFloat, dims);
            auto node = model.node(op, inputs, {"y"}, "n");
            if (more) more(model, node);
            model.output("y");
          }};
}

std::vector<Case> cases() {
  return {
      {"product",
       [](OnnxModel& model) {
         model.input("x", testing::kFloat, {128, 768});
         weights(model, "w", {768, 768});
         model.node("MatMul", {"x", "w"}, {"y"}, "n");
         model.output("y");
       }},
      conv("conv_1x1", 128, 128, 28, 1, 1),
      conv("conv_3x3", 64, 64, 56, 3, 1),
      conv("conv_depthwise", 96, 96, 56, 3, 96),
      conv("conv_depthwise_5x5", 240, 240, 14, 5, 240),
      single("MaxPool", {1, 64, 56, 56}, {"x"},
             [](OnnxModel&, testing::OnnxNode& node) {
               node.ints("kernel_shape", {2, 2}).ints("strides", {2, 2});
             }),
      single("GlobalAveragePool", {1, 256, 28, 28}),
      single("Resize", {1, 64, 28, 28}, {"x", "", "scales"},
             [](OnnxModel& model, testing::OnnxNode& node) {
               model.floats("scales", {4}, {1, 1, 2, 2});
               node.text("mode", "nearest");
             }),
      single("Softmax", {12, 128, 128}),
      single("ReduceMean", {128, 768}, {"x"},
             [](OnnxModel&, testing::OnnxNode& node) { node.ints("axes", {1}); }),
      single("LayerNormalization", {128, 768}, {"x", "scale", "bias"},
             [](OnnxModel& model, testing::OnnxNode&) {
               weights(model, "scale", {768});
               weights(model, "bias", {768});
             }),
      {"elementwise_group",
       [](OnnxModel& model) {
         model.input("x", testing::kFloat, {1, 64, 56, 56});
         model.node("Sigmoid", {"x"}, {"s"}, "s");
         model.node("Mul", {"x", "s"}, {"m"}, "m");
         model.node("Relu", {"m"}, {"y"}, "n");
         model.output("y");
       }},
      single("Transpose", {1, 64, 56, 56}, {"x"},
             [](OnnxModel&, testing::OnnxNode& node) {
               node.ints("perm", {0, 2, 3, 1});
             }),
  };
}

int bench_threads() {
  const char* text = std::getenv("TESSERA_BENCH_THREADS");
  return text == nullptr ? 2 : std::max(1, std::atoi(text));
}

// What all benchmarks share; leaked, since they run until the program ends.
struct Machine {
  plan::Target target;
  std::unique_ptr<compiler::Measurer> measurer;
};

Machine& machine() {
  static Machine& made = []() -> Machine& {
    constexpr double kNoBudgetS = 1e9;
    auto& machine = *new Machine;
    auto file = compiler::measure_machine(bench_threads());
    std::vector<std::unique_ptr<backends::CompileDevice>> devices;
    const testing::TempDir folder;
    const auto path = folder.write("cpu.json", backends::print_rates(*file));
    devices.push_back(*backends::make_compile_device(path.string()));
    machine.target = *plan::make_target(std::move(devices));
    machine.measurer = std::make_unique<compiler::Measurer>(machine.target, bench_threads(),
                                                            plan::CacheState::kResident, kNoBudgetS,
                                                            std::stop_token(), nullptr);
    return machine;
  }();
  return made;
}

// Times one request; the counters say which resource bounds it and which share of it is reached.
void report(benchmark::State& state, const plan::PriceRequest& request) {
  const auto entry = machine().measurer->measure({&request, 1}, {}).front();
  if (!entry) return state.SkipWithError(entry.error().to_string().c_str());
  for (auto _ : state) state.SetIterationTime(entry->time_us * 1e-6);
  backends::Candidate ideal = *request.candidate;
  ideal.efficiency = 1;
  const double roof_us = plan::roofline_us(machine().target.info(0).rates, ideal);
  state.counters["GFLOP/s"] = ideal.flops / entry->time_us * 1e-3;
  state.counters["GB/s"] = ideal.bytes_moved / entry->time_us * 1e-3;
  state.counters["share"] = roof_us / entry->time_us;
  state.counters["cold_us"] = entry->cold_us;
  if (entry->busy) state.SetLabel("measured while others used a core");
}

void add(const std::string& name, std::function<void(benchmark::State&)> body) {
  benchmark::RegisterBenchmark(name.c_str(), std::move(body))
      ->UseManualTime()
      ->Iterations(1)
      ->Unit(benchmark::kMicrosecond);
}

// Every candidate of the case's nodes together: alone, or as the cover of all.
Status add_case(const Case& one) {
  OnnxModel model(17);
  one.build(model);
  const testing::TempDir folder;
  auto& module = *new ir::Module;
  TESSERA_ASSIGN(module, importer::import_file(folder.write("m.onnx", model.serialize()), {}));
  TESSERA_TRY(ir::infer(module));
  ir::Graph& graph = module.methods.front().graph;
  std::vector<passes::Note> notes;
  auto& covers = *new std::vector<ir::Cover>(passes::propose_covers(module, graph, notes));
  const auto whole = std::ranges::find_if(covers, [&](const ir::Cover& cover) {
    return cover.nodes.size() == graph.nodes().size() && cover.assembled.empty();
  });
  if (graph.nodes().size() > 1 && whole == covers.end())
    return fail(ErrorCode::kInternal, one.name + ": expected a cover of all nodes, found none");
  auto& item = *new ir::WorkItem(graph.nodes().size() > 1
                                     ? ir::work_item(module, graph, *whole)
                                     : ir::work_item(module, graph, *graph.nodes().front()));
  auto& offers = *new backends::Offers(
      machine().target.devices[0]->offers(item, {}, {.threads = bench_threads()}));
  if (offers.candidates.empty()) return fail(ErrorCode::kInternal, offers.refusal);
  for (const backends::Candidate& candidate : offers.candidates)
    add(fmt::format("{}/{}/{}", one.name, candidate.kernel,
                    candidate.outputs.front().layout.to_string()),
        [&](benchmark::State& state) {
          report(state, {.item = &item,
                         .device = 0,
                         .candidate = &candidate,
                         .from = {},
                         .to = {},
                         .shape = {}});
        });
  return {};
}

void add_conversions() {
  auto& shape = *new Shape{1, 64, 56, 56};
  const std::vector<Layout> layouts = {Layout::row_major(), Layout::channels_last(4),
                                       Layout::channel_blocked(4, 8)};
  for (const Layout& from : layouts)
    for (const Layout& to : layouts) {
      if (from == to) continue;
      const backends::TensorForm source{from, DType::kFp32};
      const backends::TensorForm result{to, DType::kFp32};
      auto& offers =
          *new backends::Offers(machine().target.devices[0]->conversion(source, result, shape, {}));
      for (const backends::Candidate& candidate : offers.candidates)
        add(fmt::format("convert/{}->{}", from.to_string(), to.to_string()),
            [&candidate, &shape, source, result](benchmark::State& state) {
              report(state, {.item = nullptr,
                             .device = 0,
                             .candidate = &candidate,
                             .from = source,
                             .to = result,
                             .shape = shape});
            });
    }
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  for (const tessera::Case& one : tessera::cases()) {
    if (const auto added = tessera::add_case(one); !added) {
      fmt::print(stderr, "kernels_bench: {}: {}\n", one.name, added.error().to_string());
      return 1;
    }
  }
  tessera::add_conversions();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
