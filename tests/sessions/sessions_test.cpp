// Several sessions on several threads of the user: every result is, byte for byte, that of one
// session alone that has as many threads. With another number a product of the library may be cut
// into other pieces, and these be summed in another order: there it agrees within kRounding. These
// tests are what the thread sanitizer looks at first.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <latch>
#include <limits>
#include <set>
#include <thread>

#include "backends/registry_run/registry_run.h"
#include "compiler/compile.h"
#include "runtime/executor.h"
#include "runtime/worker_crew.h"
#include "sessions/session_models.h"
#include "sessions/split_watch.h"
#include "testing/random.h"
#include "testing/temp_dir.h"

namespace tessera::testing {
namespace {

using ::testing::IsSupersetOf;
using Program = std::shared_ptr<const runtime::LoadedProgram>;

constexpr int kUsers = 4;
constexpr int kMostThreads = 3;      // of a session
constexpr std::int64_t kSizes = 12;  // more than a session keeps shape plans
constexpr float kRounding = 1e-5F;   // of the largest magnitude in a result
static_assert(kSizes > static_cast<std::int64_t>(runtime::kShapePlansKept));

Result<artefact::ProgramImage> compile_image(const SessionModel& model) {
  const TempDir folder;
  compiler::CompileOptions options;
  options.devices = {"cpu"};
  if (model.with_npu)
    options.devices.push_back(folder.write("npu.json", quick_npu_profile()).string());
  TESSERA_ASSIGN(auto compiled, compiler::compile(folder.write("m.onnx", model.onnx), options));
  return std::move(compiled.image);
}

Result<Program> load(artefact::ProgramImage image) {
  return runtime::LoadedProgram::create(std::move(image), "", &backends::make_run_device);
}

Tensor input_of(const SessionModel& model, std::int64_t n) {
  Dims dims = model.item;
  dims.insert(dims.begin(), n);
  const std::int64_t count = numel(dims);
  Random random(static_cast<std::uint64_t>(n));
  return Tensor::of<float>(DType::kFp32, dims, random.floats(static_cast<std::size_t>(count)));
}

// The bytes of y; the text of the error where there is one.
std::string run_once(runtime::Executor& session, const Tensor& x) {
  if (auto bound = session.bind_input("x", x.dtype(), x.dims(), x.data()); !bound)
    return bound.error().to_string();
  if (auto status = session.run(); !status) return status.error().to_string();
  const auto y = session.output("y");
  if (!y) return y.error().to_string();
  return {static_cast<const char*>(y->data), static_cast<std::size_t>(y->nbytes())};
}

// A model with its inputs for every n, and what comes out.
struct Subject {
  explicit Subject(SessionModel from) : model(std::move(from)) {
    auto compiled = compile_image(model);
    EXPECT_TRUE(compiled) << model.name << ": " << compiled.error().to_string();
    if (!compiled) return;
    image = *compiled;
    auto loaded = load(image);
    EXPECT_TRUE(loaded) << model.name << ": " << loaded.error().to_string();
    if (!loaded) return;
    program = *std::move(loaded);
    for (std::int64_t n = 1; n <= kSizes; ++n) inputs.push_back(input_of(model, n));
    for (int threads = 1; threads <= kMostThreads; ++threads) expect_with(threads);
  }

  // What comes out for inputs[i] where a session has so many threads.
  [[nodiscard]] const std::string& expected(int threads, std::size_t i) const {
    return expected_.at(static_cast<std::size_t>(threads - 1)).at(i);
  }

  SessionModel model;
  artefact::ProgramImage image;
  Program program;
  std::vector<Tensor> inputs;

 private:
  void expect_with(int threads) {
    std::vector<std::string>& results = expected_.emplace_back();
    auto alone = runtime::Executor::create(program, {.threads = threads});
    ASSERT_TRUE(alone) << model.name << ": " << alone.error().to_string();
    for (const Tensor& x : inputs) {
      results.push_back(run_once(**alone, x));
      EXPECT_TRUE((*alone)->output("y")) << model.name << ": " << results.back();
    }
  }

