// Features of ai.onnx.ml: ArrayFeatureExtractor, Binarizer, FeatureVectorizer, Imputer, Normalizer,
// OneHotEncoder and Scaler.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/kernel_util.h"
#include "ops/movement/movement_util.h"
#include "ops/nn/nn_util.h"
#include "ops/nn/reals.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

constexpr DTypeSet kFeatureTypes =
    dtype_set({DType::kFp32, DType::kFp64, DType::kInt32, DType::kInt64});
using FeatureTypes = Types<float, double, std::int32_t, std::int64_t>;

Status infer_floats(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* input, tensor_input(context, 0));
  set_output(context, 0, DType::kFp32, input->type.shape);
  return {};
}

// ---- ArrayFeatureExtractor ----------------------------------------------------------------------

Status infer_extract(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* input, tensor_input(context, 0));
  TESSERA_TRY(require_dtype(context, 1, kInt64Type));
  TESSERA_TRY(require_rank_at_least(context, 0, 1));
  std::optional<Shape> output = input->type.shape;
  if (output) {
    Dim count(1);
    if (const auto& indices = context.inputs[1].type.shape) {
      for (const Dim& dim : *indices) count = count * dim;
    } else {
      count = context.fresh_symbol("extracted");
    }
    output->back() = count;
    if (output->size() == 1) output->insert(output->begin(), Dim(1));
  }
  set_output(context, 0, input->type.dtype, std::move(output));
  return {};
}

Status extract_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* indices, kernel_input(context, 1));
  if (input->dims.empty())
    return nn::op_error("ArrayFeatureExtractor", "expected rank 1 or more, found a scalar");
  TESSERA_ASSIGN(
      const auto places,
      checked_indices(*indices, input->dims.back(),
                      static_cast<std::int64_t>(input->dims.size()) - 1, "ArrayFeatureExtractor"));
  Dims dims = input->dims;
  dims.back() = static_cast<std::int64_t>(places.size());
  if (dims.size() == 1) dims.insert(dims.begin(), 1);
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, input->dtype, dims));
  return dispatch_elements(input->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    const std::int64_t rows = count_between(dims, 0, dims.size() - 1);
    T* to = output.as<T>();
    for (std::int64_t row = 0; row < rows; ++row)
      for (const std::int64_t place : places)
        *to++ = input->as<T>()[row * input->dims.back() + place];
    return {};
  });
}

// ---- Binarizer ----------------------------------------------------------------------------------

Status binarizer_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  const double threshold = static_cast<double>(context.attributes().get_float("threshold", 0));
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, input->dtype, input->dims));
  return dispatch(FeatureTypes{}, input->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    for (std::int64_t i = 0; i < input->numel(); ++i)
      output.as<T>()[i] = static_cast<double>(input->as<T>()[i]) > threshold ? T{1} : T{0};
    return {};
  });
}

// ---- Scaler and Imputer -------------------------------------------------------------------------

// A list with one value for each feature, or one for all: the value of element `index`.
template <typename T>
T of_feature(const std::vector<T>& list, std::int64_t index) {
  return list[static_cast<std::size_t>(index) % list.size()];
}

Status check_list(std::string_view op, std::string_view name, std::size_t size, const Dims& dims) {
  const std::int64_t features = dims.empty() ? 1 : dims.back();
  if (size == 1 || (size != 0 && static_cast<std::int64_t>(size) == features)) return {};
  return nn::op_error(op,
                      fmt::format("{}: expected 1 or {} values, found {}", name, features, size));
}

Status scaler_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  const std::vector<float> scale = context.attributes().get_floats("scale", {1});
  const std::vector<float> offset = context.attributes().get_floats("offset", {0});
  TESSERA_TRY(check_list("Scaler", "scale", scale.size(), input->dims));
  TESSERA_TRY(check_list("Scaler", "offset", offset.size(), input->dims));
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, DType::kFp32, input->dims));
  const nn::Reals<double> x(*input);
  for (std::int64_t i = 0; i < input->numel(); ++i)
    output.as<float>()[i] = static_cast<float>((x[i] - static_cast<double>(of_feature(offset, i))) *
                                               static_cast<double>(of_feature(scale, i)));
  return {};
}

