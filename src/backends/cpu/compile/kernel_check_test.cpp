#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <thread>

#include "backends/cpu/compile/cpu_device.h"
#include "backends/cpu/compile/kernel_check.h"
#include "backends/cpu/run/cpu_run_device.h"
#include "ir/infer.h"
#include "ops/op_table.h"
#include "testing/random.h"

namespace tessera::backends::cpu {
namespace {

bool is_64_byte_padded(const Layout& layout) {
  return !layout.blocks.empty();
}

std::string text_of(const Candidate& candidate) {
  std::string text = candidate.kernel;
  for (const auto& input : candidate.inputs)
    text += input ? " " + input->layout.to_string() : " baked";
  text += " ->";
  for (const auto& output : candidate.outputs) text += " " + output.layout.to_string();
  for (const auto& [name, value] : candidate.options) text += fmt::format(" {}={}", name, value);
  return text;
}

// Bytes in 64-byte aligned memory, with what stood there before the kernel ran.
struct Buffer {
  std::vector<std::byte> storage;
  std::byte* data = nullptr;
  explicit Buffer(std::int64_t bytes, std::byte fill)
      : storage(static_cast<std::size_t>(bytes) + 128, fill) {
    const auto address = reinterpret_cast<std::uintptr_t>(storage.data());
    data = storage.data() + (64 - address % 64) % 64;
  }
};

double element(const TensorView& view, std::int64_t i) {
  switch (view.dtype) {
    case DType::kFp32: return static_cast<double>(view.as<float>()[i]);
    case DType::kFp64: return view.as<double>()[i];
    case DType::kInt64: return static_cast<double>(view.as<std::int64_t>()[i]);
    case DType::kInt32: return view.as<std::int32_t>()[i];
    case DType::kInt8: return view.as<std::int8_t>()[i];
    default: return view.as<std::uint8_t>()[i];
  }
}

void expect_close(const TensorView& found, const TensorView& expected, double tolerance) {
  ASSERT_EQ(to_string(found.dims), to_string(expected.dims));
  double largest = 1e-30;
  for (std::int64_t i = 0; i < expected.numel(); ++i) {
    if (std::isfinite(element(expected, i)))
      largest = std::max(largest, std::abs(element(expected, i)));
  }
  for (std::int64_t i = 0; i < expected.numel(); ++i) {
    const double a = element(found, i);
    const double b = element(expected, i);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a == b) continue;
    ASSERT_LE(std::abs(a - b), tolerance * largest)
        << "element " << i << ": found " << a << ", expected " << b;
  }
}

}  // namespace

void TestParallel::run(std::int64_t chunks, FunctionRef<void(std::int64_t)> body) {
  std::vector<std::thread> workers;
  for (int t = 0; t < threads_; ++t) {
    workers.emplace_back([&, t] {
      for (std::int64_t i = chunks - 1 - t; i >= 0; i -= threads_) body(i);
    });
  }
  for (auto& worker : workers) worker.join();
}

ops::Attributes attributes(std::vector<std::pair<std::string, ops::AttributeValue>> entries) {
  ops::Attributes result;
  for (auto& [name, value] : entries) result.set(name, std::move(value));
  return result;
}

Bench::Bench() : compiler_(make_cpu_device()), runner_(make_cpu_run_device()) {
  module_.methods.emplace_back();
  module_.source_nodes.push_back({"n", "test"});
}

ir::ValueId Bench::input(const std::string& name, Shape shape, DType dtype) {
  auto& graph = module_.methods[0].graph;
  std::set<std::string, std::less<>> symbols;
  for (const Dim& dim : shape) dim.collect_symbols(symbols);
  for (const auto& symbol : symbols) module_.symbols[symbol] = {1, 100000};
  return graph.add_input(name, ValueType::tensor(dtype, std::move(shape)));
}

ir::ValueId Bench::constant(const std::string& name, Tensor tensor) {
  return module_.methods[0].graph.add_constant(name, std::move(tensor));
}

ir::ValueId Bench::random_constant(const std::string& name, Dims dims, float from, float to) {
  testing::Random random(seed_++);
  return constant(
      name, Tensor::of<float>(DType::kFp32, dims,
                              random.floats(static_cast<std::size_t>(numel(dims)), from, to)));
}

