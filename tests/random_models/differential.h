#pragma once

// One model through the whole chain in several ways, each compared with what it must compute.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "random_models/evaluate.h"

namespace tessera::random_models {

// How a model is compiled and run.
struct Way {
  std::string name;
  std::vector<std::string> devices;  // "npu" is the simulated device of `profile`
  std::string profile;               // JSON; empty: none
  std::vector<std::string> disabled_passes;
  std::vector<std::pair<std::string, bool>> rules;  // node: pinned to the npu, or forbidden there
  int threads = 1;
  std::size_t priced_at = 0;   // the point
  bool exact_results = false;  // equal bit by bit: the same kernels in the same order
  bool through_file = false;   // the artefact is written and read again
};

// The reference without passes; the cpu with all; the cpu with some passes off; split between the
// cpu and a drawn npu.
std::vector<Way> ways_of(const Model& model, std::uint64_t seed);

struct Failure {
  std::string way;
  std::string kind;  // "refused", "wrong", "crashed", "hangs"
  std::string message;
  [[nodiscard]] std::string to_string() const { return way + ": " + kind + ": " + message; }
};

// Compiles the model in each way, runs it at both points and at the first again, and compares.
// `begin` is told each way before it starts.
std::optional<Failure> check(const Model& model, const Evaluation& evaluation,
                             const std::vector<Way>& ways,
                             const std::function<void(const Way&)>& begin = {});

}  // namespace tessera::random_models
