#include "backends/cpu/run/cpu_run_device.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "backends/cpu/run/layout_copy.h"
#include "backends/cpu/run/move_plan.h"
#include "backends/cpu/run/physical.h"

namespace tessera::backends {
namespace {

std::string load_error(const artefact::KernelSpec& spec,
                       std::vector<std::span<const std::byte>> constants = {}) {
  const auto device = make_cpu_run_device();
  const auto loaded = device->load(spec, constants);
  return loaded ? "" : loaded.error().to_string();
}

artefact::KernelSpec spec_of(std::string kernel) {
  artefact::KernelSpec spec;
  spec.backend = "cpu";
  spec.kernel = std::move(kernel);
  spec.inputs = {{DType::kFp32, {}, {2, 3}}};
  spec.outputs = {{DType::kFp32, {}, {2, 3}}};
  return spec;
}

TEST(CpuRunDevice, RefusesForeignSpecs) {
  artefact::KernelSpec other = spec_of("onednn.conv");
  other.backend = "reference";
  EXPECT_EQ(load_error(other), "expected a kernel of backend 'cpu', found 'reference'");
  EXPECT_EQ(load_error(spec_of("onednn.rnn")),
            "expected a kernel of this cpu backend, found 'onednn.rnn'");
  artefact::KernelSpec newer = spec_of("cpu.view");
  newer.kernel_version = 7;
  EXPECT_EQ(load_error(newer), "kernel 'cpu.view': expected version 1, found 7");
  artefact::KernelSpec constants = spec_of("cpu.view");
  constants.constants = {{DType::kFp32, {}, {4}}};
  EXPECT_EQ(load_error(constants), "kernel 'cpu.view': expected 1 constants, found 0");
  const std::vector<std::byte> few(8);
  EXPECT_EQ(load_error(constants, {few}),
            "kernel 'cpu.view': constant 0: expected 16 bytes, found 8");
}

TEST(CpuRunDevice, RefusesSpecsWithoutSteps) {
  EXPECT_EQ(load_error(spec_of("onednn.conv")),
            "kernel 'onednn.conv': expected steps and one output");
  EXPECT_EQ(load_error(spec_of("simd.pool")),
            "kernel 'simd.pool': expected one step, one input and one output");
  EXPECT_EQ(
      load_error(spec_of("cpu.resize")),
      "kernel 'cpu.resize': expected one step of an input computed at run time, and one output");
}

TEST(CpuRunDevice, PadHasNothingToTakeFromAnAxisOfZero) {
  artefact::KernelSpec spec = spec_of("cpu.move");
  spec.inputs = {{DType::kFp32, {}, {Dim::symbol("n")}}};
  spec.constants = {{DType::kInt64, {}, {2}}};
  spec.steps.resize(1);
  spec.steps[0].op_type = "Pad";
  spec.steps[0].inputs = {0, 1};
  const std::array<std::int64_t, 2> pads{1, 1};
  const std::vector<std::span<const std::byte>> constants{std::as_bytes(std::span(pads))};
  for (const char* mode : {"edge", "reflect", "wrap"}) {
    spec.steps[0].attributes.set("mode", std::string(mode));
    const auto tables = cpu::move_tables(spec, constants, {{{0}}, {{2}}});
    ASSERT_FALSE(tables);
    EXPECT_EQ(tables.error().to_string(),
              "Pad: mode '" + std::string(mode) + "' has nothing to take from axis 0 of size 0");
  }
}

TEST(CpuRunDevice, MemoryIsAlignedAndZeroed) {
  const auto device = make_cpu_run_device();
  auto buffer = device->allocate(100);
  ASSERT_TRUE(buffer);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data) % 64, 0U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(buffer->data[i], std::byte{0});
  device->release(*buffer);
}

TEST(LayoutCopy, AgreesWithTheObviousCode) {
  const std::vector<Layout> layouts = {{},
                                       Layout::channels_last(4),
                                       Layout::channel_blocked(4, 8),
                                       Layout{{0, 1, 2, 3}, {{1, 8}, {0, 8}}},
                                       Layout{{0, 2, 3, 1}, {{0, 8}}},
                                       Layout{{3, 1, 0, 2}, {}}};
  const Dims dims = {13, 11, 5, 30};
  std::vector<float> values(static_cast<std::size_t>(numel(dims)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
  for (const Layout& from : layouts) {
    std::vector<float> source(static_cast<std::size_t>(cpu::stored_elements(from, dims)));
    convert_layout({}, values.data(), from, source.data(), DType::kFp32, dims);
    for (const Layout& to : layouts) {
      SCOPED_TRACE(from.to_string() + " to " + to.to_string());
      std::vector<float> expected(static_cast<std::size_t>(cpu::stored_elements(to, dims)), -1);
      std::vector<float> found(expected.size(), -2);
      convert_layout(from, source.data(), to, expected.data(), DType::kFp32, dims);
      const cpu::LayoutCopy copy(from, to, dims, 4);
      copy.run(reinterpret_cast<const std::byte*>(source.data()),
               reinterpret_cast<std::byte*>(found.data()), 0, copy.rows() / 2);
      copy.run(reinterpret_cast<const std::byte*>(source.data()),
               reinterpret_cast<std::byte*>(found.data()), copy.rows() / 2, copy.rows());
      EXPECT_EQ(found, expected);
    }
  }
}

}  // namespace
}  // namespace tessera::backends
