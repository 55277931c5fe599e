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

// ---- Products -----------------------------------------------------------------------------------

using Sums = hn::CappedTag<float, kGatePanel>;
constexpr std::size_t kLanes = hn::MaxLanes(Sums());
constexpr std::size_t kVectors = kGatePanel / kLanes;  // of a row of a panel
// Rows whose sums, panel rows and one broadcast fit into the registers.
constexpr std::size_t kMostRows = kVectors <= 2 ? 6 : 2;

// Panels side by side, so that enough sums run at once to hide the latency of an addition.
constexpr std::size_t panels_at_once(std::size_t rows) {
  if (kVectors == 1) return 4;
  if (kVectors == 2) return rows == 1 ? 4 : rows == 2 ? 2 : 1;
  return kVectors == 4 && rows == 1 ? 2 : 1;
}

// Rows from `row` on, panels from `panel` on.
template <std::size_t R, std::size_t P>
HWY_INLINE void product_tile(const GateProduct& product, std::size_t row, std::size_t panel) {
  const Sums d;
  constexpr std::size_t kWidth = P * kVectors;
  const std::size_t panel_floats = product.depth * kGatePanel;
  const auto column = static_cast<std::ptrdiff_t>(panel * kGatePanel);
  hn::Vec<Sums> sum[R][kWidth];
  const float* weights[P];
  const float* x[R];
#pragma GCC unroll 4
  for (std::size_t p = 0; p < P; ++p) weights[p] = product.panels + (panel + p) * panel_floats;
#pragma GCC unroll 6
  for (std::size_t r = 0; r < R; ++r) {
    x[r] = product.x[row + r];
    const float* start =
        product.start + static_cast<std::ptrdiff_t>(row + r) * product.start_stride + column;
#pragma GCC unroll 16
    for (std::size_t v = 0; v < kWidth; ++v) sum[r][v] = hn::LoadU(d, start + v * kLanes);
  }
  for (std::size_t k = 0; k < product.depth; ++k) {
    hn::Vec<Sums> weight[kWidth];
#pragma GCC unroll 16
    for (std::size_t v = 0; v < kWidth; ++v)
      weight[v] = hn::LoadU(d, weights[v / kVectors] + k * kGatePanel + v % kVectors * kLanes);
#pragma GCC unroll 6
    for (std::size_t r = 0; r < R; ++r) {
      const auto factor = hn::Set(d, x[r][k]);
#pragma GCC unroll 16
      for (std::size_t v = 0; v < kWidth; ++v) sum[r][v] = hn::MulAdd(factor, weight[v], sum[r][v]);
    }
  }
#pragma GCC unroll 6
  for (std::size_t r = 0; r < R; ++r) {
    float* y = product.y + static_cast<std::ptrdiff_t>(row + r) * product.y_stride + column;
#pragma GCC unroll 16
    for (std::size_t v = 0; v < kWidth; ++v) hn::StoreU(sum[r][v], d, y + v * kLanes);
  }
}

// R rows over all panels.
template <std::size_t R>
void product_rows(const GateProduct& product, std::size_t row, std::size_t first,
                  std::size_t count) {
  constexpr std::size_t kPanels = panels_at_once(R);
  std::size_t panel = first;
  for (; panel + kPanels <= first + count; panel += kPanels)
    product_tile<R, kPanels>(product, row, panel);
  for (; panel < first + count; ++panel) product_tile<R, 1>(product, row, panel);
}

// Panels in groups that stay in the nearest cache while all rows go over them.
void product_all(const GateProduct& product) {
  constexpr std::size_t kGroup = 4;
  const std::size_t group = product.rows <= kMostRows ? product.panel_count : kGroup;
  for (std::size_t first = 0; first < product.panel_count; first += group) {
    const std::size_t count = HWY_MIN(group, product.panel_count - first);
    std::size_t row = 0;
    for (; row + kMostRows <= product.rows; row += kMostRows)
      product_rows<kMostRows>(product, row, first, count);
    for (; row + 2 <= product.rows; row += 2) product_rows<2>(product, row, first, count);
    if (row < product.rows) product_rows<1>(product, row, first, count);
  }
}

// ---- Cells --------------------------------------------------------------------------------------

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

HWY_EXPORT(product_all);
HWY_EXPORT(lstm);
HWY_EXPORT(reset);
HWY_EXPORT(gru);
HWY_EXPORT(rnn);

void gate_product(const GateProduct& product) {
  HWY_DYNAMIC_DISPATCH(product_all)(product);
}
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
