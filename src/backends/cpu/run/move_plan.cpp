#include "backends/cpu/run/move_plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace tessera::backends::cpu {
namespace {

Dims strides_of(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (std::size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  return strides;
}

std::vector<std::int64_t> range_table(std::int64_t count, std::int64_t start, std::int64_t step) {
  std::vector<std::int64_t> table;
  for (std::int64_t i = 0; i < count; ++i) table.push_back(start + i * step);
  return table;
}

Result<MoveTables> transpose(const artefact::KernelStep& step, const Dims& in) {
  const Dims strides = strides_of(in);
  std::vector<std::int64_t> perm = step.attributes.get_ints("perm");
  if (perm.empty()) {
    for (std::size_t d = in.size(); d-- > 0;) perm.push_back(static_cast<std::int64_t>(d));
  }
  if (perm.size() != in.size())
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("Transpose: attribute 'perm': expected {} values, found {}", in.size(),
                            perm.size()));
  MoveTables tables;
  for (const std::int64_t axis : perm) {
    const auto d = static_cast<std::size_t>(axis);
    if (axis < 0 || d >= in.size())
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("Transpose: attribute 'perm': expected axes below {}, found {}",
                              in.size(), axis));
    tables.dims.push_back(in[d]);
    tables.offsets.push_back(range_table(in[d], 0, strides[d]));
  }
  return tables;
}

// Expand and Tile: sizes repeat.
MoveTables repeat(const Dims& in, const Dims& out) {
  Dims wide(out.size() - in.size(), 1);
  wide.insert(wide.end(), in.begin(), in.end());
  const Dims strides = strides_of(wide);
  MoveTables tables;
  tables.dims = out;
  for (std::size_t d = 0; d < out.size(); ++d) {
    std::vector<std::int64_t> table;
    for (std::int64_t i = 0; i < out[d]; ++i) table.push_back(i % wide[d] * strides[d]);
    tables.offsets.push_back(std::move(table));
  }
  return tables;
}

Result<MoveTables> slice(const artefact::KernelSpec& spec, Constants constants, const Dims& in,
                         const Dims& out) {
  const auto& step = spec.steps[0];
  TESSERA_ASSIGN(const auto starts, constant_ints(spec, constants, step_input(step, 1)));
  TESSERA_ASSIGN(auto axes, constant_ints(spec, constants, step_input(step, 3)));
  TESSERA_ASSIGN(auto steps, constant_ints(spec, constants, step_input(step, 4)));
  if (axes.empty()) axes = range_table(static_cast<std::int64_t>(starts.size()), 0, 1);
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (axes.size() != starts.size() || steps.size() != starts.size())
    return fail(ErrorCode::kInvalidArgument, "Slice: expected as many axes and steps as starts");
  const Dims strides = strides_of(in);
  const auto rank = static_cast<std::int64_t>(in.size());
  MoveTables tables;
  tables.dims = out;
  for (std::size_t d = 0; d < in.size(); ++d)
    tables.offsets.push_back(range_table(out[d], 0, strides[d]));
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const auto d = static_cast<std::size_t>(axes[i] < 0 ? axes[i] + rank : axes[i]);
    if (d >= in.size() || steps[i] == 0)
      return fail(ErrorCode::kInvalidArgument,
                  "Slice: expected axes within the rank and steps other than 0");
    std::int64_t start = starts[i] < 0 ? starts[i] + in[d] : starts[i];
    start = std::clamp<std::int64_t>(start, 0,
                                     steps[i] > 0 ? in[d] : std::max<std::int64_t>(in[d] - 1, 0));
    const bool inside = out[d] == 0 || (start + (out[d] - 1) * steps[i] >= 0 &&
                                        start + (out[d] - 1) * steps[i] < in[d]);
    if (!inside)
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("Slice: expected a result within {}, found {}", to_string(in),
                              to_string(out)));
    tables.offsets[d] = range_table(out[d], start * strides[d], steps[i] * strides[d]);
  }
  return tables;
}

