// "simd.reduce": reductions of a row-major fp32 tensor along any axes.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "backends/cpu/run/chunked_instance.h"
#include "backends/cpu/run/elementwise_simd.h"
#include "backends/cpu/run/kernels.h"
#include "backends/cpu/run/physical.h"
#include "backends/cpu/run/reduce_plan.h"

namespace tessera::backends::cpu {
namespace {

constexpr std::int64_t kGrain = 16384;

// What is accumulated, and what becomes of the total.
float start_of(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kMax: return -HUGE_VALF;
    case ReduceKind::kMin: return HUGE_VALF;
    case ReduceKind::kProd: return 1;
    default: return 0;
  }
}

double accumulate(ReduceKind kind, double total, double x) {
  switch (kind) {
    case ReduceKind::kMax: return x > total || std::isnan(x) ? x : total;
    case ReduceKind::kMin: return x < total || std::isnan(x) ? x : total;
    case ReduceKind::kProd: return total * x;
    case ReduceKind::kSumSquare:
    case ReduceKind::kL2: return total + x * x;
    case ReduceKind::kL1: return total + std::abs(x);
    case ReduceKind::kLogSumExp: return total + std::exp(x);
    default: return total + x;
  }
}

float finish(ReduceKind kind, double total, std::int64_t count) {
  switch (kind) {
    case ReduceKind::kMean: return static_cast<float>(total / static_cast<double>(count));
    case ReduceKind::kL2: return static_cast<float>(std::sqrt(total));
    case ReduceKind::kLogSum: return static_cast<float>(std::log(total));
    default: return static_cast<float>(total);
  }
}

// The input's dims in alternate runs: kept or reduced, with strides.
struct Loops {
  Dims kept, kept_strides;
  Dims reduced, reduced_strides;
  std::int64_t outputs = 1;
  std::int64_t inputs_each = 1;
};

Loops loops_of(const Dims& dims, const std::vector<bool>& reduced) {
  Loops loops;
  std::int64_t stride = 1;
  bool joined = false;
  for (std::size_t d = dims.size(); d-- > 0;) {
    Dims& sizes = reduced[d] ? loops.reduced : loops.kept;
    Dims& strides = reduced[d] ? loops.reduced_strides : loops.kept_strides;
    joined = !sizes.empty() && d + 1 < dims.size() && reduced[d + 1] == reduced[d];
    if (joined) {
      sizes.front() *= dims[d];
    } else {
      sizes.insert(sizes.begin(), dims[d]);
      strides.insert(strides.begin(), stride);
    }
    (reduced[d] ? loops.inputs_each : loops.outputs) *= dims[d];
    stride *= dims[d];
  }
  return loops;
}

std::int64_t offset_of(std::int64_t index, const Dims& sizes, const Dims& strides) {
  std::int64_t offset = 0;
  for (std::size_t d = sizes.size(); d-- > 0;) {
    offset += index % sizes[d] * strides[d];
    index /= sizes[d];
  }
  return offset;
}

bool is_fast(ReduceKind kind) {
  return kind == ReduceKind::kSum || kind == ReduceKind::kMean || kind == ReduceKind::kMax;
}

// One output element. LogSumExp is shifted by the largest input, so that it does not overflow.
float reduce_one(ReduceKind kind, const float* base, const Loops& loops) {
  const bool row = loops.reduced.size() == 1 && loops.reduced_strides[0] == 1;
  if (row && is_fast(kind)) {
    const auto count = static_cast<std::size_t>(loops.inputs_each);
    if (kind == ReduceKind::kMax) return simd_max(base, count);
    return finish(kind, simd_sum(base, count), loops.inputs_each);
  }
  double top = 0;
  if (kind == ReduceKind::kLogSumExp) {
    top = -HUGE_VAL;
    for (std::int64_t i = 0; i < loops.inputs_each; ++i)
      top = std::max<double>(top, base[offset_of(i, loops.reduced, loops.reduced_strides)]);
    if (!std::isfinite(top)) top = 0;
  }
  double total = start_of(kind);
  for (std::int64_t i = 0; i < loops.inputs_each; ++i) {
    const double x =
        static_cast<double>(base[offset_of(i, loops.reduced, loops.reduced_strides)]) - top;
    total = accumulate(kind, total, x);
  }
  if (kind == ReduceKind::kLogSumExp) return static_cast<float>(std::log(total) + top);
  return finish(kind, total, loops.inputs_each);
}

class ReduceKernel final : public LoadedKernel {
 public:
  explicit ReduceKernel(ReducePlan plan) : plan_(std::move(plan)) {}
  Result<std::unique_ptr<KernelInstance>> instantiate(const InstanceDims& dims,
                                                      int threads) const override {
    const Loops loops = loops_of(dims.inputs[0], plan_.reduced);
    const ReduceKind kind = plan_.kind;
    // Columns under each other are summed as vectors.
    const bool columns = is_fast(kind) && loops.reduced.size() == 1 &&
                         loops.reduced_strides[0] > 1 && loops.inputs_each > 0;
    const std::int64_t inner = columns ? loops.reduced_strides[0] : 1;
    const std::int64_t units = loops.outputs / std::max<std::int64_t>(inner, 1);
    const std::int64_t chunks = std::min(chunk_count(numel(dims.inputs[0]), kGrain, threads),
                                         std::max<std::int64_t>(units, 1));
    return chunked(chunks, [=](const ExecuteArgs& args, std::int64_t i, std::int64_t count,
                               std::byte*) {
      const ChunkRange range = chunk_range(units, count, i);
      const float* in = floats(args.inputs[0]);
      float* out = floats(args.outputs[0]);
      for (std::int64_t unit = range.begin; unit < range.end; ++unit) {
        if (!columns) {
          out[unit] = reduce_one(kind, in + offset_of(unit, loops.kept, loops.kept_strides), loops);
          continue;
        }
        const auto width = static_cast<std::size_t>(inner);
        const float* base = in + unit * loops.inputs_each * inner;
        float* to = out + unit * inner;
        if (kind == ReduceKind::kMax) {
          simd_column_maxima(base, static_cast<std::size_t>(loops.inputs_each), width, to);
        } else {
          simd_column_sums(base, static_cast<std::size_t>(loops.inputs_each), width, to);
        }
        if (kind == ReduceKind::kMean)
          run_simd(SimdOp::kScaleShift, to, nullptr, to, width,
                   1.0F / static_cast<float>(loops.inputs_each), 0);
      }
    });
  }

