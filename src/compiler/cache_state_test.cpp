#include "compiler/cache_state.h"

#include <gtest/gtest.h>

#include <vector>

#include "ir/infer.h"
#include "ir/text.h"

namespace tessera::compiler {
namespace {

using plan::CacheState;

TEST(TouchedBytes, ConstantsOnceAndTheLargestOperands) {
  auto module = ir::parse(R"(tessera.ir 1 module "m" { symbol "n" in [1, 8] method "main" {
      input %x : fp32[n, 16] const %w : fp32[1, 16] dense [1, 1, 1, 1, 1, 1, 1, 1,
                                                                       1, 1, 1, 1, 1, 1, 1, 1]
      %a = Mul(%x, %w) name "a" %b = Add(%a, %w) name "b" %c = Add(%a, %b) name "c"
      output %c } })");
  ASSERT_TRUE(module) << module.error().to_string();
  ASSERT_TRUE(ir::infer(*module));
  const ir::Graph& graph = module->methods[0].graph;
  const std::int64_t constant_bytes = 64;
  EXPECT_EQ(touched_bytes(graph, {{"n", 2}}), constant_bytes + 3 * 2 * 64);
  EXPECT_EQ(touched_bytes(graph, {}), constant_bytes) << "sizes that are not known";
}

TEST(CacheState, NamesTheCachesThatHoldIt) {
  const std::vector<CacheLevel> caches = {{"L1", 10}, {"L2", 100}, {"L3", 800}};
  EXPECT_EQ(cache_state(100, caches), CacheState::kResident);
  EXPECT_EQ(cache_state(101, caches), CacheState::kShared);
  EXPECT_EQ(cache_state(800, caches), CacheState::kShared);
  EXPECT_EQ(cache_state(801, caches), CacheState::kStreamed);
  EXPECT_EQ(cache_state(1, {}), CacheState::kStreamed);
  const std::vector<CacheLevel> one = {{"L1", 10}};
  EXPECT_EQ(cache_state(10, one), CacheState::kResident);
  EXPECT_EQ(cache_state(11, one), CacheState::kStreamed);
}

}  // namespace
}  // namespace tessera::compiler