std::vector<ir::ValueId> Bench::node(const std::string& op, std::vector<ir::ValueId> inputs,
                                     ops::Attributes attrs, std::size_t outputs) {
  auto& graph = module_.methods[0].graph;
  ir::Node node;
  node.op = ops::find_op("", op);
  if (node.op == nullptr) node.op = ops::find_op("com.microsoft", op);
  TESSERA_CHECK(node.op != nullptr);
  node.name = graph.fresh_name(op);
  node.attributes = std::move(attrs);
  node.inputs = std::move(inputs);
  for (std::size_t i = 0; i < outputs; ++i)
    node.outputs.push_back(
        graph.add_value(graph.fresh_name("v"), ValueType::tensor(DType::kUndefined, std::nullopt)));
  node.origins = {0};
  ir::Node& added = graph.add_node(std::move(node));
  const Status inferred = ir::infer_node(module_, graph, added);
  EXPECT_TRUE(inferred) << (inferred ? "" : inferred.error().to_string());
  return added.outputs;
}

void Bench::output(ir::ValueId value) {
  auto& graph = module_.methods[0].graph;
  graph.outputs.push_back(value);
  if (graph.nodes().size() == 1) return;
  cover_ = std::make_unique<ir::Cover>();
  cover_->pattern = "test";
  for (const auto& node : graph.nodes()) {
    cover_->nodes.push_back(node->id);
    for (const ir::ValueId id : node->inputs) {
      if (id == ir::kNoValue || graph.value(id).kind == ir::ValueKind::kNodeOutput) continue;
      if (std::find(cover_->inputs.begin(), cover_->inputs.end(), id) == cover_->inputs.end())
        cover_->inputs.push_back(id);
    }
  }
  cover_->outputs = graph.outputs;
}

ir::WorkItem Bench::item() const {
  const auto& graph = module_.methods[0].graph;
  return cover_ ? ir::work_item(module_, graph, *cover_)
                : ir::work_item(module_, graph, *graph.nodes()[0]);
}

Offers Bench::offers(const SymbolBindings& point, int threads) {
  OfferOptions wanted = options;
  wanted.threads = threads;
  return compiler_->offers(item(), point, wanted);
}

std::vector<Tensor> Bench::random_inputs(const SymbolBindings& point) {
  testing::Random random(seed_++);
  std::vector<Tensor> result;
  const auto& graph = module_.methods[0].graph;
  for (const ir::ValueId id : item().inputs) {
    const ir::Value& value = graph.value(id);
    if (value.kind == ir::ValueKind::kConstant) {
      result.push_back(value.constant);
      continue;
    }
    const Dims dims = evaluate(*value.type.shape, point).value();
    Tensor tensor = Tensor::zeros(value.type.dtype, dims).value();
    for (std::int64_t i = 0; i < tensor.numel(); ++i) {
      switch (value.type.dtype) {
        case DType::kFp32:
          static_cast<float*>(tensor.mutable_data())[i] =
              static_cast<float>(random.real(low, high));
          break;
        case DType::kInt64:
          static_cast<std::int64_t*>(tensor.mutable_data())[i] =
              random.integer(static_cast<std::int64_t>(low), static_cast<std::int64_t>(high) - 1);
          break;
        case DType::kInt32:
          static_cast<std::int32_t*>(tensor.mutable_data())[i] = static_cast<std::int32_t>(
              random.integer(static_cast<std::int64_t>(low), static_cast<std::int64_t>(high) - 1));
          break;
        case DType::kInt8:
        case DType::kUInt8:
          static_cast<std::uint8_t*>(tensor.mutable_data())[i] =
              static_cast<std::uint8_t>(random.integer(0, 255));
          break;
        default: static_cast<std::uint8_t*>(tensor.mutable_data())[i] = random.chance(0.5) ? 1 : 0;
      }
    }
    if (middle && value.type.dtype == DType::kFp32 && tensor.numel() > 0)
      static_cast<float*>(tensor.mutable_data())[tensor.numel() / 2] = *middle;
    result.push_back(std::move(tensor));
  }
  return result;
}

std::vector<Tensor> Bench::reference(const std::vector<Tensor>& inputs) {
  const ir::WorkItem work = item();
  std::map<ir::ValueId, Tensor> values;
  for (std::size_t i = 0; i < work.inputs.size(); ++i) values[work.inputs[i]] = inputs[i];
  for (const ir::Node* node : work.nodes) {
    std::vector<Tensor> operands;
    for (const ir::ValueId id : node->inputs)
      operands.push_back(id == ir::kNoValue ? Tensor() : values.at(id));
    auto results = ops::run_reference(*node->op, node->attributes, operands, node->outputs.size());
    EXPECT_TRUE(results) << (results ? "" : results.error().to_string());
    for (std::size_t i = 0; results && i < node->outputs.size(); ++i)
      values[node->outputs[i]] = (*results)[i];
  }
  std::vector<Tensor> outputs;
  for (const ir::ValueId id : work.outputs) outputs.push_back(values[id]);
  return outputs;
}

