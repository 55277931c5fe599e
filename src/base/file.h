#pragma once

// Files: mapped for reading, written so that a reader sees the old file or the whole new one.

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tessera {

// A file mapped read-only; the bytes live as long as the object. Errors name the path and the
// reason.
class MappedFile {
 public:
  static Result<std::shared_ptr<const MappedFile>> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, size_bytes_}; }

 private:
  MappedFile(const std::byte* data, std::size_t size_bytes)
      : data_(data), size_bytes_(size_bytes) {}
  const std::byte* data_;
  std::size_t size_bytes_;
};

Result<std::string> read_file(const std::filesystem::path& path);

// Writes to a temporary name beside `path`; commit() flushes and renames; without it the destructor
// removes the temporary file. A full disk is an error that names the path. Temporary names of
// unfinished writers are known to the process, so that remove_unfinished_files()
// (async-signal-safe) can clear them on Ctrl-C.
class AtomicFile {
 public:
  static Result<std::unique_ptr<AtomicFile>> create(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  Status write(const void* data, std::size_t size_bytes);
  Status commit();

 private:
  AtomicFile() = default;
  std::filesystem::path path_;
  std::string temporary_;
  int descriptor_ = -1;
  int slot_ = -1;
};

Status write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

// Removes the temporary files of writers that have not committed. Async-signal-safe.
void remove_unfinished_files();

}  // namespace tessera
