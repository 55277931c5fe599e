#include "backends/cpu/run/strided_copy.h"

#include <gtest/gtest.h>

#include <vector>

namespace tessera::backends::cpu {
namespace {

// A transposition of 3 x 5 elements of that many bytes, each byte another number.
TEST(StridedCopy, MovesElementsOfEveryWidth) {
  constexpr std::int64_t kRows = 3;
  constexpr std::int64_t kColumns = 5;
  for (const std::int64_t width : {1, 2, 4, 8, 16}) {
    SCOPED_TRACE(width);
    std::vector<std::byte> from(static_cast<std::size_t>(kRows * kColumns * width));
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i);
    std::vector<std::byte> to(from.size());
    const StridedCopy copy({{kRows, kColumns, 1}, {kColumns, 1, kRows}}, 0, 0, width);
    copy.run(from.data(), to.data(), 0, copy.units());
    for (std::int64_t row = 0; row < kRows; ++row)
      for (std::int64_t column = 0; column < kColumns; ++column)
        for (std::int64_t byte = 0; byte < width; ++byte)
          EXPECT_EQ(to[static_cast<std::size_t>((column * kRows + row) * width + byte)],
                    from[static_cast<std::size_t>((row * kColumns + column) * width + byte)]);
    const StridedCopy zeros({{kRows * kColumns, 1, 1}}, 0, 0, width, true);
    zeros.run(from.data(), to.data(), 0, zeros.units());
    EXPECT_EQ(to, std::vector<std::byte>(to.size()));
  }
}

}  // namespace
}  // namespace tessera::backends::cpu
