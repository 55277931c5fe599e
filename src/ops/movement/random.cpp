// Random numbers: Bernoulli, Multinomial, RandomNormal, RandomUniform and the forms that take their
// sizes from an input.
//
// The generator is the Mersenne Twister of 32 bits, seeded and drawn from as NumPy's legacy
// generator is: a seed that is a whole number gives what numpy.random.seed(seed) gives there.

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <optional>
#include <random>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/kernel_util.h"
#include "ops/nn/reals.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

constexpr DTypeSet kBernoulliTypes = kNumericTypes | kBoolType;

class Generator {
 public:
  // Without a seed, each call draws other numbers.
  explicit Generator(const Attributes& attributes)
      : engine_(attributes.has("seed") ? seed_of(attributes.get_float("seed", 0))
                                       : std::random_device()()) {}

  // In [0, 1), with 53 random bits.
  double uniform() {
    const std::uint64_t high = engine_() >> 5;
    const std::uint64_t low = engine_() >> 6;
    return static_cast<double>((high << 26) + low) / 9007199254740992.0;
  }

  // Mean 0, deviation 1: the polar method, two numbers at a time.
  double normal() {
    if (spare_) {
      const double number = *spare_;
      spare_.reset();
      return number;
    }
    double x = 0;
    double y = 0;
    double square = 0;
    do {
      x = 2 * uniform() - 1;
      y = 2 * uniform() - 1;
      square = x * x + y * y;
    } while (square >= 1 || square == 0);
    const double factor = std::sqrt(-2 * std::log(square) / square);
    spare_ = factor * x;
    return factor * y;
  }

 private:
  // A seed that is no whole number is as good by its bits.
  static std::uint32_t seed_of(float seed) {
    const bool whole = seed >= 0 && seed < 4294967296.0F && seed == std::floor(seed);
    return whole ? static_cast<std::uint32_t>(seed) : std::bit_cast<std::uint32_t>(seed);
  }

  std::mt19937 engine_;
  std::optional<double> spare_;
};

// The dtype that attribute `dtype` names, `fallback` where it is absent.
Result<DType> drawn_dtype(const Attributes& attributes, DType fallback, DTypeSet allowed) {
  const std::int64_t number = attributes.get_int("dtype", static_cast<std::int64_t>(fallback));
  if (number > 0 && number < kDTypeCount && (allowed >> number & 1U) != 0)
    return static_cast<DType>(number);
  return attribute_error(
      "dtype",
      fmt::format("expected the number of a dtype that the operator gives, found {}", number));
}

// ---- Uniform and normal -------------------------------------------------------------------------

enum class Law : std::uint8_t { kUniform, kNormal };

Status infer_shaped(InferContext& context) {
  TESSERA_ASSIGN(const DType dtype, drawn_dtype(context.attributes, DType::kFp32, kFloatTypes));
  const Dims dims = context.attributes.get_ints("shape");
  TESSERA_TRY(checked_nbytes(dtype, dims).map([](std::int64_t) {}));
  set_output(context, 0, dtype, to_shape(dims));
  return {};
}

Status infer_like(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* input, tensor_input(context, 0));
  TESSERA_ASSIGN(const DType dtype,
                 drawn_dtype(context.attributes, input->type.dtype, kFloatTypes));
  set_output(context, 0, dtype, input->type.shape);
  return {};
}

template <Law kLaw>
Status draw(KernelContext& context, DType fallback, const Dims& dims) {
  const Attributes& attributes = context.attributes();
  TESSERA_ASSIGN(const DType dtype, drawn_dtype(attributes, fallback, kFloatTypes));
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, dtype, dims));
  constexpr bool kIsUniform = kLaw == Law::kUniform;
  const double first = static_cast<double>(attributes.get_float(kIsUniform ? "low" : "mean", 0));
  const double second = static_cast<double>(attributes.get_float(kIsUniform ? "high" : "scale", 1));
  Generator generator(attributes);
  nn::RealResult<double> result(output);
  for (std::int64_t i = 0; i < output.numel(); ++i) {
    if constexpr (kIsUniform) {
      result.data()[i] = first + (second - first) * generator.uniform();
    } else {
      result.data()[i] = first + second * generator.normal();
    }
  }
  result.finish();
  return {};
}

template <Law kLaw>
Status shaped_kernel(KernelContext& context) {
  return draw<kLaw>(context, DType::kFp32, context.attributes().get_ints("shape"));
}

template <Law kLaw>
Status like_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  return draw<kLaw>(context, input->dtype, input->dims);
}

// ---- Bernoulli ----------------------------------------------------------------------------------

Status infer_bernoulli(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* input, tensor_input(context, 0));
  TESSERA_ASSIGN(const DType dtype,
                 drawn_dtype(context.attributes, input->type.dtype, kBernoulliTypes));
  set_output(context, 0, dtype, input->type.shape);
  return {};
}

Status bernoulli_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const DType dtype,
                 drawn_dtype(context.attributes(), input->dtype, kBernoulliTypes));
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, dtype, input->dims));
  Generator generator(context.attributes());
  const nn::Reals<double> chances(*input);
  std::vector<double> drawn(static_cast<std::size_t>(input->numel()));
  for (std::size_t i = 0; i < drawn.size(); ++i)
    drawn[i] = generator.uniform() < chances[static_cast<std::int64_t>(i)] ? 1 : 0;
  cast_elements({DType::kFp64, input->dims, drawn.data()}, output, true);
  return {};
}

