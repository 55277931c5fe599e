// Branches and loops: bodies run in frames of their own. Results are values with their storage, so
// handing them from one iteration to the next, or out, copies nothing.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/float_convert.h"
#include "runtime/frame.h"

namespace tessera::runtime {
namespace {

using artefact::Instruction;
using artefact::ScanAxis;

RunValue scalar(DType dtype, const void* element) {
  return RunValue::of(Tensor::copy_of({dtype, {}, element}));
}

// The sizes before and after an axis, as counts of elements; `axis` from the front.
struct AxisSplit {
  std::int64_t outer = 1;
  std::int64_t inner = 1;
};
AxisSplit split_at(const Dims& dims, std::size_t axis) {
  AxisSplit split;
  for (std::size_t d = 0; d < dims.size(); ++d)
    (d < axis ? split.outer : split.inner) *= d == axis ? 1 : dims[d];
  return split;
}

// Copies `count` elements between two places, counted in elements.
void copy_run(DType dtype, const void* from, std::int64_t from_at, void* to, std::int64_t to_at,
              std::int64_t count) {
  if (dtype == DType::kString) {
    std::copy_n(static_cast<const std::string*>(from) + from_at, count,
                static_cast<std::string*>(to) + to_at);
    return;
  }
  const int bits = bits_of(dtype);
  if (bits < 8) {
    for (std::int64_t i = 0; i < count; ++i)
      packed_set(to, to_at + i, bits, packed_get(from, from_at + i, bits));
    return;
  }
  const std::int64_t size_bytes = bits / 8;
  std::memcpy(static_cast<std::byte*>(to) + to_at * size_bytes,
              static_cast<const std::byte*>(from) + from_at * size_bytes,
              static_cast<std::size_t>(count * size_bytes));
}

Result<std::size_t> axis_in(std::int64_t axis, std::size_t rank, std::string_view what) {
  const auto signed_rank = static_cast<std::int64_t>(rank);
  if (axis < -signed_rank || axis >= signed_rank)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: expected an axis from {} to {}, found {}", what, -signed_rank,
                            signed_rank - 1, axis));
  return static_cast<std::size_t>(axis < 0 ? axis + signed_rank : axis);
}

// Slice `number` along an axis, without the axis.
Result<Tensor> slice(const Tensor& source, std::size_t axis, std::int64_t number) {
  Dims dims = source.dims();
  const std::int64_t count = dims[axis];
  const AxisSplit split = split_at(dims, axis);
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
  TESSERA_ASSIGN(Tensor result, Tensor::zeros(source.dtype(), dims));
  void* to = result.mutable_data();
  for (std::int64_t i = 0; i < split.outer; ++i)
    copy_run(source.dtype(), source.data(), (i * count + number) * split.inner, to, i * split.inner,
             split.inner);
  return result;
}

// The slices side by side along a new axis. All of one shape.
Result<Tensor> stack(const std::vector<RunValue>& slices, const ScanAxis& along,
                     const std::string& name) {
  const Tensor& first = slices.front().tensor;
  for (const RunValue& other : slices) {
    if (!other.is_tensor() || other.tensor.dims() != first.dims())
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("'{}': expected slices of [{}] from all iterations, found [{}]", name,
                              fmt::join(first.dims(), ", "), fmt::join(other.tensor.dims(), ", ")));
  }
  TESSERA_ASSIGN(const std::size_t axis,
                 axis_in(along.axis, first.dims().size() + 1, fmt::format("'{}'", name)));
  const auto count = static_cast<std::int64_t>(slices.size());
  Dims dims = first.dims();
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), count);
  TESSERA_ASSIGN(Tensor result, Tensor::zeros(first.dtype(), dims));
  const AxisSplit split = split_at(dims, axis);
  void* to = result.mutable_data();
  for (std::int64_t number = 0; number < count; ++number) {
    const std::int64_t source = along.reverse ? count - 1 - number : number;
    const void* from = slices[static_cast<std::size_t>(source)].tensor.data();
    for (std::int64_t i = 0; i < split.outer; ++i)
      copy_run(first.dtype(), from, i * split.inner, to, (i * count + number) * split.inner,
               split.inner);
  }
  return result;
}

// What no iteration gave: the slice's shape as far as it is known, the rest zero.
Result<Tensor> empty_stack(const artefact::TensorDecl& slice, const ScanAxis& along,
                           const SymbolBindings& bindings) {
  Dims dims;
  for (const Dim& size : slice.shape) dims.push_back(size.evaluate(bindings).value_or(0));
  TESSERA_ASSIGN(const std::size_t axis, axis_in(along.axis, dims.size() + 1, "an output"));
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), 0);
  return Tensor::zeros(slice.dtype, dims);
}

