// MatMulInteger, QLinearMatMul, ConvInteger, QLinearConv: products of quantised operands, summed
// exactly.

#include <fmt/format.h>

#include <algorithm>

#include "ops/infer_util.h"
#include "ops/nn/conv_infer.h"
#include "ops/nn/conv_kernel.h"
#include "ops/nn/matmul_kernel.h"
#include "ops/nn/nn_util.h"
#include "ops/nn/quantization.h"
#include "ops/nn/schemas.h"
#include "ops/schema_util.h"

namespace tessera::ops::nn {
namespace {

constexpr DTypeSet kBytes = dtype_set({DType::kInt8, DType::kUInt8});
constexpr DTypeSet kFp8 =
    dtype_set({DType::kFp8E4M3Fn, DType::kFp8E4M3FnUz, DType::kFp8E5M2, DType::kFp8E5M2FnUz});

// Sums keep the low 32 bits, as an int32 accumulator would.
std::int32_t wrapped(double sum) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::int64_t>(sum)));
}

// A zero point or scale of a matrix operand: one for all, or one for each row (of A) or column (of
// B).
struct MatrixParameter {
  std::vector<double> values{0.0};
  bool single = true;
  [[nodiscard]] double at(std::int64_t matrix, std::int64_t line, std::int64_t lines) const {
    return values[single ? 0
                         : static_cast<std::size_t>((matrix * lines + line) %
                                                    static_cast<std::int64_t>(values.size()))];
  }
};

Result<MatrixParameter> read_matrix_parameter(std::string_view op, std::string_view name,
                                              const TensorView* view, std::int64_t lines,
                                              std::int64_t matrices, double fallback) {
  MatrixParameter parameter;
  parameter.values[0] = fallback;
  if (view == nullptr) return parameter;
  parameter.values = doubles(*view);
  const auto count = static_cast<std::int64_t>(parameter.values.size());
  parameter.single = count == 1;
  if (!parameter.single && (count == 0 || (count != lines && count != lines * matrices))) {
    return op_error(
        op, fmt::format("input '{}': expected 1 element for all or one for each of {}, found {}",
                        name, lines, count));
  }
  return parameter;
}

std::int64_t lines_of(const Dims& dims, bool rows) {
  if (dims.size() < 2) return 1;
  return rows ? dims[dims.size() - 2] : dims.back();
}

std::int64_t matrices_of(const Dims& dims) {
  return dims.size() < 2 ? 1 : count_between(dims, 0, dims.size() - 2);
}

// Elements less the zero point of their row or column.
std::vector<double> centred_matrix(const TensorView& x, const MatrixParameter& zero, bool rows) {
  std::vector<double> values = doubles(x);
  const std::int64_t columns = x.dims.empty() ? 1 : x.dims.back();
  const std::int64_t row_count = lines_of(x.dims, true);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const std::int64_t matrix = x.dims.size() < 2 ? 0 : at / (columns * row_count);
    const std::int64_t line = x.dims.size() < 2 ? 0
                              : rows            ? at / columns % row_count
                                                : at % columns;
    values[i] -= zero.at(matrix, line, rows ? row_count : lines_of(x.dims, false));
  }
  return values;
}

// Sums go to `sums`, row-major over all matrices.
class MatMulSums final : public MatMulContraction<double> {
 public:
  MatMulSums(const MatMulSizes& sizes, const double* a, const double* b, double* out)
      : MatMulContraction<double>(sizes, a, {sizes.depth, 1}, b, {sizes.columns, 1}), out_(out) {}
  void store(std::int64_t index, std::int64_t row, std::int64_t first, std::int64_t last,
             const double* sums) const override {
    std::copy(sums, sums + (last - first), out_ + (index * rows + row) * columns + first);
  }

 private:
  double* out_;
};

class ConvSums final : public ConvContraction<double> {
 public:
  ConvSums(const ConvSizes& sizes, const double* x, const double* w, double* out)
      : ConvContraction<double>(sizes, x, w, false), out_(out) {}
  void store(std::int64_t index, std::int64_t row, std::int64_t first, std::int64_t last,
             const double* sums) const override {
    std::copy(sums, sums + (last - first), out_ + plane(index, row) + first);
  }

 private:
  double* out_;
};