 private:
  ReducePlan plan_;
};

class ArgReduceKernel final : public LoadedKernel {
 public:
  explicit ArgReduceKernel(ReducePlan plan) : plan_(std::move(plan)) {}
  Result<std::unique_ptr<KernelInstance>> instantiate(const InstanceDims& dims,
                                                      int) const override {
    const auto axis = static_cast<std::size_t>(
        std::find(plan_.reduced.begin(), plan_.reduced.end(), true) - plan_.reduced.begin());
    const AxisSplit split = split_at_axis({}, dims.inputs[0], axis);
    if (split.axis == 0 && split.outer * split.inner > 0)
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("ArgMax and ArgMin: axis {} of {} has no elements", axis,
                              to_string(dims.inputs[0])));
    const bool largest = plan_.kind == ReduceKind::kArgMax;
    const bool last = plan_.select_last;
    return chunked(1, [=](const ExecuteArgs& args, std::int64_t, std::int64_t, std::byte*) {
      const float* in = floats(args.inputs[0]);
      auto* out = reinterpret_cast<std::int64_t*>(args.outputs[0]);
      for (std::int64_t at = 0; at < split.outer * split.inner; ++at) {
        const float* base = in + at / split.inner * split.axis * split.inner + at % split.inner;
        std::int64_t best = 0;
        for (std::int64_t i = 1; i < split.axis; ++i) {
          const float x = base[i * split.inner];
          const float y = base[best * split.inner];
          const bool y_is_nan = std::isnan(y);  // NaN is the most extreme of all, as in numpy
          const bool better = !y_is_nan && (std::isnan(x) || (largest ? x > y : x < y));
          const bool same = x == y || (y_is_nan && std::isnan(x));
          if (better || (last && same)) best = i;
        }
        out[at] = best;
      }
    });
  }

