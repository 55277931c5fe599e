// Reductions along axes. Floats are folded in double and rounded once; integers wrap around, and
// means of them are cut towards zero. The empty reduction gives what the standard names: 0 for
// sums, 1 for products, the infinities (or the ends of the integer range) for Max and Min.

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <type_traits>

#include "base/truncate.h"
#include "ops/elementwise/value_arithmetic.h"
#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/reduce/reduce_util.h"
#include "ops/schema_util.h"
#include "ops/upgrade_util.h"

namespace tessera::ops {
namespace {

enum class Reduction : std::uint8_t {
  kSum,
  kMean,
  kMax,
  kMin,
  kProd,
  kL1,
  kL2,
  kSumSquare,
  kLogSum,
  kLogSumExp
};

template <typename C, typename Each>
C fold_extreme(const Each& each, bool largest) {
  using Limits = std::numeric_limits<C>;
  C result = largest ? Limits::lowest() : Limits::max();
  if constexpr (Limits::has_infinity) result = largest ? -Limits::infinity() : Limits::infinity();
  each([&](C x) {
    // NOLINTBEGIN(misc-redundant-expression): NaN stays
    if (result != result) return;
    if (x != x || (largest ? x > result : x < result)) result = x;
    // NOLINTEND(misc-redundant-expression)
  });
  return result;
}

template <typename Each>
double fold_log_sum_exp(const Each& each) {
  const auto highest = static_cast<double>(fold_extreme<double>(
      [&](const auto& visit) { each([&](auto x) { visit(static_cast<double>(x)); }); }, true));
  if (std::isinf(highest)) return highest;
  double sum = 0;
  each([&](auto x) { sum += std::exp(static_cast<double>(x) - highest); });
  return highest + std::log(sum);
}

// Sums and products in A: double, or uint64 for integers that wrap around.
template <Reduction R, typename A, typename Each>
A fold_sum(const Each& each) {
  A result = R == Reduction::kProd ? A{1} : A{0};
  each([&](auto x) {
    const auto wide = static_cast<A>(x);
    if constexpr (R == Reduction::kProd) {
      result *= wide;
    } else if constexpr (R == Reduction::kL1) {
      result += x < decltype(x){0} ? A{0} - wide : wide;
    } else if constexpr (R == Reduction::kL2 || R == Reduction::kSumSquare) {
      result += wide * wide;
    } else {
      result += wide;
    }
  });
  return result;
}

// Real results as C; integers are cut towards zero, and saturated.
template <typename C>
C rounded_to(double value) {
  if constexpr (std::is_floating_point_v<C>) {
    return static_cast<C>(value);
  } else {
    return saturating_truncate<C>(value);
  }
}

// One output from its elements; each(f) calls f for every one.
template <Reduction R, typename C, typename Each>
C fold(const Each& each, std::int64_t count) {
  constexpr bool kReal = std::is_floating_point_v<C>;
  using Exact = std::conditional_t<kReal, double, std::uint64_t>;
  if constexpr (R == Reduction::kMax || R == Reduction::kMin) {
    return fold_extreme<C>(each, R == Reduction::kMax);
  } else if constexpr (R == Reduction::kLogSumExp) {
    return rounded_to<C>(fold_log_sum_exp(each));
  } else if constexpr (R == Reduction::kL2) {
    return rounded_to<C>(std::sqrt(fold_sum<R, double>(each)));
  } else if constexpr (R == Reduction::kLogSum) {
    return rounded_to<C>(std::log(fold_sum<R, double>(each)));
  } else if constexpr (R == Reduction::kMean) {
    const auto sum = fold_sum<R, Exact>(each);
    if constexpr (kReal) return static_cast<C>(sum / static_cast<double>(count));
    if (count == 0) return C{0};
    // NOLINTBEGIN(bugprone-integer-division): only integers come here
    if constexpr (std::is_signed_v<C>)
      return static_cast<C>(static_cast<std::int64_t>(sum) / count);
    return static_cast<C>(static_cast<std::uint64_t>(sum) / static_cast<std::uint64_t>(count));
    // NOLINTEND(bugprone-integer-division)
  } else {
    return static_cast<C>(fold_sum<R, Exact>(each));
  }
}

std::optional<std::vector<std::int64_t>> listed_axes(const KernelContext& context) {
  const TensorView* axes = context.input(1);
  return axes != nullptr ? std::optional(to_int64_vector(*axes)) : std::nullopt;
}

template <typename T, typename Fold>
Status reduce_with(KernelContext& context, const TensorView& input, const Fold& fold_one) {
  TESSERA_ASSIGN(const auto axes,
                 reduction_axes(context.attributes(), listed_axes(context), input.dims.size()));
  const ReductionPlan plan =
      plan_reduction(input.dims, axes, context.attributes().get_int("keepdims", 1) != 0);
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, input.dtype, plan.output_dims));
  const std::int64_t grain =
      std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, plan.count));
  context.parallel_for(plan.outputs, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t base = first_offset(plan, i);
      const auto each = [&](const auto& visit) {
        for_each_folded(plan, base, [&](std::int64_t offset, std::int64_t) {
          visit(load(input.as<T>()[offset]));
        });
      };
      output.as<T>()[i] = store<T>(fold_one(each, plan.count));
    }
  });
  return {};
}

template <Reduction R>
Status reduce_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  if constexpr (R == Reduction::kMax || R == Reduction::kMin) {
    if (input->dtype == DType::kBool) {
      return reduce_with<bool>(context, *input, [](const auto& each, std::int64_t) {
        bool result = R == Reduction::kMin;
        each([&](bool x) { result = R == Reduction::kMax ? result || x : result && x; });
        return result;
      });
    }
  }
  return dispatch(NumericTypes{}, input->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    return reduce_with<T>(context, *input, [](const auto& each, std::int64_t count) {
      return fold<R, Compute<T>>(each, count);
    });
  });
}

