#include "random_models/case_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/error.h"
#include "io/npz.h"
#include "io/onnx.pb.h"

namespace tessera::random_models {
namespace {

// Of the least precise dtype of the outputs.
double tolerance_of(const Model& model, const Evaluation& evaluation) {
  double tolerance = 1e-4;
  for (const ValueId id : model.outputs) {
    const DType dtype = evaluation[static_cast<std::size_t>(id)][0].nominal.dtype();
    if (dtype == DType::kFp16) tolerance = std::max(tolerance, 1e-2);
    if (dtype == DType::kBf16) tolerance = std::max(tolerance, 5e-2);
  }
  return tolerance;
}

Status write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (file) return {};
  return fail(ErrorCode::kUnavailable, path.string() + ": cannot be written");
}

nlohmann::ordered_json describe(const std::filesystem::path& folder, const Model& model,
                                const Evaluation& evaluation, const Failure& failure,
                                std::uint64_t seed) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  steps.push_back({{"inputs", "inputs.npz"}, {"expected", "expected.npz"}});
  steps.push_back({{"inputs", "inputs_2.npz"}, {"expected", "expected_2.npz"}});
  const double tolerance = tolerance_of(model, evaluation);
  return {{"id", folder.filename().string()},
          {"title", fmt::format("Random model of seed {}, made smaller", seed)},
          {"kind", "random"},
          {"group", failure.kind},
          {"what_goes_wrong", failure.to_string()},
          {"model", to_string(model)},
          {"expect",
           {{"run", "ok"},
            {"error_mentions", nlohmann::ordered_json::array()},
            {"error_mentions_any", nlohmann::ordered_json::array()},
            {"rtol", tolerance},
            {"atol", tolerance},
            {"steps", steps}}},
          {"expected_by", "the reference kernels, node by node"},
          {"certainty", "sure"},
          {"source", fmt::format("random models, seed {}", seed)}};
}

}  // namespace

Status write_case(const std::filesystem::path& folder, const Model& model,
                  const Evaluation& evaluation, const Failure& failure, std::uint64_t seed) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail(ErrorCode::kUnavailable, folder.string() + ": " + error.message());
  TESSERA_TRY(write_bytes(folder / "model.onnx",
                          to_onnx(model, dtypes_of(evaluation)).SerializeAsString()));
  for (std::size_t point = 0; point < kPoints; ++point) {
    io::NamedTensors inputs;
    io::NamedTensors outputs;
    for (const Value& value : model.values)
      if (value.source == Source::kInput) inputs.emplace_back(value.name, value.elements[point]);
    for (const ValueId id : model.outputs)
      outputs.emplace_back(model.values[static_cast<std::size_t>(id)].name,
                           evaluation[static_cast<std::size_t>(id)][point].nominal);
    const std::string suffix = point == 0 ? ".npz" : fmt::format("_{}.npz", point + 1);
    TESSERA_TRY(io::write_npz(folder / ("inputs" + suffix), inputs));
    TESSERA_TRY(io::write_npz(folder / ("expected" + suffix), outputs));
  }
  return write_bytes(folder / "case.json",
                     describe(folder, model, evaluation, failure, seed).dump(1) + "\n");
}

}  // namespace tessera::random_models
