#include "backends/compile_common/rates_file.h"

#include <gtest/gtest.h>

namespace tessera::backends {
namespace {

std::string with(const std::string& keys) {
  return R"({"schema": "tessera.device/1.1", "name": "cpu", "kind": "real", "gflops": {"fp32": 64})" +
         (keys.empty() ? "" : ", " + keys) + "}";
}

std::string error_of(const std::string& text) {
  const auto file = parse_rates(text);
  return file ? "no error" : file.error().to_string();
}

RatesFile sample() {
  RatesFile file;
  file.name = "cpu";
  file.threads = 2;
  file.identity = {{"cpu.isa", "avx2"}, {"cpu.model", "A"}};
  DeviceRates& rates = file.measured.rates;
  rates.gflops = {{DType::kFp32, 61.25}, {DType::kInt8, 50}};
  rates.default_gflops = 61.25;
  rates.memory_gb_per_s = 12.5;
  rates.read_gb_per_s = 20;
  rates.caches = {{"L1", 64 << 10, 120, 150}, {"L2", 1 << 20, 60, 90}};
  rates.hand_over_us = 0.75;
  rates.wake_up_us = 31;
  rates.launch_us = rates.sync_us = rates.link_latency_us = 0;
  rates.unified = true;
  file.measured.spreads = {{"fp32", 0.01}};
  file.measured.busy = true;
  return file;
}

TEST(RatesFile, PrintsAndParsesBack) {
  const RatesFile file = sample();
  const auto parsed = parse_rates(print_rates(file));
  ASSERT_TRUE(parsed) << parsed.error().to_string();
  EXPECT_EQ(print_rates(*parsed), print_rates(file));
  EXPECT_EQ(parsed->name, "cpu");
  EXPECT_EQ(parsed->threads, 2);
  EXPECT_EQ(parsed->identity, file.identity);
  EXPECT_EQ(parsed->measured.rates.gflops, file.measured.rates.gflops);
  EXPECT_EQ(parsed->measured.rates.caches, file.measured.rates.caches);
  EXPECT_EQ(parsed->measured.rates.hand_over_us, 0.75);
  EXPECT_EQ(parsed->measured.rates.launch_us, 0);
  EXPECT_TRUE(parsed->measured.rates.unified);
  EXPECT_TRUE(parsed->measured.busy);
}

TEST(RatesFile, RatesHaveFourDigits) {
  RatesFile file = sample();
  file.measured.rates.memory_gb_per_s = 12.34567;
  file.measured.rates.hand_over_us = 0.000123456;
  file.measured.rates.wake_up_us = 123456;
  const auto parsed = parse_rates(print_rates(file));
  ASSERT_TRUE(parsed) << parsed.error().to_string();
  EXPECT_DOUBLE_EQ(parsed->measured.rates.memory_gb_per_s, 12.35);
  EXPECT_DOUBLE_EQ(parsed->measured.rates.hand_over_us, 0.0001235);
  EXPECT_DOUBLE_EQ(parsed->measured.rates.wake_up_us, 123500);
}

TEST(RatesFile, MalformedFiles) {
  EXPECT_EQ(error_of(with("")), "no error");
  EXPECT_EQ(error_of("{"), "not a device profile: expected JSON");
  EXPECT_EQ(error_of(with(R"("only": [])")),
            "'only': unknown key in the rates: expected one of schema, name, kind, threads, "
            "identity, gflops, memory_gb_per_s, read_gb_per_s, caches, hand_over_us, wake_up_us, "
            "launch_us, sync_us, link, spread, busy");
  EXPECT_EQ(error_of(R"({"schema": "tessera.device/1.1", "name": 1, "kind": "real"})"),
            "'name': expected a device's name, found 1");
  EXPECT_EQ(error_of(R"({"schema": "tessera.device/1.1", "name": "cpu", "kind": "real"})"),
            "'gflops': expected a rate of fp32, found none");
  EXPECT_EQ(error_of(with(R"("threads": 0)")),
            "'threads': expected a whole number of at least 1, found 0");
  EXPECT_EQ(error_of(with(R"("identity": [])")), "'identity': expected an object, found []");
  EXPECT_EQ(error_of(with(R"("identity": {"cpu.isa": 2})")), "'cpu.isa': expected a text, found 2");
  EXPECT_EQ(error_of(with(R"("spread": 1)")), "'spread': expected an object, found 1");
  EXPECT_EQ(error_of(with(R"("spread": {"fp32": -1})")),
            "'fp32': expected a number of at least 0, found -1");
  EXPECT_EQ(error_of(with(R"("busy": 1)")), "'busy': expected true or false, found 1");
  EXPECT_EQ(error_of(with(R"("hand_over_us": "1")")),
            "'hand_over_us': expected a number of at least 0, found \"1\"");
}

TEST(RatesFile, MalformedCaches) {
  const auto of = [](const std::string& caches) { return error_of(with("\"caches\": " + caches)); };
  EXPECT_EQ(of("{}"), "'caches': expected a list, found {}");
  EXPECT_EQ(of("[1]"), "'caches'[0]: 'a cache': expected an object, found 1");
  EXPECT_EQ(of("[{}]"), "'caches'[0]: 'name': expected a cache's name, found null");
  EXPECT_EQ(of(R"([{"name": "L1", "kib": 32, "copy_gb_per_s": 1}])"),
            "'caches'[0]: 'read_gb_per_s': expected a number above 0, found 0");
  EXPECT_EQ(of(R"([{"name": "L1", "kib": 1e13, "copy_gb_per_s": 1, "read_gb_per_s": 1}])"),
            "'caches'[0]: 'kib': expected at most 1e+12, found 1e+13");
  EXPECT_EQ(of(R"([{"name": "L2", "kib": 512, "copy_gb_per_s": 1, "read_gb_per_s": 1},
                   {"name": "L1", "kib": 32, "copy_gb_per_s": 2, "read_gb_per_s": 2}])"),
            "'caches': expected the smallest first, found L1 after L2");
}

TEST(DeviceFile, SaysWhetherItIsOfARealDevice) {
  EXPECT_TRUE(describes_real_device(with("")));
  EXPECT_FALSE(describes_real_device(R"({"kind": "simulated"})"));
  EXPECT_FALSE(describes_real_device(R"({"name": "npu"})"));
  EXPECT_FALSE(describes_real_device("["));
}

}  // namespace
}  // namespace tessera::backends
