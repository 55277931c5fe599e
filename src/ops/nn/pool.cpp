// MaxPool, AveragePool, LpPool and the global ones: schemas, upgrades, inference, work.

#include <fmt/format.h>

#include <cmath>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/nn/nn_util.h"
#include "ops/nn/pool_kernel.h"
#include "ops/nn/window.h"
#include "ops/schema_util.h"
#include "ops/upgrade_util.h"

namespace tessera::ops {
namespace {

Status check_p(InferContext& context) {
  const std::int64_t p = context.attributes.get_int("p", 2);
  if (p < 1)
    return nn::op_error(context.op.name, fmt::format("p: expected at least 1, found {}", p));
  return {};
}

Status infer_pool(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* x, tensor_input(context, 0));
  const std::string_view op = context.op.name;
  if (op == "LpPool") TESSERA_TRY(check_p(context));
  std::optional<Shape> output;
  if (x->type.shape) {
    const Shape& shape = *x->type.shape;
    if (shape.size() < 3) {
      return nn::op_error(
          op, fmt::format(
                  "input 'X': expected rank 3 or more (batch, channels, spatial), found rank {}",
                  shape.size()));
    }
    TESSERA_ASSIGN(const nn::Window window,
                   nn::read_window(op, context.attributes, shape.size() - 2, std::nullopt));
    output = Shape{shape[0], shape[1]};
    for (std::size_t i = 0; i < window.axes.size(); ++i) {
      TESSERA_ASSIGN(Dim size, nn::output_dim(op, window, i, shape[i + 2]));
      output->push_back(std::move(size));
    }
  }
  set_output(context, 0, x->type.dtype, output);
  set_output(context, 1, DType::kInt64, std::move(output));
  return {};
}

Status infer_global_pool(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* x, tensor_input(context, 0));
  if (context.op.name == "GlobalLpPool") TESSERA_TRY(check_p(context));
  std::optional<Shape> output;
  if (x->type.shape) {
    const Shape& shape = *x->type.shape;
    if (shape.size() < 2) {
      return nn::op_error(
          context.op.name,
          fmt::format(
              "input 'X': expected rank 2 or more (batch, channels, spatial), found rank {}",
              shape.size()));
    }
    output = Shape(shape.size(), Dim(1));
    (*output)[0] = shape[0];
    (*output)[1] = shape[1];
  }
  set_output(context, 0, x->type.dtype, std::move(output));
  return {};
}

// One operation for each tap of each window.
Work pool_work(const Attributes& attributes, std::span<const TensorSpec> inputs,
               std::span<const TensorSpec> outputs) {
  Work work = nn::operand_traffic(inputs, outputs);
  double taps = 1;
  for (const std::int64_t size : attributes.get_ints("kernel_shape"))
    taps *= static_cast<double>(size);
  work.flops = nn::output_elements(outputs) * taps;
  return work;
}

// LpPool-1 and GlobalLpPool-1: p was a float.
Status upgrade_float_p(UpgradeNode& node, int, UpgradeBuilder&) {
  const AttributeValue* value = node.attributes.find("p");
  if (value == nullptr || !std::holds_alternative<float>(*value)) return {};
  const float p = std::get<float>(*value);
  if (!(p >= 1 && p <= 1e6F) || p != std::floor(p)) {
    return fail(
        ErrorCode::kUnimplemented,
        fmt::format("{}: p: expected a whole number of at least 1, found {}", node.op_type, p));
  }
  node.attributes.set("p", static_cast<std::int64_t>(p));
  return {};
}

std::vector<FormalAttr> pool_attributes() {
  return {attr("auto_pad", AttrType::kString), attr("ceil_mode", AttrType::kInt),
          attr("dilations", AttrType::kInts),  required_attr("kernel_shape", AttrType::kInts),
          attr("pads", AttrType::kInts),       attr("strides", AttrType::kInts)};
}

OpSchema pool_schema(std::string_view name, std::vector<int> versions, KernelFn kernel) {
  OpSchema op;
  op.name = name;
  op.versions = std::move(versions);
  op.inputs = {required("X", "T")};
  op.outputs = {required("Y", "T")};
  op.attributes = pool_attributes();
  op.type_variables = {{"T", kFloatTypes}};
  op.structure = Structure::kWindow;
  op.infer = infer_pool;
  op.kernel = kernel;
  op.work = pool_work;
  return op;
}

OpSchema global_schema(std::string_view name, std::vector<int> versions, KernelFn kernel) {
  OpSchema op = pool_schema(name, std::move(versions), kernel);
  op.attributes.clear();
  op.structure = Structure::kReduction;
  op.infer = infer_global_pool;
  op.work = nn::work_per_input_element<1>;
  return op;
}

}  // namespace

std::vector<OpSchema> pool_ops() {
  OpSchema max_pool = pool_schema("MaxPool", {1, 8, 10, 11, 12, 22}, nn::max_pool_kernel);
  max_pool.outputs.push_back(optional("Indices", "I"));
  max_pool.attributes.push_back(attr("storage_order", AttrType::kInt));
  max_pool.unspecified =
      "a window of padding alone is minus infinity, or the lowest integer, with the index -1; of "
      "equal elements the first one is meant; a NaN wins";
  max_pool.type_variables = {{"T", kFloatTypes | dtype_set({DType::kInt8, DType::kUInt8})},
                             {"I", kInt64Type}};

  OpSchema average_pool =
      pool_schema("AveragePool", {1, 7, 10, 11, 19, 22}, nn::average_pool_kernel);
  average_pool.attributes.push_back(attr("count_include_pad", AttrType::kInt));
  average_pool.unspecified = "a window of padding alone is 0";

  OpSchema lp_pool = pool_schema("LpPool", {1, 2, 11, 18, 22}, nn::lp_pool_kernel);
  lp_pool.attributes.push_back(attr("p", AttrType::kInt));
  lp_pool.upgrades = {{1, 1, upgrade_float_p}};

  OpSchema global_lp_pool = global_schema("GlobalLpPool", {1, 2, 22}, nn::global_lp_pool_kernel);
  global_lp_pool.attributes = {attr("p", AttrType::kInt)};
  global_lp_pool.upgrades = {{1, 1, upgrade_float_p}};

  return {max_pool,
          average_pool,
          lp_pool,
          global_schema("GlobalAveragePool", {1, 22}, nn::global_average_pool_kernel),
          global_schema("GlobalMaxPool", {1, 22}, nn::global_max_pool_kernel),
          global_lp_pool};
}

}  // namespace tessera::ops
