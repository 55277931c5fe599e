// Operators that make tensors: Constant, ConstantOfShape, Range, EyeLike and OneHot.

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <type_traits>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/movement/movement_util.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

constexpr std::int64_t kMaxKnownElements = 1024;

void set_constant(InferContext& context, const Tensor& tensor) {
  set_output(context, 0, tensor.dtype(), to_shape(tensor.dims()));
  InferInput input;
  input.present = true;
  input.constant = &tensor;
  set_value(context, 0, known_value(input));
}

Work write_only_work(const Attributes& /*attributes*/, std::span<const TensorSpec> /*inputs*/,
                     std::span<const TensorSpec> outputs) {
  Work work;
  for (const TensorSpec& output : outputs)
    work.bytes_written += static_cast<double>(nbytes(output.dtype, output.dims));
  return work;
}

// ---- Constant
// -------------------------------------------------------------------------------------------------

// The tensor that the one attribute of a Constant stands for.
Result<Tensor> constant_of(const Attributes& attributes) {
  std::size_t found = 0;
  Result<Tensor> tensor = fail(ErrorCode::kInvalidArgument, "");
  for (const auto& [name, value] : attributes.entries()) {
    if (name.rfind("value", 0) != 0) continue;
    ++found;
    if (const auto* dense = std::get_if<Tensor>(&value)) tensor = *dense;
    if (const auto* one = std::get_if<std::int64_t>(&value))
      tensor = Tensor::of<std::int64_t>(DType::kInt64, {}, {one, 1});
    if (const auto* one = std::get_if<float>(&value))
      tensor = Tensor::of<float>(DType::kFp32, {}, {one, 1});
    if (const auto* one = std::get_if<std::string>(&value))
      tensor = Tensor::of<std::string>(DType::kString, {}, {one, 1});
    const auto vector = [](const auto& list) {
      return Dims{static_cast<std::int64_t>(list.size())};
    };
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value))
      tensor = Tensor::of<std::int64_t>(DType::kInt64, vector(*list), *list);
    if (const auto* list = std::get_if<std::vector<float>>(&value))
      tensor = Tensor::of<float>(DType::kFp32, vector(*list), *list);
    if (const auto* list = std::get_if<std::vector<std::string>>(&value))
      tensor = Tensor::of<std::string>(DType::kString, vector(*list), *list);
  }
  if (found == 1 && tensor) return tensor;
  return fail(
      ErrorCode::kInvalidArgument,
      fmt::format("expected exactly one of the attributes 'value', 'value_int', ..., found {}",
                  found));
}

Status infer_constant(InferContext& context) {
  TESSERA_ASSIGN(const Tensor tensor, constant_of(context.attributes));
  set_constant(context, tensor);
  return {};
}

Status constant_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const Tensor tensor, constant_of(context.attributes()));
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, tensor.dtype(), tensor.dims()));
  copy_elements(tensor.view(), output);
  return {};
}

// ---- ConstantOfShape
// -------------------------------------------------------------------------------------------------

// One element of any dtype; fp32 zero where the attribute is absent.
Result<Tensor> fill_value(const Attributes& attributes) {
  const AttributeValue* value = attributes.find("value");
  if (value == nullptr) return Tensor::zeros(DType::kFp32, {1});
  const Tensor* tensor = std::get_if<Tensor>(value);
  if (tensor != nullptr && tensor->numel() == 1) return *tensor;
  return attribute_error(
      "value", fmt::format("expected a tensor of one element, found {}", to_string(*value)));
}

