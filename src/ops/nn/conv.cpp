// Conv and ConvTranspose: schemas, inference, work.

#include <fmt/format.h>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/nn/conv_infer.h"
#include "ops/nn/conv_kernel.h"
#include "ops/nn/conv_plan.h"
#include "ops/nn/nn_util.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

using nn::ConvOperands;
using nn::ConvPlan;

Result<ConvPlan> plan_of(std::string_view op, const Attributes& attributes,
                         const ConvOperands& operands) {
  return op == "ConvTranspose" ? nn::plan_conv_transpose(attributes, operands)
                               : nn::plan_conv(op, attributes, operands);
}

}  // namespace

Status nn::infer_conv_operands(InferContext& context, std::size_t w_index, std::size_t b_index,
                               DType dtype) {
  TESSERA_ASSIGN(const InferInput* x, tensor_input(context, 0));
  TESSERA_ASSIGN(const InferInput* w, tensor_input(context, w_index));
  if (!x->type.shape) {
    set_output(context, 0, dtype, std::nullopt);
    return {};
  }
  const Shape& shape = *x->type.shape;
  if (!w->type.shape) {
    if (shape.size() < 3)
      return input_error(context, 0,
                         fmt::format("expected rank 3 or more, found rank {}", shape.size()));
    Shape unknown{shape[0]};
    while (unknown.size() < shape.size()) unknown.push_back(context.fresh_symbol("conv"));
    set_output(context, 0, dtype, std::move(unknown));
    return {};
  }
  ConvOperands operands{shape, *w->type.shape, std::nullopt};
  if (has_input(context, b_index)) operands.b = context.inputs[b_index].type.shape;
  TESSERA_ASSIGN(ConvPlan plan, plan_of(context.op.name, context.attributes, operands));
  set_output(context, 0, dtype, std::move(plan.output));
  return {};
}

namespace {

Status infer_conv(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* x, tensor_input(context, 0));
  TESSERA_TRY(require_same_dtype(context, 1, 0));
  if (has_input(context, 2)) TESSERA_TRY(require_same_dtype(context, 2, 0));
  return nn::infer_conv_operands(context, 1, 2, x->type.dtype);
}

// Each result element is a sum over the weights of one output channel: two flops for each.
Work conv_work(const Attributes&, std::span<const TensorSpec> inputs,
               std::span<const TensorSpec> outputs) {
  Work work = nn::operand_traffic(inputs, outputs);
  const Dims& w = inputs[1].dims;
  const double per_channel =
      w[0] == 0 ? 0 : static_cast<double>(numel(w)) / static_cast<double>(w[0]);
  work.flops = 2 * nn::output_elements(outputs) * per_channel;
  return work;
}

// Each input element meets the weights of its input channel.
Work conv_transpose_work(const Attributes&, std::span<const TensorSpec> inputs,
                         std::span<const TensorSpec> outputs) {
  Work work = nn::operand_traffic(inputs, outputs);
  const Dims& w = inputs[1].dims;
  const double per_channel =
      w[0] == 0 ? 0 : static_cast<double>(numel(w)) / static_cast<double>(w[0]);
  work.flops = 2 * static_cast<double>(numel(inputs[0].dims)) * per_channel;
  return work;
}

std::vector<FormalAttr> window_attributes() {
  return {attr("auto_pad", AttrType::kString), attr("dilations", AttrType::kInts),
          attr("group", AttrType::kInt),       attr("kernel_shape", AttrType::kInts),
          attr("pads", AttrType::kInts),       attr("strides", AttrType::kInts)};
}

OpSchema conv_schema() {
  OpSchema op;
  op.name = "Conv";
  op.unspecified =
      "a weight that is not finite makes NaN of padding, which is zeros, but not where a kernel of "
      "the cpu leaves padding out";
  op.versions = {1, 11, 22};
  op.inputs = {required("X", "T"), required("W", "T"), optional("B", "T")};
  op.outputs = {required("Y", "T")};
  op.attributes = window_attributes();
  op.type_variables = {{"T", kFloatTypes}};
  op.structure = Structure::kContraction;
  op.infer = infer_conv;
  op.kernel = nn::conv_kernel;
  op.work = conv_work;
  return op;
}

OpSchema conv_transpose_schema() {
  OpSchema op = conv_schema();
  op.unspecified = {};
  op.name = "ConvTranspose";
  op.attributes.push_back(attr("output_padding", AttrType::kInts));
  op.attributes.push_back(attr("output_shape", AttrType::kInts));
  op.kernel = nn::conv_transpose_kernel;
  op.work = conv_transpose_work;
  return op;
}

}  // namespace

std::vector<OpSchema> conv_ops() {
  return {conv_schema(), conv_transpose_schema()};
}

}  // namespace tessera::ops
