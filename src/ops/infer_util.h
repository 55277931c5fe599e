#pragma once

// What inference functions share: checked access to inputs, axes, broadcasting, elements that are
// known. Errors name the input or attribute and say what was expected and what was found; the
// caller adds the node.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ops/op.h"

namespace tessera::ops {

// ---- Inputs
// -------------------------------------------------------------------------------------------------

bool has_input(const InferContext& context, std::size_t index);
// The formal name; a variadic one with its number: "inputs[2]".
std::string input_name(const OpSchema& op, std::size_t index);
// A failure about one input: "input 'W': expected rank 4, found rank 2".
tl::unexpected<Error> input_error(const InferContext& context, std::size_t index,
                                  std::string message);
// A failure about one attribute: "attribute 'strides': expected 2 values, found 3".
tl::unexpected<Error> attribute_error(std::string_view name, std::string message);

// The input, which must be present and a tensor.
Result<const InferInput*> tensor_input(const InferContext& context, std::size_t index);
// Each checks one tensor input (missing ones are errors); ranks only where they are known.
Status require_dtype(const InferContext& context, std::size_t index, DTypeSet allowed);
Status require_same_dtype(const InferContext& context, std::size_t index, std::size_t as);
Status require_rank(const InferContext& context, std::size_t index, std::int64_t rank);
Status require_rank_at_least(const InferContext& context, std::size_t index, std::int64_t rank);

// ---- Sizes and axes
// -------------------------------------------------------------------------------------------------

// `axis` counted from the front; `what` is named by the error: "axis: expected a value from -4 to
// 3, found 7".
Result<std::int64_t> normalize_axis(std::int64_t axis, std::int64_t rank,
                                    std::string_view what = "axis");
// In the given order; an axis that stands twice is an error.
Result<std::vector<std::int64_t>> normalize_axes(const std::vector<std::int64_t>& axes,
                                                 std::int64_t rank, std::string_view what = "axes");

// Equal sizes that must agree: the constant one where only one is known; an error where both are
// constants and differ.
Result<Dim> merge_dim(const Dim& a, const Dim& b, std::string_view what);

// The shape that all those inputs broadcast to; nothing where the rank of one is unknown.
Result<std::optional<Shape>> broadcast_inputs(const InferContext& context, std::size_t first,
                                              std::size_t count);

// ---- Known elements
// -------------------------------------------------------------------------------------------------

// Elements of an int32, int64 or bool tensor of rank 0 or 1 where they are known, as a constant or
// through value propagation.
std::optional<DimTensor> known_value(const InferInput& input);
// The same where all of them are numbers.
std::optional<std::vector<std::int64_t>> known_ints(const InferInput& input);

// ---- Outputs
// -------------------------------------------------------------------------------------------------

// Sets output `index` where the node has it.
void set_output(InferContext& context, std::size_t index, DType dtype, std::optional<Shape> shape);
void set_value(InferContext& context, std::size_t index, std::optional<DimTensor> value);
// Output 0 has dtype and shape of input 0.
Status infer_same_as_first(InferContext& context);

}  // namespace tessera::ops
