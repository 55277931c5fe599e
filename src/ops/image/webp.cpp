// WebP, still pictures, through libwebp.

#include <webp/decode.h>

#include "ops/image/image.h"

namespace tessera::ops::image {
namespace {

bool recognizes(Bytes bytes) {
  return begins_with(bytes, "RIFF") && bytes.size() >= 12 && begins_with(bytes.subspan(8), "WEBP");
}

Result<Tensor> decode_webp(Bytes bytes) {
  WebPBitstreamFeatures features;
  const VP8StatusCode status = WebPGetFeatures(bytes.data(), bytes.size(), &features);
  if (status == VP8_STATUS_NOT_ENOUGH_DATA) return cut_off();
  if (status != VP8_STATUS_OK) return damaged("the header is damaged");
  if (features.has_animation != 0)
    return fail(ErrorCode::kUnimplemented, "expected a still picture, found an animation");
  TESSERA_ASSIGN(Tensor picture, new_picture(features.height, features.width));
  if (WebPDecodeRGBInto(bytes.data(), bytes.size(), pixels_of(picture),
                        static_cast<std::size_t>(picture.nbytes()), 3 * features.width) == nullptr)
    return damaged("the pixels are damaged or cut off");
  return picture;
}

}  // namespace

const Format kWebp = {"WebP", recognizes, decode_webp};

}  // namespace tessera::ops::image
