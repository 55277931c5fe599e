#pragma once

// The only door to oneDNN: problems in our own words in, primitives out. Nothing else includes its
// headers.
//
// Every primitive is created and executed single-threaded on the calling thread, with scratch
// memory of the caller and without the library's global cache. Formats must be dense and free of
// padding: callers describe blocked tensors by their padded sizes, since the library would
// otherwise write zeros into what it reads (a mapped weight, a neighbour's input).

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/layout.h"

namespace tessera::backends::cpu {

// A tensor's dims and order in memory; `any` lets the library choose the order (weights only).
struct MemoryFormat {
  Dims dims;
  Layout layout;
  bool any = false;
  friend auto operator<=>(const MemoryFormat&, const MemoryFormat&) = default;
};

enum class Eltwise : std::uint8_t {
  kRelu,
  kClip,
  kLinear,
  kSigmoid,
  kTanh,
  kElu,
  kHardSwish,
  kSwish,
  kGeluErf,
  kGeluTanh,
  kAbs,
  kSqrt,
  kExp
};
enum class Binary : std::uint8_t { kAdd, kSub, kMul, kDiv, kMax, kMin };

// Applied to the result: eltwise with the library's alpha and beta (kRelu: slope; kClip: low, high;
// kLinear: scale, shift; kElu, kSwish: alpha), or binary with a tensor of its own as the second
// operand.
struct PostOp {
  std::optional<Binary> binary;
  Eltwise eltwise = Eltwise::kRelu;
  float alpha = 0;
  float beta = 0;
  MemoryFormat operand;
  friend auto operator<=>(const PostOp&, const PostOp&) = default;
};

// Convolution or transposed convolution, fp32. Sizes as ONNX has them (dilation 1: dense kernel);
// weights [O, I, k...] or [G, O/G, I/G, k...], for a transposed one too.
struct ConvProblem {
  bool transposed = false;
  MemoryFormat src, weights, dst;
  bool bias = false;  // [O]
  Dims strides, dilations, pads_begin, pads_end;
  std::vector<PostOp> post_ops;
  friend auto operator<=>(const ConvProblem&, const ConvProblem&) = default;
};

// dst = src * weights + bias; bias has the dst's rank, 1 in every dim but the last.
struct ProductProblem {
  MemoryFormat src, weights, dst;
  bool bias = false;
  std::vector<PostOp> post_ops;
  friend auto operator<=>(const ProductProblem&, const ProductProblem&) = default;
};

enum class PoolKind : std::uint8_t { kAverageIncludePad, kAverageExcludePad };
struct PoolProblem {
  PoolKind kind = PoolKind::kAverageIncludePad;
  MemoryFormat src, dst;
  Dims kernel, strides, dilations, pads_begin, pads_end;
  friend auto operator<=>(const PoolProblem&, const PoolProblem&) = default;
};

// Places of a primitive's operands; a binary post-op's operand is kPostOp + its number among the
// post-ops.
enum Slot : int { kSrc, kWeights, kBias, kDst, kScratch, kPostOp };

// What the library would do for a problem, and the compiled code once create() was called.
// Immutable afterwards.
class OnednnPrimitive {
 public:
  // Errors: kUnimplemented with the library's status where it has nothing for the problem.
  static Result<std::shared_ptr<OnednnPrimitive>> describe(const ConvProblem& problem);
  static Result<std::shared_ptr<OnednnPrimitive>> describe(const ProductProblem& problem);
  static Result<std::shared_ptr<OnednnPrimitive>> describe(const PoolProblem& problem);
  ~OnednnPrimitive();
  OnednnPrimitive(const OnednnPrimitive&) = delete;
  OnednnPrimitive& operator=(const OnednnPrimitive&) = delete;

  Status create();  // generates the code: milliseconds

  [[nodiscard]] const std::string& implementation() const;  // "jit:avx2"
  [[nodiscard]] bool is_reference() const;                  // the library's slow obvious code
  [[nodiscard]] std::int64_t scratch_bytes() const;
  // The order that it wants its weights in. Errors: one that a Layout cannot express.
  [[nodiscard]] Result<Layout> weights_layout() const;

 private:
  friend class OnednnCall;
  struct State;
  explicit OnednnPrimitive(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// One use of a created primitive with its own argument memory: calls of different objects may run
// at the same time.
class OnednnCall {
 public:
  static Result<std::unique_ptr<OnednnCall>> make(std::shared_ptr<const OnednnPrimitive> primitive);
  ~OnednnCall();
  OnednnCall(const OnednnCall&) = delete;
  OnednnCall& operator=(const OnednnCall&) = delete;

  void set(int slot,
           const void* data);  // takes effect at run(); a slot that the primitive lacks is ignored
  Status run();                // every slot set before

 private:
  struct State;
  explicit OnednnCall(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

std::string onednn_version();  // "2.6.3"

// Holds the calling thread's OpenMP thread count at one while it lives, whoever created the thread.
class SingleThreadOmp {
 public:
  SingleThreadOmp();
  ~SingleThreadOmp();
  SingleThreadOmp(const SingleThreadOmp&) = delete;
  SingleThreadOmp& operator=(const SingleThreadOmp&) = delete;

 private:
  int saved_;
};

}  // namespace tessera::backends::cpu