// Values that lie where others write later get storage of their own.
void own(std::vector<RunValue>& values) {
  for (RunValue& value : values)
    if (value.is_tensor()) value.tensor = Tensor::copy_of(value.tensor.view());
}

}  // namespace

Result<Frame*> Frame::body_frame(std::size_t index, std::size_t body) {
  auto& frame = bodies_[{index, body}];
  if (frame == nullptr) {
    TESSERA_ASSIGN(frame, create(shared_, method_.instructions[index].bodies[body]));
  }
  return frame.get();
}

void Frame::hand_over(std::uint32_t buffer, Frame& frame, std::size_t input) const {
  const bool has_value = loose_[buffer] && (!slots_[buffer].value.is_tensor() ||
                                            slots_[buffer].value.tensor.is_defined());
  if (has_value) return frame.bind_input(input, slots_[buffer].value);
  frame.bind_input(input, dims_of(buffer), data_of(buffer));
}

Status Frame::bind_captures(Frame& frame, const Instruction& instruction, std::size_t first_capture,
                            std::size_t first_input, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    hand_over(instruction.inputs[first_capture + i], frame, first_input + i);
  return {};
}

RunValue Frame::take_result(std::size_t output) const {
  return borrow(method_.outputs[output].buffer);
}

Result<bool> Frame::condition(std::uint32_t buffer) const {
  if (numel(dims_of(buffer)) != 1)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("condition '{}': expected one element, found [{}]",
                            method_.buffers[buffer].value, fmt::join(dims_of(buffer), ", ")));
  TESSERA_TRY(check_made(buffer));
  return std::to_integer<int>(*data_of(buffer)) != 0;
}

Result<Frame*> Frame::run_body_of_branch(std::size_t index, std::size_t body) {
  const Instruction& instruction = method_.instructions[index];
  const auto& methods = program().plan().methods;
  const std::size_t before = body == 0 ? 0 : methods[instruction.bodies[0]].inputs.size();
  TESSERA_ASSIGN(Frame * frame, body_frame(index, body));
  TESSERA_TRY(bind_captures(*frame, instruction, 1 + before, 0, frame->inputs_.size()));
  TESSERA_TRY(frame->run(&bindings_));
  return frame;
}

Status Frame::run_branch(std::size_t index) {
  const Instruction& instruction = method_.instructions[index];
  TESSERA_ASSIGN(const bool taken, condition(instruction.inputs[0]));
  const std::size_t body = taken ? 0 : 1;
  if (shared_.watcher != nullptr && shared_.watcher->wants_all_bodies())
    (void)run_body_of_branch(index, 1 - body);
  TESSERA_ASSIGN(Frame * frame, run_body_of_branch(index, body));
  for (std::size_t i = 0; i < instruction.outputs.size(); ++i)
    TESSERA_TRY(set_value(instruction.outputs[i], frame->take_result(instruction.control.kept[i])));
  return {};
}

Status Frame::finish_loop(const Instruction& instruction, const Frame& frame,
                          std::vector<RunValue> carried,
                          std::vector<std::vector<RunValue>> slices) {
  const auto& control = instruction.control;
  const std::size_t first = frame.method_.outputs.size() - slices.size();
  for (std::size_t i = 0; i < instruction.outputs.size(); ++i) {
    const std::uint32_t result = control.kept[i];
    if (result < control.carried) {
      TESSERA_TRY(set_value(instruction.outputs[i], std::move(carried[result])));
      continue;
    }
    const std::size_t number = result - control.carried;
    const auto& output = frame.method_.outputs[first + number];
    const auto& along = control.scan_outputs[number];
    TESSERA_ASSIGN(Tensor stacked,
                   slices[number].empty()
                       ? empty_stack(frame.method_.buffers[output.buffer].tensor, along, bindings_)
                       : stack(slices[number], along, output.name));
    TESSERA_TRY(set_value(instruction.outputs[i], RunValue::of(std::move(stacked))));
  }
  return {};
}

