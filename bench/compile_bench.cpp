// Compiling and running the model that ./dev fetches: run from the root of the tree after `./dev
// fetch-model`.

#include <benchmark/benchmark.h>

#include <filesystem>

#include "backends/registry_run/registry_run.h"
#include "compiler/compile.h"
#include "runtime/executor.h"

namespace tessera {
namespace {

constexpr const char* kModel = "build/models/ppocrv4_det/model.onnx";

compiler::CompileOptions options(int threads) {
  compiler::CompileOptions result;
  result.threads = threads;
  result.shapes["x"] = {1, 3, 320, 320};
  return result;
}

void compile_detector(benchmark::State& state) {
  if (!std::filesystem::exists(kModel)) return state.SkipWithError("run ./dev fetch-model first");
  for (auto _ : state) benchmark::DoNotOptimize(compiler::compile(kModel, options(2)));
}
BENCHMARK(compile_detector)->Unit(benchmark::kMillisecond);

void run_detector(benchmark::State& state) {
  const int threads = static_cast<int>(state.range(0));
  auto compiled = compiler::compile(kModel, options(threads));
  if (!compiled) return state.SkipWithError("run ./dev fetch-model first");
  const auto program =
      runtime::LoadedProgram::create(std::move(compiled->image), "", &backends::make_run_device);
  const auto executor = runtime::Executor::create(*program, {.threads = threads});
  const Dims dims = {1, 3, 320, 320};
  const auto input = Tensor::zeros(DType::kFp32, dims);
  if (!(*executor)->bind_input("x", DType::kFp32, dims, input->data()) || !(*executor)->run())
    return state.SkipWithError("the model does not run");
  for (auto _ : state) benchmark::DoNotOptimize((*executor)->run());
}
BENCHMARK(run_detector)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace tessera
