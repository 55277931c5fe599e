// Cast and CastLike.

#include <fmt/format.h>

#include "base/float_convert.h"
#include "ops/elementwise/cast_text.h"
#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/kernel_util.h"
#include "ops/schema_util.h"
#include "ops/upgrade_util.h"

namespace tessera::ops {
namespace {

constexpr DTypeSet kCastTypes = kAllTypes & ~kComplexTypes;

// The largest number of elements of a packed type in whole bytes: pieces of a parallel loop start
// on a byte.
constexpr std::int64_t kElementsPerByte = 4;

// Elements [begin, end) of a view; `begin` is at a whole byte.
template <typename View>
View piece(const View& view, std::int64_t begin, std::int64_t end) {
  View out = view;
  out.dims = {end - begin};
  const std::int64_t offset_bytes = begin * bits_of(view.dtype) / 8;
  if constexpr (std::is_same_v<View, TensorView>) {
    out.data = static_cast<const std::byte*>(view.data) + offset_bytes;
  } else {
    out.data = static_cast<std::byte*>(view.data) + offset_bytes;
  }
  return out;
}

Result<E8M0Rounding> rounding_of(const Attributes& attributes) {
  const std::string mode = attributes.get_string("round_mode", "up");
  if (mode == "up") return E8M0Rounding::kUp;
  if (mode == "down") return E8M0Rounding::kDown;
  if (mode == "nearest") return E8M0Rounding::kNearest;
  return attribute_error("round_mode",
                         fmt::format("expected 'up', 'down' or 'nearest', found '{}'", mode));
}

Status cast_to(KernelContext& context, DType dtype) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  const bool saturate = context.attributes().get_int("saturate", 1) != 0;
  TESSERA_ASSIGN(const E8M0Rounding rounding, rounding_of(context.attributes()));
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, dtype, input->dims));
  if (dtype == DType::kString) return cast_to_strings(*input, output);
  if (input->dtype == DType::kString) return cast_from_strings(*input, output, saturate);
  if (input->dtype == dtype) {
    copy_elements(*input, output);
    return {};
  }
  const std::int64_t count = input->numel();
  const std::int64_t groups = (count + kElementsPerByte - 1) / kElementsPerByte;
  context.parallel_for(
      groups, kGrain / kElementsPerByte, [&](std::int64_t begin, std::int64_t end) {
        const std::int64_t first = begin * kElementsPerByte;
        const std::int64_t last = std::min(end * kElementsPerByte, count);
        cast_elements(piece(*input, first, last), piece(output, first, last), saturate, rounding);
      });
  return {};
}

// The dtype that attribute `to` names; kUndefined where it names none.
DType target_of(const Attributes& attributes) {
  const std::int64_t to = attributes.get_int("to", 0);
  return to > 0 && to < kDTypeCount ? static_cast<DType>(to) : DType::kUndefined;
}

Status cast_kernel(KernelContext& context) {
  return cast_to(context, target_of(context.attributes()));
}

Status cast_like_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* like, kernel_input(context, 1));
  return cast_to(context, like->dtype);
}

// Elements that are known stay so between int32, int64 and bool; a cast to bool must know whether
// each is 0.
std::optional<DimTensor> cast_value(const InferInput& input, DType to) {
  auto value = known_value(input);
  if (!value) return std::nullopt;
  if (to == DType::kInt64) return value;
  for (Dim& element : value->elements) {
    const auto number = element.constant();
    if (to == DType::kInt32) {
      if (number && *number != static_cast<std::int32_t>(*number)) return std::nullopt;
    } else if (to == DType::kBool && number) {
      element = Dim(*number != 0 ? 1 : 0);
    } else {
      return std::nullopt;
    }
  }
  return value;
}

Status infer_cast_to(InferContext& context, DType dtype) {
  TESSERA_TRY(rounding_of(context.attributes).map([](E8M0Rounding) {}));
  TESSERA_ASSIGN(const InferInput* input, tensor_input(context, 0));
  set_output(context, 0, dtype, input->type.shape);
  set_value(context, 0, cast_value(*input, dtype));
  return {};
}

Status infer_cast(InferContext& context) {
  const DType dtype = target_of(context.attributes);
  if (dtype == DType::kUndefined || (kCastTypes & dtype_bit(dtype)) == 0) {
    return attribute_error("to",
                           fmt::format("expected the number of a dtype that Cast gives, found {}",
                                       context.attributes.get_int("to", 0)));
  }
  return infer_cast_to(context, dtype);
}

Status infer_cast_like(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* like, tensor_input(context, 1));
  return infer_cast_to(context, like->type.dtype);
}

// Version 1 names the dtype in words.
Status upgrade_cast(UpgradeNode& node, int /*opset*/, UpgradeBuilder& /*builder*/) {
  const AttributeValue* to = node.attributes.find("to");
  const auto* word = to != nullptr ? std::get_if<std::string>(to) : nullptr;
  if (word == nullptr) return {};
  static constexpr std::pair<std::string_view, DType> kWords[] = {
      {"FLOAT", DType::kFp32},    {"UINT8", DType::kUInt8},   {"INT8", DType::kInt8},
      {"UINT16", DType::kUInt16}, {"INT16", DType::kInt16},   {"INT32", DType::kInt32},
      {"INT64", DType::kInt64},   {"STRING", DType::kString}, {"BOOL", DType::kBool},
      {"FLOAT16", DType::kFp16},  {"DOUBLE", DType::kFp64},   {"UINT32", DType::kUInt32},
      {"UINT64", DType::kUInt64},
  };
  for (const auto& [name, dtype] : kWords) {
    if (name != *word) continue;
    node.attributes.set("to", static_cast<std::int64_t>(dtype));
    return {};
  }
  return attribute_error(
      "to", fmt::format("expected the name of a dtype such as 'FLOAT', found '{}'", *word));
}

}  // namespace

std::vector<OpSchema> cast_ops() {
  OpSchema cast;
  cast.name = "Cast";
  cast.versions = {1, 6, 9, 13, 19, 21, 23, 24, 25, 28};
  cast.inputs = {required("input", "T1")};
  cast.outputs = {required("output", "T2")};
  cast.attributes = {required_attr("to", AttrType::kInt), attr("saturate", AttrType::kInt),
                     attr("round_mode", AttrType::kString)};
  cast.type_variables = {{"T1", kCastTypes}, {"T2", kCastTypes}};
  cast.structure = Structure::kElementwise;
  cast.infer = infer_cast;
  cast.kernel = cast_kernel;
  cast.upgrades = {{1, 1, upgrade_cast}};

  cast.unspecified =
      "real numbers that an integer type cannot hold are saturated, but keep their lowest bits in "
      "2 and 4 bits, and NaN is 0; a negative number is NaN in fp8_e8m0, -0 is as 0; a text that "
      "is no number is an error, and one of a fraction is cut to an integer";
  OpSchema like = cast;
  like.name = "CastLike";
  like.versions = {15, 19, 21, 23, 24, 25};
  like.inputs = {required("input", "T1"), required("target_type", "T2")};
  like.attributes = {attr("saturate", AttrType::kInt), attr("round_mode", AttrType::kString)};
  like.infer = infer_cast_like;
  like.kernel = cast_like_kernel;
  like.upgrades = {};
  return {cast, like};
}

}  // namespace tessera::ops
