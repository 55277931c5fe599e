#pragma once

// Winograd's minimal filtering: m x m results of a 3 x 3 window from (m + 2)^2 products of a
// transformed source with transformed weights. Sources: S. Winograd, Arithmetic Complexity of
// Computations, 1980; A. Lavin and S. Gray, Fast Algorithms for Convolutional Neural Networks,
// CVPR 2016. The points are 0, 1, -1 and infinity for m = 2, and 0, 3/4, -3/4, 3/2, -3/2 and
// infinity for m = 4: exact in binary, and with twice the rounding error of plain sums where the
// usual 0, 1, -1, 2, -2 has four times of it.

#include <cstddef>
#include <cstdint>

namespace tessera::backends::cpu {

constexpr std::int64_t kWinogradTaps = 3;

// Points of one axis; products of a tile are its square.
constexpr std::int64_t winograd_points(std::int64_t tile) {
  return tile + kWinogradTaps - 1;
}
constexpr std::int64_t winograd_planes(std::int64_t tile) {
  return winograd_points(tile) * winograd_points(tile);
}

// The points that are neither 0 nor infinity are pairs of these and their negatives.
constexpr double kWinogradNear = 0.75, kWinogradFar = 1.5;

// Planes of packed weights, each in panels [O/16][I][16]: the transformed ones, then the nine taps
// as they are, for tiles whose values leave the range of finite numbers. `weights`: [O][I][3][3];
// `packed`: zero where a panel has no channel.
void pack_winograd_weights(const float* weights, std::int64_t dst_channels,
                           std::int64_t src_channels, std::int64_t tile, float* packed);

}  // namespace tessera::backends::cpu
