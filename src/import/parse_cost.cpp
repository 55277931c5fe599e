#include "import/parse_cost.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <string>

#include "import/wire_reader.h"
#include "io/onnx.pb.h"

namespace tessera::importer {
namespace {

// What a field holds: numbers, a text, or a message with fields of its own.
enum class Kind : std::uint8_t {
  kUnknown,  // kept as bytes
  kNumber,   // one; a field of the object itself
  kText,
  kInt32s,  // packed or not
  kInt64s,
  kFloats,
  kDoubles,
  kModel,
  kGraph,
  kNode,
  kAttribute,
  kTensor,
  kSegment,
  kSparseTensor,
  kValueInfo,
  kType,
  kTensorType,
  kSequenceType,
  kMapType,
  kOptionalType,
  kSparseTensorType,
  kOpaqueType,
  kShape,
  kDimension,
  kEntry,
  kOpset,
  kFunction,
  kTraining,
  kAnnotation,
  kDeviceConfiguration,
  kNodeDevices,
  kSharding,
  kDeviceGroup,
  kShardedDim,
  kSimpleSharding,
  kCount,
};

struct Field {
  std::uint64_t number;
  Kind kind;
  bool is_list = false;
};
constexpr bool kList = true;

// Numbers of fields as in io/onnx.proto. Fields that hold one number are left out of the lists: all
// that stands there is `kNumber`, and costs nothing beside the object.
constexpr Field kModelFields[] = {{8, Kind::kOpset, kList},
                                  {2, Kind::kText},
                                  {3, Kind::kText},
                                  {4, Kind::kText},
                                  {6, Kind::kText},
                                  {7, Kind::kGraph},
                                  {14, Kind::kEntry, kList},
                                  {20, Kind::kTraining, kList},
                                  {25, Kind::kFunction, kList},
                                  {1, Kind::kNumber},
                                  {5, Kind::kNumber},
                                  {26, Kind::kDeviceConfiguration, kList}};
constexpr Field kGraphFields[] = {{1, Kind::kNode, kList},
                                  {2, Kind::kText},
                                  {5, Kind::kTensor, kList},
                                  {15, Kind::kSparseTensor, kList},
                                  {10, Kind::kText},
                                  {11, Kind::kValueInfo, kList},
                                  {12, Kind::kValueInfo, kList},
                                  {13, Kind::kValueInfo, kList},
                                  {14, Kind::kAnnotation, kList},
                                  {16, Kind::kEntry, kList}};
constexpr Field kNodeFields[] = {{1, Kind::kText, kList},
                                 {2, Kind::kText, kList},
                                 {3, Kind::kText},
                                 {4, Kind::kText},
                                 {7, Kind::kText},
                                 {8, Kind::kText},
                                 {5, Kind::kAttribute, kList},
                                 {6, Kind::kText},
                                 {9, Kind::kEntry, kList},
                                 {10, Kind::kNodeDevices, kList}};
constexpr Field kAttributeFields[] = {
    {1, Kind::kText},          {21, Kind::kText},        {13, Kind::kText},
    {4, Kind::kText},          {5, Kind::kTensor},       {6, Kind::kGraph},
    {22, Kind::kSparseTensor}, {14, Kind::kType},        {7, Kind::kFloats, kList},
    {8, Kind::kInt64s, kList}, {9, Kind::kText, kList},  {10, Kind::kTensor, kList},
    {11, Kind::kGraph, kList}, {15, Kind::kType, kList}, {23, Kind::kSparseTensor, kList},
    {2, Kind::kNumber},        {3, Kind::kNumber},       {20, Kind::kNumber}};
constexpr Field kTensorFields[] = {
    {1, Kind::kInt64s, kList},   {3, Kind::kSegment},        {4, Kind::kFloats, kList},
    {5, Kind::kInt32s, kList},   {6, Kind::kText, kList},    {7, Kind::kInt64s, kList},
    {10, Kind::kDoubles, kList}, {11, Kind::kInt64s, kList}, {9, Kind::kText},
    {13, Kind::kEntry, kList},   {8, Kind::kText},           {12, Kind::kText},
    {16, Kind::kEntry, kList},   {2, Kind::kNumber},         {14, Kind::kNumber}};
constexpr Field kSegmentFields[] = {{1, Kind::kNumber}, {2, Kind::kNumber}};
constexpr Field kSparseTensorFields[] = {
    {1, Kind::kTensor}, {2, Kind::kTensor}, {3, Kind::kInt64s, kList}};
constexpr Field kValueInfoFields[] = {
    {1, Kind::kText}, {2, Kind::kType}, {3, Kind::kText}, {4, Kind::kEntry, kList}};
constexpr Field kTypeFields[] = {
    {1, Kind::kTensorType}, {4, Kind::kSequenceType},     {5, Kind::kMapType},
    {7, Kind::kOpaqueType}, {8, Kind::kSparseTensorType}, {9, Kind::kOptionalType},
    {6, Kind::kText}};
constexpr Field kTensorTypeFields[] = {{1, Kind::kNumber}, {2, Kind::kShape}};
constexpr Field kElementTypeFields[] = {{1, Kind::kType}};
constexpr Field kMapTypeFields[] = {{1, Kind::kNumber}, {2, Kind::kType}};
constexpr Field kOpaqueTypeFields[] = {{1, Kind::kText}, {2, Kind::kText}};
constexpr Field kShapeFields[] = {{1, Kind::kDimension, kList}};
constexpr Field kDimensionFields[] = {{1, Kind::kNumber}, {2, Kind::kText}, {3, Kind::kText}};
constexpr Field kEntryFields[] = {{1, Kind::kText}, {2, Kind::kText}};
constexpr Field kOpsetFields[] = {{1, Kind::kText}, {2, Kind::kNumber}};
constexpr Field kFunctionFields[] = {{1, Kind::kText},
                                     {10, Kind::kText},
                                     {13, Kind::kText},
                                     {4, Kind::kText, kList},
                                     {5, Kind::kText, kList},
                                     {6, Kind::kText, kList},
                                     {7, Kind::kNode, kList},
                                     {8, Kind::kText},
                                     {9, Kind::kOpset, kList},
                                     {11, Kind::kAttribute, kList},
                                     {12, Kind::kValueInfo, kList},
                                     {14, Kind::kEntry, kList}};
constexpr Field kTrainingFields[] = {
    {1, Kind::kGraph}, {2, Kind::kGraph}, {3, Kind::kEntry, kList}, {4, Kind::kEntry, kList}};
constexpr Field kAnnotationFields[] = {{1, Kind::kText}, {2, Kind::kEntry, kList}};
constexpr Field kDeviceConfigurationFields[] = {
    {1, Kind::kText}, {2, Kind::kNumber}, {3, Kind::kText, kList}};
constexpr Field kNodeDevicesFields[] = {
    {1, Kind::kText}, {2, Kind::kSharding, kList}, {3, Kind::kNumber}};
constexpr Field kShardingFields[] = {{1, Kind::kText},
                                     {2, Kind::kInt64s, kList},
                                     {3, Kind::kDeviceGroup, kList},
                                     {4, Kind::kShardedDim, kList}};
constexpr Field kDeviceGroupFields[] = {{1, Kind::kNumber}, {2, Kind::kInt64s, kList}};
constexpr Field kShardedDimFields[] = {{1, Kind::kNumber}, {2, Kind::kSimpleSharding, kList}};
constexpr Field kSimpleShardingFields[] = {
    {1, Kind::kNumber}, {2, Kind::kText}, {3, Kind::kNumber}};

struct KindInfo {
  std::string_view name;
  std::size_t object_bytes = 0;  // of a message
  std::span<const Field> fields = {};
};

const KindInfo& info_of(Kind kind) {
  using namespace onnx;
  static const std::array<KindInfo, static_cast<std::size_t>(Kind::kCount)> infos = {{
      {"unknown fields"},
      {"numbers"},
      {"texts"},
      {"int32 numbers"},
      {"int64 numbers"},
      {"float numbers"},
      {"double numbers"},
      {"ModelProto messages", sizeof(ModelProto), kModelFields},
      {"GraphProto messages", sizeof(GraphProto), kGraphFields},
      {"NodeProto messages", sizeof(NodeProto), kNodeFields},
      {"AttributeProto messages", sizeof(AttributeProto), kAttributeFields},
      {"TensorProto messages", sizeof(TensorProto), kTensorFields},
      {"TensorProto.Segment messages", sizeof(TensorProto::Segment), kSegmentFields},
      {"SparseTensorProto messages", sizeof(SparseTensorProto), kSparseTensorFields},
      {"ValueInfoProto messages", sizeof(ValueInfoProto), kValueInfoFields},
      {"TypeProto messages", sizeof(TypeProto), kTypeFields},
      {"TypeProto.Tensor messages", sizeof(TypeProto::Tensor), kTensorTypeFields},
      {"TypeProto.Sequence messages", sizeof(TypeProto::Sequence), kElementTypeFields},
      {"TypeProto.Map messages", sizeof(TypeProto::Map), kMapTypeFields},
      {"TypeProto.Optional messages", sizeof(TypeProto::Optional), kElementTypeFields},
      {"TypeProto.SparseTensor messages", sizeof(TypeProto::SparseTensor), kTensorTypeFields},
      {"TypeProto.Opaque messages", sizeof(TypeProto::Opaque), kOpaqueTypeFields},
      {"TensorShapeProto messages", sizeof(TensorShapeProto), kShapeFields},
      {"TensorShapeProto.Dimension messages", sizeof(TensorShapeProto::Dimension),
       kDimensionFields},
      {"StringStringEntryProto messages", sizeof(StringStringEntryProto), kEntryFields},
      {"OperatorSetIdProto messages", sizeof(OperatorSetIdProto), kOpsetFields},
      {"FunctionProto messages", sizeof(FunctionProto), kFunctionFields},
      {"TrainingInfoProto messages", sizeof(TrainingInfoProto), kTrainingFields},
      {"TensorAnnotation messages", sizeof(TensorAnnotation), kAnnotationFields},
      {"DeviceConfigurationProto messages", sizeof(DeviceConfigurationProto),
       kDeviceConfigurationFields},
      {"NodeDeviceConfigurationProto messages", sizeof(NodeDeviceConfigurationProto),
       kNodeDevicesFields},
      {"ShardingSpecProto messages", sizeof(ShardingSpecProto), kShardingFields},
      {"IntIntListEntryProto messages", sizeof(IntIntListEntryProto), kDeviceGroupFields},
      {"ShardedDimProto messages", sizeof(ShardedDimProto), kShardedDimFields},
      {"SimpleShardedDimProto messages", sizeof(SimpleShardedDimProto), kSimpleShardingFields},
  }};
  return infos[static_cast<std::size_t>(kind)];
}

Field field_of(Kind message, std::uint64_t number) {
  for (const Field& field : info_of(message).fields) {
    if (field.number == number) return field;
  }
  return {number, Kind::kUnknown};
}

constexpr std::uint64_t kBlockBytes = 16;    // what malloc keeps beside an object
constexpr std::uint64_t kPointerBytes = 16;  // of a list, with the room that it grows by
constexpr std::uint64_t kListBytes = 48;     // of a list that holds anything, however short

std::uint64_t text_bytes(std::uint64_t length) {
  constexpr std::uint64_t kInPlace = 15;  // shorter ones stand in the object
  const std::uint64_t object = sizeof(std::string) + kBlockBytes;
  return length <= kInPlace ? object : object + length + 1 + kBlockBytes;
}

// Numbers of a packed field of variable length: each ends with a byte below 128.
std::uint64_t count_varints(std::span<const std::byte> bytes) {
  return static_cast<std::uint64_t>(std::count_if(
      bytes.begin(), bytes.end(), [](std::byte b) { return std::to_integer<int>(b) < 0x80; }));
}

class CostWalk {
 public:
  bool message(Kind kind, std::span<const std::byte> bytes, int depth) {
    if (depth > kMaxNesting) return false;
    add(kind, info_of(kind).object_bytes + kBlockBytes);
    WireReader reader(bytes);
    ListsSeen lists;
    while (!reader.at_end()) {
      if (!field(kind, reader, depth, lists)) return false;
    }
    return true;
  }

