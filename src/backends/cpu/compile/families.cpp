#include "backends/cpu/compile/families.h"

#include <fmt/format.h>

#include "backends/cpu/run/cpu_features.h"

namespace tessera::backends::cpu {

Candidate make_candidate(const SpecDraft& draft, std::string kernel,
                         const std::function<Layout(std::size_t)>& input_layout,
                         const std::function<Layout(std::size_t)>& output_layout) {
  Candidate candidate;
  candidate.kernel = std::move(kernel);
  for (const std::int32_t number : draft.item_inputs) {
    const auto at = static_cast<std::size_t>(number);
    if (at >= draft.spec.inputs.size()) {
      candidate.inputs.emplace_back();
    } else {
      candidate.inputs.emplace_back(TensorForm{input_layout(at), draft.spec.inputs[at].dtype});
    }
  }
  for (std::size_t o = 0; o < draft.spec.outputs.size(); ++o)
    candidate.outputs.push_back({output_layout(o), draft.spec.outputs[o].dtype});
  return candidate;
}

Candidate make_row_major(const SpecDraft& draft, std::string kernel) {
  const auto plain = [](std::size_t) { return Layout{}; };
  return make_candidate(draft, std::move(kernel), plain, plain);
}

void set_traffic(Candidate& candidate, const SpecDraft& draft, const InstanceDims& dims) {
  double bytes = 0;
  for (std::size_t i = 0; i < dims.inputs.size(); ++i)
    bytes += static_cast<double>(nbytes(draft.spec.inputs[i].dtype, dims.inputs[i]));
  for (std::size_t o = 0; o < dims.outputs.size(); ++o) {
    bytes += static_cast<double>(nbytes(draft.spec.outputs[o].dtype, dims.outputs[o]));
    candidate.flops += static_cast<double>(numel(dims.outputs[o]));
  }
  candidate.packed_bytes = 0;
  for (const Tensor& tensor : draft.constants) candidate.packed_bytes += tensor.nbytes();
  candidate.bytes_moved = bytes + static_cast<double>(candidate.packed_bytes);
  candidate.compute_dtype = draft.spec.outputs.empty() ? DType::kFp32 : draft.spec.outputs[0].dtype;
}

std::vector<Layout> activation_layouts(std::size_t rank) {
  if (rank < 3 || rank > 5) return {Layout{}};
  return {Layout::channel_blocked(static_cast<int>(rank), channel_block()), Layout{},
          Layout::channels_last(static_cast<int>(rank))};
}

Offers refuse(std::string reason) {
  return Offers{{}, std::move(reason)};
}
Offers refuse(const Error& error) {
  return refuse(error.to_string());
}

void put_layout(std::map<std::string, std::int64_t>& options, const std::string& name,
                const Layout& layout) {
  std::int64_t order = 0;  // base 16, a leading 1
  if (!layout.order.empty()) {
    order = 1;
    for (const std::uint8_t dim : layout.order) order = order * 16 + dim;
  }
  options[name + ".order"] = order;
  for (std::size_t i = 0; i < layout.blocks.size(); ++i) {
    options[fmt::format("{}.block{}", name, i)] =
        std::int64_t{layout.blocks[i].first} * 65536 + layout.blocks[i].second;
  }
}

Layout get_layout(const std::map<std::string, std::int64_t>& options, const std::string& name) {
  Layout layout;
  const auto order = options.find(name + ".order");
  if (order == options.end()) return layout;
  for (std::int64_t rest = order->second; rest > 1; rest /= 16)
    layout.order.insert(layout.order.begin(), static_cast<std::uint8_t>(rest % 16));
  for (std::size_t i = 0;; ++i) {
    const auto block = options.find(fmt::format("{}.block{}", name, i));
    if (block == options.end()) return layout;
    layout.blocks.emplace_back(static_cast<std::uint8_t>(block->second / 65536),
                               static_cast<std::uint16_t>(block->second % 65536));
  }
}

std::string describe_steps(const artefact::KernelSpec& spec) {
  std::string text;
  for (std::size_t i = 0; i < spec.steps.size(); ++i)
    text += (i == 0 ? "" : i == 1 ? " with " : ", ") + spec.steps[i].op_type;
  return text;
}

}  // namespace tessera::backends::cpu
