// Kernels that move whole runs of memory: "cpu.view", "cpu.concat", "cpu.split", and "cpu.convert"
// between forms.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "backends/cpu/run/chunked_instance.h"
#include "backends/cpu/run/kernels.h"
#include "backends/cpu/run/layout_copy.h"
#include "backends/cpu/run/physical.h"
#include "base/float_convert.h"

namespace tessera::backends::cpu {
namespace {

constexpr std::int64_t kGrainBytes = 65536;

std::int64_t element_bytes(DType dtype) {
  return bits_of(dtype) / 8;
}

class ViewKernel final : public LoadedKernel {
 public:
  explicit ViewKernel(artefact::KernelSpec spec) : spec_(std::move(spec)) {}
  Result<std::unique_ptr<KernelInstance>> instantiate(const InstanceDims& dims,
                                                      int threads) const override {
    const auto& out = spec_.outputs[0];
    const std::int64_t bytes = layout_nbytes(out.layout, out.dtype, dims.outputs[0]);
    const std::int64_t found =
        layout_nbytes(spec_.inputs[0].layout, spec_.inputs[0].dtype, dims.inputs[0]);
    if (bytes != found) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: expected as many elements as {}, found {}", spec_.kernel,
                              to_string(dims.inputs[0]), to_string(dims.outputs[0])));
    }
    return chunked(
        chunk_count(bytes, kGrainBytes, threads),
        [bytes](const ExecuteArgs& args, std::int64_t i, std::int64_t chunks, std::byte*) {
          const ChunkRange range = chunk_range(bytes, chunks, i, 64);
          if (args.outputs[0] != args.inputs[0]) {
            std::memcpy(args.outputs[0] + range.begin, args.inputs[0] + range.begin,
                        static_cast<std::size_t>(range.end - range.begin));
          }
        });
  }

 private:
  artefact::KernelSpec spec_;
};

Result<std::size_t> axis_of(const artefact::KernelSpec& spec, std::int64_t fallback) {
  const auto rank = static_cast<std::int64_t>(spec.outputs[0].shape.size());
  const std::int64_t axis = spec.steps[0].attributes.get_int("axis", fallback);
  if (axis < -rank || axis >= rank)
    return bad_spec(
        spec, fmt::format("axis: expected a value from {} to {}, found {}", -rank, rank - 1, axis));
  return static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
}

// What of a concatenation one operand is, in bytes: `run` bytes at `offset` of each outer row of
// `row` bytes.
struct Part {
  std::int32_t operand = -1;
  std::int64_t run = 0;
  std::int64_t offset = 0;
};

// Concat (and Split, its reverse) are equal for all layouts in which the axis is cut at whole
// blocks.
struct Parts {
  std::int64_t outer = 1;
  std::int64_t row = 0;
  std::vector<Part> parts;
};

// Sizes that only the run decides may contradict each other.
Status check_parts(const artefact::KernelSpec& spec, std::size_t axis, const Dims& whole,
                   const std::vector<Dims>& parts) {
  std::int64_t total = 0;
  for (const Dims& part : parts) {
    Dims fitting = whole;
    if (part.size() == whole.size()) fitting[axis] = part[axis];
    if (part != fitting)
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: expected a part of {} along axis {}, found {}", spec.kernel,
                              to_string(whole), axis, to_string(part)));
    total += part[axis];
  }
  if (total == whole[axis]) return {};
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("{}: expected parts that add up to {} along axis {}, found {}",
                          spec.kernel, whole[axis], axis, total));
}

Result<Parts> parts_of(const artefact::KernelSpec& spec, const Layout& layout, DType dtype,
                       std::size_t axis, const Dims& whole, const std::vector<Dims>& dims,
                       const std::vector<std::int32_t>& operands) {
  TESSERA_TRY(check_parts(spec, axis, whole, dims));
  Parts result;
  const std::int64_t block = axis == 1 ? channel_block_of(layout) : 1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (i + 1 < dims.size() && dims[i][axis] % block != 0) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: expected part {} in whole blocks of {} channels, found {}",
                              spec.kernel, i, block, dims[i][axis]));
    }
    const AxisSplit split = split_at_axis(layout, dims[i], axis);
    const std::int64_t run = split.axis * split.inner * element_bytes(dtype);
    result.outer = split.outer;
    result.parts.push_back({operands[i], run, result.row});
    result.row += run;
  }
  return result;
}

class ConcatKernel final : public LoadedKernel {
 public:
  ConcatKernel(artefact::KernelSpec spec, Constants constants, std::size_t axis)
      : spec_(std::move(spec)), constants_(constants.begin(), constants.end()), axis_(axis) {}

