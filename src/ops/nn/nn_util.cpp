#include "ops/nn/nn_util.h"

#include <fmt/format.h>

namespace tessera::ops::nn {

tl::unexpected<Error> op_error(std::string_view op, std::string_view message) {
  return fail(ErrorCode::kInvalidArgument, fmt::format("{}: {}", op, message));
}

Work operand_traffic(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) {
  Work work;
  for (const TensorSpec& input : inputs) {
    if (input.present) work.bytes_read += static_cast<double>(nbytes(input.dtype, input.dims));
  }
  for (const TensorSpec& output : outputs) {
    if (output.present)
      work.bytes_written += static_cast<double>(nbytes(output.dtype, output.dims));
  }
  return work;
}

double output_elements(std::span<const TensorSpec> outputs) {
  return outputs.empty() ? 0 : static_cast<double>(numel(outputs[0].dims));
}

Status require_size(std::string_view op, std::string_view what, const Dim& expected,
                    std::string_view why, const Dim& found) {
  if (expected.is_constant() && found.is_constant() && !(expected == found)) {
    return op_error(op, fmt::format("{}: expected {} ({}), found {}", what, expected.to_string(),
                                    why, found.to_string()));
  }
  return {};
}

Status require_inputs(const UpgradeNode& node, std::size_t count) {
  if (node.inputs.size() >= count) return {};
  return op_error(node.op_type, fmt::format("expected at least {} input{}, found {}", count,
                                            count == 1 ? "" : "s", node.inputs.size()));
}

}  // namespace tessera::ops::nn
