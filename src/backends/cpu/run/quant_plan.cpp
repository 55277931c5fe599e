#include "backends/cpu/run/quant_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "backends/cpu/run/quantize_plan.h"

namespace tessera::backends::cpu {
namespace {

constexpr std::array<std::string_view, 4> kSelfQuantised = {"ConvInteger", "QLinearConv",
                                                            "MatMulInteger", "QLinearMatMul"};
constexpr std::array<std::string_view, 4> kPools = {"MaxPool", "AveragePool", "GlobalAveragePool",
                                                    "GlobalMaxPool"};

template <typename Table>
bool has(const Table& table, std::string_view op) {
  return std::find(table.begin(), table.end(), op) != table.end();
}

bool is_anchor(std::string_view op) {
  return op == "Conv" || op == "Gemm" || op == "MatMul";
}

tl::unexpected<Error> unsupported(std::string message) {
  return fail(ErrorCode::kUnimplemented, std::move(message));
}

class Reader {
 public:
  Reader(const artefact::KernelSpec& spec, Constants constants)
      : spec_(spec), constants_(constants) {}

  Result<QuantPlan> read() {
    if (spec_.steps.empty() || spec_.outputs.size() != 1)
      return bad_spec(spec_, fmt::format("expected steps and one output, found {} and {}",
                                         spec_.steps.size(), spec_.outputs.size()));
    const auto& first = spec_.steps[0];
    if (has(kSelfQuantised, first.op_type)) {
      TESSERA_TRY_IN(read_self_quantised(first), first.op_type);
      return std::move(plan_);
    }
    if (spec_.steps.size() == 1 && has(kPools, first.op_type)) {
      TESSERA_TRY_IN(read_byte_pool(first), first.op_type);
      return std::move(plan_);
    }
    for (std::size_t i = 0; i < spec_.steps.size(); ++i)
      TESSERA_TRY_IN(read_step(i), spec_.steps[i].op_type);
    return finish();
  }

 private:
  Result<QuantPlan> finish() {
    if (!anchored_ && body_.empty())
      return unsupported("expected an operator between DequantizeLinear and QuantizeLinear");
    if (plan_.kind == QuantPlan::Kind::kPool && !plan_.result)
      return unsupported("expected QuantizeLinear behind a pooling");
    if (!body_.empty()) {
      TESSERA_ASSIGN(plan_.program,
                     read_quant_program(spec_, constants_, body_, anchored_ ? start_ : -1));
    }
    return std::move(plan_);
  }

  Result<std::vector<double>> numbers(std::int32_t operand) const {
    return constant_numbers(spec_, constants_, operand);
  }

  [[nodiscard]] DType dtype_of(std::int32_t number) const {
    const auto* decl = operand_decl(spec_, number);
    return decl == nullptr ? DType::kUndefined : decl->dtype;
  }

  Status read_step(std::size_t index) {
    const auto& step = spec_.steps[index];
    if (step.op_type == "DequantizeLinear") return {};  // read by whom it serves
    if (plan_.result) return unsupported("expected nothing behind QuantizeLinear");
    if (step.op_type == "QuantizeLinear") return read_result(step);
    if (is_anchor(step.op_type) || has(kPools, step.op_type)) {
      if (anchored_ || !body_.empty())
        return unsupported("expected no other operator before it, found one");
      anchored_ = true;
      plan_.anchor = index;
      TESSERA_TRY(has(kPools, step.op_type) ? read_pool(step) : read_anchor(step));
    } else if (!(anchored_ && body_.empty() && take_bias(step))) {
      if (plan_.kind == QuantPlan::Kind::kPool)
        return unsupported("expected QuantizeLinear behind a pooling");
      body_.push_back(index);
      current_ = result_number(spec_, index);
      return {};
    }
    start_ = current_ = result_number(spec_, index);
    return {};
  }

  Status read_result(const artefact::KernelStep& step) {
    if (step_input(step, 0) != current_)
      return unsupported("expected it to quantise the last result");
    TESSERA_TRY(check_precision(step));
    TESSERA_ASSIGN(plan_.result, result_params(step_input(step, 1), step_input(step, 2)));
    return {};
  }

