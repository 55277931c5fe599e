#include "compiler/surroundings.h"

#include <gtest/gtest.h>

#include <numeric>

namespace tessera::compiler {
namespace {

using plan::CacheState;

TEST(Surroundings, HandingOverLeavesContentsAsTheyAre) {
  std::vector<unsigned char> large(3 * 4096 + 70);
  std::iota(large.begin(), large.end(), static_cast<unsigned char>(1));
  std::vector<unsigned char> small = {7};
  const auto large_before = large;
  const auto as_buffer = [](std::vector<unsigned char>& bytes) {
    return backends::DeviceBuffer{reinterpret_cast<std::byte*>(bytes.data()),
                                  static_cast<std::int64_t>(bytes.size())};
  };
  const std::vector<backends::DeviceBuffer> operands = {
      as_buffer(large), as_buffer(small), {nullptr, 0}};
  const std::vector<std::byte> weights(100, std::byte{5});
  const std::vector<std::span<const std::byte>> constants = {weights, {}};
  for (const int threads : {1, 3}) {
    for (const CacheState caches :
         {CacheState::kResident, CacheState::kShared, CacheState::kStreamed}) {
      Surroundings surroundings(threads, caches);
      surroundings.hand_over(operands, constants);
      surroundings.empty_caches();
      EXPECT_EQ(large, large_before);
      EXPECT_EQ(small, std::vector<unsigned char>{7});
      EXPECT_EQ(weights, std::vector<std::byte>(100, std::byte{5}));
      EXPECT_EQ(surroundings.threads(), threads);
      EXPECT_EQ(surroundings.caches(), caches);
    }
  }
}

}  // namespace
}  // namespace tessera::compiler
