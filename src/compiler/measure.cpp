#include "compiler/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "backends/registry_run/registry_run.h"
#include "base/float_convert.h"
#include "base/layout.h"

namespace tessera::compiler {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMinSamples = 5;
constexpr std::size_t kMaxSamples = 25;
constexpr double kMinTotalUs = 3000;
constexpr double kMaxBusyUs = 100'000;

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

 private:
  explicit Operand(backends::RunDevice& device) : device_(&device) {}
  backends::RunDevice* device_;
  Dims dims_;
  backends::DeviceBuffer buffer_;
};

plan::CostEntry summarize(std::vector<double> samples_us, bool busy) {
  std::ranges::sort(samples_us);
  const std::size_t count = samples_us.size();
  return {samples_us[count / 2], samples_us[count * 3 / 4] - samples_us[count / 4],
          static_cast<int>(count), busy};
}

}  // namespace

Measurer::Measurer(plan::Target& target, int threads, double budget_s, std::stop_token cancel,
                   std::function<void(double)> progress)
    : target_(target),
      threads_(threads),
      pool_(threads),
      budget_s_(budget_s),
      cancel_(std::move(cancel)),
      progress_(std::move(progress)),
      start_(Clock::now()) {}

Result<backends::RunDevice*> Measurer::run_device(std::uint32_t device) {
  auto& slot = devices_[device];
  if (slot == nullptr) {
    const auto& info = target_.info(device);
    TESSERA_ASSIGN(slot,
                   backends::make_run_device({info.name, info.backend, 0, info.profile, 0, 0}));
  }
  return slot.get();
}

Result<plan::CostEntry> Measurer::measure(const plan::PriceRequest& request,
                                          const SymbolBindings& point) {
  const double spent_s = elapsed_us(start_) / 1e6;
  if (cancel_.stop_requested()) return fail(ErrorCode::kCancelled, "stopped while measuring");
  if (spent_s > budget_s_)
    return fail(ErrorCode::kResourceExhausted,
                fmt::format("the measuring budget of {} s is used up", budget_s_));
  if (progress_) progress_(std::min(1.0, spent_s / budget_s_));
  auto& device = *target_.devices[request.device];
  TESSERA_ASSIGN(backends::RunDevice * run, run_device(request.device));
  TESSERA_ASSIGN(
      const auto kernel,
      request.item != nullptr
          ? device.compile(*request.item, *request.candidate)
          : device.compile_conversion(request.from, request.to, request.shape, *request.candidate));
  return time_kernel(*run, kernel, point);
}

Result<plan::CostEntry> Measurer::time_kernel(backends::RunDevice& device,
                                              const backends::CompiledKernel& kernel,
                                              const SymbolBindings& point) {
  std::vector<std::span<const std::byte>> constants;
  for (const Tensor& constant : kernel.constants)
    constants.emplace_back(static_cast<const std::byte*>(constant.data()),
                           static_cast<std::size_t>(constant.nbytes()));
  TESSERA_ASSIGN(const auto loaded, device.load(kernel.spec, constants));
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  backends::InstanceDims dims;
  std::uint32_t seed = 1;
  for (const auto& decl : kernel.spec.inputs) {
    TESSERA_ASSIGN(auto operand, Operand::create(device, decl, point));
    operand.fill(decl, seed++);
    dims.inputs.push_back(operand.dims());
    inputs.push_back(std::move(operand));
  }
  for (const auto& decl : kernel.spec.outputs) {
    TESSERA_ASSIGN(auto operand, Operand::create(device, decl, point));
    dims.outputs.push_back(operand.dims());
    outputs.push_back(std::move(operand));
  }
  TESSERA_ASSIGN(const auto instance, loaded->instantiate(dims, threads_));
  TESSERA_ASSIGN(const auto scratch, device.allocate(instance->scratch_bytes()));
  std::vector<const std::byte*> input_pointers;
  std::vector<std::byte*> output_pointers;
  for (const Operand& operand : inputs) input_pointers.push_back(operand.data());
  for (const Operand& operand : outputs) output_pointers.push_back(operand.data());
  const backends::ExecuteArgs args{input_pointers, output_pointers, scratch.data, &pool_};
  bool busy = false;
  auto samples_us = sample(*instance, args, busy);
  device.release(scratch);
  if (!samples_us) return tl::unexpected(std::move(samples_us).error());
  return summarize(*std::move(samples_us), busy);
}

Result<std::vector<double>> Measurer::sample(backends::KernelInstance& instance,
                                             const backends::ExecuteArgs& args, bool& busy) {
  TESSERA_TRY(instance.execute(args));
  std::vector<double> samples_us;
  std::vector<double> busy_us;
  double busy_total_us = 0;
  for (double total_us = 0; samples_us.size() < kMaxSamples &&
                            (samples_us.size() < kMinSamples || total_us < kMinTotalUs);) {
    const auto begin = Clock::now();
    TESSERA_TRY(instance.execute(args));
    const double time_us = elapsed_us(begin);
    if (pool_.threads() < threads_) {
      if (busy_us.size() < kMaxSamples) busy_us.push_back(time_us);
      busy_total_us += time_us;
      if (busy_total_us > kMaxBusyUs) break;
      continue;
    }
    samples_us.push_back(time_us);
    total_us += time_us;
    if (samples_us.size() >= 3 && total_us > 40 * kMinTotalUs)
      break;  // a slow kernel is known well enough
  }
  busy = samples_us.size() < 3;
  if (busy) samples_us.insert(samples_us.end(), busy_us.begin(), busy_us.end());
  return samples_us;
}

}  // namespace tessera::compiler
