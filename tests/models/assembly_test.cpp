// What the fuse stage finds in real models and in the cases: operators in pieces, all of them and
// no other; and two exports of one model end in the same graph.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "testing/shared_data.h"

namespace tessera {
namespace {

std::string fused(const std::filesystem::path& model, bool canonical) {
  compiler::CompileOptions options;
  options.stop_after = compiler::Stage::kFuse;
  options.canonical_dump = canonical;
  std::string text;
  options.dump = [&](compiler::Stage stage, const std::string& printed) {
    if (stage == compiler::Stage::kFuse) text = printed;
  };
  const auto compiled = compiler::compile(model, options);
  EXPECT_TRUE(compiled) << compiled.error().to_string();
  return text;
}

// Lines that hold `part`.
std::size_t count(const std::string& text, const std::string& part) {
  std::istringstream lines(text);
  std::size_t found = 0;
  for (std::string line; std::getline(lines, line);)
    found += line.find(part) != std::string::npos ? 1 : 0;
  return found;
}

std::size_t count_op(const std::string& canonical, const std::string& op) {
  return count(canonical, "= " + op + "(") + count(canonical, "::" + op + "\"(");
}

TEST(Assembly, TwoExportsOfBertAreOneGraph) {
  TESSERA_MODEL_OR_SKIP(older, "bert_base_op13");
  TESSERA_MODEL_OR_SKIP(newer, "bert_base_op17");
  const std::string a = fused(older, true);
  const std::string b = fused(newer, true);
  const auto where = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  EXPECT_TRUE(a == b) << "from " << std::string(where.first, std::min(where.first + 120, a.end()));
  constexpr std::size_t kLayers = 12;
  EXPECT_EQ(count_op(a, "Attention"), kLayers);
  EXPECT_EQ(count_op(a, "Gelu"), kLayers);
  EXPECT_EQ(count_op(a, "LayerNormalization"), 2 * kLayers + 1);
  EXPECT_EQ(count_op(a, "Softmax"), 0U);
}

class Llama : public ::testing::TestWithParam<const char*> {};

TEST_P(Llama, NoOperatorInPiecesIsMissed) {
  TESSERA_MODEL_OR_SKIP(model, GetParam());
  constexpr std::size_t kLayers = 8;
  const std::string text = fused(model, true);
  EXPECT_EQ(count_op(text, "RMSNormalization"), 2 * kLayers + 1);
  EXPECT_EQ(count_op(text, "RotaryEmbedding"), 2 * kLayers);
  EXPECT_EQ(count_op(text, "Attention"), kLayers);
  EXPECT_EQ(count_op(text, "Softmax"), 0U);
  EXPECT_EQ(count_op(text, "Expand"), 0U) << "heads are shared by the operator";
  EXPECT_EQ(count(fused(model, false), " SwiGLU:"), kLayers);
}

INSTANTIATE_TEST_SUITE_P(Assembly, Llama, ::testing::Values("llama_prefill", "llama_decode"),
                         [](const auto& tested) { return std::string(tested.param); });

// Every case that names operators which are to be found, or not to be.
TEST(Assembly, OfTheCases) {
  TESSERA_SHARED_OR_SKIP(cases, "cases");
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(cases))
    if (std::filesystem::exists(entry.path() / "case.json")) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  std::size_t judged = 0;
  for (const auto& folder : folders) {
    std::ifstream file(folder / "case.json");
    const auto json = nlohmann::json::parse(file, nullptr, false);
    const auto expect = json.value("expect", nlohmann::json::object());
    const auto ops = [&](const char* key) {
      const auto found = expect.find(key);
      return found == expect.end() || found->is_null() ? std::vector<std::string>()
                                                       : found->get<std::vector<std::string>>();
    };
    const auto expected = ops("fused_ops_expected");
    const auto forbidden = ops("fused_ops_forbidden");
    if (expected.empty() && forbidden.empty()) continue;
    SCOPED_TRACE(folder.filename().string());
    ++judged;
    const std::string text = fused(folder / "model.onnx", true);
    for (const std::string& op : expected) EXPECT_GT(count_op(text, op), 0U) << op << "\n" << text;
    for (const std::string& op : forbidden) EXPECT_EQ(count_op(text, op), 0U) << op << "\n" << text;
  }
  EXPECT_GT(judged, 0U);
}

}  // namespace
}  // namespace tessera
