#include "runtime/kept_instances.h"

#include <gtest/gtest.h>

namespace tessera::runtime {
namespace {

class Instance final : public backends::KernelInstance {
  Status execute(const backends::ExecuteArgs& /*args*/) override { return {}; }
};

// Refuses what has no elements.
class Kernel final : public backends::LoadedKernel {
 public:
  Result<std::unique_ptr<backends::KernelInstance>> instantiate(const backends::InstanceDims& dims,
                                                                int /*threads*/) const override {
    if (numel(dims.inputs[0]) == 0) return fail(ErrorCode::kInvalidArgument, "expected elements");
    ++made;
    return std::make_unique<Instance>();
  }
  mutable int made = 0;
};

TEST(KeptInstances, MakesOneForEachSetOfSizes) {
  const Kernel kernel;
  KeptInstances kept;
  const auto find = [&](std::int64_t size, std::int64_t result) {
    return *kept.find(kernel, {{{size}}, {{result}}}, 1);
  };
  const auto* first = find(1, 1);
  EXPECT_NE(find(1, 2), first) << "results of another size";
  EXPECT_EQ(find(1, 1), first);
  EXPECT_EQ(kernel.made, 2);
}

TEST(KeptInstances, KeepsThoseThatWereUsedLast) {
  const Kernel kernel;
  KeptInstances kept;
  const auto count = static_cast<std::int64_t>(kInstancesKept);
  const auto find = [&](std::int64_t size) {
    const int before = kernel.made;
    EXPECT_TRUE(kept.find(kernel, {{{size}}, {{1}}}, 1));
    return kernel.made > before;  // whether it was made
  };
  for (std::int64_t size = 1; size <= count; ++size) EXPECT_TRUE(find(size));
  EXPECT_FALSE(find(1));
  EXPECT_TRUE(find(count + 1)) << "in the place of 2";
  EXPECT_FALSE(find(1));
  EXPECT_TRUE(find(2));
}

TEST(KeptInstances, RefusalsOfTheKernelAreNotKept) {
  const Kernel kernel;
  KeptInstances kept;
  for (int i = 0; i < 2; ++i) {
    const auto refused = kept.find(kernel, {{{0}}, {{1}}}, 1);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().to_string(), "expected elements");
  }
}

}  // namespace
}  // namespace tessera::runtime
