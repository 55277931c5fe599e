// Tessera's worker of the model benchmark: loads an artefact, runs it, and prints what it measured,
// as the workers of the other engines do. Options and answer: bench/models/worker.py.

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/tensor.h"
#include "io/npz.h"
#include "tessera/program.h"
#include "tessera/session.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;  // the clock of Python's time.monotonic(): the driver
                                          // compares the two

double now_us() {
  return std::chrono::duration<double, std::micro>(Clock::now().time_since_epoch()).count();
}

// The largest memory that this program image has had. (ru_maxrss would count the parent's, which
// outlives exec.)
Result<std::int64_t> peak_rss_bytes() {
  constexpr std::string_view kField = "VmHWM:";
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(kField)) return std::stoll(line.substr(kField.size())) * 1024;
  }
  return fail(ErrorCode::kUnavailable, "/proc/self/status: expected a line VmHWM");
}

// The words `--name value`, each of them required when it is asked for.
class Options {
 public:
  static Result<Options> parse(const std::vector<std::string>& words) {
    Options options;
    for (std::size_t i = 0; i < words.size(); i += 2) {
      if (!words[i].starts_with("--") || i + 1 == words.size())
        return fail(ErrorCode::kInvalidArgument, "expected --name value, found " + words[i]);
      options.words_[words[i].substr(2)] = words[i + 1];
    }
    return options;
  }

  [[nodiscard]] Result<std::string> text(const std::string& name) const {
    const auto found = words_.find(name);
    if (found == words_.end())
      return fail(ErrorCode::kInvalidArgument, "expected --" + name + ", found nothing");
    return found->second;
  }

  [[nodiscard]] Result<std::int64_t> number(const std::string& name) const {
    TESSERA_ASSIGN(const std::string word, text(name));
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || value < 0)
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("--{}: expected a number, found '{}'", name, word));
    return value;
  }

 private:
  std::map<std::string, std::string> words_;
};

// How long to run: for `budget_us` and `min_runs` at least, for `limit_us` and `max_runs` at most.
struct Effort {
  std::int64_t warm_up_us = 0;
  std::int64_t budget_us = 0;
  std::int64_t limit_us = 0;
  std::int64_t min_runs = 0;
  std::int64_t max_runs = 0;

  [[nodiscard]] bool is_spent(std::int64_t runs, double elapsed_us) const {
    if (runs >= max_runs || elapsed_us >= static_cast<double>(limit_us)) return true;
    return runs >= min_runs && elapsed_us >= static_cast<double>(budget_us);
  }
};

Result<Effort> effort_of(const Options& options) {
  Effort effort;
  TESSERA_ASSIGN(effort.warm_up_us, options.number("warm-up-us"));
  TESSERA_ASSIGN(effort.budget_us, options.number("budget-us"));
  TESSERA_ASSIGN(effort.limit_us, options.number("limit-us"));
  TESSERA_ASSIGN(effort.min_runs, options.number("min-runs"));
  TESSERA_ASSIGN(effort.max_runs, options.number("max-runs"));
  return effort;
}

struct Answer {
  std::int64_t baseline_rss_bytes = 0;  // before inputs and artefact are read
  std::int64_t peak_rss_bytes = 0;
  double load_us = 0;
  double first_run_us = 0;  // inputs bound, run, outputs fetched
  std::vector<double> start_us, latency_us;
};

Status run_and_fetch(Session& session, const std::vector<TensorInfo>& outputs) {
  TESSERA_TRY(session.run());
  for (const TensorInfo& info : outputs) TESSERA_TRY(session.output(info.name));
  return {};
}

Status time_runs(Session& session, const std::vector<TensorInfo>& outputs, const Effort& effort,
                 Answer& answer) {
  const double warm_up_start_us = now_us();
  do {
    TESSERA_TRY(run_and_fetch(session, outputs));
  } while (now_us() - warm_up_start_us < static_cast<double>(effort.warm_up_us));
  std::puts("ready");
  std::fflush(stdout);
  const double begin_us = now_us();
  double end_us = begin_us;
  do {
    const double start_us = now_us();
    TESSERA_TRY(run_and_fetch(session, outputs));
    end_us = now_us();
    answer.start_us.push_back(start_us);
    answer.latency_us.push_back(end_us - start_us);
  } while (!effort.is_spent(static_cast<std::int64_t>(answer.start_us.size()), end_us - begin_us));
  return {};
}

Status write_outputs(const Session& session, const std::vector<TensorInfo>& outputs,
                     const std::string& path) {
  io::NamedTensors tensors;
  for (const TensorInfo& info : outputs) {
    TESSERA_ASSIGN(const TensorRef output, session.output(info.name));
    const TensorView view{output.dtype, Dims(output.dims.begin(), output.dims.end()), output.data};
    tensors.emplace_back(info.name, Tensor::copy_of(view));
  }
  return io::write_npz(path, tensors);
}

Result<Answer> work(const Options& options) {
  Answer answer;
  TESSERA_ASSIGN(answer.baseline_rss_bytes, peak_rss_bytes());
  TESSERA_ASSIGN(const std::string model, options.text("model"));
  TESSERA_ASSIGN(const std::string inputs_path, options.text("inputs"));
  TESSERA_ASSIGN(const std::string outputs_path, options.text("outputs"));
  TESSERA_ASSIGN(const std::int64_t threads, options.number("threads"));
  TESSERA_ASSIGN(const Effort effort, effort_of(options));
  TESSERA_ASSIGN(const auto inputs, io::read_npz(inputs_path));

  const double load_start_us = now_us();
  TESSERA_ASSIGN(const Program program, Program::load(model));
  TESSERA_ASSIGN(Session session, Session::create(program, {.threads = static_cast<int>(threads)}));
  answer.load_us = now_us() - load_start_us;

  const auto outputs = program.outputs();
  const double first_start_us = now_us();
  for (const auto& [name, tensor] : inputs)
    TESSERA_TRY(session.bind_input(name, tensor.dtype(), tensor.dims(), tensor.data()));
  TESSERA_TRY(run_and_fetch(session, outputs));
  answer.first_run_us = now_us() - first_start_us;

  TESSERA_TRY(time_runs(session, outputs, effort, answer));
  TESSERA_ASSIGN(answer.peak_rss_bytes, peak_rss_bytes());
  TESSERA_TRY(write_outputs(session, outputs, outputs_path));
  return answer;
}

void print(const Answer& answer) {
  fmt::print(
      "{{\"version\": \"{}\", \"baseline_rss_bytes\": {}, \"peak_rss_bytes\": {}, "
      "\"load_us\": {:.1f}, \"first_run_us\": {:.1f}, \"start_us\": [{:.1f}], "
      "\"latency_us\": [{:.3f}]}}\n",
      TESSERA_VERSION, answer.baseline_rss_bytes, answer.peak_rss_bytes, answer.load_us,
      answer.first_run_us, fmt::join(answer.start_us, ", "), fmt::join(answer.latency_us, ", "));
}

int run(const std::vector<std::string>& words) {
  const auto options = Options::parse(words);
  if (!options) {
    fmt::print(stderr, "tessera_model_runner: {}\n", options.error().to_string());
    return 2;
  }
  const auto answer = work(*options);
  if (!answer) {
    fmt::print(stderr, "tessera_model_runner: {}\n", answer.error().to_string());
    return 1;
  }
  print(*answer);
  return 0;
}

}  // namespace
}  // namespace tessera

int main(int count, char** words) {
  return tessera::run(std::vector<std::string>(words + 1, words + count));
}
