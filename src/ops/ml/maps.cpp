// Maps of ai.onnx.ml: ZipMap makes them, CastMap and DictVectorizer read them.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ops/elementwise/cast_text.h"
#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/kernel_util.h"
#include "ops/ml/classes.h"
#include "ops/ml/rows.h"
#include "ops/nn/nn_util.h"
#include "ops/schema_util.h"
#include "ops/sequence/sequence_util.h"

namespace tessera::ops {
namespace {

// The map at input 0; null where the type is not known yet. Error: no map.
Result<const ValueType*> map_type(const InferContext& context) {
  if (!has_input(context, 0)) return input_error(context, 0, "expected a map, found none");
  const ValueType& type = context.inputs[0].type;
  if (type.kind == ValueType::Kind::kMap) return &type;
  if (type.is_tensor() && type.dtype == DType::kUndefined) return nullptr;
  return input_error(context, 0, "expected a map, found " + type.to_string());
}

Result<const RunValue*> map_input(const KernelContext& context, std::string_view op) {
  const RunValue* value = context.value(0);
  if (value != nullptr && value->kind == ValueType::Kind::kMap) return value;
  return nn::op_error(op, "input 0: expected a map, found " + found_kind(value));
}

// ---- ZipMap -------------------------------------------------------------------------------------

Result<Tensor> zip_labels(const Attributes& attributes) {
  return ml::read_labels(attributes, "classlabels_strings", "classlabels_int64s");
}

Status infer_zip(InferContext& context) {
  TESSERA_TRY(require_dtype(context, 0, kFp32Type));
  TESSERA_ASSIGN(const Tensor labels, zip_labels(context.attributes));
  context.outputs[0] = ValueType::sequence(ValueType::map(labels.dtype(), DType::kFp32));
  return {};
}

Status zip_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const Tensor labels, zip_labels(context.attributes()));
  TESSERA_TRY(ml::check_features("ZipMap", static_cast<std::size_t>(labels.numel()), input->dims));
  std::vector<RunValue> maps;
  const auto* scores = input->as<float>();
  for (std::int64_t row = 0; row < ml::rows_of(input->dims); ++row, scores += labels.numel())
    maps.push_back(
        RunValue::map(labels, Tensor::copy_of({DType::kFp32, {labels.numel()}, scores})));
  return context.set_value(0, RunValue::sequence(std::move(maps)));
}

// ---- DictVectorizer -----------------------------------------------------------------------------

Result<Tensor> vocabulary(const Attributes& attributes) {
  return ml::read_labels(attributes, "string_vocabulary", "int64_vocabulary");
}

Status infer_vectorizer(InferContext& context) {
  TESSERA_ASSIGN(const ValueType* map, map_type(context));
  TESSERA_ASSIGN(const Tensor words, vocabulary(context.attributes));
  if (map != nullptr && map->dtype != words.dtype())
    return input_error(context, 0,
                       fmt::format("expected a map with keys of {}, found {}",
                                   to_string(words.dtype()), map->to_string()));
  set_output(context, 0, map == nullptr ? DType::kUndefined : map->element->dtype,
             Shape{Dim(1), Dim(words.numel())});
  return {};
}

// Where each key stands; of equal ones the last.
template <typename Key>
std::map<Key, std::size_t> places_of(std::span<const Key> keys) {
  std::map<Key, std::size_t> places;
  for (std::size_t i = 0; i < keys.size(); ++i) places.insert_or_assign(keys[i], i);
  return places;
}

// The value of each word's key; nothing stays what the output holds already.
template <typename Key>
Status spread(const Tensor& words, const RunValue& map, const MutableTensorView& output) {
  const auto wanted = words.span<Key>();
  const auto places = places_of<Key>(map.elements[0].tensor.span<Key>());
  const TensorView values = map.elements[1].tensor.view();
  return dispatch_elements(output.dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const auto place = places.find(wanted[i]);
      if (place != places.end()) output.as<T>()[i] = values.as<T>()[place->second];
    }
    return {};
  });
}

void clear(const MutableTensorView& output) {
  if (output.dtype == DType::kString)
    std::fill_n(output.as<std::string>(), output.numel(), std::string());
  else
    std::fill_n(static_cast<std::byte*>(output.data), output.numel() * bits_of(output.dtype) / 8,
                std::byte{0});
}

Status vectorizer_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const RunValue* map, map_input(context, "DictVectorizer"));
  TESSERA_ASSIGN(const Tensor words, vocabulary(context.attributes()));
  const DType key = map->elements[0].tensor.dtype();
  if (key != words.dtype())
    return nn::op_error("DictVectorizer", fmt::format("expected keys of {}, found {}",
                                                      to_string(words.dtype()), to_string(key)));
  TESSERA_ASSIGN(const MutableTensorView output,
                 context.output(0, map->elements[1].tensor.dtype(), {1, words.numel()}));
  clear(output);
  return key == DType::kString ? spread<std::string>(words, *map, output)
                               : spread<std::int64_t>(words, *map, output);
}

