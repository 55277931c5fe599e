#include <zlib.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "io/utf.h"
#include "io/zip.h"
#include "io/zip_format.h"

namespace tessera::io {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint16_t kVersion = 20;    // needed to extract: deflate
constexpr std::uint16_t kVersion64 = 45;  // needed to extract: zip64
constexpr int kCompressionLevel = 6;

void append(std::string& into, std::uint64_t value, int width) {
  for (int i = 0; i < width; ++i) into += static_cast<char>((value >> (8 * i)) & 0xFF);
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c & 0x80) == 0; });
}

std::uint16_t method_number(ZipMethod method) {
  return method == ZipMethod::kStored ? zip::kMethodStored : zip::kMethodDeflated;
}

// Flags, method, time and date: what local header and directory entry have in common.
std::string common_fields(const std::string& name, ZipMethod method) {
  std::string text;
  append(text, is_ascii(name) ? 0 : zip::kFlagUtf8, 2);
  append(text, method_number(method), 2);
  append(text, 0, 2);
  append(text, zip::kDate1980, 2);
  return text;
}

std::uint32_t in_32_bits(std::uint64_t value) {
  return value >= zip::kIn64 ? zip::kIn64 : static_cast<std::uint32_t>(value);
}

uInt chunk_of(std::size_t size_bytes) {
  return static_cast<uInt>(std::min<std::size_t>(size_bytes, 1U << 30U));
}

// Feeds parts to a raw deflate stream and appends what comes out.
class Deflater {
 public:
  Deflater() {
    TESSERA_CHECK(::deflateInit2(&stream_, kCompressionLevel, Z_DEFLATED, -MAX_WBITS, 8,
                                 Z_DEFAULT_STRATEGY) == Z_OK);
  }
  ~Deflater() { ::deflateEnd(&stream_); }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  void add(Bytes part, std::string& into) {
    while (!part.empty()) {
      const uInt length = chunk_of(part.size());
      run(part.first(length), Z_NO_FLUSH, into);
      part = part.subspan(length);
    }
  }

  void finish(std::string& into) { run({}, Z_FINISH, into); }

 private:
  void run(Bytes input, int flush, std::string& into) {
    stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(input.data()));
    stream_.avail_in = static_cast<uInt>(input.size());
    std::array<char, 1 << 16> buffer;
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(buffer.data());
      stream_.avail_out = static_cast<uInt>(buffer.size());
      ::deflate(&stream_, flush);
      into.append(buffer.data(), buffer.size() - stream_.avail_out);
    } while (stream_.avail_out == 0);
  }

  z_stream stream_{};
};

Status check_name(const std::string& name) {
  if (name.size() > UINT16_MAX) {
    return fail(
        ErrorCode::kInvalidArgument,
        "expected a member name of at most 65535 bytes, found " + std::to_string(name.size()));
  }
  if (name.find('\0') != std::string::npos || !utf8_to_utf32(name)) {
    return fail(ErrorCode::kInvalidArgument,
                "expected a member name of UTF-8 without NUL, found '" + name + "'");
  }
  return {};
}

}  // namespace

Result<ZipWriter> ZipWriter::create(const std::filesystem::path& path) {
  TESSERA_ASSIGN(auto file, AtomicFile::create(path));
  return ZipWriter(std::move(file));
}

Status ZipWriter::put(std::string_view bytes) {
  offset_ += bytes.size();
  return file_->write(bytes.data(), bytes.size());
}

std::string ZipWriter::local_header(const Record& record) {
  const bool in_64 = record.size_bytes >= zip::kIn64 || record.packed_bytes >= zip::kIn64;
  std::string text;
  append(text, zip::kLocalSignature, 4);
  append(text, in_64 ? kVersion64 : kVersion, 2);
  text += common_fields(record.name, record.method);
  append(text, record.crc32, 4);
  append(text, in_64 ? zip::kIn64 : record.packed_bytes, 4);
  append(text, in_64 ? zip::kIn64 : record.size_bytes, 4);
  append(text, record.name.size(), 2);
  append(text, in_64 ? 20 : 0, 2);
  text += record.name;
  if (in_64) {
    append(text, zip::kZip64Field, 2);
    append(text, 16, 2);
    append(text, record.size_bytes, 8);
    append(text, record.packed_bytes, 8);
  }
  return text;
}

