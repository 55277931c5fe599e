#include "random_models/isolate.h"

#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstring>

#include "base/error.h"

namespace tessera::random_models {
namespace {

// What the child says: records of a mark, text and a zero byte. Its standard error comes between.
constexpr char kWay = '\1';
constexpr char kResult = '\2';
constexpr char kKind = '\3';

void say(int to, char mark, const std::string& text) {
  std::string record = mark + text;
  record += '\0';
  const char* from = record.data();
  std::size_t left = record.size();
  while (left > 0) {
    const ssize_t done = ::write(to, from, left);
    if (done <= 0) return;
    from += done;
    left -= static_cast<std::size_t>(done);
  }
}

std::string read_all(int from) {
  std::string text;
  char buffer[4096];
  for (ssize_t done = ::read(from, buffer, sizeof buffer); done > 0;
       done = ::read(from, buffer, sizeof buffer))
    text.append(buffer, static_cast<std::size_t>(done));
  return text;
}

// The text of the last record with that mark, and where the records end.
std::optional<std::string> last_record(const std::string& said, char mark) {
  const std::size_t at = said.rfind(mark);
  if (at == std::string::npos) return std::nullopt;
  return said.substr(at + 1, said.find('\0', at) - at - 1);
}

Failure died(const std::string& said, int status) {
  Failure failure;
  failure.way = last_record(said, kWay).value_or("before the first way");
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  failure.kind = signal == SIGALRM ? "hangs" : "crashed";
  failure.message =
      signal != 0 ? ::strsignal(signal) : "exit code " + std::to_string(WEXITSTATUS(status));
  const std::size_t end = said.rfind('\0');
  if (end != std::string::npos && end + 1 < said.size())
    failure.message += ": " + said.substr(end + 1, 600);
  return failure;
}

}  // namespace

std::optional<Failure> run_isolated(
    const std::function<std::optional<Failure>(const std::function<void(const Way&)>& begin)>& body,
    unsigned seconds) {
  int ends[2];
  TESSERA_CHECK(::pipe(ends) == 0);
  const pid_t child = ::fork();
  TESSERA_CHECK(child >= 0);
  if (child == 0) {
    ::close(ends[0]);
    ::dup2(ends[1], STDERR_FILENO);
    ::alarm(seconds);
    const auto failure = body([&](const Way& way) { say(ends[1], kWay, way.name); });
    if (failure) {
      say(ends[1], kWay, failure->way);
      say(ends[1], kKind, failure->kind);
    }
    say(ends[1], kResult, failure ? failure->message : "");
    ::_exit(0);
  }
  ::close(ends[1]);
  const std::string said = read_all(ends[0]);
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  const auto result = last_record(said, kResult);
  if (!result || !WIFEXITED(status) || WEXITSTATUS(status) != 0) return died(said, status);
  const auto kind = last_record(said, kKind);
  if (!kind) return std::nullopt;
  return Failure{*last_record(said, kWay), *kind, *result};
}

std::optional<Failure> check_isolated(const Model& model, const Evaluation& evaluation,
                                      const std::vector<Way>& ways, unsigned seconds) {
  return run_isolated(
      [&](const std::function<void(const Way&)>& begin) {
        return check(model, evaluation, ways, begin);
      },
      seconds);
}

}  // namespace tessera::random_models
