// Reshape, Flatten, Squeeze and Unsqueeze: the same elements under other dims.

#include <fmt/format.h>

#include <algorithm>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/kernel_util.h"
#include "ops/schema_util.h"
#include "ops/upgrade_util.h"

namespace tessera::ops {
namespace {

// Copies the elements of input 0 to an output of other dims, unless both lie in the same place.
Status copy_as(KernelContext& context, const Dims& dims) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, input->dtype, dims));
  if (output.data != input->data) copy_elements(*input, output);
  return {};
}

Work copy_work(const Attributes& /*attributes*/, std::span<const TensorSpec> inputs,
               std::span<const TensorSpec> outputs) {
  Work work;
  if (!inputs.empty())
    work.bytes_read = static_cast<double>(nbytes(inputs[0].dtype, inputs[0].dims));
  for (const TensorSpec& output : outputs)
    work.bytes_written += static_cast<double>(nbytes(output.dtype, output.dims));
  return work;
}

// Output 0 has the dtype of input 0; known elements stay known where the output still has rank 0
// or 1.
void set_view(InferContext& context, std::optional<Shape> shape) {
  const InferInput& input = context.inputs[0];
  const auto value = known_value(input);
  if (value && shape && shape->size() <= 1)
    set_value(context, 0, DimTensor{shape->empty(), value->elements});
  set_output(context, 0, input.type.dtype, std::move(shape));
}

std::optional<std::vector<std::int64_t>> axes_input(const KernelContext& context) {
  const TensorView* axes = context.input(1);
  return axes != nullptr ? std::optional(to_int64_vector(*axes)) : std::nullopt;
}

// ---- Reshape
// -------------------------------------------------------------------------------------------------

Dim product(const Shape& shape) {
  Dim total = 1;
  for (const Dim& dim : shape) total = total * dim;
  return total;
}

// The size that a -1 stands for: all elements over those of the other dims.
Result<Dim> deduced_dim(const InferContext& context, const Dim& total, const Dim& others) {
  if (others.constant() == 0) {
    if (total.constant().value_or(0) == 0) return Dim(0);
  } else if (const auto exact = total.exact_div(others)) {
    return *exact;
  } else if (!total.is_constant() || !others.is_constant()) {
    return floordiv(total, others);
  }
  return input_error(context, 1,
                     fmt::format("expected sizes whose product divides {} elements, found {}",
                                 total.to_string(), others.to_string()));
}

Status check_total(const InferContext& context, const Shape& from, const Shape& to) {
  const auto before = product(from).constant();
  const auto after = product(to).constant();
  if (!before || !after || *before == *after) return {};
  return input_error(context, 1,
                     fmt::format("expected a shape of {} elements as {} has, found {}", *before,
                                 to_string(from), to_string(to)));
}

// Elements of the shape input with 0 and -1 replaced.
Result<std::optional<Shape>> reshaped(const InferContext& context, const std::vector<Dim>& target) {
  const auto& from = context.inputs[0].type.shape;
  const bool allow_zero = context.attributes.get_int("allowzero", 0) != 0;
  Shape shape = target;
  Shape others;                         // sizes beside the -1, and what they leave of the input;
  Shape left = from ? *from : Shape();  // dims that stay as they are stand in neither
  std::optional<std::size_t> deduced;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const auto number = shape[d].constant();
    if (number != -1 && (number != 0 || allow_zero)) others.push_back(shape[d]);
    if (number == -1) {
      if (deduced) return input_error(context, 1, "expected at most one -1, found two");
      deduced = d;
    } else if (number.value_or(0) < 0) {
      return input_error(context, 1,
                         fmt::format("expected sizes of -1 or more, found {}", *number));
    } else if (number == 0 && !allow_zero) {
      if (!from) return std::optional<Shape>();
      if (d >= from->size())
        return input_error(context, 1,
                           fmt::format("a 0 at position {} stands for a dim that {} does not have",
                                       d, to_string(*from)));
      shape[d] = (*from)[d];
      left[d] = Dim(1);
    }
  }
  const bool has_zero =
      std::ranges::any_of(target, [](const Dim& dim) { return dim.constant().value_or(-1) == 0; });
  if (deduced && allow_zero && has_zero)
    return input_error(context, 1, "expected no 0 beside a -1 where 'allowzero' is 1, found one");
  if (!from) {
    if (deduced) shape[*deduced] = context.fresh_symbol("reshape");
    return std::optional(std::move(shape));
  }
  if (deduced) {
    TESSERA_ASSIGN(shape[*deduced], deduced_dim(context, product(left), product(others)));
  }
  TESSERA_TRY(check_total(context, *from, shape));
  return std::optional(std::move(shape));
}

