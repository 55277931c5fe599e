#include "demo/picture.h"

#include <gtest/gtest.h>

namespace tessera::demo {
namespace {

constexpr Colour kWhite = {255, 255, 255};
constexpr Colour kInk = {10, 20, 30};

// The picture as rows of '#' (ink) and '.' (anything else).
std::string shape_of(const Picture& picture) {
  std::string text;
  for (int y = 0; y < picture.height_px(); ++y) {
    for (int x = 0; x < picture.width_px(); ++x) text += picture.at(x, y) == kInk ? '#' : '.';
    text += '\n';
  }
  return text;
}

TEST(PictureTest, DrawsTheDotsOfEachCharacter) {
  Picture picture(11, 7, kWhite);
  draw(picture, {"T7", 0, 0, 1, kInk});
  EXPECT_EQ(shape_of(picture),
            "#####.#####\n"
            "..#.......#\n"
            "..#......#.\n"
            "..#.....#..\n"
            "..#....#...\n"
            "..#....#...\n"
            "..#....#...\n");
}

TEST(PictureTest, DrawsADotAsASquareOfItsSize) {
  Picture picture(10, 14, kWhite);
  draw(picture, {"-", 0, 0, 2, kInk});
  EXPECT_EQ(picture.at(0, 5), kWhite);
  EXPECT_EQ(picture.at(0, 6), kInk);
  EXPECT_EQ(picture.at(9, 7), kInk);
  EXPECT_EQ(picture.at(9, 8), kWhite);
}

TEST(PictureTest, DrawsSmallLettersAsCapitalsAndUnknownOnesAsABlock) {
  Picture small(5, 7, kWhite);
  Picture capital(5, 7, kWhite);
  Picture unknown(5, 7, kWhite);
  draw(small, {"q", 0, 0, 1, kInk});
  draw(capital, {"Q", 0, 0, 1, kInk});
  draw(unknown, {"~", 0, 0, 1, kInk});
  EXPECT_EQ(shape_of(small), shape_of(capital));
  EXPECT_EQ(shape_of(unknown).find('.'), std::string::npos);
}

TEST(PictureTest, LeavesOutWhatFallsOutside) {
  Picture picture(4, 4, kWhite);
  draw(picture, {"H", -1, -1, 1, kInk});
  EXPECT_EQ(shape_of(picture), "...#\n...#\n####\n...#\n");
}

TEST(PictureTest, OutlinesInsideOfTheArea) {
  Picture picture(5, 5, kWhite);
  picture.outline({0, 1, 4, 5}, 1, kInk);
  EXPECT_EQ(shape_of(picture), ".....\n####.\n#..#.\n#..#.\n####.\n");
}

TEST(PictureTest, BoundsHoldExactlyWhatIsDrawn) {
  const TextLine line = {"M 0", 3, 2, 2, kInk};
  const Rectangle bounds = bounds_of(line);
  EXPECT_EQ(bounds, (Rectangle{3, 2, 3 + 14 * 2, 2 + 7 * 2}));
  Picture picture(40, 20, kWhite);
  draw(picture, line);
  for (int y = 0; y < 20; ++y)
    for (int x = 0; x < 40; ++x) {
      const bool inside =
          x >= bounds.left && x < bounds.right && y >= bounds.top && y < bounds.bottom;
      EXPECT_TRUE(inside || picture.at(x, y) == kWhite) << x << ", " << y;
    }
  EXPECT_EQ(picture.at(3, 2), kInk);
  EXPECT_EQ(bounds_of({"", 3, 2, 2, kInk}), (Rectangle{3, 2, 3, 16}));
}

TEST(PictureTest, SceneFitsTheDetector) {
  const Scene scene = demo_scene();
  EXPECT_EQ(scene.picture.width_px() % 32, 0);
  EXPECT_EQ(scene.picture.height_px() % 32, 0);
  ASSERT_FALSE(scene.lines.empty());
  for (const TextLine& line : scene.lines) {
    const Rectangle bounds = bounds_of(line);
    EXPECT_GE(bounds.left, 0) << line.text;
    EXPECT_LE(bounds.right, scene.picture.width_px()) << line.text;
    EXPECT_LE(bounds.bottom, scene.picture.height_px()) << line.text;
  }
}

}  // namespace
}  // namespace tessera::demo
