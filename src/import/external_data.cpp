#include "import/external_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/checked.h"
#include "base/error.h"
#include "base/file.h"
#include "io/onnx.pb.h"

namespace tessera::importer {
namespace {

namespace fs = std::filesystem;

struct Reference {
  std::string location;
  std::int64_t offset = 0;
  std::optional<std::int64_t> length;
};

Result<std::int64_t> parse_size(const std::string& key, const std::string& text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < 0) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("external data: {}: expected a number from 0 to 2^63-1, found '{}'",
                            key, text));
  }
  return value;
}

// Keys besides location, offset and length (checksum, and what other programs note) mean nothing
// here.
Result<Reference> parse_reference(const onnx::TensorProto& proto) {
  Reference reference;
  std::map<std::string, std::string> entries;
  for (const auto& entry : proto.external_data()) {
    if (!entries.emplace(entry.key(), entry.value()).second) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("external data: duplicate key '{}'", entry.key()));
    }
  }
  reference.location = entries["location"];
  if (reference.location.empty()) {
    return fail(ErrorCode::kInvalidArgument, "external data: expected a location, found none");
  }
  if (entries.contains("offset")) {
    TESSERA_ASSIGN(reference.offset, parse_size("offset", entries["offset"]));
  }
  if (entries.contains("length")) {
    TESSERA_ASSIGN(reference.length, parse_size("length", entries["length"]));
  }
  return reference;
}

// Whether `path` lies in `folder` or below; both without links.
bool lies_in(const fs::path& path, const fs::path& folder) {
  const auto [folder_end, path_at] =
      std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return folder_end == folder.end() ||
         (folder_end->empty() && std::next(folder_end) == folder.end());
}

Status check_location(const std::string& location) {
  const auto refuse = [&](std::string_view why) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("external data: location '{}' {}", location, why));
  };
  if (location.find('\0') != std::string::npos)
    return refuse("is not allowed: it holds a null byte");
  const fs::path path(location);
  if (path.is_absolute())
    return refuse("is not allowed: an absolute path leads outside of the model's folder");
  if (std::find(path.begin(), path.end(), "..") != path.end()) {
    return refuse("is not allowed: a parent folder ('..') can lead outside of the model's folder");
  }
  return {};
}

}  // namespace

ExternalData ExternalData::beside(const fs::path& model_path) {
  ExternalData data = inside(model_path.parent_path());
  std::error_code error;
  const fs::path resolved = fs::canonical(model_path, error);
  if (!error) data.resolved_model_ = resolved;
  return data;
}

ExternalData ExternalData::inside(const fs::path& folder) {
  ExternalData data;
  data.folder_ = folder.empty() ? fs::path(".") : folder;
  return data;
}

Result<fs::path> ExternalData::resolve(const std::string& location) const {
  TESSERA_TRY(check_location(location));
  if (!folder_) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("external data: location '{}' is not allowed: the model was loaded "
                            "from memory without a folder",
                            location));
  }
  std::error_code error;
  const fs::path target = fs::canonical(*folder_ / location, error);
  if (error) {
    return fail(
        ErrorCode::kNotFound,
        fmt::format("external data: expected a file '{}' in the folder '{}', found none ({})",
                    location, folder_->string(), error.message()));
  }
  const fs::path folder = fs::canonical(*folder_, error);
  const bool is_inside =
      !error && (lies_in(target, folder) ||
                 (resolved_model_ && lies_in(target, resolved_model_->parent_path())));
  if (!is_inside) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("external data: location '{}' is not allowed: its symbolic link leads "
                            "outside of the model's folder",
                            location));
  }
  if (!fs::is_regular_file(target, error)) {
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("external data: location '{}': expected a regular file, found {}", location,
                    fs::is_directory(target, error) ? "a directory" : "something else"));
  }
  return target;
}

Result<std::shared_ptr<const MappedFile>> ExternalData::map(const std::string& location) {
  const auto known = files_.find(location);
  if (known != files_.end()) return known->second;
  TESSERA_ASSIGN(const fs::path path, resolve(location));
  TESSERA_ASSIGN(auto file, MappedFile::open(path));
  files_.emplace(location, file);
  return file;
}

Result<Tensor> ExternalData::read(const onnx::TensorProto& proto, DType dtype, const Dims& dims) {
  TESSERA_ASSIGN(const Reference reference, parse_reference(proto));
  TESSERA_TRY(check_location(reference.location));
  if (dtype == DType::kString) {
    return fail(ErrorCode::kUnimplemented, "external data: strings cannot lie in a file");
  }
  TESSERA_ASSIGN(const std::int64_t size_bytes, checked_nbytes(dtype, dims));
  if (reference.length && *reference.length != size_bytes) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("external data: length: expected {} bytes for {}[{}], found {}",
                            size_bytes, to_string(dtype), to_string(dims), *reference.length));
  }
  TESSERA_ASSIGN(const auto file, map(reference.location));
  const auto bytes = file->bytes();
  const auto end = checked_add(reference.offset, size_bytes);
  if (!end || static_cast<std::uint64_t>(*end) > bytes.size()) {
    return fail(
        ErrorCode::kDataLoss,
        fmt::format("external data: file '{}' has a size of {} bytes; expected {} at offset {}",
                    reference.location, bytes.size(), size_bytes, reference.offset));
  }
  return Tensor::borrow(dtype, dims, bytes.data() + reference.offset, file);
}

}  // namespace tessera::importer
