#include "cases/case_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "testing/shared_data.h"

namespace tessera::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// A link that a checkout without symbolic links holds as a text file: a short text that names
// something which exists, seen from the folder of the file.
bool is_flattened_link(const fs::path& file, const fs::path& original_folder) {
  if (!fs::is_regular_file(file) || fs::file_size(file) == 0 || fs::file_size(file) > 255)
    return false;
  const std::string target = read_bytes(file);
  if (!std::ranges::all_of(target, [](unsigned char c) { return c > ' ' && c < 0x7f; }))
    return false;
  return target.find('/') != std::string::npos && fs::exists(original_folder / target);
}

// Paths in `folder` that are flattened links; the links among them may point at one another.
std::vector<fs::path> flattened_links(const fs::path& folder) {
  std::vector<fs::path> links;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (!entry.is_symlink() && is_flattened_link(entry.path(), entry.path().parent_path()))
      links.push_back(fs::relative(entry.path(), folder));
  std::ranges::sort(links);
  return links;
}

void make_writable(const fs::path& folder) {
  fs::permissions(folder, fs::perms::owner_all, fs::perm_options::add);
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (!entry.is_symlink())
      fs::permissions(entry.path(), fs::perms::owner_read | fs::perms::owner_write,
                      fs::perm_options::add);
}

void copy_tree(const fs::path& from, const fs::path& to) {
  fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  make_writable(to);
}

// A copy beside which `_outside` lies as it does beside the original.
std::shared_ptr<const TempDir> copy_case(const fs::path& original,
                                         const std::vector<fs::path>& links) {
  auto copy = std::make_shared<const TempDir>();
  const fs::path folder = copy->path() / original.filename();
  copy_tree(original, folder);
  const fs::path outside = original.parent_path() / "_outside";
  if (fs::exists(outside)) copy_tree(outside, copy->path() / "_outside");
  for (const fs::path& link : links) {
    const std::string target = read_bytes(original / link);
    fs::remove(folder / link);
    fs::create_symlink(target, folder / link);
  }
  return copy;
}

std::vector<CaseStep> steps_of(const Case& tested) {
  const fs::path& folder = tested.folder;
  const fs::path model = folder / tested.expect.value("model_path", "model.onnx");
  if (!tested.has("steps")) return {{model, folder / "inputs.npz", folder / "expected.npz", {}}};
  std::vector<CaseStep> steps;
  for (const json& step : tested.expect.at("steps")) {
    CaseStep added;
    added.model = step.contains("model") ? folder / step.at("model").get<std::string>() : model;
    added.inputs = folder / step.value("inputs", "inputs.npz");
    added.expected = folder / step.value("expected", "expected.npz");
    steps.push_back(std::move(added));
  }
  if (!tested.has("before_step")) return steps;
  for (const auto& [number, what] : tested.expect.at("before_step").items()) {
    const auto index = static_cast<std::size_t>(std::stoul(number));
    if (index < 1 || index > steps.size() || !what.contains("copy")) continue;
    steps[index - 1].copies.emplace_back(folder / what.at("copy").at(0).get<std::string>(),
                                         folder / what.at("copy").at(1).get<std::string>());
  }
  return steps;
}

void add_keys(const json& object, const std::string& prefix, std::vector<std::string>& keys) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_null() || (value.is_array() && value.empty())) continue;
    keys.push_back(prefix + key);
  }
}

}  // namespace

fs::path cases_dir() {
  const char* text = std::getenv("TESSERA_CASES");
  return text != nullptr ? fs::path(text) : shared_dir() / "cases";
}

std::vector<fs::path> case_folders(const fs::path& root) {
  std::vector<fs::path> folders;
  if (!fs::is_directory(root)) return folders;
  for (const auto& entry : fs::directory_iterator(root))
    if (fs::exists(entry.path() / "case.json")) folders.push_back(entry.path());
  std::ranges::sort(folders);
  return folders;
}

Result<Case> read_case(const fs::path& folder) {
  Case tested;
  tested.folder_name = folder.filename().string();
  tested.original = folder;
  tested.folder = folder;
  try {
    const json description = json::parse(read_bytes(folder / "case.json"));
    tested.id = description.at("id").get<std::string>();
    tested.kind = description.at("kind").get<std::string>();
    tested.expect = description.at("expect");
    const auto links = flattened_links(folder);
    if (!links.empty() || tested.has("before_step")) {
      tested.copy = copy_case(folder, links);
      tested.folder = tested.copy->path() / folder.filename();
    }
    tested.steps = steps_of(tested);
  } catch (const std::exception& problem) {
    return fail(ErrorCode::kInvalidArgument, fmt::format("{}: expected a case folder, found: {}",
                                                         folder.string(), problem.what()));
  }
  return tested;
}

std::vector<std::string> keys_of(const Case& tested) {
  std::vector<std::string> keys;
  add_keys(tested.expect, "", keys);
  if (const json* partition = tested.partition()) add_keys(*partition, "partition.", keys);
  std::ranges::sort(keys);
  return keys;
}

}  // namespace tessera::testing