Status store_int32(KernelContext& context, const std::vector<double>& sums, const Dims& dims) {
  TESSERA_ASSIGN(const MutableTensorView y, context.output(0, DType::kInt32, dims));
  std::transform(sums.begin(), sums.end(), y.as<std::int32_t>(), wrapped);
  return {};
}

// ---- Matrix products ----

struct MatMulInputs {
  std::size_t a, a_zero, b, b_zero;
};

struct MatMulResult {
  MatMulSizes sizes;
  std::vector<double> sums;
};

Result<MatMulResult> matmul_sums(KernelContext& context, std::string_view op,
                                 const MatMulInputs& at) {
  TESSERA_ASSIGN(const TensorView* a, kernel_input(context, at.a));
  TESSERA_ASSIGN(const TensorView* b, kernel_input(context, at.b));
  MatMulResult result;
  TESSERA_ASSIGN(result.sizes, matmul_sizes(op, a->dims, b->dims));
  TESSERA_ASSIGN(const MatrixParameter a_zero,
                 read_matrix_parameter(op, "a_zero_point", context.input(at.a_zero),
                                       lines_of(a->dims, true), matrices_of(a->dims), 0));
  TESSERA_ASSIGN(const MatrixParameter b_zero,
                 read_matrix_parameter(op, "b_zero_point", context.input(at.b_zero),
                                       lines_of(b->dims, false), matrices_of(b->dims), 0));
  const std::vector<double> left = centred_matrix(*a, a_zero, true);
  const std::vector<double> right = centred_matrix(*b, b_zero, false);
  result.sums.resize(static_cast<std::size_t>(numel(result.sizes.output)));
  contract(context, MatMulSums(result.sizes, left.data(), right.data(), result.sums.data()));
  return result;
}

Status matmul_integer_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const MatMulResult result, matmul_sums(context, "MatMulInteger", {0, 2, 1, 3}));
  return store_int32(context, result.sums, result.sizes.output);
}

Status qlinear_matmul_kernel(KernelContext& context) {
  const std::string_view op = "QLinearMatMul";
  TESSERA_ASSIGN(MatMulResult result, matmul_sums(context, op, {0, 2, 3, 5}));
  const MatMulSizes& sizes = result.sizes;
  TESSERA_ASSIGN(const MatrixParameter a_scale,
                 read_matrix_parameter(op, "a_scale", context.input(1), sizes.rows,
                                       matrices_of(context.input(0)->dims), 1));
  TESSERA_ASSIGN(const MatrixParameter b_scale,
                 read_matrix_parameter(op, "b_scale", context.input(4), sizes.columns,
                                       matrices_of(context.input(3)->dims), 1));
  TESSERA_ASSIGN(
      const MatrixParameter y_scale,
      read_matrix_parameter(op, "y_scale", context.input(6), sizes.rows, numel(sizes.batch), 1));
  TESSERA_ASSIGN(const TensorView* y_zero_view, kernel_input(context, 7));
  TESSERA_ASSIGN(
      const MatrixParameter y_zero,
      read_matrix_parameter(op, "y_zero_point", y_zero_view, sizes.rows, numel(sizes.batch), 0));
  TESSERA_ASSIGN(const MutableTensorView y, context.output(0, y_zero_view->dtype, sizes.output));
  for (std::size_t i = 0; i < result.sums.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const std::int64_t row = at / sizes.columns % sizes.rows;
    const std::int64_t matrix = at / sizes.columns / sizes.rows;
    const double factor = a_scale.at(sizes.a_matrix(matrix), row, sizes.rows) *
                          b_scale.at(sizes.b_matrix(matrix), at % sizes.columns, sizes.columns) /
                          y_scale.at(matrix, row, sizes.rows);
    result.sums[i] = quantized(static_cast<float>(result.sums[i] * factor),
                               y_zero.at(matrix, row, sizes.rows), y.dtype);
  }
  store_doubles(result.sums, y, true);
  return {};
}

Status infer_matmul_of(InferContext& context, std::size_t b_index, DType dtype) {
  TESSERA_ASSIGN(const InferInput* a, tensor_input(context, 0));
  TESSERA_ASSIGN(const InferInput* b, tensor_input(context, b_index));
  std::optional<Shape> output;
  if (a->type.shape && b->type.shape) {
    TESSERA_ASSIGN(output, matmul_shape(context.op.name, *a->type.shape, *b->type.shape));
  }
  set_output(context, 0, dtype, std::move(output));
  return {};
}

Status infer_matmul_integer(InferContext& context) {
  return infer_matmul_of(context, 1, DType::kInt32);
}

