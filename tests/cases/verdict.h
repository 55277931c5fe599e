#pragma once

// What came out of one case, key by key.

#include <map>
#include <string>
#include <vector>

namespace tessera::testing {

enum class Outcome { kHeld, kFailed, kNotJudged };

struct Verdict {
  std::string key;
  Outcome outcome = Outcome::kHeld;
  std::string detail;  // what is wrong, or why it is not judged
  friend bool operator==(const Verdict&, const Verdict&) = default;
};

// Gathers what the judges say. A key that several look at (a case is run in several ways) holds
// where all agree.
class Verdicts {
 public:
  // `problem` is empty where the key holds.
  void judge(const std::string& key, const std::string& problem) {
    std::string& detail = problems_[key];
    if (problem.empty()) return;
    if (!detail.empty()) detail += "; ";
    detail += problem;
  }
  void leave(const std::string& key, const std::string& reason) { left_[key] = reason; }

  // Sorted by key.
  [[nodiscard]] std::vector<Verdict> all() const {
    std::vector<Verdict> verdicts;
    for (const auto& [key, problem] : problems_)
      verdicts.push_back({key, problem.empty() ? Outcome::kHeld : Outcome::kFailed, problem});
    for (const auto& [key, reason] : left_) verdicts.push_back({key, Outcome::kNotJudged, reason});
    return verdicts;
  }

 private:
  std::map<std::string, std::string> problems_;
  std::map<std::string, std::string> left_;
};

}  // namespace tessera::testing
