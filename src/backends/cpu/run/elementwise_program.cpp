#include "backends/cpu/run/elementwise_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>

#include "backends/cpu/run/physical.h"

namespace tessera::backends::cpu {
namespace {

constexpr std::int64_t kTile = 1024;  // elements: a handful of tiles stays in the first-level cache

struct UnaryEntry {
  std::string_view name;
  SimdOp op;
  std::string_view alpha_name;
  float alpha;
  std::string_view beta_name;
  float beta;
};

constexpr std::array kUnary = {
    UnaryEntry{"Identity", SimdOp::kCopy, "", 0, "", 0},
    UnaryEntry{"Relu", SimdOp::kRelu, "", 0, "", 0},
    UnaryEntry{"LeakyRelu", SimdOp::kLeakyRelu, "alpha", 0.01F, "", 0},
    UnaryEntry{"ThresholdedRelu", SimdOp::kThresholdedRelu, "alpha", 1, "", 0},
    UnaryEntry{"Elu", SimdOp::kElu, "alpha", 1, "", 0},
    UnaryEntry{"Selu", SimdOp::kSelu, "alpha", 1.67326319217681884765625F, "gamma",
               1.05070102214813232421875F},
    UnaryEntry{"Celu", SimdOp::kCelu, "alpha", 1, "", 0},
    UnaryEntry{"Sigmoid", SimdOp::kSigmoid, "", 0, "", 0},
    UnaryEntry{"HardSigmoid", SimdOp::kHardSigmoid, "alpha", 0.2F, "beta", 0.5F},
    UnaryEntry{"HardSwish", SimdOp::kHardSwish, "", 0, "", 0},
    UnaryEntry{"Swish", SimdOp::kSwish, "alpha", 1, "", 0},
    UnaryEntry{"QuickGelu", SimdOp::kSwish, "alpha", 1.702F, "", 0},
    UnaryEntry{"Tanh", SimdOp::kTanh, "", 0, "", 0},
    UnaryEntry{"Exp", SimdOp::kExp, "", 0, "", 0},
    UnaryEntry{"Log", SimdOp::kLog, "", 0, "", 0},
    UnaryEntry{"Sqrt", SimdOp::kSqrt, "", 0, "", 0},
    UnaryEntry{"Erf", SimdOp::kErf, "", 0, "", 0},
    UnaryEntry{"Abs", SimdOp::kAbs, "", 0, "", 0},
    UnaryEntry{"Neg", SimdOp::kNeg, "", 0, "", 0},
    UnaryEntry{"Reciprocal", SimdOp::kReciprocal, "", 0, "", 0},
    UnaryEntry{"Floor", SimdOp::kFloor, "", 0, "", 0},
    UnaryEntry{"Ceil", SimdOp::kCeil, "", 0, "", 0},
    UnaryEntry{"Round", SimdOp::kRound, "", 0, "", 0},
    UnaryEntry{"Sign", SimdOp::kSign, "", 0, "", 0},
    UnaryEntry{"Softplus", SimdOp::kSoftplus, "", 0, "", 0},
    UnaryEntry{"Softsign", SimdOp::kSoftsign, "", 0, "", 0},
    UnaryEntry{"Mish", SimdOp::kMish, "", 0, "", 0},
    UnaryEntry{"Sin", SimdOp::kSin, "", 0, "", 0},
    UnaryEntry{"Cos", SimdOp::kCos, "", 0, "", 0},
};

struct BinaryEntry {
  std::string_view name;
  SimdOp op;
  bool variadic;
};

constexpr std::array kBinary = {
    BinaryEntry{"Add", SimdOp::kAdd, false}, BinaryEntry{"Sub", SimdOp::kSub, false},
    BinaryEntry{"Mul", SimdOp::kMul, false}, BinaryEntry{"Div", SimdOp::kDiv, false},
    BinaryEntry{"Pow", SimdOp::kPow, false}, BinaryEntry{"PRelu", SimdOp::kPRelu, false},
    BinaryEntry{"Min", SimdOp::kMin, true},  BinaryEntry{"Max", SimdOp::kMax, true},
    BinaryEntry{"Sum", SimdOp::kAdd, true},  BinaryEntry{"Mean", SimdOp::kAdd, true},
};

template <typename Table>
const typename Table::value_type* find(const Table& table, std::string_view name) {
  const auto at = std::find_if(table.begin(), table.end(),
                               [&](const auto& entry) { return entry.name == name; });
  return at == table.end() ? nullptr : &*at;
}

}  // namespace

bool is_simd_elementwise(std::string_view domain, std::string_view op_type) {
  // ai.onnx and com.microsoft mean the same by Gelu; QuickGelu is com.microsoft's alone.
  if (op_type == "Gelu" || op_type == "QuickGelu") return true;
  if (!domain.empty()) return false;
  return op_type == "Clip" || find(kUnary, op_type) != nullptr || find(kBinary, op_type) != nullptr;
}

// Turns steps into instructions, one step after the other.
class ElementwiseProgram::Parser {
 public:
  Parser(const artefact::KernelSpec& spec, Constants constants, std::size_t first_step)
      : spec_(spec), constants_(constants), first_step_(first_step) {}

