#include "cases/isolate.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

namespace tessera::testing {
namespace {

using nlohmann::json;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kLimitsMemory = false;  // their shadow memory is larger than any limit
#else
constexpr bool kLimitsMemory = true;
#endif
constexpr rlim_t kMemoryBytes = rlim_t{8} << 30;

std::string to_text(const std::vector<Verdict>& verdicts) {
  json list = json::array();
  for (const Verdict& verdict : verdicts)
    list.push_back({verdict.key, static_cast<int>(verdict.outcome), verdict.detail});
  return list.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::vector<Verdict> from_text(const std::string& text) {
  std::vector<Verdict> verdicts;
  const json list = json::parse(text, nullptr, false);
  if (!list.is_array()) return verdicts;
  for (const json& entry : list)
    verdicts.push_back({entry.at(0), static_cast<Outcome>(entry.at(1).get<int>()), entry.at(2)});
  return verdicts;
}

[[noreturn]] void judge_and_exit(const Judge& judge, int pipe_end) {
  if (kLimitsMemory) {
    const rlimit limit{kMemoryBytes, kMemoryBytes};
    ::setrlimit(RLIMIT_AS, &limit);
  }
  std::string text;
  try {
    text = to_text(judge());
  } catch (const std::exception& problem) {
    text = to_text({{"run", Outcome::kFailed, fmt::format("threw {}", problem.what())}});
  }
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t written = ::write(pipe_end, text.data() + at, text.size() - at);
    if (written <= 0) ::_exit(1);
    at += static_cast<std::size_t>(written);
  }
  ::_exit(0);
}

// Reads to the end of the pipe; false where the time is up before.
bool read_all(int pipe_end, int seconds, std::string& text) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) return false;
    pollfd polled{pipe_end, POLLIN, 0};
    if (::poll(&polled, 1, static_cast<int>(left)) <= 0) continue;
    std::array<char, 4096> buffer;
    const ssize_t count = ::read(pipe_end, buffer.data(), buffer.size());
    if (count <= 0) return true;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

std::string ending_of(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("its process died of signal {} ({})", WTERMSIG(status),
                       ::strsignal(WTERMSIG(status)));
  return fmt::format("its process ended with code {}", WEXITSTATUS(status));
}

}  // namespace

std::vector<Verdict> judge_apart(const Judge& judge, int seconds) {
  if (std::getenv("TESSERA_CASES_IN_PROCESS") != nullptr) return judge();
  std::array<int, 2> ends{-1, -1};
  if (::pipe(ends.data()) != 0) return {{"run", Outcome::kFailed, "no pipe"}};
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    judge_and_exit(judge, ends[1]);
  }
  ::close(ends[1]);
  std::string text;
  const bool in_time = read_all(ends[0], seconds, text);
  ::close(ends[0]);
  if (!in_time) ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!in_time) return {{"run", Outcome::kFailed, fmt::format("no answer within {} s", seconds)}};
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return {{"run", Outcome::kFailed, ending_of(status)}};
  return from_text(text);
}

}  // namespace tessera::testing
