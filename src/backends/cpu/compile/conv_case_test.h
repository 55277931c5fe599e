#pragma once

// For the tests of convolutions: one of any kind, its sizes symbols.

#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/compile/kernel_check.h"
#include "backends/cpu/run/cpu_run_device.h"

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

// A convolution to so many channels, behind which a tensor is added, values are kept in a range (of
// a Clip or a Relu), and, of a Clip, one more step follows.
inline void add_ranged_sum(Bench& bench, std::int64_t channels, bool clips) {
  const auto x = bench.input("x", {2, 13, 9, 17});
  const auto conv = bench.op("Conv", {x, bench.random_constant("w", {channels, 13, 3, 3}),
                                      bench.random_constant("b", {channels})});
  const auto sum = bench.op("Add", {bench.input("r", {2, channels, 7, 15}), conv});
  if (!clips) return bench.output(bench.op("Relu", {sum}));
  bench.output(bench.op("Tanh", {bench.op("Clip", {sum, bench.random_constant("low", {}, -1, 0),
                                                   bench.random_constant("high", {}, 1, 2)})}));
}

// How many of the candidates are of that kernel.
inline std::size_t candidates_of(Bench& bench, const SymbolBindings& point,
                                 const std::string& kernel) {
  std::size_t count = 0;
  for (const Candidate& candidate : bench.offers(point).candidates)
    if (candidate.kernel == kernel) ++count;
  return count;
}

// A channels-last convolution as the compiler leaves it for a kernel of own code.
inline artefact::KernelSpec conv_spec(const std::string& kernel, const Shape& src, const Shape& dst,
                                      artefact::TensorDecl weights, std::int64_t group = 1) {
  const Layout last = Layout::channels_last(static_cast<int>(src.size()));
  artefact::KernelSpec spec;
  spec.backend = "cpu";
  spec.kernel = kernel;
  spec.inputs = {{DType::kFp32, last, src}};
  spec.outputs = {{DType::kFp32, last, dst}};
  spec.constants = {std::move(weights)};
  artefact::KernelStep step;
  step.op_type = "Conv";
  step.inputs = {0, 1};
  step.output_count = 1;
  step.attributes = attributes({{"group", group}});
  spec.steps = {step};
  spec.output_operands = {2};
  return spec;
}

// Why the spec does not load; empty where it does.
inline std::string load_error(const artefact::KernelSpec& spec) {
  const std::vector<std::byte> bytes(65536);
  const std::vector<std::span<const std::byte>> constants(spec.constants.size(), bytes);
  const auto loaded = make_cpu_run_device()->load(spec, constants);
  return loaded ? "" : loaded.error().to_string();
}

}  // namespace tessera::backends::cpu
