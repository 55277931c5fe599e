// Operators that choose elements by their values: NonZero, Compress, TopK and Unique.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numeric>
#include <type_traits>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/movement/movement_util.h"
#include "ops/schema_util.h"
#include "ops/upgrade_util.h"

namespace tessera::ops {
namespace {

using OrderedTypes = decltype(join(
    NumericTypes{}, Types<bool, std::string, std::complex<float>, std::complex<double>>{}));
constexpr DTypeSet kOrderedTypes = kNumericTypes | kBoolType | kStringType | kComplexTypes;

// An order of all elements in which NaN comes after every number; complex ones by their real part
// first.
template <typename Real>
bool comes_before(const std::complex<Real>& a, const std::complex<Real>& b);
template <typename T>
bool comes_before(const T& a, const T& b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a)) return false;
    if (std::isnan(b)) return true;
  }
  return a < b;
}
template <typename Real>
bool comes_before(const std::complex<Real>& a, const std::complex<Real>& b) {
  if (comes_before(a.real(), b.real())) return true;
  return !comes_before(b.real(), a.real()) && comes_before(a.imag(), b.imag());
}

// ---- NonZero
// -------------------------------------------------------------------------------------------------

Status infer_non_zero(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* input, tensor_input(context, 0));
  const auto& shape = input->type.shape;
  const Dim rank =
      shape ? Dim(static_cast<std::int64_t>(shape->size())) : context.fresh_symbol("rank");
  set_output(context, 0, DType::kInt64, Shape{rank, context.fresh_symbol("nonzero")});
  return {};
}

Status non_zero_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  std::vector<std::int64_t> found;
  TESSERA_TRY(dispatch(OrderedTypes{}, input->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    for (std::int64_t i = 0; i < input->numel(); ++i) {
      if (load(input->as<T>()[i]) != Compute<T>{}) found.push_back(i);
    }
    return {};
  }));
  const auto count = static_cast<std::int64_t>(found.size());
  const auto rank = static_cast<std::int64_t>(input->dims.size());
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, DType::kInt64, {rank, count}));
  const Dims strides = row_major_strides(input->dims);
  for (std::int64_t d = 0; d < rank; ++d) {
    const auto axis = static_cast<std::size_t>(d);
    for (std::int64_t i = 0; i < count; ++i)
      output.as<std::int64_t>()[d * count + i] =
          found[static_cast<std::size_t>(i)] / strides[axis] % input->dims[axis];
  }
  return {};
}

// ---- Compress
// -------------------------------------------------------------------------------------------------

Status infer_compress(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* input, tensor_input(context, 0));
  TESSERA_TRY(require_dtype(context, 1, kBoolType));
  TESSERA_TRY(require_rank(context, 1, 1));
  const Dim count = context.fresh_symbol("compress");
  if (!context.attributes.has("axis")) {
    set_output(context, 0, input->type.dtype, Shape{count});
    return {};
  }
  std::optional<Shape> shape = input->type.shape;
  if (shape) {
    TESSERA_ASSIGN(const std::int64_t axis,
                   normalize_axis(context.attributes.get_int("axis", 0),
                                  static_cast<std::int64_t>(shape->size()), "attribute 'axis'"));
    (*shape)[static_cast<std::size_t>(axis)] = count;
  }
  set_output(context, 0, input->type.dtype, std::move(shape));
  return {};
}

Status compress_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* condition, kernel_input(context, 1));
  const bool flat = !context.attributes().has("axis");
  Dims dims = flat ? Dims{input->numel()} : input->dims;
  std::int64_t axis = 0;
  if (!flat) {
    TESSERA_ASSIGN(axis, kernel_axis(context, "axis", 0, dims.size()));
  }
  const AxisSplit split = split_at(dims, axis);
  if (condition->numel() > split.size) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("Compress: expected at most {} conditions for axis {}, found {}",
                            split.size, axis, condition->numel()));
  }
  std::vector<std::int64_t> kept;
  for (std::int64_t i = 0; i < condition->numel(); ++i) {
    if (condition->as<bool>()[i]) kept.push_back(i);
  }
  const auto count = static_cast<std::int64_t>(kept.size());
  dims[static_cast<std::size_t>(axis)] = count;
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, input->dtype, dims));
  return dispatch_elements(input->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    for (std::int64_t row = 0; row < split.outer * count; ++row) {
      const std::int64_t from =
          row / count * split.size + kept[static_cast<std::size_t>(row % count)];
      std::copy_n(input->as<T>() + from * split.inner, split.inner,
                  output.as<T>() + row * split.inner);
    }
    return {};
  });
}

