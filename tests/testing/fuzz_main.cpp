// The engine of fuzz programs where the compiler has none: mutates the files of a corpus, or grows
// inputs from nothing, from a seed.
//
//   PROGRAM [-runs=N] [-max_total_time=SECONDS] [-seed=S] [FILE | FOLDER]...
//
// Takes libFuzzer's options, so that both engines are called alike. Each run has its own seed, S
// plus the number of the run; when a run ends the program, the message says how to repeat that run
// alone.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "testing/random.h"
#include "testing/temp_dir.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" [[gnu::weak]] void __sanitizer_set_death_callback(void (*callback)());

namespace tessera::testing {
namespace {

constexpr std::size_t kMaxInputBytes = 1U << 20U;

struct Options {
  std::uint64_t runs = UINT64_MAX;
  double seconds = 0;  // 0: no limit
  std::uint64_t seed = 1;
  std::vector<std::string> corpus;
};

// Of the run in progress, for the message of a failure; no run is in progress while the corpus is
// tried as it stands.
std::uint64_t current_seed = 0;
bool in_corpus = true;

void say_seed() {
  if (in_corpus) {
    std::fprintf(stderr, "fuzz: failed on an unchanged input of the corpus\n");
  } else {
    std::fprintf(stderr, "fuzz: repeat with -seed=%llu -runs=1\n",
                 static_cast<unsigned long long>(current_seed));
  }
}

void on_signal(int signal) {
  say_seed();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void report_failures() {
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(say_seed);
    std::signal(SIGABRT, on_signal);
    return;
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL})
    std::signal(signal, on_signal);
}

// The inputs that the paths name, in the order of their names.
std::vector<std::string> load(const std::vector<std::string>& paths) {
  std::vector<std::filesystem::path> files;
  for (const std::string& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      files.emplace_back(path);
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> inputs;
  for (const auto& file : files) inputs.push_back(read_bytes(file));
  return inputs;
}

// Numbers at which sizes and offsets go wrong, in 1, 2, 4 or 8 bytes.
void overwrite_number(std::string& input, Random& random) {
  static const std::vector<std::uint64_t> numbers = {0,
                                                     1,
                                                     0x7f,
                                                     0x80,
                                                     0xff,
                                                     0x7fff,
                                                     0xffff,
                                                     0x7fffffff,
                                                     0x80000000,
                                                     0xffffffff,
                                                     0x7fffffffffffffff,
                                                     0xffffffffffffffff};
  const std::uint64_t number = random.pick(numbers);
  const std::size_t width = std::size_t{1} << random.index(4);
  const std::size_t start = random.index(input.size());
  for (std::size_t i = 0; i < width && start + i < input.size(); ++i)
    input[start + i] = static_cast<char>(number >> (8 * i));
}

void mutate_once(std::string& input, const std::vector<std::string>& corpus, Random& random) {
  if (input.empty()) {
    input.assign(1 + random.index(64), '\0');
    for (char& byte : input) byte = static_cast<char>(random.bits());
    return;
  }
  const std::size_t at = random.index(input.size());
  const std::size_t length = std::min(1 + random.index(32), input.size() - at);
  switch (random.index(7)) {
    case 0: input[at] = static_cast<char>(input[at] ^ (1 << random.index(8))); break;
    case 1: input[at] = static_cast<char>(random.bits()); break;
    case 2: overwrite_number(input, random); break;
    case 3: input.resize(at); break;
    case 4: input.erase(at, length); break;
    case 5: input.insert(random.index(input.size()), input.substr(at, length)); break;
    default:
      if (corpus.empty()) break;
      const std::string& other = random.pick(corpus);
      input = input.substr(0, at) +
              other.substr(std::min(other.size(), random.index(other.size() + 1)));
      break;
  }
}

std::string make_input(const std::vector<std::string>& corpus, std::uint64_t seed) {
  Random random(seed);
  std::string input = corpus.empty() ? std::string() : random.pick(corpus);
  for (std::int64_t left = random.integer(1, 8); left > 0; --left)
    mutate_once(input, corpus, random);
  input.resize(std::min(input.size(), kMaxInputBytes));
  return input;
}

void run_one(const std::string& input) {
  // A copy without spare room, so that a sanitizer sees the first byte that is read beyond the end.
  const std::vector<std::uint8_t> exact(input.begin(), input.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

bool parse(int count, char** words, Options& options) {
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const std::size_t split = word.find('=');
    const std::string value = split == std::string::npos ? "" : word.substr(split + 1);
    if (word.starts_with("-runs=")) {
      options.runs = std::strtoull(value.c_str(), nullptr, 10);
    } else if (word.starts_with("-max_total_time=")) {
      options.seconds = std::strtod(value.c_str(), nullptr);
    } else if (word.starts_with("-seed=")) {
      options.seed = std::strtoull(value.c_str(), nullptr, 10);
    } else if (word.starts_with("-")) {
      std::fprintf(stderr, "fuzz: unknown option '%s'\n", word.c_str());
      return false;
    } else {
      options.corpus.push_back(word);
    }
  }
  return true;
}

void fuzz(const Options& options) {
  const std::vector<std::string> corpus = load(options.corpus);
  std::fprintf(stderr, "fuzz: seed %llu, %zu inputs in the corpus\n",
               static_cast<unsigned long long>(options.seed), corpus.size());
  for (const std::string& input : corpus) run_one(input);
  in_corpus = false;
  const auto start = std::chrono::steady_clock::now();
  std::uint64_t done = 0;
  for (; done < options.runs; ++done) {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    if (options.seconds > 0 && elapsed.count() > options.seconds) break;
    current_seed = options.seed + done;
    run_one(make_input(corpus, current_seed));
  }
  std::fprintf(stderr, "fuzz: %llu runs done\n", static_cast<unsigned long long>(done));
}

}  // namespace
}  // namespace tessera::testing

int main(int count, char** words) {
  tessera::testing::Options options;
  if (!tessera::testing::parse(count, words, options)) return 2;
  tessera::testing::report_failures();
  tessera::testing::fuzz(options);
  return 0;
}
