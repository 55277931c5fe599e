// A run in the steady state allocates nothing: counted by replacing operator new of this test
// program.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "backends/registry_run/registry_run.h"
#include "compiler/compile.h"
#include "runtime/executor.h"
#include "testing/onnx_builder.h"
#include "testing/random.h"
#include "testing/temp_dir.h"

namespace {

std::atomic<bool> counting{false};
std::atomic<int> allocations{0};
std::atomic<int> of_onednn{0};

void count(const void* caller) {
  Dl_info info{};
  const bool known = ::dladdr(caller, &info) != 0 && info.dli_fname != nullptr;
  const bool library = known && std::strstr(info.dli_fname, "libdnnl") != nullptr;
  (library ? of_onednn : allocations).fetch_add(1);
}

[[gnu::noinline]] void* counted_allocation(std::size_t size_bytes, std::size_t alignment,
                                           const void* caller) {
  if (counting.load()) count(caller);
  const std::size_t padded = (size_bytes + alignment - 1) / alignment * alignment;
  void* data = std::aligned_alloc(alignment, padded == 0 ? alignment : padded);
  if (data == nullptr) std::abort();
  return data;
}

// Not inlined: the compiler would take the free() of a delete for the wrong partner of a new.
[[gnu::noinline]] void freed(void* data) {
  std::free(data);
}

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size_bytes) {
  return counted_allocation(size_bytes, alignof(std::max_align_t), __builtin_return_address(0));
}
[[gnu::noinline]] void* operator new[](std::size_t size_bytes) {
  return counted_allocation(size_bytes, alignof(std::max_align_t), __builtin_return_address(0));
}
[[gnu::noinline]] void* operator new(std::size_t size_bytes, std::align_val_t alignment) {
  return counted_allocation(size_bytes, static_cast<std::size_t>(alignment),
                            __builtin_return_address(0));
}
[[gnu::noinline]] void* operator new[](std::size_t size_bytes, std::align_val_t alignment) {
  return counted_allocation(size_bytes, static_cast<std::size_t>(alignment),
                            __builtin_return_address(0));
}
void operator delete(void* data) noexcept {
  freed(data);
}
void operator delete[](void* data) noexcept {
  freed(data);
}
void operator delete(void* data, std::size_t) noexcept {
  freed(data);
}
void operator delete[](void* data, std::size_t) noexcept {
  freed(data);
}
void operator delete(void* data, std::align_val_t) noexcept {
  freed(data);
}
void operator delete[](void* data, std::align_val_t) noexcept {
  freed(data);
}
void operator delete(void* data, std::size_t, std::align_val_t) noexcept {
  freed(data);
}
void operator delete[](void* data, std::size_t, std::align_val_t) noexcept {
  freed(data);
}

namespace tessera::compiler {
namespace {

using testing::OnnxModel;

// A convolution with its sum and activation, a unary operation that no convolution takes in, and a
// classifier.
std::string small_model() {
  OnnxModel model(17);
  testing::Random random(3);
  model.input("x", testing::kFloat, {1, 4, 12, 12});
  model.floats("w1", {8, 4, 3, 3}, random.floats(8 * 4 * 9));
  model.floats("w3", {8, 5}, random.floats(8 * 5));
  model.node("Conv", {"x", "w1"}, {"c1"}, "conv1").ints("pads", {1, 1, 1, 1});
  model.node("Relu", {"c1"}, {"r1"}, "relu1");
  model.node("Erf", {"r1"}, {"e"}, "erf");
  model.node("Add", {"e", "r1"}, {"s"}, "sum");
  model.node("GlobalAveragePool", {"s"}, {"p"}, "pool");
  model.node("Flatten", {"p"}, {"f"}, "flatten").integer("axis", 1);
  model.node("MatMul", {"f", "w3"}, {"y"}, "classify");
  model.output("y", testing::kFloat, {1, 5});
  return model.serialize();
}

TEST(SteadyState, ARunAllocatesNothing) {
  const testing::TempDir folder;
  auto result = compile(folder.write("m.onnx", small_model()), {});
  ASSERT_TRUE(result) << result.error().to_string();
  for (const auto& device : result->image.plans.front().devices)
    ASSERT_NE(device.backend, "simulated");
  for (const auto& kernel : result->image.kernels)
    ASSERT_EQ(kernel.backend, "cpu") << "the reference is the obvious code, and allocates";
  auto program = runtime::LoadedProgram::create(result->image, "", &backends::make_run_device);
  ASSERT_TRUE(program) << program.error().to_string();
  for (const int threads : {1, 2}) {
    auto session = runtime::Executor::create(*program, {.threads = threads, .trace = true});
    ASSERT_TRUE(session);
    const Dims dims = {1, 4, 12, 12};
    const auto x = testing::Random(7).floats(4 * 144);
    for (int run = 0; run < 5; ++run) {
      ASSERT_TRUE((*session)->bind_input("x", DType::kFp32, dims, x.data()));
      ASSERT_TRUE((*session)->run());
    }
    allocations = 0;
    counting = true;
    bool sound = true;
    for (int run = 0; run < 100; ++run)
      sound =
          sound && (*session)->bind_input("x", DType::kFp32, dims, x.data()) && (*session)->run();
    counting = false;
    EXPECT_TRUE(sound);
    EXPECT_EQ(allocations.load(), 0) << threads << " threads; of oneDNN: " << of_onednn.load();
  }
}

TEST(SteadyState, TheCounterCounts) {
  allocations = 0;
  counting = true;
  void* data = ::operator new(16);
  counting = false;
  EXPECT_EQ(allocations.load(), 1);
  ::operator delete(data);
}

}  // namespace
}  // namespace tessera::compiler
