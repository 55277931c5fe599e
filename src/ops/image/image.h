#pragma once

// Pictures out of encoded files. The bytes come from anywhere: a decoder bounds what it allocates
// before it allocates it, ends with an error where the bytes are cut off or damaged, prints
// nothing, and lets no library jump over an object.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/tensor.h"

namespace tessera::ops::image {

using Bytes = std::span<const std::uint8_t>;

// The one limit: what a file may declare as its width times its height.
inline constexpr std::int64_t kMaxPixels = std::int64_t{1} << 27;

// Errors: no pixel at all, more than kMaxPixels.
Status check_size(std::int64_t height, std::int64_t width);

// Black pixels, uint8[height, width, 3]: red, green, blue. Errors: as of check_size(), and out of
// memory.
Result<Tensor> new_picture(std::int64_t height, std::int64_t width);

inline std::uint8_t* pixels_of(Tensor& picture) {
  return static_cast<std::uint8_t*>(picture.mutable_data());
}

// One file format. `decode` gives what new_picture() describes: transparency is left out, 16 bits
// are cut to 8, and neither gamma nor orientation is applied.
struct Format {
  std::string_view name;
  bool (*recognizes)(Bytes bytes);
  Result<Tensor> (*decode)(Bytes bytes);
};

extern const Format kBmp;
extern const Format kJpeg;
extern const Format kJpeg2000;
extern const Format kPng;
extern const Format kPnm;
extern const Format kTiff;
extern const Format kWebp;

// By the format that the first bytes name: "ImageDecoder: PNG: ...".
Result<Tensor> decode(Bytes bytes);

// Whether the bytes begin with `magic`.
bool begins_with(Bytes bytes, std::string_view magic);

// "the data end before the picture does", where a format has no words of its own.
tl::unexpected<Error> cut_off();
tl::unexpected<Error> damaged(std::string_view message);

}  // namespace tessera::ops::image
