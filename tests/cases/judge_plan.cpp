#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "artefact/write/writer.h"
#include "cases/judges.h"
#include "ops/op_table.h"
#include "runtime/shape_plan.h"
#include "runtime/thread_pool.h"

namespace tessera::testing {
namespace {

using artefact::BufferKind;
using artefact::Instruction;
using artefact::Opcode;

const std::set<std::string> kKeys = {"max_transposes", "max_copies", "max_artifact_bytes",
                                     "report_is_valid_json", "unread_outputs_do_not_overlap_live"};

// An operator that gives its operands' elements as they are, one after the other.
bool is_copy(const artefact::KernelStep& step) {
  static const std::set<std::string> names = {"Identity", "Concat", "Split"};
  const ops::OpSchema* op = ops::find_op(step.domain, step.op_type);
  return names.contains(step.op_type) || (op != nullptr && op->structure == ops::Structure::kView);
}

bool copies(const artefact::ProgramImage& image, const artefact::MethodImage& method,
            const Instruction& instruction) {
  switch (instruction.opcode) {
    case Opcode::kConvert:
    case Opcode::kTransfer:
    case Opcode::kWriteBack: return true;
    case Opcode::kCall: break;
    default: return false;
  }
  const bool shares_storage = method.buffers[instruction.outputs.front()].alias_of != UINT32_MAX;
  return !shares_storage && std::ranges::all_of(image.kernels[instruction.kernel].steps, is_copy);
}

template <typename Count>
std::size_t count_instructions(const runtime::LoadedProgram& program, Count count) {
  std::size_t total = 0;
  for (const auto& method : program.plan().methods)
    for (const Instruction& instruction : method.instructions) total += count(method, instruction);
  return total;
}

std::size_t count_copies(const runtime::LoadedProgram& program) {
  return count_instructions(program, [&](const auto& method, const Instruction& instruction) {
    return copies(program.image(), method, instruction) ? std::size_t{1} : std::size_t{0};
  });
}

std::size_t count_transposes(const runtime::LoadedProgram& program) {
  return count_instructions(program, [&](const auto&, const Instruction& instruction) {
    if (instruction.kernel == UINT32_MAX) return std::size_t{0};
    const auto& steps = program.image().kernels[instruction.kernel].steps;
    return static_cast<std::size_t>(
        std::ranges::count(steps, "Transpose", &artefact::KernelStep::op_type));
  });
}

std::string at_most(double limit, std::size_t found) {
  return static_cast<double>(found) <= limit
             ? ""
             : fmt::format("expected at most {}, found {}", limit, found);
}

std::string artefact_problem(double limit, const runtime::LoadedProgram& program) {
  const auto bytes = artefact::serialize_program(program.image());
  return bytes ? at_most(limit, bytes->size()) : bytes.error().to_string();
}

std::string json_problem(const report::Report& report) {
  const std::string text = report::to_json(report);
  if (nlohmann::json::parse(text, nullptr, false).is_discarded()) return "not JSON: " + text;
  const auto again = report::from_json(text);
  if (!again) return again.error().to_string();
  return report::to_json(*again) == text ? "" : "reads back as another report";
}

// ---- Storage
// -----------------------------------------------------------------------------------------------

// The storage of the temporaries of one method at the sizes of one run, and when it is in use.
class Storage {
 public:
  Storage(const artefact::MethodImage& method, const runtime::ShapePlan& plan)
      : method_(method), plan_(plan), first_(method.buffers.size(), SIZE_MAX), last_(first_) {
    for (std::size_t i = 0; i < method.instructions.size(); ++i) {
      for (const std::uint32_t buffer : method.instructions[i].outputs) use(buffer, i);
      for (const std::uint32_t buffer : method.instructions[i].inputs) use(buffer, i);
    }
  }

  // The first result that is written over something which is still in use.
  [[nodiscard]] std::string problem() const {
    for (std::size_t i = 0; i < method_.instructions.size(); ++i)
      for (const std::uint32_t buffer : method_.instructions[i].outputs)
        for (std::uint32_t other = 0; other < method_.buffers.size(); ++other)
          if (collide(root(buffer), other, i))
            return fmt::format("'{}' is written over '{}', which is still in use",
                               method_.buffers[buffer].value, method_.buffers[other].value);
    return {};
  }

 private:
  [[nodiscard]] std::uint32_t root(std::uint32_t buffer) const {
    while (method_.buffers[buffer].alias_of != UINT32_MAX)
      buffer = method_.buffers[buffer].alias_of;
    return buffer;
  }
  void use(std::uint32_t buffer, std::size_t instruction) {
    const std::uint32_t owner = root(buffer);
    first_[owner] = std::min(first_[owner], instruction);
    last_[owner] = last_[owner] == SIZE_MAX ? instruction : std::max(last_[owner], instruction);
  }
  [[nodiscard]] bool collide(std::uint32_t a, std::uint32_t b, std::size_t instruction) const {
    const auto& one = method_.buffers[a];
    const auto& other = method_.buffers[b];
    if (a == b || root(b) != b || one.kind != BufferKind::kTemporary ||
        other.kind != BufferKind::kTemporary || one.memory != other.memory)
      return false;
    if (first_[b] == SIZE_MAX || first_[b] > instruction || last_[b] < instruction) return false;
    return plan_.offset_bytes[a] < plan_.offset_bytes[b] + plan_.size_bytes[b] &&
           plan_.offset_bytes[b] < plan_.offset_bytes[a] + plan_.size_bytes[a];
  }

  const artefact::MethodImage& method_;
  const runtime::ShapePlan& plan_;
  std::vector<std::size_t> first_;
  std::vector<std::size_t> last_;
};

std::string overlap_problem(const StepRun& run) {
  const auto& method = run.program->method();
  std::vector<Dims> dims;
  for (const auto& decl : method.inputs) {
    const auto feed = std::ranges::find_if(
        run.feeds, [&](const auto& entry) { return entry.first == decl.name; });
    dims.push_back(feed == run.feeds.end() ? Dims() : feed->second.dims());
  }
  const auto bindings = runtime::bind_symbols(method, dims, {}, false);
  if (!bindings) return bindings.error().to_string();
  runtime::ThreadPool pool(1);
  const auto plan =
      runtime::make_shape_plan(*run.program, method, dims, *bindings,
                               std::vector<bool>(method.buffers.size(), false), 1, pool);
  return plan ? Storage(method, **plan).problem() : plan.error().to_string();
}

}  // namespace

void judge_plan(const Case& tested, const TriedWay& tried, Verdicts& verdicts) {
  const Attempt& attempt = tried.attempt;
  for (const std::string& key : keys_of(tested)) {
    if (!kKeys.contains(key)) continue;
    if (!attempt.loaded) {
      verdicts.judge(key, "no plan: " + attempt.failure_text());
      continue;
    }
    const runtime::LoadedProgram& program = *attempt.loaded->program;
    if (key == "max_transposes")
      verdicts.judge(key, at_most(tested.number(key, 0), count_transposes(program)));
    else if (key == "max_copies")
      verdicts.judge(key, at_most(tested.number(key, 0), count_copies(program)));
    else if (key == "max_artifact_bytes")
      verdicts.judge(key, artefact_problem(tested.number(key, 0), program));
    else if (key == "report_is_valid_json")
      verdicts.judge(key, json_problem(attempt.loaded->compiled.report));
    else
      verdicts.judge(key, attempt.steps.empty() ? "no run: " + attempt.failure_text()
                                                : overlap_problem(attempt.steps.back()));
  }
}

}  // namespace tessera::testing