  [[nodiscard]] ParseCost cost() const {
    ParseCost cost;
    const auto largest = std::max_element(size_bytes_.begin(), size_bytes_.end());
    const auto index = static_cast<std::size_t>(largest - size_bytes_.begin());
    for (const std::uint64_t size : size_bytes_) cost.size_bytes += size;
    cost.largest = info_of(static_cast<Kind>(index)).name;
    cost.largest_count = counts_[index];
    return cost;
  }

 private:
  static constexpr std::size_t kMaxFieldNumber = 31;   // of a list
  using ListsSeen = std::bitset<kMaxFieldNumber + 1>;  // of one message, by number

  bool field(Kind owner, WireReader& reader, int depth, ListsSeen& lists) {
    const auto tag = reader.varint();
    if (!tag) return false;
    const Field found = field_of(owner, *tag >> 3);
    const Kind kind = found.kind;
    if (found.is_list) {
      charge(kind, (lists[found.number] ? 0 : kListBytes) + (is_number(kind) ? 0 : kPointerBytes));
      lists.set(found.number);
    }
    switch (static_cast<WireType>(*tag & 7)) {
      case WireType::kVarint: return reader.varint().has_value() && number(kind);
      case WireType::kFixed64: return reader.take(8).has_value() && number(kind);
      case WireType::kFixed32: return reader.take(4).has_value() && number(kind);
      case WireType::kStartGroup:
      case WireType::kEndGroup: add(Kind::kUnknown, 2 * sizeof(*tag)); return true;
      case WireType::kDelimited: break;
      default: return false;
    }
    const auto size = reader.varint();
    const auto bytes = size ? reader.take(*size) : std::nullopt;
    return bytes && delimited(kind, *bytes, depth);
  }