Result<MoveTables> pad(const artefact::KernelSpec& spec, Constants constants, const Dims& in,
                       const Dims& out) {
  const auto& step = spec.steps[0];
  TESSERA_ASSIGN(const auto pads, constant_ints(spec, constants, step_input(step, 1)));
  TESSERA_ASSIGN(auto axes, constant_ints(spec, constants, step_input(step, 3)));
  const auto rank = static_cast<std::int64_t>(in.size());
  if (axes.empty()) axes = range_table(rank, 0, 1);
  if (pads.size() != 2 * axes.size())
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("Pad: input 'pads': expected {} values, found {}", 2 * axes.size(),
                            pads.size()));
  const std::string mode = step.attributes.get_string("mode", "constant");
  Dims begins(in.size(), 0);
  for (std::size_t i = 0; i < axes.size(); ++i)
    begins[static_cast<std::size_t>(axes[i] < 0 ? axes[i] + rank : axes[i])] = pads[i];
  const Dims strides = strides_of(in);
  MoveTables tables;
  tables.dims = out;
  for (std::size_t d = 0; d < in.size(); ++d) {
    if (in[d] == 0 && out[d] > 0 && mode != "constant")
      return fail(
          ErrorCode::kInvalidArgument,
          fmt::format("Pad: mode '{}' has nothing to take from axis {} of size 0", mode, d));
    std::vector<std::int64_t> table;
    for (std::int64_t i = 0; i < out[d]; ++i) {
      std::int64_t at = i - begins[d];
      if (at < 0 || at >= in[d]) {
        if (mode == "constant") {
          at = -1;
        } else if (mode == "edge") {
          at = std::clamp<std::int64_t>(at, 0, in[d] - 1);
        } else if (mode == "wrap") {
          at = ((at % in[d]) + in[d]) % in[d];
        } else if (mode == "reflect") {
          const std::int64_t period = std::max<std::int64_t>(2 * (in[d] - 1), 1);
          at = ((at % period) + period) % period;
          at = std::min(at, period - at);
          if (in[d] == 1) at = 0;
        } else {
          return fail(
              ErrorCode::kUnimplemented,
              fmt::format(
                  "Pad: attribute 'mode': expected constant, edge, reflect or wrap, found {}",
                  mode));
        }
      }
      table.push_back(at < 0 ? -1 : at * strides[d]);
    }
    tables.offsets.push_back(std::move(table));
  }
  return tables;
}

// Both rearrange blocks of b x b: six dims in another order.
Result<MoveTables> depth_space(const artefact::KernelStep& step, const Dims& in) {
  const std::int64_t b = step.attributes.get_int("blocksize", 1);
  if (in.size() != 4 || b < 1)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: expected rank 4 and a blocksize of 1 or more, found {}",
                            step.op_type, to_string(in)));
  const bool to_space = step.op_type == "DepthToSpace";
  const bool crd = step.attributes.get_string("mode", "DCR") == "CRD";
  Dims cut;
  std::vector<std::size_t> perm;
  if (to_space) {
    if (in[1] % (b * b) != 0)
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: expected channels in multiples of {}, found {}", step.op_type,
                              b * b, in[1]));
    const std::int64_t c = in[1] / (b * b);
    cut = crd ? Dims{in[0], c, b, b, in[2], in[3]} : Dims{in[0], b, b, c, in[2], in[3]};
    perm = crd ? std::vector<std::size_t>{0, 1, 4, 2, 5, 3}
               : std::vector<std::size_t>{0, 3, 4, 1, 5, 2};
  } else {
    if (in[2] % b != 0 || in[3] % b != 0)
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: expected sizes in multiples of {}, found {}", step.op_type, b,
                              to_string(in)));
    cut = {in[0], in[1], in[2] / b, b, in[3] / b, b};
    perm = crd ? std::vector<std::size_t>{0, 1, 3, 5, 2, 4}
               : std::vector<std::size_t>{0, 3, 5, 1, 2, 4};
  }
  const Dims strides = strides_of(cut);
  MoveTables tables;
  for (const std::size_t d : perm) {
    tables.dims.push_back(cut[d]);
    tables.offsets.push_back(range_table(cut[d], 0, strides[d]));
  }
  return tables;
}

// Places along the dims of one tensor: what a table holds.
constexpr std::int64_t kMaxPlaces = std::int64_t{1} << 25;