Status infer_constant_of_shape(InferContext& context) {
  TESSERA_TRY(require_dtype(context, 0, kInt64Type));
  TESSERA_TRY(require_rank(context, 0, 1));
  TESSERA_ASSIGN(const Tensor fill, fill_value(context.attributes));
  const auto target = known_value(context.inputs[0]);
  if (!target) {
    const auto& shape = context.inputs[0].type.shape;
    const auto rank = shape ? shape->front().constant() : std::nullopt;
    std::optional<Shape> fresh;
    for (std::int64_t i = 0; rank && i < *rank; ++i) {
      if (!fresh) fresh.emplace();
      fresh->push_back(context.fresh_symbol("fill"));
    }
    if (rank == 0) fresh.emplace();
    set_output(context, 0, fill.dtype(), std::move(fresh));
    return {};
  }
  for (const Dim& dim : target->elements) {
    if (dim.constant().value_or(0) < 0)
      return input_error(context, 0,
                         fmt::format("expected sizes of 0 or more, found {}", dim.to_string()));
  }
  set_output(context, 0, fill.dtype(), target->elements);
  InferInput one;
  one.present = true;
  one.constant = &fill;
  const auto element = known_value(one);
  const bool scalar = target->elements.empty();
  const auto count = scalar ? std::optional<std::int64_t>(1) : target->elements.front().constant();
  if (element && target->elements.size() <= 1 && count && *count <= kMaxKnownElements) {
    set_value(context, 0,
              DimTensor{scalar,
                        std::vector<Dim>(static_cast<std::size_t>(*count), element->elements[0])});
  }
  return {};
}

Status constant_of_shape_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* shape, kernel_input(context, 0));
  TESSERA_ASSIGN(const Tensor fill, fill_value(context.attributes()));
  const Dims dims = to_int64_vector(*shape);
  TESSERA_TRY(checked_nbytes(fill.dtype(), dims).map([](std::int64_t) {}));
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, fill.dtype(), dims));
  if (const int bits = bits_of(fill.dtype()); bits > 0 && bits < 8) {
    if (output.numel() == 0) return {};
    output.as<std::uint8_t>()[output.nbytes() - 1] = 0;  // what no element covers
    for (std::int64_t i = 0; i < output.numel(); ++i)
      packed_set(output.data, i, bits, packed_get(fill.data(), 0, bits));
    return {};
  }
  return dispatch_elements(fill.dtype(), [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    context.parallel_for(output.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      std::fill(output.as<T>() + begin, output.as<T>() + end, *static_cast<const T*>(fill.data()));
    });
    return {};
  });
}

// ---- Range
// -------------------------------------------------------------------------------------------------

constexpr DTypeSet kRangeTypes = dtype_set({DType::kFp32, DType::kFp64, DType::kFp16, DType::kBf16,
                                            DType::kInt16, DType::kInt32, DType::kInt64});
using RangeTypes = Types<float, double, Fp16, Bf16, std::int16_t, std::int32_t, std::int64_t>;

// Elements from start up to limit (not included): ceil((limit - start) / delta), not below 0.
template <typename T>
Result<std::int64_t> range_count(T start, T limit, T delta) {
  if (delta == T{0})
    return fail(ErrorCode::kInvalidArgument,
                "Range: input 'delta': expected a number other than 0, found 0");
  if constexpr (std::is_integral_v<T>) {
    if (delta > 0 ? limit <= start : limit >= start) return 0;
    const auto a = static_cast<std::uint64_t>(start);
    const auto b = static_cast<std::uint64_t>(limit);
    const auto step = static_cast<std::uint64_t>(delta);
    const std::uint64_t distance = delta > 0 ? b - a : a - b;
    const std::uint64_t count = (distance - 1) / (delta > 0 ? step : std::uint64_t{0} - step) + 1;
    if (count <= INT64_MAX) return static_cast<std::int64_t>(count);
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("Range: expected a number of elements that fits 64 bits, found {}", count));
  } else {
    const double count = std::ceil((static_cast<double>(limit) - static_cast<double>(start)) /
                                   static_cast<double>(delta));
    if (count < 9e18) return static_cast<std::int64_t>(std::max(count, 0.0));
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("Range: expected a number of elements that fits 64 bits, found {}", count));
  }
}

