#include "compiler/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "backends/compile_common/spec_builder.h"
#include "backends/registry_run/registry_run.h"
#include "compiler/drawn.h"
#include "compiler/timed_kernel.h"

namespace tessera::compiler {
namespace {

using Clock = std::chrono::steady_clock;

// Of what is ready to run at once.
constexpr std::int64_t kMaxTogetherBytes = std::int64_t{512} << 20;

double elapsed_us(Clock::time_point since) {
  return std::chrono::duration<double, std::micro>(Clock::now() - since).count();
}

// In rounds, so that a slow moment meets all of them alike.
void time_in_turn(std::span<TimedKernel* const> kernels) {
  int rounds = 0;
  for (const TimedKernel* kernel : kernels) rounds = std::max(rounds, kernel->plan().rounds);
  for (int round = 0; round < rounds; ++round) {
    for (TimedKernel* kernel : kernels) {
      if (round >= kernel->plan().rounds || kernel->is_done()) continue;
      if (round < kernel->plan().cold_rounds) kernel->take_cold_sample();
      kernel->take_samples();
    }
  }
}

}  // namespace

// The loaded kernel uses the constants where they lie: they stay where they are.
struct Measurer::Candidate {
  backends::CompiledKernel compiled;
  std::unique_ptr<backends::LoadedKernel> loaded;
  std::unique_ptr<TimedKernel> timed;
  std::int64_t size_bytes = 0;
};

Measurer::Measurer(plan::Target& target, int threads, plan::CacheState caches, double budget_s,
                   std::stop_token cancel, std::function<void(double)> progress)
    : target_(target),
      surroundings_(threads, caches),
      budget_s_(budget_s),
      cancel_(std::move(cancel)),
      progress_(std::move(progress)) {}

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

Result<RunValue> Measurer::operand(const ir::WorkItem& item, ir::ValueId id,
                                   const SymbolBindings& point) const {
  const ir::Value& value = item.graph->value(id);
  if (value.kind == ir::ValueKind::kConstant)
    return RunValue::of(Tensor::copy_of(value.constant.view()));
  if (operands_ != nullptr)
    if (const auto known = operands_->find(id); known != operands_->end()) return known->second;
  TESSERA_ASSIGN(const Dims dims, backends::dims_at(item, id, point));
  TESSERA_ASSIGN(Tensor drawn, drawn_tensor(value.type.dtype, dims, 1));
  return RunValue::of(std::move(drawn));
}

Result<TimedCall> Measurer::call_of(const plan::PriceRequest& request,
                                    const artefact::KernelSpec& spec,
                                    const SymbolBindings& point) const {
  if (request.item == nullptr || !request.item->is_late) {
    TESSERA_ASSIGN(TimedCall call, call_at(spec, point));
    call.is_loose = request.item != nullptr && request.item->is_loose;
    return call;
  }
  TimedCall call;
  for (std::size_t i = 0; i < request.item->inputs.size(); ++i) {
    if (!request.candidate->inputs[i]) continue;
    TESSERA_ASSIGN(call.operands.emplace_back(),
                   operand(*request.item, request.item->inputs[i], point));
  }
  return call;
}

Result<std::unique_ptr<Measurer::Candidate>> Measurer::prepare(const plan::PriceRequest& request,
                                                               const SymbolBindings& point) {
  TESSERA_TRY(check_budget());
  auto& device = *target_.devices[request.device];
  TESSERA_ASSIGN(backends::RunDevice * run, run_device(request.device));
  auto candidate = std::make_unique<Candidate>();
  TESSERA_ASSIGN(
      candidate->compiled,
      request.item != nullptr
          ? device.compile(*request.item, *request.candidate)
          : device.compile_conversion(request.from, request.to, request.shape, *request.candidate));
  const auto& [spec, tensors] = candidate->compiled;
  std::vector<std::span<const std::byte>> constants;
  for (const Tensor& constant : tensors) {
    constants.emplace_back(static_cast<const std::byte*>(constant.data()),
                           static_cast<std::size_t>(constant.nbytes()));
    candidate->size_bytes += constant.nbytes();
  }
  TESSERA_ASSIGN(candidate->loaded, run->load(spec, constants));
  TESSERA_ASSIGN(TimedCall call, call_of(request, spec, point));
  TESSERA_ASSIGN(candidate->timed, TimedKernel::create(*run, *candidate->loaded, spec, constants,
                                                       std::move(call), surroundings_));
  candidate->size_bytes += candidate->timed->operand_bytes();
  return candidate;
}

std::vector<Result<plan::CostEntry>> Measurer::measure(std::span<const plan::PriceRequest> requests,
                                                       const SymbolBindings& point) {
  begin_ = Clock::now();
  std::vector<Result<plan::CostEntry>> entries;
  for (std::size_t next = 0; next < requests.size();) {
    // As many as fit in memory together.
    std::vector<Result<std::unique_ptr<Candidate>>> group;
    std::vector<TimedKernel*> ready;
    for (std::int64_t bytes = 0; next < requests.size() && bytes < kMaxTogetherBytes; ++next) {
      group.push_back(prepare(requests[next], point));
      if (!group.back()) continue;
      ready.push_back((*group.back())->timed.get());
      bytes += (*group.back())->size_bytes;
    }
    time_in_turn(ready);
    for (auto& candidate : group) {
      entries.push_back(candidate ? (*candidate)->timed->entry()
                                  : tl::unexpected(candidate.error()));
      if (entries.back()) ++measured_;
    }
  }
  spent_s_ += elapsed_us(begin_) / 1e6;
  return entries;
}

}  // namespace tessera::compiler
