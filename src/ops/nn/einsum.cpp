// Einsum: sums of products over named indices, as numpy's einsum. An index of size 1 broadcasts.

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <memory>

#include "ops/infer_util.h"
#include "ops/nn/nn_util.h"
#include "ops/nn/reals.h"
#include "ops/nn/schemas.h"
#include "ops/schema_util.h"

namespace tessera::ops::nn {
namespace {

constexpr char kEllipsis = '.';  // stands for "..." in a parsed term

struct Equation {
  std::vector<std::string> terms;
  std::string output;
};

tl::unexpected<Error> equation_error(std::string_view message) {
  return op_error("Einsum", fmt::format("equation: {}", message));
}

// Letters and at most one ellipsis.
Result<std::string> parse_term(std::string_view text) {
  std::string term;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    if (text.substr(i, 3) == "..." && term.find(kEllipsis) == std::string::npos) {
      term += kEllipsis;
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(text[i])) != 0) {
      term += text[i];
    } else {
      return equation_error(
          fmt::format("expected letters and at most one '...' in a term, found '{}'", text));
    }
  }
  return term;
}

// Without "->": the ellipsis, then the letters that stand once, in alphabetical order.
std::string implied_output(const std::vector<std::string>& terms) {
  std::map<char, int> counts;
  for (const std::string& term : terms) {
    for (const char letter : term) ++counts[letter];
  }
  std::string output = counts.count(kEllipsis) != 0 ? std::string(1, kEllipsis) : "";
  for (const auto& [letter, count] : counts) {
    if (letter != kEllipsis && count == 1) output += letter;
  }
  return output;
}

Result<Equation> parse_equation(std::string_view text, std::size_t operands) {
  Equation equation;
  const std::size_t arrow = text.find("->");
  std::string_view left = text.substr(0, arrow);
  while (true) {
    const std::size_t comma = left.find(',');
    TESSERA_ASSIGN(std::string term, parse_term(left.substr(0, comma)));
    equation.terms.push_back(std::move(term));
    if (comma == std::string_view::npos) break;
    left.remove_prefix(comma + 1);
  }
  if (equation.terms.size() != operands) {
    return equation_error(fmt::format("expected {} terms, one for each input, found {}", operands,
                                      equation.terms.size()));
  }
  if (arrow == std::string_view::npos) {
    equation.output = implied_output(equation.terms);
    return equation;
  }
  TESSERA_ASSIGN(equation.output, parse_term(text.substr(arrow + 2)));
  return equation;
}

// Indices are numbers: letters as they are, dims of the ellipsis (counted from the right) negative.
using Index = int;

Result<std::vector<Index>> indices_of(const std::string& term, std::size_t rank,
                                      std::size_t input) {
  const bool has_ellipsis = term.find(kEllipsis) != std::string::npos;
  const std::size_t letters = term.size() - (has_ellipsis ? 1 : 0);
  if (rank < letters || (!has_ellipsis && rank != letters)) {
    return equation_error(fmt::format("input {}: expected rank {}{} for its term, found rank {}",
                                      input, letters, has_ellipsis ? " or more" : "", rank));
  }
  std::vector<Index> indices;
  for (const char letter : term) {
    if (letter != kEllipsis) {
      indices.push_back(letter);
      continue;
    }
    for (std::size_t i = rank - letters; i > 0; --i) indices.push_back(-static_cast<Index>(i));
  }
  return indices;
}

struct Plan {
  std::vector<std::vector<Index>> operands;
  std::vector<Index> output;
  std::map<Index, Dim> sizes;
};

Status merge_size(std::map<Index, Dim>& sizes, Index index, const Dim& size) {
  const auto [at, is_new] = sizes.emplace(index, size);
  if (is_new || at->second == size || size.constant() == 1) return {};
  const auto known = at->second.constant();
  if (!known || *known == 1) {
    at->second = size;
    return {};
  }
  if (!size.is_constant()) return {};
  return equation_error(
      fmt::format("index '{}': expected size {}, found {}",
                  index < 0 ? std::string("...") : std::string(1, static_cast<char>(index)), *known,
                  size.to_string()));
}

