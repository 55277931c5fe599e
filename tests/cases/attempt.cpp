#include "cases/attempt.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "backends/registry_run/registry_run.h"
#include "import/import.h"

namespace tessera::testing {
namespace {

using nlohmann::json;

constexpr int kThreads = 2;  // so that work is cut into pieces

// The rates of the simulated devices. Free: whatever the device supports goes there, so that the
// borders are crossed. Dear: a border costs more than a few small operations.
json with_rates(json profile, bool dear) {
  profile["schema"] = "tessera.device/1.0";
  if (dear) return profile;  // the defaults of a profile
  profile["gflops"] = {{"fp32", 1e7}, {"fp16", 1e7}, {"int8", 1e7}};
  profile["memory_gb_per_s"] = 1e7;
  profile["launch_us"] = 0;
  profile["sync_us"] = 0;
  profile["link"] = {{"gb_per_s", 1e7}, {"latency_us", 0}};
  return profile;
}

std::string write_profile(const TempDir& folder, const json& profile, bool dear) {
  const std::string name = profile.at("name").get<std::string>();
  const std::string file = fmt::format("{}_{}.json", name, dear ? "dear" : "free");
  return folder.write(file, with_rates(profile, dear).dump()).string();
}

Way partition_way(const json& partition, const TempDir& folder, bool dear) {
  Way way{dear ? "dear borders" : "free borders", {}, dear};
  for (const json& device : partition.at("devices"))
    way.devices.push_back(device.is_string() ? device.get<std::string>()
                                             : write_profile(folder, device, dear));
  return way;
}

// A device that takes whatever it can, but lacks common operators: most models cross borders.
Way split_way(const TempDir& folder) {
  const json npu = {{"name", "npu"},
                    {"lacks", {{{"op", "Add"}}, {{"op", "Relu"}}, {{"op", "Transpose"}}}},
                    {"layouts", json::array({"nhwc"})}};
  return {"split", {"cpu", write_profile(folder, npu, false)}, false};
}

// Where the elements of `view` lie within [data, data + size).
bool overlaps(const TensorView& view, const void* data, std::int64_t size) {
  const auto* begin = static_cast<const std::byte*>(view.data);
  const auto* other = static_cast<const std::byte*>(data);
  return view.nbytes() > 0 && size > 0 && begin < other + size && other < begin + view.nbytes();
}

std::string shared_memory(const runtime::Executor& executor, const io::NamedTensors& feeds) {
  for (const auto& decl : executor.program().method().outputs) {
    const auto output = executor.output(decl.name);
    if (!output) continue;
    for (const auto& [name, tensor] : feeds)
      if (overlaps(*output, tensor.data(), tensor.nbytes()))
        return fmt::format("output '{}' lies in input '{}'", decl.name, name);
    for (std::size_t i = 0; i < executor.program().image().segments.size(); ++i) {
      const auto bytes = executor.program().segment(i);
      if (overlaps(*output, bytes.data(), static_cast<std::int64_t>(bytes.size())))
        return fmt::format("output '{}' lies in constant {}", decl.name, i);
    }
  }
  return {};
}

// One case on its way through its steps.
class Run {
 public:
  Run(const Case& tested, const Way& way, Attempt& result)
      : tested_(tested), way_(way), result_(result) {
    const CaseStep& first = tested.steps.front();
    result_.same_session =
        !tested.has("cache_dir") && std::ranges::all_of(tested.steps, [&](const CaseStep& step) {
          return step.copies.empty() && step.model == first.model;
        });
  }

