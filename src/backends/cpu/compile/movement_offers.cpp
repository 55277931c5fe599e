// Operators that move elements: views, Concat, Split, index tables, Gather, Resize.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "backends/cpu/compile/families.h"
#include "backends/cpu/run/cpu_features.h"
#include "backends/cpu/run/move_plan.h"
#include "backends/cpu/run/physical.h"
#include "backends/cpu/run/resize_plan.h"

namespace tessera::backends::cpu {
namespace {

Status finish_nothing(SpecDraft&, const Candidate&) {
  return {};
}

Candidate priced(Candidate candidate, const OfferRequest& request, double efficiency) {
  set_traffic(candidate, request.draft, request.dims);
  candidate.efficiency = efficiency;
  return candidate;
}

// ---- Views
// ------------------------------------------------------------------------------------------------

// [N, C, 1, ...] of whole blocks: all layouts of it are one order in memory.
bool is_channel_vector(const Shape& shape) {
  if (shape.size() < 3 || shape.size() > 5) return false;
  const auto channels = shape[1].constant();
  return channels && *channels % channel_block() == 0 &&
         std::all_of(shape.begin() + 2, shape.end(),
                     [](const Dim& d) { return d.constant() == 1; });
}

// Input 0 in one layout is the result in the other.
Candidate view_candidate(const OfferRequest& request, const Layout& from, const Layout& to) {
  Candidate candidate = make_candidate(
      request.draft, "cpu.view", [&](std::size_t i) { return i == 0 ? from : Layout{}; },
      [&](std::size_t) { return to; });
  candidate = priced(std::move(candidate), request, 0.8);
  candidate.flops = 0;
  candidate.options["view"] = 1;
  return candidate;
}

Offers offer_view(const OfferRequest& request) {
  const auto& spec = request.draft.spec;
  const auto& op = spec.steps[0].op_type;
  if (spec.outputs.size() != 1)
    return refuse(fmt::format("{}: expected one output in use, found {}", op, spec.outputs.size()));
  if (step_input(spec.steps[0], 0) != 0)
    return refuse(fmt::format("{}: expected an input computed at run time, found a constant", op));
  if (op == "Dropout" && step_input(spec.steps[0], 2) >= 0)
    return refuse("Dropout: input 'training_mode': expected none, found one");
  const bool same = op == "Identity" || op == "Dropout";
  const std::size_t rank = spec.inputs[0].shape.size();
  std::vector<std::pair<Layout, Layout>> ways = {{{}, {}}};
  if (same) {
    for (const Layout& layout : activation_layouts(rank)) {
      if (!layout.is_row_major() && spec.inputs[0].dtype == DType::kFp32)
        ways.emplace_back(layout, layout);
    }
  } else if (is_channel_vector(spec.inputs[0].shape) && spec.outputs[0].shape.size() < 3 &&
             spec.inputs[0].dtype == DType::kFp32) {
    ways.emplace_back(Layout::channel_blocked(static_cast<int>(rank), channel_block()), Layout{});
    ways.emplace_back(Layout::channels_last(static_cast<int>(rank)), Layout{});
  }
  Offers offers;
  for (const auto& [from, to] : ways)
    offers.candidates.push_back(view_candidate(request, from, to));
  return offers;
}

// ---- Concat and Split
// ------------------------------------------------------------------------------------------------

Result<std::size_t> axis_of(const artefact::KernelSpec& spec, std::size_t rank) {
  const auto signed_rank = static_cast<std::int64_t>(rank);
  const std::int64_t axis = spec.steps[0].attributes.get_int("axis", 0);
  if (axis < -signed_rank || axis >= signed_rank) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: attribute 'axis': expected a value from {} to {}, found {}",
                            spec.steps[0].op_type, -signed_rank, signed_rank - 1, axis));
  }
  return static_cast<std::size_t>(axis < 0 ? axis + signed_rank : axis);
}

// Whether all parts but the last have channels in whole blocks, whatever the other sizes.
bool whole_blocks(const std::vector<const Shape*>& parts, std::size_t axis) {
  if (axis != 1) return true;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    const auto channels = (*parts[i])[1].constant();
    if (!channels || *channels % channel_block() != 0) return false;
  }
  return true;
}

Offers offer_parts(const OfferRequest& request, const char* kernel,
                   const std::vector<const Shape*>& parts, bool all_dynamic) {
  const auto& spec = request.draft.spec;
  const std::size_t rank = spec.outputs[0].shape.size();
  const auto axis = axis_of(spec, rank);
  if (!axis) return refuse(axis.error());
  Offers offers;
  for (const Layout& layout : activation_layouts(rank)) {
    if (!layout.is_row_major() && (spec.outputs[0].dtype != DType::kFp32 || !all_dynamic)) continue;
    if (channel_block_of(layout) > 1 && !whole_blocks(parts, *axis)) continue;
    Candidate candidate = make_candidate(
        request.draft, kernel,
        [&](std::size_t i) { return spec.inputs[i].shape.size() == rank ? layout : Layout{}; },
        [&](std::size_t) { return layout; });
    candidate = priced(std::move(candidate), request, 0.6);
    candidate.flops = 0;
    offers.candidates.push_back(std::move(candidate));
  }
  return offers;
}

Offers offer_concat(const OfferRequest& request) {
  const auto& spec = request.draft.spec;
  std::vector<const Shape*> parts;
  bool all_dynamic = true;
  for (const std::int32_t number : spec.steps[0].inputs) {
    parts.push_back(&operand_decl(spec, number)->shape);
    all_dynamic = all_dynamic && !is_constant(spec, number);
  }
  return offer_parts(request, "cpu.concat", parts, all_dynamic);
}