  Result<std::unique_ptr<KernelInstance>> instantiate(const InstanceDims& dims,
                                                      int threads) const override {
    std::vector<Dims> sizes;
    for (const std::int32_t number : spec_.steps[0].inputs) {
      const OperandRef ref = operand_ref(spec_, number);
      sizes.push_back(ref.kind == OperandRef::Kind::kInput
                          ? dims.inputs[ref.index]
                          : *constant_dims(spec_.constants[ref.index].shape));
    }
    const auto& out = spec_.outputs[0];
    TESSERA_ASSIGN(auto parts, parts_of(spec_, out.layout, out.dtype, axis_, dims.outputs[0], sizes,
                                        spec_.steps[0].inputs));
    const std::int64_t chunks = chunk_count(parts.outer * parts.row, kGrainBytes, threads);
    return chunked(chunks, [this, parts = std::move(parts)](const ExecuteArgs& args, std::int64_t i,
                                                            std::int64_t count, std::byte*) {
      copy(parts, args, chunk_range(parts.outer * parts.row, count, i));
    });
  }

 private:
  // Bytes [range.begin, range.end) of the result.
  void copy(const Parts& parts, const ExecuteArgs& args, ChunkRange range) const {
    for (const Part& part : parts.parts) {
      const OperandRef ref = operand_ref(spec_, part.operand);
      const std::byte* source = ref.kind == OperandRef::Kind::kInput ? args.inputs[ref.index]
                                                                     : constants_[ref.index].data();
      for (std::int64_t row = range.begin / std::max<std::int64_t>(parts.row, 1);
           row < parts.outer && row * parts.row < range.end; ++row) {
        const std::int64_t start = row * parts.row + part.offset;
        const std::int64_t first = std::max(range.begin, start);
        const std::int64_t last = std::min(range.end, start + part.run);
        if (first < last)
          std::memcpy(args.outputs[0] + first, source + row * part.run + (first - start),
                      static_cast<std::size_t>(last - first));
      }
    }
  }

  artefact::KernelSpec spec_;
  std::vector<std::span<const std::byte>> constants_;
  std::size_t axis_;
};

class SplitKernel final : public LoadedKernel {
 public:
  SplitKernel(artefact::KernelSpec spec, std::size_t axis) : spec_(std::move(spec)), axis_(axis) {}

  Result<std::unique_ptr<KernelInstance>> instantiate(const InstanceDims& dims,
                                                      int) const override {
    std::vector<std::int32_t> results;
    for (std::size_t i = 0; i < dims.outputs.size(); ++i)
      results.push_back(static_cast<std::int32_t>(i));
    const auto& in = spec_.inputs[0];
    TESSERA_ASSIGN(auto parts, parts_of(spec_, in.layout, in.dtype, axis_, dims.inputs[0],
                                        dims.outputs, results));
    return chunked(1, [parts = std::move(parts)](const ExecuteArgs& args, std::int64_t,
                                                 std::int64_t, std::byte*) {
      for (std::int64_t row = 0; row < parts.outer; ++row) {
        for (const Part& part : parts.parts) {
          std::memcpy(args.outputs[static_cast<std::size_t>(part.operand)] + row * part.run,
                      args.inputs[0] + row * parts.row + part.offset,
                      static_cast<std::size_t>(part.run));
        }
      }
    });
  }

 private:
  artefact::KernelSpec spec_;
  std::size_t axis_;
};

using CastFn = void (*)(const std::byte* from, std::byte* to, std::int64_t begin, std::int64_t end);

template <typename From, typename To, To (*convert)(From)>
void cast_run(const std::byte* from, std::byte* to, std::int64_t begin, std::int64_t end) {
  const auto* source = reinterpret_cast<const From*>(from);
  auto* target = reinterpret_cast<To*>(to);
  for (std::int64_t i = begin; i < end; ++i) target[i] = convert(source[i]);
}

// Casts stored elements, padding too: zero stays zero.
CastFn cast_between(DType from, DType to) {
  if (from == DType::kFp32 && to == DType::kFp16)
    return cast_run<float, std::uint16_t, fp32_to_fp16>;
  if (from == DType::kFp32 && to == DType::kBf16)
    return cast_run<float, std::uint16_t, fp32_to_bf16>;
  if (from == DType::kFp16 && to == DType::kFp32)
    return cast_run<std::uint16_t, float, fp16_to_fp32>;
  if (from == DType::kBf16 && to == DType::kFp32)
    return cast_run<std::uint16_t, float, bf16_to_fp32>;
  return nullptr;
}

// The layout first, in the narrower dtype where both change, by way of scratch.
class ConvertKernel final : public LoadedKernel {
 public:
  explicit ConvertKernel(artefact::KernelSpec spec) : spec_(std::move(spec)) {}

  Result<std::unique_ptr<KernelInstance>> instantiate(const InstanceDims& dims,
                                                      int threads) const override;

 private:
  artefact::KernelSpec spec_;
};

