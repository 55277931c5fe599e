#pragma once

// A kernel spec on its way: operands and steps of a work item with every tensor row-major, before a
// candidate gives layouts.

#include <span>
#include <vector>

#include "backends/compile_interface.h"
#include "backends/run_interface.h"

namespace tessera::backends::cpu {

struct SpecDraft {
  artefact::KernelSpec spec;
  std::vector<Tensor> constants;          // beside spec.constants
  std::vector<std::int32_t> item_inputs;  // operand number of each WorkItem::inputs
  bool is_late = false;  // only the run knows the sizes, and ranks too: those stand as scalars

  // Bytes of the constants, as kernels take them. Valid until the constants change.
  [[nodiscard]] std::vector<std::span<const std::byte>> constant_bytes() const;
};

// Constants of the item become constants of the kernel, whatever their size. Errors (they are
// refusals): values that are no tensors, or whose rank is unknown where the item is not late; nodes
// with bodies.
Result<SpecDraft> draft_spec(const ir::WorkItem& item);

// Sizes at a point, in the order of the spec.
Result<InstanceDims> dims_at(const artefact::KernelSpec& spec, const SymbolBindings& point);

// The same for a late item, as they are assumed; none where one is not.
InstanceDims late_dims(const ir::WorkItem& item, const SymbolBindings& point);

// Puts constant `index` into a layout, under other dims of as many elements where `dims` is given.
void relayout_constant(SpecDraft& draft, std::size_t index, const Layout& layout,
                       const std::optional<Dims>& dims = std::nullopt);

// Constants that only elementwise steps [first_step, end) read get the rank of output 0 and its
// layout where they are not broadcast along a blocked channel.
void align_elementwise_constants(SpecDraft& draft, std::size_t first_step);

// The steps from `first_step` on as an elementwise program behind an anchor's own code. Errors:
// steps that are none, or do not fit the dims.
Status check_tail(const SpecDraft& draft, const InstanceDims& dims, std::size_t first_step);

// Sets layouts of inputs and outputs from a candidate's forms.
void apply_forms(SpecDraft& draft, const Candidate& candidate);

}  // namespace tessera::backends::cpu