Status infer_qlinear_matmul(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* zero, tensor_input(context, 7));
  return infer_matmul_of(context, 3, zero->type.dtype);
}

// ---- Convolutions ----

struct ConvInputs {
  std::size_t x, x_zero, w, w_zero, b;
};

struct ConvResult {
  ConvSizes sizes;
  std::vector<double> sums;
};

Result<ConvResult> conv_sums(KernelContext& context, std::string_view op, const ConvInputs& at) {
  TESSERA_ASSIGN(const TensorView* x, kernel_input(context, at.x));
  TESSERA_ASSIGN(const TensorView* w, kernel_input(context, at.w));
  const TensorView* b = context.input(at.b);
  const TensorView* x_zero = context.input(at.x_zero);
  const TensorView* w_zero = context.input(at.w_zero);
  ConvResult result;
  TESSERA_ASSIGN(result.sizes, conv_sizes(op, context.attributes(), x->dims, w->dims,
                                          b == nullptr ? nullptr : &b->dims));
  if (x_zero != nullptr && x_zero->numel() != 1)
    return op_error(
        op, fmt::format("input 'x_zero_point': expected 1 element, found {}", x_zero->numel()));
  const Dims w_zero_dims = w_zero == nullptr ? Dims{} : w_zero->dims;
  TESSERA_TRY(ScaleMap::check(op, to_shape(w->dims), to_shape(w_zero_dims), 0, 0));
  const std::vector<double> data = centred(*x, x_zero, ScaleMap(x->dims, {}, 0, 0));
  const std::vector<double> weights = centred(*w, w_zero, ScaleMap(w->dims, w_zero_dims, 0, 0));
  result.sums.resize(static_cast<std::size_t>(numel(result.sizes.output_dims)));
  contract(context, ConvSums(result.sizes, data.data(), weights.data(), result.sums.data()));
  return result;
}

Status conv_integer_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const ConvResult result,
                 conv_sums(context, "ConvInteger", {0, 2, 1, 3, SIZE_MAX}));
  return store_int32(context, result.sums, result.sizes.output_dims);
}

Status qlinear_conv_kernel(KernelContext& context) {
  const std::string_view op = "QLinearConv";
  TESSERA_ASSIGN(ConvResult result, conv_sums(context, op, {0, 2, 3, 5, 8}));
  const TensorView* parameters[8] = {};
  for (const std::size_t i : {std::size_t{1}, std::size_t{4}, std::size_t{6}, std::size_t{7}}) {
    TESSERA_ASSIGN(parameters[i], kernel_input(context, i));
    if (i != 4 && parameters[i]->numel() != 1)
      return op_error(
          op, fmt::format("input {}: expected 1 element, found {}", i, parameters[i]->numel()));
  }
  const Dims& dims = result.sizes.output_dims;
  TESSERA_TRY(ScaleMap::check(op, {Dim(dims[1])}, to_shape(parameters[4]->dims), 0, 0));
  TESSERA_ASSIGN(const MutableTensorView y, context.output(0, parameters[7]->dtype, dims));
  const double x_scale = doubles(*parameters[1])[0];
  const double y_scale = doubles(*parameters[6])[0];
  const double y_zero = doubles(*parameters[7])[0];
  const std::vector<double> w_scale = doubles(*parameters[4]);
  const std::vector<double> bias = context.input(8) == nullptr
                                       ? std::vector<double>(static_cast<std::size_t>(dims[1]), 0.0)
                                       : doubles(*context.input(8));
  const std::int64_t plane = count_between(dims, 2, dims.size());
  for (std::size_t i = 0; i < result.sums.size(); ++i) {
    const auto channel = static_cast<std::size_t>(static_cast<std::int64_t>(i) / plane % dims[1]);
    const double factor = x_scale * w_scale[w_scale.size() == 1 ? 0 : channel] / y_scale;
    result.sums[i] =
        quantized(static_cast<float>((result.sums[i] + bias[channel]) * factor), y_zero, y.dtype);
  }
  store_doubles(result.sums, y, true);
  return {};
}

Status infer_conv_integer(InferContext& context) {
  return infer_conv_operands(context, 1, SIZE_MAX, DType::kInt32);
}

Status infer_qlinear_conv(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* zero, tensor_input(context, 7));
  return infer_conv_operands(context, 3, 8, zero->type.dtype);
}

