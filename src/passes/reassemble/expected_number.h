#pragma once

// Numbers of a match against those that the operator has: near enough for the dtype that they are
// stored in.

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>

#include "passes/reassemble/pattern.h"

namespace tessera::passes::reassemble {

// Within what rounding a decimal constant to the dtype explains, with some digits to spare.
inline bool is_close(double found, double wanted, DType dtype) {
  const double relative = dtype == DType::kBf16 ? 8e-3 : dtype == DType::kFp16 ? 1e-3 : 2e-5;
  return std::abs(found - wanted) <= relative * std::abs(wanted);
}

// Collects the first number that is another one. Names that the match did not bind are passed over.
class Expected {
 public:
  Expected(const Match& match, DType dtype) : match_(match), dtype_(dtype) {}

  void number(std::string_view name, double wanted) {
    if (match_.has_number(name)) given(name, match_.number(name), wanted);
  }
  void given(std::string_view name, double found, double wanted) {
    if (reason_.empty() && !is_close(found, wanted, dtype_))
      reason_ = fmt::format("constant {}: expected {:.7g}, found {:.7g}", name, wanted, found);
  }
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  const Match& match_;
  DType dtype_;
  std::string reason_;
};

}  // namespace tessera::passes::reassemble
