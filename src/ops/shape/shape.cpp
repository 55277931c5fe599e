// Shape and Size: what a tensor is, as a tensor.

#include <algorithm>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/kernel_util.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

// Axes [begin, end) that attributes `start` and `end` choose, clamped to the rank.
struct AxisRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

AxisRange axis_range(const Attributes& attributes, std::size_t rank) {
  const auto size = static_cast<std::int64_t>(rank);
  const auto clamped = [size](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size);
  };
  const std::int64_t begin = clamped(attributes.get_int("start", 0));
  return {begin, std::max(begin, clamped(attributes.get_int("end", size)))};
}

Work no_work(const Attributes& /*attributes*/, std::span<const TensorSpec> /*inputs*/,
             std::span<const TensorSpec> outputs) {
  Work work;
  for (const TensorSpec& output : outputs)
    work.bytes_written += static_cast<double>(nbytes(output.dtype, output.dims));
  return work;
}

Status infer_shape(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* input, tensor_input(context, 0));
  if (!input->type.shape) {
    set_output(context, 0, DType::kInt64, Shape{context.fresh_symbol("rank")});
    return {};
  }
  const Shape& shape = *input->type.shape;
  const AxisRange range = axis_range(context.attributes, shape.size());
  set_output(context, 0, DType::kInt64, Shape{Dim(range.end - range.begin)});
  set_value(context, 0, DimTensor{false, {shape.begin() + range.begin, shape.begin() + range.end}});
  return {};
}

Status shape_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  const AxisRange range = axis_range(context.attributes(), input->dims.size());
  TESSERA_ASSIGN(const MutableTensorView output,
                 context.output(0, DType::kInt64, {range.end - range.begin}));
  std::copy(input->dims.begin() + range.begin, input->dims.begin() + range.end,
            output.as<std::int64_t>());
  return {};
}

Status infer_size(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* input, tensor_input(context, 0));
  set_output(context, 0, DType::kInt64, Shape{});
  if (!input->type.shape) return {};
  Dim size = 1;
  for (const Dim& dim : *input->type.shape) size = size * dim;
  set_value(context, 0, DimTensor{true, {size}});
  return {};
}

Status size_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, DType::kInt64, {}));
  *output.as<std::int64_t>() = input->numel();
  return {};
}

}  // namespace

std::vector<OpSchema> shape_ops() {
  OpSchema shape;
  shape.name = "Shape";
  shape.versions = {1, 13, 15, 19, 21, 23, 24, 25};
  shape.inputs = {required("data", "T")};
  shape.outputs = {required("shape", "T1")};
  shape.attributes = {attr("start", AttrType::kInt), attr("end", AttrType::kInt)};
  shape.type_variables = {{"T", kAllTypes}, {"T1", kInt64Type}};
  shape.structure = Structure::kOther;
  shape.infer = infer_shape;
  shape.kernel = shape_kernel;
  shape.work = no_work;

  OpSchema size = shape;
  size.name = "Size";
  size.versions = {1, 13, 19, 21, 23, 24, 25};
  size.outputs = {required("size", "T1")};
  size.attributes = {};
  size.infer = infer_size;
  size.kernel = size_kernel;
  return {shape, size};
}

}  // namespace tessera::ops
