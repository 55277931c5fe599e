// Resize and its forerunner Upsample: schemas, upgrades, inference.

#include <fmt/format.h>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/nn/nn_util.h"
#include "ops/nn/resize_kernel.h"
#include "ops/nn/resize_plan.h"
#include "ops/schema_util.h"
#include "ops/upgrade_util.h"

namespace tessera::ops {
namespace {

using nn::ResizeOptions;

enum Input : std::size_t { kX, kRoi, kScales, kSizes };

// Present and not known to be empty: before version 13 an empty tensor stood for an omitted input.
bool is_given(const InferContext& context, std::size_t index) {
  if (!has_input(context, index)) return false;
  const InferInput& input = context.inputs[index];
  if (input.constant != nullptr) return input.constant->numel() > 0;
  if (!input.type.shape) return true;
  const Shape& shape = *input.type.shape;
  return shape.size() != 1 || shape[0].constant() != 0;
}

std::vector<float> floats_of(const InferInput& input) {
  return nn::float_elements(input.constant->view());
}

// Sizes from a constant `scales` (and roi where it cuts); nothing for an axis whose size only the
// data decides.
Status sizes_from_scales(const InferContext& context, const ResizeOptions& options,
                         const std::vector<std::int64_t>& axes,
                         std::vector<std::optional<Dim>>& sizes) {
  const std::vector<float> scales = floats_of(context.inputs[kScales]);
  if (scales.size() != axes.size()) {
    return nn::op_error("Resize", fmt::format("input 'scales': expected {} elements, found {}",
                                              axes.size(), scales.size()));
  }
  const bool cuts = options.coordinates == ResizeOptions::Coordinates::kTfCropAndResize;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (!(scales[i] > 0))
      return nn::op_error("Resize",
                          fmt::format("scales[{}]: expected more than 0, found {}", i, scales[i]));
    std::optional<Dim>& size = sizes[static_cast<std::size_t>(axes[i])];
    size = cuts ? std::nullopt : nn::scaled_size(*size, scales[i]);
  }
  return {};
}

Status sizes_from_sizes(const InferContext& context, const ResizeOptions& options,
                        const std::vector<std::int64_t>& axes,
                        std::vector<std::optional<Dim>>& sizes) {
  const auto known = known_value(context.inputs[kSizes]);
  if (known && known->elements.size() != axes.size()) {
    return nn::op_error("Resize", fmt::format("input 'sizes': expected {} elements, found {}",
                                              axes.size(), known->elements.size()));
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    std::optional<Dim>& size = sizes[static_cast<std::size_t>(axes[i])];
    const bool stretches = options.aspect == ResizeOptions::Aspect::kStretch;
    size = known && stretches ? std::optional<Dim>(known->elements[i]) : std::nullopt;
  }
  return {};
}

// The concrete plan where everything that decides the sizes is a number.
Result<std::optional<Dims>> concrete_sizes(const InferContext& context,
                                           const ResizeOptions& options, const Shape& shape) {
  const auto dims = constant_dims(shape);
  const bool by_scales = is_given(context, kScales);
  const InferInput& by = context.inputs[by_scales ? kScales : kSizes];
  const bool cuts = options.coordinates == ResizeOptions::Coordinates::kTfCropAndResize;
  if (!dims || (cuts && (!has_input(context, kRoi) || context.inputs[kRoi].constant == nullptr)))
    return std::nullopt;
  std::vector<float> scales;
  std::vector<std::int64_t> sizes;
  if (by_scales) {
    if (by.constant == nullptr) return std::nullopt;
    scales = floats_of(by);
  } else {
    const auto known = known_ints(by);
    if (!known) return std::nullopt;
    sizes = *known;
  }
  const std::vector<float> roi = cuts ? floats_of(context.inputs[kRoi]) : std::vector<float>{};
  TESSERA_ASSIGN(const auto plan, nn::plan_resize(options, *dims, roi, scales, sizes));
  Dims output;
  for (const nn::ResizeAxis& axis : plan) output.push_back(axis.out);
  return output;
}

Result<Shape> resized_shape(InferContext& context, const ResizeOptions& options,
                            const Shape& shape) {
  TESSERA_ASSIGN(const auto concrete, concrete_sizes(context, options, shape));
  if (concrete) return to_shape(*concrete);
  TESSERA_ASSIGN(const auto axes,
                 nn::resized_axes(options, static_cast<std::int64_t>(shape.size())));
  std::vector<std::optional<Dim>> sizes(shape.begin(), shape.end());
  if (!is_given(context, kScales)) {
    TESSERA_TRY(sizes_from_sizes(context, options, axes, sizes));
  } else if (context.inputs[kScales].constant != nullptr) {
    TESSERA_TRY(sizes_from_scales(context, options, axes, sizes));
  } else {
    for (const std::int64_t axis : axes) sizes[static_cast<std::size_t>(axis)].reset();
  }
  Shape output;
  for (const auto& size : sizes) output.push_back(size ? *size : context.fresh_symbol("resize"));
  return output;
}

Status infer_resize(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* x, tensor_input(context, kX));
  TESSERA_ASSIGN(const ResizeOptions options, nn::read_resize(context.attributes));
  const bool scales = is_given(context, kScales);
  const bool sizes = is_given(context, kSizes);
  if (!scales && !sizes)
    return nn::op_error("Resize", "expected either scales or sizes, found none");
  if (scales && sizes) return nn::op_error("Resize", "expected either scales or sizes, found both");
  std::optional<Shape> output;
  if (x->type.shape) {
    TESSERA_ASSIGN(output, resized_shape(context, options, *x->type.shape));
  }
  set_output(context, 0, x->type.dtype, std::move(output));
  return {};
}

