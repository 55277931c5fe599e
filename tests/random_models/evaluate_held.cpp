// Sequences and optionals.

#include <algorithm>
#include <set>

#include "ops/op_table.h"
#include "random_models/evaluate_node.h"

namespace tessera::random_models {
namespace {

RunValue as_run_value(const Elements& elements, Which which) {
  if (elements.held == nullptr) return RunValue::of(chosen(elements, which));
  std::vector<RunValue> inside;
  for (const Elements& element : elements.held->elements)
    inside.push_back(as_run_value(element, which));
  return {elements.held->kind, {}, std::move(inside)};
}

// The dtype inside of what holds nothing yet.
DType dtype_inside(const Node& node, const Evaluation& values, std::size_t point) {
  for (const ValueId id : node.inputs)
    if (id != kOmitted) return values[static_cast<std::size_t>(id)][point].dtype();
  if (const auto* type = node.attributes.find("type")) {
    const auto& declared = std::get<ValueType>(*type);
    return declared.is_tensor() ? declared.dtype : declared.element->dtype;
  }
  return static_cast<DType>(node.attributes.get_int("dtype", static_cast<int>(DType::kFp32)));
}

// One value out of how it came out in the three runs.
Result<Elements> joined(const std::array<const RunValue*, 3>& runs, DType dtype) {
  Elements result;
  if (runs[0]->is_tensor()) {
    result.nominal = runs[0]->tensor;
    for (std::size_t shake = 0; shake < kShakes; ++shake) {
      const Tensor& shaken = runs[shake + 1]->tensor;
      TESSERA_TRY(check_stable(result.nominal, shaken));
      result.shaken[shake] = result.nominal.equals(shaken) ? result.nominal : shaken;
    }
    return result;
  }
  Held held{runs[0]->kind, dtype, {}};
  for (std::size_t i = 0; i < runs[0]->elements.size(); ++i) {
    std::array<const RunValue*, 3> inside{};
    for (std::size_t run = 0; run < runs.size(); ++run) {
      if (runs[run]->elements.size() != runs[0]->elements.size())
        return unusable("its length depends on rounding");
      inside[run] = &runs[run]->elements[i];
    }
    TESSERA_ASSIGN(Elements element, joined(inside, dtype));
    held.elements.push_back(std::move(element));
  }
  result.held = std::make_shared<const Held>(std::move(held));
  return result;
}

}  // namespace

bool takes_held(const ops::OpSchema& op) {
  static const std::set<std::string_view> names = {
      "ConcatFromSequence", "Optional",          "OptionalGetElement", "OptionalHasElement",
      "SequenceAt",         "SequenceConstruct", "SequenceEmpty",      "SequenceErase",
      "SequenceInsert",     "SequenceLength",    "SplitToSequence"};
  return op.domain.empty() && names.contains(op.name);
}

Result<std::vector<Elements>> run_on_held(const Node& node, const Evaluation& values,
                                          std::size_t point) {
  std::array<std::vector<RunValue>, 3> runs;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    std::vector<RunValue> inputs;
    for (const ValueId id : node.inputs)
      inputs.push_back(
          id == kOmitted ? RunValue()
                         : as_run_value(values[static_cast<std::size_t>(id)][point], kWhich[run]));
    std::vector<const RunValue*> pointers;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      pointers.push_back(node.inputs[i] == kOmitted ? nullptr : &inputs[i]);
    TESSERA_ASSIGN(runs[run],
                   ops::run_reference(*node.op, node.attributes, pointers, node.outputs.size()));
  }
  std::vector<Elements> results;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    TESSERA_ASSIGN(Elements result, joined({&runs[0][i], &runs[1][i], &runs[2][i]},
                                           dtype_inside(node, values, point)));
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace tessera::random_models
