#include "backends/reference/compile/reference_device.h"

#include "backends/compile_common/spec_builder.h"

namespace tessera::backends::reference {
namespace {

constexpr std::uint32_t kKernelVersion = 1;

class ReferenceDevice final : public CompileDevice {
 public:
  ReferenceDevice() {
    info_.name = "reference";
    info_.backend = "reference";
    info_.memory = "host";
    info_.last_resort = true;
    // Plain loops: far below any kernel written for speed, so that the last resort is also the last
    // choice.
    info_.rates = {.gflops = {},
                   .default_gflops = 1,
                   .memory_gb_per_s = 1,
                   .launch_us = 0,
                   .sync_us = 0,
                   .unified = true};
  }

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] std::map<std::string, std::string> identity() const override { return {}; }

  Offers offers(const ir::WorkItem& item, const SymbolBindings& point,
                const OfferOptions& /*options*/) override {
    if (item.cover != nullptr && item.cover->assembled.empty())
      return {{}, "the reference runs one node at a time"};
    const ir::Node& node = *item.nodes.front();
    if (node.op->kernel == nullptr)
      return {{}, node.op->qualified_name() + ": no backend runs control flow"};
    Candidate candidate;
    candidate.kernel = "reference";
    candidate.kernel_version = kKernelVersion;
    if (item.is_late) candidate.options["late"] = 1;
    // Without known ranks there is nothing to count.
    const auto work = work_at(item, point);
    if (!work && !item.is_late) return {{}, work.error().to_string()};
    if (work) {
      candidate.flops = work->flops;
      candidate.bytes_moved = work->bytes_read + work->bytes_written;
    }
    for (const ir::ValueId id : item.inputs)
      candidate.inputs.push_back(TensorForm{Layout::row_major(), item.graph->value(id).type.dtype});
    for (const ir::ValueId id : item.outputs)
      candidate.outputs.push_back({Layout::row_major(), item.graph->value(id).type.dtype});
    candidate.compute_dtype = item.graph->value(item.outputs.front()).type.dtype;
    return {{std::move(candidate)}, {}};
  }

  Result<CompiledKernel> compile(const ir::WorkItem& item, const Candidate& candidate) override {
    return build_spec(item, candidate, info_);
  }

  Offers conversion(const TensorForm& /*from*/, const TensorForm& /*to*/, const Shape& /*shape*/,
                    const SymbolBindings& /*point*/) override {
    return {{}, "the reference converts nothing"};
  }
  Result<CompiledKernel> compile_conversion(const TensorForm& /*from*/, const TensorForm& /*to*/,
                                            const Shape& /*shape*/,
                                            const Candidate& /*candidate*/) override {
    return fail(ErrorCode::kUnimplemented, "the reference converts nothing");
  }

 private:
  DeviceInfo info_;
};

}  // namespace

std::unique_ptr<CompileDevice> make_reference_device() {
  return std::make_unique<ReferenceDevice>();
}

}  // namespace tessera::backends::reference