  Result<QuantParams> result_params(std::int32_t scale, std::int32_t zero) const {
    TESSERA_ASSIGN(auto params,
                   quant_params(spec_, constants_, spec_.outputs[0].dtype, scale, zero));
    if (params.zero_operand < 0) return params;
    return unsupported("zero point: expected a constant, found a tensor computed at run time");
  }

  Status read_pool(const artefact::KernelStep& step) {
    plan_.kind = QuantPlan::Kind::kPool;
    const auto* source = dequantizer_of(spec_, step_input(step, 0));
    if (source == nullptr) return unsupported("input 'X': expected it dequantised");
    TESSERA_ASSIGN(plan_.src, dequantised(spec_, constants_, *source));
    return {};
  }

  Status read_byte_pool(const artefact::KernelStep& step) {
    plan_.kind = QuantPlan::Kind::kPool;
    plan_.src = {step_input(step, 0), true, {}};
    TESSERA_ASSIGN(plan_.src.params,
                   quant_params(spec_, constants_, dtype_of(plan_.src.operand), -1, -1));
    plan_.result = plan_.src.params;
    return {};
  }

  // ---- Convolutions and products ----

  // Columns of the result, along which scales, zero points and the bias may vary.
  [[nodiscard]] std::size_t column_axis() const {
    const std::size_t rank = spec_.outputs[0].shape.size();
    return plan_.kind == QuantPlan::Kind::kConv ? 1 : rank == 0 ? 0 : rank - 1;
  }
  [[nodiscard]] std::optional<std::int64_t> columns() const {
    const Shape& shape = spec_.outputs[0].shape;
    return column_axis() < shape.size() ? shape[column_axis()].constant() : 1;
  }

  Status expect_columns(std::size_t found, std::string_view name) const {
    const auto count = columns();
    if (found == 1 || (count && static_cast<std::int64_t>(found) == *count)) return {};
    return unsupported(
        fmt::format("{}: expected one element or one for each of {} columns, found "
                    "{}",
                    name, count ? std::to_string(*count) : "the", found));
  }

  Status read_anchor(const artefact::KernelStep& step) {
    plan_.kind = step.op_type == "Conv" ? QuantPlan::Kind::kConv : QuantPlan::Kind::kProduct;
    const auto* source = dequantizer_of(spec_, step_input(step, 0));
    const auto* weights = dequantizer_of(spec_, step_input(step, 1));
    if (source == nullptr || weights == nullptr)
      return unsupported(fmt::format("input {}: expected it dequantised", source ? 1 : 0));
    TESSERA_ASSIGN(plan_.src, dequantised(spec_, constants_, *source));
    TESSERA_TRY_IN(read_weights(step, *weights), "weights");
    const bool gemm = step.op_type == "Gemm";
    for (float& scale : plan_.scales)
      scale *= plan_.src.params.scale * (gemm ? step.attributes.get_float("alpha", 1) : 1);
    const std::int32_t bias = step_input(step, 2);
    if (bias < 0) return {};
    TESSERA_ASSIGN(plan_.bias, real_constant(spec_, constants_, bias));
    for (float& value : plan_.bias) value *= gemm ? step.attributes.get_float("beta", 1) : 1;
    return expect_columns(plan_.bias.size(), "bias");
  }

  Status read_weights(const artefact::KernelStep& anchor, const artefact::KernelStep& step) {
    plan_.weights = step_input(step, 0);
    plan_.weights_dtype = dtype_of(plan_.weights);
    const bool words = plan_.weights_dtype == DType::kInt16;  // as the compile half centres them
    if (!words && plan_.weights_dtype != DType::kInt8 && plan_.weights_dtype != DType::kUInt8)
      return unsupported(
          fmt::format("expected int8 or uint8, found {}", to_string(plan_.weights_dtype)));
    if (const auto block = step.attributes.get_int("block_size", 0); block != 0)
      return unsupported(fmt::format("attribute 'block_size': expected 0, found {}", block));
    TESSERA_ASSIGN(const auto scales, numbers(step_input(step, 1)));
    plan_.scales.assign(scales.begin(), scales.end());
    TESSERA_TRY(read_weight_zeros(step_input(step, 2)));
    TESSERA_TRY(expect_columns(scales.size(), "scale"));
    if (scales.size() == 1) return {};
    const auto rank = static_cast<std::int64_t>(operand_decl(spec_, plan_.weights)->shape.size());
    std::int64_t axis = step.attributes.get_int("axis", 1);
    if (axis < 0) axis += rank;
    const bool rows = anchor.op_type == "Conv" || anchor.attributes.get_int("transB", 0) != 0;
    const std::int64_t wanted = rows ? 0 : rank - 1;
    if (axis == wanted) return {};
    return unsupported(
        fmt::format("scale: expected one for each index of axis {}, found axis {}", wanted, axis));
  }

