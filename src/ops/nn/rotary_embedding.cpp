// RotaryEmbedding: pairs of elements of each head, turned by an angle that belongs to the position.

#include <fmt/format.h>

#include <algorithm>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/nn/nn_util.h"
#include "ops/nn/reals.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

constexpr std::string_view kOp = "RotaryEmbedding";

// X is [batch, heads, length, size], or [batch, length, heads * size] (flat).
struct Sizes {
  bool flat = false;
  Dim batch, heads, length, size;
  Dim half;  // pairs that are turned; the elements behind them stay
};

Result<Sizes> read_sizes(const Attributes& attributes, const Shape& x) {
  Sizes sizes;
  if (x.size() == 4) {
    sizes = {false, x[0], x[1], x[2], x[3], {}};
  } else if (x.size() == 3) {
    const std::int64_t heads = attributes.get_int("num_heads", 0);
    if (heads <= 0) {
      return nn::op_error(kOp, fmt::format("attribute 'num_heads': expected 1 or more beside an "
                                           "input of rank 3, found {}",
                                           heads));
    }
    const auto size = x[2].exact_div(Dim(heads));
    if (!size && x[2].is_constant()) {
      return nn::op_error(
          kOp, fmt::format("input 'X': expected a multiple of {} heads, found size {}", heads,
                           x[2].to_string()));
    }
    sizes = {true, x[0], Dim(heads), x[1], size.value_or(floordiv(x[2], Dim(heads))), {}};
  } else {
    return nn::op_error(kOp,
                        fmt::format("input 'X': expected rank 3 or 4, found rank {}", x.size()));
  }
  const std::int64_t given = attributes.get_int("rotary_embedding_dim", 0);
  const Dim turned = given == 0 ? sizes.size : Dim(given);
  const auto count = turned.constant();
  const auto size = sizes.size.constant();
  if (count && (*count < 0 || *count % 2 != 0 || (size && *count > *size))) {
    return nn::op_error(kOp, fmt::format("expected an even number of elements to turn, at most {}, "
                                         "found {}",
                                         sizes.size.to_string(), *count));
  }
  sizes.half = floordiv(turned, Dim(2));
  return sizes;
}

// [batch, length, half], or [positions, half] beside position_ids.
Status check_cache(const Sizes& sizes, const Shape& cache, bool has_positions,
                   std::string_view name) {
  const Shape expected = has_positions ? Shape{cache.empty() ? Dim(0) : cache[0], sizes.half}
                                       : Shape{sizes.batch, sizes.length, sizes.half};
  bool fits = cache.size() == expected.size();
  for (std::size_t i = 0; fits && i < cache.size(); ++i) {
    const auto have = cache[i].constant();
    const auto want = expected[i].constant();
    fits = !have || !want || *have == *want;
  }
  if (fits) return {};
  return nn::op_error(
      kOp, fmt::format("input '{}': expected {}, found {}", name,
                       has_positions ? fmt::format("[positions, {}]", sizes.half.to_string())
                                     : to_string(expected),
                       to_string(cache)));
}

Status check_shapes(const Attributes& attributes, const Shape& x, const Shape* cosine,
                    const Shape* sine, const Shape* positions) {
  TESSERA_ASSIGN(const Sizes sizes, read_sizes(attributes, x));
  if (cosine != nullptr)
    TESSERA_TRY(check_cache(sizes, *cosine, positions != nullptr, "cos_cache"));
  if (sine != nullptr) TESSERA_TRY(check_cache(sizes, *sine, positions != nullptr, "sin_cache"));
  if (positions == nullptr) return {};
  if (positions->size() != 2) {
    return nn::op_error(kOp, fmt::format("input 'position_ids': expected rank 2, found rank {}",
                                         positions->size()));
  }
  TESSERA_TRY(nn::require_size(kOp, "position_ids", sizes.batch, "batch", (*positions)[0]));
  return nn::require_size(kOp, "position_ids", sizes.length, "length", (*positions)[1]);
}

Status infer(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* x, tensor_input(context, 0));
  const auto shape = [&](std::size_t index) {
    return has_input(context, index) && context.inputs[index].type.shape
               ? &*context.inputs[index].type.shape
               : nullptr;
  };
  const bool known_positions = !has_input(context, 3) || shape(3) != nullptr;
  if (x->type.shape && known_positions)
    TESSERA_TRY(check_shapes(context.attributes, *x->type.shape, shape(1), shape(2), shape(3)));
  return infer_same_as_first(context);
}

