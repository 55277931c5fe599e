// What the runtime adds to a kernel's own time, per instruction: a chain of tiny kernels run by a
// session, and the same kernels called one after the other without it, in turn. The counter
// overhead_ns is the difference of the medians by the number of instructions; at most 200 is the
// bar.

#include <benchmark/benchmark.h>

#include <chrono>
#include <filesystem>

#include "backends/registry_run/registry_run.h"
#include "base/statistics.h"
#include "compiler/compile.h"
#include "runtime/executor.h"
#include "testing/onnx_builder.h"
#include "testing/temp_dir.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kNodes = 300;
constexpr int kSize = 8;

double elapsed_ns(Clock::time_point since) {
  return std::chrono::duration<double, std::nano>(Clock::now() - since).count();
}

// Softmax after softmax: nothing fuses them, nothing simplifies them.
std::string chain() {
  testing::OnnxModel model(17);
  model.input("v0", testing::kFloat, {1, kSize});
  for (int i = 0; i < kNodes; ++i)
    model.node("Softmax", {"v" + std::to_string(i)}, {"v" + std::to_string(i + 1)},
               "softmax" + std::to_string(i));
  model.output("v" + std::to_string(kNodes), testing::kFloat, {1, kSize});
  return model.serialize();
}

// The kernels of a program, each ready on operands of its own.
class Kernels {
 public:
  explicit Kernels(const runtime::LoadedProgram& program) {
    std::size_t value = 0;
    const auto& instructions = program.method().instructions;
    values_.resize(instructions.size() + 1, std::vector<float>(kSize, 0.5F));
    for (const auto& instruction : instructions) {
      if (instruction.inputs.size() != 1 || instruction.outputs.size() != 1) return;
      const Dims dims = {1, kSize};
      auto instance = program.kernel(instruction.kernel)->instantiate({{dims}, {dims}}, 1);
      if (!instance || (*instance)->scratch_bytes() > kScratch) return;
      instances_.push_back(*std::move(instance));
      inputs_.push_back(reinterpret_cast<const std::byte*>(values_[value].data()));
      outputs_.push_back(reinterpret_cast<std::byte*>(values_[++value].data()));
    }
  }
  [[nodiscard]] std::size_t size() const { return instances_.size(); }
  bool run() {
    bool good = true;
    for (std::size_t i = 0; i < instances_.size(); ++i)
      good = instances_[i]
                 ->execute({{&inputs_[i], 1}, {&outputs_[i], 1}, scratch_.data(), &pool_})
                 .has_value() &&
             good;
    return good;
  }

 private:
  static constexpr std::int64_t kScratch = 4096;
  runtime::ThreadPool pool_{1};
  std::vector<std::byte> scratch_ = std::vector<std::byte>(kScratch);
  std::vector<std::vector<float>> values_;
  std::vector<std::unique_ptr<backends::KernelInstance>> instances_;
  std::vector<const std::byte*> inputs_;
  std::vector<std::byte*> outputs_;
};

void instruction_overhead(benchmark::State& state) {
  const testing::TempDir folder;
  auto compiled = compiler::compile(folder.write("chain.onnx", chain()), {});
  if (!compiled) return state.SkipWithError(compiled.error().to_string().c_str());
  const auto program =
      runtime::LoadedProgram::create(std::move(compiled->image), "", &backends::make_run_device);
  if (!program) return state.SkipWithError(program.error().to_string().c_str());
  const auto executor = runtime::Executor::create(*program, {.threads = 1});
  const Dims dims = {1, kSize};
  const std::vector<float> input(kSize, 0.5F);
  if (!executor || !(*executor)->bind_input("v0", DType::kFp32, dims, input.data()) ||
      !(*executor)->run())
    return state.SkipWithError("the chain does not run");
  Kernels kernels(**program);
  if (kernels.size() != static_cast<std::size_t>(kNodes))
    return state.SkipWithError("expected a kernel for each node of the chain");
  std::vector<double> whole_ns;
  std::vector<double> alone_ns;
  for (auto _ : state) {
    auto begin = Clock::now();
    bool good = (*executor)->run().has_value();
    whole_ns.push_back(elapsed_ns(begin));
    begin = Clock::now();
    good = kernels.run() && good;
    alone_ns.push_back(elapsed_ns(begin));
    if (!good) return state.SkipWithError("a run failed");
  }
  state.counters["kernel_ns"] = median(alone_ns) / kNodes;
  state.counters["overhead_ns"] = (median(whole_ns) - median(alone_ns)) / kNodes;
}
BENCHMARK(instruction_overhead)->Unit(benchmark::kMicrosecond)->MinTime(2.0);

}  // namespace
}  // namespace tessera
