#include "runtime/machine_watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace tessera::runtime {
namespace {

constexpr std::size_t kStatBytes = 16384;  // the lines of some 200 processors

// Takes the number at the start of `text`, and the blanks before it; 0 where there is none.
std::int64_t take_number(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::int64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
  return number;
}

}  // namespace

ProcFile::ProcFile(const char* path) : file_(open(path, O_RDONLY | O_CLOEXEC)) {}
ProcFile::~ProcFile() {
  if (file_ >= 0) close(file_);
}
ProcFile::ProcFile(ProcFile&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
ProcFile& ProcFile::operator=(ProcFile&& other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}

std::string_view ProcFile::read(std::vector<char>& buffer) const {
  const ssize_t size = file_ < 0 ? -1 : pread(file_, buffer.data(), buffer.size(), 0);
  return {buffer.data(), size < 0 ? 0 : static_cast<std::size_t>(size)};
}

ThreadTimes parse_schedstat(std::string_view text) {
  ThreadTimes times;
  times.ran_ns = take_number(text);
  times.waited_ns = take_number(text);
  return times;
}

std::int64_t parse_idle_ns(std::string_view stat, const cpu_set_t& allowed, std::int64_t tick_ns) {
  constexpr int kFieldsBeforeIdle = 3;  // user, nice, system
  std::int64_t ticks = 0;
  while (!stat.empty()) {
    const std::size_t end = stat.find('\n');
    std::string_view line = stat.substr(0, end);
    stat.remove_prefix(end == std::string_view::npos ? stat.size() : end + 1);
    if (!line.starts_with("cpu")) break;  // these lines come first
    line.remove_prefix(3);
    if (line.starts_with(' ')) continue;  // the sum of all
    const std::int64_t cpu = take_number(line);
    if (cpu >= CPU_SETSIZE || !CPU_ISSET(static_cast<std::size_t>(cpu), &allowed)) continue;
    for (int field = 0; field < kFieldsBeforeIdle; ++field) take_number(line);
    ticks += take_number(line);
    ticks += take_number(line);
  }
  return ticks * tick_ns;
}

pid_t own_thread_id() {
  static thread_local const auto id = static_cast<pid_t>(syscall(SYS_gettid));
  return id;
}

MachineWatch::MachineWatch()
    : tick_ns_(1'000'000'000 / std::max(1L, sysconf(_SC_CLK_TCK))),
      stat_("/proc/stat"),
      buffer_(kStatBytes) {
  CPU_ZERO(&allowed_);
  sched_getaffinity(0, sizeof allowed_, &allowed_);
}

void MachineWatch::watch(const std::vector<pid_t>& workers) {
  for (const pid_t id : workers)
    workers_.push_back({ProcFile(fmt::format("/proc/self/task/{}/schedstat", id).c_str()), {}});
  caller_.push_back({ProcFile(""), {}});
}

ThreadTimes MachineWatch::read(const ProcFile& thread) {
  return parse_schedstat(thread.read(buffer_));
}

MachineUse MachineWatch::use(std::int64_t now_ns, std::size_t workers, bool with_idle) {
  MachineUse use;
  Watched& caller = caller_.front();
  const bool same_caller = caller_id_ == own_thread_id();
  if (!same_caller) {
    caller_id_ = own_thread_id();
    caller.file = ProcFile(fmt::format("/proc/self/task/{}/schedstat", caller_id_).c_str());
  }
  const ThreadTimes now = read(caller.file);
  const std::int64_t wall_ns = now_ns - std::exchange(last_ns_, now_ns);
  if (same_caller) {
    use.wall_ns = wall_ns;
    use.waited_ns = now.waited_ns - caller.last.waited_ns;
    use.caller_idle_ns =
        std::max<std::int64_t>(0, wall_ns - (now.ran_ns - caller.last.ran_ns) - use.waited_ns);
  }
  caller.last = now;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const ThreadTimes times = read(workers_[i].file);
    if (i < workers && same_caller) use.waited_ns += times.waited_ns - workers_[i].last.waited_ns;
    workers_[i].last = times;
  }
  if (with_idle) {
    const std::int64_t idle_ns = parse_idle_ns(stat_.read(buffer_), allowed_, tick_ns_);
    if (idle_known_ && same_caller) use.idle_ns = idle_ns - last_idle_ns_;
    last_idle_ns_ = idle_ns;
  }
  idle_known_ = with_idle;
  return use;
}

}  // namespace tessera::runtime