  Result<ElementwiseProgram> parse() {
    TESSERA_TRY(check_outputs());
    TESSERA_TRY(collect_operands());
    for (std::size_t i = first_step_; i < spec_.steps.size(); ++i) {
      TESSERA_TRY_IN(parse_step(spec_.steps[i], result_number(spec_, i)), spec_.steps[i].op_type);
    }
    TESSERA_TRY(bind_outputs());
    assign_tiles();
    return std::move(program_);
  }

 private:
  Status check_outputs() {
    if (spec_.outputs.empty()) return bad_spec(spec_, "expected an output, found none");
    program_.layout_ = spec_.outputs[0].layout;
    program_.output_count_ = spec_.outputs.size();
    for (const auto& output : spec_.outputs) {
      if (output.dtype != DType::kFp32)
        return bad_spec(spec_,
                        fmt::format("expected fp32 outputs, found {}", to_string(output.dtype)));
      if (output.layout != program_.layout_)
        return bad_spec(spec_, "expected outputs of one layout");
    }
    return {};
  }

  Status collect_operands() {
    if (first_step_ > 0) {
      const std::int32_t anchor = result_number(spec_, first_step_ - 1);
      registers_[anchor] = add_operand({OperandRef::Kind::kResult, 0}, spec_.outputs[0], nullptr);
    }
    for (std::size_t i = first_step_; i < spec_.steps.size(); ++i) {
      for (const std::int32_t number : spec_.steps[i].inputs) {
        const OperandRef ref = operand_ref(spec_, number);
        if (registers_.count(number) != 0 || ref.kind == OperandRef::Kind::kOmitted ||
            ref.kind == OperandRef::Kind::kResult)
          continue;
        const artefact::TensorDecl& decl = *operand_decl(spec_, number);
        if (decl.dtype != DType::kFp32) {
          return fail(ErrorCode::kUnimplemented,
                      fmt::format("{}: expected fp32 operands, found {}", spec_.steps[i].op_type,
                                  to_string(decl.dtype)));
        }
        const bool constant = ref.kind == OperandRef::Kind::kConstant;
        registers_[number] =
            add_operand(ref, decl, constant ? floats(constants_[ref.index].data()) : nullptr);
      }
    }
    return {};
  }

  int add_operand(OperandRef ref, const artefact::TensorDecl& decl, const float* constant) {
    program_.operands_.push_back({ref, decl, constant});
    return static_cast<int>(program_.operands_.size()) - 1;
  }

  Result<int> value(const artefact::KernelStep& step, std::size_t index) {
    const auto at = registers_.find(step_input(step, index));
    if (at == registers_.end())
      return fail(ErrorCode::kInvalidArgument, fmt::format("expected input {}, found none", index));
    return at->second;
  }

  int emit(SimdOp op, int a, int b = -1, float alpha = 0, float beta = 0) {
    program_.instructions_.push_back({op, a, b, alpha, beta, -1, -1});
    return static_cast<int>(program_.operands_.size() + program_.instructions_.size()) - 1;
  }

  Status parse_step(const artefact::KernelStep& step, std::int32_t result) {
    if (!is_simd_elementwise(step.domain, step.op_type))
      return fail(ErrorCode::kUnimplemented, "expected an fp32 elementwise operator");
    TESSERA_ASSIGN(const int a, value(step, 0));
    if (step.op_type == "Clip") return parse_clip(step, a, result);
    if (step.op_type == "Gelu") {
      const bool tanh = step.attributes.get_string("approximate", "none") == "tanh";
      registers_[result] = emit(tanh ? SimdOp::kGeluTanh : SimdOp::kGeluErf, a);
      return {};
    }
    if (const auto* unary = find(kUnary, step.op_type)) {
      const float alpha = unary->alpha_name.empty()
                              ? 0
                              : step.attributes.get_float(unary->alpha_name, unary->alpha);
      const float beta =
          unary->beta_name.empty() ? 0 : step.attributes.get_float(unary->beta_name, unary->beta);
      registers_[result] = emit(unary->op, a, -1, alpha, beta);
      return {};
    }
    return parse_binary(step, *find(kBinary, step.op_type), a, result);
  }