  bool number(Kind kind) {
    switch (kind) {
      case Kind::kNumber: break;
      case Kind::kInt32s:
      case Kind::kFloats: numbers(kind, 1, sizeof(float)); break;
      case Kind::kInt64s:
      case Kind::kDoubles: numbers(kind, 1, sizeof(double)); break;
      default: add(Kind::kUnknown, 2 * sizeof(std::uint64_t));
    }
    return true;
  }

  bool delimited(Kind kind, std::span<const std::byte> bytes, int depth) {
    switch (kind) {
      case Kind::kText: add(kind, text_bytes(bytes.size())); return true;
      case Kind::kInt32s: numbers(kind, count_varints(bytes), sizeof(std::int32_t)); return true;
      case Kind::kInt64s: numbers(kind, count_varints(bytes), sizeof(std::int64_t)); return true;
      case Kind::kFloats: numbers(kind, bytes.size() / sizeof(float), sizeof(float)); return true;
      case Kind::kDoubles:
        numbers(kind, bytes.size() / sizeof(double), sizeof(double));
        return true;
      case Kind::kUnknown:
      case Kind::kNumber: add(Kind::kUnknown, 2 * bytes.size() + 2 * kBlockBytes); return true;
      default: return message(kind, bytes, depth + 1);
    }
  }

  static bool is_number(Kind kind) {
    return kind == Kind::kInt32s || kind == Kind::kInt64s || kind == Kind::kFloats ||
           kind == Kind::kDoubles;
  }

  // A list doubles its room when it is full.
  void numbers(Kind kind, std::uint64_t count, std::uint64_t each_bytes) {
    charge(kind, 2 * count * each_bytes);
    counts_[static_cast<std::size_t>(kind)] += count;
  }

  void charge(Kind kind, std::uint64_t bytes) {
    size_bytes_[static_cast<std::size_t>(kind)] += bytes;
  }

  void add(Kind kind, std::uint64_t bytes) {
    charge(kind, bytes);
    ++counts_[static_cast<std::size_t>(kind)];
  }

  std::array<std::uint64_t, static_cast<std::size_t>(Kind::kCount)> size_bytes_{};
  std::array<std::uint64_t, static_cast<std::size_t>(Kind::kCount)> counts_{};
};

}  // namespace

ParseCost cost_of_parsing(std::span<const std::byte> model) {
  CostWalk walk;
  walk.message(Kind::kModel, model, 1);
  return walk.cost();
}

}  // namespace tessera::importer