 private:
  ReducePlan plan_;
};

}  // namespace

Result<ReducePlan> plan_reduce(const artefact::KernelSpec& spec, Constants constants) {
  if (spec.steps.size() != 1 || spec.inputs.empty() || spec.outputs.size() != 1)
    return bad_spec(spec, "expected one step, an input and one output");
  const auto& step = spec.steps[0];
  struct Entry {
    std::string_view name;
    ReduceKind kind;
  };
  constexpr std::array kKinds = {
      Entry{"ReduceSum", ReduceKind::kSum},       Entry{"ReduceMean", ReduceKind::kMean},
      Entry{"ReduceMax", ReduceKind::kMax},       Entry{"ReduceMin", ReduceKind::kMin},
      Entry{"ReduceProd", ReduceKind::kProd},     Entry{"ReduceSumSquare", ReduceKind::kSumSquare},
      Entry{"ReduceL1", ReduceKind::kL1},         Entry{"ReduceL2", ReduceKind::kL2},
      Entry{"ReduceLogSum", ReduceKind::kLogSum}, Entry{"ReduceLogSumExp", ReduceKind::kLogSumExp},
      Entry{"ArgMax", ReduceKind::kArgMax},       Entry{"ArgMin", ReduceKind::kArgMin}};
  const auto entry = std::find_if(kKinds.begin(), kKinds.end(),
                                  [&](const Entry& e) { return e.name == step.op_type; });
  if (entry == kKinds.end())
    return bad_spec(spec, fmt::format("expected a reduction, found {}", step.op_type));
  if (spec.inputs[0].dtype != DType::kFp32)
    return fail(ErrorCode::kUnimplemented, fmt::format("{}: expected fp32, found {}", step.op_type,
                                                       to_string(spec.inputs[0].dtype)));
  ReducePlan plan;
  plan.kind = entry->kind;
  plan.select_last = step.attributes.get_int("select_last_index", 0) != 0;
  const auto rank = static_cast<std::int64_t>(spec.inputs[0].shape.size());
  plan.reduced.assign(static_cast<std::size_t>(rank), false);
  std::vector<std::int64_t> axes;
  if (plan.kind == ReduceKind::kArgMax || plan.kind == ReduceKind::kArgMin) {
    axes = {step.attributes.get_int("axis", 0)};
    if (rank == 0)
      return fail(ErrorCode::kUnimplemented,
                  fmt::format("{}: expected a rank of 1 or more, found a scalar", step.op_type));
  } else {
    TESSERA_ASSIGN(axes, constant_ints(spec, constants, step_input(step, 1)));
    if (axes.empty() && step.attributes.get_int("noop_with_empty_axes", 0) != 0) {
      return fail(
          ErrorCode::kUnimplemented,
          fmt::format("{}: attribute 'noop_with_empty_axes': expected axes beside it, found none",
                      step.op_type));
    }
    if (axes.empty()) {
      for (std::int64_t d = 0; d < rank; ++d) axes.push_back(d);
    }
  }
  for (const std::int64_t axis : axes) {
    if (axis < -rank || axis >= rank)
      return bad_spec(spec, fmt::format("axes: expected values from {} to {}, found {}", -rank,
                                        rank - 1, axis));
    plan.reduced[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)] = true;
  }
  return plan;
}

Result<std::unique_ptr<LoadedKernel>> load_reduce(const artefact::KernelSpec& spec,
                                                  Constants constants) {
  TESSERA_ASSIGN(auto plan, plan_reduce(spec, constants));
  if (plan.kind == ReduceKind::kArgMax || plan.kind == ReduceKind::kArgMin)
    return std::unique_ptr<LoadedKernel>(new ArgReduceKernel(std::move(plan)));
  return std::unique_ptr<LoadedKernel>(new ReduceKernel(std::move(plan)));
}

}  // namespace tessera::backends::cpu