  Status parse_binary(const artefact::KernelStep& step, const BinaryEntry& entry, int a,
                      std::int32_t result) {
    if (entry.variadic) {
      int at = a;
      for (std::size_t i = 1; i < step.inputs.size(); ++i) {
        TESSERA_ASSIGN(const int next, value(step, i));
        at = emit(entry.op, at, next);
      }
      if (step.op_type == "Mean")
        at = emit(SimdOp::kScaleShift, at, -1, 1.0F / static_cast<float>(step.inputs.size()), 0);
      registers_[result] = step.inputs.size() == 1 ? emit(SimdOp::kCopy, at) : at;
      return {};
    }
    TESSERA_ASSIGN(const int b, value(step, 1));
    const auto exponent = entry.op == SimdOp::kPow
                              ? constant_scalar(spec_, constants_, step.inputs[1])
                              : std::nullopt;
    if (exponent == 2.0F) {
      registers_[result] = emit(SimdOp::kMul, a, a);
    } else if (exponent == 0.5F) {
      registers_[result] = emit(SimdOp::kSqrt, a);
    } else {
      registers_[result] = emit(entry.op, a, b);
    }
    return {};
  }

  Status parse_clip(const artefact::KernelStep& step, int a, std::int32_t result) {
    int at = a;
    for (const auto& [index, op] : {std::pair{1U, SimdOp::kMax}, std::pair{2U, SimdOp::kMin}}) {
      if (step_input(step, index) < 0) continue;
      TESSERA_ASSIGN(const int bound, value(step, index));
      at = emit(op, at, bound);
    }
    registers_[result] = at == a ? emit(SimdOp::kCopy, a) : at;
    return {};
  }

  Status bind_outputs() {
    for (std::size_t o = 0; o < spec_.output_operands.size(); ++o) {
      const auto at = registers_.find(spec_.output_operands[o]);
      const auto first = static_cast<int>(program_.operands_.size());
      if (at == registers_.end() || at->second < first)
        return bad_spec(spec_, fmt::format("output {}: expected the result of a step", o));
      auto& instruction = program_.instructions_[static_cast<std::size_t>(at->second - first)];
      if (instruction.output >= 0)
        return bad_spec(spec_, fmt::format("output {}: expected results that differ", o));
      instruction.output = static_cast<int>(o);
    }
    return {};
  }

  // Results that are no outputs share tiles: one is free again after its last reader.
  void assign_tiles() {
    const auto first = static_cast<int>(program_.operands_.size());
    auto& instructions = program_.instructions_;
    std::vector<int> last_use(instructions.size(), -1);
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      for (const int reg : {instructions[i].a, instructions[i].b}) {
        if (reg >= first) last_use[static_cast<std::size_t>(reg - first)] = static_cast<int>(i);
      }
    }
    std::vector<int> free;
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      if (instructions[i].output < 0) {
        if (free.empty()) free.push_back(program_.tiles_++);
        instructions[i].tile = free.back();
        free.pop_back();
      }
      for (std::size_t j = 0; j < i; ++j) {
        if (last_use[j] == static_cast<int>(i) && instructions[j].tile >= 0)
          free.push_back(instructions[j].tile);
      }
    }
  }

  const artefact::KernelSpec& spec_;
  Constants constants_;
  std::size_t first_step_;
  std::map<std::int32_t, int> registers_;
  ElementwiseProgram program_;
};

Result<ElementwiseProgram> ElementwiseProgram::parse(const artefact::KernelSpec& spec,
                                                     Constants constants, std::size_t first_step) {
  return Parser(spec, constants, first_step).parse();
}

Result<BoundProgram> ElementwiseProgram::bind(const InstanceDims& dims) const {
  BoundProgram bound;
  bound.program_ = *this;
  bound.output_dims_ = dims.outputs[0];
  for (const Dims& output : dims.outputs) {
    if (output != dims.outputs[0]) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("expected outputs of {}, found {}", to_string(dims.outputs[0]),
                              to_string(output)));
    }
  }
  bound.dims_ = physical_dims(layout_, dims.outputs[0]);
  bound.elements_ = numel(bound.dims_);
  std::vector<std::vector<std::int64_t>> strides;
  for (const Operand& operand : operands_) {
    const Dims operand_dims = operand.ref.kind == OperandRef::Kind::kResult ? dims.outputs[0]
                              : operand.ref.kind == OperandRef::Kind::kInput
                                  ? dims.inputs[operand.ref.index]
                                  : *constant_dims(operand.decl.shape);
    TESSERA_ASSIGN(auto walked,
                   operand_strides(layout_, dims.outputs[0], operand.decl.layout, operand_dims));
    strides.push_back(std::move(walked));
  }
  TESSERA_ASSIGN(auto result, operand_strides(layout_, dims.outputs[0], layout_, dims.outputs[0]));
  strides.push_back(std::move(result));
  collapse(bound.dims_, strides);
  bound.tiles_ = tiles_;
  for (std::size_t k = 0; k < operands_.size(); ++k) {
    BoundProgram::Walk walk;
    const bool linear = strides[k] == strides.back();
    const bool scalar =
        std::all_of(strides[k].begin(), strides[k].end(), [](std::int64_t s) { return s == 0; });
    walk.access = linear   ? BoundProgram::Access::kLinear
                  : scalar ? BoundProgram::Access::kScalar
                           : BoundProgram::Access::kBroadcast;
    walk.strides = strides[k];
    if (!linear) walk.tile = bound.tiles_++;
    bound.walks_.push_back(std::move(walk));
  }
  bound.pads_ =
      channel_block_of(layout_) > 1 && dims.outputs[0][1] % channel_block_of(layout_) != 0;
  return bound;
}

