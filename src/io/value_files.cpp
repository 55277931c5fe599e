// Sequences, optionals and maps, and the files that hold one message.

#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "base/file.h"
#include "base/float_convert.h"
#include "io/onnx.pb.h"
#include "io/tensor_proto.h"

namespace tessera::io {
namespace {

using Kind = ValueType::Kind;

tl::unexpected<Error> unsupported_sparse() {
  return fail(ErrorCode::kUnimplemented, "sparse tensors are not supported in data files");
}

template <typename Message>
Result<Message> parse_message(std::span<const std::byte> bytes, std::string_view name) {
  if (bytes.size() > INT32_MAX) {
    return fail(ErrorCode::kOutOfRange,
                "expected at most 2147483647 bytes, found " + std::to_string(bytes.size()));
  }
  Message message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return fail(ErrorCode::kDataLoss,
                "the file does not hold a whole " + std::string(name) + " message");
  }
  return message;
}

// Sequences and optionals have few fields: others say that the file holds another message, which
// would read as an empty value.
template <typename Message>
Result<Message> parse_collection(std::span<const std::byte> bytes, std::string_view name) {
  TESSERA_ASSIGN(Message message, parse_message<Message>(bytes, name));
  if (message.unknown_fields().empty()) return message;
  return fail(ErrorCode::kInvalidArgument,
              "expected the message " + std::string(name) + ", found fields that it does not have");
}

template <typename Message>
Status write_message(const std::filesystem::path& path, const Message& message) {
  std::string bytes;
  if (message.ByteSizeLong() > INT32_MAX || !message.SerializeToString(&bytes)) {
    return fail(ErrorCode::kOutOfRange,
                "cannot write '" + path.string() + "': the message exceeds 2147483647 bytes");
  }
  return write_file_atomically(path, bytes);
}

// Appends what each message of `field` holds; `convert` gives a Result<RunValue>.
template <typename Field, typename Convert>
Status append_elements(Field& field, RunValue& into, const Convert& convert) {
  for (int i = 0; i < field.size(); ++i) {
    auto element = convert(std::move(*field.Mutable(i)));
    if (!element) {
      return tl::unexpected(in_context(std::move(element).error(),
                                       "element " + std::to_string(into.elements.size())));
    }
    into.elements.push_back(*std::move(element));
  }
  return {};
}

Result<RunValue> value_from_tensor(onnx::TensorProto&& proto) {
  TESSERA_ASSIGN(Tensor tensor, tensor_from_proto(std::move(proto)));
  return RunValue::of(std::move(tensor));
}

// The type of the elements, where the declared one is of that kind and has one.
const ValueType* element_type(const ValueType* type, Kind kind) {
  return type != nullptr && type->kind == kind ? type->element.get() : nullptr;
}

void to_proto(const RunValue& value, const ValueType* type, onnx::SequenceProto& proto);
void to_proto(const RunValue& value, const ValueType* type, onnx::OptionalProto& proto);

// One message for each value, as ONNX's own writer has it.
void to_proto(const RunValue& value, onnx::MapProto& proto) {
  const Tensor& keys = value.elements[0].tensor;
  const Tensor& values = value.elements[1].tensor;
  proto.set_key_type(static_cast<int>(keys.dtype()));
  if (keys.dtype() == DType::kString) {
    for (const std::string& key : keys.span<std::string>()) proto.add_string_keys(key);
  } else {
    for (const std::int64_t key : to_int64_vector(keys.view())) proto.add_keys(key);
  }
  proto.mutable_values()->set_elem_type(onnx::SequenceProto::TENSOR);
  const auto element_bytes = static_cast<std::int64_t>(sizeof(std::string));
  const std::int64_t step =
      values.dtype() == DType::kString ? element_bytes : bits_of(values.dtype()) / 8;
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    const Tensor one = Tensor::borrow(
        values.dtype(), {}, static_cast<const std::byte*>(values.data()) + i * step, nullptr);
    tensor_to_proto(one, "", *proto.mutable_values()->add_tensor_values());
  }
}

void to_proto(const RunValue& value, const ValueType* type, onnx::SequenceProto& proto) {
  const ValueType* declared = element_type(type, Kind::kSequence);
  const Kind kind = !value.elements.empty() ? value.elements.front().kind
                    : declared != nullptr   ? declared->kind
                                            : Kind::kTensor;
  proto.set_elem_type(kind == Kind::kTensor     ? onnx::SequenceProto::TENSOR
                      : kind == Kind::kSequence ? onnx::SequenceProto::SEQUENCE
                      : kind == Kind::kMap      ? onnx::SequenceProto::MAP
                                                : onnx::SequenceProto::OPTIONAL);
  for (const RunValue& element : value.elements) {
    TESSERA_CHECK(element.kind == kind);
    switch (kind) {
      case Kind::kTensor: tensor_to_proto(element.tensor, "", *proto.add_tensor_values()); break;
      case Kind::kSequence: to_proto(element, declared, *proto.add_sequence_values()); break;
      case Kind::kOptional: to_proto(element, declared, *proto.add_optional_values()); break;
      case Kind::kMap: to_proto(element, *proto.add_map_values()); break;
    }
  }
}

