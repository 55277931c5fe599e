#include "runtime/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace tessera::runtime {
namespace {

// The position of `name` in a method's inputs or outputs; the error lists those that exist.
Result<std::size_t> find_interface(const std::vector<artefact::InterfaceDecl>& decls,
                                   std::string_view name, std::string_view kind) {
  for (std::size_t i = 0; i < decls.size(); ++i)
    if (decls[i].name == name) return i;
  std::string known;
  for (const auto& decl : decls) known += (known.empty() ? "'" : ", '") + decl.name + "'";
  return fail(ErrorCode::kNotFound,
              fmt::format("no {} '{}': expected one of {}", kind, name, known));
}

Status check_dims(std::string_view name, const ValueType& type, std::span<const std::int64_t> dims,
                  const void* data) {
  if (type.shape && dims.size() != type.shape->size())
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("input '{}': expected rank {} {}, found rank {} [{}]", name, type.shape->size(),
                    to_string(*type.shape), dims.size(), fmt::join(dims, ", ")));
  if (const auto negative = std::ranges::find_if(dims, [](std::int64_t size) { return size < 0; });
      negative != dims.end())
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("input '{}': dimension {}: expected at least 0, found {}", name,
                            negative - dims.begin(), *negative));
  if (data == nullptr && std::ranges::find(dims, 0) == dims.end())
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("input '{}': expected data for [{}], found a null pointer", name,
                            fmt::join(dims, ", ")));
  return {};
}

}  // namespace

Result<std::unique_ptr<Executor>> Executor::create(std::shared_ptr<const LoadedProgram> program,
                                                   const ExecutorOptions& options) {
  if (options.threads < 1)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("threads: expected at least 1, found {}", options.threads));
  std::unique_ptr<Executor> executor(new Executor(std::move(program), options));
  executor->bound_outputs_.resize(executor->method().outputs.size());
  if (options.trace) executor->shared_.trace.events.reserve(executor->method().instructions.size());
  TESSERA_ASSIGN(executor->root_, Frame::create(executor->shared_, 0));
  return executor;
}

Status Executor::bind_input(std::string_view name, DType dtype, std::span<const std::int64_t> dims,
                            const void* data) {
  TESSERA_ASSIGN(const std::size_t index, find_interface(method().inputs, name, "input"));
  const ValueType& type = method().inputs[index].type;
  if (!type.is_tensor())
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("input '{}': expected {}, found a tensor", name, type.to_string()));
  if (dtype != type.dtype)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("input '{}': expected element type {}, found {}", name,
                            to_string(type.dtype), to_string(dtype)));
  TESSERA_TRY(check_dims(name, type, dims, data));
  root_->bind_input(index, dims, static_cast<const std::byte*>(data));
  return {};
}

Status Executor::bind_value(std::string_view name, RunValue value) {
  TESSERA_ASSIGN(const std::size_t index, find_interface(method().inputs, name, "input"));
  if (const auto reason = type_mismatch(method().inputs[index].type, value); !reason.empty())
    return fail(ErrorCode::kInvalidArgument, fmt::format("input '{}': {}", name, reason));
  root_->bind_input(index, std::move(value));
  return {};
}

Status Executor::bind_output(std::string_view name, void* data, std::int64_t size_bytes) {
  TESSERA_ASSIGN(const std::size_t index, find_interface(method().outputs, name, "output"));
  bound_outputs_[index] = {static_cast<std::byte*>(data), size_bytes};
  root_->bind_output(index, static_cast<std::byte*>(data), size_bytes);
  return {};
}

// Outputs whose size only the run decided go to the caller's memory now.
Status Executor::copy_loose_outputs() {
  for (std::size_t i = 0; i < bound_outputs_.size(); ++i) {
    const auto& decl = method().outputs[i];
    if (bound_outputs_[i].data == nullptr || !root_->is_loose(decl.buffer)) continue;
    const RunValue& value = root_->value_of(decl.buffer);
    if (!value.is_tensor() || value.tensor.dtype() == DType::kString)
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("output '{}': {} cannot be written to memory of the caller",
                              decl.name, decl.type.to_string()));
    const std::int64_t needed = value.tensor.nbytes();
    if (bound_outputs_[i].size_bytes < needed)
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("output '{}': expected room for {} bytes ({}[{}]), found {}",
                              decl.name, needed, to_string(value.tensor.dtype()),
                              fmt::join(value.tensor.dims(), ", "), bound_outputs_[i].size_bytes));
    std::memcpy(bound_outputs_[i].data, value.tensor.data(), static_cast<std::size_t>(needed));
  }
  return {};
}

Status Executor::check_bound() const {
  for (std::size_t i = 0; i < method().inputs.size(); ++i)
    if (!root_->is_bound(i))
      return fail(ErrorCode::kFailedPrecondition,
                  fmt::format("input '{}' is not bound", method().inputs[i].name));
  return {};
}

Status Executor::prepare() {
  TESSERA_TRY(check_bound());
  return root_->make_ready(nullptr);
}

Status Executor::run() {
  TESSERA_TRY(check_bound());
  has_run_ = false;
  const ThreadPool::RunScope scope(shared_.pool);
  shared_.trace.events.clear();
  shared_.start_ns = now_ns();
  TESSERA_TRY(root_->run(nullptr));
  TESSERA_TRY(copy_loose_outputs());
  shared_.trace.total_ns = now_ns() - shared_.start_ns;
  has_run_ = true;
  return {};
}

Result<std::uint32_t> Executor::output_buffer(std::string_view name) const {
  TESSERA_ASSIGN(const std::size_t index, find_interface(method().outputs, name, "output"));
  if (!has_run_)
    return fail(ErrorCode::kFailedPrecondition,
                fmt::format("output '{}': the session has not run", name));
  return method().outputs[index].buffer;
}

Result<const Dims*> Executor::output_dims(std::string_view name) const {
  TESSERA_ASSIGN(const std::uint32_t buffer, output_buffer(name));
  return &root_->dims_of(buffer);
}

Result<TensorView> Executor::output(std::string_view name) const {
  TESSERA_ASSIGN(const std::uint32_t buffer, output_buffer(name));
  if (root_->is_loose(buffer) && !root_->value_of(buffer).is_tensor())
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("output '{}': expected a tensor, found {}", name,
                            kind_text(root_->value_of(buffer).kind)));
  return TensorView{method().buffers[buffer].tensor.dtype, root_->dims_of(buffer),
                    root_->data_of(buffer)};
}

Result<RunValue> Executor::output_value(std::string_view name) const {
  TESSERA_ASSIGN(const std::uint32_t buffer, output_buffer(name));
  if (root_->is_loose(buffer)) return root_->value_of(buffer);
  return RunValue::of(Tensor::borrow(method().buffers[buffer].tensor.dtype, root_->dims_of(buffer),
                                     root_->data_of(buffer), nullptr));
}

}  // namespace tessera::runtime
