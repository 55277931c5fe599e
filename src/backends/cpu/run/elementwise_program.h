#pragma once

// Elementwise steps of a spec as a small program over tiles of a result: the body of elementwise
// kernels, and of what oneDNN cannot put behind a convolution. fp32; every operand broadcasts to
// the result.

#include <cstdint>
#include <string_view>
#include <vector>

#include "backends/cpu/run/elementwise_simd.h"
#include "backends/cpu/run/spec_util.h"

namespace tessera::backends::cpu {

// Whether an operator can be a step of such a program.
bool is_simd_elementwise(std::string_view domain, std::string_view op_type);

class BoundProgram;

// Independent of sizes. Keeps spans of the constants, which outlive it.
class ElementwiseProgram {
 public:
  // Steps [first_step, end) of the spec. Where first_step > 0, the result of the step before is an
  // operand, found in output 0. Errors: an operator, dtype or operand that it has no code for, by
  // step.
  static Result<ElementwiseProgram> parse(const artefact::KernelSpec& spec, Constants constants,
                                          std::size_t first_step);

  // Ready for these dims. All outputs have one layout and equal dims. Errors: operands that do not
  // broadcast.
  [[nodiscard]] Result<BoundProgram> bind(const InstanceDims& dims) const;

  [[nodiscard]] bool empty() const { return instructions_.empty(); }

 private:
  friend class BoundProgram;
  struct Operand {
    OperandRef ref;  // kResult: the anchor's result in output 0
    artefact::TensorDecl decl;
    const float* constant = nullptr;
  };
  // Registers: operands first, then one for each instruction's result.
  struct Instruction {
    SimdOp op = SimdOp::kCopy;
    int a = 0;
    int b = -1;
    float alpha = 0;
    float beta = 0;
    int output = -1;  // which output it writes, else a tile
    int tile = -1;    // assigned by liveness
  };
  class Parser;

  std::vector<Operand> operands_;
  std::vector<Instruction> instructions_;
  Layout layout_;
  std::size_t output_count_ = 1;
  int tiles_ = 0;
};

class BoundProgram {
 public:
  // Scratch that one run at a time needs.
  [[nodiscard]] std::int64_t scratch_bytes() const;
  // Stored elements of the result, padding included; ranges below count them.
  [[nodiscard]] std::int64_t elements() const { return elements_; }

  // Computes stored elements [begin, end) of every output. Padded lanes become zero.
  void run(const ExecuteArgs& args, std::int64_t begin, std::int64_t end, float* scratch) const;

 private:
  friend class ElementwiseProgram;
  enum class Access : std::uint8_t { kLinear, kScalar, kBroadcast };
  struct Walk {
    Access access = Access::kLinear;
    std::vector<std::int64_t> strides;
    int tile = -1;
  };
  [[nodiscard]] const float* base(std::size_t operand, const ExecuteArgs& args) const;
  void gather(const float* source, const Walk& walk, std::int64_t begin, std::int64_t count,
              float* tile) const;

  ElementwiseProgram program_;  // a copy: small
  std::vector<Walk> walks_;
  Dims dims_;  // collapsed physical dims
  Dims output_dims_;
  std::int64_t elements_ = 0;
  int tiles_ = 0;
  bool pads_ = false;
};

}  // namespace tessera::backends::cpu