  Status read_weight_zeros(std::int32_t operand) {
    plan_.weight_zeros = {0};
    if (operand < 0) return {};
    TESSERA_ASSIGN(const auto zeros, numbers(operand));
    plan_.weight_zeros.assign(zeros.begin(), zeros.end());
    return expect_columns(zeros.size(), "zero point");
  }

  // An Add of a constant for each column, right behind the anchor, is its bias.
  bool take_bias(const artefact::KernelStep& step) {
    if (step.op_type != "Add" || !plan_.bias.empty() || plan_.kind == QuantPlan::Kind::kPool)
      return false;
    const bool first = step_input(step, 0) == current_;
    const std::int32_t other = step_input(step, first ? 1 : 0);
    const auto* made = dequantizer_of(spec_, other);
    const std::int32_t source = made == nullptr ? other : step_input(*made, 0);
    if (!is_constant(spec_, source) || (!first && step_input(step, 1) != current_)) return false;
    const auto dims = constant_dims(operand_decl(spec_, source)->shape);
    const std::size_t rank = spec_.outputs[0].shape.size();
    if (!dims || dims->size() > rank) return false;
    for (std::size_t d = 0; d < dims->size(); ++d) {
      const bool column = rank - dims->size() + d == column_axis();
      if ((*dims)[d] != (column ? columns().value_or(-1) : 1)) return false;
    }
    auto bias = real_constant(spec_, constants_, other);
    if (!bias) return false;
    plan_.bias = *std::move(bias);
    return true;
  }

  // ---- Operators that take quantised tensors themselves ----

  Status read_self_quantised(const artefact::KernelStep& step) {
    const bool conv = step.op_type == "ConvInteger" || step.op_type == "QLinearConv";
    const bool linear = step.op_type.starts_with("QLinear");
    plan_.kind = conv ? QuantPlan::Kind::kConv : QuantPlan::Kind::kProduct;
    plan_.src = {step_input(step, 0), true, {}};
    plan_.weights = step_input(step, linear ? 3 : 1);
    plan_.weights_dtype = dtype_of(plan_.weights);
    plan_.scales = {1};
    plan_.sums_result = !linear;
    TESSERA_ASSIGN(plan_.src.params,
                   quant_params(spec_, constants_, dtype_of(plan_.src.operand),
                                linear ? step_input(step, 1) : -1, step_input(step, 2)));
    TESSERA_TRY_IN(read_weight_zeros(step_input(step, linear ? 5 : 3)), "weights");
    if (!linear) return {};
    TESSERA_ASSIGN(const auto scales, numbers(step_input(step, 4)));
    TESSERA_TRY_IN(expect_columns(scales.size(), "scale"), "weights");
    plan_.scales.assign(scales.begin(), scales.end());
    for (float& scale : plan_.scales) scale *= plan_.src.params.scale;
    TESSERA_ASSIGN(plan_.result, result_params(step_input(step, 6), step_input(step, 7)));
    if (step_input(step, 8) < 0 || !conv) return {};
    TESSERA_ASSIGN(const auto bias, numbers(step_input(step, 8)));
    TESSERA_TRY(expect_columns(bias.size(), "bias"));
    for (std::size_t i = 0; i < bias.size(); ++i)
      plan_.bias.push_back(static_cast<float>(bias[i]) *
                           plan_.scales[plan_.scales.size() == 1 ? 0 : i]);
    return {};
  }

  const artefact::KernelSpec& spec_;
  Constants constants_;
  QuantPlan plan_;
  bool anchored_ = false;
  std::int32_t current_ = -1;      // the value at the end of what was read so far
  std::int32_t start_ = -1;        // what the elementwise steps start from
  std::vector<std::size_t> body_;  // elementwise steps
};

}  // namespace

Result<QuantPlan> plan_quantised(const artefact::KernelSpec& spec, Constants constants) {
  return Reader(spec, constants).read();
}

}  // namespace tessera::backends::cpu
