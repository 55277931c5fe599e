#include "compiler/measure.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "backends/registry_run/registry_run.h"
#include "base/float_convert.h"
#include "base/layout.h"
#include "base/machine_facts.h"
#include "base/processors.h"
#include "compiler/sampling.h"

namespace tessera::compiler {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kMaxBusyUs = 100'000;
constexpr double kShortUs = 1000;  // a first run below this says little: the second one counts
// Of what is ready to run at once.
constexpr std::int64_t kMaxTogetherBytes = std::int64_t{512} << 20;
// What is read to push the operands out: of caches larger than this (or unknown) a part stays.
constexpr std::int64_t kMaxOtherBytes = std::int64_t{64} << 20;

double elapsed_us(Clock::time_point since) {
  return std::chrono::duration<double, std::micro>(Clock::now() - since).count();
}

// Memory of one operand, given back at the end.
class Operand {
 public:
  static Result<Operand> create(backends::RunDevice& device, const artefact::TensorDecl& decl,
                                const SymbolBindings& point) {
    Operand operand(device);
    TESSERA_ASSIGN(operand.dims_, evaluate(decl.shape, point));
    TESSERA_ASSIGN(operand.buffer_,
                   device.allocate(layout_nbytes(decl.layout, decl.dtype, operand.dims_)));
    return operand;
  }
  ~Operand() {
    if (device_ != nullptr) device_->release(buffer_);
  }
  Operand(Operand&& other) noexcept
      : device_(std::exchange(other.device_, nullptr)),
        dims_(std::move(other.dims_)),
        buffer_(other.buffer_) {}
  Operand& operator=(Operand&&) = delete;

  // Float elements in [-1, 1], integers zero (a valid index everywhere); padding stays zero.
  void fill(const artefact::TensorDecl& decl, std::uint32_t seed) {
    if (!is_float(decl.dtype)) return;
    auto values = Tensor::zeros(DType::kFp32, dims_);
    auto cast = Tensor::zeros(decl.dtype, dims_);
    if (!values || !cast) return;
    std::minstd_rand random(seed);
    auto* elements = static_cast<float*>(values->mutable_data());
    for (std::int64_t i = 0; i < values->numel(); ++i)
      elements[i] =
          2.0F * static_cast<float>(random()) / static_cast<float>(std::minstd_rand::max()) - 1.0F;
    cast_elements(values->view(), cast->mutable_view(), true);
    convert_layout(Layout::row_major(), cast->data(), decl.layout, buffer_.data, decl.dtype, dims_);
  }

  [[nodiscard]] const Dims& dims() const { return dims_; }
  [[nodiscard]] std::byte* data() const { return buffer_.data; }
  [[nodiscard]] std::int64_t size_bytes() const { return buffer_.size_bytes; }

 private:
  explicit Operand(backends::RunDevice& device) : device_(&device) {}
  backends::RunDevice* device_;
  Dims dims_;
  backends::DeviceBuffer buffer_;
};

// Twice the largest cache, shared among the threads.
std::int64_t other_bytes_per_thread(int threads) {
  const auto caches = data_caches(allowed_processors());
  const std::int64_t largest = caches.empty() ? kMaxOtherBytes : 2 * caches.back().size_bytes;
  return std::min(largest, kMaxOtherBytes) / threads;
}

}  // namespace

class Measurer::Timed {
 public:
  // The loaded kernel uses the constants where they lie: they must stay where they are.
  static Result<std::unique_ptr<Timed>> create(backends::RunDevice& device,
                                               backends::CompiledKernel kernel,
                                               const SymbolBindings& point, int threads,
                                               runtime::ThreadPool& pool) {
    std::unique_ptr<Timed> timed(new Timed(device, std::move(kernel), threads, pool));
    TESSERA_TRY(timed->make_ready(point));
    TESSERA_TRY(timed->warm_up());
    return timed;
  }
  ~Timed() { device_.release(scratch_); }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

  [[nodiscard]] const SamplePlan& plan() const { return plan_; }
  [[nodiscard]] std::int64_t size_bytes() const { return size_bytes_; }
  [[nodiscard]] bool is_done() const { return failed_ || busy_total_us_ > kMaxBusyUs; }

