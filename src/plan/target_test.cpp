#include "plan/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/fake_device.h"

namespace tessera::plan {
namespace {

using ::testing::ElementsAre;

Result<Target> target_of(
    const std::vector<std::pair<std::string, std::string>>& names_and_memories) {
  std::vector<std::unique_ptr<backends::CompileDevice>> devices;
  for (const auto& [name, memory] : names_and_memories)
    devices.push_back(std::make_unique<testing::FakeDevice>(name, memory));
  return make_target(std::move(devices));
}

TEST(Target, TheReferenceIsThereAndStandsLast) {
  const auto added = target_of({{"npu", "npu"}, {"cpu", "host"}});
  ASSERT_TRUE(added) << added.error().to_string();
  EXPECT_EQ(device_names(*added), "npu, cpu, reference");
  EXPECT_THAT(added->memories, ElementsAre("host", "npu"));
  EXPECT_THAT(added->memory_of, ElementsAre(1, 0, 0));
  const auto listed = target_of({{"reference", "host"}, {"cpu", "host"}});
  ASSERT_TRUE(listed) << listed.error().to_string();
  EXPECT_EQ(device_names(*listed), "cpu, reference");
}

TEST(Target, DevicesByName) {
  const auto target = target_of({{"npu", "npu"}, {"cpu", "host"}});
  ASSERT_TRUE(target);
  EXPECT_EQ(target->find("cpu"), 1U);
  EXPECT_EQ(target->find("tpu"), target->device_count());
}

TEST(Target, TwoDevicesOfOneName) {
  const auto target = target_of({{"npu", "npu"}, {"npu", "other"}});
  ASSERT_FALSE(target);
  EXPECT_EQ(target.error().to_string(), "two devices are called 'npu'");
}

TEST(Target, FormsAsText) {
  const auto target = target_of({{"npu", "npu"}});
  ASSERT_TRUE(target);
  EXPECT_EQ(to_string(Form{kHostMemory, {Layout::row_major(), DType::kFp32}}, *target),
            "nchw/fp32");
  EXPECT_EQ(to_string(Form{1, {Layout::channels_last(4), DType::kFp16}}, *target), "nhwc/fp16@npu");
}

}  // namespace
}  // namespace tessera::plan
