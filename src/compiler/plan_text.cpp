#include "compiler/plan_text.h"

#include <fmt/format.h>

#include <string_view>

namespace tessera::compiler {
namespace {

using artefact::Opcode;

std::string_view name_of(Opcode opcode) {
  switch (opcode) {
    case Opcode::kCall: return "call";
    case Opcode::kConvert: return "convert";
    case Opcode::kTransfer: return "transfer";
    case Opcode::kWait: return "wait";
    case Opcode::kBranch: return "branch";
    case Opcode::kLoop: return "loop";
    case Opcode::kEvaluateShape: return "evaluate_shape";
    case Opcode::kAllocate: return "allocate";
    case Opcode::kWriteBack: return "write_back";
  }
  return "?";
}

std::string form_text(const backends::TensorForm& form) {
  return form.layout.to_string() + "/" + std::string(to_string(form.dtype));
}

std::string item_name(const plan::ItemOptions& entry) {
  std::string text;
  for (const ir::Node* node : entry.item.nodes)
    text += (text.empty() ? "" : " + ") + node->name + ":" + node->op->qualified_name();
  return text;
}

}  // namespace

std::string option_text(const plan::Option& option, const plan::Target& target, bool prices) {
  std::string text =
      fmt::format("{} {} (", target.info(option.device).name, option.candidate.kernel);
  for (const auto& form : option.candidate.inputs)
    text += (form ? form_text(*form) : std::string("baked")) + " ";
  text += "->";
  for (const auto& form : option.candidate.outputs) text += " " + form_text(form);
  text += ")";
  if (prices)
    text += fmt::format(" {:.2f} us {}", option.price.us,
                        option.price.measured ? "measured" : "estimated");
  return text;
}

std::string covers_text(const ir::Graph& graph, const std::vector<ir::Cover>& covers) {
  std::string text;
  for (const ir::Cover& cover : covers) {
    text += fmt::format("cover {} {}:", cover.id, cover.pattern);
    for (const ir::NodeId id : cover.nodes)
      text += fmt::format(" {}:{}", graph.find_node(id)->name,
                          graph.find_node(id)->op->qualified_name());
    text += "\n";
  }
  return text;
}

std::string choices_text(const plan::Choices& choices, const plan::Target& target, bool prices) {
  std::string text;
  const auto add = [&](std::string_view kind, const plan::ItemOptions& entry) {
    text += fmt::format("{} {}\n", kind, item_name(entry));
    for (const plan::Option& option : entry.options)
      text += "    " + option_text(option, target, prices) + "\n";
    for (const auto& [device, reason] : entry.refusals)
      text += fmt::format("    {} refuses: {}\n", target.info(device).name, reason);
  };
  for (const auto& entry : choices.nodes) add("node", entry);
  for (const auto& entry : choices.cover_options) add("cover", entry);
  return text;
}

namespace {

// Names the body that follows; the graph itself needs no name.
std::string body_title(const ir::Graph& graph, const std::vector<plan::Lowered>& lowered,
                       std::size_t number) {
  if (number == 0) return {};
  const ir::Block& block = graph.blocks[lowered[number].block];
  return fmt::format("body {} '{}/{}', expected {:.6g} times\n", number,
                     graph.find_node(block.owner)->name, block.name, block.weight);
}

std::string steps_text(const ir::Graph& graph, const plan::Lowered& lowered,
                       const plan::Target& target) {
  std::string text;
  const auto operand = [&](std::uint32_t buffer) {
    const auto& entry = lowered.buffers[buffer];
    return fmt::format(" %{}:{}[{}]", buffer, graph.value(entry.value).name,
                       plan::to_string(entry.form, target));
  };
  for (const auto& step : lowered.steps) {
    const std::string kernel =
        step.option != nullptr ? step.option->candidate.kernel : step.conversion.candidate.kernel;
    text += fmt::format("{} {} {} '{}':", name_of(step.opcode), target.info(step.device).name,
                        kernel, step.label);
    for (const std::uint32_t buffer : step.inputs) text += operand(buffer);
    text += " ->";
    for (const std::uint32_t buffer : step.outputs) text += operand(buffer);
    for (const std::uint32_t body : step.bodies) text += fmt::format(" body {}", body);
    if (step.region != UINT32_MAX) text += fmt::format(" region {}", step.region);
    text += fmt::format(" {:.2f} us\n", step.price_us);
  }
  return text;
}

std::string arenas_text(const ir::Graph& graph, const plan::Lowered& lowered,
                        const plan::Target& target) {
  std::string text;
  for (const auto& figures : lowered.memory) {
    text += fmt::format(
        "# {}: arena {} bytes, peak live {} bytes, weights {} bytes\nid,lower,upper,size,offset\n",
        target.memories[figures.memory], figures.arena_bytes, figures.peak_live_bytes,
        figures.weights_bytes);
    for (std::uint32_t i = 0; i < lowered.buffers.size(); ++i) {
      const auto& buffer = lowered.buffers[i];
      if (buffer.form.memory != figures.memory || buffer.kind != artefact::BufferKind::kTemporary)
        continue;
      const auto& name = graph.value(buffer.value).name;
      if (buffer.is_dynamic)
        text += fmt::format("# {} '{}' is allocated when it is made\n", i, name);
      else if (buffer.alias_of != UINT32_MAX)
        text += fmt::format("# {} '{}' shares the storage of {}\n", i, name, buffer.alias_of);
      else
        text += fmt::format("{},{},{},{},{}\n", i, buffer.lower, buffer.upper, buffer.size_bytes,
                            buffer.offset_bytes);
    }
  }
  return text;
}

}  // namespace

std::string lowered_text(const ir::Graph& graph, const std::vector<plan::Lowered>& lowered,
                         const plan::Target& target) {
  std::string text;
  for (std::size_t i = 0; i < lowered.size(); ++i)
    text += body_title(graph, lowered, i) + steps_text(graph, lowered[i], target);
  return text;
}

std::string memory_text(const ir::Graph& graph, const std::vector<plan::Lowered>& lowered,
                        const plan::Target& target) {
  std::string text;
  for (std::size_t i = 0; i < lowered.size(); ++i)
    text += (i == 0 ? "" : "# " + body_title(graph, lowered, i)) +
            arenas_text(graph, lowered[i], target);
  return text;
}

}  // namespace tessera::compiler