Offers offer_split(const OfferRequest& request) {
  const auto& spec = request.draft.spec;
  if (step_input(spec.steps[0], 0) != 0)
    return refuse("Split: expected an input computed at run time, found a constant");
  if (spec.outputs.size() != spec.steps[0].output_count) {
    return refuse(fmt::format("Split: expected all {} outputs in use, found {}",
                              spec.steps[0].output_count, spec.outputs.size()));
  }
  std::vector<const Shape*> parts;
  for (const auto& output : spec.outputs) parts.push_back(&output.shape);
  // The sizes are an int64 input of rank 1 where they are not constant: row-major, as any operand
  // of another rank.
  return offer_parts(request, "cpu.split", parts, true);
}

// ---- Index tables, Gather, Resize
// ------------------------------------------------------------------------------------------------

// The input's dims in the order of memory, those of one element left out.
std::vector<std::int64_t> memory_order(const Layout& layout, const Shape& input,
                                       const Dims& dims_of_tensor) {
  std::vector<std::int64_t> order;
  for (std::size_t i = 0; i < dims_of_tensor.size(); ++i) {
    const std::int64_t dim = dims_of_tensor[layout.order.empty() ? i : layout.order[i]];
    if (input[static_cast<std::size_t>(dim)].constant() != 1) order.push_back(dim);
  }
  return order;
}

// Layouts of source and result in which a Transpose moves nothing.
std::vector<std::pair<Layout, Layout>> transpose_views(const artefact::KernelSpec& spec) {
  const Shape& input = spec.inputs[0].shape;
  const auto rank = static_cast<std::int64_t>(input.size());
  Dims own(input.size());
  std::iota(own.begin(), own.end(), std::int64_t{0});
  const Dims reversed(own.rbegin(), own.rend());
  const Dims perm = spec.steps[0].attributes.get_ints("perm", reversed);
  const bool valid =
      perm.size() == own.size() && std::is_permutation(perm.begin(), perm.end(), own.begin());
  std::vector<std::pair<Layout, Layout>> views;
  if (!valid) return views;
  std::vector<Layout> layouts = {{}};
  if (rank >= 3 && rank <= 5 && spec.inputs[0].dtype == DType::kFp32)
    layouts.push_back(Layout::channels_last(static_cast<int>(rank)));
  for (const Layout& from : layouts)
    for (const Layout& to : layouts)
      if (memory_order(from, input, own) == memory_order(to, input, perm))
        views.emplace_back(from, to);
  return views;
}

Offers offer_strided(const OfferRequest& request) {
  const auto& spec = request.draft.spec;
  const auto bytes = request.draft.constant_bytes();
  const auto fill = fill_value(spec, bytes);
  if (!fill) return refuse(fill.error());
  const auto tables = move_tables(spec, bytes, request.dims);
  if (!tables) return refuse(tables.error());
  Candidate candidate = priced(make_row_major(request.draft, "cpu.strided"), request,
                               spec.steps[0].op_type == "Transpose" ? 0.2 : 0.4);
  candidate.flops = 0;
  Offers offers{{std::move(candidate)}, ""};
  if (spec.steps[0].op_type == "Transpose") {
    for (const auto& [from, to] : transpose_views(spec))
      offers.candidates.push_back(view_candidate(request, from, to));
  }
  return offers;
}

Offers offer_gather(const OfferRequest& request) {
  const auto& spec = request.draft.spec;
  if (spec.steps[0].inputs.size() != 2) return refuse("Gather: expected two inputs");
  const DType indices = operand_decl(spec, spec.steps[0].inputs[1])->dtype;
  if (indices != DType::kInt64 && indices != DType::kInt32)
    return refuse(fmt::format("Gather: input 'indices': expected int32 or int64, found {}",
                              to_string(indices)));
  Candidate candidate = priced(make_row_major(request.draft, "cpu.gather"), request, 0.3);
  candidate.flops = 0;
  // It reads what it gives, not the table.
  candidate.bytes_moved =
      2.0 * static_cast<double>(nbytes(spec.outputs[0].dtype, request.dims.outputs[0]));
  return Offers{{std::move(candidate)}, ""};
}

Offers offer_resize(const OfferRequest& request) {
  const auto& spec = request.draft.spec;
  const auto bytes = request.draft.constant_bytes();
  const auto plan = plan_resize(spec, bytes);
  if (!plan) return refuse(plan.error());
  const Dims& src = request.dims.inputs[0];
  const Dims& dst = request.dims.outputs[0];
  if (src[0] != dst[0] || src[1] != dst[1])
    return refuse(fmt::format("Resize: expected spatial dims alone to change, found {} to {}",
                              to_string(src), to_string(dst)));
  Offers offers;
  for (const Layout& layout : activation_layouts(src.size())) {
    Candidate candidate = make_candidate(
        request.draft, "cpu.resize", [&](std::size_t i) { return i == 0 ? layout : Layout{}; },
        [&](std::size_t) { return layout; });
    offers.candidates.push_back(
        priced(std::move(candidate), request, layout.is_row_major() ? 0.2 : 0.5));
  }
  return offers;
}

}  // namespace

const Family& view_family() {
  static const Family family{offer_view, finish_nothing};
  return family;
}
const Family& concat_family() {
  static const Family family{offer_concat, finish_nothing};
  return family;
}
const Family& split_family() {
  static const Family family{offer_split, finish_nothing};
  return family;
}
const Family& strided_family() {
  static const Family family{offer_strided, finish_nothing};
  return family;
}
const Family& gather_family() {
  static const Family family{offer_gather, finish_nothing};
  return family;
}
const Family& resize_family() {
  static const Family family{offer_resize, finish_nothing};
  return family;
}

}  // namespace tessera::backends::cpu
