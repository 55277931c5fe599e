// Running single operators: the reference kernel on owned tensors, and inference at one point.

#include <fmt/format.h>

#include <memory>

#include "base/error.h"
#include "ops/infer_util.h"
#include "ops/op_table.h"

namespace tessera::ops {
namespace {

class OwningContext final : public KernelContext {
 public:
  OwningContext(const Attributes& attributes, std::span<const TensorView* const> inputs,
                std::span<const RunValue* const> values, std::size_t output_count)
      : KernelContext(attributes, inputs), values_(values), outputs_(output_count) {}

  [[nodiscard]] std::size_t output_count() const override { return outputs_.size(); }

  Result<MutableTensorView> output(std::size_t index, DType dtype, const Dims& dims) override {
    TESSERA_CHECK(index < outputs_.size());
    TESSERA_ASSIGN(Tensor tensor, Tensor::zeros(dtype, dims));
    outputs_[index] = RunValue::of(std::move(tensor));
    return outputs_[index].tensor.mutable_view();
  }
  [[nodiscard]] const RunValue* value(std::size_t index) const override {
    return index < values_.size() ? values_[index] : nullptr;
  }
  Status set_value(std::size_t index, RunValue value) override {
    TESSERA_CHECK(index < outputs_.size());
    outputs_[index] = std::move(value);
    return {};
  }

  std::vector<RunValue> take() { return std::move(outputs_); }

 private:
  std::span<const RunValue* const> values_;
  std::vector<RunValue> outputs_;
};

const FormalParam* formal_input(const OpSchema& op, std::size_t index) {
  if (index < op.inputs.size()) return &op.inputs[index];
  const bool variadic =
      !op.inputs.empty() && op.inputs.back().arity == FormalParam::Arity::kVariadic;
  return variadic ? &op.inputs.back() : nullptr;
}

// Inputs are those of the schema: required ones there, no more than it has, dtypes allowed and
// equal where the signature says so.
// `values` holds those that are no tensors; empty where all are.
Status check_inputs(const OpSchema& op, std::span<const TensorView* const> inputs,
                    std::span<const RunValue* const> values = {}) {
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const bool present =
        (i < inputs.size() && inputs[i] != nullptr) || (i < values.size() && values[i] != nullptr);
    if (op.inputs[i].arity == FormalParam::Arity::kRequired && !present) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("input '{}': expected a tensor, found none", op.inputs[i].name));
    }
  }
  std::vector<DType> bound(op.type_variables.size(), DType::kUndefined);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const FormalParam* formal = formal_input(op, i);
    if (formal == nullptr) {
      return fail(ErrorCode::kInvalidArgument, fmt::format("expected at most {} inputs, found {}",
                                                           op.inputs.size(), inputs.size()));
    }
    if (inputs[i] == nullptr) continue;
    for (std::size_t v = 0; v < bound.size(); ++v) {
      if (op.type_variables[v].name != formal->type) continue;
      const DType found = inputs[i]->dtype;
      if ((op.type_variables[v].allowed & dtype_bit(found)) == 0) {
        return fail(ErrorCode::kInvalidArgument, fmt::format("input '{}': dtype {} is not allowed",
                                                             formal->name, to_string(found)));
      }
      if (bound[v] != DType::kUndefined && bound[v] != found) {
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("input '{}': expected {}, found {}", formal->name,
                                to_string(bound[v]), to_string(found)));
      }
      // Variadic inputs of Concat, Max and the like share one type as well.
      bound[v] = found;
    }
  }
  return {};
}

}  // namespace

// Those that can hold the value keep it.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
Status KernelContext::set_value(std::size_t index, RunValue /*value*/) {
  return fail(ErrorCode::kUnimplemented,
              fmt::format("output {}: expected a tensor, found a sequence or an optional", index));
}

Result<std::vector<RunValue>> run_reference(const OpSchema& op, const Attributes& attributes,
                                            std::span<const RunValue* const> inputs,
                                            std::size_t output_count) {
  if (op.kernel == nullptr)
    return fail(ErrorCode::kUnimplemented,
                fmt::format("{} has no reference kernel", op.qualified_name()));
  std::vector<TensorView> views(inputs.size());
  std::vector<const TensorView*> pointers(inputs.size(), nullptr);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr || !inputs[i]->is_tensor()) continue;
    views[i] = inputs[i]->tensor.view();
    pointers[i] = &views[i];
  }
  TESSERA_TRY(check_inputs(op, pointers, inputs));
  OwningContext context(attributes, pointers, inputs, output_count);
  TESSERA_TRY(op.kernel(context));
  return context.take();
}

Result<std::vector<Tensor>> run_reference(const OpSchema& op, const Attributes& attributes,
                                          std::span<const Tensor> inputs,
                                          std::size_t output_count) {
  std::vector<RunValue> values(inputs.size());
  std::vector<const RunValue*> pointers(inputs.size(), nullptr);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_defined()) continue;
    values[i] = RunValue::of(inputs[i]);
    pointers[i] = &values[i];
  }
  TESSERA_ASSIGN(auto results, run_reference(op, attributes, pointers, output_count));
  std::vector<Tensor> tensors;
  for (RunValue& result : results) tensors.push_back(std::move(result.tensor));
  return tensors;
}

Result<std::vector<TensorSpec>> run_shape(const OpSchema& op, const Attributes& attributes,
                                          std::span<const TensorView* const> inputs,
                                          std::size_t output_count) {
  TESSERA_TRY(check_inputs(op, inputs));
  InferContext context{.op = op,
                       .attributes = attributes,
                       .inputs = {},
                       .outputs = {},
                       .output_values = {},
                       .fresh_symbol = {},
                       .infer_body = {}};
  std::vector<Tensor> constants(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    InferInput& input = context.inputs.emplace_back();
    if (inputs[i] == nullptr) continue;
    input.present = true;
    input.type = ValueType::tensor(inputs[i]->dtype, to_shape(inputs[i]->dims));
    if (inputs[i]->data != nullptr) {
      constants[i] = Tensor::borrow(inputs[i]->dtype, inputs[i]->dims, inputs[i]->data, nullptr);
      input.constant = &constants[i];
    }
  }
  context.outputs.resize(output_count);
  context.output_values.resize(output_count);
  int symbols = 0;
  context.fresh_symbol = [&symbols](std::string_view hint) {
    return Dim::symbol(fmt::format("{}_{}", hint, symbols++));
  };
  context.infer_body = [](std::size_t,
                          std::span<const ValueType>) -> Result<std::vector<ValueType>> {
    return fail(ErrorCode::kUnimplemented,
                "sizes of an operator with bodies are not known before it runs");
  };
  TESSERA_TRY(op.infer(context));
  std::vector<TensorSpec> specs;
  for (std::size_t i = 0; i < output_count; ++i) {
    const ValueType& type = context.outputs[i];
    const auto dims = type.is_tensor() && type.shape ? constant_dims(*type.shape) : std::nullopt;
    if (!dims) {
      return fail(ErrorCode::kUnimplemented,
                  fmt::format("the size of output {} depends on elements that are not known: {}", i,
                              type.to_string()));
    }
    specs.push_back({type.dtype, *dims, true});
  }
  return specs;
}

}  // namespace tessera::ops