template <typename T, typename Value>
void impute(const TensorView& input, const MutableTensorView& output, Value replaced,
            const std::vector<Value>& imputed) {
  const bool replaces_nan = std::isnan(static_cast<double>(replaced));
  for (std::int64_t i = 0; i < input.numel(); ++i) {
    const T value = input.as<T>()[i];
    const bool hit =
        replaces_nan ? std::isnan(static_cast<double>(value)) : value == static_cast<T>(replaced);
    output.as<T>()[i] = hit ? static_cast<T>(of_feature(imputed, i)) : value;
  }
}

Status imputer_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  const Attributes& attributes = context.attributes();
  const std::vector<float> floats = attributes.get_floats("imputed_value_floats");
  const std::vector<std::int64_t> ints = attributes.get_ints("imputed_value_int64s");
  const bool is_real = is_float(input->dtype);
  TESSERA_TRY(check_list("Imputer", is_real ? "imputed_value_floats" : "imputed_value_int64s",
                         is_real ? floats.size() : ints.size(), input->dims));
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, input->dtype, input->dims));
  return dispatch(FeatureTypes{}, input->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_floating_point_v<T>) {
      impute<T>(*input, output, attributes.get_float("replaced_value_float", 0), floats);
    } else {
      impute<T>(*input, output, attributes.get_int("replaced_value_int64", 0), ints);
    }
    return {};
  });
}

// ---- Normalizer ---------------------------------------------------------------------------------

Status infer_normalizer(InferContext& context) {
  const std::string norm = context.attributes.get_string("norm", "MAX");
  if (norm != "MAX" && norm != "L1" && norm != "L2")
    return attribute_error("norm", fmt::format("expected 'MAX', 'L1' or 'L2', found '{}'", norm));
  return infer_floats(context);
}

Status normalizer_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  const std::string norm = context.attributes().get_string("norm", "MAX");
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, DType::kFp32, input->dims));
  const std::int64_t features = input->dims.empty() ? 1 : input->dims.back();
  const nn::Reals<double> x(*input);
  for (std::int64_t first = 0; first < input->numel(); first += features) {
    double divisor = norm == "MAX" ? -HUGE_VAL : 0;
    for (std::int64_t i = first; i < first + features; ++i)
      divisor = norm == "MAX"  ? std::max(divisor, x[i])
                : norm == "L1" ? divisor + std::fabs(x[i])
                               : divisor + x[i] * x[i];
    if (norm == "L2") divisor = std::sqrt(divisor);
    for (std::int64_t i = first; i < first + features; ++i)
      output.as<float>()[i] = static_cast<float>(divisor == 0 ? x[i] : x[i] / divisor);
  }
  return {};
}

// ---- OneHotEncoder ------------------------------------------------------------------------------

Result<std::int64_t> category_count(const Attributes& attributes) {
  const bool strings = attributes.has("cats_strings");
  if (strings == attributes.has("cats_int64s"))
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("expected one of the attributes 'cats_strings' and 'cats_int64s', found "
                    "{}",
                    strings ? "both" : "none"));
  if (!strings) return static_cast<std::int64_t>(attributes.get_ints("cats_int64s").size());
  const auto* list = std::get_if<std::vector<std::string>>(attributes.find("cats_strings"));
  return list == nullptr ? 0 : static_cast<std::int64_t>(list->size());
}

Status infer_one_hot(InferContext& context) {
  TESSERA_ASSIGN(const std::int64_t count, category_count(context.attributes));
  TESSERA_ASSIGN(const InferInput* input, tensor_input(context, 0));
  std::optional<Shape> output = input->type.shape;
  if (output) output->emplace_back(count);
  set_output(context, 0, DType::kFp32, std::move(output));
  return {};
}