void Bench::check_candidate(const Candidate& candidate, const std::vector<Tensor>& inputs,
                            const std::vector<Tensor>& expected, double tolerance) {
  const ir::WorkItem work = item();
  auto compiled = compiler_->compile(work, candidate);
  ASSERT_TRUE(compiled) << compiled.error().to_string();
  std::vector<std::span<const std::byte>> constants;
  for (const Tensor& tensor : compiled->constants)
    constants.emplace_back(static_cast<const std::byte*>(tensor.data()),
                           static_cast<std::size_t>(tensor.nbytes()));
  auto loaded = runner_->load(compiled->spec, constants);
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  InstanceDims dims;
  std::vector<Buffer> in_buffers;
  std::vector<Buffer> out_buffers;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!candidate.inputs[i]) continue;
    const Layout& layout = candidate.inputs[i]->layout;
    dims.inputs.push_back(inputs[i].dims());
    in_buffers.emplace_back(layout_nbytes(layout, inputs[i].dtype(), inputs[i].dims()),
                            std::byte{0});
    convert_layout({}, inputs[i].data(), layout, in_buffers.back().data, inputs[i].dtype(),
                   inputs[i].dims());
  }
  for (std::size_t o = 0; o < expected.size(); ++o) {
    dims.outputs.push_back(expected[o].dims());
    out_buffers.emplace_back(
        layout_nbytes(candidate.outputs[o].layout, expected[o].dtype(), expected[o].dims()),
        std::byte{0x7f});
  }
  for (const int threads : {1, 2}) {
    SCOPED_TRACE(fmt::format("{} threads", threads));
    auto instance = (*loaded)->instantiate(dims, threads);
    ASSERT_TRUE(instance) << instance.error().to_string();
    Buffer scratch((*instance)->scratch_bytes(), std::byte{0x7f});
    std::vector<const std::byte*> ins;
    std::vector<std::byte*> outs;
    for (const Buffer& buffer : in_buffers) ins.push_back(buffer.data);
    for (Buffer& buffer : out_buffers) {
      std::memset(buffer.data, 0x7f, buffer.storage.size() - 128);
      outs.push_back(buffer.data);
    }
    TestParallel parallel(threads);
    const Status done = (*instance)->execute({ins, outs, scratch.data, &parallel});
    ASSERT_TRUE(done) << done.error().to_string();
    for (std::size_t o = 0; o < expected.size(); ++o) {
      SCOPED_TRACE(fmt::format("output {}", o));
      const Layout& layout = candidate.outputs[o].layout;
      Tensor found = Tensor::zeros(expected[o].dtype(), expected[o].dims()).value();
      convert_layout(layout, outs[o], {}, found.mutable_data(), expected[o].dtype(),
                     expected[o].dims());
      expect_close(found.view(), expected[o].view(), tolerance);
      if (!is_64_byte_padded(layout)) continue;
      // Padded lanes are zero: converting forth again gives the same bytes.
      Buffer again(layout_nbytes(layout, expected[o].dtype(), expected[o].dims()), std::byte{0});
      convert_layout({}, found.data(), layout, again.data, expected[o].dtype(), expected[o].dims());
      EXPECT_EQ(std::memcmp(again.data, outs[o], again.storage.size() - 128), 0)
          << "padded lanes are not zero";
    }
  }
}

std::size_t Bench::check(const SymbolBindings& point, const std::vector<SymbolBindings>& points,
                         double tolerance) {
  const Offers found = offers(point);
  EXPECT_FALSE(found.candidates.empty()) << found.refusal;
  for (const SymbolBindings& at : points) {
    std::string where;
    for (const auto& [name, value] : at) where += fmt::format("{}={} ", name, value);
    SCOPED_TRACE(where);
    const std::vector<Tensor> inputs = random_inputs(at);
    const std::vector<Tensor> expected = reference(inputs);
    for (const Candidate& candidate : found.candidates) {
      SCOPED_TRACE(text_of(candidate));
      check_candidate(candidate, inputs, expected, tolerance);
      if (::testing::Test::HasFatalFailure()) return 0;
    }
  }
  return found.candidates.size();
}

}  // namespace tessera::backends::cpu
