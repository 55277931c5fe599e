// What simplify and fuse leave of real models: never more data movement than the file holds, and a
// report whose counts lead from the file's graph to the simplified one.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "import/import.h"
#include "ir/infer.h"
#include "passes/op_counts.h"
#include "passes/pipeline.h"
#include "testing/shared_data.h"

namespace tessera {
namespace {

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(testing::shared_dir() / "models", error))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

bool moves_data(const std::string& op) {
  return op == "Transpose" || op == "Cast" || op == "CastLike" || op == "Identity";
}

void expect_no_more_movement(const passes::OpCounts& before, const passes::OpCounts& after) {
  for (const auto& [op, count] : after)
    if (moves_data(op)) {
      EXPECT_LE(count, before.contains(op) ? before.at(op) : 0) << op;
    }
}

// The counts that the report's passes make of the file's.
passes::OpCounts replayed(passes::OpCounts counts, const report::Report& report) {
  for (const report::PassEntry& pass : report.passes) {
    for (const auto& [op, count] : pass.added) counts[op] += count;
    for (const auto& [op, count] : pass.removed) counts[op] -= count;
  }
  std::erase_if(counts, [](const auto& entry) { return entry.second == 0; });
  return counts;
}

void check_model(const std::filesystem::path& path) {
  auto module = importer::import_file(path);
  ASSERT_TRUE(module) << module.error().to_string();
  ASSERT_TRUE(ir::infer(*module));
  const passes::OpCounts file = passes::count_source_ops(*module);
  const auto simplified = passes::simplify(*module);
  ASSERT_TRUE(simplified) << simplified.error().to_string();
  const passes::OpCounts after = passes::count_ops(*module);
  expect_no_more_movement(file, after);

  compiler::CompileOptions options;
  options.stop_after = compiler::Stage::kFuse;
  const auto compiled = compiler::compile(path, options);
  ASSERT_TRUE(compiled) << compiled.error().to_string();
  EXPECT_EQ(replayed(file, compiled->report), after)
      << "what the report says was added and removed";
}

TEST(SimplifiedModels, HoldNoMoreTransposesCastsOrCopiesThanTheFile) {
  TESSERA_SHARED_OR_SKIP(models, "models");
  std::size_t checked = 0;
  for (const std::string& name : model_names()) {
    SCOPED_TRACE(name);
    const auto path = testing::first_existing(testing::model_places(name));
    if (path.empty()) continue;  // its weights are not filled
    check_model(path);
    ++checked;
  }
  EXPECT_GT(checked, 20U);
}

TEST(SimplifiedModels, TheFetchedModelToo) {
  TESSERA_MODEL_OR_SKIP(model, "ppocrv4_det");
  check_model(model);
}

}  // namespace
}  // namespace tessera
