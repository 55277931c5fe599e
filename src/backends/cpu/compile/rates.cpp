#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "backends/cpu/compile/cpu_device.h"
#include "backends/cpu/run/onednn_shim.h"
#include "backends/cpu/run/quant_simd.h"

namespace tessera::backends {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Runs `body` on each of `threads` threads over and over for about 0.12 s; gives how often a
// second, all together.
template <typename Body>
double runs_per_second(int threads, const Body& body) {
  constexpr double kSeconds = 0.12;
  std::vector<double> rates(static_cast<std::size_t>(threads));
  const auto one = [&](int t) {
    body(t);  // warm
    const auto start = Clock::now();
    int runs = 0;
    double spent = 0;
    do {
      body(t);
      ++runs;
      spent = seconds_since(start);
    } while (spent < kSeconds);
    rates[static_cast<std::size_t>(t)] = runs / spent;
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(one, t);
  one(0);
  double total = rates[0];
  for (auto& thread : others) thread.join();
  for (std::size_t t = 1; t < rates.size(); ++t) total += rates[t];
  return total;
}

struct Product {
  std::unique_ptr<cpu::OnednnCall> call;
  std::vector<float> a, b, c;
};

Result<double> product_gflops(int threads) {
  constexpr std::int64_t kSize = 256;
  const cpu::MemoryFormat square{{kSize, kSize}, {}, false};
  cpu::ProductProblem problem;
  problem.src = problem.weights = problem.dst = square;
  TESSERA_ASSIGN(const auto primitive, cpu::OnednnPrimitive::describe(problem));
  TESSERA_TRY(primitive->create());
  std::vector<Product> products(static_cast<std::size_t>(threads));
  const auto count = static_cast<std::size_t>(kSize * kSize);
  std::vector<std::vector<std::byte>> scratch(
      products.size(),
      std::vector<std::byte>(static_cast<std::size_t>(primitive->scratch_bytes()) + 64));
  for (std::size_t t = 0; t < products.size(); ++t) {
    Product& product = products[t];
    product.a.assign(count, 0.5F);
    product.b.assign(count, 0.25F);
    product.c.assign(count, 0.0F);
    TESSERA_ASSIGN(product.call, cpu::OnednnCall::make(primitive));
    product.call->set(cpu::kSrc, product.a.data());
    product.call->set(cpu::kWeights, product.b.data());
    product.call->set(cpu::kDst, product.c.data());
    product.call->set(cpu::kScratch, scratch[t].data());
  }
  std::vector<std::uint8_t> failed(products.size(), 0);
  const double runs = runs_per_second(threads, [&](int t) {
    if (!products[static_cast<std::size_t>(t)].call->run()) failed[static_cast<std::size_t>(t)] = 1;
  });
  for (const std::uint8_t one : failed) {
    if (one != 0)
      return fail(ErrorCode::kInternal, "oneDNN: a product failed while rates were measured");
  }
  return runs * 2.0 * kSize * kSize * kSize / 1e9;
}

// Sums of 8-bit products, as quantised convolutions and products compute them.
double byte_product_gops(int threads) {
  constexpr std::size_t kRows = 96;
  constexpr std::size_t kDepth = 256;
  constexpr std::size_t kPanels = 16;
  constexpr auto kColumns = static_cast<std::size_t>(cpu::kPanelColumns);
  const std::vector<std::int16_t> a(kRows * kDepth, 3);
  const std::vector<std::byte> weights(kPanels * kDepth * kColumns, std::byte{5});
  std::vector<std::vector<std::int32_t>> sums(static_cast<std::size_t>(threads),
                                              std::vector<std::int32_t>(kRows * kColumns));
  const double runs = runs_per_second(threads, [&](int t) {
    for (std::size_t p = 0; p < kPanels; ++p) {
      cpu::panel_product(a.data(), kDepth, kRows, weights.data() + p * kDepth * kColumns, false,
                         kDepth / 2, sums[static_cast<std::size_t>(t)].data());
    }
  });
  return runs * 2.0 * kRows * kDepth * kPanels * kColumns / 1e9;
}

double copy_gb_per_s(int threads) {
  constexpr std::size_t kBytes = std::size_t{32}
                                 << 20;  // larger than most caches, small enough to fill quickly
  std::vector<std::vector<char>> from(static_cast<std::size_t>(threads),
                                      std::vector<char>(kBytes, 1));
  std::vector<std::vector<char>> to(static_cast<std::size_t>(threads),
                                    std::vector<char>(kBytes, 0));
  const double runs = runs_per_second(threads, [&](int t) {
    std::memcpy(to[static_cast<std::size_t>(t)].data(), from[static_cast<std::size_t>(t)].data(),
                kBytes);
  });
  return runs * 2.0 * static_cast<double>(kBytes) / 1e9;
}

}  // namespace

Result<DeviceRates> measure_rates(int threads) {
  if (threads < 1)
    return fail(ErrorCode::kInvalidArgument,
                "threads: expected 1 or more, found " + std::to_string(threads));
  DeviceRates rates;
  TESSERA_ASSIGN(rates.default_gflops, product_gflops(threads));
  rates.gflops[DType::kFp32] = rates.default_gflops;
  rates.gflops[DType::kInt8] = byte_product_gops(threads);
  rates.memory_gb_per_s = copy_gb_per_s(threads);
  rates.launch_us = rates.sync_us = rates.link_latency_us = 0;
  rates.unified = true;
  return rates;
}

}  // namespace tessera::backends