Status Frame::run_loop(std::size_t index) {
  const Instruction& instruction = method_.instructions[index];
  const auto& control = instruction.control;
  std::size_t at = 0;
  std::int64_t trips = INT64_MAX;
  bool goes_on = true;
  if (control.has_trips) {
    const std::uint32_t buffer = instruction.inputs[at++];
    if (numel(dims_of(buffer)) != 1)
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("trip count '{}': expected one element, found [{}]",
                              method_.buffers[buffer].value, fmt::join(dims_of(buffer), ", ")));
    std::memcpy(&trips, data_of(buffer), sizeof trips);
  }
  if (control.has_condition) {
    TESSERA_ASSIGN(goes_on, condition(instruction.inputs[at++]));
  }
  // Carried values change, so none of them may stay where it is.
  std::vector<RunValue> carried;
  for (std::size_t i = 0; i < control.carried; ++i)
    carried.push_back(borrow(instruction.inputs[at++]));
  std::vector<std::vector<RunValue>> slices(control.scan_outputs.size());
  TESSERA_ASSIGN(Frame * frame, body_frame(index, 0));
  const std::size_t arguments = 2 + control.carried;
  TESSERA_TRY(bind_captures(*frame, instruction, at, arguments, frame->inputs_.size() - arguments));
  const auto bind_iteration = [&](std::int64_t trip, std::vector<RunValue>& values) {
    const bool is_wanted = true;
    frame->bind_input(0, scalar(DType::kInt64, &trip));
    frame->bind_input(1, scalar(DType::kBool, &is_wanted));
    for (std::size_t i = 0; i < control.carried; ++i)
      frame->bind_input(2 + i, std::move(values[i]));
  };
  if (!goes_on || trips <= 0) {
    own(carried);
    if (shared_.watcher != nullptr && shared_.watcher->wants_all_bodies()) {
      auto values = carried;
      bind_iteration(0, values);
      (void)frame->run(&bindings_);
    }
  }
  for (std::int64_t trip = 0; goes_on && trip < trips; ++trip) {
    bind_iteration(trip, carried);
    TESSERA_TRY(frame->run(&bindings_));
    TESSERA_ASSIGN(goes_on, frame->condition(frame->method_.outputs[0].buffer));
    for (std::size_t i = 0; i < control.carried; ++i) carried[i] = frame->take_result(1 + i);
    for (std::size_t i = 0; i < slices.size(); ++i)
      slices[i].push_back(frame->take_result(1 + control.carried + i));
  }
  return finish_loop(instruction, *frame, std::move(carried), std::move(slices));
}

Status Frame::run_scan(std::size_t index) {
  const Instruction& instruction = method_.instructions[index];
  const auto& control = instruction.control;
  std::size_t at = 0;
  std::vector<RunValue> carried;
  for (std::size_t i = 0; i < control.carried; ++i)
    carried.push_back(borrow(instruction.inputs[at++]));
  std::vector<RunValue> scanned;
  std::vector<std::size_t> axes;
  std::int64_t steps = -1;
  for (const ScanAxis& along : control.scan_inputs) {
    const std::uint32_t buffer = instruction.inputs[at++];
    scanned.push_back(borrow(buffer));
    const Tensor& tensor = scanned.back().tensor;
    const std::string& name = method_.buffers[buffer].value;
    if (!scanned.back().is_tensor())
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("'{}': expected a tensor to scan", name));
    TESSERA_ASSIGN(const std::size_t axis,
                   axis_in(along.axis, tensor.dims().size(), fmt::format("'{}'", name)));
    axes.push_back(axis);
    if (steps >= 0 && tensor.dims()[axis] != steps)
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("'{}': expected {} slices as in the first scanned input, found {}",
                              name, steps, tensor.dims()[axis]));
    steps = tensor.dims()[axis];
  }
  std::vector<std::vector<RunValue>> slices(control.scan_outputs.size());
  TESSERA_ASSIGN(Frame * frame, body_frame(index, 0));
  const std::size_t arguments = control.carried + scanned.size();
  TESSERA_TRY(bind_captures(*frame, instruction, at, arguments, frame->inputs_.size() - arguments));
  if (steps <= 0) own(carried);
  for (std::int64_t step = 0; step < steps; ++step) {
    for (std::size_t i = 0; i < control.carried; ++i) frame->bind_input(i, std::move(carried[i]));
    for (std::size_t i = 0; i < scanned.size(); ++i) {
      const std::int64_t number = control.scan_inputs[i].reverse ? steps - 1 - step : step;
      TESSERA_ASSIGN(Tensor piece, slice(scanned[i].tensor, axes[i], number));
      frame->bind_input(control.carried + i, RunValue::of(std::move(piece)));
    }
    TESSERA_TRY(frame->run(&bindings_));
    for (std::size_t i = 0; i < control.carried; ++i) carried[i] = frame->take_result(i);
    for (std::size_t i = 0; i < slices.size(); ++i)
      slices[i].push_back(frame->take_result(control.carried + i));
  }
  return finish_loop(instruction, *frame, std::move(carried), std::move(slices));
}

}  // namespace tessera::runtime