std::int64_t BoundProgram::scratch_bytes() const {
  return tiles_ * kTile * static_cast<std::int64_t>(sizeof(float));
}

const float* BoundProgram::base(std::size_t operand, const ExecuteArgs& args) const {
  const auto& source = program_.operands_[operand];
  if (source.constant != nullptr) return source.constant;
  if (source.ref.kind == OperandRef::Kind::kResult) return floats(args.outputs[0]);
  return floats(args.inputs[source.ref.index]);
}

void BoundProgram::gather(const float* source, const Walk& walk, std::int64_t begin,
                          std::int64_t count, float* tile) const {
  const std::size_t rank = dims_.size();
  const std::int64_t inner = dims_[rank - 1];
  const std::int64_t step = walk.strides[rank - 1];
  // Rows that repeat (the channels of a blocked or channels-last tensor) are taken together.
  const bool repeats = rank >= 2 && walk.strides[rank - 2] == 0;
  const std::int64_t period = repeats ? inner * dims_[rank - 2] : inner;
  while (count > 0) {
    std::int64_t offset = 0;
    std::int64_t rest = begin / period;
    for (std::size_t d = rank - (repeats ? 2 : 1); d-- > 0;) {
      offset += rest % dims_[d] * walk.strides[d];
      rest /= dims_[d];
    }
    const std::int64_t run = std::min(count, period - begin % period);
    const std::int64_t column = begin % inner;
    const std::int64_t first = std::min(run, inner);
    for (std::int64_t i = 0; i < first; ++i) {
      const std::int64_t at = column + i < inner ? column + i : column + i - inner;
      tile[i] = source[offset + at * step];
    }
    for (std::int64_t done = first; done < run;) {  // doubling copies
      const std::int64_t more = std::min(done - done % inner, run - done);
      std::memcpy(tile + done, tile + done % inner, static_cast<std::size_t>(more) * sizeof(float));
      done += more;
    }
    tile += run;
    begin += run;
    count -= run;
  }
}

void BoundProgram::run(const ExecuteArgs& args, std::int64_t begin, std::int64_t end,
                       float* scratch) const {
  const std::size_t operand_count = walks_.size();
  const auto tile_of = [&](int tile) { return scratch + tile * kTile; };
  for (std::size_t k = 0; k < operand_count; ++k) {
    if (walks_[k].access == Access::kScalar)
      std::fill_n(tile_of(walks_[k].tile), std::min(kTile, end - begin), *base(k, args));
  }
  const auto pointer = [&](int reg, std::int64_t at) -> const float* {
    if (reg < 0) return nullptr;
    const auto index = static_cast<std::size_t>(reg);
    if (index < operand_count)
      return walks_[index].access == Access::kLinear ? base(index, args) + at
                                                     : tile_of(walks_[index].tile);
    const auto& made = program_.instructions_[index - operand_count];
    return made.output >= 0 ? floats(args.outputs[static_cast<std::size_t>(made.output)]) + at
                            : tile_of(made.tile);
  };
  for (std::int64_t at = begin; at < end; at += kTile) {
    const std::int64_t count = std::min(kTile, end - at);
    for (std::size_t k = 0; k < operand_count; ++k) {
      if (walks_[k].access == Access::kBroadcast)
        gather(base(k, args), walks_[k], at, count, tile_of(walks_[k].tile));
    }
    for (const auto& instruction : program_.instructions_) {
      float* target = instruction.output >= 0
                          ? floats(args.outputs[static_cast<std::size_t>(instruction.output)]) + at
                          : tile_of(instruction.tile);
      run_simd(instruction.op, pointer(instruction.a, at), pointer(instruction.b, at), target,
               static_cast<std::size_t>(count), instruction.alpha, instruction.beta);
    }
  }
  if (!pads_) return;
  for (std::size_t o = 0; o < program_.output_count_; ++o)
    zero_padded_lanes(program_.layout_, output_dims_, floats(args.outputs[o]), begin, end);
}

}  // namespace tessera::backends::cpu
