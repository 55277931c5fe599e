// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/infer_util.h"
#include "ops/nn/nn_util.h"
#include "ops/nn/quantization.h"
#include "ops/nn/schemas.h"
#include "ops/schema_util.h"

namespace tessera::ops::nn {
namespace {

constexpr DTypeSet kQuantizedTypes = dtype_set(
    {DType::kInt8, DType::kUInt8, DType::kInt16, DType::kUInt16, DType::kInt4, DType::kUInt4,
     DType::kInt2, DType::kUInt2, DType::kFp8E4M3Fn, DType::kFp8E4M3FnUz, DType::kFp8E5M2,
     DType::kFp8E5M2FnUz, DType::kFp4E2M1, DType::kFp6E2M3, DType::kFp6E3M2});
constexpr DTypeSet kScaleTypes =
    dtype_set({DType::kFp32, DType::kFp16, DType::kBf16, DType::kFp8E8M0});

std::int64_t axis_of(const Attributes& attributes) {
  return attributes.get_int("axis", 1);
}
std::int64_t block_of(const Attributes& attributes) {
  return attributes.get_int("block_size", 0);
}

// The dtype that `output_dtype` names, or `fallback` where it is 0; it must be in `allowed`.
Result<DType> output_dtype(std::string_view op, const Attributes& attributes, DType fallback,
                           DTypeSet allowed) {
  const std::int64_t number = attributes.get_int("output_dtype", 0);
  if (number == 0) return fallback;
  const bool known =
      number > 0 && number < kDTypeCount && (allowed & dtype_bit(static_cast<DType>(number))) != 0;
  if (!known)
    return op_error(
        op,
        fmt::format("output_dtype: expected a dtype that the operator gives, found {}", number));
  return static_cast<DType>(number);
}

Result<DType> quantized_dtype(const Attributes& attributes, const DType* zero_point) {
  TESSERA_ASSIGN(
      const DType named,
      output_dtype("QuantizeLinear", attributes,
                   zero_point == nullptr ? DType::kUInt8 : *zero_point, kQuantizedTypes));
  if (zero_point == nullptr || *zero_point == named) return named;
  return op_error("QuantizeLinear",
                  fmt::format("output_dtype: expected {} as the zero point has, found {}",
                              to_string(*zero_point), to_string(named)));
}

// In which dtype elements are divided by their scale. An integer and a power of two have none of
// their own.
Result<DType> division_dtype(const Attributes& attributes, DType scale) {
  const std::int64_t number = attributes.get_int("precision", 0);
  const auto is_real = [](DType dtype) { return (kFloatTypes & dtype_bit(dtype)) != 0; };
  if (number == 0) return is_real(scale) ? scale : DType::kFp32;
  if (number > 0 && number < kDTypeCount && is_real(static_cast<DType>(number)))
    return static_cast<DType>(number);
  return op_error("QuantizeLinear",
                  fmt::format("precision: expected 1 (fp32), 10 (fp16), 11 (fp64) or 16 (bf16), "
                              "found {}",
                              number));
}

float rounded(float value, DType dtype) {
  return dtype == DType::kFp16   ? load(store<Fp16>(value))
         : dtype == DType::kBf16 ? load(store<Bf16>(value))
                                 : value;
}

// Operands and quotient are rounded to `dtype`.
double divide(double x, double scale, DType dtype) {
  if (dtype == DType::kFp64) return x / scale;
  return static_cast<double>(rounded(
      rounded(static_cast<float>(x), dtype) / rounded(static_cast<float>(scale), dtype), dtype));
}

// Shapes of scale and zero point, whose sizes must agree.
Status check_parameters(std::string_view op, const Attributes& attributes, const Shape& x,
                        const Shape& scale, const Shape* zero_point) {
  TESSERA_TRY(ScaleMap::check(op, x, scale, axis_of(attributes), block_of(attributes)));
  if (zero_point == nullptr) return {};
  const auto have = constant_dims(*zero_point);
  const auto want = constant_dims(scale);
  const bool agree = !have || !want || *have == *want || (numel(*have) == 1 && numel(*want) == 1);
  if (agree) return {};
  return op_error(op, fmt::format("zero point: expected shape {} as scale has, found {}",
                                  to_string(scale), to_string(*zero_point)));
}

Status infer_linear(InferContext& context, DType dtype) {
  const ValueType& x = context.inputs[0].type;
  const ValueType& scale = context.inputs[1].type;
  const Shape* zero_point = has_input(context, 2) && context.inputs[2].type.shape
                                ? &*context.inputs[2].type.shape
                                : nullptr;
  if (x.shape && scale.shape)
    TESSERA_TRY(
        check_parameters(context.op.name, context.attributes, *x.shape, *scale.shape, zero_point));
  set_output(context, 0, dtype, x.shape);
  return {};
}

Status infer_quantize(InferContext& context) {
  TESSERA_TRY(tensor_input(context, 0).map([](const auto*) {}));
  TESSERA_ASSIGN(const InferInput* scale, tensor_input(context, 1));
  TESSERA_TRY(division_dtype(context.attributes, scale->type.dtype).map([](DType) {}));
  const DType* zero_point = has_input(context, 2) ? &context.inputs[2].type.dtype : nullptr;
  TESSERA_ASSIGN(const DType dtype, quantized_dtype(context.attributes, zero_point));
  return infer_linear(context, dtype);
}

Result<DType> dequantized_dtype(const Attributes& attributes, DType scale) {
  return output_dtype("DequantizeLinear", attributes,
                      scale == DType::kFp8E8M0 ? DType::kFp32 : scale,
                      dtype_set({DType::kFp32, DType::kFp16, DType::kBf16}));
}

Status infer_dequantize(InferContext& context) {
  TESSERA_TRY(tensor_input(context, 0).map([](const auto*) {}));
  TESSERA_ASSIGN(const InferInput* scale, tensor_input(context, 1));
  TESSERA_ASSIGN(const DType dtype, dequantized_dtype(context.attributes, scale->type.dtype));
  return infer_linear(context, dtype);
}

struct Parameters {
  std::vector<double> scale;
  ScaleMap map;
};

Result<Parameters> read_parameters(std::string_view op, const KernelContext& context,
                                   const TensorView& x) {
  TESSERA_ASSIGN(const TensorView* scale, kernel_input(context, 1));
  const Shape zero_shape = context.input(2) == nullptr ? Shape{} : to_shape(context.input(2)->dims);
  TESSERA_TRY(check_parameters(op, context.attributes(), to_shape(x.dims), to_shape(scale->dims),
                               context.input(2) == nullptr ? nullptr : &zero_shape));
  return Parameters{doubles(*scale), ScaleMap(x.dims, scale->dims, axis_of(context.attributes()),
                                              block_of(context.attributes()))};
}

Status quantize_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* x, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* scale, kernel_input(context, 1));
  TESSERA_ASSIGN(const Parameters parameters, read_parameters("QuantizeLinear", context, *x));
  TESSERA_ASSIGN(const DType division, division_dtype(context.attributes(), scale->dtype));
  const TensorView* zero_point = context.input(2);
  TESSERA_ASSIGN(
      const DType dtype,
      quantized_dtype(context.attributes(), zero_point == nullptr ? nullptr : &zero_point->dtype));
  TESSERA_ASSIGN(const MutableTensorView y, context.output(0, dtype, x->dims));
  const std::vector<double> zeros = zero_point == nullptr
                                        ? std::vector<double>(parameters.scale.size(), 0.0)
                                        : doubles(*zero_point);
  std::vector<double> values = doubles(*x);
  context.parallel_for(
      static_cast<std::int64_t>(values.size()), kGrain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const auto at = static_cast<std::size_t>(parameters.map.at(i));
          double& value = values[static_cast<std::size_t>(i)];
          value = quantized(divide(value, parameters.scale[at], division), zeros[at], dtype);
        }
      });
  store_doubles(values, y, context.attributes().get_int("saturate", 1) != 0);
  return {};
}

