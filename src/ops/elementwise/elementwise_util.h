#pragma once

// What elementwise operators share: loops over broadcast operands, inference, upgrades of the old
// broadcasting attributes.

#include <array>

#include "ops/kernel_util.h"
#include "ops/op.h"
#include "ops/scalar_function.h"

namespace tessera::ops {

// Output 0 has the dtype of input 0 and the shape that all inputs broadcast to.
Status infer_broadcast(InferContext& context);
// The same with a bool output.
Status infer_broadcast_bool(InferContext& context);

// Versions 1 and 6 of binary operators: attributes `broadcast` and `axis` align input 1 with input
// 0 from that axis on. Becomes numpy broadcasting, by an Unsqueeze of input 1 where its dims are
// not the last ones.
Status upgrade_legacy_broadcast(UpgradeNode& node, int opset, UpgradeBuilder& builder);

// out[i] = function(in[i]) for one operand; Out may be another type than In.
template <typename In, typename Out, typename Function>
Status map_unary(KernelContext& context, const Function& function) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, dtype_of<Out>(), input->dims));
  const In* from = input->as<In>();
  Out* to = output.as<Out>();
  context.parallel_for(input->numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) to[i] = store<Out>(function(load(from[i])));
  });
  return {};
}

// out = function(a, b) with broadcasting; the operands are views of types A and B.
template <typename A, typename B, typename Out, typename Function>
Status map_binary(KernelContext& context, const TensorView& a, const TensorView& b,
                  const Function& function) {
  TESSERA_ASSIGN(const Dims dims, broadcast_dims(a.dims, b.dims));
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, dtype_of<Out>(), dims));
  const A* left = a.as<A>();
  const B* right = b.as<B>();
  Out* to = output.as<Out>();
  for_each_row<2>(context, dims, {broadcast_strides(a.dims, dims), broadcast_strides(b.dims, dims)},
                  [&](std::int64_t at, const std::array<std::int64_t, 2>& offsets,
                      const std::array<std::int64_t, 2>& steps, std::int64_t count) {
                    const A* x = left + offsets[0];
                    const B* y = right + offsets[1];
                    if (steps[0] == 1 && steps[1] == 1) {
                      for (std::int64_t i = 0; i < count; ++i)
                        to[at + i] = store<Out>(function(load(x[i]), load(y[i])));
                    } else {
                      for (std::int64_t i = 0; i < count; ++i)
                        to[at + i] =
                            store<Out>(function(load(x[i * steps[0]]), load(y[i * steps[1]])));
                    }
                  });
  return {};
}

// Inputs 0 and 1, of one dtype.
struct Operands {
  const TensorView* a = nullptr;
  const TensorView* b = nullptr;
};
Result<Operands> same_type_operands(const KernelContext& context);

// function.template operator()<T>(x, y) on the compute type, for the dtypes of a list.
template <typename List, typename Function>
Status binary_kernel(KernelContext& context, const Function& function) {
  TESSERA_ASSIGN(const Operands operands, same_type_operands(context));
  return dispatch(List{}, operands.a->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    return map_binary<T, T, T>(context, *operands.a, *operands.b, [&](Compute<T> x, Compute<T> y) {
      return static_cast<Compute<T>>(function(x, y));
    });
  });
}

// The same with bool results.
template <typename List, typename Function>
Status comparison_kernel(KernelContext& context, const Function& function) {
  TESSERA_ASSIGN(const Operands operands, same_type_operands(context));
  return dispatch(List{}, operands.a->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    return map_binary<T, T, bool>(context, *operands.a, *operands.b, function);
  });
}

// Float operators by their scalar function.
template <ScalarFunction F>
Status float_unary_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  const ScalarParams params = scalar_params(F, context.attributes());
  return dispatch(FloatTypes{}, input->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    return map_unary<T, T>(context, [&](Compute<T> x) { return Scalar<F>::apply(&x, params); });
  });
}

}  // namespace tessera::ops
