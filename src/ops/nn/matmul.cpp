// MatMul: numpy's matrix product.

#include "ops/infer_util.h"
#include "ops/nn/matmul_kernel.h"
#include "ops/nn/nn_util.h"
#include "ops/nn/reals.h"
#include "ops/nn/schemas.h"
#include "ops/schema_util.h"

namespace tessera::ops::nn {
namespace {

using WideIntegers = Types<std::int32_t, std::int64_t, std::uint32_t, std::uint64_t>;

Status infer_matmul(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* a, tensor_input(context, 0));
  TESSERA_ASSIGN(const InferInput* b, tensor_input(context, 1));
  TESSERA_TRY(require_same_dtype(context, 1, 0));
  std::optional<Shape> output;
  if (a->type.shape && b->type.shape) {
    TESSERA_ASSIGN(output, matmul_shape("MatMul", *a->type.shape, *b->type.shape));
  }
  set_output(context, 0, a->type.dtype, std::move(output));
  return {};
}

template <typename T>
class FloatMatMul final : public MatMulContraction<T> {
 public:
  FloatMatMul(const MatMulSizes& sizes, const T* a, const T* b, T* out)
      : MatMulContraction<T>(sizes, a, {sizes.depth, 1}, b, {sizes.columns, 1}), out_(out) {}
  void store(std::int64_t index, std::int64_t row, std::int64_t first, std::int64_t last,
             const double* sums) const override {
    T* out = out_ + (index * this->rows + row) * this->columns + first;
    for (std::int64_t j = 0; j < last - first; ++j) out[j] = static_cast<T>(sums[j]);
  }

 private:
  T* out_;
};

Status matmul_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* a, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* b, kernel_input(context, 1));
  TESSERA_ASSIGN(const MatMulSizes sizes, matmul_sizes("MatMul", a->dims, b->dims));
  TESSERA_ASSIGN(const MutableTensorView y, context.output(0, a->dtype, sizes.output));
  if (is_integer(a->dtype)) {
    return dispatch(WideIntegers{}, a->dtype, [&](auto tag) -> Status {
      using T = typename decltype(tag)::type;
      matmul_integers<T>(context, sizes, a->as<T>(), {sizes.depth, 1}, b->as<T>(),
                         {sizes.columns, 1}, y.as<T>());
      return {};
    });
  }
  return with_real(a->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    const Reals<T> as(*a);
    const Reals<T> bs(*b);
    RealResult<T> ys(y);
    contract(context, FloatMatMul<T>(sizes, as.data(), bs.data(), ys.data()));
    ys.finish();
    return {};
  });
}

Work matmul_work(const Attributes&, std::span<const TensorSpec> inputs,
                 std::span<const TensorSpec> outputs) {
  Work work = operand_traffic(inputs, outputs);
  work.flops = inputs[0].dims.empty()
                   ? 0
                   : 2 * output_elements(outputs) * static_cast<double>(inputs[0].dims.back());
  return work;
}

}  // namespace

OpSchema matmul_schema() {
  OpSchema op;
  op.name = "MatMul";
  op.versions = {1, 9, 13};
  op.unspecified = "integers wrap around";
  op.inputs = {required("A", "T"), required("B", "T")};
  op.outputs = {required("Y", "T")};
  op.type_variables = {{"T", kFloatTypes | dtype_set({DType::kInt32, DType::kInt64, DType::kUInt32,
                                                      DType::kUInt64})}};
  op.structure = Structure::kContraction;
  op.infer = infer_matmul;
  op.kernel = matmul_kernel;
  op.work = matmul_work;
  return op;
}

}  // namespace tessera::ops::nn