Result<Plan> plan_einsum(const Attributes& attributes, const std::vector<Shape>& shapes) {
  TESSERA_ASSIGN(const Equation equation,
                 parse_equation(attributes.get_string("equation", ""), shapes.size()));
  Plan plan;
  Index deepest = 0;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    TESSERA_ASSIGN(auto indices, indices_of(equation.terms[i], shapes[i].size(), i));
    for (std::size_t d = 0; d < indices.size(); ++d) {
      TESSERA_TRY(merge_size(plan.sizes, indices[d], shapes[i][d]));
      deepest = std::min(deepest, indices[d]);
    }
    plan.operands.push_back(std::move(indices));
  }
  for (const char letter : equation.output) {
    if (letter == kEllipsis) {
      for (Index index = deepest; index < 0; ++index) plan.output.push_back(index);
      continue;
    }
    if (plan.sizes.count(letter) == 0)
      return equation_error(fmt::format("index '{}' of the output stands in no term", letter));
    if (std::find(plan.output.begin(), plan.output.end(), letter) != plan.output.end()) {
      return equation_error(fmt::format("index '{}' stands twice in the output", letter));
    }
    plan.output.push_back(letter);
  }
  return plan;
}

Status infer_einsum(InferContext& context) {
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < context.inputs.size(); ++i) {
    TESSERA_ASSIGN(const InferInput* input, tensor_input(context, i));
    if (input->type.shape) shapes.push_back(*input->type.shape);
  }
  if (context.inputs.empty()) return op_error("Einsum", "expected at least 1 input, found 0");
  std::optional<Shape> output;
  if (shapes.size() == context.inputs.size()) {
    TESSERA_ASSIGN(const Plan plan, plan_einsum(context.attributes, shapes));
    output.emplace();
    for (const Index index : plan.output) output->push_back(plan.sizes.at(index));
  }
  set_output(context, 0, context.inputs[0].type.dtype, std::move(output));
  return {};
}

// Sizes of a group of indices, and the step of each operand along each of them.
struct Loop {
  Dims sizes;
  std::vector<Dims> steps;  // [index][operand]
  [[nodiscard]] std::int64_t count() const { return numel(sizes); }
  // Adds to each operand's offset where position `at` of the loop lies.
  void add_offsets(std::int64_t at, std::vector<std::int64_t>& offsets) const {
    for (std::size_t i = sizes.size(); i-- > 0;) {
      for (std::size_t k = 0; k < offsets.size(); ++k) offsets[k] += at % sizes[i] * steps[i][k];
      at /= sizes[i];
    }
  }
};

Loop make_loop(const Plan& plan, const std::vector<Index>& indices, const std::vector<Dims>& dims) {
  Loop loop;
  for (const Index index : indices) {
    loop.sizes.push_back(plan.sizes.at(index).constant().value());
    Dims steps(dims.size(), 0);
    for (std::size_t k = 0; k < dims.size(); ++k) {
      const Dims strides = row_major_strides(dims[k]);
      for (std::size_t d = 0; d < strides.size(); ++d) {
        if (plan.operands[k][d] == index && dims[k][d] != 1) steps[k] += strides[d];
      }
    }
    loop.steps.push_back(std::move(steps));
  }
  return loop;
}

// Sum over `inner` of the product of all operands, in Sum (double, or an unsigned integer that
// wraps around).
template <typename T, typename Sum>
Sum sum_of_products(const std::vector<const T*>& operands, const Loop& inner,
                    const std::vector<std::int64_t>& start) {
  Sum sum{};
  const std::int64_t count = inner.count();
  std::vector<std::int64_t> offsets;
  for (std::int64_t i = 0; i < count; ++i) {
    offsets = start;
    inner.add_offsets(i, offsets);
    Sum product{1};
    for (std::size_t k = 0; k < operands.size(); ++k)
      product *= static_cast<Sum>(operands[k][offsets[k]]);
    sum += product;
  }
  return sum;
}

