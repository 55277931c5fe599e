#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "io/zip.h"
#include "io/zip_format.h"

namespace tessera::io {
namespace {

using Bytes = std::span<const std::byte>;

// A stream of deflate grows by at most this factor (RFC 1951: 258 bytes from 2 bits).
constexpr std::uint64_t kMaxDeflateRatio = 1032;
constexpr std::size_t kMaxCommentBytes = 65535;

tl::unexpected<Error> damaged(std::string message) {
  return fail(ErrorCode::kDataLoss, "damaged zip archive: " + std::move(message));
}

// A little endian number; the caller has checked that it lies inside.
std::uint64_t number(Bytes bytes, std::size_t offset, std::size_t width) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < width; ++i) {
    value |= std::to_integer<std::uint64_t>(bytes[offset + i]) << (8 * i);
  }
  return value;
}

std::uint16_t u16(Bytes bytes, std::size_t offset) {
  return static_cast<std::uint16_t>(number(bytes, offset, 2));
}

std::uint32_t u32(Bytes bytes, std::size_t offset) {
  return static_cast<std::uint32_t>(number(bytes, offset, 4));
}

// `size` bytes at `offset`, or nothing where they are not inside.
std::optional<Bytes> slice(Bytes bytes, std::uint64_t offset, std::uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset) return std::nullopt;
  return bytes.subspan(offset, size);
}

struct Directory {
  std::uint64_t count = 0;
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;
};

// The record at the end of the file: the last one that fits, since a comment of any text follows.
std::optional<std::size_t> find_end(Bytes file) {
  if (file.size() < zip::kEndBytes) return std::nullopt;
  const std::size_t last = file.size() - zip::kEndBytes;
  const std::size_t first = last > kMaxCommentBytes ? last - kMaxCommentBytes : 0;
  for (std::size_t at = last + 1; at-- > first;) {
    if (u32(file, at) == zip::kEndSignature && u16(file, at + 20) == last - at) return at;
  }
  return std::nullopt;
}

Result<Directory> read_end64(Bytes file, std::size_t end) {
  if (end < zip::kEnd64LocatorBytes) return damaged("the zip64 locator is missing");
  const std::size_t locator = end - zip::kEnd64LocatorBytes;
  if (u32(file, locator) != zip::kEnd64LocatorSignature) {
    return damaged("the zip64 locator is missing");
  }
  const auto record = slice(file, number(file, locator + 8, 8), zip::kEnd64Bytes);
  if (!record || u32(*record, 0) != zip::kEnd64Signature) {
    return damaged("the zip64 directory end is missing");
  }
  return Directory{number(*record, 32, 8), number(*record, 48, 8), number(*record, 40, 8)};
}

Result<Directory> read_end(Bytes file) {
  const auto end = find_end(file);
  if (!end) {
    return fail(ErrorCode::kInvalidArgument,
                "expected a zip archive, found no directory at its end");
  }
  if (u16(file, *end + 4) != 0 && u16(file, *end + 4) != zip::kIn64Count) {
    return fail(ErrorCode::kUnimplemented, "zip archives of several volumes are not read");
  }
  const Directory directory{u16(file, *end + 10), u32(file, *end + 16), u32(file, *end + 12)};
  if (directory.count == zip::kIn64Count || directory.offset == zip::kIn64 ||
      directory.size_bytes == zip::kIn64) {
    return read_end64(file, *end);
  }
  return directory;
}

struct Sizes {
  std::uint64_t unpacked = 0;
  std::uint64_t packed = 0;
  std::uint64_t offset = 0;
};

// Replaces the sizes that are all ones by those of the zip64 field, where they stand in this order.
Status apply_zip64(Bytes extra, Sizes& sizes) {
  std::vector<std::uint64_t*> wanted;
  for (std::uint64_t* size : {&sizes.unpacked, &sizes.packed, &sizes.offset}) {
    if (*size == zip::kIn64) wanted.push_back(size);
  }
  if (wanted.empty()) return {};
  while (extra.size() >= 4) {
    const std::size_t length = u16(extra, 2);
    if (length > extra.size() - 4) break;
    if (u16(extra, 0) == zip::kZip64Field && length >= 8 * wanted.size()) {
      for (std::size_t i = 0; i < wanted.size(); ++i) *wanted[i] = number(extra, 4 + 8 * i, 8);
      return {};
    }
    extra = extra.subspan(4 + length);
  }
  return damaged("a member lacks its zip64 sizes");
}

