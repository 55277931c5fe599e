#pragma once

// Case folders: a model, its inputs, what must come out, and a case.json with everything else that
// must hold. See the README of the shared cases for the keys.

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "testing/temp_dir.h"

namespace tessera::testing {

// One of the successive runs of a case.
struct CaseStep {
  std::filesystem::path model;
  std::filesystem::path inputs;    // may be absent: a model that must not load needs none
  std::filesystem::path expected;  // absent where an error is expected
  std::vector<std::pair<std::filesystem::path, std::filesystem::path>> copies;  // before it
};

struct Case {
  std::string folder_name;  // "H1d_external_symlink_out"
  std::string id;
  std::string kind;
  nlohmann::json expect;
  std::filesystem::path original;       // the folder of the case itself, which stays as it is
  std::filesystem::path folder;         // where its files are read
  std::vector<CaseStep> steps;          // at least one
  std::shared_ptr<const TempDir> copy;  // holds `folder` where that is a copy

  [[nodiscard]] bool has(const std::string& key) const {
    return expect.contains(key) && !expect.at(key).is_null();
  }
  [[nodiscard]] double number(const std::string& key, double fallback) const {
    return has(key) ? expect.at(key).get<double>() : fallback;
  }
  [[nodiscard]] std::string run() const { return expect.value("run", "ok"); }
  // The object of `partition`, or null.
  [[nodiscard]] const nlohmann::json* partition() const {
    return has("partition") ? &expect.at("partition") : nullptr;
  }
};

// TESSERA_CASES; else `cases` among the shared data.
std::filesystem::path cases_dir();

// The folders below `root` with a case.json, sorted by name; empty where there is no such root.
std::vector<std::filesystem::path> case_folders(const std::filesystem::path& root);

// Reads a case. Its files are copied to a temporary folder where a step changes some, or where the
// checkout holds symbolic links as text files, which are made links again. Errors: no case.json, or
// one of another form (what was expected).
Result<Case> read_case(const std::filesystem::path& folder);

// Every key that stands in `expect`, those of `partition` as "partition.KEY"; keys that are null,
// or an empty list, ask for nothing and are left out.
std::vector<std::string> keys_of(const Case& tested);

}  // namespace tessera::testing
