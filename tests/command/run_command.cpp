#include "command/run_command.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>

namespace tessera::testing {
namespace {

using Clock = std::chrono::steady_clock;

// Below TESSERA_BUILD_DIR, which ctest sets; else the working folder.
std::string command_path() {
  const char* folder = std::getenv("TESSERA_BUILD_DIR");
  return ((folder != nullptr ? std::filesystem::path(folder) : std::filesystem::current_path()) /
          "bin" / "tessera")
      .string();
}

struct Pipe {
  std::array<int, 2> ends{-1, -1};
  Pipe() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
  }
};

[[noreturn]] void become_command(const std::vector<std::string>& arguments,
                                 const CommandOptions& options, const Pipe& out, const Pipe& err) {
  std::string path = command_path();
  std::vector<char*> words = {path.data()};
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  if (!options.folder.empty() && ::chdir(options.folder.c_str()) != 0) ::_exit(126);
  if (options.max_file_bytes) {
    const rlimit limit{*options.max_file_bytes, *options.max_file_bytes};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(126);
  }
  ::dup2(out.ends[1], STDOUT_FILENO);
  ::dup2(err.ends[1], STDERR_FILENO);
  ::execv(words[0], words.data());
  ::_exit(127);
}

// Reads both pipes to their ends, so that neither fills up; interrupts on the way if asked to.
void read_all(pid_t child, const CommandOptions& options, Pipe& out, Pipe& err,
              CommandResult& result) {
  std::array<pollfd, 2> polled = {pollfd{out.ends[0], POLLIN, 0}, pollfd{err.ends[0], POLLIN, 0}};
  const std::array<std::string*, 2> texts = {&result.out, &result.err};
  const auto start = Clock::now();
  bool must_interrupt = options.interrupt_after_ms.has_value();
  for (int open = 2; open > 0;) {
    ::poll(polled.data(), polled.size(), 10);
    if (must_interrupt &&
        Clock::now() - start >= std::chrono::milliseconds(*options.interrupt_after_ms)) {
      ::kill(child, SIGINT);
      must_interrupt = false;
    }
    for (std::size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].fd < 0 || polled[i].revents == 0) continue;
      std::array<char, 4096> buffer;
      const ssize_t count = ::read(polled[i].fd, buffer.data(), buffer.size());
      if (count > 0) {
        texts[i]->append(buffer.data(), static_cast<std::size_t>(count));
      } else {
        polled[i].fd = -1;
        --open;
      }
    }
  }
}

}  // namespace

CommandResult run_command(const std::vector<std::string>& arguments,
                          const CommandOptions& options) {
  Pipe out;
  Pipe err;
  const pid_t child = ::fork();
  if (child == 0) become_command(arguments, options, out, err);
  ::close(out.ends[1]);
  ::close(err.ends[1]);
  CommandResult result;
  read_all(child, options, out, err, result);
  ::close(out.ends[0]);
  ::close(err.ends[0]);
  int status = 0;
  rusage usage{};
  ::wait4(child, &status, 0, &usage);
  result.peak_rss_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  return result;
}

}  // namespace tessera::testing
