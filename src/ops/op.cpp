#include "ops/op.h"

namespace tessera::ops {

std::string OpSchema::qualified_name() const {
  return domain.empty() ? std::string(name) : std::string(domain) + "::" + std::string(name);
}

void KernelContext::parallel_for(std::int64_t count, std::int64_t /*grain*/,
                                 const std::function<void(std::int64_t, std::int64_t)>& body) {
  if (count > 0) body(0, count);
}

Work work_of(const OpSchema& op, const Attributes& attributes, std::span<const TensorSpec> inputs,
             std::span<const TensorSpec> outputs) {
  if (op.work != nullptr) return op.work(attributes, inputs, outputs);
  const auto bytes = [](std::span<const TensorSpec> specs) {
    double sum = 0;
    for (const TensorSpec& spec : specs)
      sum += spec.present ? static_cast<double>(nbytes(spec.dtype, spec.dims)) : 0;
    return sum;
  };
  Work work;
  work.bytes_read = bytes(inputs);
  work.bytes_written = bytes(outputs);
  for (const TensorSpec& spec : outputs)
    work.flops += spec.present ? static_cast<double>(numel(spec.dims)) : 0;
  return work;
}

}  // namespace tessera::ops
