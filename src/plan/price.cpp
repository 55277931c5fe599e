#include "plan/price.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/compile_common/spec_builder.h"

namespace tessera::plan {
namespace {

constexpr double kMicrosecondsPerSecond = 1e6;
constexpr double kBytesPerGigabyte = 1e9;
// What memory for the results costs that is made in the call, where nothing is measured.
constexpr double kLooseCallUs = 1;

std::string form_text(const backends::TensorForm& form, const Dims& dims) {
  return fmt::format("{}/{}/{}", tessera::to_string(dims), form.layout.to_string(),
                     tessera::to_string(form.dtype));
}

// The operators with all attributes; operands by number, so that names do not enter the key.
std::string program_text(const ir::WorkItem& item) {
  std::map<ir::ValueId, std::size_t> numbers;
  for (const ir::ValueId id : item.inputs) numbers.emplace(id, numbers.size());
  std::string text;
  for (const ir::Node* node : item.nodes) {
    text += node->op->qualified_name() + "(";
    for (const ir::ValueId id : node->inputs)
      text += id == ir::kNoValue ? "_," : fmt::format("{},", numbers.at(id));
    text += fmt::format(";{})", node->attributes.to_string());
    for (const ir::ValueId id : node->outputs) numbers.emplace(id, numbers.size());
  }
  return text;
}

Dims dims_or_empty(const ir::WorkItem& item, ir::ValueId id, const SymbolBindings& point) {
  auto dims = backends::dims_at(item, id, point);
  return dims ? *std::move(dims) : Dims();
}

}  // namespace

double bandwidth_gb_per_s(const backends::DeviceRates& rates, double size_bytes) {
  for (const auto& cache : rates.caches)
    if (size_bytes <= static_cast<double>(cache.size_bytes)) return cache.copy_gb_per_s;
  return rates.memory_gb_per_s;
}

double roofline_us(const backends::DeviceRates& rates, const backends::Candidate& candidate) {
  const auto peak = rates.gflops.find(candidate.compute_dtype);
  const double gflops =
      (peak == rates.gflops.end() ? rates.default_gflops : peak->second) * candidate.efficiency;
  const double gb_per_s = bandwidth_gb_per_s(rates, candidate.bytes_moved);
  const double compute_s = candidate.flops / (gflops * kBytesPerGigabyte);
  const double traffic_s = candidate.bytes_moved / (gb_per_s * kBytesPerGigabyte);
  return std::max(compute_s, traffic_s) * kMicrosecondsPerSecond + rates.hand_over_us;
}

// Kernel and code version first, then what it computes on what, then the machine: so that near
// misses share a long prefix.
std::string Pricer::key_of(const PriceRequest& request) const {
  const auto& device = *target_.devices[request.device];
  std::string key = fmt::format("{}:{}@{}", device.info().name, request.candidate->kernel,
                                request.candidate->kernel_version);
  if (request.item != nullptr) {
    key += "|" + program_text(*request.item) + "|";
    const ir::Graph& graph = *request.item->graph;
    for (std::size_t i = 0; i < request.item->inputs.size(); ++i) {
      const ir::Value& value = graph.value(request.item->inputs[i]);
      const Dims dims = dims_or_empty(*request.item, request.item->inputs[i], point_);
      const auto& form = request.candidate->inputs[i];
      key += (form ? form_text(*form, dims)
                   : fmt::format("{}/baked/{}", tessera::to_string(dims),
                                 tessera::to_string(value.type.dtype))) +
             ",";
    }
    key += "->";
    for (std::size_t i = 0; i < request.item->outputs.size(); ++i)
      key += form_text(request.candidate->outputs[i],
                       dims_or_empty(*request.item, request.item->outputs[i], point_)) +
             ",";
  } else {
    const Dims dims = evaluate(request.shape, point_).value_or(Dims());
    key += "|convert|" + form_text(request.from, dims) + "->" + form_text(request.to, dims);
  }
  key += "|";
  for (const auto& [name, value] : request.candidate->options)
    key += fmt::format("{}={},", name, value);
  key += fmt::format("|threads={},cache={}", threads_, to_string(caches_));
  if (request.item != nullptr && request.item->is_loose) key += ",results=own";
  for (const auto& [name, value] : device.identity()) key += fmt::format(",{}={}", name, value);
  return key;
}

bool Pricer::is_measurable(const PriceRequest& request) const {
  return !target_.info(request.device).simulated && !request.estimate_only;
}

void Pricer::measure(std::span<const PriceRequest> requests) {
  if (mode_ == MeasureMode::kOff || !measure_) return;
  std::vector<PriceRequest> wanted;
  std::vector<std::string> keys;
  for (const PriceRequest& request : requests) {
    if (!is_measurable(request)) continue;
    std::string key = key_of(request);
    const CostEntry* entry = table_.find(key);
    const bool is_known = entry != nullptr && !entry->busy && mode_ == MeasureMode::kMissing;
    if (is_known || !asked_now_.insert(key).second) continue;
    wanted.push_back(request);
    keys.push_back(std::move(key));
  }
  if (wanted.empty()) return;
  const auto entries = measure_(wanted, point_);
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (entries[i]) table_.add(keys[i], *entries[i], /*replace=*/true);
}

Price Pricer::price(const PriceRequest& request) {
  const auto& info = target_.info(request.device);
  const bool is_loose = request.item != nullptr && request.item->is_loose && !info.simulated;
  const double estimate_us =
      roofline_us(info.rates, *request.candidate) + (is_loose ? kLooseCallUs : 0);
  if (!is_measurable(request)) return {round_price_us(estimate_us), false, {}, 0};
  measure({&request, 1});
  Price price{round_price_us(estimate_us), false, key_of(request), 0};
  const CostEntry* entry = table_.find(price.key);
  if (entry == nullptr) {
    missed_.insert(price.key);
    return price;
  }
  ++hits_;
  estimates_.try_emplace(
      price.key, Estimate{info.name + ":" + request.candidate->kernel, estimate_us, *entry});
  price.us = round_price_us(entry->time_us);
  price.measured = true;
  if (runs_per_load_ > 0) price.load_share_us = entry->prepare_us / runs_per_load_;
  return price;
}

double Pricer::transfer_us(std::uint32_t from_memory, std::uint32_t to_memory,
                           double size_bytes) const {
  double total_us = 0;
  // Each end that is not host memory pays its own link: host to device one, device to device both.
  for (const std::uint32_t memory : {from_memory, to_memory}) {
    if (memory == kHostMemory) continue;
    const auto device = std::ranges::find(target_.memory_of, memory) - target_.memory_of.begin();
    const auto& rates = target_.info(static_cast<std::uint32_t>(device)).rates;
    if (rates.unified) continue;
    total_us += rates.link_latency_us +
                size_bytes / (rates.link_gb_per_s * kBytesPerGigabyte) * kMicrosecondsPerSecond;
  }
  return round_price_us(total_us);
}

std::vector<Pricer::Miss> Pricer::misses() const {
  std::vector<Miss> result;
  for (const std::string& key : missed_) result.push_back({key, table_.nearest(key)});
  return result;
}

}  // namespace tessera::plan