  std::vector<std::vector<std::string>> expected_;  // by threads - 1, then as inputs
};

// By how much two results of fp32 differ, as a part of the largest magnitude in the first one;
// infinite where they cannot be compared.
float difference(const std::string& one, const std::string& other) {
  if (one.size() != other.size()) return std::numeric_limits<float>::infinity();
  std::vector<float> a(one.size() / sizeof(float));
  std::vector<float> b(a.size());
  std::memcpy(a.data(), one.data(), a.size() * sizeof(float));
  std::memcpy(b.data(), other.data(), b.size() * sizeof(float));
  float largest = std::numeric_limits<float>::min();
  float most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float apart = std::abs(a[i] - b[i]);
    if (!std::isfinite(apart)) return std::numeric_limits<float>::infinity();
    largest = std::max(largest, std::abs(a[i]));
    most = std::max(most, apart);
  }
  return most / largest;
}

const std::vector<Subject>& subjects() {
  static const std::vector<Subject> made = [] {
    std::vector<Subject> list;
    for (SessionModel& model : session_models()) list.emplace_back(std::move(model));
    return list;
  }();
  return made;
}

// What a user finds wrong in `runs` runs of a session of its own, at sizes in an order of its own;
// "" where nothing is.
std::string use(const Subject& subject, const Program& program, int user, int runs) {
  const int threads = 1 + user % kMostThreads;
  auto session = runtime::Executor::create(program, {.threads = threads});
  if (!session) return session.error().to_string();
  Random random(static_cast<std::uint64_t>(user));
  for (int run = 0; run < runs; ++run) {
    const auto i = static_cast<std::size_t>(random.integer(0, kSizes - 1));
    const std::string found = run_once(**session, subject.inputs[i]);
    if (found != subject.expected(threads, i))
      return subject.model.name + ": user " + std::to_string(user) + ", run " +
             std::to_string(run) + ", n = " + std::to_string(i + 1) + ": other values than alone";
  }
  return "";
}

// Runs `body(user)` on a thread for each user, all let go at once; expects "" of each.
template <typename Body>
void expect_of_all_users(Body body) {
  std::vector<std::string> wrong(kUsers);
  std::latch ready(kUsers);
  std::vector<std::thread> users;
  for (int user = 0; user < kUsers; ++user)
    users.emplace_back([&, user] {
      ready.arrive_and_wait();
      wrong[static_cast<std::size_t>(user)] = body(user);
    });
  for (std::thread& user : users) user.join();
  for (const std::string& text : wrong) EXPECT_EQ(text, "");
}

TEST(Sessions, ReachTheKernelsThatMatter) {
  std::set<std::string> kernels;
  std::set<artefact::Opcode> opcodes;
  bool any_dynamic = false;
  for (const Subject& subject : subjects()) {
    for (const auto& kernel : subject.image.kernels)
      kernels.insert(kernel.backend == "cpu" ? kernel.kernel : kernel.backend);
    for (const auto& method : subject.image.plans.front().methods) {
      for (const auto& instruction : method.instructions) opcodes.insert(instruction.opcode);
      for (const auto& buffer : method.buffers) any_dynamic = any_dynamic || buffer.is_dynamic;
    }
  }
  EXPECT_THAT(kernels, IsSupersetOf({"onednn.conv", "onednn.matmul", "simd.conv", "simd.gemm_conv",
                                     "simd.depthwise_conv", "simd.product", "simd.elementwise",
                                     "simd.recurrent", "simd.attention", "simd.quant_conv",
                                     "reference", "simulated"}));
  EXPECT_THAT(opcodes, IsSupersetOf({artefact::Opcode::kLoop, artefact::Opcode::kBranch,
                                     artefact::Opcode::kTransfer}));
  EXPECT_TRUE(any_dynamic);
}

TEST(Sessions, ShareTheWorkOfTheirKernels) {
  for (const Subject& subject : subjects()) {
    const auto program =
        runtime::LoadedProgram::create(subject.image, "", &make_watched_run_device);
    ASSERT_TRUE(program) << program.error().to_string();
    auto session = runtime::Executor::create(*program, {.threads = 2});
    ASSERT_TRUE(session) << session.error().to_string();
    EXPECT_EQ(run_once(**session, subject.inputs.back()), subject.expected(2, kSizes - 1));
  }
  EXPECT_THAT(kernels_split(),
              IsSupersetOf({"onednn.conv", "onednn.matmul", "onednn.pool", "simd.pool", "simd.conv",
                            "simd.gemm_conv", "simd.depthwise_conv", "simd.product",
                            "simd.attention", "simd.recurrent", "simd.quant_conv"}));
}

TEST(Sessions, AgreeWithinRoundingWhateverTheirThreads) {
  for (const Subject& subject : subjects())
    for (int threads = 2; threads <= kMostThreads; ++threads)
      for (std::size_t i = 0; i < kSizes; ++i)
        EXPECT_LE(difference(subject.expected(1, i), subject.expected(threads, i)), kRounding)
            << subject.model.name << ", n = " << i + 1 << ", threads = " << threads;
}

TEST(Sessions, ShareAProgram) {
  for (const Subject& subject : subjects())
    expect_of_all_users([&](int user) { return use(subject, subject.program, user, 40); });
}

TEST(Sessions, HaveProgramsOfTheirOwn) {
  expect_of_all_users([](int user) -> std::string {
    for (std::size_t i = 0; i < subjects().size(); ++i) {
      const Subject& subject = subjects()[(i + static_cast<std::size_t>(user)) % subjects().size()];
      const auto program = load(subject.image);
      if (!program) return program.error().to_string();
      if (auto wrong = use(subject, *program, user, 20); !wrong.empty()) return wrong;
    }
    return "";
  });
}

TEST(Sessions, CompileOnSeveralThreads) {
  expect_of_all_users([](int user) -> std::string {
    for (std::size_t i = 0; i < 2; ++i) {
      const Subject& subject =
          subjects()[(i * 3 + static_cast<std::size_t>(user)) % subjects().size()];
      auto image = compile_image(subject.model);
      if (!image) return image.error().to_string();
      const auto program = load(*std::move(image));
      if (!program) return program.error().to_string();
      if (auto wrong = use(subject, *program, user, 3); !wrong.empty()) return wrong;
    }
    return "";
  });
}

// One user runs all the time; the others' sessions live for two runs, so that the process's workers
// are enlisted, dismissed and started meanwhile.
TEST(Sessions, ComeAndGoWhileOthersRun) {
  for (const Subject& subject : subjects())
    expect_of_all_users([&](int user) -> std::string {
      if (user == 0) return use(subject, subject.program, 1, 60);
      for (int life = 0; life < 20; ++life)
        if (auto wrong = use(subject, subject.program, user + life, 2); !wrong.empty())
          return wrong;
      return "";
    });
}

TEST(Sessions, MakeShapePlansAtTheSameTime) {
  for (const Subject& subject : subjects())
    expect_of_all_users([&](int user) -> std::string {
      auto session = runtime::Executor::create(subject.program, {.threads = 2});
      if (!session) return session.error().to_string();
      for (std::size_t round = 0; round < 2; ++round)
        for (std::size_t size = 0; size < kSizes; ++size) {
          // Half of the users go up, half down: equal sizes at once, and different ones.
          const std::size_t i = user % 2 == 0 ? size : kSizes - 1 - size;
          if (run_once(**session, subject.inputs[i]) != subject.expected(2, i))
            return subject.model.name + ": n = " + std::to_string(i + 1) +
                   ": other values than alone";
        }
      return (*session)->shape_plans_made() < kSizes ? "fewer shape plans than sizes" : "";
    });
}

std::int64_t threads_of_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

// oneDNN comes with OpenMP, whose threads would be those of nobody's pool.
TEST(Sessions, StartNoThreadsBesideTheWorkers) {
  const auto crew = runtime::WorkerCrew::of_process();  // held, so that its one worker stays
  ASSERT_NE(subjects().size(), 0);
  const std::int64_t before = threads_of_process();
  for (const Subject& subject : subjects()) {
    auto session = runtime::Executor::create(subject.program, {.threads = 2});
    ASSERT_TRUE(session) << session.error().to_string();
    EXPECT_EQ(run_once(**session, subject.inputs.back()), subject.expected(2, kSizes - 1));
    EXPECT_LE(threads_of_process(), before + 1) << subject.model.name;
  }
}

}  // namespace
}  // namespace tessera::testing
