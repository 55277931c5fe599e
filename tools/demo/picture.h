#pragma once

// The demo's picture: lines of text, drawn by the tree itself so that it needs no file.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::demo {

struct Colour {
  std::uint8_t red = 0;
  std::uint8_t green = 0;
  std::uint8_t blue = 0;
  friend bool operator==(const Colour&, const Colour&) = default;
};

// A rectangle in pixels, half-open: [left, right) x [top, bottom).
struct Rectangle {
  int left = 0;
  int top = 0;
  int right = 0;
  int bottom = 0;
  friend bool operator==(const Rectangle&, const Rectangle&) = default;
};

// Eight bits per channel, rows from the top, R G B for each pixel.
class Picture {
 public:
  Picture(int width_px, int height_px, Colour background);

  [[nodiscard]] int width_px() const { return width_px_; }
  [[nodiscard]] int height_px() const { return height_px_; }
  [[nodiscard]] const std::vector<std::uint8_t>& rgb() const { return rgb_; }
  [[nodiscard]] Colour at(int x, int y) const;

  // What falls outside of the picture is left out.
  void fill(const Rectangle& area, Colour colour);
  // The outline of `area`, `thickness_px` wide, inside of it.
  void outline(const Rectangle& area, int thickness_px, Colour colour);

 private:
  int width_px_;
  int height_px_;
  std::vector<std::uint8_t> rgb_;
};

// A line of text: capital letters, digits and + - . : / in a font of 5 x 7 dots, each `dot_px` wide
// and high. Small letters are drawn as capitals, characters that the font lacks as a full block.
struct TextLine {
  std::string text;
  int left = 0;
  int top = 0;
  int dot_px = 1;
  Colour colour;
};

// The pixels that the line covers, without the space after its last character.
Rectangle bounds_of(const TextLine& line);

void draw(Picture& picture, const TextLine& line);

// What the demo shows to the detector; both sides are multiples of 32.
struct Scene {
  std::vector<TextLine> lines;  // in reading order, far enough apart that each is one text box
  Picture picture;
};
Scene demo_scene();

}  // namespace tessera::demo
