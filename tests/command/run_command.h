#pragma once

// Runs the built `tessera` command as a user would, and keeps what it says.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera::testing {

struct CommandResult {
  int exit_code = -1;                // -1: ended by a signal
  std::string out;                   // standard output
  std::string err;                   // standard error
  std::uint64_t peak_rss_bytes = 0;  // the most memory that it had at a time
};

struct CommandOptions {
  std::string folder;                         // working folder; "": that of the test
  std::optional<std::size_t> max_file_bytes;  // the most that a file may grow to: a full disk
  std::optional<int> interrupt_after_ms;      // sends SIGINT then, if it still runs
};

CommandResult run_command(const std::vector<std::string>& arguments,
                          const CommandOptions& options = {});

}  // namespace tessera::testing
