#pragma once

// Runs what a backend offers: compiled, loaded, executed in the device's own memory, and compared
// with the reference kernels of the op table. For tests that link both halves of a backend.
//
//   const BackendGraph graph("input %x : fp32[1, 3, 4, 4] %y = Relu(%x) output %y");
//   const auto offers = compiler.offers(graph.item(), {}, {});
//   EXPECT_EQ(graph.run_error(compiler, runner, offers.candidates[0], 1e-5), "");

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/compile_interface.h"
#include "backends/run_interface.h"
#include "base/float_convert.h"
#include "base/layout.h"
#include "ir/infer.h"
#include "ir/text.h"
#include "ops/op_table.h"
#include "testing/random.h"

namespace tessera::testing {

// The module of these statements; the symbol "n" is 3 when it runs.
inline ir::Module module_of_statements(const std::string& statements) {
  auto module =
      ir::parse("tessera.ir 1 module \"test\" { symbol \"n\" in [1, 64] method \"main\" {\n" +
                statements + "\n} }");
  if (module) {
    const auto inferred = ir::infer(*module);
    if (inferred) return *std::move(module);
    ADD_FAILURE() << statements << ": " << inferred.error().to_string();
  } else {
    ADD_FAILURE() << statements << ": " << module.error().to_string();
  }
  ir::Module empty;
  empty.methods.emplace_back();
  return empty;
}

// Multiples of 1/8 in [-2, 2], exact in every float type from bf16 up; integers in [0, 3].
inline Tensor drawn_tensor(const ValueType& type, const Dims& dims, Random& random) {
  const bool real = is_float(type.dtype);
  Tensor wide = *Tensor::zeros(DType::kFp32, dims);
  for (std::int64_t i = 0; i < wide.numel(); ++i) {
    static_cast<float*>(wide.mutable_data())[i] =
        real ? static_cast<float>(random.integer(-16, 16)) / 8.0F
             : static_cast<float>(random.integer(0, type.dtype == DType::kBool ? 1 : 3));
  }
  Tensor tensor = *Tensor::zeros(type.dtype, dims);
  cast_elements(wide.view(), tensor.mutable_view(), true);
  return tensor;
}

// `tensor` in another dtype.
inline Tensor cast_to(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype) return tensor;
  Tensor result = *Tensor::zeros(dtype, tensor.dims());
  cast_elements(tensor.view(), result.mutable_view(), true);
  return result;
}

// What is wrong with `found`, in words; empty where nothing is. `tolerance` is relative to the
// largest finite element; what is no float must be equal.
inline std::string difference(const Tensor& found, const Tensor& expected, double tolerance) {
  if (found.dtype() != expected.dtype() || found.dims() != expected.dims())
    return "expected " + std::string(to_string(expected.dtype())) + to_string(expected.dims()) +
           ", found " + std::string(to_string(found.dtype())) + to_string(found.dims());
  if (!is_float(expected.dtype())) return expected.equals(found) ? "" : "elements differ";
  const Tensor a = cast_to(found, DType::kFp64);
  const Tensor b = cast_to(expected, DType::kFp64);
  double largest = 1e-30;
  for (const double value : b.span<double>()) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  for (std::size_t i = 0; i < b.span<double>().size(); ++i) {
    const double x = a.span<double>()[i];
    const double y = b.span<double>()[i];
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (!(std::abs(x - y) <= tolerance * largest))
      return "element " + std::to_string(i) + ": found " + std::to_string(x) + ", expected " +
             std::to_string(y);
  }
  return "";
}

// Memory of a device, released at the end.
class ScopedBuffer {
 public:
  ScopedBuffer(backends::RunDevice& device, std::int64_t size_bytes)
      : device_(device), buffer_(device.allocate(size_bytes).value()) {}
  ~ScopedBuffer() { device_.release(buffer_); }
  ScopedBuffer(const ScopedBuffer&) = delete;
  ScopedBuffer& operator=(const ScopedBuffer&) = delete;
  [[nodiscard]] std::byte* data() const { return buffer_.data; }
  [[nodiscard]] std::int64_t size_bytes() const { return buffer_.size_bytes; }

 private:
  backends::RunDevice& device_;
  backends::DeviceBuffer buffer_;
};

// Chunks in reverse on the calling thread: nothing may rely on their order.
class ReverseParallel final : public backends::Parallel {
 public:
  [[nodiscard]] int threads() const override { return 1; }
  void run(std::int64_t chunks, backends::FunctionRef<void(std::int64_t)> body) override {
    for (std::int64_t i = chunks - 1; i >= 0; --i) body(i);
  }
};

