#include "compiler/timed_kernel.h"

#include <sched.h>

#include <chrono>
#include <cstring>
#include <random>
#include <utility>

#include "base/float_convert.h"
#include "base/layout.h"
#include "base/machine_facts.h"

namespace tessera::compiler {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kMaxBusyUs = 100'000;
constexpr std::size_t kMaxBusySamples = 25;
constexpr double kShortUs = 1000;  // a first run below this says little: the second one counts

double elapsed_us(Clock::time_point since) {
  return std::chrono::duration<double, std::micro>(Clock::now() - since).count();
}

// Float elements in [-1, 1], integers zero (a valid index everywhere); padding stays zero.
void fill(std::byte* data, const artefact::TensorDecl& decl, const Dims& dims, std::uint32_t seed) {
  if (!is_float(decl.dtype)) return;
  auto values = Tensor::zeros(DType::kFp32, dims);
  auto cast = Tensor::zeros(decl.dtype, dims);
  if (!values || !cast) return;
  std::minstd_rand random(seed);
  auto* elements = static_cast<float*>(values->mutable_data());
  for (std::int64_t i = 0; i < values->numel(); ++i)
    elements[i] =
        2.0F * static_cast<float>(random()) / static_cast<float>(std::minstd_rand::max()) - 1.0F;
  cast_elements(values->view(), cast->mutable_view(), true);
  convert_layout(Layout::row_major(), cast->data(), decl.layout, data, decl.dtype, dims);
}

}  // namespace

Result<std::unique_ptr<TimedKernel>> TimedKernel::create(
    backends::RunDevice& device, const backends::LoadedKernel& kernel,
    const artefact::KernelSpec& spec, std::vector<std::span<const std::byte>> constants,
    const SymbolBindings& point, Surroundings& surroundings) {
  std::unique_ptr<TimedKernel> timed(new TimedKernel(device, std::move(constants), surroundings));
  TESSERA_TRY(timed->make_ready(kernel, spec, point));
  TESSERA_TRY(timed->warm_up());
  return timed;
}

TimedKernel::~TimedKernel() {
  device_.release(scratch_);
  for (const auto& operand : operands_) device_.release(operand);
}

std::int64_t TimedKernel::operand_bytes() const {
  std::int64_t sum = 0;
  for (const auto& operand : operands_) sum += operand.size_bytes;
  return sum;
}

bool TimedKernel::is_done() const {
  return failed_ || busy_total_us_ > kMaxBusyUs;
}

Result<std::byte*> TimedKernel::allocate(const artefact::TensorDecl& decl, const Dims& dims) {
  TESSERA_ASSIGN(const auto buffer, device_.allocate(layout_nbytes(decl.layout, decl.dtype, dims)));
  operands_.push_back(buffer);
  return buffer.data;
}

// A view lies on its operand, as the plan of memory puts it: nothing is moved.
Status TimedKernel::make_ready(const backends::LoadedKernel& kernel,
                               const artefact::KernelSpec& spec, const SymbolBindings& point) {
  backends::InstanceDims dims;
  std::uint32_t seed = 1;
  for (const auto& decl : spec.inputs) {
    TESSERA_ASSIGN(dims.inputs.emplace_back(), evaluate(decl.shape, point));
    TESSERA_ASSIGN(std::byte * data, allocate(decl, dims.inputs.back()));
    fill(data, decl, dims.inputs.back(), seed++);
    inputs_.push_back(data);
  }
  for (const auto& decl : spec.outputs) {
    TESSERA_ASSIGN(dims.outputs.emplace_back(), evaluate(decl.shape, point));
    TESSERA_ASSIGN(std::byte * data, allocate(decl, dims.outputs.back()));
    outputs_.push_back(data);
  }
  const auto view = spec.options.find("view");
  if (view != spec.options.end() && view->second != 0 && !inputs_.empty() && outputs_.size() == 1 &&
      operands_.front().size_bytes == operands_.back().size_bytes) {
    outputs_.back() = operands_.front().data;
    device_.release(operands_.back());
    operands_.pop_back();
  }
  const auto begin = Clock::now();
  TESSERA_ASSIGN(instance_, kernel.instantiate(dims, surroundings_.threads()));
  prepare_us_ = elapsed_us(begin);
  TESSERA_ASSIGN(scratch_, device_.allocate(instance_->scratch_bytes()));
  return {};
}

Status TimedKernel::warm_up() {
  double time_us = 0;
  for (int runs = 0; runs == 0 || (runs == 1 && time_us < kShortUs); ++runs) {
    const auto begin = Clock::now();
    TESSERA_TRY(execute());
    time_us = elapsed_us(begin);
  }
  plan_ = plan_samples(time_us, surroundings_.caches());
  return {};
}

Status TimedKernel::execute() {
  return instance_->execute({inputs_, outputs_, scratch_.data, &surroundings_.pool()});
}

double TimedKernel::timed_run() {
  const auto begin = Clock::now();
  if (auto status = execute(); !status) failed_ = std::move(status).error();
  return elapsed_us(begin);
}

// Adds the mean of `runs` runs to the samples; false where it does not count among them.
bool TimedKernel::keep(double total_us, int runs, std::vector<double>& samples) {
  if (failed_) return false;
  if (!surroundings_.is_busy()) {
    samples.push_back(total_us / runs);
    return true;
  }
  if (samples_.busy_us.size() < kMaxBusySamples) samples_.busy_us.push_back(total_us / runs);
  busy_total_us_ += total_us;
  return false;
}

void TimedKernel::take_cold_sample() {
  surroundings_.empty_caches();
  keep(timed_run(), 1, samples_.cold_us);
}

void TimedKernel::take_samples() {
  if (const auto mhz = processor_mhz(sched_getcpu())) samples_.clocks_mhz.push_back(*mhz);
  for (int taken = 0; taken < plan_.samples_per_round && !is_done();) {
    double total_us = 0;
    for (int i = 0; i < plan_.runs_per_sample && !failed_; ++i) {
      surroundings_.hand_over(operands_, constants_);
      total_us += timed_run();
    }
    if (keep(total_us, plan_.runs_per_sample, samples_.time_us)) ++taken;
  }
}

Result<plan::CostEntry> TimedKernel::entry() {
  if (failed_) return tl::unexpected(*failed_);
  plan::CostEntry entry = summarize_samples(std::exchange(samples_, {}));
  entry.prepare_us = prepare_us_;
  return entry;
}

}  // namespace tessera::compiler
