#pragma once

// Zip archives, as much of them as .npz files use: stored and deflated members, zip64, no
// encryption, one volume.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/tensor.h"

namespace tessera::io {

enum class ZipMethod : std::uint8_t { kStored, kDeflated };

struct ZipMember {
  std::string name;
  ZipMethod method = ZipMethod::kStored;
  std::uint32_t crc32 = 0;
  std::span<const std::byte> packed;  // inside of the mapped archive
  std::uint64_t size_bytes = 0;       // unpacked, as the directory claims
};

// An archive that is mapped into memory.
class ZipReader {
 public:
  // Reads the directory at the end of the file. Errors: not a zip archive; members that are
  // encrypted, use another method, lie outside of the file or over each other, have the same name,
  // or claim more bytes than their deflated data can give.
  static Result<ZipReader> open(const std::filesystem::path& path);

  [[nodiscard]] const std::vector<ZipMember>& members() const { return members_; }

  // The first bytes of a member, at most `limit_bytes`, unpacked but not checked: to see what it is
  // before it is unpacked.
  [[nodiscard]] Result<std::vector<std::byte>> peek(const ZipMember& member,
                                                    std::size_t limit_bytes) const;

  // All bytes as a uint8 tensor (stored ones without a copy). Errors: damaged data, a size or
  // CRC-32 that differs.
  [[nodiscard]] Result<Tensor> read(const ZipMember& member) const;

 private:
  ZipReader(std::shared_ptr<const MappedFile> file, std::vector<ZipMember> members)
      : file_(std::move(file)), members_(std::move(members)) {}
  std::shared_ptr<const MappedFile> file_;
  std::vector<ZipMember> members_;
};

// Writes an archive, member after member. The bytes depend on the content alone: every time stamp
// is 1980-01-01.
class ZipWriter {
 public:
  static Result<ZipWriter> create(const std::filesystem::path& path);

  // A member that consists of `parts`, one after the other. Errors: a name that is not UTF-8, holds
  // NUL or is longer than 65535 bytes, or that stands already; a full disk.
  Status add(const std::string& name, const std::vector<std::span<const std::byte>>& parts,
             ZipMethod method);

  Status finish();  // writes the directory and makes the file visible

 private:
  struct Record {
    std::string name;
    ZipMethod method = ZipMethod::kStored;
    std::uint32_t crc32 = 0;
    std::uint64_t packed_bytes = 0;
    std::uint64_t size_bytes = 0;
    std::uint64_t offset = 0;
  };

  explicit ZipWriter(std::unique_ptr<AtomicFile> file) : file_(std::move(file)) {}
  Status put(std::string_view bytes);
  static std::string local_header(const Record& record);
  static std::string directory_entry(const Record& record);
  [[nodiscard]] std::string directory_end(std::uint64_t size_bytes) const;

  std::unique_ptr<AtomicFile> file_;
  std::vector<Record> records_;
  std::set<std::string> names_;
  std::uint64_t offset_ = 0;
};

}  // namespace tessera::io
