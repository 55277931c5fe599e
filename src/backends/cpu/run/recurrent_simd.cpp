#include "backends/cpu/run/recurrent_simd.h"

// The three variants of elementwise_simd.cpp.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/run/recurrent_simd.cpp"
// foreach_target.h must come before whatever includes highway.h.
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "backends/cpu/run/simd_math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace tessera::backends::cpu {
namespace HWY_NAMESPACE {

HWY_INLINE V kept(V x, float clip) {
  return at_most(at_least(x, -clip), clip);
}

// The sums of gate `gate` from unit i on.
HWY_INLINE V gate_of(const CellUnits& units, std::ptrdiff_t gate, std::size_t i) {
  return hn::LoadU(D(), units.gates + gate * units.gate_stride + i);
}

HWY_INLINE V sigmoid_of(const CellUnits& units, V x) {
  return sigmoid(kept(x, units.clip));
}
HWY_INLINE V tanh_of(const CellUnits& units, V x) {
  return hn::Tanh(D(), kept(x, units.clip));
}

void lstm(const CellUnits& units, const LstmParts& parts, float* c, float* h) {
  const D d;
  const auto peep = [&](V sum, std::ptrdiff_t gate, std::size_t i, V state) HWY_ATTR {
    if (parts.peepholes == nullptr) return sum;
    return hn::MulAdd(hn::LoadU(d, parts.peepholes + gate * parts.peephole_stride + i), state, sum);
  };
  for (std::size_t i = 0; i < units.count; i += hn::Lanes(d)) {
    const V before = hn::LoadU(d, c + i);
    const V input = sigmoid_of(units, peep(gate_of(units, 0, i), 0, i, before));
    const V forget = parts.input_forget
                         ? hn::Sub(constant(1), input)
                         : sigmoid_of(units, peep(gate_of(units, 2, i), 2, i, before));
    const V cell = hn::MulAdd(forget, before, hn::Mul(input, tanh_of(units, gate_of(units, 3, i))));
    const V output = sigmoid_of(units, peep(gate_of(units, 1, i), 1, i, cell));
    hn::StoreU(cell, d, c + i);
    hn::StoreU(hn::Mul(output, hn::Tanh(d, cell)), d, h + i);
  }
}

void reset(const CellUnits& units, const float* h, float* masked) {
  const D d;
  for (std::size_t i = 0; i < units.count; i += hn::Lanes(d))
    hn::StoreU(hn::Mul(sigmoid_of(units, gate_of(units, 1, i)), hn::LoadU(d, h + i)), d,
               masked + i);
}

void gru(const CellUnits& units, const float* state, const float* h, float* next) {
  const D d;
  for (std::size_t i = 0; i < units.count; i += hn::Lanes(d)) {
    V sum = gate_of(units, 2, i);
    if (state != nullptr)
      sum = hn::MulAdd(sigmoid_of(units, gate_of(units, 1, i)), hn::LoadU(d, state + i), sum);
    const V candidate = tanh_of(units, sum);
    const V update = sigmoid_of(units, gate_of(units, 0, i));
    const V before = hn::LoadU(d, h + i);
    hn::StoreU(hn::MulAdd(hn::Sub(constant(1), update), candidate, hn::Mul(update, before)), d,
               next + i);
  }
}

void rnn(const CellUnits& units, float* next) {
  const D d;
  for (std::size_t i = 0; i < units.count; i += hn::Lanes(d))
    hn::StoreU(tanh_of(units, gate_of(units, 0, i)), d, next + i);
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::backends::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::backends::cpu {

HWY_EXPORT(lstm);
HWY_EXPORT(reset);
HWY_EXPORT(gru);
HWY_EXPORT(rnn);

void lstm_cell(const CellUnits& units, const LstmParts& parts, float* c, float* h) {
  HWY_DYNAMIC_DISPATCH(lstm)(units, parts, c, h);
}
void gru_reset(const CellUnits& units, const float* h, float* masked) {
  HWY_DYNAMIC_DISPATCH(reset)(units, h, masked);
}
void gru_cell(const CellUnits& units, const float* state, const float* h, float* next) {
  HWY_DYNAMIC_DISPATCH(gru)(units, state, h, next);
}
void rnn_cell(const CellUnits& units, float* next) {
  HWY_DYNAMIC_DISPATCH(rnn)(units, next);
}

}  // namespace tessera::backends::cpu
#endif
