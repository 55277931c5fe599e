#include "import/budget.h"

#include <fmt/format.h>

#include <algorithm>

namespace tessera::importer {

ImportBudget::ImportBudget(std::uint64_t model_bytes)
    : model_bytes_(model_bytes),
      left_bytes_(kTimesFile * model_bytes + kBaseBytes - kProcessBytes) {}

Status ImportBudget::take(Use use, std::uint64_t size_bytes, std::uint64_t count) {
  Taken& taken = taken_[static_cast<std::size_t>(use)];
  taken.size_bytes += size_bytes;
  taken.count += count;
  if (size_bytes > left_bytes_) return tl::unexpected(exhausted());
  left_bytes_ -= size_bytes;
  return {};
}

Status ImportBudget::require(Use use, std::uint64_t size_bytes) const {
  if (size_bytes <= left_bytes_) return {};
  ImportBudget asked = *this;
  return asked.take(use, size_bytes, 0);
}

Error ImportBudget::exhausted() const {
  const auto most =
      std::max_element(taken_.begin(), taken_.end(),
                       [](const Taken& a, const Taken& b) { return a.size_bytes < b.size_bytes; });
  const std::array<std::string_view, static_cast<std::size_t>(Use::kCount)> names = {
      messages_, "nodes",           "bytes of constants", "constants",     "values",
      "sizes",   "local functions", "operators",          "opset imports", "entries of metadata"};
  return Error{ErrorCode::kResourceExhausted,
               fmt::format("importing takes more than {} bytes of memory, the limit for a model of "
                           "{} bytes ({} times its size and {} MiB): {} {} take most of it",
                           kTimesFile * model_bytes_ + kBaseBytes, model_bytes_, kTimesFile,
                           kBaseBytes >> 20, most->count,
                           names[static_cast<std::size_t>(most - taken_.begin())]),
               {}};
}

}  // namespace tessera::importer