void to_proto(const RunValue& value, const ValueType* type, onnx::OptionalProto& proto) {
  if (value.elements.empty()) {
    proto.set_elem_type(onnx::OptionalProto::UNDEFINED);
    return;
  }
  const RunValue& element = value.elements.front();
  const ValueType* declared = element_type(type, Kind::kOptional);
  switch (element.kind) {
    case Kind::kTensor:
      proto.set_elem_type(onnx::OptionalProto::TENSOR);
      return tensor_to_proto(element.tensor, "", *proto.mutable_tensor_value());
    case Kind::kSequence:
      proto.set_elem_type(onnx::OptionalProto::SEQUENCE);
      return to_proto(element, declared, *proto.mutable_sequence_value());
    case Kind::kOptional:
      proto.set_elem_type(onnx::OptionalProto::OPTIONAL);
      return to_proto(element, declared, *proto.mutable_optional_value());
    case Kind::kMap:
      proto.set_elem_type(onnx::OptionalProto::MAP);
      return to_proto(element, *proto.mutable_map_value());
  }
}

Result<RunValue> sequence_from_proto(onnx::SequenceProto&& proto, const ValueType* type);
Result<RunValue> optional_from_proto(onnx::OptionalProto&& proto, const ValueType* type);

Result<Tensor> keys_from_proto(const onnx::MapProto& proto) {
  const auto key_type = static_cast<DType>(proto.key_type());
  if (proto.key_type() == static_cast<int>(DType::kString)) {
    const std::vector<std::string> keys(proto.string_keys().begin(), proto.string_keys().end());
    return Tensor::of<std::string>(DType::kString, {proto.string_keys_size()}, keys);
  }
  if (proto.key_type() <= 0 || proto.key_type() >= kDTypeCount || !is_integer(key_type) ||
      bits_of(key_type) < 8)
    return fail(ErrorCode::kInvalidArgument,
                "expected keys of an integer type or strings, found type code " +
                    std::to_string(proto.key_type()));
  const std::vector<std::int64_t> keys(proto.keys().begin(), proto.keys().end());
  TESSERA_ASSIGN(Tensor narrow, Tensor::zeros(key_type, {proto.keys_size()}));
  cast_elements({DType::kInt64, {proto.keys_size()}, keys.data()}, narrow.mutable_view(), true);
  return narrow;
}

// One tensor of one element for each key: side by side. Where there are none, only the declared
// type says what they would be.
Result<Tensor> values_from_proto(onnx::SequenceProto&& proto, std::int64_t count, DType declared) {
  TESSERA_ASSIGN(const RunValue list, sequence_from_proto(std::move(proto), nullptr));
  const auto found = static_cast<std::int64_t>(list.elements.size());
  if (found != count)
    return fail(
        ErrorCode::kInvalidArgument,
        "expected " + std::to_string(count) + " values of a map, found " + std::to_string(found));
  const DType dtype = found == 0 ? declared : list.elements[0].tensor.dtype();
  TESSERA_ASSIGN(Tensor values, Tensor::zeros(dtype, {count}));
  for (std::int64_t i = 0; i < count; ++i) {
    const RunValue& element = list.elements[static_cast<std::size_t>(i)];
    const bool is_whole = dtype == DType::kString || bits_of(dtype) >= 8;
    if (!element.is_tensor() || element.tensor.dtype() != dtype || element.tensor.numel() != 1 ||
        !is_whole)
      return fail(ErrorCode::kInvalidArgument,
                  "expected single elements of one type as the "
                  "values of a map, found another value at " +
                      std::to_string(i));
    if (dtype == DType::kString) {
      static_cast<std::string*>(values.mutable_data())[i] = element.tensor.span<std::string>()[0];
    } else {
      const std::size_t size = static_cast<std::size_t>(bits_of(dtype)) / 8;
      std::memcpy(
          static_cast<std::byte*>(values.mutable_data()) + static_cast<std::size_t>(i) * size,
          element.tensor.data(), size);
    }
  }
  return values;
}

Result<RunValue> map_from_proto(onnx::MapProto&& proto, const ValueType* type) {
  const ValueType* value = element_type(type, Kind::kMap);
  TESSERA_ASSIGN(Tensor keys, keys_from_proto(proto));
  TESSERA_ASSIGN(Tensor values, values_from_proto(std::move(*proto.mutable_values()), keys.numel(),
                                                  value == nullptr ? DType::kFp32 : value->dtype));
  return RunValue::map(std::move(keys), std::move(values));
}

