// Gemm: alpha * A' * B' + beta * C, where ' transposes on request and C broadcasts to the product.

#include <fmt/format.h>

#include "base/truncate.h"
#include "ops/infer_util.h"
#include "ops/nn/matmul_kernel.h"
#include "ops/nn/nn_util.h"
#include "ops/nn/reals.h"
#include "ops/nn/schemas.h"
#include "ops/schema_util.h"
#include "ops/upgrade_util.h"

namespace tessera::ops::nn {
namespace {

using WideIntegers = Types<std::int32_t, std::int64_t, std::uint32_t, std::uint64_t>;

Status check_rank(std::string_view name, const Shape& shape) {
  if (shape.size() == 2) return {};
  return op_error("Gemm",
                  fmt::format("input '{}': expected rank 2, found rank {}", name, shape.size()));
}

// C broadcasts to the product in one direction only.
Status check_addend(const Shape& c, const Shape& product) {
  const auto mismatch = [&] {
    return op_error("Gemm",
                    fmt::format("input 'C': expected a shape that broadcasts to {}, found {}",
                                to_string(product), to_string(c)));
  };
  if (c.size() > 2) return mismatch();
  for (std::size_t i = 0; i < c.size(); ++i) {
    const auto have = c[c.size() - 1 - i].constant();
    const auto want = product[1 - i].constant();
    if (have && want && *have != 1 && *have != *want) return mismatch();
  }
  return {};
}

Result<Shape> gemm_shape(const Attributes& attributes, const Shape& a, const Shape& b,
                         const Shape* c) {
  TESSERA_TRY(check_rank("A", a));
  TESSERA_TRY(check_rank("B", b));
  const bool trans_a = attributes.get_int("transA", 0) != 0;
  const bool trans_b = attributes.get_int("transB", 0) != 0;
  TESSERA_TRY(require_size(
      "Gemm", "inner size of input 'B'", a[trans_a ? 0 : 1],
      fmt::format("as 'A' of shape {} has{}", to_string(a), trans_a ? " transposed" : ""),
      b[trans_b ? 1 : 0]));
  Shape product{a[trans_a ? 1 : 0], b[trans_b ? 0 : 1]};
  if (c != nullptr) TESSERA_TRY(check_addend(*c, product));
  return product;
}

Status infer_gemm(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* a, tensor_input(context, 0));
  TESSERA_ASSIGN(const InferInput* b, tensor_input(context, 1));
  TESSERA_TRY(require_same_dtype(context, 1, 0));
  const Shape* c = nullptr;
  if (has_input(context, 2)) {
    TESSERA_TRY(require_same_dtype(context, 2, 0));
    if (context.inputs[2].type.shape) c = &*context.inputs[2].type.shape;
  }
  std::optional<Shape> output;
  if (a->type.shape && b->type.shape) {
    TESSERA_ASSIGN(output, gemm_shape(context.attributes, *a->type.shape, *b->type.shape, c));
  } else {
    output = Shape{context.fresh_symbol("gemm"), context.fresh_symbol("gemm")};
  }
  set_output(context, 0, a->type.dtype, std::move(output));
  return {};
}

// What is added to each product: element (row, column) of C, broadcast.
struct Addend {
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;
  [[nodiscard]] std::int64_t at(std::int64_t row, std::int64_t column) const {
    return row * row_stride + column * column_stride;
  }
};

template <typename T>
class FloatGemm final : public MatMulContraction<T> {
 public:
  FloatGemm(const MatMulSizes& sizes, const T* a, MatrixStrides as, const T* b, MatrixStrides bs,
            const T* c, Addend addend, double alpha, double beta, T* out)
      : MatMulContraction<T>(sizes, a, as, b, bs),
        c_(c),
        addend_(addend),
        alpha_(alpha),
        beta_(beta),
        out_(out) {}
  void store(std::int64_t, std::int64_t row, std::int64_t first, std::int64_t last,
             const double* sums) const override {
    T* out = out_ + row * this->columns;
    for (std::int64_t j = first; j < last; ++j) {
      double value = alpha_ * sums[j - first];
      if (c_ != nullptr) value += beta_ * static_cast<double>(c_[addend_.at(row, j)]);
      out[j] = static_cast<T>(value);
    }
  }

