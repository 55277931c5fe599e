// Recipes of transforms, of window functions, and of the matrices beside them.

#include <algorithm>

#include "random_models/recipes.h"

namespace tessera::random_models {
namespace {

ValueId index_scalar(Draft& draft, DType dtype, std::int64_t value) {
  const Tensor tensor = constant_tensor(dtype, {}, {static_cast<double>(value)});
  return draft.random().chance(0.7) ? draft.constant(tensor) : draft.input(tensor);
}

DType index_dtype(Draft& draft) {
  return one_of(draft, {DType::kInt64, DType::kInt32});
}

void table_dtype(Draft& draft, DType dtype, Node& node) {
  if (dtype != DType::kFp32 || draft.random().chance(0.3))
    node.attributes.set("output_datatype", static_cast<std::int64_t>(dtype));
}

bool window(Draft& draft, DType dtype, Node& node) {
  table_dtype(draft, dtype, node);
  maybe(draft, node, "periodic", flag(draft));
  node.inputs = {index_scalar(draft, index_dtype(draft), draft.random().integer(0, 12))};
  node.outputs = {0};
  return true;
}

bool mel_matrix(Draft& draft, DType dtype, Node& node) {
  table_dtype(draft, dtype, node);
  const DType index = index_dtype(draft);
  const DType hertz = one_of(draft, {DType::kFp32, DType::kFp32, DType::kFp64, DType::kFp16});
  node.inputs = {index_scalar(draft, index, draft.random().integer(1, 6)),
                 index_scalar(draft, index, draft.random().integer(8, 32)),
                 index_scalar(draft, index, 8000),
                 draft.scalar(hertz, draft.random().chance(0.5) ? 0 : 128),
                 draft.scalar(hertz, one_of<double>(draft, {2048, 3840}))};
  node.outputs = {0};
  return true;
}

// [batch..., length, parts]: one part is real, two are complex.
ValueId signal(Draft& draft, DType dtype, std::size_t batches, std::int64_t parts) {
  Sizes sizes = draft.draw_sizes(batches);
  sizes.push_back(number(draft.random().integer(2, 9)));
  sizes.push_back(number(parts));
  return draft.fresh(dtype, sizes);
}

bool transform(Draft& draft, DType dtype, Node& node) {
  const bool onesided = draft.random().chance(0.4);
  const bool inverse = draft.random().chance(0.4);
  const bool is_complex = onesided ? inverse : draft.random().chance(0.5);
  const ValueId x = signal(draft, dtype, draft.random().index(3), is_complex ? 2 : 1);
  if (onesided || draft.random().chance(0.2))
    node.attributes.set("onesided", std::int64_t{onesided ? 1 : 0});
  if (inverse || draft.random().chance(0.2))
    node.attributes.set("inverse", std::int64_t{inverse ? 1 : 0});
  node.inputs = {x};
  if (draft.random().chance(0.4))
    node.inputs.push_back(index_scalar(draft, index_dtype(draft), draft.random().integer(1, 10)));
  if (draft.random().chance(0.4)) {
    if (node.inputs.size() == 1) node.inputs.push_back(kOmitted);
    const auto axes = static_cast<std::int64_t>(draft.rank(x)) - 1;
    const std::int64_t axis = draft.random().integer(0, axes - 1);
    node.inputs.push_back(
        index_scalar(draft, DType::kInt64, draft.random().chance(0.5) ? axis : axis - axes - 1));
  }
  node.outputs = {0};
  return true;
}

bool short_transform(Draft& draft, DType dtype, Node& node) {
  const bool is_complex = draft.random().chance(0.3);
  const ValueId x = signal(draft, dtype, 1, is_complex ? 2 : 1);
  const std::int64_t length = draft.random().integer(1, draft.size(x, 1)[0]);
  if (is_complex || draft.random().chance(0.4))
    node.attributes.set("onesided", is_complex ? std::int64_t{0} : flag(draft));
  const DType index = index_dtype(draft);
  node.inputs = {x, index_scalar(draft, index, draft.random().integer(1, 3)), kOmitted, kOmitted};
  const bool windowed = draft.random().chance(0.6);
  if (windowed) node.inputs[2] = draft.weights(dtype, {length});
  if (!windowed || draft.random().chance(0.5)) node.inputs[3] = index_scalar(draft, index, length);
  while (node.inputs.back() == kOmitted) node.inputs.pop_back();
  node.outputs = {0};
  return true;
}

constexpr Recipe kRecipes[] = {
    {"BlackmanWindow", window, -1},      {"DFT", transform},
    {"HammingWindow", window, -1},       {"HannWindow", window, -1},
    {"MelWeightMatrix", mel_matrix, -1}, {"STFT", short_transform},
};

}  // namespace

std::span<const Recipe> signal_recipes() {
  return kRecipes;
}

}  // namespace tessera::random_models
