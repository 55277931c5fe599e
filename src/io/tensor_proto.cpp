#include "io/tensor_proto.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <utility>

#include "base/float_convert.h"
#include "io/bool_bytes.h"
#include "io/onnx.pb.h"

namespace tessera::io {
namespace {

static_assert(std::endian::native == std::endian::little, "raw_data is little endian");

enum class Field { kNone, kFloat, kInt32, kInt64, kDouble, kUInt64, kString };

struct FieldUse {
  Field field;
  const char* name;
  int size;
};

std::array<FieldUse, 6> fields_of(const onnx::TensorProto& proto) {
  return {{{Field::kFloat, "float_data", proto.float_data_size()},
           {Field::kInt32, "int32_data", proto.int32_data_size()},
           {Field::kInt64, "int64_data", proto.int64_data_size()},
           {Field::kDouble, "double_data", proto.double_data_size()},
           {Field::kUInt64, "uint64_data", proto.uint64_data_size()},
           {Field::kString, "string_data", proto.string_data_size()}}};
}

// The typed field that ONNX gives to a data type.
Field field_for(DType dtype) {
  switch (dtype) {
    case DType::kFp32:
    case DType::kComplex64: return Field::kFloat;
    case DType::kFp64:
    case DType::kComplex128: return Field::kDouble;
    case DType::kInt64: return Field::kInt64;
    case DType::kUInt32:
    case DType::kUInt64: return Field::kUInt64;
    case DType::kString: return Field::kString;
    default: return Field::kInt32;
  }
}

// "fp32[2, 3]".
std::string type_text(DType dtype, const Dims& dims) {
  return std::string(to_string(dtype)) + to_string(to_shape(dims));
}

Result<DType> dtype_of(const onnx::TensorProto& proto) {
  const int code = proto.data_type();
  if (code == onnx::TensorProto::UNDEFINED) {
    return fail(ErrorCode::kInvalidArgument, "the data type of the tensor is undefined");
  }
  if (code < 0 || code >= kDTypeCount) {
    return fail(ErrorCode::kUnimplemented, "data type " + std::to_string(code) +
                                               " is not known; expected 1 to " +
                                               std::to_string(kDTypeCount - 1));
  }
  return static_cast<DType>(code);
}

// Whether the elements stand in the typed field of `dtype`, else in raw_data. Errors: two fields in
// use, or the wrong one.
Result<bool> uses_typed_field(const onnx::TensorProto& proto, DType dtype) {
  const FieldUse* used = nullptr;
  const auto fields = fields_of(proto);
  for (const FieldUse& use : fields) {
    if (use.size == 0) continue;
    if (used != nullptr) {
      return fail(ErrorCode::kInvalidArgument,
                  std::string("expected one data field, found ") + used->name + " and " + use.name);
    }
    used = &use;
  }
  if (used == nullptr) return dtype == DType::kString && proto.raw_data().empty();
  if (!proto.raw_data().empty()) {
    return fail(ErrorCode::kInvalidArgument,
                std::string("expected one data field, found raw_data and ") + used->name);
  }
  if (used->field != field_for(dtype)) {
    const auto wanted = std::find_if(fields.begin(), fields.end(), [&](const FieldUse& use) {
      return use.field == field_for(dtype);
    });
    return fail(ErrorCode::kInvalidArgument, std::string("expected ") + wanted->name + " for " +
                                                 std::string(to_string(dtype)) + ", found " +
                                                 used->name);
  }
  return true;
}

// Entries of the typed field: two for a complex element; one for each byte of a packed type, but
// for each element of those of 6 bits.
std::int64_t entries_of(DType dtype, const Dims& dims) {
  if (is_complex(dtype)) return 2 * numel(dims);
  const int bits = bits_of(dtype);
  return bits == 2 || bits == 4 ? nbytes(dtype, dims) : numel(dims);
}

Status check_entries(DType dtype, const Dims& dims, const char* field, int found) {
  const std::int64_t expected = entries_of(dtype, dims);
  if (expected == found) return {};
  return fail(ErrorCode::kInvalidArgument,
              "expected " + std::to_string(expected) + " elements of " + field + " for " +
                  type_text(dtype, dims) + ", found " + std::to_string(found));
}

// int32_data into a type of at most 32 bits. Producers write bit patterns with and without sign
// extension; both fit.
template <typename T>
Status narrow(const onnx::TensorProto& proto, DType dtype, void* target) {
  constexpr std::int64_t kBits = 8 * sizeof(T);
  constexpr std::int64_t kLow = -(std::int64_t{1} << (kBits - 1));
  constexpr std::int64_t kHigh = (std::int64_t{1} << kBits) - 1;
  T* elements = static_cast<T*>(target);
  for (int i = 0; i < proto.int32_data_size(); ++i) {
    const std::int64_t value = proto.int32_data(i);
    if (value < kLow || value > kHigh) {
      return fail(ErrorCode::kOutOfRange, "int32_data[" + std::to_string(i) + "] is " +
                                              std::to_string(value) + ", which does not fit " +
                                              std::string(to_string(dtype)));
    }
    elements[i] = static_cast<T>(value);
  }
  return {};
}

// int32_data into a type of 6 bits, an element each.
Status narrow_to_6_bits(const onnx::TensorProto& proto, DType dtype, void* target) {
  for (int i = 0; i < proto.int32_data_size(); ++i) {
    const std::int32_t value = proto.int32_data(i);
    if (value < 0 || value > 0x3F) {
      return fail(ErrorCode::kOutOfRange, "int32_data[" + std::to_string(i) + "] is " +
                                              std::to_string(value) + ", which does not fit " +
                                              std::string(to_string(dtype)));
    }
    packed_set(target, i, 6, static_cast<std::uint8_t>(value));
  }
  return {};
}

Status fill_from_int32(const onnx::TensorProto& proto, DType dtype, void* target) {
  switch (bits_of(dtype)) {
    case 6: return narrow_to_6_bits(proto, dtype, target);
    case 32: return narrow<std::int32_t>(proto, dtype, target);
    case 16: return narrow<std::uint16_t>(proto, dtype, target);
    default: return narrow<std::uint8_t>(proto, dtype, target);
  }
}

Status fill_from_uint64(const onnx::TensorProto& proto, DType dtype, void* target) {
  const auto& data = proto.uint64_data();
  if (dtype == DType::kUInt64) {
    std::copy(data.begin(), data.end(), static_cast<std::uint64_t*>(target));
    return {};
  }
  for (int i = 0; i < data.size(); ++i) {
    if (data[i] > UINT32_MAX) {
      return fail(ErrorCode::kOutOfRange, "uint64_data[" + std::to_string(i) + "] is " +
                                              std::to_string(data[i]) +
                                              ", which does not fit uint32");
    }
    static_cast<std::uint32_t*>(target)[i] = static_cast<std::uint32_t>(data[i]);
  }
  return {};
}

Status fill_from_field(const onnx::TensorProto& proto, DType dtype, void* target) {
  switch (field_for(dtype)) {
    case Field::kFloat:
      std::copy(proto.float_data().begin(), proto.float_data().end(), static_cast<float*>(target));
      return {};
    case Field::kDouble:
      std::copy(proto.double_data().begin(), proto.double_data().end(),
                static_cast<double*>(target));
      return {};
    case Field::kInt64:
      std::copy(proto.int64_data().begin(), proto.int64_data().end(),
                static_cast<std::int64_t*>(target));
      return {};
    case Field::kString:
      std::copy(proto.string_data().begin(), proto.string_data().end(),
                static_cast<std::string*>(target));
      return {};
    case Field::kUInt64: return fill_from_uint64(proto, dtype, target);
    default: return fill_from_int32(proto, dtype, target);
  }
}

Result<Tensor> from_typed_field(const onnx::TensorProto& proto, DType dtype, Dims dims) {
  for (const FieldUse& use : fields_of(proto)) {
    if (use.field == field_for(dtype)) TESSERA_TRY(check_entries(dtype, dims, use.name, use.size));
  }
  TESSERA_ASSIGN(Tensor tensor, Tensor::zeros(dtype, std::move(dims)));
  TESSERA_TRY(fill_from_field(proto, dtype, tensor.mutable_data()));
  return normalized_bools(std::move(tensor));
}

struct TensorHead {
  DType dtype;
  Dims dims;
  bool typed_field;
};

// Everything that can be wrong with a tensor before its elements are read.
Result<TensorHead> check_head(const onnx::TensorProto& proto) {
  if (proto.data_location() != onnx::TensorProto::DEFAULT &&
      proto.data_location() != onnx::TensorProto::EXTERNAL) {
    return fail(ErrorCode::kInvalidArgument,
                "expected a known data location, found " + std::to_string(proto.data_location()));
  }
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) {
    return fail(ErrorCode::kFailedPrecondition,
                "expected data inside of the tensor, found external data");
  }
  if (proto.has_segment()) {
    return fail(ErrorCode::kUnimplemented, "tensors in segments are not supported");
  }
  TESSERA_ASSIGN(const DType dtype, dtype_of(proto));
  Dims dims(proto.dims().begin(), proto.dims().end());
  TESSERA_ASSIGN(const std::int64_t size_bytes, checked_nbytes(dtype, dims));
  TESSERA_ASSIGN(const bool typed_field, uses_typed_field(proto, dtype));
  if (typed_field) return TensorHead{dtype, std::move(dims), true};
  if (dtype == DType::kString) {
    return fail(ErrorCode::kInvalidArgument, "expected string_data for string, found raw_data");
  }
  const auto found = static_cast<std::int64_t>(proto.raw_data().size());
  if (found != size_bytes) {
    return fail(ErrorCode::kInvalidArgument, "expected " + std::to_string(size_bytes) +
                                                 " bytes for " + type_text(dtype, dims) +
                                                 ", found " + std::to_string(found));
  }
  return TensorHead{dtype, std::move(dims), false};
}

}  // namespace

