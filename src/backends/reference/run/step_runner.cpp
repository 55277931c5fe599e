#include "backends/reference/run/step_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ops/op_table.h"

namespace tessera::backends::reference {
namespace {

// Results of one run: a planned output where a step's result is one, else memory of its own.
struct Results {
  std::vector<const TensorView*> operands;        // null: omitted or not computed yet
  std::vector<TensorView> views;                  // storage behind `operands`
  std::vector<const MutableTensorView*> planned;  // per operand: where it must be written
  std::vector<Tensor> owned;
};

void run_in_pieces(Parallel* parallel, std::int64_t count, std::int64_t grain,
                   const std::function<void(std::int64_t, std::int64_t)>& body) {
  if (parallel == nullptr || grain < 1) return body(0, count);
  const std::int64_t chunks = (count + grain - 1) / grain;
  parallel->run(chunks, [&](std::int64_t chunk) {
    body(chunk * grain, std::min(count, (chunk + 1) * grain));
  });
}

class StepContext final : public ops::KernelContext {
 public:
  StepContext(const ops::Attributes& attributes, std::span<const TensorView* const> inputs,
              Results& results, std::size_t first_result, std::size_t count, Parallel* parallel)
      : KernelContext(attributes, inputs),
        results_(results),
        first_result_(first_result),
        count_(count),
        parallel_(parallel) {}

  [[nodiscard]] std::size_t output_count() const override { return count_; }

  Result<MutableTensorView> output(std::size_t index, DType dtype, const Dims& dims) override {
    const std::size_t operand = first_result_ + index;
    results_.operands[operand] = &results_.views[operand];
    if (const MutableTensorView* planned = results_.planned[operand]; planned != nullptr) {
      if (planned->dtype != dtype || planned->dims != dims)
        return fail(ErrorCode::kInternal,
                    fmt::format("output {}: planned {}[{}], computed {}[{}]", index,
                                to_string(planned->dtype), to_string(planned->dims),
                                to_string(dtype), to_string(dims)));
      results_.views[operand] = planned->view();
      return *planned;
    }
    TESSERA_ASSIGN(results_.owned[operand], Tensor::zeros(dtype, dims));
    results_.views[operand] = results_.owned[operand].view();
    return results_.owned[operand].mutable_view();
  }

  void parallel_for(std::int64_t count, std::int64_t grain,
                    const std::function<void(std::int64_t, std::int64_t)>& body) override {
    run_in_pieces(parallel_, count, grain, body);
  }

 private:
  Results& results_;
  std::size_t first_result_;
  std::size_t count_;
  Parallel* parallel_;
};

// Operands of any kind; results own their storage.
class LateContext final : public ops::KernelContext {
 public:
  LateContext(const ops::Attributes& attributes, std::span<const TensorView* const> tensors,
              std::span<const RunValue* const> values, std::span<RunValue> outputs,
              Parallel* parallel)
      : KernelContext(attributes, tensors),
        values_(values),
        outputs_(outputs),
        parallel_(parallel) {}

  [[nodiscard]] std::size_t output_count() const override { return outputs_.size(); }
  Result<MutableTensorView> output(std::size_t index, DType dtype, const Dims& dims) override {
    TESSERA_ASSIGN(Tensor tensor, Tensor::zeros(dtype, dims));
    outputs_[index] = RunValue::of(std::move(tensor));
    return outputs_[index].tensor.mutable_view();
  }
  // Tensors are not handed out as values: a kernel would keep what lies where others write later.
  [[nodiscard]] const RunValue* value(std::size_t index) const override {
    const RunValue* value = index < values_.size() ? values_[index] : nullptr;
    return value != nullptr && value->is_tensor() ? nullptr : value;
  }
  Status set_value(std::size_t index, RunValue value) override {
    outputs_[index] = std::move(value);
    return {};
  }
  void parallel_for(std::int64_t count, std::int64_t grain,
                    const std::function<void(std::int64_t, std::int64_t)>& body) override {
    run_in_pieces(parallel_, count, grain, body);
  }

