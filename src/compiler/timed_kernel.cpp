#include "compiler/timed_kernel.h"

#include <sched.h>

#include <chrono>
#include <utility>

#include "base/layout.h"
#include "base/machine_facts.h"
#include "compiler/drawn.h"

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
  const auto drawn = drawn_tensor(decl.dtype, dims, seed);
  if (!drawn) return;
  convert_layout(Layout::row_major(), drawn->data(), decl.layout, data, decl.dtype, dims);
}

bool is_set(const artefact::KernelSpec& spec, const std::string& option) {
  const auto found = spec.options.find(option);
  return found != spec.options.end() && found->second != 0;
}

}  // namespace

Result<TimedCall> call_at(const artefact::KernelSpec& spec, const SymbolBindings& point) {
  TimedCall call;
  for (const auto& decl : spec.inputs) {
    TESSERA_ASSIGN(call.dims.inputs.emplace_back(), evaluate(decl.shape, point));
  }
  for (const auto& decl : spec.outputs) {
    TESSERA_ASSIGN(call.dims.outputs.emplace_back(), evaluate(decl.shape, point));
  }
  return call;
}

Result<std::unique_ptr<TimedKernel>> TimedKernel::create(
    backends::RunDevice& device, const backends::LoadedKernel& kernel,
    const artefact::KernelSpec& spec, std::vector<std::span<const std::byte>> constants,
    TimedCall call, Surroundings& surroundings) {
  std::unique_ptr<TimedKernel> timed(
      new TimedKernel(device, kernel, std::move(constants), std::move(call), surroundings));
  timed->is_late_ = is_set(spec, "late");
  if (timed->is_late_)
    timed->make_late();
  else
    TESSERA_TRY(timed->make_ready(spec));
  TESSERA_TRY(timed->warm_up());
  return timed;
}

TimedKernel::~TimedKernel() {
  device_.release(scratch_);
  for (const auto& operand : owned_) device_.release(operand);
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
  owned_.push_back(buffer);
  return buffer.data;
}

// A view lies on its operand, as the plan of memory puts it: nothing is moved.
Status TimedKernel::make_ready(const artefact::KernelSpec& spec) {
  std::uint32_t seed = 1;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    TESSERA_ASSIGN(std::byte * data, allocate(spec.inputs[i], call_.dims.inputs[i]));
    fill(data, spec.inputs[i], call_.dims.inputs[i], seed++);
    inputs_.push_back(data);
  }
  for (std::size_t i = 0; i < spec.outputs.size(); ++i) {
    const auto& decl = spec.outputs[i];
    const bool is_made = call_.is_loose && decl.layout.is_row_major();
    made_dtypes_.push_back(is_made ? std::optional(decl.dtype) : std::nullopt);
    outputs_.push_back(nullptr);
    if (is_made) continue;
    TESSERA_ASSIGN(outputs_.back(), allocate(decl, call_.dims.outputs[i]));
  }
  if (is_set(spec, "view") && !call_.is_loose && !inputs_.empty() && outputs_.size() == 1 &&
      operands_.front().size_bytes == operands_.back().size_bytes) {
    outputs_.back() = operands_.front().data;
    device_.release(operands_.back());
    operands_.pop_back();
    owned_.pop_back();
  }
  const auto begin = Clock::now();
  std::int64_t scratch_bytes = 0;
  if (call_.is_loose) {
    TESSERA_ASSIGN(const auto* instance, kept_.find(kernel_, call_.dims, surroundings_.threads()));
    scratch_bytes = instance->scratch_bytes();
    made_.resize(outputs_.size());
  } else {
    TESSERA_ASSIGN(instance_, kernel_.instantiate(call_.dims, surroundings_.threads()));
    scratch_bytes = instance_->scratch_bytes();
  }
  prepare_us_ = elapsed_us(begin);
  TESSERA_ASSIGN(scratch_, device_.allocate(scratch_bytes));
  return {};
}

// Its operands are memory of their own, so they may be written as they are.
void TimedKernel::make_late() {
  for (const RunValue& value : call_.operands)
    if (value.is_tensor() && value.tensor.is_defined() && value.tensor.dtype() != DType::kString)
      operands_.push_back(
          {static_cast<std::byte*>(const_cast<void*>(value.tensor.data())), value.tensor.nbytes()});
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
  if (is_late_) return execute_late();
  if (call_.is_loose) return execute_loose();
  return instance_->execute({inputs_, outputs_, scratch_.data, &surroundings_.pool()});
}

// As runtime/frame_late.cpp does it. Results live until the next call replaces them.
Status TimedKernel::execute_loose() {
  backends::InstanceDims dims;
  for (const Dims& sizes : call_.dims.inputs) dims.inputs.push_back(sizes);
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    dims.outputs.push_back(call_.dims.outputs[i]);
    if (!made_dtypes_[i]) continue;
    TESSERA_ASSIGN(Tensor made, Tensor::zeros(*made_dtypes_[i], dims.outputs.back()));
    outputs_[i] = static_cast<std::byte*>(made.mutable_data());
    made_[i] = RunValue::of(std::move(made));
  }
  TESSERA_ASSIGN(auto* instance, kept_.find(kernel_, std::move(dims), surroundings_.threads()));
  return instance->execute({inputs_, outputs_, scratch_.data, &surroundings_.pool()});
}

Status TimedKernel::execute_late() {
  const std::vector<RunValue> operands = call_.operands;
  std::vector<const RunValue*> pointers;
  for (const RunValue& operand : operands) pointers.push_back(&operand);
  TESSERA_ASSIGN(made_, kernel_.run_late(pointers, &surroundings_.pool()));
  return {};
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