// The place of an element among the categories; -1: it is none of them.
std::int64_t category_of(const TensorView& input, std::int64_t index,
                         const Attributes& attributes) {
  const auto place = [](const auto& list, const auto& value) -> std::int64_t {
    const auto at = std::find(list.begin(), list.end(), value);
    return at == list.end() ? -1 : at - list.begin();
  };
  if (const AttributeValue* strings = attributes.find("cats_strings")) {
    const auto* list = std::get_if<std::vector<std::string>>(strings);
    return input.dtype == DType::kString && list != nullptr
               ? place(*list, input.as<std::string>()[index])
               : -1;
  }
  if (input.dtype == DType::kString) return -1;
  std::int64_t number = 0;
  const TensorView one{
      input.dtype,
      {},
      static_cast<const std::byte*>(input.data) + index * bits_of(input.dtype) / 8};
  cast_elements(one, {DType::kInt64, {}, &number}, true);
  return place(attributes.get_ints("cats_int64s"), number);
}

Status one_hot_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const std::int64_t count, category_count(context.attributes()));
  Dims dims = input->dims;
  dims.push_back(count);
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, DType::kFp32, dims));
  std::fill_n(output.as<float>(), output.numel(), 0.0F);
  const bool zeros = context.attributes().get_int("zeros", 1) != 0;
  for (std::int64_t i = 0; i < input->numel(); ++i) {
    const std::int64_t category = category_of(*input, i, context.attributes());
    if (category < 0 && !zeros)
      return nn::op_error("OneHotEncoder",
                          fmt::format("element {}: expected one of the {} categories", i, count));
    if (category >= 0) output.as<float>()[i * count + category] = 1;
  }
  return {};
}

// ---- FeatureVectorizer --------------------------------------------------------------------------

// The columns that each input gives; nothing where the attribute is absent and they keep theirs.
Result<std::optional<Dims>> read_widths(const Attributes& attributes, std::size_t inputs) {
  if (!attributes.has("inputdimensions")) return std::optional<Dims>();
  Dims widths = attributes.get_ints("inputdimensions");
  if (widths.size() != inputs)
    return attribute_error("inputdimensions", fmt::format("expected {} values, one of each input, "
                                                          "found {}",
                                                          inputs, widths.size()));
  for (const std::int64_t width : widths)
    if (width < 0)
      return attribute_error("inputdimensions", fmt::format("expected 0 or more, found {}", width));
  return std::optional(std::move(widths));
}

Status infer_vectorizer(InferContext& context) {
  TESSERA_ASSIGN(const auto widths, read_widths(context.attributes, context.inputs.size()));
  Dim rows = context.fresh_symbol("rows");
  std::optional<Dim> columns(Dim(0));
  for (std::size_t i = 0; i < context.inputs.size(); ++i) {
    TESSERA_TRY(require_same_dtype(context, i, 0));
    const auto& shape = context.inputs[i].type.shape;
    const bool known = shape && !shape->empty() && shape->size() <= 2;
    if (known) rows = shape->size() == 2 ? shape->front() : Dim(1);
    if (!known && !widths) columns.reset();
    if (columns) columns = *columns + (widths ? Dim((*widths)[i]) : shape->back());
  }
  set_output(context, 0, DType::kFp32,
             Shape{rows, columns ? *columns : context.fresh_symbol("features")});
  return {};
}

// Columns that an input lacks are 0, those that it has too many are left out.
Status vectorizer_kernel(KernelContext& context) {
  TESSERA_ASSIGN(auto widths, read_widths(context.attributes(), context.input_count()));
  std::int64_t rows = -1;
  std::int64_t columns = 0;
  for (std::size_t i = 0; i < context.input_count(); ++i) {
    TESSERA_ASSIGN(const TensorView* input, kernel_input(context, i));
    const std::size_t rank = input->dims.size();
    const std::int64_t own = rank == 2 ? input->dims[0] : 1;
    if (rank < 1 || rank > 2 || (rows >= 0 && rows != own))
      return nn::op_error("FeatureVectorizer",
                          fmt::format("expected [{}, features], found {}", rows < 0 ? own : rows,
                                      to_string(input->dims)));
    rows = own;
    columns += widths ? (*widths)[i] : input->dims.back();
  }
  const Dims dims{std::max<std::int64_t>(rows, 0), columns};
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, DType::kFp32, dims));
  std::int64_t first = 0;
  for (std::size_t i = 0; i < context.input_count(); ++i) {
    const TensorView& input = *context.input(i);
    const nn::Reals<float> values(input);
    const std::int64_t own = input.dims.back();
    const std::int64_t width = widths ? (*widths)[i] : own;
    const std::int64_t kept = std::min(own, width);
    for (std::int64_t row = 0; row < dims[0]; ++row) {
      float* to = output.as<float>() + row * columns + first;
      std::copy_n(values.data() + row * own, kept, to);
      std::fill(to + kept, to + width, 0.0F);
    }
    first += width;
  }
  return {};
}