  Status step(std::size_t index) {
    const CaseStep& step = tested_.steps[index];
    for (const auto& [from, to] : step.copies)
      std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing);
    result_.failed_at_run = false;
    if (index == 0 || !result_.same_session) {
      result_.executor.reset();
      TESSERA_ASSIGN(result_.loaded, load_step(tested_, step, way_));
      TESSERA_ASSIGN(result_.executor, open_session(result_.loaded->program));
    }
    result_.failed_at_run = true;
    TESSERA_ASSIGN(auto feeds, read_feeds(step));
    StepRun run{result_.loaded->program, std::move(feeds), {}, {}, {}};
    for (const auto& [name, tensor] : run.feeds)
      run.feeds_before.emplace_back(name, Tensor::copy_of(tensor.view()));
    TESSERA_TRY(bind_feeds(*result_.executor, run.feeds));
    TESSERA_TRY(result_.executor->run());
    TESSERA_ASSIGN(run.outputs, outputs_of(*result_.executor));
    run.shared_memory = shared_memory(*result_.executor, run.feeds);
    result_.steps.push_back(std::move(run));
    return {};
  }

 private:
  const Case& tested_;
  const Way& way_;
  Attempt& result_;
};

}  // namespace

std::vector<Way> ways_of(const Case& tested, const TempDir& folder) {
  if (const json* partition = tested.partition())
    return {partition_way(*partition, folder, true), partition_way(*partition, folder, false)};
  return {{"cpu", {"cpu"}, true}, {"reference", {"reference"}, false}, split_way(folder)};
}

Result<Loaded> load_step(const Case& tested, const CaseStep& step, const Way& way) {
  compiler::CompileOptions options;
  options.devices = way.devices;
  options.threads = kThreads;
  const TempDir alone;
  std::filesystem::path model = step.model;
  if (tested.expect.value("load_from", "file") == "bytes") {
    const std::string bytes = read_bytes(step.model);
    TESSERA_TRY(
        importer::import_bytes(std::as_bytes(std::span(bytes)), nullptr).map([](const auto&) {}));
    model = alone.write("model.onnx", bytes);  // compile() reads files: one with nothing beside it
  }
  Loaded loaded;
  TESSERA_ASSIGN(loaded.compiled, compiler::compile(model, options));
  TESSERA_ASSIGN(loaded.program, load_image(std::move(loaded.compiled.image), ""));
  return loaded;
}

Result<std::shared_ptr<const runtime::LoadedProgram>> load_image(artefact::ProgramImage image,
                                                                 const std::string& plan) {
  return runtime::LoadedProgram::create(std::move(image), plan, &backends::make_run_device);
}

Result<io::NamedTensors> read_feeds(const CaseStep& step) {
  if (!std::filesystem::exists(step.inputs)) return io::NamedTensors();
  return io::read_npz(step.inputs);
}

Result<std::unique_ptr<runtime::Executor>> open_session(
    const std::shared_ptr<const runtime::LoadedProgram>& program) {
  return runtime::Executor::create(program, {.threads = kThreads});
}

Status bind_feeds(runtime::Executor& executor, const io::NamedTensors& feeds) {
  for (const auto& [name, tensor] : feeds)
    TESSERA_TRY(executor.bind_input(name, tensor.dtype(), tensor.dims(), tensor.data()));
  return {};
}

Result<io::NamedTensors> outputs_of(const runtime::Executor& executor) {
  io::NamedTensors outputs;
  for (const auto& decl : executor.program().method().outputs) {
    TESSERA_ASSIGN(const TensorView view, executor.output(decl.name));
    outputs.emplace_back(decl.name, Tensor::copy_of(view));
  }
  return outputs;
}

std::string Attempt::failure_text() const {
  if (!failure) return {};
  return failed_step == 0 ? failure->to_string()
                          : fmt::format("step {}: {}", failed_step + 1, failure->to_string());
}

Attempt attempt(const Case& tested, const Way& way) {
  Attempt result;
  Run run(tested, way, result);
  for (std::size_t i = 0; i < tested.steps.size(); ++i) {
    auto status = run.step(i);
    if (status) continue;
    result.failure = std::move(status).error();
    result.failed_step = i;
    break;
  }
  return result;
}

}  // namespace tessera::testing