template <typename T, typename Sum>
void run(KernelContext& context, const std::vector<const T*>& operands, const Loop& outer,
         const Loop& inner, T* out) {
  context.parallel_for(outer.count(),
                       std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, inner.count())),
                       [&](std::int64_t begin, std::int64_t end) {
                         for (std::int64_t i = begin; i < end; ++i) {
                           std::vector<std::int64_t> start(operands.size(), 0);
                           outer.add_offsets(i, start);
                           out[i] = static_cast<T>(sum_of_products<T, Sum>(operands, inner, start));
                         }
                       });
}

Status einsum_kernel(KernelContext& context) {
  std::vector<const TensorView*> views;
  std::vector<Shape> shapes;
  std::vector<Dims> dims;
  for (std::size_t i = 0; i < context.input_count(); ++i) {
    TESSERA_ASSIGN(const TensorView* view, kernel_input(context, i));
    views.push_back(view);
    shapes.push_back(to_shape(view->dims));
    dims.push_back(view->dims);
  }
  if (views.empty()) return op_error("Einsum", "expected at least 1 input, found 0");
  TESSERA_ASSIGN(const Plan plan, plan_einsum(context.attributes(), shapes));
  std::vector<Index> summed;
  for (const auto& [index, size] : plan.sizes) {
    if (std::find(plan.output.begin(), plan.output.end(), index) == plan.output.end())
      summed.push_back(index);
  }
  const Loop outer = make_loop(plan, plan.output, dims);
  const Loop inner = make_loop(plan, summed, dims);
  const DType dtype = views[0]->dtype;
  TESSERA_ASSIGN(const MutableTensorView y, context.output(0, dtype, outer.sizes));
  if (is_integer(dtype)) {
    return dispatch(IntegerTypes{}, dtype, [&](auto tag) -> Status {
      using T = typename decltype(tag)::type;
      std::vector<const T*> operands;
      for (const TensorView* view : views) operands.push_back(view->as<T>());
      run<T, std::uint64_t>(context, operands, outer, inner, y.as<T>());
      return {};
    });
  }
  return with_real(dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    std::vector<std::unique_ptr<Reals<T>>> reals;
    std::vector<const T*> operands;
    for (const TensorView* view : views)
      operands.push_back(reals.emplace_back(std::make_unique<Reals<T>>(*view))->data());
    RealResult<T> ys(y);
    run<T, double>(context, operands, outer, inner, ys.data());
    ys.finish();
    return {};
  });
}

// One product and one addition for each combination of all indices.
Work einsum_work(const Attributes& attributes, std::span<const TensorSpec> inputs,
                 std::span<const TensorSpec> outputs) {
  Work work = operand_traffic(inputs, outputs);
  std::vector<Shape> shapes;
  for (const TensorSpec& input : inputs) shapes.push_back(to_shape(input.dims));
  const auto plan = plan_einsum(attributes, shapes);
  if (!plan) return work;
  work.flops = static_cast<double>(std::max<std::size_t>(1, inputs.size()));
  for (const auto& [index, size] : plan->sizes)
    work.flops *= static_cast<double>(size.constant().value_or(1));
  return work;
}

}  // namespace

OpSchema einsum_schema() {
  OpSchema op;
  op.name = "Einsum";
  op.versions = {12, 28};
  op.unspecified = "integers wrap around";
  op.inputs = {variadic("Inputs", "T")};
  op.outputs = {required("Output", "T")};
  op.attributes = {required_attr("equation", AttrType::kString)};
  op.type_variables = {{"T", kNumericTypes}};
  op.structure = Structure::kContraction;
  op.infer = infer_einsum;
  op.kernel = einsum_kernel;
  op.work = einsum_work;
  return op;
}

}  // namespace tessera::ops::nn