// Where the data of a member begins: after its local header, whose name and extra field have their
// own lengths.
Result<Bytes> packed_bytes(Bytes file, const std::string& name, const Sizes& sizes) {
  const auto local = slice(file, sizes.offset, zip::kLocalBytes);
  if (!local || u32(*local, 0) != zip::kLocalSignature) {
    return damaged("member '" + name + "' has no local header");
  }
  const std::uint64_t start = sizes.offset + zip::kLocalBytes + u16(*local, 26) + u16(*local, 28);
  const auto packed = slice(file, start, sizes.packed);
  if (!packed) return damaged("member '" + name + "' reaches past the end of the file");
  return *packed;
}

Status check_sizes(const ZipMember& member) {
  const std::uint64_t packed = member.packed.size();
  const bool possible = member.method == ZipMethod::kStored
                            ? member.size_bytes == packed
                            : member.size_bytes / kMaxDeflateRatio <= packed;
  if (possible) return {};
  return damaged("member '" + member.name + "' claims " + std::to_string(member.size_bytes) +
                 " bytes from " + std::to_string(packed));
}

// Reads the entry at the start of `rest` and removes it.
Result<ZipMember> read_entry(Bytes file, Bytes& rest) {
  if (rest.size() < zip::kEntryBytes || u32(rest, 0) != zip::kEntrySignature) {
    return damaged("an entry of the directory is cut off");
  }
  const std::size_t name_bytes = u16(rest, 28);
  const std::size_t extra_bytes = u16(rest, 30);
  const std::size_t total = zip::kEntryBytes + name_bytes + extra_bytes + u16(rest, 32);
  if (rest.size() < total) return damaged("an entry of the directory is cut off");
  ZipMember member;
  member.name.assign(reinterpret_cast<const char*>(rest.data()) + zip::kEntryBytes, name_bytes);
  if ((u16(rest, 8) & zip::kFlagEncrypted) != 0) {
    return fail(ErrorCode::kUnimplemented, "member '" + member.name + "' is encrypted");
  }
  const std::uint16_t method = u16(rest, 10);
  if (method != zip::kMethodStored && method != zip::kMethodDeflated) {
    return fail(ErrorCode::kUnimplemented, "member '" + member.name + "' is packed by method " +
                                               std::to_string(method) +
                                               "; expected 0 (stored) or 8 (deflated)");
  }
  member.method = method == zip::kMethodStored ? ZipMethod::kStored : ZipMethod::kDeflated;
  member.crc32 = u32(rest, 16);
  Sizes sizes{u32(rest, 24), u32(rest, 20), u32(rest, 42)};
  TESSERA_TRY(apply_zip64(rest.subspan(zip::kEntryBytes + name_bytes, extra_bytes), sizes));
  member.size_bytes = sizes.unpacked;
  TESSERA_ASSIGN(member.packed, packed_bytes(file, member.name, sizes));
  TESSERA_TRY(check_sizes(member));
  rest = rest.subspan(total);
  return member;
}

// Names that stand once, and data that lies apart: overlapping members are how small archives claim
// to be huge.
Status check_members(const std::vector<ZipMember>& members) {
  std::set<std::string_view> names;
  std::vector<const ZipMember*> by_place;
  for (const ZipMember& member : members) {
    if (!names.insert(member.name).second) {
      return damaged("member '" + member.name + "' stands twice");
    }
    by_place.push_back(&member);
  }
  std::sort(by_place.begin(), by_place.end(), [](const ZipMember* a, const ZipMember* b) {
    return a->packed.data() < b->packed.data();
  });
  for (std::size_t i = 1; i < by_place.size(); ++i) {
    const Bytes before = by_place[i - 1]->packed;
    if (before.data() + before.size() > by_place[i]->packed.data()) {
      return damaged("members '" + by_place[i - 1]->name + "' and '" + by_place[i]->name +
                     "' overlap");
    }
  }
  return {};
}

Result<std::vector<ZipMember>> read_directory(Bytes file) {
  TESSERA_ASSIGN(const Directory directory, read_end(file));
  const auto entries = slice(file, directory.offset, directory.size_bytes);
  if (!entries) return damaged("the directory lies outside of the file");
  if (directory.count > entries->size() / zip::kEntryBytes) {
    return damaged("the directory is too short for " + std::to_string(directory.count) +
                   " members");
  }
  std::vector<ZipMember> members;
  Bytes rest = *entries;
  for (std::uint64_t i = 0; i < directory.count; ++i) {
    TESSERA_ASSIGN(ZipMember member, read_entry(file, rest));
    members.push_back(std::move(member));
  }
  TESSERA_TRY(check_members(members));
  return members;
}