OpSchema feature_op(std::string_view name, DTypeSet types, InferFn infer, KernelFn kernel) {
  OpSchema op;
  op.domain = "ai.onnx.ml";
  op.name = name;
  op.versions = {1};
  op.inputs = {required("X", "T")};
  op.outputs = {required("Y", "T")};
  op.type_variables = {{"T", types}};
  op.structure = Structure::kOther;
  op.infer = infer;
  op.kernel = kernel;
  return op;
}

OpSchema to_floats(OpSchema op) {
  op.outputs[0].type = "tensor(float)";
  op.type_variables.push_back({"tensor(float)", kFp32Type});
  return op;
}

}  // namespace

std::vector<OpSchema> feature_ops() {
  OpSchema extract = feature_op("ArrayFeatureExtractor", kFeatureTypes | kStringType, infer_extract,
                                extract_kernel);
  extract.inputs.push_back(required("Y", "I"));
  extract.outputs[0].name = "Z";
  extract.unspecified = "an index below 0 counts from the end, one out of range is an error";
  extract.type_variables.push_back({"I", kInt64Type});

  OpSchema binarizer =
      feature_op("Binarizer", kFeatureTypes, infer_same_as_first, binarizer_kernel);
  binarizer.attributes = {attr("threshold", AttrType::kFloat)};

  OpSchema scaler = to_floats(feature_op("Scaler", kFeatureTypes, infer_floats, scaler_kernel));
  scaler.attributes = {attr("offset", AttrType::kFloats), attr("scale", AttrType::kFloats)};

  OpSchema imputer = feature_op("Imputer", kFeatureTypes, infer_same_as_first, imputer_kernel);
  imputer.attributes = {attr("imputed_value_floats", AttrType::kFloats),
                        attr("imputed_value_int64s", AttrType::kInts),
                        attr("replaced_value_float", AttrType::kFloat),
                        attr("replaced_value_int64", AttrType::kInt)};

  OpSchema normalizer =
      to_floats(feature_op("Normalizer", kFeatureTypes, infer_normalizer, normalizer_kernel));
  normalizer.attributes = {attr("norm", AttrType::kString)};
  normalizer.unspecified =
      "MAX divides by the largest element, not by the largest absolute value; L2 keeps the signs";

  OpSchema one_hot = to_floats(
      feature_op("OneHotEncoder", kFeatureTypes | kStringType, infer_one_hot, one_hot_kernel));
  one_hot.attributes = {attr("cats_int64s", AttrType::kInts),
                        attr("cats_strings", AttrType::kStrings), attr("zeros", AttrType::kInt)};
  one_hot.unspecified =
      "real numbers are cut towards zero; texts are none of cats_int64s, and numbers none of "
      "cats_strings";

  OpSchema vectorizer = to_floats(
      feature_op("FeatureVectorizer", kFeatureTypes, infer_vectorizer, vectorizer_kernel));
  vectorizer.unspecified =
      "columns that an input lacks of its inputdimensions are 0, those beyond are left out";
  vectorizer.inputs = {variadic("X", "T")};
  vectorizer.attributes = {attr("inputdimensions", AttrType::kInts)};
  return {extract, binarizer, scaler, imputer, normalizer, one_hot, vectorizer};
}

}  // namespace tessera::ops
