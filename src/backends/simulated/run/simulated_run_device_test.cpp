#include "backends/simulated/run/simulated_run_device.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace tessera::backends::simulated {
namespace {

std::unique_ptr<RunDevice> make_device() {
  artefact::DeviceDecl declared;
  declared.name = "npu";
  declared.backend = "simulated";
  return *make_simulated_run_device(declared);
}

class SimulatedRunDevice : public ::testing::Test {
 protected:
  std::unique_ptr<RunDevice> device_ = make_device();
};

std::string text(const Status& status) {
  return status ? "ok" : status.error().to_string();
}

TEST_F(SimulatedRunDevice, SaysWhatItIs) {
  EXPECT_EQ(device_->name(), "npu");
  EXPECT_FALSE(device_->host_memory());
  EXPECT_TRUE(device_->simulated());
  EXPECT_EQ(text(device_->synchronize()), "ok");
}

TEST_F(SimulatedRunDevice, MemoryIsAlignedZeroedAndCopied) {
  const DeviceBuffer buffer = device_->allocate(100).value();
  EXPECT_EQ(buffer.size_bytes, 100);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data) % 64, 0U);
  std::array<std::byte, 100> host;
  host.fill(std::byte{9});
  EXPECT_EQ(text(device_->copy_to_host(host.data(), buffer.data, 100)), "ok");
  EXPECT_EQ(host.front(), std::byte{0});
  EXPECT_EQ(host.back(), std::byte{0});
  host.fill(std::byte{7});
  EXPECT_EQ(text(device_->copy_from_host(buffer.data + 10, host.data(), 90)), "ok");
  EXPECT_EQ(text(device_->copy_to_host(host.data(), buffer.data, 100)), "ok");
  EXPECT_EQ(host[9], std::byte{0});
  EXPECT_EQ(host[10], std::byte{7});
  device_->release(buffer);
}

TEST_F(SimulatedRunDevice, CopiesOutsideOfItsMemoryAreRefused) {
  const DeviceBuffer buffer = device_->allocate(64).value();
  std::array<std::byte, 128> host{};
  EXPECT_EQ(text(device_->copy_from_host(buffer.data, host.data(), 65)),
            "device 'npu': a copy of 65 bytes leaves the device's memory");
  EXPECT_EQ(text(device_->copy_to_host(host.data(), buffer.data + 1, 64)),
            "device 'npu': a copy of 64 bytes leaves the device's memory");
  EXPECT_EQ(text(device_->copy_to_host(host.data(), host.data() + 64, 8)),
            "device 'npu': a copy of 8 bytes leaves the device's memory")
      << "the host's own memory is not the device's";
  EXPECT_EQ(text(device_->copy_from_host(buffer.data + 64, host.data(), 0)), "ok");
  device_->release(buffer);
  EXPECT_EQ(text(device_->copy_from_host(buffer.data, host.data(), 8)),
            "device 'npu': a copy of 8 bytes leaves the device's memory")
      << "released";
}

TEST_F(SimulatedRunDevice, AnUnknownOperatorIsRefusedAtLoad) {
  artefact::KernelSpec spec;
  spec.backend = "simulated";
  spec.steps.push_back({.domain = "", .op_type = "Frobnicate", .attributes = {}, .inputs = {}});
  const auto kernel = device_->load(spec, {});
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.error().code, ErrorCode::kUnimplemented);
  EXPECT_EQ(kernel.error().to_string(), "no reference kernel for operator 'Frobnicate'");
}

// A conversion within the device: nothing runs but the change of form.
TEST_F(SimulatedRunDevice, AKernelWithoutStepsConverts) {
  artefact::KernelSpec spec;
  spec.backend = "simulated";
  spec.inputs = {{DType::kFp32, Layout::row_major(), {1, 2, 1, 2}}};
  spec.outputs = {{DType::kFp32, Layout::channels_last(4), {1, 2, 1, 2}}};
  const auto kernel = device_->load(spec, {}).value();
  const auto instance = kernel->instantiate({{{1, 2, 1, 2}}, {{1, 2, 1, 2}}}, 1).value();
  const std::array<float, 4> input = {1, 2, 3, 4};
  std::array<float, 4> output{};
  const auto* from = reinterpret_cast<const std::byte*>(input.data());
  auto* to = reinterpret_cast<std::byte*>(output.data());
  EXPECT_EQ(text(instance->execute({{&from, 1}, {&to, 1}, nullptr, nullptr})), "ok");
  EXPECT_EQ(output, (std::array<float, 4>{1, 3, 2, 4}));
}

}  // namespace
}  // namespace tessera::backends::simulated
