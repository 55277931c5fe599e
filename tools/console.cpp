#include "console.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <thread>

#include "base/file.h"

namespace tessera::tools {
namespace {

constexpr int kDefaultWidth = 120;
constexpr int kExitOnSignal = 130;

bool is_terminal() {
  static const bool answer = isatty(STDERR_FILENO) != 0;
  return answer;
}

std::atomic<int> signals_seen{0};
// Never destroyed: the watcher may still be asking for the stop when main returns.
std::stop_source& stop_source() {
  static auto& source = *new std::stop_source();
  return source;
}

void on_signal(int /*number*/) {
  // Files first: the work may sit in a long call. Only async-signal-safe calls here; the watcher
  // asks for the stop.
  remove_unfinished_files();
  if (signals_seen.fetch_add(1) > 0) _exit(kExitOnSignal);
}

}  // namespace

void show_progress(std::string_view what, double share) {
  if (!is_terminal()) return;
  const auto line = share > 0 ? fmt::format("\r\033[K{} {:.0f} %", what, share * 100)
                              : fmt::format("\r\033[K{}", what);
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
}

void clear_progress() {
  if (is_terminal()) std::fputs("\r\033[K", stderr);
}

void say(const std::string& message) {
  clear_progress();
  std::fputs((message + "\n").c_str(), stderr);
}

void answer(const std::string& text) {
  clear_progress();
  std::fwrite(text.data(), 1, text.size(), stdout);
}

int terminal_width() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col
                                                                         : kDefaultWidth;
}

void install_cancellation() {
  stop_source();
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  std::signal(SIGXFSZ, SIG_IGN);  // a full quota is an error of write()
  // Turns the flag into a stop request, outside of the handler.
  std::thread([] {
    while (signals_seen.load() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    stop_source().request_stop();
  }).detach();
}

std::stop_token cancellation() {
  return stop_source().get_token();
}

}  // namespace tessera::tools
