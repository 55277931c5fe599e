// JPEG 2000, as a JP2 file or a bare codestream, through OpenJPEG.

#include <fmt/format.h>
#include <openjpeg.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "ops/image/image.h"

namespace tessera::ops::image {
namespace {

constexpr OPJ_UINT32 kMaxComponents = 4;
constexpr OPJ_UINT32 kMaxBits = 31;

struct Source {
  Bytes bytes;
  std::size_t at = 0;
  std::string problem;  // the first one
};

OPJ_SIZE_T read_bytes(void* to, OPJ_SIZE_T count, void* user) {
  auto& source = *static_cast<Source*>(user);
  const std::size_t taken = std::min<std::size_t>(count, source.bytes.size() - source.at);
  if (taken == 0) return static_cast<OPJ_SIZE_T>(-1);  // the end, in the library's words
  std::memcpy(to, source.bytes.data() + source.at, taken);
  source.at += taken;
  return taken;
}

OPJ_BOOL seek(OPJ_OFF_T offset, void* user) {
  auto& source = *static_cast<Source*>(user);
  if (offset < 0 || offset > static_cast<OPJ_OFF_T>(source.bytes.size())) return OPJ_FALSE;
  source.at = static_cast<std::size_t>(offset);
  return OPJ_TRUE;
}

OPJ_OFF_T skip(OPJ_OFF_T count, void* user) {
  auto& source = *static_cast<Source*>(user);
  const auto rest = static_cast<OPJ_OFF_T>(source.bytes.size() - source.at);
  if (count < 0 || count > rest) return -1;
  source.at += static_cast<std::size_t>(count);
  return count;
}

void on_error(const char* message, void* user) {
  std::string& problem = static_cast<Source*>(user)->problem;
  if (!problem.empty()) return;
  problem = message;
  while (!problem.empty() && (problem.back() == '\n' || problem.back() == '.')) problem.pop_back();
  std::replace(problem.begin(), problem.end(), '\n', ' ');
}

void print_nothing(const char* /*message*/, void* /*user*/) {}

struct Free {
  void operator()(opj_stream_t* stream) const { opj_stream_destroy(stream); }
  void operator()(opj_image_t* picture) const { opj_image_destroy(picture); }
};
struct FreeCodec {
  void operator()(opj_codec_t* codec) const { opj_destroy_codec(codec); }
};
using Stream = std::unique_ptr<opj_stream_t, Free>;
using Codec = std::unique_ptr<opj_codec_t, FreeCodec>;
using Decoded = std::unique_ptr<opj_image_t, Free>;

Stream open(Source& source) {
  Stream stream(opj_stream_create(OPJ_J2K_STREAM_CHUNK_SIZE, OPJ_TRUE));
  if (stream == nullptr) return stream;
  opj_stream_set_user_data(stream.get(), &source, nullptr);
  opj_stream_set_user_data_length(stream.get(), source.bytes.size());
  opj_stream_set_read_function(stream.get(), read_bytes);
  opj_stream_set_seek_function(stream.get(), seek);
  opj_stream_set_skip_function(stream.get(), skip);
  return stream;
}

Codec make_codec(Source& source, OPJ_CODEC_FORMAT format) {
  Codec codec(opj_create_decompress(format));
  if (codec == nullptr) return codec;
  opj_set_info_handler(codec.get(), print_nothing, nullptr);
  opj_set_warning_handler(codec.get(), print_nothing, nullptr);
  opj_set_error_handler(codec.get(), on_error, &source);
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  if (opj_setup_decoder(codec.get(), &parameters) == OPJ_FALSE) codec.reset();
  return codec;
}

// What the header declares, before anything of that size is taken.
Status check_header(const opj_image_t& picture) {
  const auto height = static_cast<std::int64_t>(picture.y1) - picture.y0;
  const auto width = static_cast<std::int64_t>(picture.x1) - picture.x0;
  TESSERA_TRY(check_size(height, width));
  bool is_known = picture.numcomps >= 1 && picture.numcomps <= kMaxComponents;
  for (OPJ_UINT32 c = 0; is_known && c < picture.numcomps; ++c)
    is_known = picture.comps[c].prec >= 1 && picture.comps[c].prec <= kMaxBits;
  if (is_known) return {};
  return fail(ErrorCode::kUnimplemented,
              fmt::format("expected 1 to {} components of 1 to {} bits, found {} components",
                          kMaxComponents, kMaxBits, picture.numcomps));
}

// The sample of one component that holds for a pixel, from 0 to 255; a component may have fewer
// samples than the picture has pixels.
int sample(const opj_image_comp_t& component, std::int64_t y, std::int64_t x) {
  const std::int64_t row = std::min<std::int64_t>(y / component.dy, component.h - 1);
  const std::int64_t column = std::min<std::int64_t>(x / component.dx, component.w - 1);
  const std::int64_t top = (std::int64_t{1} << component.prec) - 1;
  std::int64_t value = component.data[row * component.w + column];
  if (component.sgnd != 0) value += std::int64_t{1} << (component.prec - 1);
  value = std::clamp<std::int64_t>(value, 0, top);
  if (component.prec >= 8) return static_cast<int>(value >> (component.prec - 8));
  return static_cast<int>((value * 255 + top / 2) / top);
}

std::uint8_t to_byte(double value) {
  return static_cast<std::uint8_t>(std::clamp(value + 0.5, 0.0, 255.0));
}

void from_luma(std::array<int, 3> ycc, std::uint8_t* to) {
  const double y = ycc[0];
  const double blue = ycc[1] - 128;
  const double red = ycc[2] - 128;
  to[0] = to_byte(y + 1.402 * red);
  to[1] = to_byte(y - 0.344136 * blue - 0.714136 * red);
  to[2] = to_byte(y + 1.772 * blue);
}

Result<Tensor> to_pixels(const opj_image_t& decoded) {
  for (OPJ_UINT32 c = 0; c < decoded.numcomps; ++c) {
    const opj_image_comp_t& component = decoded.comps[c];
    if (component.data == nullptr || component.w == 0 || component.h == 0 || component.dx == 0 ||
        component.dy == 0)
      return damaged("a component has no samples");
  }
  const auto height = static_cast<std::int64_t>(decoded.y1) - decoded.y0;
  const auto width = static_cast<std::int64_t>(decoded.x1) - decoded.x0;
  TESSERA_ASSIGN(Tensor picture, new_picture(height, width));
  const bool is_colored = decoded.numcomps >= 3;
  const bool is_luma = is_colored && (decoded.color_space == OPJ_CLRSPC_SYCC ||
                                      decoded.color_space == OPJ_CLRSPC_EYCC);
  std::uint8_t* to = pixels_of(picture);
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x, to += 3) {
      std::array<int, 3> samples{};
      for (std::size_t c = 0; c < 3; ++c)
        samples[c] = sample(decoded.comps[is_colored ? c : 0], y, x);
      for (std::size_t c = 0; c < 3; ++c) to[c] = static_cast<std::uint8_t>(samples[c]);
      if (is_luma) from_luma(samples, to);
    }
  }
  return picture;
}

