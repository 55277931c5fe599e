// "cpu.strided": movement by index tables; "cpu.gather": rows chosen at run time.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "backends/cpu/run/chunked_instance.h"
#include "backends/cpu/run/kernels.h"
#include "backends/cpu/run/move_plan.h"
#include "backends/cpu/run/parallel_status.h"
#include "backends/cpu/run/physical.h"
#include "backends/cpu/run/strided_copy.h"

namespace tessera::backends::cpu {
namespace {

constexpr std::int64_t kGrain = 16384;

template <typename T>
void move_rows(const MoveTables& tables, bool run_of_one, const T* in, T* out, T fill,
               std::int64_t row_begin, std::int64_t row_end) {
  const std::size_t rank = tables.dims.size();
  const std::int64_t inner = tables.dims[rank - 1];
  const auto& table = tables.offsets[rank - 1];
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    std::int64_t offset = 0;
    std::int64_t rest = row;
    bool filled = false;
    for (std::size_t d = rank - 1; d-- > 0;) {
      const std::int64_t part = tables.offsets[d][static_cast<std::size_t>(rest % tables.dims[d])];
      rest /= tables.dims[d];
      filled = filled || part < 0;
      offset += part;
    }
    T* to = out + row * inner;
    if (filled) {
      std::fill_n(to, inner, fill);
    } else if (run_of_one) {
      std::memcpy(to, in + offset + table[0], static_cast<std::size_t>(inner) * sizeof(T));
    } else {
      for (std::int64_t i = 0; i < inner; ++i)
        to[i] = table[static_cast<std::size_t>(i)] < 0
                    ? fill
                    : in[offset + table[static_cast<std::size_t>(i)]];
    }
  }
}

// The same movement where every table goes in equal steps and nothing is filled.
std::optional<StridedCopy> strided_copy(const MoveTables& tables, std::int64_t element_bytes) {
  std::vector<CopyAxis> axes;
  std::int64_t first = 0;
  std::int64_t to = 1;
  for (std::size_t d = tables.dims.size(); d-- > 0;) {
    const auto& table = tables.offsets[d];
    if (table.empty()) return std::nullopt;
    const std::int64_t step = table.size() == 1 ? 0 : table[1] - table[0];
    for (std::size_t i = 0; i < table.size(); ++i)
      if (table[i] < 0 || table[i] != table[0] + static_cast<std::int64_t>(i) * step)
        return std::nullopt;
    first += table[0];
    axes.push_back({tables.dims[d], step, to});
    to *= tables.dims[d];
  }
  return StridedCopy(std::move(axes), first, 0, element_bytes);
}

class MoveKernel final : public LoadedKernel {
 public:
  MoveKernel(artefact::KernelSpec spec, Constants constants, std::vector<std::byte> fill)
      : spec_(std::move(spec)),
        constants_(constants.begin(), constants.end()),
        fill_(std::move(fill)) {}

  Result<std::unique_ptr<KernelInstance>> instantiate(const InstanceDims& dims,
                                                      int threads) const override {
    TESSERA_ASSIGN(MoveTables tables, move_tables(spec_, constants_, dims));
    if (tables.dims.empty()) {
      tables.dims = {1};
      tables.offsets = {{0}};
    }
    if (const auto copy = strided_copy(tables, static_cast<std::int64_t>(fill_.size())))
      return strided(*copy, numel(tables.dims), threads);
    simplify(tables);
    switch (fill_.size()) {
      case 1: return make<std::uint8_t>(std::move(tables), threads);
      case 2: return make<std::uint16_t>(std::move(tables), threads);
      case 4: return make<std::uint32_t>(std::move(tables), threads);
      case 8: return make<std::uint64_t>(std::move(tables), threads);
      case 16: return make<Bytes16>(std::move(tables), threads);
      default:
        return fail(ErrorCode::kUnimplemented,
                    fmt::format("{}: expected elements of 1, 2, 4, 8 or 16 bytes, found {}",
                                spec_.steps[0].op_type, fill_.size()));
    }
  }

 private:
  static std::unique_ptr<KernelInstance> strided(const StridedCopy& copy, std::int64_t total,
                                                 int threads) {
    const std::int64_t chunks = std::min(chunk_count(total, kGrain, threads), copy.units());
    return chunked(chunks,
                   [copy](const ExecuteArgs& args, std::int64_t i, std::int64_t count, std::byte*) {
                     const ChunkRange range = chunk_range(copy.units(), count, i);
                     copy.run(args.inputs[0], args.outputs[0], range.begin, range.end);
                   });
  }

  template <typename T>
  Result<std::unique_ptr<KernelInstance>> make(MoveTables tables, int threads) const {
    T fill{};
    std::memcpy(&fill, fill_.data(), sizeof(T));
    const auto& last = tables.offsets.back();
    bool run = !last.empty();
    for (std::size_t i = 0; i < last.size(); ++i)
      run = run && last[i] >= 0 && last[i] == last[0] + static_cast<std::int64_t>(i);
    const std::int64_t total = numel(tables.dims);
    const std::int64_t rows = tables.dims.back() == 0 ? 0 : total / tables.dims.back();
    const std::int64_t chunks =
        std::min(chunk_count(total, kGrain, threads), std::max<std::int64_t>(rows, 1));
    return chunked(chunks,
                   [tables = std::move(tables), run, fill, rows](
                       const ExecuteArgs& args, std::int64_t i, std::int64_t count, std::byte*) {
                     const ChunkRange range = chunk_range(rows, count, i);
                     move_rows(tables, run, reinterpret_cast<const T*>(args.inputs[0]),
                               reinterpret_cast<T*>(args.outputs[0]), fill, range.begin, range.end);
                   });
  }

