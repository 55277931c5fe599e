#include "backends/cpu/run/spec_util.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace tessera::backends::cpu {

OperandRef operand_ref(const artefact::KernelSpec& spec, std::int32_t number) {
  if (number < 0) return {};
  const auto at = static_cast<std::size_t>(number);
  if (at < spec.inputs.size()) return {OperandRef::Kind::kInput, at};
  if (at < spec.inputs.size() + spec.constants.size())
    return {OperandRef::Kind::kConstant, at - spec.inputs.size()};
  return {OperandRef::Kind::kResult, at - spec.inputs.size() - spec.constants.size()};
}

const artefact::TensorDecl* operand_decl(const artefact::KernelSpec& spec, std::int32_t number) {
  const OperandRef ref = operand_ref(spec, number);
  if (ref.kind == OperandRef::Kind::kInput) return &spec.inputs[ref.index];
  if (ref.kind == OperandRef::Kind::kConstant) return &spec.constants[ref.index];
  return nullptr;
}

std::int32_t step_input(const artefact::KernelStep& step, std::size_t index) {
  return index < step.inputs.size() ? step.inputs[index] : -1;
}

std::int32_t result_number(const artefact::KernelSpec& spec, std::size_t index) {
  std::size_t number = spec.inputs.size() + spec.constants.size();
  for (std::size_t i = 0; i < index; ++i) number += spec.steps[i].output_count;
  return static_cast<std::int32_t>(number);
}

bool is_constant(const artefact::KernelSpec& spec, std::int32_t number) {
  return operand_ref(spec, number).kind == OperandRef::Kind::kConstant;
}

Result<std::vector<std::int64_t>> constant_ints(const artefact::KernelSpec& spec,
                                                Constants constants, std::int32_t number) {
  const OperandRef ref = operand_ref(spec, number);
  if (ref.kind == OperandRef::Kind::kOmitted) return std::vector<std::int64_t>{};
  if (ref.kind != OperandRef::Kind::kConstant) {
    return fail(ErrorCode::kUnimplemented,
                fmt::format("expected operand {} to be a constant, found one computed at run time",
                            number));
  }
  const auto& decl = spec.constants[ref.index];
  const auto dims = constant_dims(decl.shape);
  if (!dims || !decl.layout.is_row_major() || !is_integer(decl.dtype)) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("expected operand {} to be a row-major integer constant, found {}{}",
                            number, to_string(decl.dtype), to_string(decl.shape)));
  }
  return to_int64_vector(TensorView{decl.dtype, *dims, constants[ref.index].data()});
}

std::optional<float> constant_scalar(const artefact::KernelSpec& spec, Constants constants,
                                     std::int32_t number) {
  const OperandRef ref = operand_ref(spec, number);
  if (ref.kind != OperandRef::Kind::kConstant) return std::nullopt;
  const auto& decl = spec.constants[ref.index];
  const auto dims = constant_dims(decl.shape);
  if (!dims || numel(*dims) != 1 || decl.dtype != DType::kFp32) return std::nullopt;
  return *floats(constants[ref.index].data());
}

ChunkRange chunk_range(std::int64_t count, std::int64_t chunks, std::int64_t index,
                       std::int64_t unit) {
  const std::int64_t units = (count + unit - 1) / unit;
  const auto bound = [&](std::int64_t i) { return std::min(count, units * i / chunks * unit); };
  return {bound(index), bound(index + 1)};
}

std::int64_t chunk_count(std::int64_t count, std::int64_t grain, int threads) {
  if (threads <= 1) return 1;
  return std::clamp<std::int64_t>(count / grain, 1, threads);
}

tl::unexpected<Error> bad_spec(const artefact::KernelSpec& spec, std::string expected_found) {
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("kernel '{}': {}", spec.kernel, expected_found));
}

}  // namespace tessera::backends::cpu