constexpr std::string_view kCodestream = "\xFF\x4F\xFF\x51";

bool recognizes(Bytes bytes) {
  using std::string_view_literals::operator""sv;
  return begins_with(bytes, "\0\0\0\x0CjP  \r\n\x87\n"sv) || begins_with(bytes, kCodestream);
}

Result<Tensor> decode_jpeg2000(Bytes bytes) {
  Source source{bytes, 0, {}};
  const auto failure = [&] {
    return damaged(source.problem.empty() ? "the file is damaged" : source.problem);
  };
  const Stream stream = open(source);
  const Codec codec =
      make_codec(source, begins_with(bytes, kCodestream) ? OPJ_CODEC_J2K : OPJ_CODEC_JP2);
  if (stream == nullptr || codec == nullptr) return failure();
  opj_image_t* made = nullptr;
  const bool has_header = opj_read_header(stream.get(), codec.get(), &made) == OPJ_TRUE;
  const Decoded decoded(made);
  if (!has_header || decoded == nullptr) return failure();
  TESSERA_TRY(check_header(*decoded));
  if (opj_decode(codec.get(), stream.get(), decoded.get()) == OPJ_FALSE ||
      opj_end_decompress(codec.get(), stream.get()) == OPJ_FALSE)
    return failure();
  if (decoded->color_space == OPJ_CLRSPC_CMYK)
    return fail(ErrorCode::kUnimplemented, "expected grey or colours of light, found CMYK");
  return to_pixels(*decoded);
}

}  // namespace

const Format kJpeg2000 = {"JPEG 2000", recognizes, decode_jpeg2000};

}  // namespace tessera::ops::image
