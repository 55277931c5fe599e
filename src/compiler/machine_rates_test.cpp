#include "compiler/machine_rates.h"

#include <gtest/gtest.h>

namespace tessera::compiler {
namespace {

TEST(MeasureMachine, GivesAFileThatParsesBack) {
  const auto file = measure_machine(2);
  ASSERT_TRUE(file) << file.error().to_string();
  EXPECT_EQ(file->name, "cpu");
  EXPECT_EQ(file->threads, 2);
  EXPECT_TRUE(file->measured.rates.hand_over_us > 0 || file->measured.busy);
  EXPECT_TRUE(file->measured.rates.wake_up_us > 0 || file->measured.busy);
  const auto parsed = backends::parse_rates(backends::print_rates(*file));
  ASSERT_TRUE(parsed) << parsed.error().to_string();
  EXPECT_EQ(backends::print_rates(*parsed), backends::print_rates(*file));
}

TEST(MeasureMachine, OneThreadHandsNothingOver) {
  const auto file = measure_machine(1);
  ASSERT_TRUE(file) << file.error().to_string();
  EXPECT_EQ(file->measured.rates.hand_over_us, 0);
}

TEST(MeasureMachine, NeedsAThread) {
  EXPECT_EQ(measure_machine(0).error().to_string(), "threads: expected 1 or more, found 0");
}

}  // namespace
}  // namespace tessera::compiler