Result<std::int64_t> range_count(const TensorView& start, const TensorView& limit,
                                 const TensorView& delta) {
  if (start.numel() != 1 || limit.numel() != 1 || delta.numel() != 1 ||
      start.dtype != limit.dtype || start.dtype != delta.dtype) {
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("Range: expected three scalars of one dtype, found {} {}, {} {} and {} {}",
                    to_string(start.dtype), to_string(start.dims), to_string(limit.dtype),
                    to_string(limit.dims), to_string(delta.dtype), to_string(delta.dims)));
  }
  std::int64_t count = 0;
  TESSERA_TRY(dispatch(RangeTypes{}, start.dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    TESSERA_ASSIGN(count, range_count<Compute<T>>(load(*start.as<T>()), load(*limit.as<T>()),
                                                  load(*delta.as<T>())));
    return {};
  }));
  return count;
}

// The count where start and limit are expressions and delta is a number.
std::optional<Dim> symbolic_range_count(const Dim& start, const Dim& limit, std::int64_t delta) {
  if (delta == 0 || delta == INT64_MIN) return std::nullopt;
  const Dim count =
      delta > 0 ? ceildiv(limit - start, Dim(delta)) : ceildiv(start - limit, Dim(-delta));
  return count.range({}).min >= 0 ? count : max(count, 0);
}

// fp16 and bf16 are computed in fp32, which the attribute could change.
Status check_stash_type(const Attributes& attributes) {
  const std::int64_t type = attributes.get_int("stash_type", 1);
  if (type == 1) return {};
  return attribute_error("stash_type", fmt::format("expected 1 (fp32), found {}", type));
}

Status infer_range(InferContext& context) {
  TESSERA_TRY(check_stash_type(context.attributes));
  std::array<std::optional<DimTensor>, 3> values;
  bool constants = true;
  for (std::size_t i = 0; i < 3; ++i) {
    TESSERA_TRY(require_same_dtype(context, i, 0));
    values[i] = known_value(context.inputs[i]);
    if (values[i] && values[i]->elements.size() != 1)
      return input_error(
          context, i,
          fmt::format("expected a scalar, found {} elements", values[i]->elements.size()));
    constants = constants && context.inputs[i].constant != nullptr;
  }
  std::optional<Dim> count;
  const auto deltas = known_ints(context.inputs[2]);
  if (constants) {
    TESSERA_ASSIGN(const std::int64_t number, range_count(context.inputs[0].constant->view(),
                                                          context.inputs[1].constant->view(),
                                                          context.inputs[2].constant->view()));
    count = Dim(number);
  } else if (values[0] && values[1] && deltas) {
    count = symbolic_range_count(values[0]->elements[0], values[1]->elements[0], deltas->front());
  }
  if (!count) count = context.fresh_symbol("range");
  set_output(context, 0, context.inputs[0].type.dtype, Shape{*count});
  const auto number = count->constant();
  if (!values[0] || !deltas || !number || *number > kMaxKnownElements) return {};
  DimTensor result;
  for (std::int64_t i = 0; i < *number; ++i)
    result.elements.push_back(values[0]->elements[0] + Dim(i) * Dim(deltas->front()));
  set_value(context, 0, std::move(result));
  return {};
}

Status range_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* start, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* limit, kernel_input(context, 1));
  TESSERA_ASSIGN(const TensorView* delta, kernel_input(context, 2));
  TESSERA_ASSIGN(const std::int64_t count, range_count(*start, *limit, *delta));
  TESSERA_TRY(checked_nbytes(start->dtype, {count}).map([](std::int64_t) {}));
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, start->dtype, {count}));
  return dispatch(RangeTypes{}, start->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    const C first = load(*start->as<T>());
    const C step = load(*delta->as<T>());
    for (std::int64_t i = 0; i < count; ++i) {
      if constexpr (std::is_integral_v<T>) {
        output.as<T>()[i] =
            static_cast<T>(static_cast<std::uint64_t>(first) +
                           static_cast<std::uint64_t>(i) * static_cast<std::uint64_t>(step));
      } else {
        output.as<T>()[i] = store<T>(first + static_cast<C>(i) * step);
      }
    }
    return {};
  });
}

// ---- EyeLike
// -------------------------------------------------------------------------------------------------

