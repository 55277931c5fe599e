// Gather, GatherElements and GatherND.

#include <fmt/format.h>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/movement/movement_util.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

// ---- Gather
// -------------------------------------------------------------------------------------------------

// Elements of a known vector at known positions.
Result<std::optional<DimTensor>> gather_value(const InferContext& context, std::int64_t axis) {
  const auto value = known_value(context.inputs[0]);
  const auto indices = known_value(context.inputs[1]);
  const auto positions = known_ints(context.inputs[1]);
  if (!value || value->scalar || !positions) return std::optional<DimTensor>();
  DimTensor result{indices->scalar, {}};
  const auto size = static_cast<std::int64_t>(value->elements.size());
  for (const std::int64_t position : *positions) {
    if (position < -size || position >= size) {
      return fail(ErrorCode::kOutOfRange,
                  fmt::format("Gather: index {} is out of range for axis {} of size {}", position,
                              axis, size));
    }
    result.elements.push_back(
        value->elements[static_cast<std::size_t>(position < 0 ? position + size : position)]);
  }
  return std::optional(std::move(result));
}

Status infer_gather(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* data, tensor_input(context, 0));
  TESSERA_TRY(require_dtype(context, 1, kIndexTypes));
  const auto& indices = context.inputs[1].type.shape;
  set_output(context, 0, data->type.dtype, std::nullopt);
  if (!data->type.shape) return {};
  const Shape& shape = *data->type.shape;
  TESSERA_ASSIGN(const std::int64_t axis,
                 normalize_axis(context.attributes.get_int("axis", 0),
                                static_cast<std::int64_t>(shape.size()), "attribute 'axis'"));
  if (!indices) return {};
  Shape result(shape.begin(), shape.begin() + axis);
  result.insert(result.end(), indices->begin(), indices->end());
  result.insert(result.end(), shape.begin() + axis + 1, shape.end());
  set_output(context, 0, data->type.dtype, std::move(result));
  TESSERA_ASSIGN(auto value, gather_value(context, axis));
  set_value(context, 0, std::move(value));
  return {};
}

Status gather_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* data, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* indices, kernel_input(context, 1));
  TESSERA_ASSIGN(const std::int64_t axis, kernel_axis(context, "axis", 0, data->dims.size()));
  const AxisSplit split = split_at(data->dims, axis);
  TESSERA_ASSIGN(const std::vector<std::int64_t> at,
                 checked_indices(*indices, split.size, axis, "Gather"));
  Dims dims(data->dims.begin(), data->dims.begin() + axis);
  dims.insert(dims.end(), indices->dims.begin(), indices->dims.end());
  dims.insert(dims.end(), data->dims.begin() + axis + 1, data->dims.end());
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, data->dtype, dims));
  const auto count = static_cast<std::int64_t>(at.size());
  return dispatch_elements(data->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    const std::int64_t grain =
        std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, split.inner));
    context.parallel_for(split.outer * count, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t source =
            row / count * split.size + at[static_cast<std::size_t>(row % count)];
        std::copy_n(data->as<T>() + source * split.inner, split.inner,
                    output.as<T>() + row * split.inner);
      }
    });
    return {};
  });
}

// ---- GatherElements
// -------------------------------------------------------------------------------------------------

Status infer_gather_elements(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* data, tensor_input(context, 0));
  TESSERA_TRY(require_dtype(context, 1, kIndexTypes));
  if (data->type.shape) {
    const auto rank = static_cast<std::int64_t>(data->type.shape->size());
    TESSERA_TRY(normalize_axis(context.attributes.get_int("axis", 0), rank, "attribute 'axis'")
                    .map([](std::int64_t) {}));
    TESSERA_TRY(require_rank(context, 1, rank));
  }
  set_output(context, 0, data->type.dtype, context.inputs[1].type.shape);
  return {};
}

// Ranks agree, and no axis of the indices but `axis` is longer than that of the data.
Status check_elements_dims(const Dims& data, const Dims& indices, std::int64_t axis,
                           std::string_view op) {
  bool fits = data.size() == indices.size();
  for (std::size_t d = 0; fits && d < data.size(); ++d)
    fits = static_cast<std::int64_t>(d) == axis || indices[d] <= data[d];
  if (fits) return {};
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("{}: expected indices no larger than {} but for axis {}, found {}", op,
                          to_string(data), axis, to_string(indices)));
}

Status gather_elements_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* data, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* indices, kernel_input(context, 1));
  TESSERA_ASSIGN(const std::int64_t axis, kernel_axis(context, "axis", 0, data->dims.size()));
  TESSERA_TRY(check_elements_dims(data->dims, indices->dims, axis, "GatherElements"));
  TESSERA_ASSIGN(const std::vector<std::int64_t> at,
                 checked_indices(*indices, data->dims[static_cast<std::size_t>(axis)], axis,
                                 "GatherElements"));
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, data->dtype, indices->dims));
  Dims strides = row_major_strides(data->dims);
  const std::int64_t axis_stride = strides[static_cast<std::size_t>(axis)];
  strides[static_cast<std::size_t>(axis)] = 0;
  return dispatch_elements(data->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    for_each_row<1>(
        context, indices->dims, {strides},
        [&](std::int64_t begin, const std::array<std::int64_t, 1>& offsets,
            const std::array<std::int64_t, 1>& steps, std::int64_t count) {
          for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t along = at[static_cast<std::size_t>(begin + i)] * axis_stride;
            output.as<T>()[begin + i] = data->as<T>()[offsets[0] + i * steps[0] + along];
          }
        });
    return {};
  });
}

