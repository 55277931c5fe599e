// Pieces of plan_quantised, and elementwise steps between quantised tensors.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "backends/cpu/run/quant_plan.h"
#include "base/float_convert.h"

namespace tessera::backends::cpu {
namespace {

tl::unexpected<Error> unsupported(std::string message) {
  return fail(ErrorCode::kUnimplemented, std::move(message));
}

DType dtype_of(const artefact::KernelSpec& spec, std::int32_t number) {
  const auto* decl = operand_decl(spec, number);
  return decl == nullptr ? DType::kUndefined : decl->dtype;
}

bool is_single(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& d) { return d.constant() == 1; });
}

Result<double> scalar(const artefact::KernelSpec& spec, Constants constants, std::int32_t number,
                      std::string_view name, double fallback) {
  if (number < 0) return fallback;
  TESSERA_ASSIGN(const auto numbers, constant_numbers(spec, constants, number));
  if (numbers.size() == 1) return numbers[0];
  return unsupported(fmt::format("{}: expected one element, found {}", name, numbers.size()));
}

class ProgramReader {
 public:
  ProgramReader(const artefact::KernelSpec& spec, Constants constants,
                const std::vector<std::size_t>& steps, std::int32_t start)
      : spec_(spec), constants_(constants), steps_(steps), start_(start) {}

  Result<QuantProgram> read() {
    program_.spec.backend = spec_.backend;
    program_.spec.kernel = spec_.kernel;
    program_.anchored = start_ >= 0;
    if (program_.anchored) add_input(start_);
    for (const std::size_t step : steps_) {
      for (const std::int32_t number : spec_.steps[step].inputs)
        TESSERA_TRY_IN(add_operand(number), spec_.steps[step].op_type);
    }
    number_operands();
    for (const std::size_t step : steps_) add_step(step);
    program_.spec.outputs.push_back(vector());
    program_.spec.output_operands = {numbers_.at(result_number(spec_, steps_.back()))};
    return std::move(program_);
  }

 private:
  static artefact::TensorDecl vector() { return {DType::kFp32, {}, {Dim(1)}}; }

  void add_input(std::int32_t number) {
    inputs_.push_back(number);
    program_.spec.inputs.push_back(vector());
  }

  [[nodiscard]] bool is_known(std::int32_t number) const {
    const auto has = [&](const std::vector<std::int32_t>& list) {
      return std::find(list.begin(), list.end(), number) != list.end();
    };
    return has(inputs_) || has(scalars_) ||
           std::any_of(steps_.begin(), steps_.end(),
                       [&](std::size_t step) { return result_number(spec_, step) == number; });
  }

  Status add_operand(std::int32_t number) {
    if (number < 0 || is_known(number)) return {};
    const auto* made = dequantizer_of(spec_, number);
    const std::int32_t source = made == nullptr ? number : step_input(*made, 0);
    if (is_constant(spec_, source)) {
      TESSERA_ASSIGN(const auto numbers, real_constant(spec_, constants_, number));
      if (numbers.size() != 1)
        return unsupported(
            fmt::format("expected constants of one element, found {}", numbers.size()));
      scalars_.push_back(number);
      program_.scalars.push_back(numbers[0]);
      return {};
    }
    QuantTensor tensor{number, false, {}};
    if (made != nullptr) {
      TESSERA_ASSIGN(tensor, dequantised(spec_, constants_, *made));
    } else if (dtype_of(spec_, number) != DType::kFp32) {
      return unsupported(
          fmt::format("expected fp32 operands, found {}", to_string(dtype_of(spec_, number))));
    }
    const auto* decl = operand_decl(spec_, tensor.operand);
    if (decl == nullptr || decl->shape != spec_.outputs[0].shape) {
      return unsupported(fmt::format("expected operands of the result's shape {}, found {}",
                                     to_string(spec_.outputs[0].shape),
                                     decl ? to_string(decl->shape) : "none"));
    }
    if (program_.tensors.size() == kMaxQuantTensors)
      return unsupported(fmt::format("expected at most {} operands", kMaxQuantTensors));
    add_input(number);
    program_.tensors.push_back(tensor);
    return {};
  }

  // Inputs, constants, then results, as operand numbers are.
  void number_operands() {
    std::int32_t next = 0;
    for (const std::int32_t number : inputs_) numbers_[number] = next++;
    for (const std::int32_t number : scalars_) {
      numbers_[number] = next++;
      program_.spec.constants.push_back({DType::kFp32, {}, {}});
    }
    for (const std::size_t step : steps_) numbers_[result_number(spec_, step)] = next++;
  }

  void add_step(std::size_t index) {
    artefact::KernelStep step = spec_.steps[index];
    for (auto& number : step.inputs) number = number < 0 ? -1 : numbers_.at(number);
    step.output_count = 1;
    program_.spec.steps.push_back(std::move(step));
  }

  const artefact::KernelSpec& spec_;
  Constants constants_;
  const std::vector<std::size_t>& steps_;
  std::int32_t start_;
  QuantProgram program_;
  std::vector<std::int32_t> inputs_;   // operand numbers of `spec_`, in the program's order
  std::vector<std::int32_t> scalars_;  // the same for constants
  std::map<std::int32_t, std::int32_t> numbers_;
};

}  // namespace

