// ScatterElements (Scatter of old) and ScatterND: updates written, added or otherwise folded into a
// copy of the data.

#include <fmt/format.h>

#include <array>
#include <type_traits>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/movement/movement_util.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

enum class Fold : std::uint8_t { kNone, kAdd, kMul, kMin, kMax };

Result<Fold> fold_of(const Attributes& attributes) {
  static constexpr std::pair<std::string_view, Fold> kFolds[] = {{"none", Fold::kNone},
                                                                 {"add", Fold::kAdd},
                                                                 {"mul", Fold::kMul},
                                                                 {"min", Fold::kMin},
                                                                 {"max", Fold::kMax}};
  const std::string name = attributes.get_string("reduction", "none");
  for (const auto& [known, fold] : kFolds) {
    if (known == name) return fold;
  }
  return attribute_error(
      "reduction", fmt::format("expected 'none', 'add', 'mul', 'min' or 'max', found '{}'", name));
}

template <typename T>
T fold_element(Fold fold, T old_value, T update) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    if (fold == Fold::kAdd)
      return static_cast<T>(static_cast<std::uint64_t>(old_value) +
                            static_cast<std::uint64_t>(update));
    if (fold == Fold::kMul)
      return static_cast<T>(static_cast<std::uint64_t>(old_value) *
                            static_cast<std::uint64_t>(update));
  }
  switch (fold) {
    case Fold::kNone: return update;
    case Fold::kAdd: return old_value + update;
    case Fold::kMul: return old_value * update;
    // NaN, which differs from itself, wins.
    // NOLINTNEXTLINE(misc-redundant-expression)
    case Fold::kMin: return update < old_value || update != update ? update : old_value;
    // NOLINTNEXTLINE(misc-redundant-expression)
    case Fold::kMax: return update > old_value || update != update ? update : old_value;
  }
  return update;
}

// Writes slices of `count` updates to their targets, in order: the last one wins where two meet.
Status write_updates(Fold fold, const std::vector<std::int64_t>& targets, std::int64_t count,
                     const TensorView& updates, const MutableTensorView& output) {
  if (fold == Fold::kNone) {
    return dispatch_elements(output.dtype, [&](auto tag) -> Status {
      using T = typename decltype(tag)::type;
      for (std::size_t t = 0; t < targets.size(); ++t) {
        std::copy_n(updates.as<T>() + static_cast<std::int64_t>(t) * count, count,
                    output.as<T>() + targets[t]);
      }
      return {};
    });
  }
  return dispatch(NumericTypes{}, output.dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    for (std::size_t t = 0; t < targets.size(); ++t) {
      for (std::int64_t i = 0; i < count; ++i) {
        T& element = output.as<T>()[targets[t] + i];
        element = store<T>(fold_element<Compute<T>>(
            fold, load(element), load(updates.as<T>()[static_cast<std::int64_t>(t) * count + i])));
      }
    }
    return {};
  });
}

// A copy of all data elements by width (packed types lie spread out here).
Status copy_data(const TensorView& data, const MutableTensorView& output) {
  return dispatch_elements(data.dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    if (output.data != data.data) std::copy_n(data.as<T>(), data.numel(), output.as<T>());
    return {};
  });
}

Status infer_scatter(InferContext& context) {
  TESSERA_TRY(require_same_dtype(context, 2, 0));
  TESSERA_TRY(fold_of(context.attributes).map([](Fold) {}));
  return infer_same_as_first(context);
}

Status infer_scatter_elements(InferContext& context) {
  TESSERA_TRY(require_dtype(context, 1, kIndexTypes));
  TESSERA_TRY(infer_scatter(context));
  const auto& shape = context.inputs[0].type.shape;
  if (!shape) return {};
  const auto rank = static_cast<std::int64_t>(shape->size());
  TESSERA_TRY(normalize_axis(context.attributes.get_int("axis", 0), rank, "attribute 'axis'")
                  .map([](std::int64_t) {}));
  TESSERA_TRY(require_rank(context, 1, rank));
  return require_rank(context, 2, rank);
}

Status scatter_elements_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* data, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* indices, kernel_input(context, 1));
  TESSERA_ASSIGN(const TensorView* updates, kernel_input(context, 2));
  TESSERA_ASSIGN(const Fold fold, fold_of(context.attributes()));
  TESSERA_ASSIGN(const std::int64_t axis, kernel_axis(context, "axis", 0, data->dims.size()));
  const Dims& dims = indices->dims;
  bool fits = dims.size() == data->dims.size() && updates->dims == dims;
  for (std::size_t d = 0; fits && d < dims.size(); ++d)
    fits = static_cast<std::int64_t>(d) == axis || dims[d] <= data->dims[d];
  if (!fits) {
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("ScatterElements: expected indices and updates of one size no larger than {} "
                    "but for axis {}, found {} and {}",
                    to_string(data->dims), axis, to_string(dims), to_string(updates->dims)));
  }
  TESSERA_ASSIGN(std::vector<std::int64_t> targets,
                 checked_indices(*indices, data->dims[static_cast<std::size_t>(axis)], axis,
                                 "ScatterElements"));
  const Dims strides = row_major_strides(data->dims);
  for (std::size_t t = 0; t < targets.size(); ++t) {
    std::int64_t target = targets[t] * strides[static_cast<std::size_t>(axis)];
    auto rest = static_cast<std::int64_t>(t);
    for (std::size_t d = dims.size(); d-- > 0;) {
      if (static_cast<std::int64_t>(d) != axis) target += rest % dims[d] * strides[d];
      rest /= dims[d];
    }
    targets[t] = target;
  }
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, data->dtype, data->dims));
  TESSERA_TRY(copy_data(*data, output));
  return write_updates(fold, targets, 1, *updates, output);
}

