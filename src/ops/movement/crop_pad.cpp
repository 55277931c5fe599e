// CenterCropPad: each axis cropped or padded to a size, around its centre.

#include <fmt/format.h>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/movement/movement_util.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

// The axes that the sizes are meant for: those of the attribute, else all.
Result<std::vector<std::int64_t>> sized_axes(const Attributes& attributes, std::size_t rank) {
  std::vector<std::int64_t> axes = attributes.get_ints("axes");
  if (!attributes.has("axes")) {
    for (std::size_t i = 0; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
  }
  return normalize_axes(axes, static_cast<std::int64_t>(rank), "attribute 'axes'");
}

Status infer(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* input, tensor_input(context, 0));
  TESSERA_TRY(require_dtype(context, 1, kIndexTypes));
  TESSERA_TRY(require_rank(context, 1, 1));
  std::optional<Shape> output = input->type.shape;
  if (output) {
    TESSERA_ASSIGN(const auto axes, sized_axes(context.attributes, output->size()));
    const auto sizes = known_value(context.inputs[1]);
    if (sizes && sizes->elements.size() != axes.size())
      return input_error(context, 1,
                         fmt::format("expected {} sizes, one for each axis, found {}", axes.size(),
                                     sizes->elements.size()));
    for (std::size_t i = 0; i < axes.size(); ++i)
      (*output)[static_cast<std::size_t>(axes[i])] =
          sizes ? sizes->elements[i] : context.fresh_symbol("crop");
  }
  set_output(context, 0, input->type.dtype, std::move(output));
  return {};
}

// What is copied along one axis.
struct Part {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t size = 0;
};

// Odd rests: a crop begins half an element to the left, padding has its last element at the end.
Part centred(std::int64_t input, std::int64_t output) {
  if (input >= output) return {(input - output) / 2, 0, output};
  return {0, (output - input) / 2, input};
}

template <typename T>
void copy_part(const TensorView& input, const MutableTensorView& output,
               const std::vector<Part>& parts) {
  std::fill(output.as<T>(), output.as<T>() + output.numel(), T{});
  const std::size_t rank = parts.size();
  const Dims from_strides = row_major_strides(input.dims);
  const Dims to_strides = row_major_strides(output.dims);
  const std::int64_t row = rank == 0 ? 1 : parts.back().size;
  std::int64_t rows = 1;
  for (std::size_t d = 0; d + 1 < rank; ++d) rows *= parts[d].size;
  if (row == 0) return;
  for (std::int64_t i = 0; i < rows; ++i) {
    std::int64_t rest = i;
    std::int64_t from = rank == 0 ? 0 : parts.back().from;
    std::int64_t to = rank == 0 ? 0 : parts.back().to;
    for (std::size_t d = rank == 0 ? 0 : rank - 1; d-- > 0;) {
      const std::int64_t at = rest % parts[d].size;
      rest /= parts[d].size;
      from += (parts[d].from + at) * from_strides[d];
      to += (parts[d].to + at) * to_strides[d];
    }
    std::copy_n(input.as<T>() + from, row, output.as<T>() + to);
  }
}

Status kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* shape, kernel_input(context, 1));
  TESSERA_ASSIGN(const auto axes, sized_axes(context.attributes(), input->dims.size()));
  const std::vector<std::int64_t> sizes = to_int64_vector(*shape);
  Dims dims = input->dims;
  if (sizes.size() != axes.size())
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("CenterCropPad: expected {} sizes, one for each axis, found {}",
                            axes.size(), sizes.size()));
  for (std::size_t i = 0; i < axes.size(); ++i) dims[static_cast<std::size_t>(axes[i])] = sizes[i];
  TESSERA_TRY(checked_nbytes(input->dtype, dims).map([](std::int64_t) {}));
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, input->dtype, dims));
  std::vector<Part> parts;
  for (std::size_t d = 0; d < dims.size(); ++d) parts.push_back(centred(input->dims[d], dims[d]));
  return dispatch_elements(input->dtype, [&](auto tag) -> Status {
    copy_part<typename decltype(tag)::type>(*input, output, parts);
    return {};
  });
}

}  // namespace

std::vector<OpSchema> crop_pad_ops() {
  OpSchema op;
  op.name = "CenterCropPad";
  op.versions = {18};
  op.unspecified = "an axis that stands twice and a size below 0 are errors";
  op.inputs = {required("input_data", "T"), required("shape", "Tind")};
  op.outputs = {required("output_data", "T")};
  op.attributes = {attr("axes", AttrType::kInts)};
  op.type_variables = {{"T", kAllTypes & ~kFp8Types & ~kPackedTypes}, {"Tind", kIndexTypes}};
  op.structure = Structure::kMovement;
  op.infer = infer;
  op.kernel = kernel;
  op.work = movement_work;
  op.shape_inputs = {1};
  return {op};
}

}  // namespace tessera::ops
