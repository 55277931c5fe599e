#include "plan/conversions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "plan/plan_testing_test.h"
#include "plan/random_case_test.h"
#include "testing/random.h"

namespace tessera::plan {
namespace {

using ::testing::ElementsAre;

// A host and a device "npu" behind a link of 10 us; one value of 128 bytes.
struct Two : Stages {
  Two() : Stages("input %x : fp32[1, 8, 2, 2] %a = Relu(%x) name \"a\" output %a") {
    devices.add("cpu").offer("a", 1, {kPlain}, kPlain);
    devices.add("npu", "npu").mutable_info().rates.link_latency_us = 10;
    EXPECT_TRUE(enumerate());
  }
  testing::FakeDevice& device(std::size_t number) {
    return dynamic_cast<testing::FakeDevice&>(*target().devices[number]);
  }
  // The forms that a path passes through, the last one included; "none" where there is no path.
  std::vector<std::string> path(const Form& root, const Form& form) {
    const auto& steps = conversions->path(value("x"), root, form);
    if (!steps) return {"none"};
    std::vector<std::string> forms;
    for (const ConversionStep& step : *steps)
      forms.push_back((step.transfer ? "copy to " : target().info(step.device).name + " makes ") +
                      to_string(step.to, target()));
    return forms;
  }
};

TEST(Conversions, NothingToDo) {
  Two two;
  EXPECT_THAT(two.path({0, kPlain}, {0, kPlain}), ElementsAre());
}

TEST(Conversions, LayoutThenDtypeWithinOneMemory) {
  Two two;
  two.device(0).convert(kPlain, kLast, 3);
  two.device(0).convert(kLast, kLastHalf, 2);
  EXPECT_EQ(two.path({0, kPlain}, {0, kLastHalf}),
            (std::vector<std::string>{"cpu makes nhwc/fp32", "cpu makes nhwc/fp16"}));
}

TEST(Conversions, DtypeFirstWhereThatIsCheaper) {
  Two two;
  two.device(0).convert(kPlain, kLast, 30);
  two.device(0).convert(kLast, kLastHalf, 2);
  two.device(0).convert(kPlain, kPlainHalf, 4);
  two.device(0).convert(kPlainHalf, kLastHalf, 5);
  EXPECT_EQ(two.path({0, kPlain}, {0, kLastHalf}),
            (std::vector<std::string>{"cpu makes nchw/fp16", "cpu makes nhwc/fp16"}));
}

TEST(Conversions, OnTheSideOfTheLinkWhereTheyAreCheaper) {
  Two two;
  two.device(0).convert(kPlain, kLast, 30);
  two.device(1).convert(kPlain, kLast, 3);
  EXPECT_EQ(two.path({0, kPlain}, {1, kLast}),
            (std::vector<std::string>{"copy to nchw/fp32@npu", "npu makes nhwc/fp32@npu"}));
  Two other;
  other.device(0).convert(kPlain, kLast, 3);
  other.device(1).convert(kPlain, kLast, 30);
  EXPECT_EQ(other.path({0, kPlain}, {1, kLast}),
            (std::vector<std::string>{"cpu makes nhwc/fp32", "copy to nhwc/fp32@npu"}));
}

TEST(Conversions, OfEqualSumsTheCopyComesFirst) {
  Two two;
  for (std::size_t device : {0, 1}) {
    two.device(device).convert(kPlain, kLast, 3);
    two.device(device).convert(kLast, kPlain, 3);
  }
  EXPECT_EQ(two.path({0, kPlain}, {1, kLast}),
            (std::vector<std::string>{"copy to nchw/fp32@npu", "npu makes nhwc/fp32@npu"}));
  EXPECT_EQ(two.path({1, kLast}, {0, kPlain}),
            (std::vector<std::string>{"copy to nhwc/fp32", "cpu makes nchw/fp32"}));
}

TEST(Conversions, EachSideDoesWhatItCan) {
  Two two;
  two.device(0).convert(kPlain, kPlainHalf, 3);
  two.device(1).convert(kPlainHalf, kLastHalf, 3);
  EXPECT_EQ(two.path({0, kPlain}, {1, kLastHalf}),
            (std::vector<std::string>{"cpu makes nchw/fp16", "copy to nchw/fp16@npu",
                                      "npu makes nhwc/fp16@npu"}));
}

TEST(Conversions, MissingOnes) {
  Two two;
  EXPECT_EQ(two.path({0, kPlain}, {0, kLast}), (std::vector<std::string>{"none"}));
  EXPECT_EQ(two.path({0, kPlain}, {1, kLast}), (std::vector<std::string>{"none"}));
}

TEST(Conversions, TheCheapestDeviceOfAMemoryConverts) {
  Two two;
  two.device(0).convert(kPlain, kLast, 9);
  two.devices.add("dsp").convert(kPlain, kLast, 4);
  EXPECT_EQ(two.path({0, kPlain}, {0, kLast}), (std::vector<std::string>{"dsp makes nhwc/fp32"}));
}

// The cheapest of the orders in which memory, layout and dtype could change.
double cheapest_us(RandomCase& random_case, ir::ValueId value, const Form& root, const Form& form) {
  if (root == form) return 0;
  double best_us = std::numeric_limits<double>::infinity();
  for (int change = 0; change < 3; ++change) {
    Form next = root;
    if (change == 0) next.memory = form.memory;
    if (change == 1) next.tensor.layout = form.tensor.layout;
    if (change == 2) next.tensor.dtype = form.tensor.dtype;
    if (next == root) continue;
    double step_us = std::numeric_limits<double>::infinity();
    const Target& target = random_case.devices.target();
    if (change == 0) {
      const auto dims = *evaluate(*random_case.graph().value(value).type.shape, random_case.point);
      const auto size =
          static_cast<double>(layout_nbytes(root.tensor.layout, root.tensor.dtype, dims));
      step_us = random_case.pricer->transfer_us(root.memory, next.memory, size);
    } else {
      for (std::uint32_t device = 0; device < target.device_count(); ++device) {
        if (target.memory_of[device] != root.memory) continue;
        for (const auto& candidate :
             target.devices[device]->conversion(root.tensor, next.tensor, {}, {}).candidates)
          step_us = std::min(step_us, round_price_us(candidate.flops));
      }
    }
    best_us = std::min(best_us, step_us + cheapest_us(random_case, value, next, form));
  }
  return best_us;
}

TEST(Conversions, PathsAreCheapestAndTheirPrefixesArePaths) {
  int found = 0;
  for (const std::uint64_t seed : testing::seeds(60)) {
    SCOPED_TRACE(testing::seed_text(seed));
    RandomCase random_case(seed);
    testing::Random random(seed);
    const auto draw = [&] {
      const std::vector<Layout> layouts = {Layout::row_major(), Layout::channels_last(4),
                                           Layout::channel_blocked(4, 8)};
      return Form{
          static_cast<std::uint32_t>(random.index(random_case.devices.target().memories.size())),
          {random.pick(layouts), random.chance(0.5) ? DType::kFp32 : DType::kFp16}};
    };
    for (int i = 0; i < 20; ++i) {
      const ir::ValueId value = random_case.graph().inputs.front();
      const Form root = draw();
      const Form form = draw();
      const auto path = random_case.conversions->path(value, root, form);
      const double expected_us = cheapest_us(random_case, value, root, form);
      ASSERT_EQ(path.has_value(), std::isfinite(expected_us));
      if (!path) continue;
      ++found;
      double total_us = 0;
      Form at = root;
      for (std::size_t k = 0; k < path->size(); ++k) {
        EXPECT_EQ((*path)[k].from, at);
        at = (*path)[k].to;
        total_us += (*path)[k].price.us;
        const auto& prefix = random_case.conversions->path(value, root, at);
        ASSERT_TRUE(prefix);
        ASSERT_EQ(prefix->size(), k + 1);
        for (std::size_t j = 0; j <= k; ++j) EXPECT_EQ((*prefix)[j].to, (*path)[j].to);
      }
      EXPECT_EQ(at, form);
      EXPECT_NEAR(total_us, expected_us, 1e-9 * (1 + expected_us));
    }
  }
  EXPECT_GT(found, 500);
}

}  // namespace
}  // namespace tessera::plan
