#include "backends/simulated/compile/simulated_device.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/compile_common/spec_builder.h"
#include "backends/simulated/compile/lowered.h"
#include "backends/simulated/compile/profile.h"
#include "backends/simulated/compile/support.h"
#include "base/file.h"
#include "base/float_convert.h"

namespace tessera::backends::simulated {
namespace {

constexpr std::uint32_t kKernelVersion = 1;

// A layout that a profile names for rank 4, at another rank.
Layout at_rank(const Layout& layout, int rank) {
  if (layout == Layout::channels_last(4)) return Layout::channels_last(rank);
  if (!layout.blocks.empty()) return Layout::channel_blocked(rank, layout.blocks.front().second);
  return Layout::row_major();
}

class SimulatedDevice final : public CompileDevice {
 public:
  explicit SimulatedDevice(Profile profile) : profile_(std::move(profile)) {
    info_.name = profile_.name;
    info_.backend = "simulated";
    info_.memory = profile_.name;
    info_.profile = profile_.text;
    info_.simulated = true;
    info_.rates = profile_.rates;
    info_.max_partitions = profile_.max_partitions;
    for (const std::string& name : profile_.layouts) layouts_.push_back(*parse_layout(name));
    if (layouts_.empty()) layouts_.push_back(Layout::row_major());
  }

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] std::map<std::string, std::string> identity() const override {
    return {{"profile", hash_bytes(profile_.text.data(), profile_.text.size()).to_string()}};
  }

  Offers offers(const ir::WorkItem& item, const SymbolBindings& point,
                const OfferOptions& options) override;
  Result<CompiledKernel> compile(const ir::WorkItem& item, const Candidate& candidate) override;
  Offers conversion(const TensorForm& from, const TensorForm& to, const Shape& shape,
                    const SymbolBindings& point) override;
  Result<CompiledKernel> compile_conversion(const TensorForm& from, const TensorForm& to,
                                            const Shape& shape,
                                            const Candidate& candidate) override;

 private:
  // `dtype` is what the device holds the value in.
  [[nodiscard]] TensorForm form_of(const ir::Value& value, const Layout& layout,
                                   DType dtype) const {
    const auto rank = static_cast<int>(value.type.shape->size());
    const bool spatial = is_float(value.type.dtype) && rank >= 3 && rank <= 5;
    return {spatial ? at_rank(layout, rank) : Layout::row_major(), dtype};
  }
  [[nodiscard]] std::string refusal_in(const ir::WorkItem& item, DType precision) const;
  using Dtypes = std::map<ir::ValueId, DType>;
  [[nodiscard]] Candidate candidate_in(const ir::WorkItem& item, const Layout& layout,
                                       DType precision, const Dtypes& dtypes,
                                       const ops::Work& work) const;

