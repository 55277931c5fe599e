// BatchNormalization spelled out: (x - mean) * scale + bias with a constant for each channel.

#include <fmt/format.h>

#include <cmath>

#include "passes/float_elements.h"
#include "passes/reassemble/assembler.h"
#include "passes/rewrite.h"

namespace tessera::passes::reassemble {
namespace {

using Judged = std::optional<std::string>;

constexpr std::size_t kChannelAxis = 1;
constexpr const char* kConstants[] = {"mean", "minus_mean", "scale", "gamma", "deviation", "bias"};

std::vector<PatternPtr> spellings() {
  const PatternPtr moved =
      one_of({op("Sub", {value("x"), value("mean")}), sum({value("x"), value("minus_mean")})});
  std::vector<PatternPtr> made;
  for (const PatternPtr& normal :
       {product({moved, value("scale"), value("gamma")}),
        product({moved, inverse(value("deviation")), value("gamma")}),
        product({moved, value("scale")}), product({moved, inverse(value("deviation"))})}) {
    made.push_back(sum({normal, value("bias")}));
  }
  return made;
}

// What all channels are multiplied by and moved by, in double.
struct Channels {
  std::vector<double> mean, scale, bias;
};

std::vector<double> elements_of(const ir::Graph& graph, ir::ValueId id) {
  return float_elements(constant_of(graph, id)->view());
}

Channels channels_of(const ir::Graph& graph, const Match& match) {
  Channels channels;
  channels.bias = elements_of(graph, match.value("bias"));
  const std::size_t count = channels.bias.size();
  channels.mean.assign(count, 0);
  channels.scale.assign(count, 1);
  const auto each = [&](const char* name, auto change) {
    const ir::ValueId id = match.value(name);
    if (id == ir::kNoValue) return;
    const std::vector<double> elements = elements_of(graph, id);
    for (std::size_t i = 0; i < count; ++i) change(i, elements[i]);
  };
  each("mean", [&](std::size_t i, double e) { channels.mean[i] = e; });
  each("minus_mean", [&](std::size_t i, double e) { channels.mean[i] = -e; });
  each("scale", [&](std::size_t i, double e) { channels.scale[i] *= e; });
  each("gamma", [&](std::size_t i, double e) { channels.scale[i] *= e; });
  each("deviation", [&](std::size_t i, double e) { channels.scale[i] /= e; });
  return channels;
}

Judged check(const Assembler& assembler, const Match& match, ir::ValueId result) {
  const ir::Graph& graph = assembler.view().graph();
  const ir::ValueId x = match.value("x");
  // Arithmetic of other operands than constants is something else.
  for (const char* name : kConstants) {
    const ir::ValueId id = match.value(name);
    if (id == ir::kNoValue) continue;
    const Tensor* tensor = constant_of(graph, id);
    if (tensor == nullptr || tensor->numel() < 2 || !has_float_elements(tensor->dtype()))
      return std::nullopt;
  }
  if (constant_of(graph, x) != nullptr || !same_type(graph, x, result)) return std::nullopt;
  for (const char* name : kConstants) {
    const ir::ValueId id = match.value(name);
    if (id == ir::kNoValue || assembler.view().is_by_axis(id, result, kChannelAxis)) continue;
    return fmt::format("{} {} has not one element for each channel of {}", name,
                       assembler.quoted(id), assembler.quoted(result));
  }
  const DType dtype = assembler.type(result).dtype;
  const Channels channels = channels_of(graph, match);
  for (std::size_t i = 0; i < channels.scale.size(); ++i) {
    const double scale = round_to(dtype, channels.scale[i]);
    if (!std::isfinite(scale) || (scale == 0) != (channels.scale[i] == 0))
      return fmt::format("the scale of channel {} is {:.7g}, out of the range of {}", i,
                         channels.scale[i], to_string(dtype));
  }
  return std::string();
}

void build(Assembler& assembler, const Match& match, Program& program) {
  const ir::Graph& graph = assembler.graph();
  const Channels channels = channels_of(graph, match);
  const DType dtype = graph.value(match.value("x")).type.dtype;
  const auto constant = [&](const char* stem, std::vector<double> elements) {
    const Dims dims = {static_cast<std::int64_t>(elements.size())};
    for (double& element : elements) element = round_to(dtype, element);
    return program.constant(stem, from_float_elements(dtype, dims, elements));
  };
  ops::Attributes attributes;
  attributes.set("epsilon", 0.0F);
  const std::vector<double> ones(channels.scale.size(), 1);
  std::vector<ir::ValueId> inputs = {match.value("x"), constant("scale", channels.scale),
                                     constant("bias", channels.bias),
                                     constant("mean", channels.mean), constant("variance", ones)};
  program.finish("", "BatchNormalization", std::move(attributes), std::move(inputs));
}

}  // namespace

void propose_batch_normalizations(Assembler& assembler) {
  propose(assembler, {"BatchNormalization", "Add", spellings(), check, build});
}

}  // namespace tessera::passes::reassemble