struct Call {
  std::int64_t batch, heads, length, size, half;
  bool flat, interleaved;
};

// Which row of the caches belongs to each (batch, position).
Result<std::vector<std::int64_t>> cache_rows(const TensorView* positions, const Call& call,
                                             std::int64_t rows) {
  std::vector<std::int64_t> found(static_cast<std::size_t>(call.batch * call.length));
  for (std::size_t i = 0; i < found.size(); ++i) {
    found[i] =
        positions == nullptr ? static_cast<std::int64_t>(i) : positions->as<std::int64_t>()[i];
    if (found[i] < 0 || found[i] >= rows) {
      return nn::op_error(kOp, fmt::format("input 'position_ids': expected values from 0 to {}, "
                                           "found {}",
                                           rows - 1, found[i]));
    }
  }
  return found;
}

void turn(const Call& call, const double* x, const double* cosine, const double* sine, double* y) {
  const std::int64_t step = call.interleaved ? 2 : 1;
  const std::int64_t other = call.interleaved ? 1 : call.half;
  for (std::int64_t i = 0; i < call.half; ++i) {
    const double a = x[i * step];
    const double b = x[i * step + other];
    y[i * step] = cosine[i] * a - sine[i] * b;
    y[i * step + other] = sine[i] * a + cosine[i] * b;
  }
  std::copy(x + 2 * call.half, x + call.size, y + 2 * call.half);
}

Status kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* x, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* cosine, kernel_input(context, 1));
  TESSERA_ASSIGN(const TensorView* sine, kernel_input(context, 2));
  const TensorView* positions = context.input(3);
  const Shape shape = to_shape(x->dims);
  const Shape cosine_shape = to_shape(cosine->dims);
  const Shape sine_shape = to_shape(sine->dims);
  const Shape positions_shape = positions == nullptr ? Shape() : to_shape(positions->dims);
  TESSERA_TRY(check_shapes(context.attributes(), shape, &cosine_shape, &sine_shape,
                           positions == nullptr ? nullptr : &positions_shape));
  TESSERA_ASSIGN(const Sizes sizes, read_sizes(context.attributes(), shape));
  const Call call{sizes.batch.constant().value(),
                  sizes.heads.constant().value(),
                  sizes.length.constant().value(),
                  sizes.size.constant().value(),
                  sizes.half.constant().value(),
                  sizes.flat,
                  context.attributes().get_int("interleaved", 0) != 0};
  const std::int64_t cached = positions == nullptr ? call.batch * call.length : cosine->dims[0];
  TESSERA_ASSIGN(
      const auto rows,
      cache_rows(positions, call, std::min(cached, positions == nullptr ? cached : sine->dims[0])));
  TESSERA_ASSIGN(const MutableTensorView view, context.output(0, x->dtype, x->dims));
  const nn::Reals<double> xs(*x);
  const nn::Reals<double> cosines(*cosine);
  const nn::Reals<double> sines(*sine);
  nn::RealResult<double> ys(view);
  // One line is one head of one position.
  context.parallel_for(
      call.batch * call.heads * call.length,
      std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, call.size)),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t line = begin; line < end; ++line) {
          const std::int64_t position =
              call.flat ? line / call.heads
                        : line / (call.heads * call.length) * call.length + line % call.length;
          const std::int64_t row = rows[static_cast<std::size_t>(position)];
          turn(call, xs.data() + line * call.size, cosines.data() + row * call.half,
               sines.data() + row * call.half, ys.data() + line * call.size);
        }
      });
  ys.finish();
  return {};
}

}  // namespace

std::vector<OpSchema> rotary_embedding_ops() {
  OpSchema op;
  op.name = "RotaryEmbedding";
  op.versions = {23};
  op.inputs = {required("X", "T"), required("cos_cache", "T"), required("sin_cache", "T"),
               optional("position_ids", "M")};
  op.outputs = {required("Y", "T")};
  op.attributes = {attr("interleaved", AttrType::kInt), attr("num_heads", AttrType::kInt),
                   attr("rotary_embedding_dim", AttrType::kInt)};
  op.type_variables = {{"T", kFloatTypes}, {"M", kInt64Type}};
  op.structure = Structure::kOther;
  op.infer = infer;
  op.kernel = kernel;
  op.work = nn::work_per_input_element<3>;
  return {op};
}

}  // namespace tessera::ops
