#pragma once

// Cases and keys whose part of Tessera is not built yet. An entry that no longer holds is a failure
// too.

#include <string>
#include <vector>

#include "cases/verdict.h"

namespace tessera::testing {

struct NotBuilt {
  std::string cases;   // a glob over names of case folders
  std::string key;     // of case.json, or "values"; "*": all that fail, at least one
  std::string reason;  // what is missing
};

const std::vector<NotBuilt>& not_built();

// The verdicts of one case against the table.
struct Judgement {
  std::vector<Verdict> held;
  std::vector<Verdict> failed;  // and not listed
  std::vector<Verdict> listed;  // failed, with the reason of the table as detail
  std::vector<Verdict> not_judged;
  std::vector<Verdict> stale;  // listed, but holds: the detail names the entry
};
Judgement weigh(const std::string& case_name, const std::vector<Verdict>& verdicts,
                const std::vector<NotBuilt>& table);

}  // namespace tessera::testing
