#pragma once

// Runs the steps of a kernel spec by the op table's reference kernels, on dense row-major tensors:
// what a kernel means.

#include <memory>
#include <span>
#include <vector>

#include "artefact/read/program_image.h"
#include "backends/run_interface.h"
#include "ops/op.h"

namespace tessera::backends::reference {

class StepRunner {
 public:
  // `constants` are the spec's constants, row-major, alive as long as the runner. Errors: an
  // operator that is not in the op table or has no kernel.
  static Result<std::unique_ptr<StepRunner>> create(const artefact::KernelSpec& spec,
                                                    std::vector<TensorView> constants);

  // Errors of the kernels (an index out of range); outputs of other dims than planned.
  Status run(std::span<const TensorView> inputs, std::span<const MutableTensorView> outputs,
             Parallel* parallel) const;

  // The same where nothing is planned: results of any kind, in the order of the spec's outputs.
  Result<std::vector<RunValue>> run_late(std::span<const RunValue* const> inputs,
                                         Parallel* parallel) const;

 private:
  struct Step {
    const ops::OpSchema* op = nullptr;
    const artefact::KernelStep* spec = nullptr;
    std::int32_t first_result = 0;  // operand number of its first output
  };
  StepRunner(const artefact::KernelSpec& spec, std::vector<TensorView> constants)
      : spec_(spec), constants_(std::move(constants)) {}
  [[nodiscard]] std::size_t operand_count() const;

  const artefact::KernelSpec& spec_;
  std::vector<TensorView> constants_;
  std::vector<Step> steps_;
};

}  // namespace tessera::backends::reference
