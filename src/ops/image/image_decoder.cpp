// ImageDecoder: the pixels of an encoded picture. The standard lets a picture that cannot be
// decoded give an empty matrix; here it is an error that says why, as in the standard's own
// implementation.

#include <fmt/format.h>

#include "ops/groups.h"
#include "ops/image/image.h"
#include "ops/infer_util.h"
#include "ops/kernel_util.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

enum class PixelFormat : std::uint8_t { kRgb, kBgr, kGrayscale };

Result<PixelFormat> pixel_format(const Attributes& attributes) {
  const std::string name = attributes.get_string("pixel_format", "RGB");
  if (name == "RGB") return PixelFormat::kRgb;
  if (name == "BGR") return PixelFormat::kBgr;
  if (name == "Grayscale") return PixelFormat::kGrayscale;
  return attribute_error("pixel_format",
                         fmt::format("expected 'RGB', 'BGR' or 'Grayscale', found '{}'", name));
}

std::int64_t channels_of(PixelFormat format) {
  return format == PixelFormat::kGrayscale ? 1 : 3;
}

Status infer(InferContext& context) {
  TESSERA_ASSIGN(const PixelFormat format, pixel_format(context.attributes));
  TESSERA_TRY(require_rank(context, 0, 1));
  set_output(context, 0, DType::kUInt8,
             Shape{context.fresh_symbol("height"), context.fresh_symbol("width"),
                   Dim(channels_of(format))});
  return {};
}

// Luma by the weights of ITU-R 601 in 1 / 65536.
std::uint8_t luma(const std::uint8_t* rgb) {
  return static_cast<std::uint8_t>((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 32768) >> 16);
}

Status kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const PixelFormat format, pixel_format(context.attributes()));
  auto decoded =
      image::decode({input->as<std::uint8_t>(), static_cast<std::size_t>(input->numel())});
  if (!decoded) return tl::unexpected(in_context(std::move(decoded).error(), "ImageDecoder"));
  const Dims& size = decoded->dims();
  TESSERA_ASSIGN(const MutableTensorView output,
                 context.output(0, DType::kUInt8, {size[0], size[1], channels_of(format)}));
  const std::uint8_t* from = decoded->span<std::uint8_t>().data();
  auto* to = output.as<std::uint8_t>();
  for (std::int64_t i = 0; i < size[0] * size[1]; ++i, from += 3) {
    switch (format) {
      case PixelFormat::kRgb: to = std::copy_n(from, 3, to); break;
      case PixelFormat::kBgr: to = std::reverse_copy(from, from + 3, to); break;
      case PixelFormat::kGrayscale: *to++ = luma(from); break;
    }
  }
  return {};
}

}  // namespace

std::vector<OpSchema> image_decoder_ops() {
  OpSchema op;
  op.name = "ImageDecoder";
  op.versions = {20};
  op.inputs = {required("encoded_stream", "T1")};
  op.outputs = {required("image", "T2")};
  op.attributes = {attr("pixel_format", AttrType::kString)};
  op.type_variables = {{"T1", dtype_bit(DType::kUInt8)}, {"T2", dtype_bit(DType::kUInt8)}};
  op.structure = Structure::kOther;
  op.infer = infer;
  op.kernel = kernel;
  op.data_dependent_shape = true;
  op.unspecified =
      "pictures have at most 2^27 pixels; transparency is dropped; grey is the luma of ITU-R 601";
  return {op};
}

}  // namespace tessera::ops
