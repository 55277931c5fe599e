#include <time.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "backends/cpu/compile/bandwidth_simd.h"
#include "backends/cpu/compile/cpu_device.h"
#include "backends/cpu/run/onednn_shim.h"
#include "backends/cpu/run/quant_simd.h"
#include "base/machine_facts.h"
#include "base/processors.h"
#include "base/statistics.h"

namespace tessera::backends {
namespace {

using Clock = std::chrono::steady_clock;

// Rounds over all probes, so that a slow moment meets each of them; more where others use a core.
constexpr std::size_t kRounds = 5;
constexpr std::size_t kMaxRounds = 15;
constexpr double kSampleS = 0.012;
// A sample counts where each thread had its core for this share of the time.
constexpr double kOwnShare = 0.97;
// A copy of this size is beyond the caches where /sys does not tell theirs.
constexpr std::size_t kMemoryBytes = std::size_t{32} << 20;
constexpr std::size_t kMaxMemoryBytes = std::size_t{256} << 20;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double own_cpu_s() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// What is measured: `body(t)` on each thread t does `work`, in units of 1e9.
struct Probe {
  std::string name;
  double work = 0;
  std::function<void(int)> body;
  std::vector<double> samples = {};
  std::vector<double> disturbed = {};
};

struct Sample {
  double rate = 0;  // work a second, all threads together
  bool disturbed = false;
};

Sample take_sample(const Probe& probe, int threads) {
  std::vector<Sample> parts(static_cast<std::size_t>(threads));
  std::barrier start(threads);
  const auto one = [&](int t) {
    probe.body(t);  // warm
    start.arrive_and_wait();
    const double own_before_s = own_cpu_s();
    const auto begin = Clock::now();
    int runs = 0;
    double spent_s = 0;
    do {
      probe.body(t);
      ++runs;
      spent_s = seconds_since(begin);
    } while (spent_s < kSampleS);
    const double own_s = own_cpu_s() - own_before_s;
    parts[static_cast<std::size_t>(t)] = {runs * probe.work / spent_s, own_s < kOwnShare * spent_s};
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(one, t);
  one(0);
  for (auto& thread : others) thread.join();
  Sample all;
  for (const Sample& part : parts) {
    all.rate += part.rate;
    all.disturbed = all.disturbed || part.disturbed;
  }
  return all;
}

void measure(std::vector<Probe>& probes, int threads) {
  const auto done = [](const Probe& probe) { return probe.samples.size() >= kRounds; };
  for (std::size_t round = 0; round < kMaxRounds && !std::ranges::all_of(probes, done); ++round) {
    for (Probe& probe : probes) {
      if (done(probe)) continue;
      const Sample sample = take_sample(probe, threads);
      (sample.disturbed ? probe.disturbed : probe.samples).push_back(sample.rate);
    }
  }
}

struct Product {
  std::unique_ptr<cpu::OnednnCall> call;
  std::vector<float> a, b, c;
  std::vector<std::byte> scratch;
  bool failed = false;
};

// An fp32 product that stays in the caches.
Result<Probe> product_probe(std::vector<Product>& products) {
  constexpr std::int64_t kSize = 256;
  const cpu::MemoryFormat square{{kSize, kSize}, {}, false};
  cpu::ProductProblem problem;
  problem.src = problem.weights = problem.dst = square;
  TESSERA_ASSIGN(const auto primitive, cpu::OnednnPrimitive::describe(problem));
  TESSERA_TRY(primitive->create());
  for (Product& product : products) {
    const auto count = static_cast<std::size_t>(kSize * kSize);
    product.a.assign(count, 0.5F);
    product.b.assign(count, 0.25F);
    product.c.assign(count, 0.0F);
    product.scratch.resize(static_cast<std::size_t>(primitive->scratch_bytes()) + 64);
    TESSERA_ASSIGN(product.call, cpu::OnednnCall::make(primitive));
    product.call->set(cpu::kSrc, product.a.data());
    product.call->set(cpu::kWeights, product.b.data());
    product.call->set(cpu::kDst, product.c.data());
    product.call->set(cpu::kScratch, product.scratch.data());
  }
  return Probe{"fp32", 2.0 * kSize * kSize * kSize / 1e9, [&products](int t) {
                 Product& product = products[static_cast<std::size_t>(t)];
                 if (!product.call->run()) product.failed = true;
               }};
}

// Sums of 8-bit products, as quantised convolutions and products compute them.
Probe byte_product_probe(int threads) {
  constexpr std::size_t kRows = 96;
  constexpr std::size_t kDepth = 256;
  constexpr std::size_t kPanels = 16;
  constexpr auto kColumns = static_cast<std::size_t>(cpu::kPanelColumns);
  std::vector<std::vector<std::int32_t>> sums(static_cast<std::size_t>(threads),
                                              std::vector<std::int32_t>(kRows * kColumns));
  return {
      "int8", 2.0 * kRows * kDepth * kPanels * kColumns / 1e9,
      [sums, a = std::vector<std::int16_t>(kRows * kDepth, 3),
       weights = std::vector<std::byte>(kPanels * kDepth * kColumns, std::byte{5})](int t) mutable {
        for (std::size_t p = 0; p < kPanels; ++p) {
          cpu::panel_product(a.data(), kDepth, kRows, weights.data() + p * kDepth * kColumns, false,
                             kDepth / 2, sums[static_cast<std::size_t>(t)].data());
        }
      }};
}

// Each thread copies, and reads, memory of its own: of `size_bytes` altogether. Small blocks are
// gone through several times, so that looking at the clock costs nothing.
void add_bandwidth(std::vector<Probe>& probes, const std::string& name, std::size_t size_bytes,
                   int threads) {
  const std::size_t own_bytes = size_bytes / static_cast<std::size_t>(threads) / 2 / 64 * 64;
  const std::size_t count = own_bytes / sizeof(float);
  const std::size_t times = std::max<std::size_t>(1, (std::size_t{1} << 20) / own_bytes);
  const double work = static_cast<double>(2 * own_bytes * times) / 1e9;
  auto memory = std::make_shared<std::vector<std::vector<float>>>(
      static_cast<std::size_t>(threads), std::vector<float>(2 * count, 1.0F));
  probes.push_back({name + " copy", work, [=](int t) {
                      float* data = (*memory)[static_cast<std::size_t>(t)].data();
                      for (std::size_t i = 0; i < times; ++i)
                        std::memcpy(data + count, data, count * sizeof(float));
                    }});
  probes.push_back({name + " read", work, [=](int t) {
                      const float* data = (*memory)[static_cast<std::size_t>(t)].data();
                      for (std::size_t i = 0; i < times; ++i) cpu::read_all(data, 2 * count);
                    }});
}

}  // namespace

Result<MeasuredRates> measure_rates(int threads) {
  if (threads < 1)
    return fail(ErrorCode::kInvalidArgument,
                "threads: expected 1 or more, found " + std::to_string(threads));
  std::vector<Product> products(static_cast<std::size_t>(threads));
  std::vector<Probe> probes;
  TESSERA_ASSIGN(Probe product, product_probe(products));
  probes.push_back(std::move(product));
  probes.push_back(byte_product_probe(threads));
  auto processors = allowed_processors();
  processors.resize(std::min(processors.size(), static_cast<std::size_t>(threads)));
  const auto caches = data_caches(processors);
  for (const CacheLevel& cache : caches)
    add_bandwidth(probes, cache.name, static_cast<std::size_t>(cache.size_bytes) / 2, threads);
  const std::size_t largest =
      caches.empty() ? 0 : static_cast<std::size_t>(caches.back().size_bytes);
  add_bandwidth(probes, "memory", std::clamp(4 * largest, kMemoryBytes, kMaxMemoryBytes), threads);

  measure(probes, threads);
  for (const Product& one : products)
    if (one.failed)
      return fail(ErrorCode::kInternal, "oneDNN: a product failed while rates were measured");
  MeasuredRates result;
  std::map<std::string, double> medians;
  for (Probe& probe : probes) {
    const bool busy = probe.samples.size() < 3;
    if (busy)
      probe.samples.insert(probe.samples.end(), probe.disturbed.begin(), probe.disturbed.end());
    const auto summary = summarize(probe.samples);
    // Others only make it slower: of disturbed samples the best is the nearest to the truth.
    medians[probe.name] = busy ? std::ranges::max(probe.samples) : summary.median;
    result.spreads[probe.name] = summary.spread / summary.median;
    result.busy = result.busy || busy;
  }
  DeviceRates& rates = result.rates;
  rates.default_gflops = rates.gflops[DType::kFp32] = medians["fp32"];
  rates.gflops[DType::kInt8] = medians["int8"];
  for (const CacheLevel& cache : caches)
    rates.caches.push_back({cache.name, cache.size_bytes, medians[cache.name + " copy"],
                            medians[cache.name + " read"]});
  rates.memory_gb_per_s = medians["memory copy"];
  rates.read_gb_per_s = medians["memory read"];
  rates.launch_us = rates.sync_us = rates.link_latency_us = 0;
  rates.unified = true;
  return result;
}

}  // namespace tessera::backends
