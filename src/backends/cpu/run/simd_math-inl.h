// Vectorised functions of fp32 that several files of loops share. Read once for each target that
// Highway compiles for, behind foreach_target.h and highway.h.

#if defined(TESSERA_BACKENDS_CPU_SIMD_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_BACKENDS_CPU_SIMD_MATH_INL_H
#undef TESSERA_BACKENDS_CPU_SIMD_MATH_INL_H
#else
#define TESSERA_BACKENDS_CPU_SIMD_MATH_INL_H
#endif

#include <cmath>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::backends::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

HWY_INLINE V constant(float value) {
  return hn::Set(D(), value);
}

// x86 max(a, b) is b where either is NaN: x stands second, so that its NaN goes through.
HWY_INLINE V at_least(V x, float low) {
  return hn::Max(constant(low), x);
}
HWY_INLINE V at_most(V x, float high) {
  return hn::Min(constant(high), x);
}

// exp that overflows to infinity instead of to garbage. hn::Exp has 0 for a NaN, which goes the way
// of what is too large: either plus infinity is what it gives.
HWY_INLINE V exp_of(V x) {
  const D d;
  const V bounded = hn::Exp(d, at_most(x, 88.7F));
  return hn::IfThenElse(hn::Le(x, constant(88.72283F)), bounded, hn::Add(x, constant(HUGE_VALF)));
}

HWY_INLINE V sigmoid(V x) {
  return hn::Div(constant(1), hn::Add(constant(1), exp_of(hn::Neg(x))));
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::backends::cpu
HWY_AFTER_NAMESPACE();

#endif
