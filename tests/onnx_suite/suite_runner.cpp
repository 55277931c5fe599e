// The runner of scripts/onnx_suite: compiles and runs models on one device, each in a process of
// its own, and leaves what came out for the suite to judge. It knows nothing of what is expected.
//
//   tessera_onnx_runner DEVICE THREADS < tasks > answers
//
// A task is a line of JSON: {"model": FILE, "inputs": [FILE.pb, ...], "outputs": FOLDER}, the
// inputs in the order of the graph's. The answer to it is a line too: {} where it ran, its outputs
// then in FOLDER/output_<i>.pb; else {"error": TEXT, "code": CODE}.

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "backends/registry_run/registry_run.h"
#include "cases/isolate.h"
#include "compiler/compile.h"
#include "io/tensor_proto.h"
#include "runtime/executor.h"

namespace tessera::testing {
namespace {

using nlohmann::json;

constexpr int kSeconds = 120;  // for one task

Status bind(runtime::Executor& executor, const artefact::InterfaceDecl& input,
            const std::string& file) {
  TESSERA_ASSIGN(RunValue value, io::read_value_pb(file, input.type));
  return executor.bind_value(input.name, std::move(value));
}

Status run(const json& task, const std::string& device, int threads) {
  compiler::CompileOptions options;
  options.devices = {device};
  options.threads = threads;
  TESSERA_ASSIGN(auto compiled, compiler::compile(task.at("model").get<std::string>(), options));
  TESSERA_ASSIGN(auto program, runtime::LoadedProgram::create(std::move(compiled.image), "",
                                                              &backends::make_run_device));
  TESSERA_ASSIGN(auto executor, runtime::Executor::create(program, {.threads = threads}));
  const auto& method = program->method();
  const auto files = task.at("inputs").get<std::vector<std::string>>();
  if (files.size() != method.inputs.size())
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("expected {} inputs, found {}", method.inputs.size(), files.size()));
  for (std::size_t i = 0; i < files.size(); ++i)
    TESSERA_TRY(bind(*executor, method.inputs[i], files[i]));
  TESSERA_TRY(executor->run());
  const std::filesystem::path folder = task.at("outputs").get<std::string>();
  for (std::size_t i = 0; i < method.outputs.size(); ++i) {
    const std::string& name = method.outputs[i].name;
    TESSERA_ASSIGN(const RunValue value, executor->output_value(name));
    TESSERA_TRY(io::write_value_pb(folder / fmt::format("output_{}.pb", i), value,
                                   method.outputs[i].type, name));
  }
  return {};
}

json answer(const json& task, const std::string& device, int threads) {
  const auto verdicts = judge_apart(
      [&]() -> std::vector<Verdict> {
        const auto status = run(task, device, threads);
        if (status) return {};
        return {{std::string(to_string(status.error().code)), Outcome::kFailed,
                 status.error().to_string()}};
      },
      kSeconds);
  if (verdicts.empty()) return json::object();
  return {{"code", verdicts.front().key}, {"error", verdicts.front().detail}};
}

int run_all(const std::string& device, int threads) {
  for (std::string line; std::getline(std::cin, line);) {
    const json task = json::parse(line, nullptr, false);
    if (!task.is_object()) {
      fmt::print(stderr, "tessera_onnx_runner: not a task: {}\n", line);
      return 2;
    }
    std::cout << answer(task, device, threads).dump(-1, ' ', false, json::error_handler_t::replace)
              << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace tessera::testing

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  int threads = 0;
  if (words.size() == 2)
    std::from_chars(words[1].data(), words[1].data() + words[1].size(), threads);
  if (threads < 1) {
    fmt::print(stderr, "usage: tessera_onnx_runner DEVICE THREADS < tasks > answers\n");
    return 2;
  }
  return tessera::testing::run_all(words[0], threads);
}
