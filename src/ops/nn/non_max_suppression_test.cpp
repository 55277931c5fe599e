// Values by hand, checked against the text of the standard.

#include <cmath>

#include "testing/op_testing.h"

namespace tessera::ops {
namespace {

using testing::floats;
using testing::int64s;
using testing::Ints;
using testing::op_error;
using testing::run_op;
using testing::tensor;
using testing::values;

// Boxes 0 and 1 overlap by 0.6 / 1.4, box 2 lies apart, box 3 is box 2 with its corners flipped.
Tensor boxes() {
  return tensor<float>({1, 4, 4}, {0, 0, 1, 1, 0, 0.4F, 1, 1.4F, 0, 10, 1, 11, 1, 11, 0, 10});
}
Tensor scores() {
  return tensor<float>({1, 1, 4}, {0.9F, 0.75F, 0.6F, 0.95F});
}

TEST(NonMaxSuppression, KeepsTheBestOfBoxesThatOverlap) {
  const Tensor kept =
      run_op("NonMaxSuppression", {boxes(), scores(), int64s({10}), floats({0.4F})});
  EXPECT_EQ(kept.dims(), (Dims{2, 3}));
  EXPECT_EQ(values<std::int64_t>(kept), (Ints{0, 0, 3, 0, 0, 0}));
  EXPECT_EQ(values<std::int64_t>(
                run_op("NonMaxSuppression", {boxes(), scores(), int64s({10}), floats({0.5F})})),
            (Ints{0, 0, 3, 0, 0, 0, 0, 0, 1}))
      << "0.43 is no longer too much";
}

TEST(NonMaxSuppression, LimitsOfCountAndScore) {
  EXPECT_EQ(run_op("NonMaxSuppression", {boxes(), scores()}).dims(), (Dims{0, 3}))
      << "without a limit there is no room";
  EXPECT_EQ(values<std::int64_t>(
                run_op("NonMaxSuppression", {boxes(), scores(), int64s({1}), floats({0.5F})})),
            (Ints{0, 0, 3}));
  EXPECT_EQ(values<std::int64_t>(run_op("NonMaxSuppression", {boxes(), scores(), int64s({10}),
                                                              floats({0.5F}), floats({0.75F})})),
            (Ints{0, 0, 3, 0, 0, 0}))
      << "a score equal to the limit is too low";
}

TEST(NonMaxSuppression, BatchesClassesAndCenters) {
  // Two boxes by their centers, of which the second lies within the first in batch 0 only.
  const Tensor centers =
      tensor<float>({2, 2, 4}, {0, 0, 2, 2, 0, 0, 1.9F, 1.9F, 0, 0, 2, 2, 9, 9, 2, 2});
  const Tensor two_classes = tensor<float>({2, 2, 2}, {1, 2, 2, 1, 1, 2, 1, 1});
  EXPECT_EQ(values<std::int64_t>(run_op("NonMaxSuppression",
                                        {centers, two_classes, int64s({2}), floats({0.5F})},
                                        {{"center_point_box", std::int64_t{1}}})),
            (Ints{0, 0, 1, 0, 1, 0, 1, 0, 1, 1, 0, 0, 1, 1, 0, 1, 1, 1}))
      << "equal scores in order of position";
}

TEST(NonMaxSuppression, ABoxWithoutAnAreaOverlapsWithNone) {
  const Tensor lines = tensor<float>({1, 2, 4}, {0, 0, 0, 1, 0, 0, 0, 1});
  EXPECT_EQ(values<std::int64_t>(run_op("NonMaxSuppression",
                                        {lines, tensor<float>({1, 1, 2}, {1, 0.5F}), int64s({2})})),
            (Ints{0, 0, 0, 0, 0, 1}));
}

// Behind every other score, and above no limit.
TEST(NonMaxSuppression, AScoreThatIsNanComesLast) {
  const Tensor nan_first = tensor<float>({1, 1, 4}, {NAN, 0.75F, 0.6F, NAN});
  EXPECT_EQ(values<std::int64_t>(
                run_op("NonMaxSuppression", {boxes(), nan_first, int64s({10}), floats({0.5F})})),
            (Ints{0, 0, 1, 0, 0, 2, 0, 0, 0}));
  EXPECT_EQ(values<std::int64_t>(run_op("NonMaxSuppression", {boxes(), nan_first, int64s({10}),
                                                              floats({0.5F}), floats({0.1F})})),
            (Ints{0, 0, 1, 0, 0, 2}));
}

TEST(NonMaxSuppression, ABoxThatIsNanOverlapsWithNone) {
  const Tensor broken = tensor<float>({1, 3, 4}, {0, 0, 1, 1, 0, 0, 1, NAN, NAN, NAN, NAN, NAN});
  EXPECT_EQ(
      values<std::int64_t>(run_op("NonMaxSuppression", {broken, tensor<float>({1, 1, 3}, {1, 3, 2}),
                                                        int64s({10}), floats({0.1F})})),
      (Ints{0, 0, 1, 0, 0, 2, 0, 0, 0}));
}

TEST(NonMaxSuppression, NoBoxesAtAll) {
  const Tensor none = tensor<float>({1, 0, 4}, {});
  EXPECT_EQ(run_op("NonMaxSuppression", {none, tensor<float>({1, 3, 0}, {}), int64s({4})}).dims(),
            (Dims{0, 3}));
}

TEST(NonMaxSuppression, Errors) {
  EXPECT_EQ(op_error("NonMaxSuppression", {boxes(), tensor<float>({1, 1, 3}, {1, 2, 3})}),
            "NonMaxSuppression: expected boxes [batch, n, 4] and scores [batch, classes, n], found "
            "[1, 4, 4] and [1, 1, 3]");
  EXPECT_EQ(op_error("NonMaxSuppression", {boxes(), scores(), int64s({1}), floats({1.5F})}),
            "NonMaxSuppression: input 'iou_threshold': expected a value from 0 to 1, found 1.5");
  EXPECT_EQ(op_error("NonMaxSuppression", {boxes(), scores(), int64s({1, 2})}),
            "NonMaxSuppression: input 'max_output_boxes_per_class': expected one element, found 2");
}

TEST(NonMaxSuppression, Infers) {
  EXPECT_EQ(testing::infer_text("NonMaxSuppression",
                                {testing::typed("fp32[b, n, 4]"), testing::typed("fp32[b, c, n]")}),
            "int64[_0, 3]");
}

}  // namespace
}  // namespace tessera::ops