std::string_view data_field_of(const onnx::TensorProto& proto) {
  if (!proto.raw_data().empty()) return "raw_data";
  for (const FieldUse& use : fields_of(proto)) {
    if (use.size > 0) return use.name;
  }
  return {};
}

Result<Tensor> tensor_from_proto(const onnx::TensorProto& proto) {
  TESSERA_ASSIGN(TensorHead head, check_head(proto));
  if (head.typed_field) return from_typed_field(proto, head.dtype, std::move(head.dims));
  TESSERA_ASSIGN(Tensor tensor, Tensor::zeros(head.dtype, std::move(head.dims)));
  if (!proto.raw_data().empty()) {
    std::memcpy(tensor.mutable_data(), proto.raw_data().data(), proto.raw_data().size());
  }
  return normalized_bools(std::move(tensor));
}

Result<Tensor> tensor_from_proto(onnx::TensorProto&& proto) {
  TESSERA_ASSIGN(TensorHead head, check_head(proto));
  if (head.typed_field) return from_typed_field(proto, head.dtype, std::move(head.dims));
  auto owner = std::make_shared<const std::string>(std::move(*proto.mutable_raw_data()));
  const void* data = owner->data();
  return normalized_bools(Tensor::borrow(head.dtype, std::move(head.dims), data, std::move(owner)));
}

void tensor_to_proto(const Tensor& tensor, std::string_view name, onnx::TensorProto& proto) {
  proto.Clear();
  proto.set_name(std::string(name));
  proto.set_data_type(static_cast<int>(tensor.dtype()));
  for (const std::int64_t dim : tensor.dims()) proto.add_dims(dim);
  if (tensor.dtype() == DType::kString) {
    for (const std::string& text : tensor.span<std::string>()) proto.add_string_data(text);
  } else {
    proto.set_raw_data(tensor.data(), static_cast<std::size_t>(tensor.nbytes()));
  }
}

}  // namespace tessera::io