 private:
  const T* c_;
  Addend addend_;
  double alpha_, beta_;
  T* out_;
};

// Wraps around; a factor of 1 leaves the integers as they are, any other one scales them in double
// and cuts the fraction.
template <typename T>
T scaled(T value, double factor) {
  return factor == 1.0 ? value
                       : static_cast<T>(saturating_truncate<std::int64_t>(
                             static_cast<double>(value) * factor));
}

struct GemmCall {
  MatMulSizes sizes;
  MatrixStrides a, b;
  Addend addend;
  double alpha, beta;
};

template <typename T>
void gemm_integers(KernelContext& context, const GemmCall& call, const TensorView& a,
                   const TensorView& b, const TensorView* c, const MutableTensorView& y) {
  T* out = y.as<T>();
  matmul_integers<T>(context, call.sizes, a.as<T>(), call.a, b.as<T>(), call.b, out);
  for (std::int64_t row = 0; row < call.sizes.rows; ++row) {
    for (std::int64_t column = 0; column < call.sizes.columns; ++column) {
      T& element = out[row * call.sizes.columns + column];
      const T extra =
          c == nullptr ? T{0} : scaled(c->as<T>()[call.addend.at(row, column)], call.beta);
      element = static_cast<T>(static_cast<std::uint64_t>(scaled(element, call.alpha)) +
                               static_cast<std::uint64_t>(extra));
    }
  }
}

Result<GemmCall> plan_call(const Attributes& attributes, const Dims& a, const Dims& b,
                           const Dims* c) {
  const Shape c_shape = c == nullptr ? Shape{} : to_shape(*c);
  TESSERA_ASSIGN(const Shape shape, gemm_shape(attributes, to_shape(a), to_shape(b),
                                               c == nullptr ? nullptr : &c_shape));
  const bool trans_a = attributes.get_int("transA", 0) != 0;
  const bool trans_b = attributes.get_int("transB", 0) != 0;
  GemmCall call;
  call.sizes.output = constant_dims(shape).value();
  call.sizes.rows = call.sizes.output[0];
  call.sizes.columns = call.sizes.output[1];
  call.sizes.depth = a[trans_a ? 0 : 1];
  call.a = trans_a ? MatrixStrides{1, a[1]} : MatrixStrides{a[1], 1};
  call.b = trans_b ? MatrixStrides{1, b[1]} : MatrixStrides{b[1], 1};
  if (c != nullptr) {
    const Dims strides = broadcast_strides(*c, call.sizes.output);
    call.addend = {strides[0], strides[1]};
  }
  call.alpha = static_cast<double>(attributes.get_float("alpha", 1.0F));
  call.beta = static_cast<double>(attributes.get_float("beta", 1.0F));
  return call;
}

Status gemm_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* a, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* b, kernel_input(context, 1));
  const TensorView* c = context.input(2);
  TESSERA_ASSIGN(const GemmCall call, plan_call(context.attributes(), a->dims, b->dims,
                                                c == nullptr ? nullptr : &c->dims));
  TESSERA_ASSIGN(const MutableTensorView y, context.output(0, a->dtype, call.sizes.output));
  if (is_integer(a->dtype)) {
    return dispatch(WideIntegers{}, a->dtype, [&](auto tag) -> Status {
      gemm_integers<typename decltype(tag)::type>(context, call, *a, *b, c, y);
      return {};
    });
  }
  return with_real(a->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    const Reals<T> as(*a);
    const Reals<T> bs(*b);
    const TensorView nothing{dtype_of<T>(), {0}, nullptr};
    const Reals<T> cs(c == nullptr ? nothing : *c);
    RealResult<T> ys(y);
    contract(context, FloatGemm<T>(call.sizes, as.data(), call.a, bs.data(), call.b,
                                   c == nullptr ? nullptr : cs.data(), call.addend, call.alpha,
                                   call.beta, ys.data()));
    ys.finish();
    return {};
  });
}

Work gemm_work(const Attributes& attributes, std::span<const TensorSpec> inputs,
               std::span<const TensorSpec> outputs) {
  Work work = operand_traffic(inputs, outputs);
  const std::size_t inner = attributes.get_int("transA", 0) != 0 ? 0 : 1;
  work.flops = 2 * output_elements(outputs) * static_cast<double>(inputs[0].dims[inner]);
  return work;
}

// Versions 1 and 6: `broadcast` allowed C to broadcast; without it C has the shape of the product,
// which broadcasts as well.
Status upgrade_broadcast(UpgradeNode& node, int, UpgradeBuilder&) {
  erase_attributes(node, {"broadcast"});
  return {};
}

}  // namespace

OpSchema gemm_schema() {
  OpSchema op;
  op.name = "Gemm";
  op.versions = {1, 6, 7, 9, 11, 13};
  op.unspecified =
      "integers wrap around; by an alpha or beta other than 1 they are scaled in fp64 and cut "
      "towards zero";
  op.inputs = {required("A", "T"), required("B", "T"), optional("C", "T")};
  op.outputs = {required("Y", "T")};
  op.attributes = {attr("alpha", AttrType::kFloat), attr("beta", AttrType::kFloat),
                   attr("transA", AttrType::kInt), attr("transB", AttrType::kInt)};
  op.type_variables = {{"T", kFloatTypes | dtype_set({DType::kInt32, DType::kInt64, DType::kUInt32,
                                                      DType::kUInt64})}};
  op.structure = Structure::kContraction;
  op.infer = infer_gemm;
  op.kernel = gemm_kernel;
  op.work = gemm_work;
  op.upgrades = {{1, 6, upgrade_broadcast}};
  return op;
}

}  // namespace tessera::ops::nn