// ---- Work and schemas ----

template <std::size_t b_index>
Work matmul_work(const Attributes&, std::span<const TensorSpec> inputs,
                 std::span<const TensorSpec> outputs) {
  Work work = operand_traffic(inputs, outputs);
  work.flops = inputs[0].dims.empty()
                   ? 0
                   : 2 * output_elements(outputs) * static_cast<double>(inputs[0].dims.back());
  return work;
}

template <std::size_t w_index>
Work conv_work(const Attributes&, std::span<const TensorSpec> inputs,
               std::span<const TensorSpec> outputs) {
  Work work = operand_traffic(inputs, outputs);
  const Dims& w = inputs[w_index].dims;
  work.flops = w[0] == 0 ? 0
                         : 2 * output_elements(outputs) * static_cast<double>(numel(w)) /
                               static_cast<double>(w[0]);
  return work;
}

OpSchema schema(std::string_view name, std::vector<int> versions, InferFn infer, KernelFn kernel,
                WorkFn work) {
  OpSchema op;
  op.name = name;
  op.versions = std::move(versions);
  op.outputs = {required("y", "T3")};
  op.type_variables = {{"T1", kBytes}, {"T2", kBytes}, {"T3", dtype_bit(DType::kInt32)}};
  op.structure = Structure::kContraction;
  op.infer = infer;
  op.kernel = kernel;
  op.work = work;
  return op;
}

std::vector<FormalAttr> conv_attributes() {
  return {attr("auto_pad", AttrType::kString), attr("dilations", AttrType::kInts),
          attr("group", AttrType::kInt),       attr("kernel_shape", AttrType::kInts),
          attr("pads", AttrType::kInts),       attr("strides", AttrType::kInts)};
}

}  // namespace

std::vector<OpSchema> quantized_product_schemas() {
  OpSchema matmul_integer =
      schema("MatMulInteger", {10}, infer_matmul_integer, matmul_integer_kernel, matmul_work<1>);
  matmul_integer.inputs = {required("A", "T1"), required("B", "T2"), optional("a_zero_point", "T1"),
                           optional("b_zero_point", "T2")};
  matmul_integer.unspecified = "sums that 32 bits cannot hold wrap around";

  OpSchema qlinear_matmul = schema("QLinearMatMul", {10, 21}, infer_qlinear_matmul,
                                   qlinear_matmul_kernel, matmul_work<3>);
  qlinear_matmul.inputs = {
      required("a", "T1"),       required("a_scale", "TS"),     required("a_zero_point", "T1"),
      required("b", "T2"),       required("b_scale", "TS"),     required("b_zero_point", "T2"),
      required("y_scale", "TS"), required("y_zero_point", "T3")};
  qlinear_matmul.type_variables = {{"T1", kBytes | kFp8},
                                   {"T2", kBytes | kFp8},
                                   {"T3", kBytes | kFp8},
                                   {"TS", dtype_set({DType::kFp32, DType::kFp16, DType::kBf16})}};

  OpSchema conv_integer =
      schema("ConvInteger", {10}, infer_conv_integer, conv_integer_kernel, conv_work<1>);
  conv_integer.inputs = {required("x", "T1"), required("w", "T2"), optional("x_zero_point", "T1"),
                         optional("w_zero_point", "T2")};
  conv_integer.unspecified = "sums that 32 bits cannot hold wrap around";
  conv_integer.attributes = conv_attributes();

  OpSchema qlinear_conv =
      schema("QLinearConv", {10}, infer_qlinear_conv, qlinear_conv_kernel, conv_work<3>);
  qlinear_conv.inputs = {required("x", "T1"),
                         required("x_scale", "tensor(float)"),
                         required("x_zero_point", "T1"),
                         required("w", "T2"),
                         required("w_scale", "tensor(float)"),
                         required("w_zero_point", "T2"),
                         required("y_scale", "tensor(float)"),
                         required("y_zero_point", "T3"),
                         optional("B", "T4")};
  qlinear_conv.attributes = conv_attributes();
  qlinear_conv.type_variables = {{"T1", kBytes},
                                 {"T2", kBytes},
                                 {"T3", kBytes},
                                 {"T4", dtype_bit(DType::kInt32)},
                                 {"tensor(float)", kFp32Type}};
  return {matmul_integer, qlinear_matmul, conv_integer, qlinear_conv};
}

}  // namespace tessera::ops::nn
