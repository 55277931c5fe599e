#include "io/npz.h"

#include <memory>
#include <string_view>

#include "io/npy.h"
#include "io/npy_header.h"

namespace tessera::io {
namespace {

constexpr std::string_view kSuffix = ".npy";

// The longest magic, version and length before the text of a header.
constexpr std::size_t kHeaderPrefixBytes = 12;

Result<Tensor> read_member(const ZipReader& archive, const ZipMember& member) {
  // The header comes first, so that an archive that claims a size without the array for it costs
  // nothing.
  TESSERA_ASSIGN(const auto head, archive.peek(member, kMaxNpyHeaderBytes + kHeaderPrefixBytes));
  TESSERA_TRY(check_npy_size(head, member.size_bytes));
  TESSERA_ASSIGN(const Tensor bytes, archive.read(member));
  const auto owner = std::make_shared<const Tensor>(bytes);
  return parse_npy(
      {static_cast<const std::byte*>(bytes.data()), static_cast<std::size_t>(bytes.nbytes())},
      owner);
}

Status add_member(ZipWriter& archive, const std::string& name, const Tensor& tensor,
                  ZipMethod method) {
  TESSERA_ASSIGN(const NpyText text, to_npy(tensor));
  const std::span<const char> header(text.header);
  const std::span<const std::byte> elements(static_cast<const std::byte*>(text.elements.data()),
                                            static_cast<std::size_t>(text.elements.nbytes()));
  return archive.add(name + std::string(kSuffix), {std::as_bytes(header), elements}, method);
}

}  // namespace

Result<NamedTensors> read_npz(const std::filesystem::path& path) {
  TESSERA_ASSIGN(const ZipReader archive, ZipReader::open(path));
  NamedTensors tensors;
  for (const ZipMember& member : archive.members()) {
    if (!std::string_view(member.name).ends_with(kSuffix)) {
      return tl::unexpected(
          in_context(Error{ErrorCode::kInvalidArgument,
                           "expected members named *.npy, found '" + member.name + "'",
                           {}},
                     path.string()));
    }
    std::string name = member.name.substr(0, member.name.size() - kSuffix.size());
    auto tensor = read_member(archive, member);
    if (!tensor) {
      return tl::unexpected(
          in_context(in_context(std::move(tensor).error(), "array '" + name + "'"), path.string()));
    }
    tensors.emplace_back(std::move(name), *std::move(tensor));
  }
  return tensors;
}

Status write_npz(const std::filesystem::path& path, const NamedTensors& tensors, ZipMethod method) {
  TESSERA_ASSIGN(ZipWriter archive, ZipWriter::create(path));
  for (const auto& [name, tensor] : tensors) {
    TESSERA_TRY_IN(add_member(archive, name, tensor, method), "array '" + name + "'");
  }
  return archive.finish();
}

}  // namespace tessera::io
