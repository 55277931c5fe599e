#pragma once

// What inference and kernels of the convolutions share: checks of the operands, and the sizes of
// the result.

#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/shape.h"
#include "ops/attributes.h"
#include "ops/nn/window.h"

namespace tessera::ops::nn {

struct ConvOperands {
  Shape x;  // [n, channels, spatial...]
  Shape w;  // Conv: [out_channels, channels / group, kernel...]; ConvTranspose: [channels,
            // out_channels / group, kernel...]
  std::optional<Shape> b;  // [out_channels]
};

struct ConvPlan {
  Window window;  // ConvTranspose: with explicit pads where the sizes are numbers
  std::int64_t group = 1;
  Shape output;
};

// Errors start with the operator's name and name the attribute or input.
Result<ConvPlan> plan_conv(std::string_view op, const Attributes& attributes,
                           const ConvOperands& operands);
Result<ConvPlan> plan_conv_transpose(const Attributes& attributes, const ConvOperands& operands);

// Numbers of a convolution whose sizes are known, as the kernels use them.
struct ConvSizes {
  std::int64_t batch, group, in_channels, out_channels;  // channels for each group
  Dims spatial, output;                                  // spatial sizes
  Dims output_dims;                                      // all of the result
  Window window;                                         // explicit pads
};
Result<ConvSizes> conv_sizes(std::string_view op, const Attributes& attributes, const Dims& x,
                             const Dims& w, const Dims* b);
Result<ConvSizes> conv_transpose_sizes(const Attributes& attributes, const Dims& x, const Dims& w,
                                       const Dims* b);

}  // namespace tessera::ops::nn
