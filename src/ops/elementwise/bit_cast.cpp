// BitCast: the same bits as another dtype of that width.

#include <fmt/format.h>

#include <cstring>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/kernel_util.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

// The dtype that attribute `to` names, which must be as wide as `from`.
Result<DType> target_of(const Attributes& attributes, DType from) {
  const std::int64_t to = attributes.get_int("to", 0);
  const bool known = to > 0 && to < kDTypeCount && (kFixedTypes >> to & 1U) != 0;
  if (!known)
    return attribute_error(
        "to", fmt::format("expected the number of a dtype other than string, found {}", to));
  const auto dtype = static_cast<DType>(to);
  if (bits_of(dtype) == bits_of(from)) return dtype;
  return attribute_error(
      "to", fmt::format("expected a dtype of {} bits as {} has, found {} of {}", bits_of(from),
                        to_string(from), to_string(dtype), bits_of(dtype)));
}

Status infer(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* input, tensor_input(context, 0));
  TESSERA_ASSIGN(const DType dtype, target_of(context.attributes, input->type.dtype));
  set_output(context, 0, dtype, input->type.shape);
  return {};
}

Status kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const DType dtype, target_of(context.attributes(), input->dtype));
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, dtype, input->dims));
  const auto size_bytes = static_cast<std::size_t>(input->nbytes());
  if (size_bytes != 0) std::memcpy(output.data, input->data, size_bytes);
  return {};
}

}  // namespace

std::vector<OpSchema> bit_cast_ops() {
  OpSchema op;
  op.name = "BitCast";
  op.versions = {26};
  op.inputs = {required("input", "T1")};
  op.outputs = {required("output", "T2")};
  op.attributes = {required_attr("to", AttrType::kInt)};
  op.type_variables = {{"T1", kFixedTypes}, {"T2", kFixedTypes}};
  op.structure = Structure::kElementwise;
  op.infer = infer;
  op.kernel = kernel;
  return {op};
}

}  // namespace tessera::ops