Status dequantize_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* x, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* scale, kernel_input(context, 1));
  TESSERA_ASSIGN(const Parameters parameters, read_parameters("DequantizeLinear", context, *x));
  TESSERA_ASSIGN(const DType dtype, dequantized_dtype(context.attributes(), scale->dtype));
  TESSERA_ASSIGN(const MutableTensorView y, context.output(0, dtype, x->dims));
  std::vector<double> values = centred(*x, context.input(2), parameters.map);
  context.parallel_for(
      static_cast<std::int64_t>(values.size()), kGrain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          double& value = values[static_cast<std::size_t>(i)];
          const double factor = parameters.scale[static_cast<std::size_t>(parameters.map.at(i))];
          value = static_cast<double>(static_cast<float>(value) * static_cast<float>(factor));
        }
      });
  store_doubles(values, y, true);
  return {};
}

Status infer_dynamic(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* x, tensor_input(context, 0));
  set_output(context, 0, DType::kUInt8, x->type.shape);
  set_output(context, 1, DType::kFp32, Shape{});
  set_output(context, 2, DType::kUInt8, Shape{});
  return {};
}

// The range of the elements, with 0 inside, mapped to 0 .. 255. A tensor of zeros gets the scale 1.
Status dynamic_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* x, kernel_input(context, 0));
  TESSERA_ASSIGN(const MutableTensorView y, context.output(0, DType::kUInt8, x->dims));
  const float* in = x->as<float>();
  const std::int64_t count = x->numel();
  float low = 0;
  float high = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    low = std::min(low, in[i]);
    high = std::max(high, in[i]);
  }
  const float scale = low == high ? 1.0F : (high - low) / 255.0F;
  const double zero = quantized(-low / scale, 0, DType::kUInt8);
  for (std::int64_t i = 0; i < count; ++i)
    y.as<std::uint8_t>()[i] =
        static_cast<std::uint8_t>(quantized(in[i] / scale, zero, DType::kUInt8));
  if (context.output_count() > 1) {
    TESSERA_ASSIGN(const MutableTensorView view, context.output(1, DType::kFp32, {}));
    *view.as<float>() = scale;
  }
  if (context.output_count() > 2) {
    TESSERA_ASSIGN(const MutableTensorView view, context.output(2, DType::kUInt8, {}));
    *view.as<std::uint8_t>() = static_cast<std::uint8_t>(zero);
  }
  return {};
}

}  // namespace

