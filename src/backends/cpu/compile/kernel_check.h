#pragma once

// For the tests here: a graph of a few nodes, every candidate of it compiled, loaded and run, each
// result compared with the reference kernels.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/compile_interface.h"
#include "backends/run_interface.h"

namespace tessera::backends::cpu {

// Threads of its own for each run; chunks in reverse, so that nothing relies on their order.
class TestParallel final : public Parallel {
 public:
  explicit TestParallel(int threads) : threads_(threads) {}
  [[nodiscard]] int threads() const override { return threads_; }
  void run(std::int64_t chunks, FunctionRef<void(std::int64_t)> body) override;

 private:
  int threads_;
};

// A graph under test. Sizes may be symbols: then `bind` gives their values, at the price point and
// when it runs.
class Bench {
 public:
  Bench();
  ir::ValueId input(const std::string& name, Shape shape, DType dtype = DType::kFp32);
  ir::ValueId constant(const std::string& name, Tensor tensor);
  // fp32 of random values in [-1, 1), or in [low, high).
  ir::ValueId random_constant(const std::string& name, Dims dims, float low = -1, float high = 1);
  // The node's outputs; types by inference.
  std::vector<ir::ValueId> node(const std::string& op, std::vector<ir::ValueId> inputs,
                                ops::Attributes attributes = {}, std::size_t outputs = 1);
  ir::ValueId op(const std::string& name, std::vector<ir::ValueId> inputs,
                 ops::Attributes attributes = {}) {
    return node(name, std::move(inputs), std::move(attributes))[0];
  }
  void output(ir::ValueId value);

  // All nodes as one item: alone, or a cover.
  [[nodiscard]] ir::WorkItem item() const;
  [[nodiscard]] Offers offers(const SymbolBindings& point, int threads = 1);

  // Runs every candidate priced at `point` at each of `points` on 1 and 2 threads, all of a point
  // on the same inputs. A failure names candidate, point and element. `tolerance` is relative to
  // the largest reference element. Gives the number of candidates.
  std::size_t check(const SymbolBindings& point, const std::vector<SymbolBindings>& points,
                    double tolerance);
  std::size_t check(double tolerance = 1e-5) { return check({}, {{}}, tolerance); }

  // Values of inputs: [low, high); integers from 0 to high - 1; bytes of every value.
  float low = -1;
  float high = 1;
  // What the offers ask for besides fp32; threads are given apart.
  OfferOptions options;
  // Of the middle element of each fp32 input, where it is given.
  std::optional<float> middle;

 private:
  void check_candidate(const Candidate& candidate, const std::vector<Tensor>& inputs,
                       const std::vector<Tensor>& expected, double tolerance);
  std::vector<Tensor> random_inputs(const SymbolBindings& point);
  std::vector<Tensor> reference(const std::vector<Tensor>& inputs);

  ir::Module module_;
  std::unique_ptr<ir::Cover> cover_;
  std::unique_ptr<CompileDevice> compiler_;
  std::unique_ptr<RunDevice> runner_;
  std::uint64_t seed_ = 1;
};

ops::Attributes attributes(std::vector<std::pair<std::string, ops::AttributeValue>> entries);

}  // namespace tessera::backends::cpu
