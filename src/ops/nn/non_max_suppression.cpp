// NonMaxSuppression: of boxes that overlap much, the one of the highest score.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/kernel_util.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

constexpr std::size_t kMaxBoxes = 2;
constexpr std::size_t kIouThreshold = 3;
constexpr std::size_t kScoreThreshold = 4;

Status infer_non_max_suppression(InferContext& context) {
  TESSERA_TRY(require_rank(context, 0, 3));
  TESSERA_TRY(require_rank(context, 1, 3));
  set_output(context, 0, DType::kInt64, Shape{context.fresh_symbol("selected"), Dim(3)});
  return {};
}

// A box by its corners, the smaller coordinates first.
struct Box {
  float y1, x1, y2, x2;

  [[nodiscard]] float area() const { return (y2 - y1) * (x2 - x1); }
};

Box box_at(const float* numbers, bool by_center) {
  if (by_center) {
    const float half_width = numbers[2] / 2;
    const float half_height = numbers[3] / 2;
    return {numbers[1] - half_height, numbers[0] - half_width, numbers[1] + half_height,
            numbers[0] + half_width};
  }
  const auto [y1, y2] = std::minmax(numbers[0], numbers[2]);
  const auto [x1, x2] = std::minmax(numbers[1], numbers[3]);
  return {y1, x1, y2, x2};
}

// Boxes without an area overlap with nothing.
bool overlap_too_much(const Box& a, const Box& b, float threshold) {
  if (a.area() <= 0 || b.area() <= 0) return false;
  const float height = std::min(a.y2, b.y2) - std::max(a.y1, b.y1);
  const float width = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  if (height <= 0 || width <= 0) return false;
  const float shared = height * width;
  return shared / (a.area() + b.area() - shared) > threshold;
}

struct Limits {
  std::int64_t boxes = 0;  // of each class
  float iou = 0;
  std::optional<float> score;
  bool by_center = false;
};

Result<const TensorView*> one_number(const KernelContext& context, std::size_t index,
                                     std::string_view name) {
  const TensorView* input = context.input(index);
  if (input == nullptr || input->numel() == 1) return input;
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("NonMaxSuppression: input '{}': expected one element, found {}", name,
                          input->numel()));
}

Result<Limits> read_limits(const KernelContext& context) {
  Limits limits;
  TESSERA_ASSIGN(const TensorView* boxes,
                 one_number(context, kMaxBoxes, "max_output_boxes_per_class"));
  TESSERA_ASSIGN(const TensorView* iou, one_number(context, kIouThreshold, "iou_threshold"));
  TESSERA_ASSIGN(const TensorView* score, one_number(context, kScoreThreshold, "score_threshold"));
  if (boxes != nullptr) limits.boxes = boxes->as<std::int64_t>()[0];
  if (iou != nullptr) limits.iou = iou->as<float>()[0];
  if (!(limits.iou >= 0 && limits.iou <= 1)) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("NonMaxSuppression: input 'iou_threshold': expected a value from 0 to "
                            "1, found {}",
                            limits.iou));
  }
  if (score != nullptr) limits.score = score->as<float>()[0];
  limits.by_center = context.attributes().get_int("center_point_box", 0) != 0;
  return limits;
}

// The boxes of one class that stay, by falling score; equal scores in order of position.
std::vector<std::int64_t> select_boxes(const float* boxes, const float* scores, std::int64_t count,
                                       const Limits& limits) {
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < count; ++i)
    if (!limits.score || scores[i] > *limits.score) order.push_back(i);
  // A NaN comes behind every number.
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return scores[a] > scores[b] || (std::isnan(scores[b]) && !std::isnan(scores[a]));
  });
  std::vector<std::int64_t> selected;
  for (const std::int64_t i : order) {
    if (static_cast<std::int64_t>(selected.size()) >= limits.boxes) break;
    const Box box = box_at(boxes + i * 4, limits.by_center);
    const bool covered = std::any_of(selected.begin(), selected.end(), [&](std::int64_t other) {
      return overlap_too_much(box, box_at(boxes + other * 4, limits.by_center), limits.iou);
    });
    if (!covered) selected.push_back(i);
  }
  return selected;
}

Status check_sizes(const TensorView& boxes, const TensorView& scores) {
  if (boxes.dims.size() == 3 && scores.dims.size() == 3 && boxes.dims[2] == 4 &&
      boxes.dims[0] == scores.dims[0] && boxes.dims[1] == scores.dims[2])
    return {};
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("NonMaxSuppression: expected boxes [batch, n, 4] and scores [batch, "
                          "classes, n], found [{}] and [{}]",
                          fmt::join(boxes.dims, ", "), fmt::join(scores.dims, ", ")));
}

Status non_max_suppression_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* boxes, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* scores, kernel_input(context, 1));
  TESSERA_TRY(check_sizes(*boxes, *scores));
  TESSERA_ASSIGN(const Limits limits, read_limits(context));
  const std::int64_t classes = scores->dims[1];
  const std::int64_t count = scores->dims[2];
  std::vector<std::int64_t> rows;
  for (std::int64_t line = 0; line < scores->dims[0] * classes; ++line) {
    const std::int64_t batch = line / classes;
    for (const std::int64_t box : select_boxes(boxes->as<float>() + batch * count * 4,
                                               scores->as<float>() + line * count, count, limits))
      rows.insert(rows.end(), {batch, line % classes, box});
  }
  TESSERA_ASSIGN(const MutableTensorView output,
                 context.output(0, DType::kInt64, {static_cast<std::int64_t>(rows.size()) / 3, 3}));
  std::copy(rows.begin(), rows.end(), output.as<std::int64_t>());
  return {};
}

}  // namespace

std::vector<OpSchema> detection_ops() {
  OpSchema op;
  op.name = "NonMaxSuppression";
  op.versions = {10, 11};
  op.structure = Structure::kOther;
  op.infer = infer_non_max_suppression;
  op.kernel = non_max_suppression_kernel;
  op.inputs = {required("boxes", "F"), required("scores", "F"),
               optional("max_output_boxes_per_class", "I"), optional("iou_threshold", "F"),
               optional("score_threshold", "F")};
  op.outputs = {required("selected_indices", "I")};
  op.attributes = {attr("center_point_box", AttrType::kInt)};
  op.type_variables = {{"F", kFp32Type}, {"I", kInt64Type}};
  op.data_dependent_shape = true;
  op.unspecified =
      "of equal scores the box with the lower index comes first; a box without an area overlaps "
      "with none";
  return {op};
}

}  // namespace tessera::ops