inline std::string describe(const backends::Candidate& candidate) {
  std::string text = candidate.kernel;
  const auto form = [](const backends::TensorForm& tensor) {
    return " " + tensor.layout.to_string() + "/" + std::string(to_string(tensor.dtype));
  };
  for (const auto& input : candidate.inputs) text += input ? form(*input) : " baked";
  text += " ->";
  for (const auto& output : candidate.outputs) text += form(output);
  return text;
}

// A graph under test with drawn inputs, and what the reference computes from them. All of its
// nodes are one item: a node alone, or a cover of `pattern`.
class BackendGraph {
 public:
  explicit BackendGraph(const std::string& statements, const std::string& pattern = "test")
      : module_(module_of_statements(statements)) {
    const ir::Graph& graph = module_.methods[0].graph;
    Random random(11);
    for (ir::ValueId id = 0; id < graph.value_count(); ++id) {
      const ir::Value& value = graph.value(id);
      if (value.kind == ir::ValueKind::kConstant) values_[id] = value.constant;
    }
    for (const ir::ValueId id : graph.inputs) {
      const ValueType& type = graph.value(id).type;
      values_[id] = drawn_tensor(type, evaluate(*type.shape, point()).value(), random);
    }
    for (const auto& node : graph.nodes()) run_reference(*node);
    if (graph.nodes().size() > 1) make_cover(pattern);
  }

  [[nodiscard]] const ir::Module& module() const { return module_; }
  [[nodiscard]] const ir::Graph& graph() const { return module_.methods[0].graph; }
  [[nodiscard]] static SymbolBindings point() { return {{"n", 3}}; }
  [[nodiscard]] ir::WorkItem item() const {
    return cover_ ? ir::work_item(module_, graph(), *cover_)
                  : ir::work_item(module_, graph(), *graph().nodes().at(0));
  }
  [[nodiscard]] backends::Offers offers(backends::CompileDevice& compiler,
                                        DType precision = DType::kFp32) const {
    backends::OfferOptions options;
    options.precisions = {precision};
    return compiler.offers(item(), point(), options);
  }

  // What goes wrong when the candidate is compiled, loaded and run; empty where its outputs are
  // those of the reference.
  [[nodiscard]] std::string run_error(backends::CompileDevice& compiler,
                                      backends::RunDevice& runner,
                                      const backends::Candidate& candidate, double tolerance,
                                      int threads = 1,
                                      std::optional<std::size_t> in_place = {}) const {
    const auto outputs = run(compiler, runner, candidate, threads, in_place);
    if (!outputs) return outputs.error().to_string();
    const ir::WorkItem work = item();
    for (std::size_t i = 0; i < work.outputs.size(); ++i) {
      const std::string problem = difference((*outputs)[i], values_.at(work.outputs[i]), tolerance);
      if (!problem.empty()) return "output " + std::to_string(i) + ": " + problem;
    }
    return "";
  }

  // The inputs of the item, by position, that its one output may overwrite: the op table allows it,
  // and the candidate reads and writes one form of one size.
  [[nodiscard]] std::vector<std::size_t> in_place_inputs(
      const backends::Candidate& candidate) const {
    const ir::WorkItem work = item();
    std::vector<std::size_t> result;
    if (work.cover != nullptr || work.outputs.size() != 1) return result;
    const ir::Node& node = *work.nodes.front();
    for (const std::uint8_t index : node.op->in_place_inputs) {
      if (index >= node.inputs.size()) continue;
      const auto input = std::find(work.inputs.begin(), work.inputs.end(), node.inputs[index]);
      if (input == work.inputs.end()) continue;
      const auto position = static_cast<std::size_t>(input - work.inputs.begin());
      if (candidate.inputs[position] == candidate.outputs[0] &&
          values_.at(*input).dims() == values_.at(work.outputs[0]).dims())
        result.push_back(position);
    }
    return result;
  }