// ---- Inference
// -------------------------------------------------------------------------------------------------

void fold_value(InferContext& context, DimFunction function) {
  const auto value = known_value(context.inputs[0]);
  const auto& shape = context.outputs[0].shape;
  if (function == nullptr || !value || value->elements.empty() || !shape || shape->size() > 1)
    return;
  if (shape->size() == 1 && shape->front() != Dim(1)) return;
  Dim result = value->elements[0];
  for (std::size_t i = 1; i < value->elements.size(); ++i) {
    const auto next = function(result, value->elements[i]);
    if (!next) return;
    result = *next;
  }
  set_value(context, 0, DimTensor{shape->empty(), {result}});
}

template <DimFunction Function>
Status infer_reduce(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* input, tensor_input(context, 0));
  const bool keep = context.attributes.get_int("keepdims", 1) != 0;
  if (has_input(context, 1)) TESSERA_TRY(require_dtype(context, 1, kInt64Type));
  set_output(context, 0, input->type.dtype, std::nullopt);
  if (!input->type.shape) return {};
  const Shape& shape = *input->type.shape;
  std::optional<std::vector<std::int64_t>> listed;
  if (has_input(context, 1)) {
    listed = known_ints(context.inputs[1]);
    if (!listed) {
      if (keep)
        set_output(context, 0, input->type.dtype, [&] {
          Shape fresh;
          for (std::size_t d = 0; d < shape.size(); ++d)
            fresh.push_back(context.fresh_symbol("reduce"));
          return fresh;
        }());
      return {};
    }
  }
  TESSERA_ASSIGN(const auto axes, reduction_axes(context.attributes, listed, shape.size()));
  Shape result;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (!std::binary_search(axes.begin(), axes.end(), static_cast<std::int64_t>(d))) {
      result.push_back(shape[d]);
    } else if (keep) {
      result.emplace_back(1);
    }
  }
  const bool folds = !axes.empty();
  set_output(context, 0, input->type.dtype, std::move(result));
  if (folds) fold_value(context, Function);
  return {};
}

Work reduce_work(const Attributes& /*attributes*/, std::span<const TensorSpec> inputs,
                 std::span<const TensorSpec> outputs) {
  Work work;
  if (!inputs.empty()) {
    work.flops = static_cast<double>(numel(inputs[0].dims));
    work.bytes_read = static_cast<double>(nbytes(inputs[0].dtype, inputs[0].dims));
  }
  for (const TensorSpec& output : outputs)
    work.bytes_written += static_cast<double>(nbytes(output.dtype, output.dims));
  return work;
}

Status upgrade_reduce(UpgradeNode& node, int /*opset*/, UpgradeBuilder& builder) {
  return ints_to_input(node, builder, "axes", 1);
}

struct Row {
  std::string_view name;
  std::vector<int> versions;
  int last_with_attribute;  // the last version whose axes are an attribute
  InferFn infer;
  KernelFn kernel;
  DTypeSet types = kNumericTypes;
};

}  // namespace

std::vector<OpSchema> reduce_ops() {
  using R = Reduction;
  const std::vector<int> common{1, 11, 13, 18};
  const std::vector<int> logarithmic{1, 11, 13, 18, 28};
  const std::vector<int> extreme{1, 11, 12, 13, 18, 20};
  const InferFn plain = infer_reduce<nullptr>;
  const Row rows[] = {
      {"ReduceSum", {1, 11, 13}, 11, infer_reduce<dim_add>, reduce_kernel<R::kSum>},
      {"ReduceMean", common, 13, plain, reduce_kernel<R::kMean>},
      {"ReduceMax", extreme, 13, infer_reduce<dim_max>, reduce_kernel<R::kMax>,
       kNumericTypes | kBoolType},
      {"ReduceMin", extreme, 13, infer_reduce<dim_min>, reduce_kernel<R::kMin>,
       kNumericTypes | kBoolType},
      {"ReduceProd", common, 13, infer_reduce<dim_mul>, reduce_kernel<R::kProd>},
      {"ReduceL1", common, 13, plain, reduce_kernel<R::kL1>},
      {"ReduceL2", common, 13, plain, reduce_kernel<R::kL2>},
      {"ReduceSumSquare", common, 13, plain, reduce_kernel<R::kSumSquare>},
      {"ReduceLogSum", logarithmic, 13, plain, reduce_kernel<R::kLogSum>},
      {"ReduceLogSumExp", logarithmic, 13, plain, reduce_kernel<R::kLogSumExp>},
  };
  std::vector<OpSchema> ops;
  for (const Row& row : rows) {
    OpSchema& op = ops.emplace_back();
    op.name = row.name;
    op.versions = row.versions;
    op.inputs = {required("data", "T"), optional("axes", "I")};
    op.outputs = {required("reduced", "T")};
    op.attributes = {attr("keepdims", AttrType::kInt),
                     attr("noop_with_empty_axes", AttrType::kInt)};
    op.type_variables = {{"T", row.types}, {"I", kInt64Type}};
    op.structure = Structure::kReduction;
    op.infer = row.infer;
    op.kernel = row.kernel;
    op.work = reduce_work;
    op.upgrades = {{1, row.last_with_attribute, upgrade_reduce}};
    op.shape_inputs = {1};
    op.unspecified =
        "real numbers are folded in fp64 and rounded once, but in fp32 by kernels of the cpu; "
        "integers wrap around, and their means "
        "are cut towards zero; a NaN stays";
  }
  return ops;
}

}  // namespace tessera::ops
