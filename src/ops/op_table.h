#pragma once

// The op table: every operator that is known, found by domain and name.

#include <span>
#include <string_view>

#include "ops/op.h"

namespace tessera::ops {

inline constexpr int kNewestOpset = 28;  // of ai.onnx; nodes in the IR have this meaning
inline constexpr int kNewestIrVersion = 14;

// The schema, or null. "ai.onnx" and "" are one domain.
const OpSchema* find_op(std::string_view domain, std::string_view name);

// All schemas, sorted by domain and name.
std::span<const OpSchema> all_ops();

// Runs the reference kernel on owned tensors: the oracle in tests, and constant folding. `inputs`
// may hold undefined tensors for omitted ones. Errors carry no node name; the caller adds it.
Result<std::vector<Tensor>> run_reference(const OpSchema& op, const Attributes& attributes,
                                          std::span<const Tensor> inputs, std::size_t output_count);

// The same on values of any kind; null for omitted inputs.
Result<std::vector<RunValue>> run_reference(const OpSchema& op, const Attributes& attributes,
                                            std::span<const RunValue* const> inputs,
                                            std::size_t output_count);

// Dims (and dtypes) of the outputs for concrete inputs: inference at one point. Shape inputs need
// their elements. An error for operators whose output sizes depend on data.
Result<std::vector<TensorSpec>> run_shape(const OpSchema& op, const Attributes& attributes,
                                          std::span<const TensorView* const> inputs,
                                          std::size_t output_count);

}  // namespace tessera::ops
