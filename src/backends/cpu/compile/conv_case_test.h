#pragma once

// For the tests of convolutions: one of any kind, its sizes symbols.

#include <ostream>
#include <string>
#include <vector>

#include "backends/cpu/compile/kernel_check.h"

namespace tessera::backends::cpu {

struct ConvCase {
  std::string name;
  std::int64_t in = 1, out = 1, group = 1;
  std::vector<std::int64_t> kernel, strides, pads, dilations;
  Dims size;  // of the source, priced at
  bool transposed = false;

  // Products that one result sums.
  [[nodiscard]] double depth() const {
    const std::int64_t channels = transposed ? out : in;
    return static_cast<double>(channels / group * numel(kernel));
  }
  // The batch and the sizes, the first of them `longer` by so much.
  [[nodiscard]] SymbolBindings at(std::int64_t batch, std::int64_t longer = 0) const {
    SymbolBindings bindings{{"n", batch}};
    for (std::size_t i = 0; i < size.size(); ++i)
      bindings["s" + std::to_string(i)] = size[i] + (i == 0 ? longer : 0);
    return bindings;
  }
};

inline void PrintTo(const ConvCase& c, std::ostream* os) {
  *os << c.name;
}

// The convolution with a bias, and what a kernel can put behind it itself and what not.
inline void add_conv(Bench& bench, const ConvCase& c) {
  Shape shape = {Dim::symbol("n"), c.in};
  for (std::size_t i = 0; i < c.size.size(); ++i)
    shape.push_back(Dim::symbol("s" + std::to_string(i)));
  Dims weights = {c.out, c.in / c.group};
  if (c.transposed) weights = {c.in, c.out / c.group};
  weights.insert(weights.end(), c.kernel.begin(), c.kernel.end());
  const auto y = bench.op(c.transposed ? "ConvTranspose" : "Conv",
                          {bench.input("x", shape), bench.random_constant("w", weights),
                           bench.random_constant("b", {c.out})},
                          attributes({{"group", c.group},
                                      {"strides", c.strides},
                                      {"pads", c.pads},
                                      {"dilations", c.dilations},
                                      {"kernel_shape", c.kernel}}));
  bench.output(bench.op("Softplus", {bench.op("Relu", {y})}));
}

// How many of the candidates are of that kernel.
inline std::size_t candidates_of(Bench& bench, const SymbolBindings& point,
                                 const std::string& kernel) {
  std::size_t count = 0;
  for (const Candidate& candidate : bench.offers(point).candidates)
    if (candidate.kernel == kernel) ++count;
  return count;
}

}  // namespace tessera::backends::cpu
