#pragma once

// A graph in the text form of the IR, fakes to run it on, and the stages one after the other.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/infer.h"
#include "ir/text.h"
#include "plan/assignment_problem.h"
#include "plan/legalize.h"
#include "plan/memory.h"
#include "solve/solve.h"
#include "testing/fake_device.h"

namespace tessera::plan {

inline const backends::TensorForm kPlain{Layout::row_major(), DType::kFp32};
inline const backends::TensorForm kLast{Layout::channels_last(4), DType::kFp32};
inline const backends::TensorForm kLastHalf{Layout::channels_last(4), DType::kFp16};
inline const backends::TensorForm kPlainHalf{Layout::row_major(), DType::kFp16};

struct Stages {
  explicit Stages(const std::string& statements, const SymbolBindings& at = {}) : point(at) {
    auto parsed =
        ir::parse("tessera.ir 1 module \"test\" { symbol \"n\" in [1, 64] method \"main\" {\n" +
                  statements + "\n} }");
    if (!parsed) {
      ADD_FAILURE() << parsed.error().to_string();
      return;
    }
    module = *std::move(parsed);
    const auto inferred = ir::infer(module);
    EXPECT_TRUE(inferred) << inferred.error().to_string();
  }

  [[nodiscard]] const ir::Method& method() const { return module.methods.front(); }
  [[nodiscard]] const ir::Graph& graph() const { return method().graph; }
  [[nodiscard]] Target& target() { return devices.target(); }
  [[nodiscard]] ir::ValueId value(std::string_view name) const {
    for (ir::ValueId id = 0; id < graph().value_count(); ++id)
      if (graph().value(id).name == name) return id;
    ADD_FAILURE() << "no value '" << name << "'";
    return 0;
  }

  // The cover of the nodes of these names, which ends in its last node.
  void cover(const std::vector<std::string>& names) {
    ir::Cover added;
    added.id = static_cast<std::uint32_t>(covers.size());
    for (const auto& node : graph().nodes()) {
      if (std::ranges::find(names, node->name) == names.end()) continue;
      for (const ir::ValueId input : node->inputs) {
        const ir::Node* producer = graph().producer(input);
        const bool inside =
            producer != nullptr && std::ranges::find(names, producer->name) != names.end();
        if (!inside && std::ranges::find(added.inputs, input) == added.inputs.end())
          added.inputs.push_back(input);
      }
      added.nodes.push_back(node->id);
      for (const ir::ValueId output : node->outputs) {
        const auto uses = graph().uses(output);
        const auto outside = [&](const ir::Graph::Use& use) {
          return std::ranges::find(names, use.node->name) == names.end();
        };
        if (graph().is_output(output) || std::ranges::any_of(uses, outside))
          added.outputs.push_back(output);
      }
    }
    covers.push_back(std::move(added));
  }

  Status enumerate(const std::vector<PlacementRule>& rules = {}) {
    pricer = std::make_unique<Pricer>(target(), table, 1, point);
    TESSERA_ASSIGN(choices,
                   enumerate_choices(module, graph(), covers, target(), rules, {}, *pricer));
    conversions = std::make_unique<Conversions>(graph(), target(), *pricer);
    return {};
  }

  void assign() {
    const Status enumerated = enumerate();
    ASSERT_TRUE(enumerated) << enumerated.error().to_string();
    problem = build_assignment_problem(graph(), choices, target(), *conversions);
    const auto solved = solve::solve(problem.problem);
    ASSERT_TRUE(solved) << solved.error().to_string();
    solution = *solved;
    assignment = decode(problem, solution.choice);
  }

  void lower() {
    assign();
    if (::testing::Test::HasFatalFailure()) return;
    lowered = legalize(method(), choices, assignment, target(), *conversions).front();
    form_regions(lowered);
  }

  // "call cpu 'a': x -> a[nhwc/fp32]": a form is told where it is not the plain one; a letter where
  // a buffer is not a temporary.
  [[nodiscard]] std::vector<std::string> steps() {
    std::vector<std::string> lines;
    for (const LoweredStep& step : lowered.steps) {
      static const std::map<artefact::Opcode, std::string> kNames = {
          {artefact::Opcode::kCall, "call"},
          {artefact::Opcode::kConvert, "convert"},
          {artefact::Opcode::kTransfer, "transfer"},
          {artefact::Opcode::kWriteBack, "write_back"}};
      std::string line =
          kNames.at(step.opcode) + " " + target().info(step.device).name + " '" + step.label + "':";
      for (const std::uint32_t buffer : step.inputs) line += " " + operand(buffer);
      line += " ->";
      for (const std::uint32_t buffer : step.outputs) line += " " + operand(buffer);
      lines.push_back(line);
    }
    return lines;
  }

  [[nodiscard]] std::string operand(std::uint32_t buffer) {
    const LoweredBuffer& entry = lowered.buffers[buffer];
    static const std::map<artefact::BufferKind, std::string> kKinds = {
        {artefact::BufferKind::kTemporary, ""},
        {artefact::BufferKind::kInput, "!in"},
        {artefact::BufferKind::kOutput, "!out"},
        {artefact::BufferKind::kConstant, "!const"},
        {artefact::BufferKind::kState, "!state"}};
    std::string text = graph().value(entry.value).name + kKinds.at(entry.kind);
    const std::string form = to_string(entry.form, target());
    return form == "nchw/fp32" ? text : text + "[" + form + "]";
  }

  ir::Module module;
  testing::FakeTarget devices;
  std::vector<ir::Cover> covers;
  SymbolBindings point;
  CostTable table;
  std::unique_ptr<Pricer> pricer;
  std::unique_ptr<Conversions> conversions;
  Choices choices;
  AssignmentProblem problem;
  solve::Solution solution;
  Assignment assignment;
  Lowered lowered;
};

}  // namespace tessera::plan