Result<RunValue> sequence_from_proto(onnx::SequenceProto&& proto, const ValueType* type) {
  if (proto.sparse_tensor_values_size() != 0) return unsupported_sparse();
  const ValueType* declared = element_type(type, Kind::kSequence);
  const auto typed = [declared]<typename Proto>(
                         Result<RunValue> (*convert)(Proto&&, const ValueType*)) {
    return [declared, convert](Proto&& element) { return convert(std::move(element), declared); };
  };
  RunValue sequence = RunValue::sequence({});
  TESSERA_TRY(append_elements(*proto.mutable_tensor_values(), sequence, value_from_tensor));
  TESSERA_TRY(
      append_elements(*proto.mutable_sequence_values(), sequence, typed(sequence_from_proto)));
  TESSERA_TRY(
      append_elements(*proto.mutable_optional_values(), sequence, typed(optional_from_proto)));
  TESSERA_TRY(append_elements(*proto.mutable_map_values(), sequence, typed(map_from_proto)));
  return sequence;
}

Result<RunValue> optional_from_proto(onnx::OptionalProto&& proto, const ValueType* type) {
  if (proto.has_sparse_tensor_value()) return unsupported_sparse();
  const ValueType* declared = element_type(type, Kind::kOptional);
  RunValue optional = RunValue::optional({});
  if (proto.has_tensor_value()) {
    TESSERA_ASSIGN(auto element, value_from_tensor(std::move(*proto.mutable_tensor_value())));
    optional.elements.push_back(std::move(element));
  } else if (proto.has_sequence_value()) {
    TESSERA_ASSIGN(auto element,
                   sequence_from_proto(std::move(*proto.mutable_sequence_value()), declared));
    optional.elements.push_back(std::move(element));
  } else if (proto.has_optional_value()) {
    TESSERA_ASSIGN(auto element,
                   optional_from_proto(std::move(*proto.mutable_optional_value()), declared));
    optional.elements.push_back(std::move(element));
  } else if (proto.has_map_value()) {
    TESSERA_ASSIGN(auto element, map_from_proto(std::move(*proto.mutable_map_value()), declared));
    optional.elements.push_back(std::move(element));
  }
  return optional;
}

Result<RunValue> parse_value(std::span<const std::byte> bytes, const ValueType& type) {
  switch (type.kind) {
    case Kind::kTensor: {
      TESSERA_ASSIGN(auto proto, parse_message<onnx::TensorProto>(bytes, "TensorProto"));
      return value_from_tensor(std::move(proto));
    }
    case Kind::kSequence: {
      TESSERA_ASSIGN(auto proto, parse_collection<onnx::SequenceProto>(bytes, "SequenceProto"));
      return sequence_from_proto(std::move(proto), &type);
    }
    case Kind::kOptional: {
      TESSERA_ASSIGN(auto proto, parse_collection<onnx::OptionalProto>(bytes, "OptionalProto"));
      return optional_from_proto(std::move(proto), &type);
    }
    case Kind::kMap: {
      TESSERA_ASSIGN(auto proto, parse_collection<onnx::MapProto>(bytes, "MapProto"));
      return map_from_proto(std::move(proto), &type);
    }
  }
  return fail(ErrorCode::kInternal, "a value of an unknown kind");
}

}  // namespace

Result<RunValue> read_value_pb(const std::filesystem::path& path, const ValueType& type) {
  TESSERA_ASSIGN(const auto file, MappedFile::open(path));  // its errors name the path
  auto value = parse_value(file->bytes(), type);
  if (!value) return tl::unexpected(in_context(std::move(value).error(), path.string()));
  return value;
}

Result<Tensor> read_tensor_pb(const std::filesystem::path& path) {
  TESSERA_ASSIGN(RunValue value, read_value_pb(path, ValueType()));
  return std::move(value.tensor);
}

Status write_tensor_pb(const std::filesystem::path& path, const Tensor& tensor,
                       std::string_view name) {
  onnx::TensorProto proto;
  tensor_to_proto(tensor, name, proto);
  return write_message(path, proto);
}

Status write_value_pb(const std::filesystem::path& path, const RunValue& value,
                      const ValueType& type, std::string_view name) {
  if (value.kind == Kind::kTensor) return write_tensor_pb(path, value.tensor, name);
  if (value.kind == Kind::kSequence) {
    onnx::SequenceProto proto;
    proto.set_name(std::string(name));
    to_proto(value, &type, proto);
    return write_message(path, proto);
  }
  if (value.kind == Kind::kMap) {
    onnx::MapProto proto;
    proto.set_name(std::string(name));
    to_proto(value, proto);
    return write_message(path, proto);
  }
  onnx::OptionalProto proto;
  proto.set_name(std::string(name));
  to_proto(value, &type, proto);
  return write_message(path, proto);
}

}  // namespace tessera::io