  void take_cold_sample() {
    double time_us = 0;
    if (run(1, time_us)) samples_.cold_us.push_back(time_us);
  }
  void take_warm_samples() {
    if (const auto mhz = processor_mhz(sched_getcpu())) samples_.clocks_mhz.push_back(*mhz);
    for (int taken = 0; taken < plan_.samples_per_round && !is_done();) {
      double time_us = 0;
      if (run(plan_.runs_per_sample, time_us)) {
        samples_.warm_us.push_back(time_us);
        ++taken;
      }
    }
  }
  Result<plan::CostEntry> entry() {
    if (failed_) return tl::unexpected(*failed_);
    plan::CostEntry entry = summarize_samples(std::move(samples_));
    entry.prepare_us = prepare_us_;
    return entry;
  }

 private:
  Timed(backends::RunDevice& device, backends::CompiledKernel kernel, int threads,
        runtime::ThreadPool& pool)
      : device_(device), kernel_(std::move(kernel)), threads_(threads), pool_(pool) {}

  Status make_ready(const SymbolBindings& point) {
    std::vector<std::span<const std::byte>> constants;
    for (const Tensor& constant : kernel_.constants) {
      constants.emplace_back(static_cast<const std::byte*>(constant.data()),
                             static_cast<std::size_t>(constant.nbytes()));
      size_bytes_ += constant.nbytes();
    }
    const auto load_begin = Clock::now();
    TESSERA_ASSIGN(loaded_, device_.load(kernel_.spec, constants));
    prepare_us_ = elapsed_us(load_begin);
    backends::InstanceDims dims;
    std::uint32_t seed = 1;
    for (const auto& decl : kernel_.spec.inputs) {
      TESSERA_ASSIGN(auto operand, Operand::create(device_, decl, point));
      operand.fill(decl, seed++);
      dims.inputs.push_back(operand.dims());
      inputs_.push_back(operand.data());
      size_bytes_ += operand.size_bytes();
      operands_.push_back(std::move(operand));
    }
    for (const auto& decl : kernel_.spec.outputs) {
      TESSERA_ASSIGN(auto operand, Operand::create(device_, decl, point));
      dims.outputs.push_back(operand.dims());
      outputs_.push_back(operand.data());
      size_bytes_ += operand.size_bytes();
      operands_.push_back(std::move(operand));
    }
    const auto instantiate_begin = Clock::now();
    TESSERA_ASSIGN(instance_, loaded_->instantiate(dims, threads_));
    prepare_us_ += elapsed_us(instantiate_begin);
    TESSERA_ASSIGN(scratch_, device_.allocate(instance_->scratch_bytes()));
    return {};
  }

  Status execute() { return instance_->execute({inputs_, outputs_, scratch_.data, &pool_}); }

  Status warm_up() {
    double time_us = 0;
    for (int runs = 0; runs == 0 || (runs == 1 && time_us < kShortUs); ++runs) {
      const auto begin = Clock::now();
      TESSERA_TRY(execute());
      time_us = elapsed_us(begin);
    }
    plan_ = plan_samples(time_us);
    return {};
  }

  // The time of one of `runs` runs; false where it does not count.
  bool run(int runs, double& time_us) {
    const auto begin = Clock::now();
    for (int i = 0; i < runs && !failed_; ++i)
      if (auto status = execute(); !status) failed_ = std::move(status).error();
    const double total_us = elapsed_us(begin);
    if (failed_) return false;
    time_us = total_us / runs;
    if (pool_.threads() == threads_) return true;
    if (samples_.busy_us.size() < kMaxBusySamples) samples_.busy_us.push_back(time_us);
    busy_total_us_ += total_us;
    return false;
  }

  static constexpr std::size_t kMaxBusySamples = 25;
  backends::RunDevice& device_;
  backends::CompiledKernel kernel_;
  int threads_;
  runtime::ThreadPool& pool_;
  std::vector<Operand> operands_;
  std::vector<const std::byte*> inputs_;
  std::vector<std::byte*> outputs_;
  std::unique_ptr<backends::LoadedKernel> loaded_;
  std::unique_ptr<backends::KernelInstance> instance_;
  backends::DeviceBuffer scratch_;
  std::int64_t size_bytes_ = 0;
  double prepare_us_ = 0;
  SamplePlan plan_;
  KernelSamples samples_;
  double busy_total_us_ = 0;
  std::optional<Error> failed_;
};