Status infer_reshape(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* input, tensor_input(context, 0));
  TESSERA_TRY(require_dtype(context, 1, kInt64Type));
  TESSERA_TRY(require_rank(context, 1, 1));
  const auto target = known_value(context.inputs[1]);
  if (target) {
    TESSERA_ASSIGN(std::optional<Shape> shape, reshaped(context, target->elements));
    set_view(context, std::move(shape));
    return {};
  }
  const auto& shape = context.inputs[1].type.shape;
  const auto rank = shape ? shape->front().constant() : std::nullopt;
  std::optional<Shape> fresh;
  if (rank) fresh.emplace();
  for (std::int64_t d = 0; rank && d < *rank; ++d)
    fresh->push_back(context.fresh_symbol("reshape"));
  set_output(context, 0, input->type.dtype, std::move(fresh));
  return {};
}

// What -1 stands for. Where the others hold a 0 it is what is left when dims that stay as they are
// (a 0 in `target`) cancel: the same that inference says for every size.
std::int64_t deduced_size(const Dims& from, const Dims& target, const Dims& dims) {
  std::int64_t total = 1;
  std::int64_t others = 1;
  for (std::size_t d = 0; d < std::max(from.size(), target.size()); ++d) {
    const bool stays = d < target.size() && target[d] == 0;
    if (!stays && d < from.size()) total *= from[d];
    if (!stays && d < target.size()) others *= dims[d];
  }
  return others == 0 ? 0 : total / others;
}

Status reshape_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* shape, kernel_input(context, 1));
  const bool allow_zero = context.attributes().get_int("allowzero", 0) != 0;
  const Dims target = to_int64_vector(*shape);
  const auto mismatch = [&] {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("Reshape: {} elements of {} do not fit shape [{}]", input->numel(),
                            to_string(input->dims), fmt::join(target, ", ")));
  };
  Dims dims = target;
  std::optional<std::size_t> deduced;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == -1 && !deduced) {
      deduced = d;
      dims[d] = 1;
    } else if (dims[d] < 0 || (dims[d] == 0 && !allow_zero && d >= input->dims.size())) {
      return mismatch();
    } else if (dims[d] == 0 && !allow_zero) {
      dims[d] = input->dims[d];
    }
  }
  const auto others = checked_numel(dims);
  // A 0 that is a size leaves open what the -1 is, so ONNX has none of them beside each other.
  const bool is_open = deduced && allow_zero && std::ranges::count(target, 0) > 0;
  if (!others || is_open) return mismatch();
  if (deduced)
    dims[*deduced] =
        *others == 0 ? deduced_size(input->dims, target, dims) : input->numel() / *others;
  const auto total = checked_numel(dims);
  if (!total || *total != input->numel()) return mismatch();
  return copy_as(context, dims);
}

Status upgrade_reshape(UpgradeNode& node, int /*opset*/, UpgradeBuilder& builder) {
  erase_attributes(node, {"consumed_inputs"});
  return ints_to_input(node, builder, "shape", 1);
}

// ---- Flatten
// -------------------------------------------------------------------------------------------------

// The axis may stand behind the last dim.
Result<std::size_t> flatten_axis(const Attributes& attributes, std::size_t rank) {
  const auto size = static_cast<std::int64_t>(rank);
  const std::int64_t axis = attributes.get_int("axis", 1);
  if (axis >= -size && axis <= size) return static_cast<std::size_t>(axis < 0 ? axis + size : axis);
  return attribute_error(
      "axis", fmt::format("expected a value from {} to {}, found {}", -size, size, axis));
}

Status infer_flatten(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* input, tensor_input(context, 0));
  if (!input->type.shape) {
    set_output(context, 0, input->type.dtype,
               Shape{context.fresh_symbol("flatten"), context.fresh_symbol("flatten")});
    return {};
  }
  const Shape& shape = *input->type.shape;
  TESSERA_ASSIGN(const std::size_t axis, flatten_axis(context.attributes, shape.size()));
  const auto middle = shape.begin() + static_cast<std::ptrdiff_t>(axis);
  set_view(context, Shape{product({shape.begin(), middle}), product({middle, shape.end()})});
  return {};
}

Status flatten_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const std::size_t axis, flatten_axis(context.attributes(), input->dims.size()));
  return copy_as(context, {count_between(input->dims, 0, axis),
                           count_between(input->dims, axis, input->dims.size())});
}

// ---- Squeeze and Unsqueeze
// -------------------------------------------------------------------------------------------------

Status infer_squeeze(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* input, tensor_input(context, 0));
  const bool all = !has_input(context, 1);
  if (!all) TESSERA_TRY(require_dtype(context, 1, kInt64Type));
  const auto axes_value = all ? std::nullopt : known_ints(context.inputs[1]);
  set_output(context, 0, input->type.dtype, std::nullopt);
  if (!input->type.shape || (!all && !axes_value)) return {};
  const Shape& shape = *input->type.shape;
  Shape kept;
  if (all) {
    for (const Dim& dim : shape) {
      if (!dim.is_constant()) return {};  // it may turn out to be 1
      if (dim != Dim(1)) kept.push_back(dim);
    }
    set_view(context, std::move(kept));
    return {};
  }
  TESSERA_ASSIGN(
      const auto axes,
      normalize_axes(*axes_value, static_cast<std::int64_t>(shape.size()), "input 'axes'"));
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(d)) == axes.end()) {
      kept.push_back(shape[d]);
    } else if (shape[d].constant().value_or(1) != 1) {
      return input_error(context, 1,
                         fmt::format("expected axes of size 1, found axis {} of size {}", d,
                                     shape[d].to_string()));
    }
  }
  set_view(context, std::move(kept));
  return {};
}

