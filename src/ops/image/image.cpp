#include "ops/image/image.h"

#include <fmt/format.h>

#include <algorithm>

namespace tessera::ops::image {
namespace {

const Format* const kFormats[] = {&kBmp, &kJpeg, &kJpeg2000, &kPng, &kPnm, &kTiff, &kWebp};

}  // namespace

Status check_size(std::int64_t height, std::int64_t width) {
  if (height > 0 && width > 0 && height <= kMaxPixels / width) return {};
  return fail(ErrorCode::kOutOfRange,
              fmt::format("expected 1 to {} pixels, found {} x {}", kMaxPixels, width, height));
}

Result<Tensor> new_picture(std::int64_t height, std::int64_t width) {
  TESSERA_TRY(check_size(height, width));
  return Tensor::zeros(DType::kUInt8, {height, width, 3});
}

Result<Tensor> decode(Bytes bytes) {
  const auto* const format =
      std::find_if(std::begin(kFormats), std::end(kFormats),
                   [&](const Format* candidate) { return candidate->recognizes(bytes); });
  if (format == std::end(kFormats))
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("expected a BMP, JPEG, JPEG 2000, PNG, PNM, TIFF or WebP file, found "
                            "{} bytes of none of them",
                            bytes.size()));
  auto picture = (*format)->decode(bytes);
  if (!picture)
    return tl::unexpected(in_context(std::move(picture).error(), std::string((*format)->name)));
  return picture;
}

bool begins_with(Bytes bytes, std::string_view magic) {
  return bytes.size() >= magic.size() &&
         std::equal(magic.begin(), magic.end(), bytes.begin(),
                    [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; });
}

tl::unexpected<Error> cut_off() {
  return damaged("the data end before the picture does");
}

tl::unexpected<Error> damaged(std::string_view message) {
  return fail(ErrorCode::kDataLoss, std::string(message));
}

}  // namespace tessera::ops::image