Measurer::Measurer(plan::Target& target, int threads, double budget_s, std::stop_token cancel,
                   std::function<void(double)> progress)
    : target_(target),
      threads_(threads),
      pool_(threads),
      budget_s_(budget_s),
      cancel_(std::move(cancel)),
      progress_(std::move(progress)),
      other_bytes_(static_cast<std::size_t>(threads),
                   std::vector<std::byte>(static_cast<std::size_t>(other_bytes_per_thread(threads)),
                                          std::byte{1})) {}

Measurer::~Measurer() = default;

Result<backends::RunDevice*> Measurer::run_device(std::uint32_t device) {
  auto& slot = devices_[device];
  if (slot == nullptr) {
    const auto& info = target_.info(device);
    TESSERA_ASSIGN(slot,
                   backends::make_run_device({info.name, info.backend, 0, info.profile, 0, 0}));
  }
  return slot.get();
}

Status Measurer::check_budget() const {
  const double spent_s = spent_s_ + elapsed_us(begin_) / 1e6;
  if (cancel_.stop_requested()) return fail(ErrorCode::kCancelled, "stopped while measuring");
  if (spent_s >= budget_s_)
    return fail(ErrorCode::kResourceExhausted,
                fmt::format("the measuring budget of {} s is used up", budget_s_));
  if (progress_) progress_(std::min(1.0, spent_s / budget_s_));
  return {};
}

Result<std::unique_ptr<Measurer::Timed>> Measurer::prepare(const plan::PriceRequest& request,
                                                           const SymbolBindings& point) {
  TESSERA_TRY(check_budget());
  auto& device = *target_.devices[request.device];
  TESSERA_ASSIGN(backends::RunDevice * run, run_device(request.device));
  TESSERA_ASSIGN(auto kernel, request.item != nullptr
                                  ? device.compile(*request.item, *request.candidate)
                                  : device.compile_conversion(request.from, request.to,
                                                              request.shape, *request.candidate));
  return Timed::create(*run, std::move(kernel), point, threads_, pool_);
}

// Threads read bytes of their own, so that private caches are emptied too, not only the shared one.
void Measurer::empty_caches() {
  pool_.run(threads_, [&](std::int64_t chunk) {
    auto& bytes = other_bytes_[static_cast<std::size_t>(chunk)];
    std::byte sum{};
    for (std::size_t i = 0; i < bytes.size(); i += 64) sum ^= bytes[i];
    bytes[0] = sum;
  });
}

void Measurer::time_in_turn(std::span<Timed* const> kernels) {
  int rounds = 0;
  for (const Timed* kernel : kernels) rounds = std::max(rounds, kernel->plan().rounds);
  for (int round = 0; round < rounds; ++round) {
    for (Timed* kernel : kernels) {
      if (round >= kernel->plan().rounds || kernel->is_done()) continue;
      if (round < kernel->plan().cold_rounds) {
        empty_caches();
        kernel->take_cold_sample();
      }
      kernel->take_warm_samples();
    }
  }
}

std::vector<Result<plan::CostEntry>> Measurer::measure(std::span<const plan::PriceRequest> requests,
                                                       const SymbolBindings& point) {
  begin_ = Clock::now();
  std::vector<Result<plan::CostEntry>> entries;
  for (std::size_t next = 0; next < requests.size();) {
    // As many as fit in memory together.
    std::vector<Result<std::unique_ptr<Timed>>> group;
    std::vector<Timed*> ready;
    for (std::int64_t bytes = 0; next < requests.size() && bytes < kMaxTogetherBytes; ++next) {
      group.push_back(prepare(requests[next], point));
      if (!group.back()) continue;
      ready.push_back(group.back()->get());
      bytes += ready.back()->size_bytes();
    }
    time_in_turn(ready);
    for (auto& kernel : group) {
      entries.push_back(kernel ? (*kernel)->entry() : tl::unexpected(kernel.error()));
      if (entries.back()) ++measured_;
    }
  }
  spent_s_ += elapsed_us(begin_) / 1e6;
  return entries;
}

}  // namespace tessera::compiler