// ---- GatherND
// -------------------------------------------------------------------------------------------------

Status infer_gather_nd(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* data, tensor_input(context, 0));
  TESSERA_TRY(require_dtype(context, 1, kInt64Type));
  TESSERA_TRY(require_rank_at_least(context, 0, 1));
  TESSERA_TRY(require_rank_at_least(context, 1, 1));
  set_output(context, 0, data->type.dtype, std::nullopt);
  const auto& indices = context.inputs[1].type.shape;
  if (!data->type.shape || !indices) return {};
  const Shape& shape = *data->type.shape;
  const auto rank = static_cast<std::int64_t>(shape.size());
  const std::int64_t batch = context.attributes.get_int("batch_dims", 0);
  if (batch < 0 || batch >= std::min(rank, static_cast<std::int64_t>(indices->size()))) {
    return attribute_error(
        "batch_dims",
        fmt::format("expected a value from 0 to {}, found {}",
                    std::min(rank, static_cast<std::int64_t>(indices->size())) - 1, batch));
  }
  const auto depth = indices->back().constant();
  if (!depth) return {};
  if (*depth < 1 || *depth > rank - batch) {
    return input_error(
        context, 1,
        fmt::format("expected a last dim from 1 to {}, found {}", rank - batch, *depth));
  }
  Shape result(indices->begin(), indices->end() - 1);
  result.insert(result.end(), shape.begin() + batch + *depth, shape.end());
  set_output(context, 0, data->type.dtype, std::move(result));
  return {};
}

Status gather_nd_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* data, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* indices, kernel_input(context, 1));
  const auto batch = static_cast<std::size_t>(context.attributes().get_int("batch_dims", 0));
  const std::size_t rank = data->dims.size();
  const auto depth =
      indices->dims.empty() ? std::size_t{0} : static_cast<std::size_t>(indices->dims.back());
  const bool sound =
      depth >= 1 && batch < rank && batch < indices->dims.size() && depth <= rank - batch &&
      std::equal(data->dims.begin(), data->dims.begin() + static_cast<std::ptrdiff_t>(batch),
                 indices->dims.begin());
  if (!sound) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("GatherND: indices {} do not fit data {} with batch_dims {}",
                            to_string(indices->dims), to_string(data->dims), batch));
  }
  Dims dims(indices->dims.begin(), indices->dims.end() - 1);
  dims.insert(dims.end(), data->dims.begin() + static_cast<std::ptrdiff_t>(batch + depth),
              data->dims.end());
  const std::int64_t batches = count_between(data->dims, 0, batch);
  const std::int64_t per_batch = count_between(data->dims, batch, rank);
  const std::int64_t tuples = count_between(indices->dims, batch, indices->dims.size() - 1);
  const std::int64_t slice = count_between(data->dims, batch + depth, rank);
  const Dims strides = row_major_strides(data->dims);
  const std::vector<std::int64_t> positions = to_int64_vector(*indices);
  std::vector<std::int64_t> sources;
  for (std::int64_t t = 0; t < batches * tuples; ++t) {
    std::int64_t source = t / tuples * per_batch;
    for (std::size_t k = 0; k < depth; ++k) {
      const std::int64_t size = data->dims[batch + k];
      const std::int64_t index = positions[static_cast<std::size_t>(t) * depth + k];
      if (index < -size || index >= size) {
        return fail(ErrorCode::kOutOfRange,
                    fmt::format("GatherND: index {} is out of range for axis {} of size {}", index,
                                batch + k, size));
      }
      source += (index < 0 ? index + size : index) * strides[batch + k];
    }
    sources.push_back(source);
  }
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, data->dtype, dims));
  return dispatch_elements(data->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    for (std::size_t t = 0; t < sources.size(); ++t) {
      std::copy_n(data->as<T>() + sources[t], slice,
                  output.as<T>() + static_cast<std::int64_t>(t) * slice);
    }
    return {};
  });
}

}  // namespace

std::vector<OpSchema> gather_ops() {
  OpSchema gather;
  gather.name = "Gather";
  gather.versions = {1, 11, 13};
  gather.inputs = {required("data", "T"), required("indices", "Tind")};
  gather.outputs = {required("output", "T")};
  gather.attributes = {attr("axis", AttrType::kInt)};
  gather.type_variables = {{"T", kAllTypes}, {"Tind", kIndexTypes}};
  gather.structure = Structure::kMovement;
  gather.infer = infer_gather;
  gather.kernel = unpacked<gather_kernel>;
  gather.work = movement_work;

  OpSchema elements = gather;
  elements.name = "GatherElements";
  elements.versions = {11, 13};
  elements.infer = infer_gather_elements;
  elements.kernel = unpacked<gather_elements_kernel>;

  OpSchema nd = gather;
  nd.name = "GatherND";
  nd.versions = {11, 12, 13};
  nd.attributes = {attr("batch_dims", AttrType::kInt)};
  nd.type_variables = {{"T", kAllTypes}, {"Tind", kInt64Type}};
  nd.infer = infer_gather_nd;
  nd.kernel = unpacked<gather_nd_kernel>;
  return {gather, elements, nd};
}

}  // namespace tessera::ops