uInt chunk_of(std::size_t size_bytes) {
  return static_cast<uInt>(std::min<std::size_t>(size_bytes, 1U << 30U));
}

struct Inflated {
  std::size_t size_bytes = 0;
  bool ended = false;  // the stream came to its end
  bool damaged = false;
};

// Inflates raw deflate data until `target` is full or the stream ends.
Inflated inflate_into(Bytes packed, std::span<std::byte> target) {
  z_stream stream{};
  TESSERA_CHECK(::inflateInit2(&stream, -MAX_WBITS) == Z_OK);
  Inflated result;
  std::size_t consumed = 0;
  std::byte spare{};  // room for one byte more than expected, to notice it
  while (true) {
    const uInt input = chunk_of(packed.size() - consumed);
    const bool full = result.size_bytes == target.size();
    const uInt room = full ? 1 : chunk_of(target.size() - result.size_bytes);
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed.data() + consumed));
    stream.avail_in = input;
    stream.next_out = reinterpret_cast<Bytef*>(full ? &spare : target.data() + result.size_bytes);
    stream.avail_out = room;
    const int code = ::inflate(&stream, Z_NO_FLUSH);
    consumed += input - stream.avail_in;
    const std::size_t produced = room - stream.avail_out;
    if (full && produced != 0) break;
    result.size_bytes += produced;
    result.ended = code == Z_STREAM_END;
    result.damaged = code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR;
    const bool stuck = produced == 0 && input == stream.avail_in;
    if (result.ended || result.damaged || stuck) break;
  }
  ::inflateEnd(&stream);
  return result;
}

std::uint32_t crc_of(Bytes bytes) {
  return static_cast<std::uint32_t>(
      ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

Bytes bytes_of(const Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.data()), static_cast<std::size_t>(tensor.nbytes())};
}

Result<Tensor> unpack(const ZipMember& member) {
  TESSERA_ASSIGN(Tensor tensor,
                 Tensor::zeros(DType::kUInt8, {static_cast<std::int64_t>(member.size_bytes)}));
  const std::span<std::byte> target(static_cast<std::byte*>(tensor.mutable_data()),
                                    static_cast<std::size_t>(member.size_bytes));
  const Inflated result = inflate_into(member.packed, target);
  if (result.damaged)
    return damaged("the deflated data of member '" + member.name + "' is invalid");
  if (!result.ended || result.size_bytes != member.size_bytes) {
    return damaged("expected " + std::to_string(member.size_bytes) + " bytes in member '" +
                   member.name + "', found " +
                   (result.ended || result.size_bytes < member.size_bytes
                        ? std::to_string(result.size_bytes)
                        : "more"));
  }
  return tensor;
}

}  // namespace

Result<ZipReader> ZipReader::open(const std::filesystem::path& path) {
  TESSERA_ASSIGN(auto file, MappedFile::open(path));  // its errors name the path
  auto members = read_directory(file->bytes());
  if (!members) return tl::unexpected(in_context(std::move(members).error(), path.string()));
  return ZipReader(std::move(file), *std::move(members));
}

Result<std::vector<std::byte>> ZipReader::peek(const ZipMember& member,
                                               std::size_t limit_bytes) const {
  std::vector<std::byte> bytes(std::min<std::uint64_t>(limit_bytes, member.size_bytes));
  if (member.method == ZipMethod::kStored) {
    std::copy_n(member.packed.begin(), bytes.size(), bytes.begin());
    return bytes;
  }
  const Inflated result = inflate_into(member.packed, bytes);
  if (result.damaged)
    return damaged("the deflated data of member '" + member.name + "' is invalid");
  bytes.resize(result.size_bytes);
  return bytes;
}

Result<Tensor> ZipReader::read(const ZipMember& member) const {
  Tensor tensor;
  if (member.method == ZipMethod::kStored) {
    tensor = Tensor::borrow(DType::kUInt8, {static_cast<std::int64_t>(member.size_bytes)},
                            member.packed.data(), file_);
  } else {
    TESSERA_ASSIGN(tensor, unpack(member));
  }
  if (const std::uint32_t found = crc_of(bytes_of(tensor)); found != member.crc32) {
    return damaged("the CRC-32 of member '" + member.name + "' differs");
  }
  return tensor;
}

}  // namespace tessera::io