// ---- Multinomial --------------------------------------------------------------------------------

Result<std::int64_t> sample_size(const Attributes& attributes) {
  const std::int64_t size = attributes.get_int("sample_size", 1);
  if (size >= 0) return size;
  return attribute_error("sample_size", fmt::format("expected 0 or more, found {}", size));
}

Status infer_multinomial(InferContext& context) {
  TESSERA_TRY(require_rank(context, 0, 2));
  TESSERA_ASSIGN(const DType dtype, drawn_dtype(context.attributes, DType::kInt32, kIndexTypes));
  TESSERA_ASSIGN(const std::int64_t samples, sample_size(context.attributes));
  const auto& shape = context.inputs[0].type.shape;
  const Dim batch = shape ? (*shape)[0] : context.fresh_symbol("batch");
  set_output(context, 0, dtype, Shape{batch, Dim(samples)});
  return {};
}

// Probabilities that add up from the first class on; their logarithms may have any scale.
std::vector<double> cumulated(const double* logs, std::int64_t classes) {
  double top = logs[0];
  for (std::int64_t i = 1; i < classes; ++i) top = std::max(top, logs[i]);
  std::vector<double> sums(static_cast<std::size_t>(classes));
  double sum = 0;
  for (std::int64_t i = 0; i < classes; ++i)
    sums[static_cast<std::size_t>(i)] = sum += std::exp(logs[i] - top);
  return sums;
}

Status multinomial_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const DType dtype, drawn_dtype(context.attributes(), DType::kInt32, kIndexTypes));
  TESSERA_ASSIGN(const std::int64_t samples, sample_size(context.attributes()));
  if (input->dims.size() != 2 || input->dims[1] == 0)
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("Multinomial: expected [batch, classes], found {}", to_string(input->dims)));
  const Dims dims{input->dims[0], samples};
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, dtype, dims));
  const nn::Reals<double> logs(*input);
  Generator generator(context.attributes());
  std::vector<std::int64_t> drawn;
  for (std::int64_t row = 0; row < dims[0]; ++row) {
    const auto sums = cumulated(logs.data() + row * input->dims[1], input->dims[1]);
    for (std::int64_t i = 0; i < samples; ++i) {
      const auto at = std::upper_bound(sums.begin(), sums.end(), generator.uniform() * sums.back());
      drawn.push_back(std::min<std::int64_t>(at - sums.begin(), input->dims[1] - 1));
    }
  }
  cast_elements({DType::kInt64, dims, drawn.data()}, output, true);
  return {};
}

OpSchema random_op(std::string_view name, std::vector<int> versions, InferFn infer,
                   KernelFn kernel) {
  OpSchema op;
  op.name = name;
  op.versions = std::move(versions);
  op.outputs = {required("output", "T2")};
  op.attributes = {attr("dtype", AttrType::kInt), attr("seed", AttrType::kFloat)};
  op.type_variables = {{"T2", kFloatTypes}};
  op.structure = Structure::kOther;
  op.infer = infer;
  op.kernel = kernel;
  op.deterministic = false;
  op.unspecified =
      "a seed that is a whole number gives what NumPy's legacy generator gives with it";
  return op;
}

OpSchema with_input(OpSchema op, DTypeSet types) {
  op.inputs = {required("input", "T1")};
  op.type_variables.push_back({"T1", types});
  return op;
}

OpSchema with_attributes(OpSchema op, std::initializer_list<FormalAttr> attributes) {
  op.attributes.insert(op.attributes.end(), attributes);
  return op;
}

}  // namespace

std::vector<OpSchema> random_ops() {
  const FormalAttr shape = required_attr("shape", AttrType::kInts);
  const FormalAttr low = attr("low", AttrType::kFloat);
  const FormalAttr high = attr("high", AttrType::kFloat);
  const FormalAttr mean = attr("mean", AttrType::kFloat);
  const FormalAttr scale = attr("scale", AttrType::kFloat);
  const std::vector<int> versions{1, 22};
  OpSchema bernoulli =
      with_input(random_op("Bernoulli", {15, 22}, infer_bernoulli, bernoulli_kernel), kFloatTypes);
  bernoulli.type_variables[0].allowed = kBernoulliTypes;
  OpSchema multinomial = with_attributes(
      with_input(random_op("Multinomial", {7, 22}, infer_multinomial, multinomial_kernel),
                 kFloatTypes),
      {attr("sample_size", AttrType::kInt)});
  multinomial.type_variables[0].allowed = kIndexTypes;
  return {
      bernoulli,
      multinomial,
      with_attributes(
          random_op("RandomUniform", versions, infer_shaped, shaped_kernel<Law::kUniform>),
          {shape, low, high}),
      with_attributes(
          random_op("RandomNormal", versions, infer_shaped, shaped_kernel<Law::kNormal>),
          {shape, mean, scale}),
      with_attributes(with_input(random_op("RandomUniformLike", versions, infer_like,
                                           like_kernel<Law::kUniform>),
                                 kAllTypes),
                      {low, high}),
      with_attributes(
          with_input(random_op("RandomNormalLike", versions, infer_like, like_kernel<Law::kNormal>),
                     kAllTypes),
          {mean, scale}),
  };
}

}  // namespace tessera::ops
