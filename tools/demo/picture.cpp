#include "demo/picture.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.h"

namespace tessera::demo {
namespace {

constexpr int kGlyphWidth = 5;
constexpr int kGlyphHeight = 7;
constexpr int kAdvance = kGlyphWidth + 1;
constexpr int kSpaceAdvance = 3;  // narrow, so that the detector takes the words of a line together

// Rows from the top; the highest of the five bits is the leftmost dot.
struct Glyph {
  char character;
  std::array<std::uint8_t, kGlyphHeight> rows;
};

constexpr Glyph kBlock = {'\0', {0x1F, 0x1F, 0x1F, 0x1F, 0x1F, 0x1F, 0x1F}};

// clang-format off
constexpr Glyph kFont[] = {
    {'+', {0x00, 0x04, 0x04, 0x1F, 0x04, 0x04, 0x00}},
    {'-', {0x00, 0x00, 0x00, 0x1F, 0x00, 0x00, 0x00}},
    {'.', {0x00, 0x00, 0x00, 0x00, 0x00, 0x0C, 0x0C}},
    {'/', {0x00, 0x01, 0x02, 0x04, 0x08, 0x10, 0x00}},
    {'0', {0x0E, 0x11, 0x13, 0x15, 0x19, 0x11, 0x0E}},
    {'1', {0x04, 0x0C, 0x04, 0x04, 0x04, 0x04, 0x0E}},
    {'2', {0x0E, 0x11, 0x01, 0x02, 0x04, 0x08, 0x1F}},
    {'3', {0x1F, 0x02, 0x04, 0x02, 0x01, 0x11, 0x0E}},
    {'4', {0x02, 0x06, 0x0A, 0x12, 0x1F, 0x02, 0x02}},
    {'5', {0x1F, 0x10, 0x1E, 0x01, 0x01, 0x11, 0x0E}},
    {'6', {0x06, 0x08, 0x10, 0x1E, 0x11, 0x11, 0x0E}},
    {'7', {0x1F, 0x01, 0x02, 0x04, 0x08, 0x08, 0x08}},
    {'8', {0x0E, 0x11, 0x11, 0x0E, 0x11, 0x11, 0x0E}},
    {'9', {0x0E, 0x11, 0x11, 0x0F, 0x01, 0x02, 0x0C}},
    {':', {0x00, 0x0C, 0x0C, 0x00, 0x0C, 0x0C, 0x00}},
    {'A', {0x0E, 0x11, 0x11, 0x1F, 0x11, 0x11, 0x11}},
    {'B', {0x1E, 0x11, 0x11, 0x1E, 0x11, 0x11, 0x1E}},
    {'C', {0x0E, 0x11, 0x10, 0x10, 0x10, 0x11, 0x0E}},
    {'D', {0x1E, 0x11, 0x11, 0x11, 0x11, 0x11, 0x1E}},
    {'E', {0x1F, 0x10, 0x10, 0x1E, 0x10, 0x10, 0x1F}},
    {'F', {0x1F, 0x10, 0x10, 0x1E, 0x10, 0x10, 0x10}},
    {'G', {0x0E, 0x11, 0x10, 0x17, 0x11, 0x11, 0x0F}},
    {'H', {0x11, 0x11, 0x11, 0x1F, 0x11, 0x11, 0x11}},
    {'I', {0x0E, 0x04, 0x04, 0x04, 0x04, 0x04, 0x0E}},
    {'J', {0x07, 0x02, 0x02, 0x02, 0x02, 0x12, 0x0C}},
    {'K', {0x11, 0x12, 0x14, 0x18, 0x14, 0x12, 0x11}},
    {'L', {0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x1F}},
    {'M', {0x11, 0x1B, 0x15, 0x15, 0x11, 0x11, 0x11}},
    {'N', {0x11, 0x11, 0x19, 0x15, 0x13, 0x11, 0x11}},
    {'O', {0x0E, 0x11, 0x11, 0x11, 0x11, 0x11, 0x0E}},
    {'P', {0x1E, 0x11, 0x11, 0x1E, 0x10, 0x10, 0x10}},
    {'Q', {0x0E, 0x11, 0x11, 0x11, 0x15, 0x12, 0x0D}},
    {'R', {0x1E, 0x11, 0x11, 0x1E, 0x14, 0x12, 0x11}},
    {'S', {0x0F, 0x10, 0x10, 0x0E, 0x01, 0x01, 0x1E}},
    {'T', {0x1F, 0x04, 0x04, 0x04, 0x04, 0x04, 0x04}},
    {'U', {0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x0E}},
    {'V', {0x11, 0x11, 0x11, 0x11, 0x11, 0x0A, 0x04}},
    {'W', {0x11, 0x11, 0x11, 0x15, 0x15, 0x15, 0x0A}},
    {'X', {0x11, 0x11, 0x0A, 0x04, 0x0A, 0x11, 0x11}},
    {'Y', {0x11, 0x11, 0x11, 0x0A, 0x04, 0x04, 0x04}},
    {'Z', {0x1F, 0x01, 0x02, 0x04, 0x08, 0x10, 0x1F}},
};
// clang-format on

const Glyph& glyph_of(char character) {
  const char capital = static_cast<char>(std::toupper(static_cast<unsigned char>(character)));
  const auto* found = std::ranges::find(kFont, capital, &Glyph::character);
  return found == std::end(kFont) ? kBlock : *found;
}

int advance_of(char character) {
  return character == ' ' ? kSpaceAdvance : kAdvance;
}

void draw_glyph(Picture& picture, const Glyph& glyph, const TextLine& line, int left) {
  for (int row = 0; row < kGlyphHeight; ++row)
    for (int column = 0; column < kGlyphWidth; ++column) {
      if ((glyph.rows[static_cast<std::size_t>(row)] >> (kGlyphWidth - 1 - column) & 1) == 0)
        continue;
      const int x = left + column * line.dot_px;
      const int y = line.top + row * line.dot_px;
      picture.fill({x, y, x + line.dot_px, y + line.dot_px}, line.colour);
    }
}

}  // namespace

Picture::Picture(int width_px, int height_px, Colour background)
    : width_px_(width_px), height_px_(height_px) {
  TESSERA_CHECK(width_px > 0 && height_px > 0);
  rgb_.resize(static_cast<std::size_t>(width_px) * static_cast<std::size_t>(height_px) * 3);
  fill({0, 0, width_px, height_px}, background);
}

Colour Picture::at(int x, int y) const {
  TESSERA_CHECK(x >= 0 && x < width_px_ && y >= 0 && y < height_px_);
  const std::size_t first = (static_cast<std::size_t>(y) * static_cast<std::size_t>(width_px_) +
                             static_cast<std::size_t>(x)) *
                            3;
  return {rgb_[first], rgb_[first + 1], rgb_[first + 2]};
}

void Picture::fill(const Rectangle& area, Colour colour) {
  for (int y = std::max(0, area.top); y < std::min(height_px_, area.bottom); ++y)
    for (int x = std::max(0, area.left); x < std::min(width_px_, area.right); ++x) {
      const std::size_t first = (static_cast<std::size_t>(y) * static_cast<std::size_t>(width_px_) +
                                 static_cast<std::size_t>(x)) *
                                3;
      rgb_[first] = colour.red;
      rgb_[first + 1] = colour.green;
      rgb_[first + 2] = colour.blue;
    }
}

void Picture::outline(const Rectangle& area, int thickness_px, Colour colour) {
  fill({area.left, area.top, area.right, area.top + thickness_px}, colour);
  fill({area.left, area.bottom - thickness_px, area.right, area.bottom}, colour);
  fill({area.left, area.top, area.left + thickness_px, area.bottom}, colour);
  fill({area.right - thickness_px, area.top, area.right, area.bottom}, colour);
}

Rectangle bounds_of(const TextLine& line) {
  int dots = -1;  // no gap after the last character
  for (const char character : line.text) dots += advance_of(character);
  dots = std::max(0, dots);
  return {line.left, line.top, line.left + dots * line.dot_px,
          line.top + kGlyphHeight * line.dot_px};
}

void draw(Picture& picture, const TextLine& line) {
  int left = line.left;
  for (const char character : line.text) {
    if (character != ' ') draw_glyph(picture, glyph_of(character), line, left);
    left += advance_of(character) * line.dot_px;
  }
}

Scene demo_scene() {
  constexpr Colour kPaper = {245, 244, 238};
  constexpr Colour kInk = {24, 26, 40};
  constexpr Colour kBlue = {20, 60, 150};
  constexpr Colour kRed = {160, 30, 30};
  Scene scene{{{"TESSERA", 48, 40, 8, kInk},
               {"EXACT PLACEMENT", 48, 136, 5, kBlue},
               {"CPU", 48, 224, 6, kRed},
               {"NPU", 400, 224, 6, kRed},
               {"LATENCY 3.14 MS", 48, 320, 4, kInk},
               {"WHERE AND WHY", 48, 400, 5, kBlue}},
              Picture(640, 480, kPaper)};
  for (const TextLine& line : scene.lines) draw(scene.picture, line);
  return scene;
}

}  // namespace tessera::demo