Work resize_work(const Attributes& attributes, std::span<const TensorSpec> inputs,
                 std::span<const TensorSpec> outputs) {
  Work work = nn::operand_traffic(inputs, outputs);
  const std::string mode = attributes.get_string("mode", "nearest");
  const double taps_per_axis = mode == "nearest" ? 0 : mode == "cubic" ? 4 : 2;
  double resized_axes = 0;
  for (std::size_t i = 0; i < inputs[0].dims.size(); ++i)
    resized_axes += inputs[0].dims[i] != outputs[0].dims[i] ? 1 : 0;
  work.flops = 2 * taps_per_axis * resized_axes * nn::output_elements(outputs);
  return work;
}

// Versions before 11: output position x takes its elements at x / scale, rounded down.
void set_old_coordinates(UpgradeNode& node) {
  node.attributes.set("coordinate_transformation_mode", std::string("asymmetric"));
  node.attributes.set("nearest_mode", std::string("floor"));
}

// Resize-10: X, scales.
Status upgrade_resize_10(UpgradeNode& node, int, UpgradeBuilder& builder) {
  TESSERA_TRY(nn::require_inputs(node, 2));
  const Operand scales = node.inputs[1];
  // Shrinking rounded up instead, which differs in nothing else.
  const Tensor* known = builder.known(scales);
  bool shrinks = false;
  bool grows = false;
  if (known != nullptr && known->dtype() == DType::kFp32) {
    for (const float scale : known->span<float>()) {
      shrinks = shrinks || scale < 1;
      grows = grows || scale > 1;
    }
  }
  set_old_coordinates(node);
  if (shrinks && !grows) node.attributes.set("nearest_mode", std::string("ceil"));
  node.inputs = {node.inputs[0], kNoOperand, scales};
  return {};
}