Status check_places(const artefact::KernelStep& step, const Dims& dims) {
  std::int64_t places = 0;
  for (const std::int64_t size : dims) {
    places += std::min(size, kMaxPlaces + 1);
    if (places > kMaxPlaces)
      return fail(ErrorCode::kUnimplemented,
                  fmt::format("{}: expected at most {} places along all dims, found {}",
                              step.op_type, kMaxPlaces, to_string(dims)));
  }
  return {};
}

}  // namespace

Result<MoveTables> move_tables(const artefact::KernelSpec& spec, Constants constants,
                               const InstanceDims& dims) {
  if (spec.steps.size() != 1 || spec.inputs.empty() || spec.outputs.size() != 1 ||
      step_input(spec.steps[0], 0) != 0) {
    return bad_spec(spec, "expected one step of one input computed at run time, and one output");
  }
  const auto& step = spec.steps[0];
  const Dims& in = dims.inputs[0];
  const Dims& out = dims.outputs[0];
  TESSERA_TRY(check_places(step, in));
  TESSERA_TRY(check_places(step, out));
  Result<MoveTables> tables = fail(ErrorCode::kUnimplemented,
                                   fmt::format("{}: expected a movement operator", step.op_type));
  if (step.op_type == "Transpose") tables = transpose(step, in);
  if (step.op_type == "Slice" && in.size() == out.size()) tables = slice(spec, constants, in, out);
  if (step.op_type == "Pad" && in.size() == out.size()) tables = pad(spec, constants, in, out);
  if (step.op_type == "DepthToSpace" || step.op_type == "SpaceToDepth")
    tables = depth_space(step, in);
  if (step.op_type == "Expand" || step.op_type == "Tile") {
    bool fits = in.size() <= out.size();
    for (std::size_t d = 0; fits && d < in.size(); ++d) {
      const std::int64_t to = out[d + out.size() - in.size()];
      fits = in[d] == 0 ? to == 0 : to % in[d] == 0;
    }
    if (!fits)
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: expected a result that {} repeats into, found {}", step.op_type,
                              to_string(in), to_string(out)));
    tables = repeat(in, out);
  }
  if (tables && numel(tables->dims) != numel(out)) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: expected a result of {} elements, found {}", step.op_type,
                            numel(tables->dims), to_string(out)));
  }
  return tables;
}

Result<std::vector<std::byte>> fill_value(const artefact::KernelSpec& spec, Constants constants) {
  std::vector<std::byte> value(static_cast<std::size_t>(bits_of(spec.outputs[0].dtype) / 8));
  const std::int32_t number = spec.steps[0].op_type == "Pad" ? step_input(spec.steps[0], 2) : -1;
  if (number < 0) return value;
  const OperandRef ref = operand_ref(spec, number);
  if (ref.kind != OperandRef::Kind::kConstant)
    return fail(ErrorCode::kUnimplemented,
                "Pad: input 'constant_value': expected a constant, found one computed at run time");
  std::copy_n(constants[ref.index].begin(), std::min(value.size(), constants[ref.index].size()),
              value.begin());
  return value;
}

void simplify(MoveTables& tables) {
  for (std::size_t d = tables.dims.size(); d-- > 0;) {
    if (tables.dims[d] == 1 && tables.dims.size() > 1 && tables.offsets[d][0] == 0) {
      tables.dims.erase(tables.dims.begin() + static_cast<std::ptrdiff_t>(d));
      tables.offsets.erase(tables.offsets.begin() + static_cast<std::ptrdiff_t>(d));
    }
  }
  while (tables.dims.size() >= 2) {
    auto& inner = tables.offsets.back();
    auto& outer = tables.offsets[tables.offsets.size() - 2];
    const std::int64_t n = tables.dims.back();
    const auto runs = [](const std::vector<std::int64_t>& table, std::int64_t step) {
      for (std::size_t i = 0; i < table.size(); ++i) {
        if (table[i] < 0 || table[i] != table[0] + static_cast<std::int64_t>(i) * step)
          return false;
      }
      return true;
    };
    if (inner.empty() || outer.empty() || !runs(inner, 1) || !runs(outer, n)) return;
    const std::int64_t start = inner[0] + outer[0];
    const std::int64_t count = n * tables.dims[tables.dims.size() - 2];
    tables.dims.pop_back();
    tables.offsets.pop_back();
    tables.dims.back() = count;
    tables.offsets.back() = range_table(count, start, 1);
  }
}

}  // namespace tessera::backends::cpu
