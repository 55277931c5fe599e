#include <fmt/format.h>

#include <numeric>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/movement/movement_util.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

// Attribute `perm`, or the reverse order of axes where it is absent.
Result<std::vector<std::int64_t>> permutation(const Attributes& attributes, std::size_t rank) {
  std::vector<std::int64_t> perm = attributes.get_ints("perm");
  if (!attributes.has("perm")) {
    perm.resize(rank);
    std::iota(perm.rbegin(), perm.rend(), 0);
    return perm;
  }
  if (perm.size() != rank)
    return attribute_error("perm", fmt::format("expected {} values, found {}", rank, perm.size()));
  return normalize_axes(perm, static_cast<std::int64_t>(rank), "attribute 'perm'");
}

Status infer_transpose(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* input, tensor_input(context, 0));
  std::optional<Shape> shape;
  if (input->type.shape) {
    TESSERA_ASSIGN(const auto perm, permutation(context.attributes, input->type.shape->size()));
    shape.emplace();
    for (const std::int64_t axis : perm)
      shape->push_back((*input->type.shape)[static_cast<std::size_t>(axis)]);
  }
  set_output(context, 0, input->type.dtype, std::move(shape));
  set_value(context, 0, known_value(*input));
  return {};
}

Status transpose_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const auto perm, permutation(context.attributes(), input->dims.size()));
  const Dims own = row_major_strides(input->dims);
  Dims dims;
  Dims strides;
  for (const std::int64_t axis : perm) {
    dims.push_back(input->dims[static_cast<std::size_t>(axis)]);
    strides.push_back(own[static_cast<std::size_t>(axis)]);
  }
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, input->dtype, dims));
  return copy_strided(context, *input, 0, strides, output);
}

}  // namespace

std::vector<OpSchema> transpose_ops() {
  OpSchema op;
  op.name = "Transpose";
  op.versions = {1, 13, 21, 23, 24, 25};
  op.inputs = {required("data", "T")};
  op.outputs = {required("transposed", "T")};
  op.attributes = {attr("perm", AttrType::kInts)};
  op.type_variables = {{"T", kAllTypes}};
  op.structure = Structure::kMovement;
  op.infer = infer_transpose;
  op.kernel = unpacked<transpose_kernel>;
  op.work = movement_work;
  return {op};
}

}  // namespace tessera::ops