DType eye_dtype(const Attributes& attributes, DType input) {
  const std::int64_t code = attributes.get_int("dtype", static_cast<std::int64_t>(input));
  return code > 0 && code < kDTypeCount ? static_cast<DType>(code) : DType::kUndefined;
}

Status infer_eye_like(InferContext& context) {
  TESSERA_TRY(require_rank(context, 0, 2));
  const DType dtype = eye_dtype(context.attributes, context.inputs[0].type.dtype);
  if (((kNumericTypes | kBoolType) & dtype_bit(dtype)) == 0) {
    return attribute_error("dtype", fmt::format("expected the number of a numeric dtype, found {}",
                                                context.attributes.get_int("dtype", 0)));
  }
  set_output(context, 0, dtype, context.inputs[0].type.shape);
  return {};
}

Status eye_like_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  if (input->dims.size() != 2)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("EyeLike: expected rank 2, found {}", to_string(input->dims)));
  TESSERA_ASSIGN(const MutableTensorView output,
                 context.output(0, eye_dtype(context.attributes(), input->dtype), input->dims));
  const std::int64_t k = context.attributes().get_int("k", 0);
  return dispatch(decltype(join(NumericTypes{}, Types<bool>{})){}, output.dtype,
                  [&](auto tag) -> Status {
                    using T = typename decltype(tag)::type;
                    std::fill_n(output.as<T>(), output.numel(), T{});
                    for (std::int64_t i = 0; i < input->dims[0]; ++i) {
                      if (k < -i || k >= input->dims[1] - i) continue;
                      output.as<T>()[i * input->dims[1] + i + k] = store<T>(Compute<T>(1));
                    }
                    return {};
                  });
}

// ---- OneHot
// -------------------------------------------------------------------------------------------------

Status infer_one_hot(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* indices, tensor_input(context, 0));
  TESSERA_ASSIGN(const InferInput* depth_input, tensor_input(context, 1));
  TESSERA_ASSIGN(const InferInput* values, tensor_input(context, 2));
  TESSERA_TRY(require_rank(context, 2, 1));
  set_output(context, 0, values->type.dtype, std::nullopt);
  if (!indices->type.shape) return {};
  Shape shape = *indices->type.shape;
  TESSERA_ASSIGN(const std::int64_t axis,
                 normalize_axis(context.attributes.get_int("axis", -1),
                                static_cast<std::int64_t>(shape.size()) + 1, "attribute 'axis'"));
  const auto depth = known_value(*depth_input);
  std::optional<Dim> size;
  if (depth && depth->elements.size() == 1) size = depth->elements[0];
  if (!size && depth_input->constant != nullptr && depth_input->constant->numel() == 1) {
    std::int64_t number = 0;
    cast_elements(depth_input->constant->reshaped({}).view(), {DType::kInt64, {}, &number}, true);
    size = Dim(number);
  }
  if (size && size->constant().value_or(0) < 0)
    return input_error(context, 1,
                       fmt::format("expected a depth of 0 or more, found {}", size->to_string()));
  shape.insert(shape.begin() + axis, size ? *size : context.fresh_symbol("depth"));
  set_output(context, 0, values->type.dtype, std::move(shape));
  return {};
}

