#pragma once

// What is known about an operator, in one place: its signature, older versions, inference,
// reference kernel, structure and work. All of it in the newest meaning; import upgrades older
// versions. Knows no graph.

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/run_value.h"
#include "base/shape.h"
#include "base/tensor.h"
#include "ops/attributes.h"

namespace tessera::ops {

struct OpSchema;

// ---- Signature
// ------------------------------------------------------------------------------------------------

enum class AttrType : std::uint8_t {
  kInt,
  kFloat,
  kString,
  kTensor,
  kType,
  kInts,
  kFloats,
  kStrings,
  kTensors,
  kGraph
};

struct FormalAttr {
  std::string_view name;
  AttrType type = AttrType::kInt;
  bool required = false;
};

struct FormalParam {
  std::string_view name;
  std::string_view type;  // a type variable ("T") bound across the signature, or "" for any
  enum class Arity : std::uint8_t { kRequired, kOptional, kVariadic } arity = Arity::kRequired;
};

// Dtypes that a type variable may take, as a bit set over DType.
using DTypeSet = std::uint32_t;
constexpr DTypeSet dtype_bit(DType dtype) {
  return DTypeSet{1} << static_cast<unsigned>(dtype);
}

struct TypeVariable {
  std::string_view name;
  DTypeSet allowed = 0;
};

// ---- Inference
// ------------------------------------------------------------------------------------------------

struct InferInput {
  bool present = false;  // an optional input may be omitted
  ValueType type;
  const Tensor* constant = nullptr;  // its elements where they are known
  std::optional<DimTensor>
      value;  // its elements as expressions where they are known (int32, int64, bool; rank 0 or 1)
};

// One call of inference. The function fills outputs (and output_values where it carries shape
// arithmetic).
struct InferContext {
  const OpSchema& op;
  const Attributes& attributes;
  std::vector<InferInput> inputs;  // as many as the node has, trailing omitted ones left out
  std::vector<ValueType> outputs;  // sized by the caller
  std::vector<std::optional<DimTensor>> output_values;  // sized by the caller
  std::function<Dim(std::string_view hint)>
      fresh_symbol;  // a new symbol for a size that only the data decides
  // Types of the outputs of body `index` for given types of its formal inputs. Only for operators
  // with bodies.
  std::function<Result<std::vector<ValueType>>(std::size_t index,
                                               std::span<const ValueType> inputs)>
      infer_body;
  int body_depth = 0;  // bodies around the node; each inference of one infers those inside again
};

using InferFn = Status (*)(InferContext&);

// ---- Reference kernel
// ------------------------------------------------------------------------------------------------

// What a kernel sees of one call. The kernel asks for each output with the dims that it has worked
// out.
class KernelContext {
 public:
  KernelContext(const Attributes& attributes, std::span<const TensorView* const> inputs)
      : attributes_(attributes), inputs_(inputs) {}
  virtual ~KernelContext() = default;

  [[nodiscard]] const Attributes& attributes() const { return attributes_; }
  [[nodiscard]] std::size_t input_count() const { return inputs_.size(); }
  // Null where the input is omitted.
  [[nodiscard]] const TensorView* input(std::size_t index) const {
    return index < inputs_.size() ? inputs_[index] : nullptr;
  }
  [[nodiscard]] virtual std::size_t output_count() const = 0;
  // Memory for output `index`: planned, or allocated now. Errors: planned memory of another dtype
  // or dims, out of memory.
  virtual Result<MutableTensorView> output(std::size_t index, DType dtype, const Dims& dims) = 0;
  // For sequences and optionals: input `index` as a value of any kind, null where it is omitted or
  // where the caller holds tensors only.
  [[nodiscard]] virtual const RunValue* value(std::size_t /*index*/) const { return nullptr; }
  // Gives output `index` a value of any kind. Errors: the caller holds tensors only.
  virtual Status set_value(std::size_t index, RunValue value);
  // Calls body(begin, end) over [0, count) in pieces, at most `grain` long where it runs in
  // parallel; pieces are independent.
  virtual void parallel_for(std::int64_t count, std::int64_t grain,
                            const std::function<void(std::int64_t, std::int64_t)>& body);