Result<std::vector<double>> constant_numbers(const artefact::KernelSpec& spec, Constants constants,
                                             std::int32_t number) {
  const OperandRef ref = operand_ref(spec, number);
  if (ref.kind != OperandRef::Kind::kConstant)
    return unsupported("expected a constant, found a tensor computed at run time");
  const auto& decl = spec.constants[ref.index];
  const auto dims = constant_dims(decl.shape);
  if (!dims || !decl.layout.is_row_major())
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("expected a row-major constant, found {}", decl.layout.to_string()));
  std::vector<double> values(static_cast<std::size_t>(numel(*dims)));
  cast_elements({decl.dtype, *dims, constants[ref.index].data()},
                {DType::kFp64, *dims, values.data()}, true);
  return values;
}

const artefact::KernelStep* dequantizer_of(const artefact::KernelSpec& spec, std::int32_t number) {
  for (std::size_t i = 0; i < spec.steps.size(); ++i) {
    if (spec.steps[i].op_type == "DequantizeLinear" && result_number(spec, i) == number)
      return &spec.steps[i];
  }
  return nullptr;
}

Result<QuantParams> quant_params(const artefact::KernelSpec& spec, Constants constants, DType dtype,
                                 std::int32_t scale, std::int32_t zero) {
  if (dtype != DType::kInt8 && dtype != DType::kUInt8)
    return unsupported(fmt::format("expected int8 or uint8, found {}", to_string(dtype)));
  QuantParams result;
  result.dtype = dtype;
  TESSERA_ASSIGN(const double value, scalar(spec, constants, scale, "scale", 1));
  result.scale = static_cast<float>(value);
  if (zero >= 0 && operand_ref(spec, zero).kind == OperandRef::Kind::kInput) {
    const auto& decl = *operand_decl(spec, zero);
    if (decl.dtype != dtype || !is_single(decl.shape))
      return unsupported(fmt::format("zero point: expected one element of {}, found {}{}",
                                     to_string(dtype), to_string(decl.dtype),
                                     to_string(decl.shape)));
    result.zero_operand = zero;
    return result;
  }
  TESSERA_ASSIGN(const double point, scalar(spec, constants, zero, "zero point", 0));
  result.zero = static_cast<std::int32_t>(point);
  return result;
}

Result<QuantTensor> dequantised(const artefact::KernelSpec& spec, Constants constants,
                                const artefact::KernelStep& step) {
  if (step.attributes.get_int("block_size", 0) != 0)
    return unsupported(fmt::format("attribute 'block_size': expected 0, found {}",
                                   step.attributes.get_int("block_size", 0)));
  QuantTensor tensor{step_input(step, 0), true, {}};
  if (operand_decl(spec, tensor.operand) == nullptr)
    return unsupported("expected a quantised tensor from outside");
  TESSERA_ASSIGN(tensor.params, quant_params(spec, constants, dtype_of(spec, tensor.operand),
                                             step_input(step, 1), step_input(step, 2)));
  return tensor;
}

Result<std::vector<float>> real_constant(const artefact::KernelSpec& spec, Constants constants,
                                         std::int32_t number) {
  const auto* step = dequantizer_of(spec, number);
  if (step == nullptr) {
    if (dtype_of(spec, number) != DType::kFp32)
      return unsupported(
          fmt::format("expected an fp32 constant, found {}", to_string(dtype_of(spec, number))));
    TESSERA_ASSIGN(const auto numbers, constant_numbers(spec, constants, number));
    return std::vector<float>(numbers.begin(), numbers.end());
  }
  TESSERA_ASSIGN(const auto numbers, constant_numbers(spec, constants, step_input(*step, 0)));
  TESSERA_ASSIGN(const auto scales, constant_numbers(spec, constants, step_input(*step, 1)));
  std::vector<double> zeros(1, 0.0);
  if (step_input(*step, 2) >= 0) {
    TESSERA_ASSIGN(zeros, constant_numbers(spec, constants, step_input(*step, 2)));
  }
  for (const std::size_t count : {scales.size(), zeros.size()}) {
    if (count != 1 && count != numbers.size())
      return unsupported(fmt::format("expected one scale or one for each of {} elements, found {}",
                                     numbers.size(), count));
  }
  std::vector<float> result;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double zero = zeros[zeros.size() == 1 ? 0 : i];
    result.push_back(static_cast<float>(numbers[i] - zero) *
                     static_cast<float>(scales[scales.size() == 1 ? 0 : i]));
  }
  return result;
}

Result<QuantProgram> read_quant_program(const artefact::KernelSpec& spec, Constants constants,
                                        const std::vector<std::size_t>& steps, std::int32_t start) {
  return ProgramReader(spec, constants, steps, start).read();
}

Result<BoundProgram> QuantProgram::bind(std::int64_t count) const {
  std::vector<std::span<const std::byte>> constants;
  for (const float& value : scalars)
    constants.push_back(std::as_bytes(std::span<const float>(&value, 1)));
  TESSERA_ASSIGN(const auto program, ElementwiseProgram::parse(spec, constants, 0));
  return program.bind({std::vector<Dims>(spec.inputs.size(), Dims{count}), {Dims{count}}});
}

std::int32_t zero_of(const QuantParams& params, std::span<const std::byte* const> inputs) {
  if (params.zero_operand < 0) return params.zero;
  const std::byte* at = inputs[static_cast<std::size_t>(params.zero_operand)];
  return params.dtype == DType::kInt8 ? *reinterpret_cast<const std::int8_t*>(at)
                                      : *reinterpret_cast<const std::uint8_t*>(at);
}

}  // namespace tessera::backends::cpu