 private:
  std::span<const RunValue* const> values_;
  std::span<RunValue> outputs_;
  Parallel* parallel_;
};

}  // namespace

Result<std::unique_ptr<StepRunner>> StepRunner::create(const artefact::KernelSpec& spec,
                                                       std::vector<TensorView> constants) {
  std::unique_ptr<StepRunner> runner(new StepRunner(spec, std::move(constants)));
  auto next = static_cast<std::int32_t>(spec.inputs.size() + spec.constants.size());
  for (const artefact::KernelStep& step : spec.steps) {
    const ops::OpSchema* op = ops::find_op(step.domain, step.op_type);
    if (op == nullptr || op->kernel == nullptr)
      return fail(ErrorCode::kUnimplemented,
                  fmt::format("no reference kernel for operator '{}'", step.op_type));
    runner->steps_.push_back({op, &step, next});
    next += static_cast<std::int32_t>(step.output_count);
  }
  return runner;
}

std::size_t StepRunner::operand_count() const {
  std::size_t count = spec_.inputs.size() + spec_.constants.size();
  for (const Step& step : steps_) count += step.spec->output_count;
  return count;
}

Status StepRunner::run(std::span<const TensorView> inputs,
                       std::span<const MutableTensorView> outputs, Parallel* parallel) const {
  const std::size_t given = inputs.size() + constants_.size();
  Results results;
  results.operands.resize(operand_count());
  results.views.resize(operand_count());
  results.planned.resize(operand_count());
  results.owned.resize(operand_count());
  for (std::size_t i = 0; i < given; ++i)
    results.operands[i] = i < inputs.size() ? &inputs[i] : &constants_[i - inputs.size()];
  for (std::size_t i = 0; i < outputs.size(); ++i)
    results.planned[static_cast<std::size_t>(spec_.output_operands[i])] = &outputs[i];
  for (const Step& step : steps_) {
    std::vector<const TensorView*> step_inputs;
    for (const std::int32_t operand : step.spec->inputs)
      step_inputs.push_back(operand < 0 ? nullptr
                                        : results.operands[static_cast<std::size_t>(operand)]);
    StepContext context(step.spec->attributes, step_inputs, results,
                        static_cast<std::size_t>(step.first_result), step.spec->output_count,
                        parallel);
    TESSERA_TRY_IN(step.op->kernel(context), step.op->qualified_name());
  }
  // An operand that is an output twice, or an input passed through, was written at most once.
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const TensorView* result = results.operands[static_cast<std::size_t>(spec_.output_operands[i])];
    TESSERA_CHECK(result != nullptr);
    if (result->data != outputs[i].data)
      std::memcpy(outputs[i].data, result->data, static_cast<std::size_t>(result->nbytes()));
  }
  return {};
}

Result<std::vector<RunValue>> StepRunner::run_late(std::span<const RunValue* const> inputs,
                                                   Parallel* parallel) const {
  std::vector<RunValue> owned(operand_count());
  std::vector<const RunValue*> operands(inputs.begin(), inputs.end());
  for (std::size_t i = 0; i < constants_.size(); ++i) {
    RunValue& constant = owned[inputs.size() + i];
    constant = RunValue::of(
        Tensor::borrow(constants_[i].dtype, constants_[i].dims, constants_[i].data, nullptr));
    operands.push_back(&constant);
  }
  for (const Step& step : steps_) {
    std::vector<const RunValue*> values;
    std::vector<TensorView> views;
    for (const std::int32_t operand : step.spec->inputs)
      values.push_back(operand < 0 ? nullptr : operands[static_cast<std::size_t>(operand)]);
    for (const RunValue* value : values)
      views.push_back(value != nullptr && value->is_tensor() ? value->tensor.view() : TensorView());
    std::vector<const TensorView*> tensors;
    for (std::size_t i = 0; i < values.size(); ++i)
      tensors.push_back(values[i] != nullptr && values[i]->is_tensor() ? &views[i] : nullptr);
    const std::span<RunValue> outputs(owned.data() + step.first_result, step.spec->output_count);
    LateContext context(step.spec->attributes, tensors, values, outputs, parallel);
    TESSERA_TRY_IN(step.op->kernel(context), step.op->qualified_name());
    for (const RunValue& output : outputs) operands.push_back(&output);
  }
  std::vector<RunValue> results;
  for (const std::int32_t operand : spec_.output_operands)
    results.push_back(*operands[static_cast<std::size_t>(operand)]);
  return results;
}

}  // namespace tessera::backends::reference
