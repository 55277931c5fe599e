#include "io/tensor_proto.h"

#include <gtest/gtest.h>

#include <complex>

#include "base/file.h"
#include "base/float_convert.h"
#include "io/onnx.pb.h"
#include "testing/temp_dir.h"

namespace tessera::io {
namespace {

using std::string_literals::operator""s;
using Kind = ValueType::Kind;

onnx::TensorProto proto_of(DType dtype, const Dims& dims) {
  onnx::TensorProto proto;
  proto.set_data_type(static_cast<int>(dtype));
  for (const std::int64_t dim : dims) proto.add_dims(dim);
  return proto;
}

std::string error_of(const onnx::TensorProto& proto) {
  const auto copied = tensor_from_proto(proto);
  onnx::TensorProto moved = proto;
  const auto stolen = tensor_from_proto(std::move(moved));
  EXPECT_EQ(copied.has_value(), stolen.has_value());
  if (copied) return "no error";
  EXPECT_EQ(copied.error().to_string(), stolen.error().to_string());
  return copied.error().to_string();
}

template <typename T>
Tensor tensor_of(DType dtype, Dims dims, const std::vector<T>& values) {
  return Tensor::of<T>(dtype, std::move(dims), values);
}

TEST(TensorProtoTest, RawDataRoundTripsForEveryType) {
  for (int code = 1; code < kDTypeCount; ++code) {
    const auto dtype = static_cast<DType>(code);
    Tensor tensor = *Tensor::zeros(dtype, {3, 5});
    if (dtype == DType::kString) {
      static_cast<std::string*>(tensor.mutable_data())[7] = "a\0\xFF"s;
    } else {
      auto* bytes = static_cast<std::uint8_t*>(tensor.mutable_data());
      for (std::int64_t i = 0; i < tensor.nbytes(); ++i) {
        bytes[i] = static_cast<std::uint8_t>(dtype == DType::kBool ? i % 2 : 37 * i + 11);
      }
    }
    onnx::TensorProto proto;
    tensor_to_proto(tensor, "t", proto);
    EXPECT_EQ(proto.name(), "t");
    const auto copied = tensor_from_proto(proto);
    ASSERT_TRUE(copied.has_value()) << copied.error().to_string();
    EXPECT_TRUE(copied->equals(tensor)) << to_string(dtype);
    const auto stolen = tensor_from_proto(std::move(proto));
    ASSERT_TRUE(stolen.has_value());
    EXPECT_TRUE(stolen->equals(tensor)) << to_string(dtype);
  }
}

TEST(TensorProtoTest, MovingTakesTheBytes) {
  auto proto = proto_of(DType::kFp32, {100});
  proto.set_raw_data(std::string(400, 'x'));
  const void* bytes = proto.raw_data().data();
  EXPECT_EQ(tensor_from_proto(std::move(proto))->data(), bytes);
}

TEST(TensorProtoTest, TypedFields) {
  auto floats = proto_of(DType::kFp32, {2});
  floats.add_float_data(1);
  floats.add_float_data(-2);
  EXPECT_TRUE(tensor_from_proto(floats)->equals(tensor_of<float>(DType::kFp32, {2}, {1, -2})));

  auto complex = proto_of(DType::kComplex128, {1});
  complex.add_double_data(1);
  complex.add_double_data(2);
  EXPECT_TRUE(tensor_from_proto(complex)->equals(
      tensor_of<std::complex<double>>(DType::kComplex128, {1}, {{1, 2}})));

  auto unsigned32 = proto_of(DType::kUInt32, {1});
  unsigned32.add_uint64_data(UINT32_MAX);
  EXPECT_TRUE(tensor_from_proto(unsigned32)
                  ->equals(tensor_of<std::uint32_t>(DType::kUInt32, {1}, {UINT32_MAX})));

  auto half = proto_of(DType::kFp16, {3});  // bits, with and without sign extension
  for (const int bits : {0x3C00, 0xBC00, -0x4400}) half.add_int32_data(bits);
  EXPECT_TRUE(tensor_from_proto(half)->equals(
      tensor_of<std::uint16_t>(DType::kFp16, {3}, {0x3C00, 0xBC00, 0xBC00})));

  auto bytes = proto_of(DType::kInt8, {2});
  bytes.add_int32_data(-128);
  bytes.add_int32_data(127);
  EXPECT_TRUE(
      tensor_from_proto(bytes)->equals(tensor_of<std::int8_t>(DType::kInt8, {2}, {-128, 127})));

  auto bools = proto_of(DType::kBool, {2});
  bools.add_int32_data(2);
  bools.add_int32_data(0);
  EXPECT_TRUE(tensor_from_proto(bools)->equals(tensor_of<std::uint8_t>(DType::kBool, {2}, {1, 0})));

  auto packed = proto_of(DType::kInt4, {3});  // two elements in an entry, the first in the low bits
  packed.add_int32_data(0xF1);
  packed.add_int32_data(0x07);
  EXPECT_EQ(to_int64_vector(tensor_from_proto(packed)->view()), (Dims{1, -1, 7}));

  auto sixes = proto_of(DType::kFp6E3M2, {3});  // an element in an entry
  for (const int bits : {0x3F, 0x01, 0x20}) sixes.add_int32_data(bits);
  const auto six_bits = tensor_from_proto(sixes);
  ASSERT_TRUE(six_bits.has_value()) << six_bits.error().to_string();
  EXPECT_EQ(packed_get(six_bits->data(), 0, 6), 0x3F);
  EXPECT_EQ(packed_get(six_bits->data(), 1, 6), 0x01);
  EXPECT_EQ(packed_get(six_bits->data(), 2, 6), 0x20);
  sixes.set_int32_data(1, 64);
  EXPECT_EQ(tensor_from_proto(sixes).error().to_string(),
            "int32_data[1] is 64, which does not fit fp6_e3m2");

  auto scalar = proto_of(DType::kInt64, {});
  scalar.add_int64_data(INT64_MIN);
  EXPECT_TRUE(
      tensor_from_proto(scalar)->equals(tensor_of<std::int64_t>(DType::kInt64, {}, {INT64_MIN})));

  auto strings = proto_of(DType::kString, {2});
  strings.add_string_data("a");
  strings.add_string_data("");
  EXPECT_TRUE(
      tensor_from_proto(strings)->equals(tensor_of<std::string>(DType::kString, {2}, {"a", ""})));
  EXPECT_EQ(tensor_from_proto(proto_of(DType::kString, {0}))->dims(), Dims{0});
  EXPECT_EQ(tensor_from_proto(proto_of(DType::kFp32, {0, 4}))->dims(), (Dims{0, 4}));
}

TEST(TensorProtoTest, AnyByteOfABoolIsTrue) {
  auto proto = proto_of(DType::kBool, {3});
  proto.set_raw_data("\0\2\xFF"s);
  EXPECT_TRUE(
      tensor_from_proto(proto)->equals(tensor_of<std::uint8_t>(DType::kBool, {3}, {0, 1, 1})));
}

TEST(TensorProtoTest, Errors) {
  auto proto = proto_of(DType::kFp32, {4});
  proto.set_raw_data("12345678");
  EXPECT_EQ(error_of(proto), "expected 16 bytes for fp32[4], found 8");
  proto.add_float_data(1);
  EXPECT_EQ(error_of(proto), "expected one data field, found raw_data and float_data");
  proto.clear_raw_data();
  EXPECT_EQ(error_of(proto), "expected 4 elements of float_data for fp32[4], found 1");
  proto.add_int32_data(1);
  EXPECT_EQ(error_of(proto), "expected one data field, found float_data and int32_data");
  proto.clear_float_data();
  EXPECT_EQ(error_of(proto), "expected float_data for fp32, found int32_data");
  EXPECT_EQ(error_of(proto_of(DType::kFp32, {})), "expected 4 bytes for fp32[], found 0");

  EXPECT_EQ(error_of(proto_of(DType::kUndefined, {1})), "the data type of the tensor is undefined");
  EXPECT_EQ(error_of(proto_of(static_cast<DType>(29), {1})),
            "data type 29 is not known; expected 1 to 28");
  EXPECT_EQ(error_of(proto_of(DType::kFp32, {-1})),
            "dim 0 of [-1] is negative; expected at least 0");
  EXPECT_EQ(error_of(proto_of(DType::kFp64, {INT64_MAX})),
            "the bytes of fp64[9223372036854775807] exceed 63 bits");
  EXPECT_EQ(error_of(proto_of(DType::kFp32, {INT64_MAX, 2})),
            "the number of elements of [9223372036854775807, 2] overflows 63 bits");
  EXPECT_EQ(error_of(proto_of(DType::kInt8, {std::int64_t{1} << 62})),
            "expected 4611686018427387904 bytes for int8[4611686018427387904], found 0");

  auto external = proto_of(DType::kFp32, {1});
  external.set_data_location(onnx::TensorProto::EXTERNAL);
  EXPECT_EQ(error_of(external), "expected data inside of the tensor, found external data");
  external.set_data_location(7);
  EXPECT_EQ(error_of(external), "expected a known data location, found 7");
  auto segment = proto_of(DType::kFp32, {1});
  segment.mutable_segment()->set_begin(0);
  EXPECT_EQ(error_of(segment), "tensors in segments are not supported");

  auto text = proto_of(DType::kString, {1});
  EXPECT_EQ(error_of(text), "expected 1 elements of string_data for string[1], found 0");
  text.set_raw_data("a");
  EXPECT_EQ(error_of(text), "expected string_data for string, found raw_data");

  auto narrow = proto_of(DType::kUInt8, {2});
  narrow.add_int32_data(255);
  narrow.add_int32_data(300);
  EXPECT_EQ(error_of(narrow), "int32_data[1] is 300, which does not fit uint8");
  auto wide = proto_of(DType::kUInt32, {1});
  wide.add_uint64_data(1ULL << 32);
  EXPECT_EQ(error_of(wide), "uint64_data[0] is 4294967296, which does not fit uint32");
}

RunValue value_of(Tensor tensor) {
  return {Kind::kTensor, std::move(tensor), {}};
}

bool same(const RunValue& a, const RunValue& b) {
  if (a.kind != b.kind || !a.tensor.equals(b.tensor) || a.elements.size() != b.elements.size()) {
    return false;
  }
  for (std::size_t i = 0; i < a.elements.size(); ++i) {
    if (!same(a.elements[i], b.elements[i])) return false;
  }
  return true;
}

// The type as far as the value shows it: what an empty one could hold is left open.
ValueType type_of(const RunValue& value) {
  ValueType type;
  type.kind = value.kind;
  if (value.kind == Kind::kMap)
    return ValueType::map(value.elements[0].tensor.dtype(), value.elements[1].tensor.dtype());
  if (!value.elements.empty())
    type.element = std::make_shared<ValueType>(type_of(value.elements[0]));
  return type;
}

TEST(ValueFileTest, RoundTrips) {
  const testing::TempDir dir;
  const auto path = dir / "v.pb";
  const RunValue a = value_of(tensor_of<float>(DType::kFp32, {2}, {1, 2}));
  const RunValue b = value_of(tensor_of<std::int64_t>(DType::kInt64, {}, {3}));
  const RunValue pair{Kind::kSequence, {}, {a, b}};
  const RunValue names = RunValue::map(
      tensor_of<std::string>(DType::kString, {2}, {"one", ""}),
      tensor_of<std::string>(DType::kString, {2}, {"first", "a value longer than a short string"}));
  const RunValue numbers =
      RunValue::map(tensor_of<std::int32_t>(DType::kInt32, {2}, {-7, 8}), a.tensor);
  const RunValue values[] = {
      a,
      pair,
      {Kind::kSequence, {}, {}},
      {Kind::kSequence, {}, {pair, pair}},
      {Kind::kOptional, {}, {}},
      {Kind::kOptional, {}, {a}},
      {Kind::kOptional, {}, {pair}},
      {Kind::kSequence, {}, {{Kind::kOptional, {}, {b}}, {Kind::kOptional, {}, {}}}},
      {Kind::kOptional, {}, {{Kind::kOptional, {}, {b}}}},
      names,
      {Kind::kSequence, {}, {names, numbers}},
      {Kind::kOptional, {}, {names}}};
  for (const RunValue& value : values) {
    const ValueType type = type_of(value);
    ASSERT_TRUE(write_value_pb(path, value, type, "v").has_value());
    const auto back = read_value_pb(path, type);
    ASSERT_TRUE(back.has_value()) << back.error().to_string();
    EXPECT_TRUE(same(*back, value));
  }
  ASSERT_TRUE(write_tensor_pb(path, a.tensor, "v").has_value());
  EXPECT_TRUE(read_tensor_pb(path)->equals(a.tensor));
}

// The declared type says what those hold that hold nothing.
TEST(ValueFileTest, RoundTripsWhatIsEmpty) {
  const testing::TempDir dir;
  const auto path = dir / "v.pb";
  const ValueType map = ValueType::map(DType::kInt64, DType::kFp64);
  const RunValue none = RunValue::map(tensor_of<std::int64_t>(DType::kInt64, {0}, {}),
                                      tensor_of<double>(DType::kFp64, {0}, {}));
  const RunValue texts = RunValue::map(tensor_of<std::string>(DType::kString, {0}, {}),
                                       tensor_of<std::string>(DType::kString, {0}, {}));
  const std::pair<ValueType, RunValue> cases[] = {
      {map, none},
      {ValueType::map(DType::kString, DType::kString), texts},
      {ValueType::sequence(map), {Kind::kSequence, {}, {none}}},
      {ValueType::sequence(map), {Kind::kSequence, {}, {}}},
      {ValueType::optional(map), {Kind::kOptional, {}, {none}}},
      {ValueType::sequence(ValueType::sequence(map)),
       {Kind::kSequence, {}, {{Kind::kSequence, {}, {}}}}},
      {ValueType::sequence(ValueType::optional(map)),
       {Kind::kSequence, {}, {{Kind::kOptional, {}, {none}}}}}};
  for (const auto& [type, value] : cases) {
    SCOPED_TRACE(type.to_string());
    ASSERT_TRUE(write_value_pb(path, value, type, "v").has_value());
    const auto back = read_value_pb(path, type);
    ASSERT_TRUE(back.has_value()) << back.error().to_string();
    EXPECT_TRUE(same(*back, value));
    EXPECT_EQ(type_mismatch(type, *back), "");
  }
}

TEST(ValueFileTest, AnEmptySequenceNamesTheKindOfItsElements) {
  const testing::TempDir dir;
  const auto path = dir / "v.pb";
  const RunValue empty{Kind::kSequence, {}, {}};
  const auto kind_of = [&](const ValueType& element, const RunValue& value) {
    EXPECT_TRUE(write_value_pb(path, value, ValueType::sequence(element), "v").has_value());
    onnx::SequenceProto proto;
    EXPECT_TRUE(proto.ParseFromString(testing::read_bytes(path)));
    return proto.sequence_values_size() > 0 ? proto.sequence_values(0).elem_type()
                                            : proto.elem_type();
  };
  const ValueType tensor = ValueType::tensor(DType::kFp32, std::nullopt);
  const ValueType map = ValueType::map(DType::kInt64, DType::kFp32);
  EXPECT_EQ(kind_of(tensor, empty), onnx::SequenceProto::TENSOR);
  EXPECT_EQ(kind_of(map, empty), onnx::SequenceProto::MAP);
  EXPECT_EQ(kind_of(ValueType::sequence(tensor), empty), onnx::SequenceProto::SEQUENCE);
  EXPECT_EQ(kind_of(ValueType::optional(tensor), empty), onnx::SequenceProto::OPTIONAL);
  EXPECT_EQ(kind_of(ValueType::sequence(map), {Kind::kSequence, {}, {empty}}),
            onnx::SequenceProto::MAP);
}

TEST(ValueFileTest, ErrorsNameThePathAndTheElement) {
  const testing::TempDir dir;
  const auto path = dir.write("v.pb", "\x0A\x7F");
  const auto error = [&](Kind kind) {
    ValueType type;
    type.kind = kind;
    return read_value_pb(path, type).error().to_string();
  };
  EXPECT_EQ(error(Kind::kTensor),
            path.string() + ": the file does not hold a whole TensorProto message");
  EXPECT_EQ(error(Kind::kSequence),
            path.string() + ": the file does not hold a whole SequenceProto message");
  EXPECT_EQ(error(Kind::kOptional),
            path.string() + ": the file does not hold a whole OptionalProto message");
  const auto missing = dir / "w.pb";
  EXPECT_EQ(read_tensor_pb(missing).error().to_string(),
            "cannot open '" + missing.string() + "': No such file or directory");

  onnx::SequenceProto sequence;
  *sequence.add_tensor_values() = proto_of(DType::kFp32, {0});
  *sequence.add_tensor_values() = proto_of(DType::kFp32, {1});
  dir.write("v.pb", sequence.SerializeAsString());
  EXPECT_EQ(error(Kind::kSequence),
            path.string() + ": element 1: expected 4 bytes for fp32[1], found 0");
  dir.write("v.pb", proto_of(DType::kFp32, {0}).SerializeAsString() + "\x42\x01x"s);
  EXPECT_EQ(
      error(Kind::kSequence),
      path.string() + ": expected the message SequenceProto, found fields that it does not have");
  EXPECT_EQ(
      error(Kind::kOptional),
      path.string() + ": expected the message OptionalProto, found fields that it does not have");
  onnx::OptionalProto optional;
  optional.mutable_sparse_tensor_value();
  dir.write("v.pb", optional.SerializeAsString());
  EXPECT_EQ(error(Kind::kOptional),
            path.string() + ": sparse tensors are not supported in data files");
}

TEST(ValueFileTest, SaysWhatIsWrongWithAMap) {
  const testing::TempDir dir;
  onnx::MapProto map;
  const auto error = [&] {
    const auto path = dir.write("m.pb", map.SerializeAsString());
    const std::string text =
        read_value_pb(path, ValueType::map(DType::kInt64, DType::kFp32)).error().to_string();
    const std::string prefix = path.string() + ": ";
    EXPECT_TRUE(text.starts_with(prefix)) << text;
    return text.substr(prefix.size());
  };
  EXPECT_EQ(error(), "expected keys of an integer type or strings, found type code 0");
  map.set_key_type(static_cast<int>(DType::kFp32));
  EXPECT_EQ(error(), "expected keys of an integer type or strings, found type code 1");
  map.set_key_type(static_cast<int>(DType::kInt64));
  map.add_keys(7);
  EXPECT_EQ(error(), "expected 1 values of a map, found 0");
  auto& value = *map.mutable_values()->add_tensor_values();
  value = proto_of(DType::kFp32, {2});
  value.add_float_data(1);
  value.add_float_data(2);
  EXPECT_EQ(error(),
            "expected single elements of one type as the values of a map, found another value at "
            "0");
  onnx::SequenceProto sequence;
  *sequence.add_map_values() = map;
  const auto path = dir.write("s.pb", sequence.SerializeAsString());
  EXPECT_EQ(read_value_pb(path, ValueType::sequence(ValueType())).error().to_string(),
            path.string() +
                ": element 0: expected single elements of one type as the values of a "
                "map, found another value at 0");
}

// The wire format of a tensor as the ONNX reference writes it: dims 1, data_type 2, raw_data 9,
// name 8.
TEST(ValueFileTest, ReadsTheBytesOfOnnx) {
  const testing::TempDir dir;
  const auto path = dir.write("t.pb", "\x08\x02\x10\x01\x42\x01x\x4A\x08\0\0\x80\x3F\0\0\0\x40"s);
  const auto tensor = read_tensor_pb(path);
  ASSERT_TRUE(tensor.has_value()) << tensor.error().to_string();
  EXPECT_TRUE(tensor->equals(tensor_of<float>(DType::kFp32, {2}, {1, 2})));
}

}  // namespace
}  // namespace tessera::io
