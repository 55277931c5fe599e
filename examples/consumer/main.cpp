// Loads a compiled model, feeds every input with a ramp, runs it, and prints what came out:
// consumer FILE.tsr

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "tessera/program.h"
#include "tessera/session.h"

namespace {

int report(const tessera::Error& error) {
  std::fprintf(stderr, "consumer: %s\n", error.to_string().c_str());
  return 1;
}

// The sizes of an input, 1 wherever they may vary.
std::vector<std::int64_t> fixed_dims(const tessera::TensorInfo& info) {
  std::vector<std::int64_t> dims = info.dims;
  for (std::int64_t& dim : dims) dim = dim < 0 ? 1 : dim;
  return dims;
}

// -1, 0, 1, -1, 0, 1, ... as floats.
std::vector<float> ramp(const std::vector<std::int64_t>& dims) {
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) count *= dim;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 3) - 1;
  return values;
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) {
    std::fprintf(stderr, "usage: consumer FILE.tsr\n");
    return 2;
  }
  auto program = tessera::Program::load(words[1]);
  if (!program) return report(program.error());
  auto session = tessera::Session::create(*program);
  if (!session) return report(session.error());

  // Bound memory is read where it lies, so it must live until the run is over.
  std::vector<std::vector<float>> buffers;
  for (const tessera::TensorInfo& input : program->inputs()) {
    const std::vector<std::int64_t> dims = fixed_dims(input);
    buffers.push_back(ramp(dims));
    const auto bound =
        session->bind_input(input.name, tessera::DType::kFp32, dims, buffers.back().data());
    if (!bound) return report(bound.error());
  }
  if (const auto done = session->run(); !done) return report(done.error());

  for (const tessera::TensorInfo& info : program->outputs()) {
    const auto output = session->output(info.name);
    if (!output) return report(output.error());
    std::printf("%s:", info.name.c_str());
    const auto* values = static_cast<const float*>(output->data);
    for (std::size_t i = 0; i < output->size_bytes / sizeof(float) && i < 6; ++i)
      std::printf(" %g", values[i]);
    std::printf("\n");
  }
  return 0;
}