// ---- TopK
// -------------------------------------------------------------------------------------------------

Status infer_top_k(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* input, tensor_input(context, 0));
  TESSERA_TRY(require_dtype(context, 1, kInt64Type));
  std::optional<Shape> shape = input->type.shape;
  if (shape) {
    TESSERA_ASSIGN(const std::int64_t axis,
                   normalize_axis(context.attributes.get_int("axis", -1),
                                  static_cast<std::int64_t>(shape->size()), "attribute 'axis'"));
    const auto k = known_value(context.inputs[1]);
    if (k && k->elements.size() != 1)
      return input_error(context, 1,
                         fmt::format("expected one element, found {}", k->elements.size()));
    Dim& size = (*shape)[static_cast<std::size_t>(axis)];
    const auto number = k ? k->elements[0].constant() : std::nullopt;
    if (number && (*number < 0 || *number > size.constant().value_or(INT64_MAX))) {
      return input_error(
          context, 1,
          fmt::format("expected a value from 0 to {}, found {}", size.to_string(), *number));
    }
    size = k ? k->elements[0] : context.fresh_symbol("k");
  }
  set_output(context, 1, DType::kInt64, shape);
  set_output(context, 0, input->type.dtype, std::move(shape));
  return {};
}

// The first `k` of `order` become the positions of the k largest (smallest) elements of a line;
// equal ones in order of position.
template <typename T>
void select_top(const T* line, std::int64_t step, bool largest, std::int64_t k,
                std::vector<std::int64_t>& order) {
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + k, order.end(),
                    [&](std::int64_t i, std::int64_t j) {
                      const auto a = load(line[i * step]);
                      const auto b = load(line[j * step]);
                      const bool before = largest ? comes_before(b, a) : comes_before(a, b);
                      const bool after = largest ? comes_before(a, b) : comes_before(b, a);
                      return before || (!after && i < j);
                    });
}

Status top_k_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* k_input, kernel_input(context, 1));
  TESSERA_ASSIGN(const std::int64_t axis, kernel_axis(context, "axis", -1, input->dims.size()));
  const AxisSplit split = split_at(input->dims, axis);
  const std::int64_t k = k_input->numel() == 1 ? to_int64_vector(*k_input)[0] : -1;
  if (k < 0 || k > split.size) {
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("TopK: input 'K': expected one value from 0 to {}, found {}", split.size,
                    k_input->numel() == 1 ? std::to_string(k) : to_string(k_input->dims)));
  }
  Dims dims = input->dims;
  dims[static_cast<std::size_t>(axis)] = k;
  TESSERA_ASSIGN(const MutableTensorView values, context.output(0, input->dtype, dims));
  std::int64_t* positions = nullptr;
  if (context.output_count() > 1) {
    TESSERA_ASSIGN(const MutableTensorView indices, context.output(1, DType::kInt64, dims));
    positions = indices.as<std::int64_t>();
  }
  const bool largest = context.attributes().get_int("largest", 1) != 0;
  return dispatch(NumericTypes{}, input->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    const std::int64_t grain =
        std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, split.size * 8));
    context.parallel_for(
        split.outer * split.inner, grain, [&](std::int64_t begin, std::int64_t end) {
          std::vector<std::int64_t> order(static_cast<std::size_t>(split.size));
          for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t outer = i / split.inner;
            const std::int64_t inner = i % split.inner;
            const T* line = input->as<T>() + outer * split.size * split.inner + inner;
            select_top(line, split.inner, largest, k, order);
            for (std::int64_t j = 0; j < k; ++j) {
              const std::int64_t to = (outer * k + j) * split.inner + inner;
              values.as<T>()[to] = line[order[static_cast<std::size_t>(j)] * split.inner];
              if (positions != nullptr) positions[to] = order[static_cast<std::size_t>(j)];
            }
          }
        });
    return {};
  });
}