Status infer_scatter_nd(InferContext& context) {
  TESSERA_TRY(require_dtype(context, 1, kInt64Type));
  TESSERA_TRY(require_rank_at_least(context, 0, 1));
  TESSERA_TRY(require_rank_at_least(context, 1, 1));
  TESSERA_TRY(infer_scatter(context));
  const auto& data = context.inputs[0].type.shape;
  const auto& indices = context.inputs[1].type.shape;
  const auto depth = indices ? indices->back().constant() : std::nullopt;
  if (!data || !depth) return {};
  const auto rank = static_cast<std::int64_t>(data->size());
  if (*depth < 0 || *depth > rank)
    return input_error(context, 1,
                       fmt::format("expected a last dim from 0 to {}, found {}", rank, *depth));
  return require_rank(context, 2, static_cast<std::int64_t>(indices->size()) - 1 + rank - *depth);
}

Status scatter_nd_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* data, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* indices, kernel_input(context, 1));
  TESSERA_ASSIGN(const TensorView* updates, kernel_input(context, 2));
  TESSERA_ASSIGN(const Fold fold, fold_of(context.attributes()));
  const std::size_t rank = data->dims.size();
  const auto depth =
      indices->dims.empty() ? rank + 1 : static_cast<std::size_t>(indices->dims.back());
  Dims expected;
  if (depth <= rank) {
    expected.assign(indices->dims.begin(), indices->dims.end() - 1);
    expected.insert(expected.end(), data->dims.begin() + static_cast<std::ptrdiff_t>(depth),
                    data->dims.end());
  }
  if (depth > rank || updates->dims != expected) {
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("ScatterND: indices {} and updates {} do not fit data {}",
                    to_string(indices->dims), to_string(updates->dims), to_string(data->dims)));
  }
  const Dims strides = row_major_strides(data->dims);
  const std::vector<std::int64_t> positions = to_int64_vector(*indices);
  std::vector<std::int64_t> targets(
      static_cast<std::size_t>(count_between(indices->dims, 0, indices->dims.size() - 1)), 0);
  for (std::size_t t = 0; t < targets.size(); ++t) {
    for (std::size_t k = 0; k < depth; ++k) {
      const std::int64_t size = data->dims[k];
      const std::int64_t index = positions[t * depth + k];
      if (index < -size || index >= size) {
        return fail(ErrorCode::kOutOfRange,
                    fmt::format("ScatterND: index {} is out of range for axis {} of size {}", index,
                                k, size));
      }
      targets[t] += (index < 0 ? index + size : index) * strides[k];
    }
  }
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, data->dtype, data->dims));
  TESSERA_TRY(copy_data(*data, output));
  return write_updates(fold, targets, count_between(data->dims, depth, rank), *updates, output);
}

Status upgrade_scatter(UpgradeNode& node, int /*opset*/, UpgradeBuilder& /*builder*/) {
  node.op_type = "ScatterElements";
  return {};
}

Work scatter_work(const Attributes& /*attributes*/, std::span<const TensorSpec> inputs,
                  std::span<const TensorSpec> outputs) {
  Work work;
  for (const TensorSpec& input : inputs)
    work.bytes_read += static_cast<double>(nbytes(input.dtype, input.dims));
  work.bytes_written =
      outputs.empty() ? 0 : static_cast<double>(nbytes(outputs[0].dtype, outputs[0].dims));
  if (inputs.size() > 2) work.flops = static_cast<double>(numel(inputs[2].dims));
  return work;
}

}  // namespace

std::vector<OpSchema> scatter_ops() {
  OpSchema elements;
  elements.name = "ScatterElements";
  elements.versions = {11, 13, 16, 18};
  elements.unspecified =
      "updates are made in the order of the indices, so that of equal ones the last wins; integers "
      "wrap around; a NaN wins min and max";
  elements.inputs = {required("data", "T"), required("indices", "Tind"), required("updates", "T")};
  elements.outputs = {required("output", "T")};
  elements.attributes = {attr("axis", AttrType::kInt), attr("reduction", AttrType::kString)};
  elements.type_variables = {{"T", kAllTypes}, {"Tind", kIndexTypes}};
  elements.structure = Structure::kMovement;
  elements.infer = infer_scatter_elements;
  elements.kernel = unpacked<scatter_elements_kernel>;
  elements.work = scatter_work;
  elements.in_place_inputs = {0};

  OpSchema scatter = elements;
  scatter.name = "Scatter";
  scatter.versions = {9, 11};
  scatter.attributes = {attr("axis", AttrType::kInt)};
  scatter.upgrades = {{9, 11, upgrade_scatter}};
  scatter.unspecified = "of equal indices the last update wins";

  OpSchema nd = elements;
  nd.name = "ScatterND";
  nd.attributes = {attr("reduction", AttrType::kString)};
  nd.type_variables = {{"T", kAllTypes}, {"Tind", kInt64Type}};
  nd.infer = infer_scatter_nd;
  nd.kernel = unpacked<scatter_nd_kernel>;
  return {elements, scatter, nd};
}

}  // namespace tessera::ops
