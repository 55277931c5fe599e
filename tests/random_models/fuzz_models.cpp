// Random models for as long as asked: each is checked in a process of its own; a failure is made
// smaller and written as a case folder. Ends with the coverage.
//
//   PROGRAM [--seconds N | --runs N] [--seed S] [--out DIR] [--failures N]

#include <cctype>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>

#include "random_models/case_folder.h"
#include "random_models/coverage.h"
#include "random_models/generate.h"
#include "random_models/isolate.h"
#include "random_models/shrink.h"

namespace tessera::random_models {
namespace {

struct Options {
  double seconds = 0;  // 0: no limit
  std::uint64_t runs = UINT64_MAX;
  std::uint64_t seed = 0;
  std::filesystem::path out = "build/fuzz-failures";
  std::size_t failures = 10;  // stops after so many different ones
};

bool parse(int count, char** words, Options& options) {
  for (int i = 1; i < count; i += 2) {
    const std::string_view word = words[i];
    if (i + 1 == count) return false;
    const char* value = words[i + 1];
    if (word == "--seconds")
      options.seconds = std::strtod(value, nullptr);
    else if (word == "--runs")
      options.runs = std::strtoull(value, nullptr, 0);
    else if (word == "--seed")
      options.seed = std::strtoull(value, nullptr, 0);
    else if (word == "--out")
      options.out = value;
    else if (word == "--failures")
      options.failures = std::strtoull(value, nullptr, 0);
    else
      return false;
  }
  return true;
}

// What two failures of one cause share: way, kind, and the operators of the small model.
std::string signature(const Model& model, const Failure& failure) {
  std::string text = failure.way + "|" + failure.kind;
  for (const Node& node : model.nodes) text += "|" + std::string(node.op->name);
  return text;
}

// The words of a message, without what it says of one model alone: names, numbers, sizes.
std::string words_of(const std::string& message) {
  std::string words;
  bool quoted = false;
  for (const char c : message) {
    if (c == '\'') quoted = !quoted;
    if (!quoted && (std::isalpha(static_cast<unsigned char>(c)) != 0 || c == ' ')) words += c;
  }
  return words;
}

// Whether a smaller model still fails as the first did.
bool is_same(const Failure& a, const Failure& b) {
  if (a.kind != b.kind) return false;
  return a.kind != "refused" || words_of(a.message.substr(a.message.rfind(": ") + 1)) ==
                                    words_of(b.message.substr(b.message.rfind(": ") + 1));
}

std::string file_name(const Model& model, std::uint64_t seed) {
  std::string name = "seed" + std::to_string(seed);
  for (std::size_t i = 0; i < model.nodes.size() && i < 4; ++i)
    name += "_" + std::string(model.nodes[i].op->name);
  return name;
}

class Fuzzer {
 public:
  explicit Fuzzer(Options options) : options_(std::move(options)) {}

  int run() {
    const auto start = std::chrono::steady_clock::now();
    std::uint64_t done = 0;
    for (; done < options_.runs && found_.size() < options_.failures; ++done) {
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
      if (options_.seconds > 0 && spent.count() > options_.seconds) break;
      if (done > 0 && done % 500 == 0)
        std::fprintf(stderr, "random models: %llu done, %zu failed\n",
                     static_cast<unsigned long long>(done), failed_);
      one(options_.seed + done);
    }
    std::printf("%s", coverage_.to_string().c_str());
    std::printf(
        "random models: %llu from seed %llu, %zu failed, %zu different failures, %zu not judged\n",
        static_cast<unsigned long long>(done), static_cast<unsigned long long>(options_.seed),
        failed_, found_.size(), skipped_);
    return failed_ == 0 ? 0 : 1;
  }

 private:
  void one(std::uint64_t seed) {
    const Generated made = generate(seed);
    if (made.model.nodes.empty()) return;
    const auto evaluation = evaluate(made.model);
    if (!evaluation) {
      // Without the nodes that nobody uses the others are shaken anew: one may be at a tie now.
      ++skipped_;
      std::fprintf(stderr, "seed %llu: not judged: %s\n", static_cast<unsigned long long>(seed),
                   evaluation.error().to_string().c_str());
      return;
    }
    coverage_.add(made.model, *evaluation);
    const auto failure = check_isolated(made.model, *evaluation, ways_of(made.model, seed));
    if (failure) report(made.model, *failure, seed);
  }

  void report(const Model& model, const Failure& failure, std::uint64_t seed) {
    ++failed_;
    Failure last = failure;
    const Model small = shrink(model, [&](const Model& candidate, const Evaluation& evaluation) {
      auto ways = ways_of(candidate, seed);
      std::erase_if(ways, [&](const Way& way) { return way.name != failure.way; });
      const auto again = check_isolated(candidate, evaluation, ways);
      if (!again || !is_same(*again, failure)) return false;
      last = *again;
      return true;
    });
    if (!found_.insert(signature(small, failure)).second) return;
    std::fprintf(stderr, "seed %llu: %s\n%s", static_cast<unsigned long long>(seed),
                 last.to_string().c_str(), to_string(small).c_str());
    const auto evaluation = evaluate(small);
    const auto folder = options_.out / file_name(small, seed);
    const Status written =
        evaluation ? write_case(folder, small, *evaluation, last, seed)
                   : fail(ErrorCode::kInternal, "the smaller model cannot be evaluated");
    std::fprintf(stderr, "  %s\n\n",
                 written ? folder.string().c_str() : written.error().to_string().c_str());
  }

  Options options_;
  Coverage coverage_;
  std::set<std::string> found_;
  std::size_t failed_ = 0;
  std::size_t skipped_ = 0;
};

}  // namespace
}  // namespace tessera::random_models

int main(int count, char** words) {
  tessera::random_models::Options options;
  if (!tessera::random_models::parse(count, words, options)) {
    std::fprintf(stderr,
                 "usage: %s [--seconds N | --runs N] [--seed S] [--out DIR] [--failures N]\n",
                 words[0]);
    return 2;
  }
  return tessera::random_models::Fuzzer(options).run();
}