  artefact::KernelSpec spec_;
  std::vector<std::span<const std::byte>> constants_;
  std::vector<std::byte> fill_;
};

class GatherInstance final : public KernelInstance {
 public:
  GatherInstance(const artefact::KernelSpec& spec, Constants constants, AxisSplit split,
                 std::int64_t index_count, int threads)
      : spec_(spec),
        constants_(constants),
        split_(split),
        index_count_(index_count),
        bytes_(bits_of(spec.outputs[0].dtype) / 8) {
    units_ = split.outer * index_count;
    chunks_ = std::min(chunk_count(units_ * split.inner, kGrain, threads),
                       std::max<std::int64_t>(units_, 1));
    wide_ = operand_decl(spec, spec.steps[0].inputs[1])->dtype == DType::kInt64;
  }

  Status execute(const ExecuteArgs& args) override {
    const std::byte* data = operand(0, args);
    const std::byte* indices = operand(1, args);
    const std::int64_t run = split_.inner * bytes_;
    return run_chunks(args.parallel, chunks_, [&](std::int64_t i) -> Status {
      const ChunkRange range = chunk_range(units_, chunks_, i);
      for (std::int64_t unit = range.begin; unit < range.end; ++unit) {
        const std::int64_t at = unit % index_count_;
        std::int64_t index = wide_ ? reinterpret_cast<const std::int64_t*>(indices)[at]
                                   : reinterpret_cast<const std::int32_t*>(indices)[at];
        if (index < 0) index += split_.axis;
        if (index < 0 || index >= split_.axis) {
          return fail(
              ErrorCode::kOutOfRange,
              fmt::format("Gather: input 'indices': expected a value from {} to {}, found {}",
                          -split_.axis, split_.axis - 1, index < 0 ? index - split_.axis : index));
        }
        std::memcpy(args.outputs[0] + unit * run,
                    data + (unit / index_count_ * split_.axis + index) * run,
                    static_cast<std::size_t>(run));
      }
      return {};
    });
  }

 private:
  const std::byte* operand(std::size_t input, const ExecuteArgs& args) const {
    const OperandRef ref = operand_ref(spec_, spec_.steps[0].inputs[input]);
    return ref.kind == OperandRef::Kind::kInput ? args.inputs[ref.index]
                                                : constants_[ref.index].data();
  }

  const artefact::KernelSpec& spec_;
  Constants constants_;
  AxisSplit split_;
  std::int64_t index_count_;
  std::int64_t bytes_;
  std::int64_t units_ = 0;
  std::int64_t chunks_ = 1;
  bool wide_ = true;
};

class GatherKernel final : public LoadedKernel {
 public:
  GatherKernel(artefact::KernelSpec spec, Constants constants)
      : spec_(std::move(spec)), constants_(constants.begin(), constants.end()) {}
  Result<std::unique_ptr<KernelInstance>> instantiate(const InstanceDims& dims,
                                                      int threads) const override {
    const auto sizes = [&](std::size_t input) {
      const OperandRef ref = operand_ref(spec_, spec_.steps[0].inputs[input]);
      return ref.kind == OperandRef::Kind::kInput
                 ? dims.inputs[ref.index]
                 : *constant_dims(spec_.constants[ref.index].shape);
    };
    const Dims data = sizes(0);
    const auto rank = static_cast<std::int64_t>(data.size());
    const std::int64_t axis = spec_.steps[0].attributes.get_int("axis", 0);
    if (axis < -rank || axis >= rank)
      return bad_spec(spec_, fmt::format("axis: expected a value from {} to {}, found {}", -rank,
                                         rank - 1, axis));
    const AxisSplit split =
        split_at_axis({}, data, static_cast<std::size_t>(axis < 0 ? axis + rank : axis));
    return std::unique_ptr<KernelInstance>(
        new GatherInstance(spec_, constants_, split, numel(sizes(1)), threads));
  }

 private:
  artefact::KernelSpec spec_;
  std::vector<std::span<const std::byte>> constants_;
};

}  // namespace

Result<std::unique_ptr<LoadedKernel>> load_strided(const artefact::KernelSpec& spec,
                                                   Constants constants) {
  if (spec.steps.size() != 1 || spec.outputs.size() != 1)
    return bad_spec(spec, "expected one step and one output");
  TESSERA_ASSIGN(auto fill, fill_value(spec, constants));
  return std::unique_ptr<LoadedKernel>(new MoveKernel(spec, constants, std::move(fill)));
}

Result<std::unique_ptr<LoadedKernel>> load_gather(const artefact::KernelSpec& spec,
                                                  Constants constants) {
  if (spec.steps.size() != 1 || spec.outputs.size() != 1 || spec.steps[0].inputs.size() != 2)
    return bad_spec(spec, "expected one step of two inputs and one output");
  const auto* indices = operand_decl(spec, spec.steps[0].inputs[1]);
  if (indices == nullptr || (indices->dtype != DType::kInt64 && indices->dtype != DType::kInt32))
    return bad_spec(spec, "expected int32 or int64 indices from outside");
  return std::unique_ptr<LoadedKernel>(new GatherKernel(spec, constants));
}

}  // namespace tessera::backends::cpu
