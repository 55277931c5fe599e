// ImageDecoder: pixels of every format, and what is said of bytes that are no picture.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/image/image.h"
#include "ops/image/image_samples_test.h"
#include "testing/op_testing.h"

namespace tessera::ops {
namespace {

namespace samples = image::samples;
using samples::kPixels;
using ::testing::ElementsAre;
using testing::infer_text;
using testing::op_error;
using testing::run_op;
using ::testing::StartsWith;
using testing::try_op;
using testing::typed;
using testing::values;
using std::string_literals::operator""s;

using Bytes = std::vector<std::uint8_t>;

Bytes from_hex(std::string_view digits) {
  Bytes bytes;
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  for (std::size_t i = 0; i < digits.size(); i += 2)
    bytes.push_back(static_cast<std::uint8_t>(digit(digits[i]) * 16 + digit(digits[i + 1])));
  return bytes;
}

Bytes from_text(const std::string& text) {
  return {text.begin(), text.end()};
}

Tensor stream(const Bytes& bytes) {
  return Tensor::of<std::uint8_t>(DType::kUInt8, {static_cast<std::int64_t>(bytes.size())}, bytes);
}

Bytes decoded(const Bytes& bytes, const char* format = "RGB") {
  return values<std::uint8_t>(
      run_op("ImageDecoder", {stream(bytes)}, {{"pixel_format", std::string(format)}}));
}

std::string error(const Bytes& bytes) {
  return op_error("ImageDecoder", {stream(bytes)});
}

// `bytes` with others from `at` on.
Bytes changed(Bytes bytes, std::size_t at, const Bytes& others) {
  std::copy(others.begin(), others.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
  return bytes;
}

// The first pixels of each row.
Bytes left_edge(const Bytes& pixels, std::size_t width) {
  Bytes edge;
  for (std::size_t at = 0; at < pixels.size(); at += 3 * width)
    edge.insert(edge.end(), pixels.begin() + static_cast<std::ptrdiff_t>(at),
                pixels.begin() + static_cast<std::ptrdiff_t>(at) + 3);
  return edge;
}

TEST(ImageDecoder, GivesThePixelsOfLosslessFormats) {
  for (const std::string_view sample :
       {samples::kPngRgb, samples::kPngPalette, samples::kPngRgba, samples::kWebp, samples::kJp2,
        samples::kTiff, samples::kTiffLzw, samples::kBmp, samples::kBmpPalette})
    EXPECT_EQ(decoded(from_hex(sample)), kPixels) << sample;
  EXPECT_THAT(decoded(from_hex(samples::kPngGray16)),
              ElementsAre(0, 0, 0, 255, 255, 255, 128, 128, 128));
  EXPECT_THAT(decoded(from_hex(samples::kJ2kGray), "Grayscale"),
              ElementsAre(76, 150, 29, 18, 124, 255));
}

TEST(ImageDecoder, GivesThePixelsOfJpeg) {
  EXPECT_THAT(left_edge(decoded(from_hex(samples::kJpeg)), 8),
              ElementsAre(199, 29, 66, 202, 28, 61, 205, 27, 51, 155, 43, 89, 53, 78, 179, 2, 92,
                          228, 8, 86, 238, 11, 83, 243));
  EXPECT_THAT(left_edge(decoded(from_hex(samples::kJpegGray)), 8),
              ElementsAre(0, 0, 0, 32, 32, 32, 64, 64, 64, 94, 94, 94, 131, 131, 131, 162, 162, 162,
                          193, 193, 193, 225, 225, 225));
  EXPECT_THAT(left_edge(decoded(from_hex(samples::kJpegCmyk)), 8),
              ElementsAre(43, 176, 150, 43, 178, 151, 44, 170, 148, 42, 181, 158, 7, 4, 1, 10, 7, 2,
                          10, 6, 1, 9, 6, 1));
}

TEST(ImageDecoder, OrdersTheChannels) {
  const Bytes png = from_hex(samples::kPngRgb);
  EXPECT_THAT(decoded(png, "BGR"), ElementsAre(0, 0, 255, 0, 255, 0, 255, 0, 0, 30, 20, 10, 50, 100,
                                               200, 255, 255, 255));
  EXPECT_THAT(decoded(png, "Grayscale"), ElementsAre(76, 150, 29, 18, 124, 255));
  const Tensor image = run_op("ImageDecoder", {stream(png)}, {{"pixel_format", "Grayscale"s}});
  EXPECT_EQ(image.dims(), (Dims{2, 3, 1}));
  EXPECT_EQ(infer_text("ImageDecoder", {typed("uint8[n]")}), "uint8[_0, _1, 3]");
  EXPECT_EQ(infer_text("ImageDecoder", {typed("uint8[n]")}, {{"pixel_format", "Grayscale"s}}),
            "uint8[_0, _1, 1]");
  EXPECT_EQ(infer_text("ImageDecoder", {typed("uint8[n]")}, {{"pixel_format", "rgb"s}}),
            "attribute 'pixel_format': expected 'RGB', 'BGR' or 'Grayscale', found 'rgb'");
}

TEST(ImageDecoder, ReadsPortableMaps) {
  EXPECT_THAT(decoded(from_text("P1 # a bitmap\n2 2\n10\n0 1\n")),
              ElementsAre(0, 0, 0, 255, 255, 255, 255, 255, 255, 0, 0, 0));
  EXPECT_THAT(decoded(from_text("P2\n2 1 4\n0 2")), ElementsAre(0, 0, 0, 128, 128, 128));
  EXPECT_THAT(decoded(from_text("P3\n1 2\n255\n1 2 3\n#\n4 5 6")), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(decoded(from_text("P4\n2 2\n\x80\x40"s), "Grayscale"), ElementsAre(0, 255, 255, 0));
  EXPECT_THAT(decoded(from_text("P5\n2 1\n65535\n\xFF\xFF\x80\x80"s), "Grayscale"),
              ElementsAre(255, 128));
  EXPECT_THAT(decoded(from_text("P6 1 1 255\n\x01\x02\x03"s)), ElementsAre(1, 2, 3));
  EXPECT_EQ(error(from_text("P5 2 1 255\n ")),
            "ImageDecoder: PNM: the data end before the picture does");
  EXPECT_EQ(error(from_text("P2 2 1 255\n1")),
            "ImageDecoder: PNM: the data end before the picture does");
  EXPECT_EQ(error(from_text("P5 x")), "ImageDecoder: PNM: expected a number at byte 3");
  EXPECT_EQ(error(from_text("P1 1 1 2")), "ImageDecoder: PNM: expected 0 or 1 at byte 7");
  EXPECT_EQ(error(from_text("P2 1 1 4 5")),
            "ImageDecoder: PNM: expected samples of 0 to 4, found 5");
  EXPECT_EQ(error(from_text("P5 1 1 65536 ")),
            "ImageDecoder: PNM: expected a largest sample of 1 to 65535, found 65536");
}

TEST(ImageDecoder, ReadsBitmapsOfEveryDepth) {
  const auto header = [](std::uint8_t height, std::uint8_t bits, std::uint8_t compression,
                         std::uint8_t data) {
    const std::uint8_t sign = height >= 128 ? 255 : 0;
    Bytes bytes = {'B',  'M',  0,  0, 0,    0, 0,           0, 0, 0, data,   0,
                   0,    0,    40, 0, 0,    0, 2,           0, 0, 0, height, sign,
                   sign, sign, 1,  0, bits, 0, compression, 0, 0, 0};
    bytes.resize(54, 0);
    return bytes;
  };
  const auto with = [](Bytes bytes, const Bytes& more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
    return bytes;
  };
  // One bit: a palette of two colours, blue first in the file.
  EXPECT_THAT(decoded(with(header(1, 1, 0, 62), {1, 2, 3, 0, 4, 5, 6, 0, 0x40, 0, 0, 0})),
              ElementsAre(3, 2, 1, 6, 5, 4));
  EXPECT_THAT(decoded(with(header(1, 16, 0, 54), {0x00, 0x7C, 0x1F, 0x00})),
              ElementsAre(255, 0, 0, 0, 0, 255));
  // 5, 6 and 5 bits by masks; the rows from the top.
  EXPECT_THAT(decoded(with(header(0xFE, 16, 3, 66),
                           {0, 0xF8, 0,    0,    0xE0, 0x07, 0, 0, 0x1F, 0, 0, 0,  //
                            0, 0xF8, 0xE0, 0x07, 0x1F, 0,    0, 0})),
              ElementsAre(255, 0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0));
  EXPECT_THAT(decoded(with(header(1, 32, 0, 54), {3, 2, 1, 0, 6, 5, 4, 0})),
              ElementsAre(1, 2, 3, 4, 5, 6));
  const Bytes core = {'B', 'M', 0, 0, 0, 0, 0, 0, 0, 0,  26, 0, 0, 0, 12,
                      0,   0,   0, 1, 0, 1, 0, 1, 0, 24, 0,  9, 8, 7, 0};
  EXPECT_THAT(decoded(core), ElementsAre(7, 8, 9));
  EXPECT_EQ(error(header(1, 8, 1, 54)),
            "ImageDecoder: BMP: expected uncompressed pixels, found compression 1");
  EXPECT_EQ(error(header(1, 7, 0, 54)),
            "ImageDecoder: BMP: expected pixels of 1, 4, 8, 16, 24 or 32 bits, found 7");
  EXPECT_EQ(error(header(1, 24, 3, 54)),
            "ImageDecoder: BMP: expected pixels of 16 or 32 bits, found 24");
  EXPECT_EQ(error(with(header(1, 32, 3, 54), Bytes(12, 0))),
            "ImageDecoder: BMP: expected masks of red, green and blue, found none");
  EXPECT_EQ(error(changed(header(1, 24, 0, 54), 14, {41, 0, 0, 0})), error(header(1, 24, 0, 54)));
  EXPECT_EQ(error(changed(header(1, 24, 0, 54), 14, {13, 0, 0, 0})),
            "ImageDecoder: BMP: expected a header of 12 or at least 40 bytes, found 13");
  EXPECT_EQ(error(with(changed(header(1, 8, 0, 58), 46, {1, 0, 0, 0}), {1, 2, 3, 0, 0, 1, 0, 0})),
            "ImageDecoder: BMP: expected colours below 1, found 1");
}

TEST(ImageDecoder, RefusesGiantsBeforeItTakesMemory) {
  EXPECT_EQ(error(from_text("P5 11586 11585 255 ")),
            "ImageDecoder: PNM: expected 1 to 134217728 pixels, found 11586 x 11585");
  EXPECT_EQ(error(from_text("P6 0 4 255 ")),
            "ImageDecoder: PNM: expected 1 to 134217728 pixels, found 0 x 4");
  const std::string limit = ": expected 1 to 134217728 pixels, found ";
  EXPECT_EQ(error(changed(from_hex(samples::kBmp), 18, {0, 0, 0, 0x7F})),
            "ImageDecoder: BMP" + limit + "2130706432 x 2");
  EXPECT_EQ(error(changed(from_hex(samples::kBmp), 22, {0, 0, 0, 0x80})),
            "ImageDecoder: BMP" + limit + "3 x 2147483648");
  const Bytes jpeg = from_hex(samples::kJpeg);
  const Bytes frame = {0xFF, 0xC0, 0, 0x11, 8};
  const auto at = std::search(jpeg.begin(), jpeg.end(), frame.begin(), frame.end()) - jpeg.begin();
  EXPECT_EQ(error(changed(jpeg, static_cast<std::size_t>(at) + 5, {0xFF, 0, 0xFF, 0})),
            "ImageDecoder: JPEG" + limit + "65280 x 65280");
  EXPECT_EQ(error(from_hex("89504e470d0a1a0a0000000d4948445200010000000100000802000000e3"
                           "e6a7b40000000b49444154789c6360800100000a00017f80745e")),
            "ImageDecoder: PNG" + limit + "65536 x 65536");
  EXPECT_EQ(error(changed(from_hex(samples::kTiff), 18, {0, 0, 0, 0x10})),
            "ImageDecoder: TIFF" + limit + "268435456 x 2");
}

TEST(ImageDecoder, SaysWhatIsWrongWithTheBytes) {
  EXPECT_EQ(error({}),
            "ImageDecoder: expected a BMP, JPEG, JPEG 2000, PNG, PNM, TIFF or WebP file, found 0 "
            "bytes of none of them");
  const auto half = [](std::string_view sample) {
    Bytes bytes = from_hex(sample);
    bytes.resize(bytes.size() * 3 / 4);
    return error(bytes);
  };
  EXPECT_EQ(half(samples::kPngRgb), "ImageDecoder: PNG: the data end before the picture does");
  EXPECT_EQ(half(samples::kBmp), "ImageDecoder: BMP: the data end before the picture does");
  EXPECT_EQ(half(samples::kWebp), "ImageDecoder: WebP: the pixels are damaged or cut off");
  EXPECT_EQ(half(samples::kJpeg), "ImageDecoder: JPEG: Premature end of JPEG file");
}

TEST(ImageDecoder, SaysWhatItDoesNotRead) {
  const auto webp = [](const std::string& rest) {
    return error(from_text("RIFF\x1A\0\0\0WEBP"s + rest));
  };
  EXPECT_EQ(webp("VP8X"), "ImageDecoder: WebP: the data end before the picture does");
  EXPECT_EQ(webp("VP8 \x12\0\0\0"s + std::string(18, 'x')),
            "ImageDecoder: WebP: the header is damaged");
  EXPECT_EQ(webp("VP8X\x0A\0\0\0\x02\0\0\0\x01\0\0\x01\0\0ANIM"s),
            "ImageDecoder: WebP: expected a still picture, found an animation");
  // A scan more than there may be: the first one of the file again and again.
  const Bytes jpeg = from_hex(samples::kJpegProgressive);
  const auto marker = [&](Bytes::const_iterator from, std::uint8_t code) {
    const Bytes mark = {0xFF, code};
    return std::search(from, jpeg.end(), mark.begin(), mark.end());
  };
  const auto scan = marker(jpeg.begin(), 0xDA);
  const auto behind = marker(scan, 0xC4);
  Bytes scans(jpeg.begin(), behind);
  for (int i = 0; i < 500; ++i) scans.insert(scans.end(), scan, behind);
  scans.insert(scans.end(), behind, jpeg.end());
  EXPECT_EQ(error(scans), "ImageDecoder: JPEG: expected at most 500 scans, found more");
  // Five components instead of one.
  Bytes components = changed(from_hex(samples::kJ2kGray), 4, {0, 53});
  components = changed(std::move(components), 40, {0, 5});
  for (int i = 0; i < 4; ++i) components.insert(components.begin() + 45, {7, 1, 1});
  EXPECT_EQ(error(components),
            "ImageDecoder: JPEG 2000: expected 1 to 4 components of 1 to 31 bits, found 5 "
            "components");
  const Bytes jp2 = from_hex(samples::kJp2);
  const Bytes rgb = {'c', 'o', 'l', 'r', 1, 0, 0, 0, 0, 0, 16};
  const auto at = std::search(jp2.begin(), jp2.end(), rgb.begin(), rgb.end()) - jp2.begin();
  EXPECT_EQ(error(changed(jp2, static_cast<std::size_t>(at) + 10, {12})),
            "ImageDecoder: JPEG 2000: expected grey or colours of light, found CMYK");
  const Bytes giant = {0x7F, 0xFF, 0xFF, 0xFF};
  EXPECT_EQ(error(changed(changed(from_hex(samples::kJ2kGray), 8, giant), 24, giant)),
            "ImageDecoder: JPEG 2000: expected 1 to 134217728 pixels, found 2147483647 x 2");
  // A picture without a height.
  EXPECT_THAT(error(changed(from_hex(samples::kTiff), 22, {0x0F})),
              StartsWith("ImageDecoder: TIFF: "));
}

// Each beginning of a file, and each byte of it changed, is decoded or refused with a reason.
TEST(ImageDecoder, SurvivesEveryDamage) {
  for (const std::string_view sample :
       {samples::kPngRgb, samples::kPngPalette, samples::kPngRgba, samples::kPngGray16,
        samples::kJpeg, samples::kJpegGray, samples::kJpegCmyk, samples::kWebp, samples::kJp2,
        samples::kJ2kGray, samples::kTiff, samples::kTiffLzw, samples::kBmp,
        samples::kBmpPalette}) {
    const Bytes whole = from_hex(sample);
    std::size_t refused = 0;
    const auto attempt = [&](const Bytes& bytes) {
      const auto result = try_op("ImageDecoder", {stream(bytes)});
      if (result) return;
      ++refused;
      EXPECT_NE(result.error().message, "");
    };
    for (std::size_t size = 0; size < whole.size(); ++size)
      attempt(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
    EXPECT_GT(refused, whole.size() / 2);
    for (std::size_t at = 0; at < whole.size(); ++at)
      for (const int mask : {1, 0x80, 0xFF})
        attempt(changed(whole, at, {static_cast<std::uint8_t>(whole[at] ^ mask)}));
  }
}

}  // namespace
}  // namespace tessera::ops
