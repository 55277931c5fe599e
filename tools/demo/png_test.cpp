#include "demo/png.h"

#include <gtest/gtest.h>
#include <zlib.h>

namespace tessera::demo {
namespace {

std::uint32_t number_at(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i)
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

struct Chunk {
  std::string type;
  std::string data;
};

// Walks the chunks and checks their checksums.
std::vector<Chunk> chunks_of(const std::string& bytes) {
  std::vector<Chunk> chunks;
  for (std::size_t at = 8; at < bytes.size();) {
    const std::size_t size = number_at(bytes, at);
    const std::string body = bytes.substr(at + 4, 4 + size);
    const auto checksum =
        crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
    EXPECT_EQ(number_at(bytes, at + 8 + size), checksum) << body.substr(0, 4);
    chunks.push_back({body.substr(0, 4), body.substr(4)});
    at += 12 + size;
  }
  return chunks;
}

TEST(PngTest, HoldsThePixels) {
  Picture picture(3, 2, {1, 2, 3});
  picture.fill({2, 1, 3, 2}, {200, 100, 50});
  const std::string bytes = to_png(picture);
  EXPECT_EQ(bytes.substr(0, 8), "\x89PNG\r\n\x1A\n");
  const auto chunks = chunks_of(bytes);
  ASSERT_EQ(chunks.size(), 3U);
  EXPECT_EQ(chunks[0].type, "IHDR");
  EXPECT_EQ(number_at(chunks[0].data, 0), 3U);
  EXPECT_EQ(number_at(chunks[0].data, 4), 2U);
  EXPECT_EQ(chunks[0].data.substr(8), std::string({8, 2, 0, 0, 0}));
  EXPECT_EQ(chunks[1].type, "IDAT");
  EXPECT_EQ(chunks[2].type, "IEND");
  std::string rows(64, '\0');
  uLongf size = rows.size();
  ASSERT_EQ(
      uncompress(reinterpret_cast<Bytef*>(rows.data()), &size,
                 reinterpret_cast<const Bytef*>(chunks[1].data.data()), chunks[1].data.size()),
      Z_OK);
  rows.resize(size);
  // Each row begins with its filter, 0.
  using namespace std::string_view_literals;
  EXPECT_EQ(rows, "\0\1\2\3\1\2\3\1\2\3\0\1\2\3\1\2\3\xC8\x64\x32"sv);
}

TEST(PngTest, GivesTheSameBytesForTheSamePicture) {
  EXPECT_EQ(to_png(demo_scene().picture), to_png(demo_scene().picture));
}

}  // namespace
}  // namespace tessera::demo
