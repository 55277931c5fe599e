// The installed interface (include/tessera/program.h, session.h) over the runtime's own classes.

#include <utility>

#include "artefact/read/reader.h"
#include "backends/registry_run/registry_run.h"
#include "base/error.h"
#include "runtime/executor.h"
#include "runtime/loaded_program.h"
#include "tessera/program.h"
#include "tessera/session.h"

namespace tessera {
namespace {

std::vector<TensorInfo> describe(const std::vector<artefact::InterfaceDecl>& decls) {
  std::vector<TensorInfo> infos;
  for (const auto& decl : decls) {
    TensorInfo info{decl.name, decl.type.dtype, {}, {}};
    for (const Dim& size : decl.type.shape.value_or(Shape())) {
      info.dims.push_back(size.constant().value_or(-1));
      info.dim_names.push_back(size.to_string());
    }
    infos.push_back(std::move(info));
  }
  return infos;
}

}  // namespace

Result<Program> Program::load(const std::string& path, const LoadOptions& options) {
  TESSERA_ASSIGN(auto image,
                 artefact::read_program(path, {.verify_segments = options.verify_segments}));
  auto loaded =
      runtime::LoadedProgram::create(std::move(image), options.plan, &backends::make_run_device);
  if (!loaded) return tl::unexpected(in_context(std::move(loaded).error(), path));
  return Program(*std::move(loaded));
}

std::vector<TensorInfo> Program::inputs() const {
  return describe(loaded_->method().inputs);
}
std::vector<TensorInfo> Program::outputs() const {
  return describe(loaded_->method().outputs);
}
const std::map<std::string, std::string>& Program::manifest() const {
  return loaded_->image().manifest;
}

Session::Session(std::unique_ptr<runtime::Executor> executor) : executor_(std::move(executor)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Session> Session::create(const Program& program, const SessionOptions& options) {
  TESSERA_ASSIGN(auto executor,
                 runtime::Executor::create(program.loaded(),
                                           {.threads = options.threads, .trace = options.trace}));
  return Session(std::move(executor));
}

Status Session::bind_input(std::string_view name, DType dtype, std::span<const std::int64_t> dims,
                           const void* data) {
  return executor_->bind_input(name, dtype, dims, data);
}

Status Session::bind_output(std::string_view name, void* data, std::size_t size_bytes) {
  return executor_->bind_output(name, data, static_cast<std::int64_t>(size_bytes));
}

Status Session::prepare() {
  return executor_->prepare();
}

Status Session::run() {
  return executor_->run();
}

Result<TensorRef> Session::output(std::string_view name) const {
  TESSERA_ASSIGN(const TensorView view, executor_->output(name));
  // The dims live in the session's shape plan, as long as the data.
  TESSERA_ASSIGN(const Dims* dims, executor_->output_dims(name));
  return TensorRef{view.dtype, *dims, view.data, static_cast<std::size_t>(view.nbytes())};
}

}  // namespace tessera
