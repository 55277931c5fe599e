#include "base/zeroed_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace tessera {
namespace {

TEST(ZeroedMemory, IsAlignedAndZeroedAgainAfterUse) {
  for (const std::int64_t size : {0, 1, 100, 2 << 20, (2 << 20) - 1, (6 << 20) + 5}) {
    SCOPED_TRACE(size);
    for (int round = 0; round < 2; ++round) {
      std::byte* data = allocate_zeroed(size);
      ASSERT_NE(data, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 64, 0U);
      EXPECT_TRUE(std::all_of(data, data + size, [](std::byte b) { return b == std::byte{0}; }));
      std::memset(data, 7, static_cast<std::size_t>(size));
      release_zeroed(data, size);
    }
  }
}

TEST(ZeroedMemory, RefusesWhatNoMachineHas) {
  EXPECT_EQ(allocate_zeroed(-1), nullptr);
  EXPECT_EQ(allocate_zeroed(INT64_MAX), nullptr);
  EXPECT_EQ(allocate_zeroed(std::int64_t{1} << 60), nullptr);
}

}  // namespace
}  // namespace tessera
