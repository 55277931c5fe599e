#include "base/machine_facts.h"

#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace tessera {
namespace {

void add_cache(const testing::TempDir& root, int processor, int index, const std::string& level,
               const std::string& type, const std::string& size, const std::string& shared) {
  const std::string folder =
      "cpu" + std::to_string(processor) + "/cache/index" + std::to_string(index) + "/";
  root.write(folder + "level", level + "\n");
  root.write(folder + "type", type + "\n");
  root.write(folder + "size", size + "\n");
  root.write(folder + "shared_cpu_list", shared + "\n");
}

TEST(DataCaches, SharedOnesCountOnceAndInstructionsDoNot) {
  const testing::TempDir root;
  for (int processor = 0; processor < 2; ++processor) {
    const std::string own = std::to_string(processor);
    add_cache(root, processor, 0, "1", "Data", "32K", own);
    add_cache(root, processor, 1, "1", "Instruction", "64K", own);
    add_cache(root, processor, 2, "2", "Unified", "512K", own);
    add_cache(root, processor, 3, "3", "Unified", "8M", "0-1");
  }
  const std::vector<CacheLevel> two = {{"L1", 64 << 10}, {"L2", 1 << 20}, {"L3", 8 << 20}};
  EXPECT_EQ(data_caches({0, 1}, root.path()), two);
  const std::vector<CacheLevel> one = {{"L1", 32 << 10}, {"L2", 512 << 10}, {"L3", 8 << 20}};
  EXPECT_EQ(data_caches({1}, root.path()), one);
}

TEST(DataCaches, WhatIsNoSizeIsLeftOut) {
  const testing::TempDir root;
  add_cache(root, 0, 0, "1", "Data", "32K", "0");
  add_cache(root, 0, 1, "2", "Unified", "lots", "0");
  add_cache(root, 0, 2, "3", "Unified", "16K", "0");  // smaller than the level below it
  EXPECT_EQ(data_caches({0, 7}, root.path()), (std::vector<CacheLevel>{{"L1", 32 << 10}}));
  EXPECT_TRUE(data_caches({0}, root / "absent").empty());
}

TEST(ProcessorMhz, WhereTheKernelTells) {
  const testing::TempDir root;
  root.write("cpu3/cpufreq/scaling_cur_freq", "2994375\n");
  root.write("cpu4/cpufreq/scaling_cur_freq", "<unknown>\n");
  EXPECT_EQ(processor_mhz(3, root.path()), 2994.375);
  EXPECT_EQ(processor_mhz(4, root.path()), std::nullopt);
  EXPECT_EQ(processor_mhz(0, root.path()), std::nullopt);
}

}  // namespace
}  // namespace tessera
