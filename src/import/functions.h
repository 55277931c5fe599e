#pragma once

// The operators that a model names: of the op table, or local functions; and what cannot be
// resolved.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "import/budget.h"
#include "import/import.h"
#include "import/opset_imports.h"

namespace onnx {
class FunctionProto;
class GraphProto;
class ModelProto;
class NodeProto;
}  // namespace onnx

namespace tessera::importer {

// Limits of expansion: how deep calls may nest, and how many nodes a model may have once they are
// expanded (half a dozen times what the largest models in use have; import takes some microseconds
// for each).
inline constexpr int kMaxCallDepth = 256;
inline constexpr std::uint64_t kMaxExpandedNodes = 250'000;

// A local function with the operator sets that hold inside of it.
struct Function {
  const onnx::FunctionProto* proto = nullptr;
  OpsetImports opsets;
  [[nodiscard]] std::string name() const;  // "local::Gelu"
};

// What an operator's name means: of the op table (with the since-version in force), else a local
// function, else neither, with the reason.
struct Resolved {
  const ops::OpSchema* op = nullptr;
  int since_version = 0;
  const Function* function = nullptr;
  Unsupported unsupported;
};

// A Constant of the default domain: import takes it as a value, it never becomes a node.
bool is_constant(const onnx::NodeProto& node);

class Library {
 public:
  // Errors: a function without a name or twice, a name given twice inside of one, a malformed
  // preset of an attribute, its operator sets, functions that call one another in a circle (named),
  // called or not; the budget.
  static Result<Library> of_model(const onnx::ModelProto& model, ImportBudget& budget);

  [[nodiscard]] Resolved resolve(const onnx::NodeProto& node, const OpsetImports& opsets) const;
  [[nodiscard]] const OpsetImports& opsets() const { return *opsets_; }

 private:
  Status add_function(const onnx::FunctionProto& proto, ImportBudget& budget);
  [[nodiscard]] Status check_recursion(const onnx::ModelProto& model, ImportBudget& budget) const;

  using Key = std::tuple<std::string, std::string, std::string>;  // domain, name, overload
  std::unique_ptr<const OpsetImports> opsets_;                    // those of functions point to it
  std::map<Key, Function> functions_;
};

// What a walk over a model and the functions that it calls finds.
struct Census {
  std::map<std::string, std::size_t>
      operators;                         // nodes by qualified name, each function's nodes once
  std::vector<Unsupported> unsupported;  // one for each operator and version, in order of first use
  std::uint64_t node_count = 0;          // with functions expanded; at most kMaxExpandedNodes + 1
};

// Errors: calls deeper or larger than the limits, the budget.
Result<Census> take_census(const onnx::ModelProto& model, const Library& library,
                           ImportBudget& budget);

// "Foo (domain ai.onnx, opset 17) of node 'x': reason".
std::string describe(const Unsupported& unsupported);

}  // namespace tessera::importer
