#include "backends/cpu/compile/cpu_device.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "backends/cpu/compile/families.h"
#include "backends/cpu/compile/kernel_check.h"
#include "backends/cpu/run/cpu_run_device.h"
#include "base/float_convert.h"

namespace tessera::backends::cpu {
namespace {

TEST(CpuDevice, SaysWhatItIs) {
  const auto device = make_cpu_device();
  EXPECT_EQ(device->info().name, "cpu");
  EXPECT_EQ(device->info().memory, "host");
  const auto identity = device->identity();
  for (const char* name : {"cpu.isa", "cpu.model", "cpu.onednn", "cpu.highway"})
    EXPECT_FALSE(identity.at(name).empty()) << name;
}

TEST(CpuDevice, OffersAreEqualEachTime) {
  Bench bench;
  bench.output(bench.op(
      "Conv", {bench.input("x", {1, 16, 12, 12}), bench.random_constant("w", {32, 16, 3, 3})}));
  const Offers first = bench.offers({});
  const Offers second = bench.offers({});
  ASSERT_EQ(first.candidates.size(), second.candidates.size());
  for (std::size_t i = 0; i < first.candidates.size(); ++i) {
    EXPECT_EQ(first.candidates[i].options, second.candidates[i].options);
    EXPECT_EQ(first.candidates[i].inputs, second.candidates[i].inputs);
  }
  EXPECT_EQ(first.candidates[0].flops, 2.0 * 32 * 10 * 10 * 16 * 9);
}

TEST(CpuDevice, TakesMeasuredRates) {
  RatesFile file;
  file.identity = make_cpu_device()->identity();
  file.measured.rates.memory_gb_per_s = 12.5;
  const auto device = make_cpu_device(file);
  ASSERT_TRUE(device) << device.error().to_string();
  EXPECT_TRUE((*device)->info().rates_measured);
  EXPECT_FALSE((*device)->info().simulated);
  EXPECT_EQ((*device)->info().rates.memory_gb_per_s, 12.5);
  EXPECT_FALSE(make_cpu_device()->info().rates_measured);
}

TEST(CpuDevice, RefusesTheRatesOfAnotherProcessor) {
  RatesFile file;
  file.identity = make_cpu_device()->identity();
  file.identity["cpu.model"] = "Another One";
  const auto device = make_cpu_device(file);
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().to_string(),
            "'cpu.model': expected '" + make_cpu_device()->identity().at("cpu.model") +
                "', found 'Another One': rates must be measured on the machine that they are for");
  file.identity.clear();
  EXPECT_TRUE(make_cpu_device(file)) << "rates that name no processor";
}

TEST(CpuDevice, UnknownOperatorsAreRefusedByName) {
  Bench bench;
  bench.output(bench.op(
      "CumSum", {bench.input("x", {4, 5}),
                 bench.constant("axis", Tensor::of<std::int64_t>(DType::kInt64, {},
                                                                 std::vector<std::int64_t>{0}))}));
  EXPECT_EQ(bench.offers({}).refusal, "CumSum: expected an operator with a cpu kernel, found none");
}

TEST(CpuDevice, SizesThatOnlyTheRunDecidesAreRefused) {
  Bench bench;
  bench.output(bench.op("Relu", {bench.input("x", {4, 5})}));
  ir::WorkItem item = bench.item();
  const auto device = make_cpu_device();
  EXPECT_FALSE(device->offers(item, {}, {}).candidates.empty());
  item.is_late = true;
  EXPECT_TRUE(device->offers(item, {}, {}).candidates.empty());
  EXPECT_EQ(device->offers(item, {}, {}).refusal, "Relu: the sizes of its outputs depend on data");
}

TEST(CpuDevice, ConstantsAloneAreRefused) {
  for (const char* op : {"Identity", "Flatten", "Transpose", "Relu"}) {
    Bench bench;
    bench.output(bench.op(op, {bench.random_constant("x", {4, 5})}));
    EXPECT_EQ(bench.offers({}).refusal,
              std::string(op) + ": expected an input computed at run time, found constants alone");
  }
}

TEST(CpuDevice, LayoutsTravelInOptions) {
  for (const Layout& layout : {Layout{}, Layout{{0, 2, 3, 1}, {{0, 16}}}, Layout{{1, 0}, {}},
                               Layout{{0, 1, 2, 3}, {{1, 8}, {0, 8}}}}) {
    std::map<std::string, std::int64_t> options;
    put_layout(options, "weights", layout);
    EXPECT_EQ(get_layout(options, "weights"), layout);
  }
}

TEST(Conversion, BetweenEveryTwoForms) {
  const auto compiler = make_cpu_device();
  const auto runner = make_cpu_run_device();
  const Shape shape = {Dim::symbol("n"), 11, 40, 33};
  const Dims dims = {2, 11, 40, 33};
  std::vector<TensorForm> forms;
  for (const DType dtype : {DType::kFp32, DType::kFp16}) {
    for (const Layout& layout : {Layout{}, Layout::channels_last(4), Layout::channel_blocked(4, 8)})
      forms.push_back({layout, dtype});
  }
  for (const TensorForm& from : forms) {
    for (const TensorForm& to : forms) {
      SCOPED_TRACE(from.layout.to_string() + " to " + to.layout.to_string());
      const Offers offers = compiler->conversion(from, to, shape, {{"n", 1}});
      ASSERT_EQ(offers.candidates.size(), 1U) << offers.refusal;
      const auto compiled = compiler->compile_conversion(from, to, shape, offers.candidates[0]);
      ASSERT_TRUE(compiled);
      const auto kernel = runner->load(compiled->spec, {});
      ASSERT_TRUE(kernel);
      std::vector<float> values(static_cast<std::size_t>(numel(dims)));
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(i % 997);  // exact in fp16
      Tensor plain = Tensor::zeros(from.dtype, dims).value();
      cast_elements({DType::kFp32, dims, values.data()}, plain.mutable_view(), false);
      Tensor wanted = Tensor::zeros(to.dtype, dims).value();
      cast_elements({DType::kFp32, dims, values.data()}, wanted.mutable_view(), false);
      std::vector<std::byte> source(
          static_cast<std::size_t>(layout_nbytes(from.layout, from.dtype, dims)));
      std::vector<std::byte> expected(
          static_cast<std::size_t>(layout_nbytes(to.layout, to.dtype, dims)));
      std::vector<std::byte> found(expected.size(), std::byte{0x7f});
      convert_layout({}, plain.data(), from.layout, source.data(), from.dtype, dims);
      convert_layout({}, wanted.data(), to.layout, expected.data(), to.dtype, dims);
      for (const int threads : {1, 2}) {
        auto instance = (*kernel)->instantiate({{dims}, {dims}}, threads);
        ASSERT_TRUE(instance);
        std::vector<std::byte> scratch(static_cast<std::size_t>((*instance)->scratch_bytes()));
        TestParallel parallel(threads);
        const std::byte* in = source.data();
        std::byte* out = found.data();
        ASSERT_TRUE((*instance)->execute({{&in, 1}, {&out, 1}, scratch.data(), &parallel}));
        EXPECT_EQ(found, expected);
      }
    }
  }
}

TEST(Conversion, OtherCastsAreRefused) {
  const auto device = make_cpu_device();
  EXPECT_EQ(device->conversion({{}, DType::kFp32}, {{}, DType::kInt8}, {4}, {}).refusal,
            "conversion: expected fp32 to or from fp16 or bf16, found fp32 to int8");
}

TEST(MeasureRates, ArePositive) {
  const auto rates = measure_rates(1);
  ASSERT_TRUE(rates);
  EXPECT_GT(rates->rates.gflops.at(DType::kFp32), 0.1);
  EXPECT_GT(rates->rates.gflops.at(DType::kInt8), 0.01);
  EXPECT_GT(rates->rates.memory_gb_per_s, 0.05);
  EXPECT_GT(rates->rates.read_gb_per_s, 0.05);
  for (const auto& cache : rates->rates.caches) EXPECT_GT(cache.copy_gb_per_s, 0.05) << cache.name;
  EXPECT_EQ(rates->spreads.count("fp32"), 1U);
  EXPECT_EQ(measure_rates(0).error().to_string(), "threads: expected 1 or more, found 0");
}

}  // namespace
}  // namespace tessera::backends::cpu
