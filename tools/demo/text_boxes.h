#pragma once

// From the detector's probability map to boxes of text, and from a picture to the detector's input.
// The detector is PP-OCRv4, a Differentiable Binarization network (Liao et al., "Real-time Scene
// Text Detection with Differentiable Binarization").

#include <span>
#include <vector>

#include "base/tensor.h"
#include "demo/picture.h"

namespace tessera::demo {

// fp32 [1, 3, height, width]: channels in the order blue, green, red, scaled to [0, 1] and
// normalised with the mean and deviation of ImageNet. Errors: a side that is no multiple of 32 (the
// network halves it five times).
Result<Tensor> detector_input(const Picture& picture);

struct BoxOptions {
  float threshold = 0.3F;  // of a pixel that belongs to text
  double min_score = 0.6;  // of a box: the mean probability inside of it
  int min_side_px = 3;     // of a box before it grows
  double unclip_ratio =
      1.6;  // the map shows text shrunk: a box grows by area * ratio / perimeter on each side
};

struct TextBox {
  Rectangle area;  // in pixels of the map, which are those of the picture
  double score = 0;
};

// One upright box for each connected component (8 neighbours) of the map's text pixels, in reading
// order: lines from the top, boxes of one line from the left. Errors: a map that is not fp32 [1, 1,
// height, width] (expected and found).
Result<std::vector<TextBox>> find_text_boxes(const Tensor& probability,
                                             const BoxOptions& options = {});

// The boxes of the mixed plan and those of the plan for the CPU: as many, each edge at most
// `tolerance_px` from the other's. Errors: which of the two does not hold.
Status check_agreement(const std::vector<TextBox>& mixed, const std::vector<TextBox>& cpu,
                       int tolerance_px);

// Share of `area` that `box` covers, in [0, 1].
double covered_share(const Rectangle& area, const Rectangle& box);

// Every line that was drawn lies in boxes, nearly: else the detector, as compiled, does not work.
// Errors: the first line that does not.
Status check_lines_found(const std::vector<TextLine>& lines, const std::vector<TextBox>& boxes);

}  // namespace tessera::demo
