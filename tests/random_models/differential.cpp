#include "random_models/differential.h"

#include <fmt/format.h>

#include <algorithm>

#include "artefact/read/reader.h"
#include "artefact/write/writer.h"
#include "backends/registry_run/registry_run.h"
#include "base/error.h"
#include "compiler/compile.h"
#include "io/onnx.pb.h"
#include "passes/pipeline.h"
#include "random_models/recipes.h"
#include "runtime/executor.h"
#include "testing/random.h"
#include "testing/temp_dir.h"

namespace tessera::random_models {
namespace {

constexpr const char* kNpu = "npu";

std::vector<std::string> all_passes() {
  std::vector<std::string> names;
  for (const passes::Pass& pass : passes::simplify_passes()) names.emplace_back(pass.name);
  return names;
}

std::vector<std::string> some_passes(testing::Random& random) {
  std::vector<std::string> names;
  for (const std::string& name : all_passes())
    if (random.chance(0.4)) names.push_back(name);
  return names;
}

// A device that is so fast that it takes what it may, and stores tensors in one of three layouts.
std::string drawn_profile(const std::string& lacks, testing::Random& random) {
  static const std::vector<std::string> layouts = {"", "\"layouts\": [\"nhwc\"],",
                                                   "\"layouts\": [\"nchw\", \"nhwc\"],"};
  return fmt::format(
      R"({{"schema": "tessera.device/1.0", "name": "{}", "lacks": [{}], {})"
      R"( "gflops": {{"fp32": 4000}}, "memory_gb_per_s": 4000, "launch_us": 0.01,)"
      R"( "sync_us": 0.01, "link": {{"gb_per_s": 4000, "latency_us": 0.01, "unified": {}}}}})",
      kNpu, lacks, random.pick(layouts), random.chance(0.2) ? "true" : "false");
}

// Some operators of the model.
std::string drawn_lacks(const Model& model, testing::Random& random) {
  std::string lacks;
  for (const Node& node : model.nodes)
    if (random.chance(0.25))
      lacks += fmt::format("{}{{\"op\": \"{}\"}}", lacks.empty() ? "" : ", ", node.op->name);
  return lacks;
}

// Either the device lacks operators and nodes are kept away from it, or nodes are pinned to it: a
// pass may join nodes, and what contradicts itself has no plan.
Way split_way(const Model& model, testing::Random& random) {
  Way way;
  way.name = "split between cpu and npu";
  way.devices = {"cpu", kNpu};
  const bool pins = random.chance(0.5);
  for (const Node& node : model.nodes) {
    // A Constant is no node of the IR, and only the reference decides sizes.
    if (node.op->name == "Constant" || (pins && node.op->data_dependent_shape)) continue;
    if (random.chance(0.25)) way.rules.emplace_back(node.name, pins);
  }
  way.profile = drawn_profile(pins ? "" : drawn_lacks(model, random), random);
  way.threads = static_cast<int>(random.integer(1, 2));
  way.priced_at = random.index(kPoints);
  way.through_file = true;
  return way;
}

Result<compiler::CompileOptions> options_of(const Model& model, const Way& way,
                                            const testing::TempDir& folder) {
  compiler::CompileOptions options;
  options.devices = way.devices;
  for (std::string& device : options.devices)
    if (device == kNpu) device = folder.write("npu.json", way.profile).string();
  options.threads = way.threads;
  options.disabled_passes = way.disabled_passes;
  options.fallback = false;
  for (const auto& [node, pinned] : way.rules)
    options.rules.push_back(
        {pinned ? plan::PlacementRule::Kind::kPin : plan::PlacementRule::Kind::kForbid, kNpu,
         node});
  for (const Value& value : model.values)
    if (value.source == Source::kInput)
      options.shapes[value.name] = value.elements[way.priced_at].dims();
  return options;
}

Result<artefact::ProgramImage> image_of(const Way& way, artefact::ProgramImage image,
                                        const testing::TempDir& folder) {
  if (!way.through_file) return image;
  const auto path = folder / "model.tsr";
  TESSERA_TRY(artefact::write_program(image, path));
  return artefact::read_program(path, {.verify_segments = true});
}

Status bind_inputs(const Model& model, std::size_t point, runtime::Executor& executor) {
  for (const Value& value : model.values) {
    if (value.source != Source::kInput) continue;
    const Tensor& tensor = value.elements[point];
    TESSERA_TRY(executor.bind_input(value.name, tensor.dtype(), tensor.dims(), tensor.data()));
  }
  return {};
}

// A few units in the last place: two shakes may happen to round alike.
double rounding_of(DType dtype) {
  switch (dtype) {
    case DType::kFp64: return 1e-15;
    case DType::kFp32: return 5e-7;
    case DType::kFp16: return 2e-3;
    case DType::kBf16: return 1.6e-2;
    default: return 0;
  }
}

// Words on the first output that is wrong; empty where none is.
Result<std::string> compare_outputs(const Model& model, const Evaluation& evaluation,
                                    const Way& way, std::size_t point,
                                    const runtime::Executor& executor) {
  for (const ValueId id : model.outputs) {
    const Value& value = model.values[static_cast<std::size_t>(id)];
    TESSERA_ASSIGN(const TensorView found, executor.output(value.name));
    Elements expected = evaluation[static_cast<std::size_t>(id)][point];
    if (way.exact_results) expected.shaken = {expected.nominal, expected.nominal};
    const std::string problem =
        difference(expected, found, way.exact_results ? 0 : rounding_of(found.dtype));
    if (!problem.empty())
      return fmt::format("output '{}' at point {}: {}", value.name, point + 1, problem);
  }
  return std::string();
}

// Only the reference decides sizes and holds what is no tensor of numbers: pinned elsewhere, such a
// node has no device.
bool is_for_the_reference(const std::string& refusal) {
  return std::ranges::any_of(
      std::array{"depend on data", "holds strings", "): expected a tensor", "its rank is unknown",
                 "no backend runs control flow"},
      [&](const char* reason) { return refusal.find(reason) != std::string::npos; });
}

Result<std::string> run_way(const Model& model, const Evaluation& evaluation, const Way& way) {
  const testing::TempDir folder;
  const auto path =
      folder.write("model.onnx", to_onnx(model, dtypes_of(evaluation)).SerializeAsString());
  TESSERA_ASSIGN(const compiler::CompileOptions options, options_of(model, way, folder));
  auto attempt = compiler::compile(path, options);
  if (!attempt && !way.rules.empty() && is_for_the_reference(attempt.error().message))
    return std::string();
  TESSERA_ASSIGN(compiler::Compiled compiled, std::move(attempt));
  TESSERA_ASSIGN(artefact::ProgramImage image, image_of(way, std::move(compiled.image), folder));
  TESSERA_ASSIGN(const auto program,
                 runtime::LoadedProgram::create(std::move(image), "", &backends::make_run_device));
  TESSERA_ASSIGN(const auto executor, runtime::Executor::create(program, {.threads = way.threads}));
  for (const std::size_t point : {std::size_t{0}, std::size_t{1}, std::size_t{0}}) {
    TESSERA_TRY(bind_inputs(model, point, *executor));
    TESSERA_TRY_IN(executor->run(), fmt::format("run at point {}", point + 1));
    TESSERA_ASSIGN(std::string problem, compare_outputs(model, evaluation, way, point, *executor));
    if (!problem.empty()) return problem;
  }
  return std::string();
}

}  // namespace

std::vector<Way> ways_of(const Model& model, std::uint64_t seed) {
  testing::Random random(seed + 0x5eed);
  std::vector<Way> ways(3);
  ways[0].name = "reference without passes";
  ways[0].devices = {"reference"};
  ways[0].disabled_passes = all_passes();
  ways[0].exact_results = true;
  ways[1].name = "cpu";
  ways[1].devices = {"cpu"};
  ways[1].priced_at = random.index(kPoints);
  ways[2].name = "cpu with passes off";
  ways[2].devices = {"cpu"};
  ways[2].disabled_passes = some_passes(random);
  ways[2].threads = 2;
  ways.push_back(split_way(model, random));
  return ways;
}

std::optional<Failure> check(const Model& model, const Evaluation& evaluation,
                             const std::vector<Way>& ways,
                             const std::function<void(const Way&)>& begin) {
  for (const Way& way : ways) {
    if (begin) begin(way);
    const auto problem = run_way(model, evaluation, way);
    if (!problem) return Failure{way.name, "refused", problem.error().to_string()};
    if (!problem->empty()) return Failure{way.name, "wrong", *problem};
  }
  return std::nullopt;
}

}  // namespace tessera::random_models