class ConvertInstance final : public KernelInstance {
 public:
  ConvertInstance(const artefact::TensorDecl& from, const artefact::TensorDecl& to,
                  const Dims& dims, int threads)
      : cast_(cast_between(from.dtype, to.dtype)),
        moves_(from.layout != to.layout),
        cast_first_(bits_of(to.dtype) < bits_of(from.dtype)) {
    const std::int64_t width = std::min(element_bytes(from.dtype), element_bytes(to.dtype));
    if (moves_)
      copy_ = LayoutCopy(from.layout, to.layout, dims,
                         cast_ != nullptr ? width : element_bytes(from.dtype));
    cast_elements_ = stored_elements(cast_first_ ? from.layout : to.layout, dims);
    if (cast_ != nullptr && moves_) scratch_ = cast_elements_ * width;
    bytes_ = layout_nbytes(to.layout, to.dtype, dims);
    chunks_ = chunk_count(bytes_, kGrainBytes, threads);
  }

  [[nodiscard]] std::int64_t scratch_bytes() const override { return scratch_; }
  Status execute(const ExecuteArgs& args) override {
    const std::byte* in = args.inputs[0];
    std::byte* out = args.outputs[0];
    if (cast_ == nullptr && !moves_)
      return run(args, bytes_, [=](ChunkRange r) {
        std::memcpy(out + r.begin, in + r.begin, static_cast<std::size_t>(r.end - r.begin));
      });
    if (cast_ == nullptr) return move(args, in, out);
    if (!moves_) return cast(args, in, out);
    if (cast_first_) {
      TESSERA_TRY(cast(args, in, args.scratch));
      return move(args, args.scratch, out);
    }
    TESSERA_TRY(move(args, in, args.scratch));
    return cast(args, args.scratch, out);
  }

 private:
  template <typename Body>
  Status run(const ExecuteArgs& args, std::int64_t count, const Body& body) const {
    args.parallel->run(chunks_, [&](std::int64_t i) { body(chunk_range(count, chunks_, i)); });
    return {};
  }
  Status cast(const ExecuteArgs& args, const std::byte* in, std::byte* out) const {
    return run(args, cast_elements_, [=, this](ChunkRange r) { cast_(in, out, r.begin, r.end); });
  }
  Status move(const ExecuteArgs& args, const std::byte* in, std::byte* out) const {
    return run(args, copy_.rows(), [=, this](ChunkRange r) { copy_.run(in, out, r.begin, r.end); });
  }

  CastFn cast_;
  bool moves_;
  bool cast_first_;
  LayoutCopy copy_;
  std::int64_t cast_elements_ = 0;
  std::int64_t scratch_ = 0;
  std::int64_t bytes_ = 0;
  std::int64_t chunks_ = 1;
};

Result<std::unique_ptr<KernelInstance>> ConvertKernel::instantiate(const InstanceDims& dims,
                                                                   int threads) const {
  return std::unique_ptr<KernelInstance>(
      new ConvertInstance(spec_.inputs[0], spec_.outputs[0], dims.outputs[0], threads));
}

}  // namespace

Result<std::unique_ptr<LoadedKernel>> load_view(const artefact::KernelSpec& spec, Constants) {
  if (spec.inputs.empty() || spec.outputs.size() != 1)
    return bad_spec(spec, "expected inputs and one output");
  return std::unique_ptr<LoadedKernel>(new ViewKernel(spec));
}

Result<std::unique_ptr<LoadedKernel>> load_concat(const artefact::KernelSpec& spec,
                                                  Constants constants) {
  if (spec.steps.size() != 1 || spec.outputs.size() != 1)
    return bad_spec(spec, "expected one step and one output");
  TESSERA_ASSIGN(const std::size_t axis, axis_of(spec, 0));
  return std::unique_ptr<LoadedKernel>(new ConcatKernel(spec, constants, axis));
}

Result<std::unique_ptr<LoadedKernel>> load_split(const artefact::KernelSpec& spec, Constants) {
  if (spec.steps.size() != 1 || spec.inputs.empty() || spec.outputs.empty())
    return bad_spec(spec, "expected one step, an input and outputs");
  TESSERA_ASSIGN(const std::size_t axis, axis_of(spec, 0));
  return std::unique_ptr<LoadedKernel>(new SplitKernel(spec, axis));
}

Result<std::unique_ptr<LoadedKernel>> load_convert(const artefact::KernelSpec& spec, Constants) {
  if (spec.inputs.size() != 1 || spec.outputs.size() != 1)
    return bad_spec(spec, "expected one input and one output");
  const DType from = spec.inputs[0].dtype;
  const DType to = spec.outputs[0].dtype;
  if (from != to && cast_between(from, to) == nullptr) {
    return bad_spec(spec, fmt::format("expected fp32 to or from fp16 or bf16, found {} to {}",
                                      to_string(from), to_string(to)));
  }
  return std::unique_ptr<LoadedKernel>(new ConvertKernel(spec));
}

}  // namespace tessera::backends::cpu