// k becomes an input.
Status upgrade_top_k(UpgradeNode& node, int /*opset*/, UpgradeBuilder& builder) {
  return ints_to_input(node, builder, "k", 1);
}

// ---- Unique
// -------------------------------------------------------------------------------------------------

Status infer_unique(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* input, tensor_input(context, 0));
  const Dim count = context.fresh_symbol("unique");
  std::optional<Shape> shape = Shape{count};
  if (context.attributes.has("axis")) {
    shape = input->type.shape;
    if (shape) {
      TESSERA_ASSIGN(const std::int64_t axis,
                     normalize_axis(context.attributes.get_int("axis", 0),
                                    static_cast<std::int64_t>(shape->size()), "attribute 'axis'"));
      (*shape)[static_cast<std::size_t>(axis)] = count;
    }
  }
  set_output(context, 0, input->type.dtype, std::move(shape));
  set_output(context, 1, DType::kInt64, Shape{count});
  set_output(context, 2, DType::kInt64, Shape{context.fresh_symbol("inverse")});
  set_output(context, 3, DType::kInt64, Shape{count});
  return {};
}

// Which slices along an axis are equal: the slices' groups, each known by its first slice.
struct Groups {
  std::vector<std::int64_t> first;  // slice of each group, in the order of the output
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> inverse;  // group of each slice
};

// `compare(i, j)` is below 0, 0 or above 0.
template <typename Compare>
Groups group_slices(std::int64_t size, bool sorted, const Compare& compare) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t i, std::int64_t j) { return compare(i, j) < 0; });
  std::vector<std::vector<std::int64_t>> groups;
  for (const std::int64_t slice : order) {
    if (groups.empty() || compare(groups.back().front(), slice) != 0) groups.emplace_back();
    groups.back().push_back(slice);
  }
  if (!sorted)
    std::sort(groups.begin(), groups.end(),
              [](const auto& a, const auto& b) { return a.front() < b.front(); });
  Groups result;
  result.inverse.resize(static_cast<std::size_t>(size));
  for (std::size_t g = 0; g < groups.size(); ++g) {
    result.first.push_back(groups[g].front());
    result.counts.push_back(static_cast<std::int64_t>(groups[g].size()));
    for (const std::int64_t slice : groups[g])
      result.inverse[static_cast<std::size_t>(slice)] = static_cast<std::int64_t>(g);
  }
  return result;
}

template <typename T>
Groups unique_groups(const TensorView& input, const AxisSplit& split, bool sorted) {
  return group_slices(split.size, sorted, [&](std::int64_t i, std::int64_t j) {
    for (std::int64_t o = 0; o < split.outer; ++o) {
      for (std::int64_t k = 0; k < split.inner; ++k) {
        const auto& a = load(input.as<T>()[(o * split.size + i) * split.inner + k]);
        const auto& b = load(input.as<T>()[(o * split.size + j) * split.inner + k]);
        if (comes_before(a, b)) return -1;
        if (comes_before(b, a)) return 1;
      }
    }
    return 0;
  });
}

Status write_ints(KernelContext& context, std::size_t index,
                  const std::vector<std::int64_t>& values) {
  if (context.output_count() <= index) return {};
  TESSERA_ASSIGN(const MutableTensorView output,
                 context.output(index, DType::kInt64, {static_cast<std::int64_t>(values.size())}));
  std::copy(values.begin(), values.end(), output.as<std::int64_t>());
  return {};
}