  Profile profile_;
  DeviceInfo info_;
  std::vector<Layout> layouts_;
};

// A quantised group: what stands between its DequantizeLinear and QuantizeLinear nodes is computed
// in int8. The steps give the numbers, as the reference has them.
bool is_quantised_group(const ir::WorkItem& item) {
  return item.cover != nullptr && item.cover->pattern == "qdq";
}

bool is_border(const ir::Node& node) {
  return node.op->name == "DequantizeLinear" || node.op->name == "QuantizeLinear";
}

// The dtype that a node computes in: that of its first operand, in the chosen precision where that
// is fp32.
DType compute_dtype(const ir::WorkItem& item, const ir::Node& node, DType precision) {
  const auto first =
      std::ranges::find_if(node.inputs, [](ir::ValueId id) { return id != ir::kNoValue; });
  const DType dtype =
      item.graph->value(first != node.inputs.end() ? *first : node.outputs.front()).type.dtype;
  return dtype == DType::kFp32 ? precision : dtype;
}

std::string SimulatedDevice::refusal_in(const ir::WorkItem& item, DType precision) const {
  const bool quantised = is_quantised_group(item);
  for (const ir::Node* node : item.nodes) {
    if (quantised && is_border(*node)) continue;
    const DType dtype = quantised ? DType::kInt8 : compute_dtype(item, *node, precision);
    if (auto reason = refusal(profile_, item, *node, dtype); !reason.empty()) return reason;
  }
  return {};
}

Candidate SimulatedDevice::candidate_in(const ir::WorkItem& item, const Layout& layout,
                                        DType precision, const Dtypes& dtypes,
                                        const ops::Work& work) const {
  Candidate candidate;
  candidate.kernel = "simulated";
  candidate.kernel_version = kKernelVersion;
  candidate.compute_dtype = compute_dtype(item, *item.nodes.front(), precision);
  // Traffic in the dtype that is moved: halves with fp16.
  const double scale = static_cast<double>(bits_of(candidate.compute_dtype)) /
                       std::max(1, bits_of(compute_dtype(item, *item.nodes.front(), DType::kFp32)));
  candidate.flops = work.flops;
  candidate.bytes_moved = (work.bytes_read + work.bytes_written) * scale;
  if (is_quantised_group(item)) candidate.compute_dtype = DType::kInt8;
  for (const ir::ValueId id : item.inputs) {
    const ir::Value& value = item.graph->value(id);
    if (value.kind == ir::ValueKind::kConstant) {
      candidate.inputs.emplace_back();
      candidate.packed_bytes += value.constant.nbytes();
    } else {
      candidate.inputs.emplace_back(form_of(value, layout, dtypes.at(id)));
    }
  }
  for (const ir::ValueId id : item.outputs)
    candidate.outputs.push_back(form_of(item.graph->value(id), layout, dtypes.at(id)));
  return candidate;
}

Offers SimulatedDevice::offers(const ir::WorkItem& item, const SymbolBindings& point,
                               const OfferOptions& options) {
  if (auto reason = general_refusal(item); !reason.empty()) return {{}, std::move(reason)};
  const auto work = work_at(item, point);
  if (!work) return {{}, work.error().to_string()};
  Offers offers;
  // What is fp32 in a quantised group, a result or a residual sum, stays it.
  const std::vector<DType> precisions =
      is_quantised_group(item) ? std::vector{DType::kFp32} : options.precisions;
  for (const DType precision : precisions) {
    if (auto reason = refusal_in(item, precision); !reason.empty()) {
      if (offers.refusal.empty()) offers.refusal = std::move(reason);
      continue;
    }
    const auto dtypes = lowered_dtypes(item, precision);
    if (!dtypes) {
      if (offers.refusal.empty()) offers.refusal = dtypes.error().to_string();
      continue;
    }
    for (const Layout& layout : layouts_) {
      Candidate candidate = candidate_in(item, layout, precision, *dtypes, *work);
      // Where no operand has a layout of its own, all layouts make one candidate.
      const bool is_new = std::ranges::none_of(offers.candidates, [&](const Candidate& other) {
        return other.inputs == candidate.inputs && other.outputs == candidate.outputs;
      });
      if (is_new) offers.candidates.push_back(std::move(candidate));
    }
  }
  if (!offers.candidates.empty()) offers.refusal.clear();
  return offers;
}

Result<CompiledKernel> SimulatedDevice::compile(const ir::WorkItem& item,
                                                const Candidate& candidate) {
  for (const ir::Node* node : item.nodes)
    for (const ir::OriginId origin : node->origins)
      if (const auto& name = item.module->source_nodes[origin].name;
          std::ranges::find(profile_.mock.compile_fails_for, name) !=
          profile_.mock.compile_fails_for.end())
        return fail(ErrorCode::kUnavailable,
                    fmt::format("node '{}': the compiler of '{}' failed (mock: compile_fails_for)",
                                name, profile_.name));
  CompiledKernel kernel = build_spec(item, candidate, info_);
  // Steps compute in the declared dtypes: constants follow the precision that the values are held
  // in.
  const DType precision = candidate.compute_dtype;
  if (precision != DType::kFp16 && precision != DType::kBf16) return kernel;
  TESSERA_ASSIGN(const Dtypes dtypes, lowered_dtypes(item, precision));
  std::vector<ir::ValueId> baked;  // in the order of the spec's constants
  for (std::size_t i = 0; i < item.inputs.size(); ++i)
    if (!candidate.inputs[i]) baked.push_back(item.inputs[i]);
  for (std::size_t i = 0; i < kernel.constants.size(); ++i) {
    if (kernel.constants[i].dtype() != DType::kFp32 || dtypes.at(baked[i]) != precision) continue;
    TESSERA_ASSIGN(Tensor cast, Tensor::zeros(precision, kernel.constants[i].dims()));
    cast_elements(kernel.constants[i].view(), cast.mutable_view(), true);
    kernel.constants[i] = std::move(cast);
    kernel.spec.constants[i].dtype = precision;
  }
  return kernel;
}

Offers SimulatedDevice::conversion(const TensorForm& from, const TensorForm& to, const Shape& shape,
                                   const SymbolBindings& point) {
  const auto dims = evaluate(shape, point);
  if (!dims) return {{}, dims.error().to_string()};
  if (from.dtype != to.dtype && (!is_float(from.dtype) || !is_float(to.dtype)))
    return {{},
            fmt::format("no conversion from {} to {}", to_string(from.dtype), to_string(to.dtype))};
  Candidate candidate;
  candidate.kernel = "simulated.convert";
  candidate.kernel_version = kKernelVersion;
  candidate.inputs = {from};
  candidate.outputs = {to};
  candidate.compute_dtype = from.dtype;
  candidate.bytes_moved = static_cast<double>(layout_nbytes(from.layout, from.dtype, *dims) +
                                              layout_nbytes(to.layout, to.dtype, *dims));
  return {{std::move(candidate)}, {}};
}

Result<CompiledKernel> SimulatedDevice::compile_conversion(const TensorForm& from,
                                                           const TensorForm& to, const Shape& shape,
                                                           const Candidate& candidate) {
  CompiledKernel kernel;
  kernel.spec.backend = info_.backend;
  kernel.spec.kernel = candidate.kernel;
  kernel.spec.kernel_version = candidate.kernel_version;
  kernel.spec.inputs = {{from.dtype, from.layout, shape}};
  kernel.spec.outputs = {{to.dtype, to.layout, shape}};
  return kernel;
}

}  // namespace

Result<std::unique_ptr<CompileDevice>> make_simulated_device_from_text(std::string_view json) {
  TESSERA_ASSIGN(Profile profile, parse_profile(json));
  if (profile.mock.init_fails)
    return fail(ErrorCode::kUnavailable,
                fmt::format("device '{}' cannot start (mock: init_fails)", profile.name));
  return std::make_unique<SimulatedDevice>(std::move(profile));
}

Result<std::unique_ptr<CompileDevice>> make_simulated_device(const std::string& path) {
  TESSERA_ASSIGN(const std::string text, read_file(path));
  auto device = make_simulated_device_from_text(text);
  if (!device) return tl::unexpected(in_context(std::move(device).error(), path));
  return device;
}

}  // namespace tessera::backends::simulated
