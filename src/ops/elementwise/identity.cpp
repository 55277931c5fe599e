// Operators that pass their input through: Identity, and Dropout as it is outside of training.

#include <fmt/format.h>

#include <algorithm>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/kernel_util.h"
#include "ops/schema_util.h"
#include "ops/upgrade_util.h"

namespace tessera::ops {
namespace {

// The output may lie over the input.
void copy_unless_same(const TensorView& input, const MutableTensorView& output) {
  if (output.data != input.data) copy_elements(input, output);
}

// Sequences and optionals pass too.
Status identity_kernel(KernelContext& context) {
  const RunValue* value = context.value(0);
  if (value != nullptr && !value->is_tensor()) return context.set_value(0, *value);
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, input->dtype, input->dims));
  copy_unless_same(*input, output);
  return {};
}

Status infer_identity(InferContext& context) {
  if (!has_input(context, 0)) return input_error(context, 0, "expected a value, found none");
  if (!context.outputs.empty()) context.outputs[0] = context.inputs[0].type;
  set_value(context, 0, known_value(context.inputs[0]));
  return {};
}

Work copy_work(const Attributes& /*attributes*/, std::span<const TensorSpec> inputs,
               std::span<const TensorSpec> outputs) {
  Work work;
  if (!inputs.empty())
    work.bytes_read = static_cast<double>(nbytes(inputs[0].dtype, inputs[0].dims));
  for (const TensorSpec& output : outputs)
    work.bytes_written +=
        output.present ? static_cast<double>(nbytes(output.dtype, output.dims)) : 0;
  return work;
}

Status dropout_kernel(KernelContext& context) {
  const TensorView* training = context.input(2);
  if (training != nullptr && training->numel() == 1 && *training->as<bool>()) {
    return fail(
        ErrorCode::kUnimplemented,
        "Dropout: input 'training_mode': expected false, found true: training is not supported");
  }
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_TRY(identity_kernel(context));
  if (context.output_count() < 2) return {};
  TESSERA_ASSIGN(const MutableTensorView mask, context.output(1, DType::kBool, input->dims));
  std::fill_n(mask.as<bool>(), mask.numel(), true);
  return {};
}

Status infer_dropout(InferContext& context) {
  if (has_input(context, 2)) {
    TESSERA_TRY(require_dtype(context, 2, kBoolType));
    const auto training = known_ints(context.inputs[2]);
    if (training && training->size() == 1 && training->front() != 0) {
      return fail(ErrorCode::kUnimplemented,
                  "input 'training_mode': expected false, found true: training is not supported");
    }
  }
  TESSERA_TRY(infer_same_as_first(context));
  set_output(context, 1, DType::kBool, context.inputs[0].type.shape);
  return {};
}

// The ratio becomes an input, `is_test` goes (inference is meant whatever it says). Before version
// 10 the mask has the dtype of the data.
Status upgrade_dropout(UpgradeNode& node, int opset, UpgradeBuilder& builder) {
  TESSERA_ASSIGN(const float ratio, old_float(node, "ratio", 0.5F));
  erase_attributes(node, {"consumed_inputs", "is_test", "ratio"});
  set_input(node, 1, constant_float(builder, DType::kFp32, ratio));
  const bool mask_used =
      node.output_count > 1 && (node.output_used.size() < 2 || node.output_used[1]);
  if (opset >= 10 || !mask_used) return {};
  TESSERA_ASSIGN(const DType dtype, known_dtype(builder, node.inputs[0], "data"));
  const std::vector<Operand> outputs = builder.node("Dropout", node.attributes, node.inputs, 2);
  Attributes cast;
  cast.set("to", static_cast<std::int64_t>(dtype));
  node.replacement = {outputs[0], builder.node("Cast", cast, {outputs[1]}, 1)[0]};
  return {};
}

// From version 12 on, an input says whether elements are dropped. Where it is not known to say no,
// the drawing stands in the graph as nodes of its own, so that Dropout itself stays a no-op.
Status expand_training(UpgradeNode& node, int /*opset*/, UpgradeBuilder& builder) {
  if (!has_input(node, 2)) return {};
  const Operand training = node.inputs[2];
  const Tensor* known = builder.known(training);
  const bool is_flag = known != nullptr && known->dtype() == DType::kBool && known->numel() == 1;
  if (is_flag && !*known->view().as<bool>()) return {};
  const auto op = [&](const char* type, std::vector<Operand> inputs, Attributes attributes = {}) {
    return builder.node(type, std::move(attributes), std::move(inputs), 1)[0];
  };
  const Operand x = node.inputs[0];
  Attributes drawing;
  drawing.set("dtype", static_cast<std::int64_t>(DType::kFp64));
  TESSERA_ASSIGN(const std::int64_t seed, old_int(node, "seed", 0));
  if (node.attributes.has("seed")) drawing.set("seed", static_cast<float>(seed));
  Attributes to_double;
  to_double.set("to", static_cast<std::int64_t>(DType::kFp64));
  const Operand ratio = has_input(node, 1) ? op("Cast", {node.inputs[1]}, to_double)
                                           : constant_float(builder, DType::kFp64, 0.5);
  const Operand drawn = op("RandomUniformLike", {x}, drawing);
  const Operand mask = op("Or", {op("GreaterOrEqual", {drawn, ratio}), op("Not", {training})});
  const Operand kept = op("Sub", {constant_float(builder, DType::kFp64, 1), ratio});
  const Operand scale = op("CastLike", {op("Reciprocal", {kept}), x});
  const Operand zero = op("CastLike", {constant_float(builder, DType::kFp64, 0), x});
  const Operand dropped = op("Where", {mask, op("Mul", {x, scale}), zero});
  node.replacement = {op("Where", {training, dropped, x}), mask};
  return {};
}

}  // namespace

std::vector<OpSchema> identity_ops() {
  OpSchema identity;
  identity.name = "Identity";
  identity.versions = {1, 13, 14, 16, 19, 21, 23, 24, 25};
  identity.inputs = {required("input", "")};
  identity.outputs = {required("output", "")};
  identity.structure = Structure::kElementwise;
  identity.infer = infer_identity;
  identity.kernel = identity_kernel;
  identity.work = copy_work;
  identity.in_place_inputs = {0};

  OpSchema dropout;
  dropout.name = "Dropout";
  dropout.unspecified =
      "a seed that is a whole number gives what NumPy's legacy generator gives with it";
  dropout.versions = {1, 6, 7, 10, 12, 13, 22};
  dropout.inputs = {required("data", "T"), optional("ratio", "T1"),
                    optional("training_mode", "T2")};
  dropout.outputs = {required("output", "T"), optional("mask", "T2")};
  dropout.attributes = {attr("seed", AttrType::kInt)};
  dropout.type_variables = {
      {"T", kFloatTypes | kFp8Types}, {"T1", kFloatTypes | kFp8Types}, {"T2", kBoolType}};
  dropout.structure = Structure::kElementwise;
  dropout.infer = infer_dropout;
  dropout.kernel = dropout_kernel;
  dropout.work = copy_work;
  dropout.upgrades = {{1, 10, upgrade_dropout}, {12, 22, expand_training}};
  dropout.in_place_inputs = {0};
  return {identity, dropout};
}

}  // namespace tessera::ops