  // The outputs, row-major and in the declared dtypes; `in_place`: written over that input.
  [[nodiscard]] Result<std::vector<Tensor>> run(backends::CompileDevice& compiler,
                                                backends::RunDevice& runner,
                                                const backends::Candidate& candidate, int threads,
                                                std::optional<std::size_t> in_place = {}) const {
    const ir::WorkItem work = item();
    TESSERA_ASSIGN(const auto compiled, compiler.compile(work, candidate));
    std::vector<std::span<const std::byte>> constants;
    for (const Tensor& tensor : compiled.constants)
      constants.emplace_back(static_cast<const std::byte*>(tensor.data()),
                             static_cast<std::size_t>(tensor.nbytes()));
    TESSERA_ASSIGN(const auto kernel, runner.load(compiled.spec, constants));
    backends::InstanceDims dims;
    std::vector<std::unique_ptr<ScopedBuffer>> buffers;
    std::vector<const std::byte*> inputs;
    std::vector<std::byte*> outputs;
    std::vector<std::size_t> written;  // the buffer of each output
    for (std::size_t i = 0; i < work.inputs.size(); ++i) {
      if (!candidate.inputs[i]) continue;
      if (in_place == i) written.push_back(buffers.size());
      const Tensor& value = values_.at(work.inputs[i]);
      dims.inputs.push_back(value.dims());
      TESSERA_ASSIGN(auto buffer, upload(runner, value, *candidate.inputs[i]));
      inputs.push_back(buffer->data());
      buffers.push_back(std::move(buffer));
    }
    for (std::size_t i = 0; i < work.outputs.size(); ++i) {
      const Dims& output_dims = values_.at(work.outputs[i]).dims();
      dims.outputs.push_back(output_dims);
      const auto& form = candidate.outputs[i];
      if (!in_place) {
        written.push_back(buffers.size());
        buffers.push_back(std::make_unique<ScopedBuffer>(
            runner, layout_nbytes(form.layout, form.dtype, output_dims)));
      }
      outputs.push_back(buffers[written[i]]->data());
    }
    TESSERA_ASSIGN(const auto instance, kernel->instantiate(dims, threads));
    const ScopedBuffer scratch(runner, instance->scratch_bytes());
    ReverseParallel parallel;
    TESSERA_TRY(instance->execute({inputs, outputs, scratch.data(), &parallel}));
    std::vector<Tensor> results;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      TESSERA_ASSIGN(Tensor result,
                     download(runner, *buffers[written[i]], candidate.outputs[i], dims.outputs[i]));
      results.push_back(cast_to(result, values_.at(work.outputs[i]).dtype()));
    }
    return results;
  }

 private:
  static Result<std::unique_ptr<ScopedBuffer>> upload(backends::RunDevice& runner,
                                                      const Tensor& value,
                                                      const backends::TensorForm& form) {
    const Tensor cast = cast_to(value, form.dtype);
    std::vector<std::byte> bytes(
        static_cast<std::size_t>(layout_nbytes(form.layout, form.dtype, cast.dims())));
    convert_layout({}, cast.data(), form.layout, bytes.data(), form.dtype, cast.dims());
    auto buffer = std::make_unique<ScopedBuffer>(runner, static_cast<std::int64_t>(bytes.size()));
    TESSERA_TRY(runner.copy_from_host(buffer->data(), bytes.data(), buffer->size_bytes()));
    return buffer;
  }

  static Result<Tensor> download(backends::RunDevice& runner, const ScopedBuffer& buffer,
                                 const backends::TensorForm& form, const Dims& dims) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(buffer.size_bytes()));
    TESSERA_TRY(runner.copy_to_host(bytes.data(), buffer.data(), buffer.size_bytes()));
    TESSERA_ASSIGN(Tensor tensor, Tensor::zeros(form.dtype, dims));
    convert_layout(form.layout, bytes.data(), {}, tensor.mutable_data(), form.dtype, dims);
    return tensor;
  }

  void run_reference(const ir::Node& node) {
    std::vector<Tensor> operands;
    for (const ir::ValueId id : node.inputs)
      operands.push_back(id == ir::kNoValue ? Tensor() : values_.at(id));
    auto results = ops::run_reference(*node.op, node.attributes, operands, node.outputs.size());
    if (!results) {
      ADD_FAILURE() << node.name << ": " << results.error().to_string();
      return;
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != ir::kNoValue) values_[node.outputs[i]] = (*results)[i];
    }
  }

  void make_cover(const std::string& pattern) {
    cover_ = std::make_unique<ir::Cover>();
    cover_->pattern = pattern;
    for (const auto& node : graph().nodes()) {
      cover_->nodes.push_back(node->id);
      for (const ir::ValueId id : node->inputs) {
        if (id == ir::kNoValue || graph().value(id).kind == ir::ValueKind::kNodeOutput) continue;
        if (std::find(cover_->inputs.begin(), cover_->inputs.end(), id) == cover_->inputs.end())
          cover_->inputs.push_back(id);
      }
    }
    cover_->outputs = graph().outputs;
  }

  ir::Module module_;
  std::unique_ptr<ir::Cover> cover_;
  std::map<ir::ValueId, Tensor> values_;
};

}  // namespace tessera::testing
