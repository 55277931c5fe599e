#pragma once

// Compile devices that offer what a test says, at the price that it says. For tests that link
// tessera_plan.

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "plan/target.h"

namespace tessera::testing {

// A simulated device on which work costs nothing but what its candidates' flops say: one flop takes
// one microsecond.
class FakeDevice : public backends::CompileDevice {
 public:
  explicit FakeDevice(const std::string& name, const std::string& memory = "host") {
    info_.name = name;
    info_.backend = "fake";
    info_.memory = memory;
    info_.simulated = true;
    info_.rates.default_gflops = 1e-3;
    info_.rates.launch_us = 0;
    info_.rates.sync_us = 0;
    info_.rates.link_latency_us = 0;
    info_.rates.link_gb_per_s = 1;
  }

  // A candidate that takes `time_us` for the node of that name, or for cover N as "coverN".
  // `inputs`: one form for each; where there are fewer than the item has, the last one stands for
  // the rest.
  backends::Candidate& offer(const std::string& item, double time_us,
                             const std::vector<backends::TensorForm>& inputs,
                             const backends::TensorForm& output,
                             const std::string& kernel = "fake") {
    backends::Candidate candidate;
    candidate.kernel = kernel;
    candidate.flops = time_us;
    candidate.inputs.assign(inputs.begin(), inputs.end());
    candidate.outputs = {output};
    auto& list = offers_[item];
    list.push_back(std::move(candidate));
    return list.back();
  }
  void refuse(const std::string& item, const std::string& reason) { refusals_[item] = reason; }
  void convert(const backends::TensorForm& from, const backends::TensorForm& to, double time_us) {
    conversions_[{from, to}] = time_us;
  }

  [[nodiscard]] backends::DeviceInfo& mutable_info() { return info_; }
  [[nodiscard]] const backends::DeviceInfo& info() const override { return info_; }

  backends::Offers offers(const ir::WorkItem& item, const SymbolBindings&,
                          const backends::OfferOptions&) override {
    const std::string name =
        item.cover != nullptr ? "cover" + std::to_string(item.cover->id) : item.nodes.front()->name;
    const auto found = offers_.find(name);
    if (found == offers_.end()) {
      const auto refusal = refusals_.find(name);
      return {{}, refusal == refusals_.end() ? "not offered" : refusal->second};
    }
    auto candidates = found->second;
    for (auto& candidate : candidates) {
      candidate.inputs.resize(item.inputs.size(),
                              candidate.inputs.empty() ? std::nullopt : candidate.inputs.back());
      candidate.outputs.resize(item.outputs.size(), candidate.outputs.back());
    }
    return {std::move(candidates), {}};
  }

  backends::Offers conversion(const backends::TensorForm& from, const backends::TensorForm& to,
                              const Shape&, const SymbolBindings&) override {
    const auto found = conversions_.find({from, to});
    if (found == conversions_.end()) return {{}, "no such conversion"};
    backends::Candidate candidate;
    candidate.kernel = "fake.convert";
    candidate.flops = found->second;
    candidate.inputs = {from};
    candidate.outputs = {to};
    return {{std::move(candidate)}, {}};
  }

  Result<backends::CompiledKernel> compile(const ir::WorkItem&,
                                           const backends::Candidate&) override {
    return fail(ErrorCode::kUnimplemented, "a fake compiles nothing");
  }
  Result<backends::CompiledKernel> compile_conversion(const backends::TensorForm&,
                                                      const backends::TensorForm&, const Shape&,
                                                      const backends::Candidate&) override {
    return fail(ErrorCode::kUnimplemented, "a fake compiles nothing");
  }
  [[nodiscard]] std::map<std::string, std::string> identity() const override {
    return {{"model", info_.name}};
  }

 private:
  backends::DeviceInfo info_;
  std::map<std::string, std::vector<backends::Candidate>> offers_;
  std::map<std::string, std::string> refusals_;
  std::map<std::pair<backends::TensorForm, backends::TensorForm>, double> conversions_;
};

// A target of fakes alone, in the order in which they are added.
class FakeTarget {
 public:
  FakeDevice& add(const std::string& name, const std::string& memory = "host") {
    auto device = std::make_unique<FakeDevice>(name, memory);
    FakeDevice& added = *device;
    if (target_.memories.empty()) target_.memories = {"host"};
    std::uint32_t number = 0;
    while (number < target_.memories.size() && target_.memories[number] != memory) ++number;
    if (number == target_.memories.size()) target_.memories.push_back(memory);
    target_.memory_of.push_back(number);
    target_.devices.push_back(std::move(device));
    return added;
  }
  [[nodiscard]] plan::Target& target() { return target_; }

 private:
  plan::Target target_;
};

}  // namespace tessera::testing
