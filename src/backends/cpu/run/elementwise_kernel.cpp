// "simd.elementwise": one elementwise operator or a group of them, fp32, in one pass over the
// result.

#include "backends/cpu/run/elementwise_program.h"
#include "backends/cpu/run/kernels.h"

namespace tessera::backends::cpu {
namespace {

constexpr std::int64_t kGrain = 16384;  // elements that are worth a thread's attention

class ElementwiseInstance final : public KernelInstance {
 public:
  ElementwiseInstance(BoundProgram program, int threads)
      : program_(std::move(program)), chunks_(chunk_count(program_.elements(), kGrain, threads)) {}

  [[nodiscard]] std::int64_t scratch_bytes() const override {
    return program_.scratch_bytes() * chunks_;
  }
  Status execute(const ExecuteArgs& args) override {
    const std::int64_t floats_each =
        program_.scratch_bytes() / static_cast<std::int64_t>(sizeof(float));
    const auto body = [&](std::int64_t i) {
      const ChunkRange range = chunk_range(program_.elements(), chunks_, i, 64);
      program_.run(args, range.begin, range.end, floats(args.scratch) + i * floats_each);
    };
    args.parallel->run(chunks_, body);
    return {};
  }

 private:
  BoundProgram program_;
  std::int64_t chunks_;
};

class ElementwiseKernel final : public LoadedKernel {
 public:
  explicit ElementwiseKernel(ElementwiseProgram program) : program_(std::move(program)) {}
  Result<std::unique_ptr<KernelInstance>> instantiate(const InstanceDims& dims,
                                                      int threads) const override {
    TESSERA_ASSIGN(auto bound, program_.bind(dims));
    return std::unique_ptr<KernelInstance>(new ElementwiseInstance(std::move(bound), threads));
  }

 private:
  ElementwiseProgram program_;
};

}  // namespace

Result<std::unique_ptr<LoadedKernel>> load_elementwise(const artefact::KernelSpec& spec,
                                                       Constants constants) {
  TESSERA_ASSIGN(auto program, ElementwiseProgram::parse(spec, constants, 0));
  return std::unique_ptr<LoadedKernel>(new ElementwiseKernel(std::move(program)));
}

}  // namespace tessera::backends::cpu