// ---- CastMap ------------------------------------------------------------------------------------

struct MapForm {
  DType to = DType::kFp32;
  std::optional<std::int64_t> width;  // sparse: of the result
};

Result<MapForm> form_of(const Attributes& attributes) {
  MapForm form;
  const std::string to = attributes.get_string("cast_to", "TO_FLOAT");
  if (to == "TO_STRING") {
    form.to = DType::kString;
  } else if (to == "TO_INT64") {
    form.to = DType::kInt64;
  } else if (to != "TO_FLOAT") {
    return attribute_error(
        "cast_to", fmt::format("expected 'TO_FLOAT', 'TO_STRING' or 'TO_INT64', found '{}'", to));
  }
  const std::string name = attributes.get_string("map_form", "DENSE");
  if (name != "DENSE" && name != "SPARSE")
    return attribute_error("map_form",
                           fmt::format("expected 'DENSE' or 'SPARSE', found '{}'", name));
  if (name == "DENSE") return form;
  form.width = attributes.get_int("max_map", 1);
  if (*form.width >= 1) return form;
  return attribute_error("max_map", fmt::format("expected 1 or more, found {}", *form.width));
}

Status infer_cast_map(InferContext& context) {
  TESSERA_ASSIGN(const ValueType* map, map_type(context));
  TESSERA_ASSIGN(const MapForm form, form_of(context.attributes));
  if (map != nullptr && map->dtype != DType::kInt64)
    return input_error(context, 0, "expected a map with keys of int64, found " + map->to_string());
  set_output(context, 0, form.to,
             Shape{Dim(1), form.width ? Dim(*form.width) : context.fresh_symbol("entries")});
  return {};
}

Result<Tensor> cast_values(const Tensor& values, DType to) {
  if (values.dtype() == to) return values;
  TESSERA_ASSIGN(Tensor result, Tensor::zeros(to, values.dims()));
  if (to == DType::kString) {
    TESSERA_TRY(cast_to_strings(values.view(), result.mutable_view()));
  } else if (values.dtype() == DType::kString) {
    TESSERA_TRY(cast_from_strings(values.view(), result.mutable_view(), true));
  } else {
    cast_elements(values.view(), result.mutable_view(), true);
  }
  return result;
}

Status cast_map_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const RunValue* map, map_input(context, "CastMap"));
  TESSERA_ASSIGN(const MapForm form, form_of(context.attributes()));
  const Tensor& key_tensor = map->elements[0].tensor;
  if (key_tensor.dtype() != DType::kInt64)
    return nn::op_error(
        "CastMap", fmt::format("expected keys of int64, found {}", to_string(key_tensor.dtype())));
  const auto places = places_of<std::int64_t>(key_tensor.span<std::int64_t>());
  TESSERA_ASSIGN(const Tensor values, cast_values(map->elements[1].tensor, form.to));
  const std::int64_t width = form.width.value_or(static_cast<std::int64_t>(places.size()));
  for (const auto& [key, place] : places)
    if (form.width && (key < 0 || key >= width))
      return nn::op_error("CastMap",
                          fmt::format("expected keys from 0 to {}, found {}", width - 1, key));
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, form.to, {1, width}));
  clear(output);
  return dispatch_elements(form.to, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    std::int64_t next = 0;  // of a dense result, in the order of the keys
    for (const auto& [key, place] : places)
      output.as<T>()[form.width ? key : next++] = values.view().as<T>()[place];
    return {};
  });
}

OpSchema map_op(std::string_view name, InferFn infer, KernelFn kernel) {
  OpSchema op;
  op.domain = "ai.onnx.ml";
  op.name = name;
  op.versions = {1};
  op.inputs = {required("X", "")};
  op.outputs = {required("Y", "")};
  op.structure = Structure::kOther;
  op.infer = infer;
  op.kernel = kernel;
  return op;
}

}  // namespace

std::vector<OpSchema> map_ops() {
  OpSchema zip = map_op("ZipMap", infer_zip, zip_kernel);
  zip.outputs[0].name = "Z";
  zip.attributes = {attr("classlabels_int64s", AttrType::kInts),
                    attr("classlabels_strings", AttrType::kStrings)};

  OpSchema vectorizer = map_op("DictVectorizer", infer_vectorizer, vectorizer_kernel);
  vectorizer.attributes = {attr("int64_vocabulary", AttrType::kInts),
                           attr("string_vocabulary", AttrType::kStrings)};
  vectorizer.unspecified =
      "keys that are not in the vocabulary are left out; of equal keys the last one counts";

  OpSchema cast = map_op("CastMap", infer_cast_map, cast_map_kernel);
  cast.attributes = {attr("cast_to", AttrType::kString), attr("map_form", AttrType::kString),
                     attr("max_map", AttrType::kInt)};
  cast.unspecified =
      "values are cast as Cast does; in a sparse tensor keys that are missing are 0 or empty, and "
      "keys below 0 are an error; of equal keys the last one counts";
  cast.data_dependent_shape = true;
  return {zip, vectorizer, cast};
}

}  // namespace tessera::ops
