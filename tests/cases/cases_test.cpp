// Every folder of ../shared/cases (or of TESSERA_CASES): each key of its case.json is judged, or
// listed in not_built.cpp with the reason, and an entry of that table which no longer holds fails.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "base/glob.h"
#include "cases/case_file.h"
#include "cases/isolate.h"
#include "cases/judges.h"
#include "cases/not_built.h"
#include "cases/summary.h"
#include "testing/shared_data.h"

namespace tessera::testing {
namespace {

Summary& summary() {
  static Summary all;
  return all;
}

class PrintSummary : public ::testing::Environment {
 public:
  void TearDown() override {
    if (!summary().is_empty()) std::cout << summary().text();
  }
};
const auto* const kPrintSummary = ::testing::AddGlobalTestEnvironment(new PrintSummary);

class Cases : public ::testing::TestWithParam<std::filesystem::path> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Cases);

TEST_P(Cases, HoldsWhatItAsksFor) {
  const auto tested = read_case(GetParam());
  ASSERT_TRUE(tested) << tested.error().to_string();
  const auto verdicts = judge_apart([&] { return judge_case(*tested); });
  ASSERT_FALSE(verdicts.empty());
  const Judgement judgement = weigh(tested->folder_name, verdicts, not_built());
  summary().add(tested->kind, tested->folder_name, judgement);
  for (const Verdict& verdict : judgement.failed)
    ADD_FAILURE() << verdict.key << ": " << verdict.detail;
  for (const Verdict& verdict : judgement.stale)
    ADD_FAILURE() << verdict.key << ": " << verdict.detail;
}

INSTANTIATE_TEST_SUITE_P(Shared, Cases, ::testing::ValuesIn(case_folders(cases_dir())),
                         [](const auto& folder) {
                           std::string name = folder.param.filename().string();
                           std::ranges::replace_if(
                               name,
                               [](unsigned char c) { return std::isalnum(c) == 0 && c != '_'; },
                               '_');
                           return name;
                         });

// An entry for a case or a key that is not there could never become stale.
TEST(NotBuiltTable, EveryEntryNamesACaseAndAKeyOfIt) {
  TESSERA_SHARED_OR_SKIP(root, "cases");
  std::vector<Case> cases;
  for (const auto& folder : case_folders(root)) {
    auto tested = read_case(folder);
    ASSERT_TRUE(tested) << tested.error().to_string();
    cases.push_back(*std::move(tested));
  }
  for (const NotBuilt& entry : not_built()) {
    EXPECT_NE(entry.reason, "");
    EXPECT_TRUE(std::ranges::any_of(cases,
                                    [&](const Case& tested) {
                                      std::vector<std::string> keys = keys_of(tested);
                                      keys.insert(keys.end(), {"*", "values"});
                                      return glob_matches(entry.cases, tested.folder_name) &&
                                             std::ranges::find(keys, entry.key) != keys.end();
                                    }))
        << entry.cases << " " << entry.key;
  }
}

TEST(CasesFolder, IsThere) {
  if (!std::filesystem::exists(cases_dir())) GTEST_SKIP() << "not here: " << cases_dir();
  EXPECT_FALSE(case_folders(cases_dir()).empty());
}

}  // namespace
}  // namespace tessera::testing
