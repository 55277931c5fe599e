#pragma once

// The emit stage: kernels compiled, weights packed, one plan of the artefact built from a lowered
// program.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "artefact/read/program_image.h"
#include "artefact/write/writer.h"
#include "plan/lowered.h"
#include "plan/target.h"

namespace tessera::compiler {

// Appends plans to one image. Kernels and segments that plans have in common are stored once.
class Emitter {
 public:
  Emitter(artefact::ProgramImage& image, plan::Target& target)
      : image_(image), target_(target), segments_(image) {}

  // Errors: a backend that fails to compile what it offered (device, node).
  Status emit(const std::string& plan_name, const ir::Module& module, const ir::Method& method,
              const std::vector<plan::Lowered>& lowered, const SymbolBindings& point);

  // What a backend failed to compile, after emit() failed for that reason.
  [[nodiscard]] const std::optional<plan::Exclusion>& failed() const { return failed_; }

 private:
  Result<artefact::MethodImage> method_image(const ir::Module& module, const ir::Graph& graph,
                                             const plan::Lowered& lowered);
  Result<std::uint32_t> kernel_of(const ir::Graph& graph, const plan::LoweredStep& step);
  std::uint32_t add_kernel(const std::string& device, backends::CompiledKernel kernel);
  Result<artefact::BufferDecl> buffer_of(const ir::Graph& graph, const plan::LoweredBuffer& buffer);

  artefact::ProgramImage& image_;
  plan::Target& target_;
  artefact::SegmentPool segments_;
  std::map<std::string, std::uint32_t> kernel_numbers_;  // by a text that tells kernels apart
  std::optional<plan::Exclusion> failed_;
};

}  // namespace tessera::compiler
