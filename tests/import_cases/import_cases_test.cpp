// The import of every model of the shared cases and models: what must load loads, what must be
// refused is refused with the words that the case asks for. Numbers are not judged here. A model
// that needs an operator which the op table lacks counts as skipped, and is listed; so is what only
// a run can show.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "import/import.h"
#include "testing/mentions.h"
#include "testing/onnx_builder.h"
#include "testing/shared_data.h"
#include "testing/temp_dir.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

using testing::mentions;
using testing::without;

// Links of the cases that a checkout without symbolic links holds as text files.
const std::map<std::string, std::vector<std::string>> kLinks = {
    {"H1d", {"link.bin"}},
    {"H1e", {"dir"}},
    {"H2a", {"model.onnx", "snapshots/model.onnx", "snapshots/weights.bin"}}};

class Cases : public ::testing::Test {
 protected:
  // The case's folder, or a copy of it whose links are links.
  fs::path folder_of(const std::string& id, const fs::path& original) {
    const auto links = kLinks.find(id);
    if (links == kLinks.end()) return original;
    fs::copy(original.parent_path() / "_outside", temporary_ / "_outside",
             fs::copy_options::recursive | fs::copy_options::skip_existing);
    const fs::path copy = temporary_ / original.filename().string();
    fs::copy(original, copy, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    for (const std::string& name : links->second) {
      if (fs::is_symlink(copy / name)) continue;
      const std::string target = testing::read_bytes(copy / name);
      fs::permissions((copy / name).parent_path(), fs::perms::owner_all);
      fs::remove(copy / name);
      fs::create_symlink(target, copy / name);
    }
    return copy;
  }

  void check(const fs::path& original) {
    const auto description = nlohmann::json::parse(testing::read_bytes(original / "case.json"));
    const auto& expect = description.at("expect");
    const fs::path folder = folder_of(description.at("id"), original);
    const fs::path path = folder / expect.value("model_path", "model.onnx");
    const std::string bytes = testing::read_bytes(path);
    const auto module = expect.value("load_from", "file") == "bytes"
                            ? importer::import_bytes(testing::bytes_of(bytes), nullptr)
                            : importer::import_file(path);
    const std::string text = module ? "" : without(module.error().to_string(), folder.string());
    const std::string wanted = expect.at("run");
    const bool may_load = wanted != "error" || expect.contains("error_at");
    if (module) {
      EXPECT_TRUE(may_load) << "loads, but must be refused";
    } else if (wanted != "error" && module.error().code == ErrorCode::kUnimplemented) {
      unsupported_.push_back(original.filename().string() + ": " + text);
    } else {
      EXPECT_NE(wanted, "ok") << text;
      check_words(expect, text);
    }
  }

  static void check_words(const nlohmann::json& expect, const std::string& text) {
    for (const std::string word : expect.value("error_mentions", nlohmann::json::array()))
      EXPECT_TRUE(mentions(text, word)) << word << " in: " << text;
    const auto any = expect.value("error_mentions_any", nlohmann::json::array());
    const bool found = any.empty() || std::any_of(any.begin(), any.end(), [&](const auto& word) {
                         return mentions(text, word);
                       });
    EXPECT_TRUE(found) << any << " in: " << text;
  }

  void TearDown() override {
    for (const std::string& line : unsupported_)
      std::cout << "skipped, not supported yet: " << line << '\n';
  }

  testing::TempDir temporary_;
  std::vector<std::string> unsupported_;
};

TEST_F(Cases, LoadOrAreRefusedAsTheySay) {
  TESSERA_SHARED_OR_SKIP(cases, "cases");
  std::set<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(cases)) {
    if (fs::exists(entry.path() / "case.json")) folders.insert(entry.path());
  }
  ASSERT_FALSE(folders.empty());
  for (const fs::path& folder : folders) {
    SCOPED_TRACE(folder.filename().string());
    check(folder);
  }
}

// Every model of the shared folder that is whole loads, or names the operators that are missing.
TEST_F(Cases, RealModelsLoadOrNameWhatIsMissing) {
  TESSERA_SHARED_OR_SKIP(models, "models");
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(models)) {
    if (entry.is_directory()) names.insert(entry.path().filename().string());
  }
  for (const std::string& name : names) {
    const fs::path path = testing::first_existing(testing::model_places(name));
    if (path.empty()) continue;  // a skeleton that nobody has filled
    SCOPED_TRACE(name);
    const auto module = importer::import_file(path);
    if (module) continue;
    EXPECT_EQ(module.error().code, ErrorCode::kUnimplemented) << module.error().to_string();
    unsupported_.push_back(name + ": " + module.error().to_string());
  }
}

}  // namespace
}  // namespace tessera