std::string ZipWriter::directory_entry(const Record& record) {
  std::string extra;
  for (const std::uint64_t size : {record.size_bytes, record.packed_bytes, record.offset}) {
    if (size >= zip::kIn64) append(extra, size, 8);
  }
  if (!extra.empty()) {
    std::string head;
    append(head, zip::kZip64Field, 2);
    append(head, extra.size(), 2);
    extra = head + extra;
  }
  std::string text;
  append(text, zip::kEntrySignature, 4);
  append(text, extra.empty() ? kVersion : kVersion64, 2);  // made by
  append(text, extra.empty() ? kVersion : kVersion64, 2);  // needed
  text += common_fields(record.name, record.method);
  append(text, record.crc32, 4);
  append(text, in_32_bits(record.packed_bytes), 4);
  append(text, in_32_bits(record.size_bytes), 4);
  append(text, record.name.size(), 2);
  append(text, extra.size(), 2);
  append(text, 0, 2);  // comment
  append(text, 0, 2);  // volume
  append(text, 0, 2);  // internal attributes
  append(text, 0, 4);  // external attributes
  append(text, in_32_bits(record.offset), 4);
  return text + record.name + extra;
}

std::string ZipWriter::directory_end(std::uint64_t size_bytes) const {
  const std::uint64_t count = records_.size();
  std::string text;
  if (count >= zip::kIn64Count || offset_ >= zip::kIn64) {
    append(text, zip::kEnd64Signature, 4);
    append(text, zip::kEnd64Bytes - 12, 8);
    append(text, kVersion64, 2);
    append(text, kVersion64, 2);
    append(text, 0, 4);  // this volume
    append(text, 0, 4);  // volume of the directory
    append(text, count, 8);
    append(text, count, 8);
    append(text, size_bytes, 8);
    append(text, offset_ - size_bytes, 8);
    append(text, zip::kEnd64LocatorSignature, 4);
    append(text, 0, 4);
    append(text, offset_, 8);
    append(text, 1, 4);  // volumes
  }
  const std::uint64_t short_count = std::min<std::uint64_t>(count, zip::kIn64Count);
  append(text, zip::kEndSignature, 4);
  append(text, 0, 2);
  append(text, 0, 2);
  append(text, short_count, 2);
  append(text, short_count, 2);
  append(text, in_32_bits(size_bytes), 4);
  append(text, in_32_bits(offset_ - size_bytes), 4);
  append(text, 0, 2);  // comment
  return text;
}

Status ZipWriter::add(const std::string& name, const std::vector<Bytes>& parts, ZipMethod method) {
  TESSERA_TRY(check_name(name));
  if (!names_.insert(name).second) {
    return fail(ErrorCode::kAlreadyExists, "member '" + name + "' stands twice");
  }
  Record record{name, method, 0, 0, 0, offset_};
  std::string deflated;
  std::optional<Deflater> deflater;
  if (method == ZipMethod::kDeflated) deflater.emplace();
  for (const Bytes part : parts) {
    record.size_bytes += part.size();
    record.crc32 = static_cast<std::uint32_t>(
        ::crc32_z(record.crc32, reinterpret_cast<const Bytef*>(part.data()), part.size()));
    if (deflater) deflater->add(part, deflated);
  }
  if (deflater) deflater->finish(deflated);
  record.packed_bytes = deflater ? deflated.size() : record.size_bytes;
  TESSERA_TRY(put(local_header(record)));
  if (deflater) {
    TESSERA_TRY(put(deflated));
  } else {
    for (const Bytes part : parts) {
      TESSERA_TRY(put({reinterpret_cast<const char*>(part.data()), part.size()}));
    }
  }
  records_.push_back(std::move(record));
  return {};
}

Status ZipWriter::finish() {
  std::string directory;
  for (const Record& record : records_) directory += directory_entry(record);
  TESSERA_TRY(put(directory));
  TESSERA_TRY(put(directory_end(directory.size())));
  return file_->commit();
}

}  // namespace tessera::io
