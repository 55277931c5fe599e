#include "backends/cpu/run/cpu_run_device.h"

#include <fmt/format.h>

#include <array>
#include <mutex>

#include "backends/cpu/run/elementwise_simd.h"
#include "backends/cpu/run/kernels.h"
#include "backends/host_run_device.h"

namespace tessera::backends {
namespace {

struct Loader {
  std::string_view kernel;
  std::uint32_t version;
  cpu::LoadFn load;
};

// Every kernel of this backend, with the version of its code.
constexpr std::array kLoaders = {
    Loader{"onednn.conv", 1, cpu::load_conv},
    Loader{"simd.conv", 1, cpu::load_plane_conv},
    Loader{"simd.gemm_conv", 1, cpu::load_gemm_conv},
    Loader{"simd.winograd_conv", 1, cpu::load_winograd_conv},
    Loader{"simd.depthwise_conv", 1, cpu::load_depthwise_conv},
    Loader{"onednn.matmul", 1, cpu::load_product},
    Loader{"simd.product", 1, cpu::load_panel_product},
    Loader{"onednn.pool", 1, cpu::load_onednn_pool},
    Loader{"simd.pool", 1, cpu::load_pool},
    Loader{"simd.global_pool", 1, cpu::load_global_pool},
    Loader{"simd.elementwise", 1, cpu::load_elementwise},
    Loader{"simd.softmax", 1, cpu::load_softmax},
    Loader{"simd.reduce", 1, cpu::load_reduce},
    Loader{"simd.layer_normalization", 1, cpu::load_layer_normalization},
    Loader{"simd.attention", 1, cpu::load_attention},
    Loader{"cpu.rotary_embedding", 1, cpu::load_rotary},
    Loader{"simd.lrn", 1, cpu::load_lrn},
    Loader{"simd.recurrent", 1, cpu::load_recurrent},
    Loader{"simd.quant_conv", 1, cpu::load_quant_conv},
    Loader{"simd.quant_product", 1, cpu::load_quant_product},
    Loader{"simd.quant_pool", 1, cpu::load_quant_pool},
    Loader{"simd.quant_elementwise", 1, cpu::load_quant_elementwise},
    Loader{"simd.quantize", 1, cpu::load_quantize},
    Loader{"simd.dynamic_quantize", 1, cpu::load_dynamic_quantize},
    Loader{"cpu.elementwise", 1, cpu::load_scalar_elementwise},
    Loader{"cpu.view", 1, cpu::load_view},
    Loader{"cpu.concat", 1, cpu::load_concat},
    Loader{"cpu.split", 1, cpu::load_split},
    Loader{"cpu.convert", 1, cpu::load_convert},
    Loader{"cpu.strided", 1, cpu::load_strided},
    Loader{"cpu.gather", 1, cpu::load_gather},
    Loader{"cpu.resize", 1, cpu::load_resize},
};

class CpuRunDevice final : public HostRunDevice {
 public:
  CpuRunDevice() {
    static std::once_flag once;
    std::call_once(once, cpu::limit_simd_targets);
  }
  [[nodiscard]] std::string_view name() const override { return "cpu"; }

  Result<std::unique_ptr<LoadedKernel>> load(
      const artefact::KernelSpec& spec,
      std::span<const std::span<const std::byte>> constants) override {
    if (spec.backend != "cpu")
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("expected a kernel of backend 'cpu', found '{}'", spec.backend));
    if (constants.size() != spec.constants.size()) {
      return cpu::bad_spec(spec, fmt::format("expected {} constants, found {}",
                                             spec.constants.size(), constants.size()));
    }
    for (std::size_t i = 0; i < constants.size(); ++i) {
      const auto dims = constant_dims(spec.constants[i].shape);
      if (!dims)
        return cpu::bad_spec(spec, fmt::format("constant {}: expected known sizes, found {}", i,
                                               to_string(spec.constants[i].shape)));
      const std::int64_t bytes =
          layout_nbytes(spec.constants[i].layout, spec.constants[i].dtype, *dims);
      if (static_cast<std::int64_t>(constants[i].size()) < bytes) {
        return cpu::bad_spec(spec, fmt::format("constant {}: expected {} bytes, found {}", i, bytes,
                                               constants[i].size()));
      }
    }
    for (const Loader& loader : kLoaders) {
      if (loader.kernel != spec.kernel) continue;
      if (loader.version != spec.kernel_version) {
        return fail(ErrorCode::kUnimplemented,
                    fmt::format("kernel '{}': expected version {}, found {}", spec.kernel,
                                loader.version, spec.kernel_version));
      }
      return loader.load(spec, constants);
    }
    return fail(ErrorCode::kUnimplemented,
                fmt::format("expected a kernel of this cpu backend, found '{}'", spec.kernel));
  }
};

}  // namespace

std::unique_ptr<RunDevice> make_cpu_run_device() {
  return std::make_unique<CpuRunDevice>();
}

}  // namespace tessera::backends
