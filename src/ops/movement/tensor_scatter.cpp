// TensorScatter: a cache with some of its places along one axis replaced.

#include <fmt/format.h>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/movement/movement_util.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

Result<bool> is_circular(const Attributes& attributes) {
  const std::string mode = attributes.get_string("mode", "linear");
  if (mode == "linear" || mode == "circular") return mode == "circular";
  return attribute_error("mode", fmt::format("expected 'linear' or 'circular', found '{}'", mode));
}

Result<std::int64_t> sequence_axis(const Attributes& attributes, std::size_t rank) {
  TESSERA_ASSIGN(const std::int64_t axis,
                 normalize_axis(attributes.get_int("axis", -2), static_cast<std::int64_t>(rank),
                                "attribute 'axis'"));
  if (axis != 0) return axis;
  return attribute_error("axis", "expected an axis other than that of the batch, found 0");
}

Status infer(InferContext& context) {
  TESSERA_TRY(is_circular(context.attributes).map([](bool) {}));
  TESSERA_TRY(require_same_dtype(context, 1, 0));
  const auto& cache = context.inputs[0].type.shape;
  const auto& update = context.inputs[1].type.shape;
  if (cache) {
    TESSERA_ASSIGN(const std::int64_t axis, sequence_axis(context.attributes, cache->size()));
    TESSERA_TRY(require_rank(context, 1, static_cast<std::int64_t>(cache->size())));
    for (std::size_t d = 0; update && d < cache->size(); ++d) {
      if (d == static_cast<std::size_t>(axis)) continue;
      TESSERA_TRY(merge_dim((*cache)[d], (*update)[d], fmt::format("axis {} of the update", d))
                      .map([](const Dim&) {}));
    }
  }
  return infer_same_as_first(context);
}

// The place of the first written element, by sample of the batch.
Result<std::vector<std::int64_t>> write_places(const KernelContext& context, std::int64_t batch) {
  const TensorView* indices = context.input(2);
  if (indices == nullptr) return std::vector<std::int64_t>(static_cast<std::size_t>(batch), 0);
  std::vector<std::int64_t> places = to_int64_vector(*indices);
  if (static_cast<std::int64_t>(places.size()) == batch) return places;
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("TensorScatter: expected one write index for each of {} samples, found "
                          "{}",
                          batch, places.size()));
}

Status kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* cache, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* update, kernel_input(context, 1));
  TESSERA_ASSIGN(const bool circular, is_circular(context.attributes()));
  TESSERA_ASSIGN(const std::int64_t axis, sequence_axis(context.attributes(), cache->dims.size()));
  Dims fitting = cache->dims;
  if (update->dims.size() == fitting.size())
    fitting[static_cast<std::size_t>(axis)] = update->dims[static_cast<std::size_t>(axis)];
  const AxisSplit split = split_at(cache->dims, axis);
  if (update->dims != fitting || fitting[static_cast<std::size_t>(axis)] > split.size)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("TensorScatter: expected an update that fits into {} along axis {}, "
                            "found {}",
                            to_string(cache->dims), axis, to_string(update->dims)));
  const std::int64_t length = fitting[static_cast<std::size_t>(axis)];
  TESSERA_ASSIGN(const auto places, write_places(context, cache->dims[0]));
  for (const std::int64_t place : places) {
    if (place < 0 || (!circular && place + length > split.size))
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("TensorScatter: expected write indices from 0 to {}, found {}",
                              split.size - length, place));
  }
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, cache->dtype, cache->dims));
  if (output.data != cache->data) copy_elements(*cache, output);
  if (update->numel() == 0) return {};
  const std::int64_t per_sample = split.outer / cache->dims[0];
  return dispatch_elements(cache->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    for (std::int64_t row = 0; row < split.outer; ++row) {
      const std::int64_t first = places[static_cast<std::size_t>(row / per_sample)];
      for (std::int64_t i = 0; i < length; ++i)
        std::copy_n(update->as<T>() + (row * length + i) * split.inner, split.inner,
                    output.as<T>() + (row * split.size + (first + i) % split.size) * split.inner);
    }
    return {};
  });
}

}  // namespace

std::vector<OpSchema> tensor_scatter_ops() {
  OpSchema op;
  op.name = "TensorScatter";
  op.versions = {24};
  op.unspecified =
      "a write index below 0, in circular mode too, and an update longer than the cache are errors";
  op.inputs = {required("past_cache", "T"), required("update", "T"),
               optional("write_indices", "I")};
  op.outputs = {required("present_cache", "T")};
  op.attributes = {attr("axis", AttrType::kInt), attr("mode", AttrType::kString)};
  op.type_variables = {{"T", kAllTypes}, {"I", kInt64Type}};
  op.structure = Structure::kMovement;
  op.infer = infer;
  op.kernel = unpacked<kernel>;
  op.work = movement_work;
  op.in_place_inputs = {0};
  return {op};
}

}  // namespace tessera::ops
