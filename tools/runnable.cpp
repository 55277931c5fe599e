#include "runnable.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>

#include "artefact/read/file_format.h"
#include "artefact/read/reader.h"
#include "backends/registry_run/registry_run.h"
#include "base/file.h"
#include "compiler/compile.h"
#include "compiler/drawn.h"
#include "io/npy.h"
#include "io/tensor_proto.h"

namespace tessera::tools {
namespace {

Result<bool> is_artefact(const std::string& path) {
  TESSERA_ASSIGN(const auto file, MappedFile::open(path));
  const auto bytes = file->bytes();
  return bytes.size() >= artefact::kMagic.size() &&
         std::memcmp(bytes.data(), artefact::kMagic.data(), artefact::kMagic.size()) == 0;
}

// A drawn tensor at the point that the plan was priced at: floats and the parts of complex numbers
// in [-1, 1], integers in [0, 7], booleans either.
Result<Tensor> draw(const artefact::InterfaceDecl& input, const SymbolBindings& point,
                    std::mt19937_64& random) {
  if (!input.type.is_tensor() || !input.type.shape)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("input '{}': {} cannot be drawn: give it with --inputs", input.name,
                            input.type.to_string()));
  TESSERA_ASSIGN(const Dims dims, evaluate(*input.type.shape, point));
  const DType dtype = input.type.dtype;
  const bool real = is_float(dtype) || is_complex(dtype);
  const std::uint64_t steps = real ? 2000 : dtype == DType::kBool ? 1 : 7;
  return compiler::tensor_of(dtype, dims, [&] {
    const auto drawn = static_cast<float>(random() % (steps + 1));
    return real ? drawn / 1000.0F - 1.0F : drawn;
  });
}

// A file of ONNX's messages does not say what type of value it holds: the program does.
ValueType type_of(const artefact::MethodImage& method, const std::string& name) {
  const auto found =
      std::ranges::find_if(method.inputs, [&](const auto& decl) { return decl.name == name; });
  return found == method.inputs.end() ? ValueType() : found->type;
}

Status read_input_file(const artefact::MethodImage& method, const std::string& word,
                       NamedValues& inputs) {
  const auto at = word.rfind('=');
  if (at == std::string::npos) {
    TESSERA_ASSIGN(auto tensors, io::read_npz(word));
    for (auto& [name, tensor] : tensors) inputs.emplace_back(name, RunValue::of(std::move(tensor)));
    return {};
  }
  const std::string name = word.substr(0, at);
  const std::string path = word.substr(at + 1);
  if (path.ends_with(".pb")) {
    TESSERA_ASSIGN(RunValue value, io::read_value_pb(path, type_of(method, name)));
    inputs.emplace_back(name, std::move(value));
    return {};
  }
  TESSERA_ASSIGN(Tensor tensor, io::read_npy(path));
  inputs.emplace_back(name, RunValue::of(std::move(tensor)));
  return {};
}

}  // namespace

Result<Runnable> open_runnable(const std::string& path, const CompileFlags& flags,
                               const std::string& plan) {
  const auto start = std::chrono::steady_clock::now();
  Runnable runnable;
  artefact::ProgramImage image;
  TESSERA_ASSIGN(const bool compiled_before, is_artefact(path));
  if (compiled_before) {
    TESSERA_ASSIGN(image, artefact::read_program(path));
    TESSERA_ASSIGN(runnable.report, report::from_json(image.evidence));
  } else {
    TESSERA_ASSIGN(const auto options, to_options(flags));
    TESSERA_ASSIGN(auto compiled, compiler::compile(path, options));
    image = std::move(compiled.image);
    runnable.report = std::move(compiled.report);
    runnable.from_model = true;
  }
  TESSERA_ASSIGN(runnable.program, runtime::LoadedProgram::create(std::move(image), plan,
                                                                  &backends::make_run_device));
  runnable.load_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return runnable;
}

Result<NamedValues> gather_inputs(const artefact::MethodImage& method, const InputFlags& flags) {
  NamedValues inputs;
  for (const std::string& word : flags.files) TESSERA_TRY(read_input_file(method, word, inputs));
  for (const auto& entry : inputs) {
    const std::string& name = entry.first;
    if (std::ranges::none_of(method.inputs, [&](const auto& decl) { return decl.name == name; })) {
      std::string known;
      for (const auto& decl : method.inputs)
        known += (known.empty() ? "'" : ", '") + decl.name + "'";
      return fail(ErrorCode::kNotFound,
                  fmt::format("no input '{}': expected one of {}", name, known));
    }
  }
  std::mt19937_64 random(flags.seed);
  for (const auto& decl : method.inputs) {
    if (std::ranges::any_of(inputs, [&](const auto& entry) { return entry.first == decl.name; }))
      continue;
    if (!flags.random)
      return fail(
          ErrorCode::kFailedPrecondition,
          fmt::format("input '{}' is missing: give it with --inputs, or draw it with --random",
                      decl.name));
    TESSERA_ASSIGN(Tensor drawn, draw(decl, method.priced_at, random));
    inputs.emplace_back(decl.name, RunValue::of(std::move(drawn)));
  }
  return inputs;
}

Status bind_inputs(runtime::Executor& executor, const NamedValues& inputs) {
  for (const auto& [name, value] : inputs) {
    if (value.is_tensor())
      TESSERA_TRY(executor.bind_input(name, value.tensor.dtype(), value.tensor.dims(),
                                      value.tensor.data()));
    else
      TESSERA_TRY(executor.bind_value(name, value));
  }
  return {};
}

Result<NamedValues> copy_outputs(const runtime::Executor& executor) {
  NamedValues outputs;
  for (const auto& decl : executor.program().method().outputs) {
    TESSERA_ASSIGN(RunValue value, executor.output_value(decl.name));
    if (value.is_tensor()) value.tensor = Tensor::copy_of(value.tensor.view());
    outputs.emplace_back(decl.name, std::move(value));
  }
  return outputs;
}

}  // namespace tessera::tools
