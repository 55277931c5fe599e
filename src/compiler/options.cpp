#include "compiler/options.h"

#include <array>

namespace tessera::compiler {
namespace {

constexpr std::array<std::string_view, 11> kStageNames = {
    "import", "infer",    "simplify", "fuse",     "enumerate", "price",
    "assign", "legalize", "schedule", "allocate", "emit"};

}  // namespace

std::string_view to_string(Stage stage) {
  return kStageNames[static_cast<std::size_t>(stage)];
}

Result<Stage> stage_from_string(std::string_view name) {
  std::string known;
  for (std::size_t i = 0; i < kStageNames.size(); ++i) {
    if (kStageNames[i] == name) return static_cast<Stage>(i);
    known += (i == 0 ? "" : ", ") + std::string(kStageNames[i]);
  }
  return fail(ErrorCode::kInvalidArgument,
              "no stage '" + std::string(name) + "': expected one of " + known);
}

}  // namespace tessera::compiler