Status unique_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  const bool flat = !context.attributes().has("axis");
  Dims dims = flat ? Dims{input->numel()} : input->dims;
  std::int64_t axis = 0;
  if (!flat) {
    TESSERA_ASSIGN(axis, kernel_axis(context, "axis", 0, dims.size()));
  }
  const AxisSplit split = split_at(dims, axis);
  const bool sorted = context.attributes().get_int("sorted", 1) != 0;
  Groups groups;
  TESSERA_TRY(dispatch(OrderedTypes{}, input->dtype, [&](auto tag) -> Status {
    groups = unique_groups<typename decltype(tag)::type>(*input, split, sorted);
    return {};
  }));
  const auto count = static_cast<std::int64_t>(groups.first.size());
  dims[static_cast<std::size_t>(axis)] = count;
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, input->dtype, dims));
  TESSERA_TRY(dispatch_elements(input->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    for (std::int64_t row = 0; row < split.outer * count; ++row) {
      const std::int64_t from =
          row / count * split.size + groups.first[static_cast<std::size_t>(row % count)];
      std::copy_n(input->as<T>() + from * split.inner, split.inner,
                  output.as<T>() + row * split.inner);
    }
    return {};
  }));
  TESSERA_TRY(write_ints(context, 1, groups.first));
  TESSERA_TRY(write_ints(context, 2, groups.inverse));
  return write_ints(context, 3, groups.counts);
}

OpSchema selection(std::string_view name, std::vector<int> versions, InferFn infer,
                   KernelFn kernel) {
  OpSchema op;
  op.name = name;
  op.versions = std::move(versions);
  op.structure = Structure::kOther;
  op.infer = infer;
  op.kernel = kernel;
  return op;
}

}  // namespace

std::vector<OpSchema> select_ops() {
  OpSchema non_zero = selection("NonZero", {9, 13}, infer_non_zero, non_zero_kernel);
  non_zero.inputs = {required("X", "T")};
  non_zero.outputs = {required("Y", "I")};
  non_zero.type_variables = {{"T", kOrderedTypes}, {"I", kInt64Type}};
  non_zero.data_dependent_shape = true;
  non_zero.unspecified = "a NaN is not zero; of texts the one without characters is";

  OpSchema compress = selection("Compress", {9, 11, 28}, infer_compress, unpacked<compress_kernel>);
  compress.inputs = {required("input", "T"), required("condition", "T1")};
  compress.outputs = {required("output", "T")};
  compress.unspecified = "more conditions than elements along the axis are an error";
  compress.attributes = {attr("axis", AttrType::kInt)};
  compress.type_variables = {{"T", kAllTypes}, {"T1", kBoolType}};
  compress.structure = Structure::kMovement;
  compress.work = movement_work;
  compress.data_dependent_shape = true;

  OpSchema top_k = selection("TopK", {1, 10, 11, 24}, infer_top_k, top_k_kernel);
  top_k.inputs = {required("X", "T"), required("K", "I")};
  top_k.outputs = {required("Values", "T"), required("Indices", "I")};
  top_k.attributes = {attr("axis", AttrType::kInt), attr("largest", AttrType::kInt),
                      attr("sorted", AttrType::kInt)};
  top_k.type_variables = {{"T", kNumericTypes}, {"I", kInt64Type}};
  top_k.upgrades = {{1, 1, upgrade_top_k}};
  top_k.shape_inputs = {1};

  top_k.unspecified =
      "NaN comes behind every number; of equal elements the one with the lower index comes first";
  OpSchema unique = selection("Unique", {11, 28}, infer_unique, unique_kernel);
  unique.inputs = {required("X", "T")};
  unique.outputs = {required("Y", "T"), optional("indices", "I"), optional("inverse_indices", "I"),
                    optional("counts", "I")};
  unique.attributes = {attr("axis", AttrType::kInt), attr("sorted", AttrType::kInt)};
  unique.type_variables = {{"T", kOrderedTypes}, {"I", kInt64Type}};
  unique.data_dependent_shape = true;
  unique.unspecified = "all NaN are one element, behind every number";
  return {non_zero, compress, top_k, unique};
}

}  // namespace tessera::ops
