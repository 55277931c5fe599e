// Bytes as a picture. Random bytes seldom get past the first ones of a format, so they change a
// sound picture: the first byte says which, the others come in threes, a place and what it holds.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ops/image/image.h"
#include "ops/image/image_samples_test.h"

namespace {

namespace samples = tessera::ops::image::samples;

constexpr std::string_view kSamples[] = {
    samples::kPngRgb,  samples::kPngPalette, samples::kPngRgba,   samples::kPngGray16,
    samples::kJpeg,    samples::kJpegGray,   samples::kJpegCmyk,  samples::kJpegProgressive,
    samples::kWebp,    samples::kJp2,        samples::kJ2kGray,   samples::kTiff,
    samples::kTiffLzw, samples::kBmp,        samples::kBmpPalette};

std::vector<std::uint8_t> from_hex(std::string_view digits) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2)
    bytes.push_back(static_cast<std::uint8_t>(digit(digits[i]) * 16 + digit(digits[i + 1])));
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)tessera::ops::image::decode({data, size});
  if (size == 0) return 0;
  auto bytes = from_hex(kSamples[data[0] % std::size(kSamples)]);
  constexpr std::size_t kMaxChanges = 8;  // more leave nothing sound
  for (std::size_t i = 1; i + 2 < size && i < 3 * kMaxChanges; i += 3)
    bytes[(data[i] * 256U + data[i + 1]) % bytes.size()] = data[i + 2];
  (void)tessera::ops::image::decode(bytes);
  return 0;
}