Status squeeze_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  const auto listed = axes_input(context);
  std::vector<std::int64_t> axes;
  if (listed) {
    TESSERA_ASSIGN(axes, normalize_axes(*listed, static_cast<std::int64_t>(input->dims.size()),
                                        "Squeeze: input 'axes'"));
  }
  Dims dims;
  for (std::size_t d = 0; d < input->dims.size(); ++d) {
    const bool chosen =
        listed ? std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(d)) != axes.end()
               : input->dims[d] == 1;
    if (!chosen) {
      dims.push_back(input->dims[d]);
    } else if (input->dims[d] != 1) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("Squeeze: expected axes of size 1, found axis {} of {}", d,
                              to_string(input->dims)));
    }
  }
  return copy_as(context, dims);
}

// Dims with ones put in at `axes` (counted in the result).
template <typename D>
Result<std::vector<D>> unsqueezed(const std::vector<D>& from,
                                  const std::vector<std::int64_t>& listed) {
  const std::size_t rank = from.size() + listed.size();
  TESSERA_ASSIGN(const auto axes,
                 normalize_axes(listed, static_cast<std::int64_t>(rank), "input 'axes'"));
  std::vector<D> dims;
  auto next = from.begin();
  for (std::size_t d = 0; d < rank; ++d) {
    const bool inserted =
        std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(d)) != axes.end();
    dims.push_back(inserted ? D(1) : *next++);
  }
  return dims;
}

Status infer_unsqueeze(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* input, tensor_input(context, 0));
  TESSERA_TRY(require_dtype(context, 1, kInt64Type));
  const auto axes = known_ints(context.inputs[1]);
  set_output(context, 0, input->type.dtype, std::nullopt);
  if (!input->type.shape || !axes) return {};
  TESSERA_ASSIGN(Shape shape, unsqueezed(*input->type.shape, *axes));
  set_view(context, std::move(shape));
  return {};
}

Status unsqueeze_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* axes, kernel_input(context, 1));
  TESSERA_ASSIGN(const Dims dims, unsqueezed(input->dims, to_int64_vector(*axes)));
  return copy_as(context, dims);
}

Status upgrade_axes(UpgradeNode& node, int /*opset*/, UpgradeBuilder& builder) {
  return ints_to_input(node, builder, "axes", 1);
}

OpSchema view(std::string_view name, std::vector<int> versions, InferFn infer, KernelFn kernel) {
  OpSchema op;
  op.name = name;
  op.versions = std::move(versions);
  op.inputs = {required("data", "T")};
  op.outputs = {required("reshaped", "T")};
  op.type_variables = {{"T", kAllTypes}};
  op.structure = Structure::kView;
  op.infer = infer;
  op.kernel = kernel;
  op.work = copy_work;
  op.in_place_inputs = {0};
  return op;
}

}  // namespace

std::vector<OpSchema> reshape_ops() {
  OpSchema reshape =
      view("Reshape", {1, 5, 13, 14, 19, 21, 23, 24, 25}, infer_reshape, reshape_kernel);
  reshape.inputs.push_back(required("shape", "I"));
  reshape.attributes = {attr("allowzero", AttrType::kInt)};
  reshape.type_variables.push_back({"I", kInt64Type});
  reshape.upgrades = {{1, 1, upgrade_reshape}};
  reshape.shape_inputs = {1};

  OpSchema flatten = view("Flatten", {1, 9, 11, 13, 21, 23, 24, 25}, infer_flatten, flatten_kernel);
  flatten.inputs = {required("input", "T")};
  flatten.attributes = {attr("axis", AttrType::kInt)};

  OpSchema squeeze = view("Squeeze", {1, 11, 13, 21, 23, 24, 25}, infer_squeeze, squeeze_kernel);
  squeeze.inputs.push_back(optional("axes", "I"));
  squeeze.type_variables.push_back({"I", kInt64Type});
  squeeze.upgrades = {{1, 11, upgrade_axes}};
  squeeze.shape_inputs = {1};

  OpSchema unsqueeze =
      view("Unsqueeze", {1, 11, 13, 21, 23, 24, 25}, infer_unsqueeze, unsqueeze_kernel);
  unsqueeze.inputs.push_back(required("axes", "I"));
  unsqueeze.type_variables.push_back({"I", kInt64Type});
  unsqueeze.upgrades = {{1, 11, upgrade_axes}};
  unsqueeze.shape_inputs = {1};
  return {reshape, flatten, squeeze, unsqueeze};
}

}  // namespace tessera::ops
