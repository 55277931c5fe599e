#pragma once

// The cost table: measured prices by key, a file that the user keeps. Entries are written once;
// measuring again is an explicit command. A table never decides by itself: what it lacks is
// estimated, and named.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/hash.h"

namespace tessera::plan {

// In which state of the caches a kernel runs. Its operands were written by other threads just
// before it in either; it is the constants, and all else, that differ.
enum class CacheState : std::uint8_t {
  kResident,  // the caches of the cores hold all that a run of the model touches
  kShared,  // only the largest cache holds it: those of the cores have lost what the last run left
  kStreamed,  // a run touches more than any holds: what the last one left is gone
};
std::string_view to_string(CacheState state);  // "resident", "shared", "streamed", as keys have it
std::optional<CacheState> find_cache_state(std::string_view word);  // the state that prints so

struct CostEntry {
  double time_us = 0;    // median, in the state of the caches that the key names
  double spread_us = 0;  // between the quartiles
  int samples = 0;
  bool busy = false;  // taken while others used a core: better than nothing, measured anew if asked
  double cold_us = 0;          // median, operands in memory too; 0: not taken
  int outliers = 0;            // of the samples; they do not move the median
  bool clock_changed = false;  // the processor's clock was another one in between
  double prepare_us = 0;       // to instantiate the kernel, once, at load; 0: not taken
  friend bool operator==(const CostEntry&, const CostEntry&) = default;
};

class CostTable {
 public:
  // An absent file is an empty table. Errors: not JSON, another schema (both named), an entry of
  // the wrong form (its key).
  static Result<CostTable> load(const std::filesystem::path& path);
  static Result<CostTable> parse(std::string_view text);
  [[nodiscard]] std::string print() const;  // sorted by key; parses back to an equal table
  [[nodiscard]] Status save(const std::filesystem::path& path) const;

  [[nodiscard]] const CostEntry* find(std::string_view key) const;
  // Keeps the first entry of a key, unless `replace`.
  void add(std::string key, const CostEntry& entry, bool replace = false);
  // The known key that shares the longest prefix with `key`, for messages on misses.
  [[nodiscard]] std::string nearest(std::string_view key) const;
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] const std::map<std::string, CostEntry, std::less<>>& entries() const {
    return entries_;
  }
  [[nodiscard]] ContentHash content_hash() const;

 private:
  std::map<std::string, CostEntry, std::less<>> entries_;
};

// Rounds to the nearest power of 1.02, so that noise of less than about 2 % does not flip plans.
// Zero stays zero.
double round_price_us(double time_us);

}  // namespace tessera::plan
