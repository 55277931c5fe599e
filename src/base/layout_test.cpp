#include "base/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "testing/random.h"

namespace tessera {
namespace {

TEST(LayoutTest, NamesRoundTrip) {
  const std::pair<Layout, const char*> named[] = {
      {Layout::row_major(), "nchw"},
      {Layout::channels_last(3), "nwc"},
      {Layout::channels_last(4), "nhwc"},
      {Layout::channels_last(5), "ndhwc"},
      {Layout::channel_blocked(3, 16), "nCw16c"},
      {Layout::channel_blocked(4, 8), "nChw8c"},
      {Layout::channel_blocked(5, 16), "nCdhw16c"},
      {Layout::channels_last(2), "order:0,1"},
      {Layout{{0, 2, 1}, {{1, 8}}}, "order:0,2,1;blocks:1/8"},
      {Layout{{1, 0, 2, 3}, {{1, 4}, {0, 16}, {1, 4}}}, "order:1,0,2,3;blocks:1/4,0/16,1/4"}};
  for (const auto& [layout, text] : named) {
    EXPECT_EQ(layout.to_string(), text);
    const auto parsed = parse_layout(text);
    ASSERT_TRUE(parsed.has_value()) << parsed.error().to_string();
    EXPECT_EQ(*parsed, layout);
  }
}

TEST(LayoutTest, ParseErrors) {
  for (const char* text :
       {"", "NCHW", "nChw0c", "nChwc", "nChw8", "nChw-8c", "order:0,2", "order:0,0",
        "order:", "order:0,1;blocks:2/8", "order:0,1;blocks:1", "order:0,1;blocks:1/0",
        "order:0,1;blocks:1/8;x", "blocks:1/8", "order:0,1,", "nChw70000c"}) {
    const auto parsed = parse_layout(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_EQ(parsed.error().to_string(),
              "expected a layout such as 'nchw', 'nhwc', 'nChw8c' or 'order:0,2,1;blocks:1/8', "
              "found '" +
                  std::string(text) + "'");
  }
}

TEST(LayoutTest, Padding) {
  const Layout blocked = Layout::channel_blocked(4, 8);
  EXPECT_EQ(padded_dims(blocked, {2, 9, 3, 3}), (Dims{2, 16, 3, 3}));
  EXPECT_EQ(layout_nbytes(blocked, DType::kFp32, {2, 9, 3, 3}), 4 * 2 * 16 * 9);
  EXPECT_EQ(layout_nbytes(Layout::channels_last(4), DType::kFp16, {2, 9, 3, 3}), 2 * 2 * 9 * 9);
  const Dim c = Dim::symbol("c");
  EXPECT_EQ(padded_shape(blocked, {2, c, 3, 3}), (Shape{2, Dim(8) * ceildiv(c, 8), 3, 3}));
  EXPECT_EQ(padded_shape(blocked, {2, 9, 3, 3}), (Shape{2, 16, 3, 3}));
}

TEST(LayoutTest, KnownOffsets) {
  // 1x3x1x2, channels last: c is fastest.
  const std::vector<std::uint8_t> nchw = {0, 1, 10, 11, 20, 21};
  std::vector<std::uint8_t> nhwc(6);
  convert_layout({}, nchw.data(), Layout::channels_last(4), nhwc.data(), DType::kUInt8,
                 {1, 3, 1, 2});
  EXPECT_EQ(nhwc, (std::vector<std::uint8_t>{0, 10, 20, 1, 11, 21}));
  // Blocks of two channels; the fourth channel is padding.
  std::vector<std::uint8_t> blocked(8, 99);
  convert_layout({}, nchw.data(), Layout::channel_blocked(4, 2), blocked.data(), DType::kUInt8,
                 {1, 3, 1, 2});
  EXPECT_EQ(blocked, (std::vector<std::uint8_t>{0, 10, 1, 11, 20, 0, 21, 0}));
}

TEST(LayoutTest, ADimMayBeBlockedTwice) {
  // 8 elements in blocks of 2 (slower) and 2 (faster), with a block of another dim between them.
  const Layout layout{{0, 1}, {{0, 2}, {1, 2}, {0, 2}}};
  std::vector<std::uint8_t> source(16);
  std::iota(source.begin(), source.end(), std::uint8_t{0});  // element (i, j) is 2 i + j
  std::vector<std::uint8_t> target(16);
  convert_layout({}, source.data(), layout, target.data(), DType::kUInt8, {8, 2});
  EXPECT_EQ(target,
            (std::vector<std::uint8_t>{0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15}));
}

Layout random_layout(testing::Random& random, std::size_t rank) {
  if (random.chance(0.2)) return {};
  Layout layout;
  for (std::size_t d = 0; d < rank; ++d) layout.order.push_back(static_cast<std::uint8_t>(d));
  for (std::size_t d = rank; d > 1; --d)
    std::swap(layout.order[d - 1], layout.order[random.index(d)]);
  const std::int64_t blocks = random.integer(0, 3);
  for (std::int64_t i = 0; i < blocks && rank > 0; ++i) {
    layout.blocks.emplace_back(static_cast<std::uint8_t>(random.index(rank)),
                               static_cast<std::uint16_t>(random.integer(1, 4)));
  }
  return layout;
}

std::size_t bytes_of(const Layout& layout, DType dtype, const Dims& dims) {
  return static_cast<std::size_t>(layout_nbytes(layout, dtype, dims));
}

TEST(LayoutPropertyTest, ThereAndBackIsIdentityAndPaddingIsZero) {
  for (const std::uint64_t seed : testing::seeds(400)) {
    SCOPED_TRACE(testing::seed_text(seed));
    testing::Random random(seed);
    const auto rank = static_cast<std::size_t>(random.integer(0, 5));
    Dims dims(rank);
    for (auto& dim : dims) dim = random.integer(random.chance(0.05) ? 0 : 1, 6);
    const DType dtype = random.pick<DType>(
        {DType::kUInt8, DType::kFp16, DType::kFp32, DType::kInt64, DType::kComplex128});
    const Layout a = random_layout(random, rank);
    const Layout b = random_layout(random, rank);
    ASSERT_EQ(parse_layout(a.to_string()).has_value(), rank > 0 || a.is_row_major());
    std::vector<std::uint8_t> plain(bytes_of({}, dtype, dims));
    for (auto& byte : plain) byte = static_cast<std::uint8_t>(random.integer(1, 255));
    std::vector<std::uint8_t> in_a(bytes_of(a, dtype, dims), 0xEE);
    std::vector<std::uint8_t> in_b(bytes_of(b, dtype, dims), 0xEE);
    std::vector<std::uint8_t> back(plain.size(), 0xEE);
    convert_layout({}, plain.data(), a, in_a.data(), dtype, dims);
    convert_layout(a, in_a.data(), b, in_b.data(), dtype, dims);
    convert_layout(b, in_b.data(), {}, back.data(), dtype, dims);
    ASSERT_EQ(plain, back);
    // No source byte is 0, so every zero is padding, and there is just as much of it as there
    // should be.
    const auto zeros = [](const std::vector<std::uint8_t>& bytes) {
      return static_cast<std::size_t>(std::count(bytes.begin(), bytes.end(), 0));
    };
    ASSERT_EQ(zeros(in_a), in_a.size() - plain.size());
    ASSERT_EQ(zeros(in_b), in_b.size() - plain.size());
  }
}

TEST(ConvertLayout, PackedElements) {
  const Dims dims = {1, 3, 1, 3};
  // 1 to 9 with a filled rest, which is no element.
  const std::uint8_t source[5] = {0x21, 0x43, 0x65, 0x87, 0xF9};
  std::uint8_t target[5] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
  const Layout nhwc = Layout::channels_last(4);
  convert_layout(Layout::row_major(), source, nhwc, target, DType::kInt4, dims);
  const std::uint8_t expected[5] = {0x41, 0x27, 0x85, 0x63, 0x09};
  EXPECT_TRUE(std::ranges::equal(target, expected));
  std::uint8_t back[5] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
  convert_layout(nhwc, target, Layout::row_major(), back, DType::kInt4, dims);
  const std::uint8_t again[5] = {0x21, 0x43, 0x65, 0x87, 0x09};
  EXPECT_TRUE(std::ranges::equal(back, again));
}

}  // namespace
}  // namespace tessera
