#include "demo/text_boxes.h"

#include <gtest/gtest.h>

namespace tessera::demo {
namespace {

constexpr BoxOptions kNoGrowth = {.unclip_ratio = 0};

// A map of zeros with blocks of one probability each.
class Map {
 public:
  Map(int width, int height)
      : width_(width), height_(height), values_(static_cast<std::size_t>(width * height), 0.0F) {}
  Map& block(const Rectangle& area, float probability) {
    for (int y = area.top; y < area.bottom; ++y)
      for (int x = area.left; x < area.right; ++x)
        values_[static_cast<std::size_t>(y * width_ + x)] = probability;
    return *this;
  }
  [[nodiscard]] std::vector<TextBox> boxes(const BoxOptions& options) const {
    const auto found =
        find_text_boxes(Tensor::of<float>(DType::kFp32, {1, 1, height_, width_}, values_), options);
    EXPECT_TRUE(found.has_value());
    return found.value_or(std::vector<TextBox>());
  }

 private:
  int width_;
  int height_;
  std::vector<float> values_;
};

TEST(FindTextBoxesTest, GivesTheBoundsAndTheMeanOfEachComponent) {
  Map map(20, 10);
  map.block({2, 3, 8, 6}, 0.9F).block({12, 3, 18, 7}, 0.7F);
  const auto boxes = map.boxes(kNoGrowth);
  ASSERT_EQ(boxes.size(), 2U);
  EXPECT_EQ(boxes[0].area, (Rectangle{2, 3, 8, 6}));
  EXPECT_NEAR(boxes[0].score, 0.9, 1e-6);
  EXPECT_EQ(boxes[1].area, (Rectangle{12, 3, 18, 7}));
  EXPECT_NEAR(boxes[1].score, 0.7, 1e-6);
}

TEST(FindTextBoxesTest, JoinsPixelsThatTouchAtACorner) {
  Map map(12, 12);
  map.block({0, 0, 4, 4}, 0.9F).block({4, 4, 8, 8}, 0.9F);
  const auto boxes = map.boxes({.min_score = 0.3, .unclip_ratio = 0});
  ASSERT_EQ(boxes.size(), 1U);
  EXPECT_EQ(boxes[0].area, (Rectangle{0, 0, 8, 8}));
  EXPECT_NEAR(boxes[0].score, 0.45, 1e-6);  // half of its pixels are no text
}

TEST(FindTextBoxesTest, LeavesOutWhatIsFaintUnsureOrSmall) {
  Map map(40, 10);
  map.block({0, 0, 8, 8}, 0.3F);     // at the threshold, not above it
  map.block({10, 0, 18, 8}, 0.5F);   // above the threshold, below the score
  map.block({20, 0, 28, 2}, 0.99F);  // two pixels high
  map.block({30, 0, 38, 3}, 0.61F);
  const auto boxes = map.boxes(kNoGrowth);
  ASSERT_EQ(boxes.size(), 1U);
  EXPECT_EQ(boxes[0].area, (Rectangle{30, 0, 38, 3}));
}

TEST(FindTextBoxesTest, GrowsABoxAndKeepsItInsideOfTheMap) {
  Map map(60, 30);
  map.block({10, 10, 30, 20}, 0.9F).block({50, 0, 60, 10}, 0.9F);
  const auto boxes = map.boxes({.unclip_ratio = 1.5});
  ASSERT_EQ(boxes.size(), 2U);
  // 10 x 10 * 1.5 / 40 = 3.75, and 20 x 10 * 1.5 / 60 = 5.
  EXPECT_EQ(boxes[0].area, (Rectangle{46, 0, 60, 14}));
  EXPECT_EQ(boxes[1].area, (Rectangle{5, 5, 35, 25}));
}

TEST(FindTextBoxesTest, SortsLinesFromTheTopAndBoxesOfALineFromTheLeft) {
  Map map(40, 30);
  map.block({20, 0, 30, 6}, 0.9F);  // first seen, but right of the next
  map.block({2, 2, 12, 8}, 0.9F);
  map.block({1, 15, 9, 20}, 0.9F);
  const auto boxes = map.boxes(kNoGrowth);
  ASSERT_EQ(boxes.size(), 3U);
  EXPECT_EQ(boxes[0].area.left, 2);
  EXPECT_EQ(boxes[1].area.left, 20);
  EXPECT_EQ(boxes[2].area.top, 15);
}

TEST(FindTextBoxesTest, NamesAMapOfAnotherTypeOrRank) {
  const auto rank = find_text_boxes(*Tensor::zeros(DType::kFp32, {4, 4}));
  ASSERT_FALSE(rank.has_value());
  EXPECT_EQ(rank.error().to_string(),
            "probability map: expected fp32[1x1xHEIGHTxWIDTH], found fp32[4x4]");
  const auto dtype = find_text_boxes(*Tensor::zeros(DType::kFp16, {1, 1, 4, 4}));
  ASSERT_FALSE(dtype.has_value());
  EXPECT_EQ(dtype.error().to_string(),
            "probability map: expected fp32[1x1xHEIGHTxWIDTH], found fp16[1x1x4x4]");
}

TEST(DetectorInputTest, NormalisesChannelsBlueFirst) {
  Picture picture(64, 32, {0, 0, 0});
  picture.fill({1, 0, 2, 1}, {255, 51, 102});
  const auto input = detector_input(picture);
  ASSERT_TRUE(input.has_value());
  EXPECT_EQ(input->dims(), (Dims{1, 3, 32, 64}));
  const auto elements = input->span<float>();
  constexpr std::size_t kPixels = 64 * 32;
  EXPECT_NEAR(elements[1], (0.4 - 0.485) / 0.229, 1e-5);
  EXPECT_NEAR(elements[kPixels + 1], (0.2 - 0.456) / 0.224, 1e-5);
  EXPECT_NEAR(elements[2 * kPixels + 1], (1.0 - 0.406) / 0.225, 1e-5);
  EXPECT_NEAR(elements[0], -0.485 / 0.229, 1e-5);
}

TEST(DetectorInputTest, NamesASideThatTheNetworkCannotHalve) {
  const auto input = detector_input(Picture(64, 33, {0, 0, 0}));
  ASSERT_FALSE(input.has_value());
  EXPECT_EQ(input.error().to_string(),
            "picture: expected sides that are multiples of 32, found 64 x 33");
}

TEST(CheckAgreementTest, AllowsForTheToleranceAndNoMore) {
  const std::vector<TextBox> mixed = {{{10, 10, 20, 20}, 0.9}};
  const std::vector<TextBox> cpu = {{{12, 10, 17, 20}, 0.8}};
  EXPECT_TRUE(check_agreement(mixed, cpu, 3).has_value());
  const auto apart = check_agreement(mixed, cpu, 2);
  ASSERT_FALSE(apart.has_value());
  EXPECT_EQ(apart.error().to_string(),
            "the plans disagree: edges of text box 0 are 3 pixels apart, expected at most 2");
  const auto count = check_agreement(mixed, {}, 100);
  ASSERT_FALSE(count.has_value());
  EXPECT_EQ(count.error().to_string(),
            "the plans disagree: the mixed plan finds 1 text boxes, the plan for the CPU 0");
}

TEST(CheckLinesFoundTest, TakesTheBoxesOfALineTogetherAndNamesALineThatIsMissed) {
  const std::vector<TextLine> lines = {{"AB", 0, 0, 10, {}}};  // 110 x 70 pixels
  EXPECT_TRUE(check_lines_found(lines, {{{0, 0, 50, 70}, 1}, {{60, 0, 110, 70}, 1}}).has_value());
  const auto missed = check_lines_found(lines, {{{0, 0, 55, 70}, 1}});
  ASSERT_FALSE(missed.has_value());
  EXPECT_EQ(
      missed.error().to_string(),
      "the line 'AB' was drawn, but only 50 % of it lies in text boxes: expected at least 80 %");
}

TEST(CoveredShareTest, IsTheShareOfTheArea) {
  EXPECT_DOUBLE_EQ(covered_share({0, 0, 10, 10}, {5, 0, 20, 10}), 0.5);
  EXPECT_DOUBLE_EQ(covered_share({0, 0, 10, 10}, {-5, -5, 20, 20}), 1.0);
  EXPECT_DOUBLE_EQ(covered_share({0, 0, 10, 10}, {10, 0, 20, 10}), 0.0);
}

}  // namespace
}  // namespace tessera::demo
