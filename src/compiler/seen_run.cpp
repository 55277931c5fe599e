#include "compiler/seen_run.h"

#include <fmt/format.h>

namespace tessera::compiler {
namespace {

// Of operands that are kept; what comes later is left out.
constexpr std::int64_t kMaxOperandBytes = std::int64_t{256} << 20;

using Place = std::pair<std::uint32_t, std::uint32_t>;

std::int64_t bytes_of(const RunValue& value) {
  if (value.is_tensor()) return value.tensor.is_defined() ? value.tensor.nbytes() : 0;
  std::int64_t sum = 0;
  for (const RunValue& element : value.elements) sum += bytes_of(element);
  return sum;
}

// A tensor of its own; what lies in sequences has its own storage already.
RunValue copy_of(RunValue value) {
  if (value.is_tensor() && value.tensor.is_defined())
    value.tensor = Tensor::copy_of(value.tensor.view());
  return value;
}

class Look final : public runtime::Watcher {
 public:
  Look(const runtime::LoadedProgram& program, const SeeOptions& options)
      : program_(program), options_(options) {}

  void look() {  // from now on; so far it counted
    is_looking_ = true;
    executed_ = 0;
  }
  SeenRun take() { return std::move(seen_); }

  [[nodiscard]] bool wants_all_bodies() const override { return options_.all_bodies; }

  Status before(const runtime::Frame& frame, std::size_t instruction) override {
    if (options_.cancel.stop_requested()) return fail(ErrorCode::kCancelled, "stopped");
    if (++executed_ > options_.max_instructions)
      return fail(ErrorCode::kResourceExhausted,
                  fmt::format("more than {} instructions", options_.max_instructions));
    const Place place = place_of(frame, instruction);
    if (!is_looking_) {
      ++counts_[place];
      return {};
    }
    if (looked_at_[place]++ != counts_[place] / 2) return {};
    const auto& decl = frame.method().instructions[instruction];
    SeenCall& call = seen_.calls[place];
    for (const std::uint32_t buffer : decl.inputs) {
      call.dims.inputs.push_back(frame.dims_of(buffer));
      note(frame, buffer);
    }
    if (is_late(decl)) keep_operands(frame, decl, call);
    return {};
  }

  void after(const runtime::Frame& frame, std::size_t instruction) override {
    const Place place = place_of(frame, instruction);
    // A body may hold this very instruction of its own frame; only the call that was looked at
    // before counts.
    const auto call = seen_.calls.find(place);
    if (call == seen_.calls.end() || looked_at_[place] != counts_[place] / 2 + 1) return;
    call->second.dims.outputs.clear();
    for (const std::uint32_t buffer : frame.method().instructions[instruction].outputs) {
      call->second.dims.outputs.push_back(frame.dims_of(buffer));
      note(frame, buffer);
    }
  }

 private:
  [[nodiscard]] Place place_of(const runtime::Frame& frame, std::size_t instruction) const {
    return {static_cast<std::uint32_t>(&frame.method() - program_.plan().methods.data()),
            static_cast<std::uint32_t>(instruction)};
  }
  [[nodiscard]] bool is_late(const artefact::Instruction& instruction) const {
    if (instruction.kernel == UINT32_MAX) return false;
    const auto& options = program_.image().kernels[instruction.kernel].options;
    const auto late = options.find("late");
    return late != options.end() && late->second != 0;
  }
  void keep_operands(const runtime::Frame& frame, const artefact::Instruction& decl,
                     SeenCall& call) {
    for (const std::uint32_t buffer : decl.inputs) {
      RunValue value = frame.borrow(buffer);
      kept_bytes_ += bytes_of(value);
      if (kept_bytes_ > kMaxOperandBytes) return call.operands.clear();
      call.operands.push_back(copy_of(std::move(value)));
    }
  }
  void note(const runtime::Frame& frame, std::uint32_t buffer) {
    if (frame.is_loose(buffer) && !frame.value_of(buffer).is_tensor()) return;
    const auto& decl = frame.method().buffers[buffer];
    const Dims& dims = frame.dims_of(buffer);
    seen_.dims.emplace(decl.value, dims);
    if (decl.tensor.shape.size() != dims.size()) return;  // of unknown rank
    for (std::size_t d = 0; d < dims.size(); ++d)
      if (const auto symbol = decl.tensor.shape[d].as_symbol())
        seen_.symbols.emplace(*symbol, dims[d]);
  }

  const runtime::LoadedProgram& program_;
  const SeeOptions& options_;
  bool is_looking_ = false;
  std::size_t executed_ = 0;
  std::int64_t kept_bytes_ = 0;
  std::map<Place, std::size_t> counts_;     // of the first run
  std::map<Place, std::size_t> looked_at_;  // of the second one, so far
  SeenRun seen_;
};

}  // namespace

Result<SeenRun> see_run(const std::shared_ptr<const runtime::LoadedProgram>& program,
                        const std::vector<Tensor>& inputs, const SeeOptions& options) {
  Look look(*program, options);
  TESSERA_ASSIGN(const auto executor,
                 runtime::Executor::create(program, {options.threads, false, &look}));
  const auto& decls = program->method().inputs;
  TESSERA_CHECK(inputs.size() == decls.size());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    TESSERA_TRY(
        executor->bind_input(decls[i].name, inputs[i].dtype(), inputs[i].dims(), inputs[i].data()));
  (void)executor->run();  // fails where the second one does
  look.look();
  const auto status = executor->run();
  SeenRun seen = look.take();
  if (!status) seen.ended = status.error();
  return seen;
}

}  // namespace tessera::compiler