std::vector<OpSchema> quantize_schemas() {
  OpSchema quantize;
  quantize.name = "QuantizeLinear";
  quantize.unspecified =
      "in integers a NaN becomes the zero point; by scales of int32 and fp8_e8m0 it divides in "
      "fp32";
  quantize.versions = {10, 13, 19, 21, 23, 24, 25, 28};
  quantize.inputs = {required("x", "T1"), required("y_scale", "T2"),
                     optional("y_zero_point", "T3")};
  quantize.outputs = {required("y", "T3")};
  quantize.attributes = {attr("axis", AttrType::kInt), attr("block_size", AttrType::kInt),
                         attr("output_dtype", AttrType::kInt), attr("precision", AttrType::kInt),
                         attr("saturate", AttrType::kInt)};
  quantize.type_variables = {{"T1", kFloatTypes | dtype_bit(DType::kInt32)},
                             {"T2", kScaleTypes | dtype_bit(DType::kInt32)},
                             {"T3", kQuantizedTypes}};
  quantize.structure = Structure::kElementwise;
  quantize.infer = infer_quantize;
  quantize.kernel = quantize_kernel;
  quantize.work = work_per_input_element<3>;

  OpSchema dequantize = quantize;
  dequantize.name = "DequantizeLinear";
  dequantize.unspecified = {};
  dequantize.inputs = {required("x", "T1"), required("x_scale", "T2"),
                       optional("x_zero_point", "T1")};
  dequantize.outputs = {required("y", "T3")};
  dequantize.attributes = {attr("axis", AttrType::kInt), attr("block_size", AttrType::kInt),
                           attr("output_dtype", AttrType::kInt)};
  dequantize.type_variables = {{"T1", kQuantizedTypes | dtype_bit(DType::kInt32)},
                               {"T2", kScaleTypes},
                               {"T3", dtype_set({DType::kFp32, DType::kFp16, DType::kBf16})}};
  dequantize.infer = infer_dequantize;
  dequantize.kernel = dequantize_kernel;
  dequantize.work = work_per_input_element<2>;

  OpSchema dynamic;
  dynamic.name = "DynamicQuantizeLinear";
  dynamic.versions = {11};
  dynamic.unspecified =
      "a tensor of zeros gets the scale 1; a NaN is left out of the range and becomes the zero "
      "point";
  dynamic.inputs = {required("x", "T1")};
  dynamic.outputs = {required("y", "T2"), required("y_scale", "tensor(float)"),
                     required("y_zero_point", "T2")};
  dynamic.type_variables = {
      {"T1", kFp32Type}, {"T2", dtype_bit(DType::kUInt8)}, {"tensor(float)", kFp32Type}};
  dynamic.structure = Structure::kReduction;
  dynamic.infer = infer_dynamic;
  dynamic.kernel = dynamic_kernel;
  dynamic.work = work_per_input_element<5>;
  return {quantize, dequantize, dynamic};
}

}  // namespace tessera::ops::nn
