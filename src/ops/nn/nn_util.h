#pragma once

// What the neural-network operators share beside the helpers of ops/.

#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "ops/op.h"

namespace tessera::ops::nn {

// "Conv: group: expected a divisor of the 10 output channels, found 3".
tl::unexpected<Error> op_error(std::string_view op, std::string_view message);

// Bytes of all operands that are present, flops left at 0.
Work operand_traffic(std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs);

// Elements of one output (the first), as a double.
double output_elements(std::span<const TensorSpec> outputs);

// An error where two sizes are numbers and differ: "Conv: B: expected 4 elements (one for each
// output channel), found 3". `what` is "B", `why` is "one for each output channel".
Status require_size(std::string_view op, std::string_view what, const Dim& expected,
                    std::string_view why, const Dim& found);

// An upgrade's node must have that many inputs before the schema has been checked: "Softmax:
// expected at least 1 input, found 0".
Status require_inputs(const UpgradeNode& node, std::size_t count);

// Work of operators that do `flops` operations on each element of their first input.
template <int flops>
Work work_per_input_element(const Attributes&, std::span<const TensorSpec> inputs,
                            std::span<const TensorSpec> outputs) {
  Work work = operand_traffic(inputs, outputs);
  work.flops = inputs.empty() ? 0 : flops * static_cast<double>(numel(inputs[0].dims));
  return work;
}

}  // namespace tessera::ops::nn
