#pragma once

// What a run over a folder of cases came to, kind by kind.

#include <map>
#include <string>
#include <vector>

#include "cases/not_built.h"

namespace tessera::testing {

class Summary {
 public:
  void add(const std::string& kind, const std::string& case_name, const Judgement& judgement);
  [[nodiscard]] bool is_empty() const { return kinds_.empty(); }
  // A table of the kinds, then what is listed, what is not judged and what failed, a line each.
  [[nodiscard]] std::string text() const;

 private:
  struct Counts {
    std::size_t cases = 0;
    std::size_t held_cases = 0;  // nothing in them failed or is listed
    std::size_t judged = 0;
    std::size_t held = 0;
    std::size_t listed = 0;
    std::size_t failed = 0;
    std::size_t not_judged = 0;
  };
  std::map<std::string, Counts> kinds_;
  std::vector<std::string> lines_;
};

}  // namespace tessera::testing