// Upsample-1: attributes height_scale and width_scale. Upsample-7: attribute scales. Upsample-9,
// 10: input scales.
Status upgrade_upsample(UpgradeNode& node, int, UpgradeBuilder& builder) {
  TESSERA_TRY(nn::require_inputs(node, 1));
  std::vector<float> factors;
  const AttributeValue* scales = node.attributes.find("scales");
  if (scales != nullptr && std::holds_alternative<std::vector<float>>(*scales)) {
    factors = std::get<std::vector<float>>(*scales);
  } else if (node.attributes.has("height_scale") || node.attributes.has("width_scale")) {
    TESSERA_ASSIGN(const float height, old_float(node, "height_scale", 1.0F));
    TESSERA_ASSIGN(const float width, old_float(node, "width_scale", 1.0F));
    factors = {1.0F, 1.0F, height, width};
  }
  Operand operand = node.inputs.size() > 1 ? node.inputs[1] : kNoOperand;
  if (!factors.empty()) {
    const Dims dims{static_cast<std::int64_t>(factors.size())};
    operand = builder.constant(Tensor::of<float>(DType::kFp32, dims, factors));
  }
  if (operand == kNoOperand) return nn::op_error("Upsample", "expected scales, found none");
  erase_attributes(node, {"scales", "height_scale", "width_scale"});
  const AttributeValue* mode = node.attributes.find("mode");
  const auto* name = mode == nullptr ? nullptr : std::get_if<std::string>(mode);
  if (name != nullptr && *name == "bilinear") node.attributes.set("mode", std::string("linear"));
  set_old_coordinates(node);
  node.op_type = "Resize";
  node.inputs = {node.inputs[0], kNoOperand, operand};
  return {};
}

// Every Upsample becomes a Resize at import.
Status infer_upsample(InferContext&) {
  return fail(ErrorCode::kInternal, "Upsample: expected to be a Resize after import");
}

OpSchema resize_schema() {
  OpSchema op;
  op.name = "Resize";
  op.versions = {10, 11, 13, 18, 19};
  op.unspecified =
      "integers are interpolated in fp64, cut towards zero and saturated; an axis that stands "
      "twice is an error";
  op.inputs = {required("X", "T1"), optional("roi", "T2"), optional("scales", "tensor(float)"),
               optional("sizes", "tensor(int64)")};
  op.outputs = {required("Y", "T1")};
  op.attributes = {attr("antialias", AttrType::kInt),
                   attr("axes", AttrType::kInts),
                   attr("coordinate_transformation_mode", AttrType::kString),
                   attr("cubic_coeff_a", AttrType::kFloat),
                   attr("exclude_outside", AttrType::kInt),
                   attr("extrapolation_value", AttrType::kFloat),
                   attr("keep_aspect_ratio_policy", AttrType::kString),
                   attr("mode", AttrType::kString),
                   attr("nearest_mode", AttrType::kString)};
  op.type_variables = {{"T1", kNumericTypes | kBoolType | kStringType | kComplexTypes},
                       {"T2", dtype_set({DType::kFp32, DType::kFp64, DType::kFp16})},
                       {"tensor(float)", kFp32Type},
                       {"tensor(int64)", kInt64Type}};
  op.structure = Structure::kWindow;
  op.infer = infer_resize;
  op.kernel = nn::resize_kernel;
  op.work = resize_work;
  op.upgrades = {{10, 10, upgrade_resize_10}};
  op.shape_inputs = {kRoi, kScales, kSizes};
  return op;
}

OpSchema upsample_schema() {
  OpSchema op = resize_schema();
  op.name = "Upsample";
  op.versions = {1, 7, 9, 10};
  op.inputs = {required("X", "T1"), optional("scales", "tensor(float)")};
  op.attributes = {attr("mode", AttrType::kString)};
  op.type_variables = {op.type_variables[0], {"tensor(float)", kFp32Type}};
  op.infer = infer_upsample;
  op.unspecified = "integers are interpolated in fp64, cut towards zero and saturated";
  op.kernel = nullptr;
  op.upgrades = {{1, 10, upgrade_upsample}};
  op.shape_inputs = {1};
  return op;
}

}  // namespace

std::vector<OpSchema> resize_ops() {
  return {resize_schema(), upsample_schema()};
}

}  // namespace tessera::ops
