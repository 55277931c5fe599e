#include "demo/png.h"

#include <zlib.h>

#include "base/error.h"

namespace tessera::demo {
namespace {

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xFF);
  return bytes;
}

const Bytef* bytes_of(const std::string& text) {
  return reinterpret_cast<const Bytef*>(text.data());
}

// Length of the data, type, data, checksum of type and data.
std::string chunk(const std::string& type, const std::string& data) {
  const std::string body = type + data;
  const auto checksum = crc32(0, bytes_of(body), static_cast<uInt>(body.size()));
  return big_endian(static_cast<std::uint32_t>(data.size())) + body +
         big_endian(static_cast<std::uint32_t>(checksum));
}

std::string deflated(const std::string& raw) {
  auto size = compressBound(raw.size());
  std::string packed(size, '\0');
  const int status =
      compress(reinterpret_cast<Bytef*>(packed.data()), &size, bytes_of(raw), raw.size());
  TESSERA_CHECK(status == Z_OK);  // the buffer is as large as zlib asks
  packed.resize(size);
  return packed;
}

}  // namespace

std::string to_png(const Picture& picture) {
  constexpr char kNoFilter = 0;
  const std::string header =
      big_endian(static_cast<std::uint32_t>(picture.width_px())) +
      big_endian(static_cast<std::uint32_t>(picture.height_px())) +
      std::string{8, 2, 0, 0, 0};  // depth, RGB, deflate, filter method, not interlaced
  const std::size_t row_bytes = static_cast<std::size_t>(picture.width_px()) * 3;
  std::string rows;
  for (std::size_t at = 0; at < picture.rgb().size(); at += row_bytes) {
    rows += kNoFilter;
    rows.append(reinterpret_cast<const char*>(picture.rgb().data() + at), row_bytes);
  }
  return "\x89PNG\r\n\x1A\n" + chunk("IHDR", header) + chunk("IDAT", deflated(rows)) +
         chunk("IEND", "");
}

}  // namespace tessera::demo
