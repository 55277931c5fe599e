#pragma once

// What the kernels of an anchor (a convolution, a product) with its epilogue keep of their spec.

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "backends/cpu/run/elementwise_program.h"
#include "backends/cpu/run/spec_util.h"

namespace tessera::backends::cpu {

// `Plan`: what the kernel reads from the spec. Immutable; shared by all instances.
template <typename Plan>
struct Anchor {
  artefact::KernelSpec spec;
  std::vector<std::span<const std::byte>> constants;
  Plan plan;
  ElementwiseProgram tail;  // the steps that the anchor's own code does not do

  // The elements of an input or a constant.
  [[nodiscard]] const float* operand(std::int32_t number, const ExecuteArgs& args) const {
    const OperandRef ref = operand_ref(spec, number);
    return ref.kind == OperandRef::Kind::kInput ? floats(args.inputs[ref.index])
                                                : floats(constants[ref.index].data());
  }
};

// `Instance` is made of the anchor and the dims, and then built for a number of threads.
template <typename Instance, typename Plan>
class AnchorKernel final : public LoadedKernel {
 public:
  explicit AnchorKernel(Anchor<Plan> anchor) : anchor_(std::move(anchor)) {}

  Result<std::unique_ptr<KernelInstance>> instantiate(const InstanceDims& dims,
                                                      int threads) const override {
    auto instance = std::make_unique<Instance>(anchor_, dims);
    TESSERA_TRY(instance->build(threads));
    return std::unique_ptr<KernelInstance>(std::move(instance));
  }

 private:
  Anchor<Plan> anchor_;
};

// The kernel of `plan`, whose own code does the steps before `first_tail_step`.
template <typename Instance, typename Plan>
Result<std::unique_ptr<LoadedKernel>> load_anchor(const artefact::KernelSpec& spec,
                                                  Constants constants, Plan plan,
                                                  std::size_t first_tail_step) {
  ElementwiseProgram tail;
  if (spec.steps.size() > first_tail_step) {
    TESSERA_ASSIGN(tail, ElementwiseProgram::parse(spec, constants, first_tail_step));
  }
  return std::unique_ptr<LoadedKernel>(new AnchorKernel<Instance, Plan>(
      {spec, {constants.begin(), constants.end()}, std::move(plan), std::move(tail)}));
}

}  // namespace tessera::backends::cpu
