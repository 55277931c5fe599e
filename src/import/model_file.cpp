#include "import/model_file.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>

#include <cstdint>
#include <limits>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "import/parse_cost.h"
#include "import/wire_reader.h"
#include "io/onnx.pb.h"
#include "ops/op_table.h"

namespace tessera::importer {
namespace {

constexpr std::size_t kMaxModelBytes = std::numeric_limits<std::int32_t>::max();

// ---- What is wrong with bytes that do not parse -------------------------------------------------

// Walks the outermost fields and names the first that breaks.
std::string describe_damage(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  while (!reader.at_end()) {
    const std::size_t start = reader.offset();
    const auto tag = reader.varint();
    if (!tag) return fmt::format("the file is truncated inside the field at byte {}", start);
    const std::uint64_t field = *tag >> 3;
    const auto type = static_cast<WireType>(*tag & 7);
    std::optional<std::uint64_t> size;
    if (type == WireType::kFixed64) size = 8;
    if (type == WireType::kFixed32) size = 4;
    if (type == WireType::kVarint)
      size = reader.varint() ? std::optional<std::uint64_t>(0) : std::nullopt;
    if (type == WireType::kDelimited) size = reader.varint();
    const bool is_wire = field != 0 && (type == WireType::kVarint || type == WireType::kFixed64 ||
                                        type == WireType::kDelimited || type == WireType::kFixed32);
    if (!is_wire) return fmt::format("byte {} does not begin a protobuf field", start);
    if (!size) return fmt::format("the file is truncated inside the field at byte {}", start);
    const std::size_t left = reader.left();
    if (!reader.take(*size)) {
      return fmt::format("the file is truncated: field {} at byte {} claims {} bytes, {} are left",
                         field, start, *size, left);
    }
  }
  return fmt::format(
      "its outermost fields are whole, but one of them is damaged or nested deeper than {} levels",
      kMaxNesting);
}

// ---- The frame of a model -----------------------------------------------------------------------

Status check_frame(const onnx::ModelProto& model) {
  if (!model.has_graph()) {
    return fail(ErrorCode::kInvalidArgument, "expected an ONNX model with a graph, found none");
  }
  if (model.ir_version() < 1) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("expected an IR version from 1 to {}, found {}", ops::kNewestIrVersion,
                            model.has_ir_version() ? std::to_string(model.ir_version())
                                                   : "none (ir_version is missing)"));
  }
  if (model.ir_version() > ops::kNewestIrVersion) {
    return fail(ErrorCode::kUnimplemented,
                fmt::format("the model has IR version {}; the newest that is supported is {}",
                            model.ir_version(), ops::kNewestIrVersion));
  }
  return {};
}

// What is left once the messages are there, beside the mapped file.
Result<ImportBudget> budget_of(std::span<const std::byte> bytes) {
  ImportBudget budget(bytes.size());
  const ParseCost cost = cost_of_parsing(bytes);
  budget.name_messages(cost.largest);
  TESSERA_TRY(budget.take(ImportBudget::Use::kMessages, bytes.size() + cost.size_bytes,
                          cost.largest_count));
  return budget;
}

}  // namespace

ModelFile::ModelFile() = default;
ModelFile::~ModelFile() = default;
ModelFile::ModelFile(ModelFile&&) noexcept = default;
ModelFile& ModelFile::operator=(ModelFile&&) noexcept = default;

Result<ModelFile> parse_model(std::span<const std::byte> bytes) {
  if (bytes.empty())
    return fail(ErrorCode::kDataLoss, "expected an ONNX model, found an empty file");
  if (bytes.size() > kMaxModelBytes) {
    return fail(
        ErrorCode::kOutOfRange,
        fmt::format(
            "the model has {} bytes; protobuf holds at most {}: keep its weights as external data",
            bytes.size(), kMaxModelBytes));
  }
  ModelFile file;
  TESSERA_ASSIGN(file.budget, budget_of(bytes));
  file.model = std::make_unique<onnx::ModelProto>();
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  google::protobuf::io::CodedInputStream stream(data, static_cast<int>(bytes.size()));
  stream.SetRecursionLimit(kMaxNesting);
  if (!file.model->ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage()) {
    return fail(ErrorCode::kDataLoss, "expected an ONNX model (protobuf), which does not parse: " +
                                          describe_damage(bytes));
  }
  TESSERA_TRY(check_frame(*file.model));
  file.content_hash = hash_bytes(bytes.data(), bytes.size()).to_string();
  return file;
}

Result<ModelFile> read_model_file(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status))
    return fail(ErrorCode::kNotFound, "expected a model file, found none of that name");
  if (!std::filesystem::is_regular_file(status)) {
    return fail(ErrorCode::kInvalidArgument, std::string("expected a model file, found ") +
                                                 (std::filesystem::is_directory(status)
                                                      ? "a folder"
                                                      : "something that is not a regular file"));
  }
  if (std::filesystem::file_size(path, error) == 0) return parse_model({});
  TESSERA_ASSIGN(const auto mapped, MappedFile::open(path));
  return parse_model(mapped->bytes());
}

}  // namespace tessera::importer