Status one_hot_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* indices, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* depth_input, kernel_input(context, 1));
  TESSERA_ASSIGN(const TensorView* values, kernel_input(context, 2));
  if (depth_input->numel() != 1 || values->numel() != 2) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("OneHot: expected a scalar depth and two values, found {} and {}",
                            to_string(depth_input->dims), to_string(values->dims)));
  }
  std::int64_t depth = 0;
  cast_elements({depth_input->dtype, {}, depth_input->data}, {DType::kInt64, {}, &depth}, true);
  TESSERA_ASSIGN(const std::int64_t axis,
                 kernel_axis(context, "axis", -1, indices->dims.size() + 1));
  if (depth < 0)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("OneHot: expected a depth of 0 or more, found {}", depth));
  Dims dims = indices->dims;
  dims.insert(dims.begin() + axis, depth);
  TESSERA_TRY(checked_nbytes(values->dtype, dims).map([](std::int64_t) {}));
  TESSERA_ASSIGN(Tensor positions, Tensor::zeros(DType::kInt64, indices->dims));
  cast_elements(*indices, positions.mutable_view(), true);
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, values->dtype, dims));
  const AxisSplit split = split_at(dims, axis);
  return dispatch_elements(values->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    std::fill_n(output.as<T>(), output.numel(), values->as<T>()[0]);
    const auto at = positions.span<std::int64_t>();
    for (std::int64_t i = 0; i < positions.numel(); ++i) {
      const std::int64_t position = at[static_cast<std::size_t>(i)];
      if (position < -depth || position >= depth) continue;  // no element is on
      const std::int64_t row =
          i / split.inner * depth + (position < 0 ? position + depth : position);
      output.as<T>()[row * split.inner + i % split.inner] = values->as<T>()[1];
    }
    return {};
  });
}

OpSchema generator(std::string_view name, std::vector<int> versions, InferFn infer,
                   KernelFn kernel) {
  OpSchema op;
  op.name = name;
  op.versions = std::move(versions);
  op.outputs = {required("output", "T2")};
  op.structure = Structure::kMovement;
  op.infer = infer;
  op.kernel = kernel;
  op.work = write_only_work;
  return op;
}

}  // namespace

std::vector<OpSchema> generate_ops() {
  OpSchema constant = generator("Constant", {1, 9, 11, 12, 13, 19, 21, 23, 24, 25}, infer_constant,
                                constant_kernel);
  constant.attributes = {
      attr("value", AttrType::kTensor),         attr("value_int", AttrType::kInt),
      attr("value_ints", AttrType::kInts),      attr("value_float", AttrType::kFloat),
      attr("value_floats", AttrType::kFloats),  attr("value_string", AttrType::kString),
      attr("value_strings", AttrType::kStrings)};
  constant.type_variables = {{"T2", kAllTypes}};

  OpSchema of_shape = generator("ConstantOfShape", {9, 20, 21, 23, 24, 25}, infer_constant_of_shape,
                                constant_of_shape_kernel);
  of_shape.inputs = {required("input", "T1")};
  of_shape.attributes = {attr("value", AttrType::kTensor)};
  of_shape.type_variables = {{"T1", kInt64Type}, {"T2", kAllTypes}};
  of_shape.shape_inputs = {0};

  OpSchema range = generator("Range", {11, 27}, infer_range, range_kernel);
  range.unspecified =
      "a delta of 0 is an error, and so is a number of elements that is NaN or too large for 64 "
      "bits";
  range.inputs = {required("start", "T"), required("limit", "T"), required("delta", "T")};
  range.outputs = {required("output", "T")};
  range.attributes = {attr("stash_type", AttrType::kInt)};
  range.type_variables = {{"T", kRangeTypes}};
  range.shape_inputs = {0, 1, 2};

  OpSchema eye = generator("EyeLike", {9, 22}, infer_eye_like, eye_like_kernel);
  eye.inputs = {required("input", "T1")};
  eye.attributes = {attr("dtype", AttrType::kInt), attr("k", AttrType::kInt)};
  eye.type_variables = {{"T1", kNumericTypes | kBoolType}, {"T2", kNumericTypes | kBoolType}};

  OpSchema one_hot = generator("OneHot", {9, 11, 28}, infer_one_hot, one_hot_kernel);
  one_hot.inputs = {required("indices", "T1"), required("depth", "T3"), required("values", "T2")};
  one_hot.attributes = {attr("axis", AttrType::kInt)};
  one_hot.unspecified = "a depth below 0 is an error; NaN as an index is 0";
  one_hot.type_variables = {{"T1", kNumericTypes}, {"T3", kNumericTypes}, {"T2", kAllTypes}};
  one_hot.kernel = unpacked<one_hot_kernel>;
  one_hot.shape_inputs = {1};
  return {constant, of_shape, range, eye, one_hot};
}

}  // namespace tessera::ops