 private:
  const Attributes& attributes_;
  std::span<const TensorView* const> inputs_;
};

using KernelFn = Status (*)(KernelContext&);

// ---- Structure and work
// ------------------------------------------------------------------------------------------------

// How the iteration space relates operands and result.
enum class Structure : std::uint8_t {
  kElementwise,  // each result element from the elements of the same (broadcast) position
  kReduction,    // along axes, the others independent
  kContraction,  // sums of products: convolutions, products
  kMovement,     // elements moved, not changed: transpose, concat, slice, pad
  kView,         // the same elements in the same order under other dims: reshape, flatten, squeeze
  kWindow,       // pooling, resize, local normalisation
  kControlFlow,  // runs bodies
  kOther,
};

struct TensorSpec {
  DType dtype = DType::kUndefined;
  Dims dims;
  bool present = true;
};

// Arithmetic and traffic of one call, for the roofline and the report.
struct Work {
  double flops = 0;
  double bytes_read = 0;
  double bytes_written = 0;
};

using WorkFn = Work (*)(const Attributes& attributes, std::span<const TensorSpec> inputs,
                        std::span<const TensorSpec> outputs);

// ---- Older versions
// ------------------------------------------------------------------------------------------------

// A value as an upgrade sees it; -1 is an omitted input.
using Operand = std::int32_t;
inline constexpr Operand kNoOperand = -1;

// What an upgrade may add around a node. Implemented by import.
class UpgradeBuilder {
 public:
  virtual ~UpgradeBuilder() = default;
  virtual Operand constant(Tensor value) = 0;
  // A node of the newest opset; gives its outputs.
  virtual std::vector<Operand> node(std::string op_type, Attributes attributes,
                                    std::vector<Operand> inputs, std::size_t output_count) = 0;
  // The type where it is known by now (inputs declared with a type, constants, results of nodes
  // inferred so far), else null.
  [[nodiscard]] virtual const ValueType* type(Operand operand) const = 0;
  // The elements where the operand is a constant of the model, else null.
  [[nodiscard]] virtual const Tensor* known(Operand) const { return nullptr; }
};

// A node on its way to the newest meaning. An upgrade changes it, or builds other nodes and sets
// `replacement`.
struct UpgradeNode {
  std::string op_type;
  Attributes attributes;
  std::vector<Operand> inputs;
  std::size_t output_count = 0;
  std::vector<bool> output_used;                    // false where the model leaves the name empty
  std::optional<std::vector<Operand>> replacement;  // one for each output; the node itself goes
};

// Takes a node of any version in [from, to] to the newest meaning. `opset` is what the model
// imports.
struct Upgrade {
  int from_version = 1;
  int to_version = 1;
  Status (*apply)(UpgradeNode& node, int opset, UpgradeBuilder& builder) = nullptr;
};

// ---- The schema
// ------------------------------------------------------------------------------------------------

struct OpSchema {
  std::string_view domain;  // "" is ai.onnx
  std::string_view name;
  std::vector<int>
      versions;  // since-versions that are known, ascending; the last is the meaning here
  std::vector<FormalParam> inputs;
  std::vector<FormalParam> outputs;
  std::vector<FormalAttr> attributes;
  std::vector<TypeVariable> type_variables;
  Structure structure = Structure::kOther;
  InferFn infer = nullptr;
  KernelFn kernel = nullptr;  // null: control flow (the runtime runs the bodies)
  WorkFn work = nullptr;      // null: bytes of all operands, one flop an output element
  std::vector<Upgrade> upgrades;
  std::vector<std::uint8_t>
      shape_inputs;  // inputs whose elements decide the shape of outputs (Reshape: 1)
  std::vector<std::uint8_t>
      in_place_inputs;       // inputs that output 0 may overwrite where dims and dtype agree
  bool commutative = false;  // the first two inputs may be swapped
  bool data_dependent_shape = false;  // output sizes depend on elements (NonZero)
  bool deterministic = true;          // false: random numbers; never folded, never merged
  std::string_view unspecified;       // what is done where the standard leaves something open

  // "Conv" or "com.microsoft::Gelu".
  [[nodiscard]] std::string qualified_name() const;
};

// The work of a call, by the op's own function or the default.
Work work_of(const OpSchema& op, const Attributes& attributes, std::span<const TensorSpec> inputs,
             std::span<const TensorSpec> outputs);

}  // namespace tessera::ops
