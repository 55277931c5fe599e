// TIFF, the first picture of a file, through libtiff's own conversion to red, green and blue.

#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "ops/image/image.h"

namespace tessera::ops::image {
namespace {

struct Source {
  Bytes bytes;
  std::uint64_t at = 0;
  char problem[200] = "";  // the first one
};

Source& source_of(thandle_t handle) {
  return *static_cast<Source*>(handle);
}

tmsize_t read_bytes(thandle_t handle, void* to, tmsize_t count) {
  Source& source = source_of(handle);
  if (source.at >= source.bytes.size() || count <= 0) return 0;
  const std::size_t rest = source.bytes.size() - static_cast<std::size_t>(source.at);
  const std::size_t taken = std::min(rest, static_cast<std::size_t>(count));
  std::memcpy(to, source.bytes.data() + source.at, taken);
  source.at += taken;
  return static_cast<tmsize_t>(taken);
}

tmsize_t write_bytes(thandle_t /*handle*/, void* /*from*/, tmsize_t /*count*/) {
  return 0;
}

std::uint64_t seek(thandle_t handle, std::uint64_t offset, int whence) {
  Source& source = source_of(handle);
  if (whence == SEEK_CUR) offset += source.at;
  if (whence == SEEK_END) offset += source.bytes.size();
  return source.at = offset;
}

int close(thandle_t /*handle*/) {
  return 0;
}

std::uint64_t size_of_file(thandle_t handle) {
  return source_of(handle).bytes.size();
}

// What a handler returns other than 0 keeps the library from printing.
int on_error(TIFF* /*tiff*/, void* user, const char* /*module*/, const char* format,
             std::va_list arguments) {
  auto& source = *static_cast<Source*>(user);
  if (source.problem[0] == '\0')
    std::vsnprintf(source.problem, sizeof source.problem, format, arguments);
  return 1;
}

int on_warning(TIFF* /*tiff*/, void* /*user*/, const char* /*module*/, const char* /*format*/,
               std::va_list /*arguments*/) {
  return 1;
}

struct Close {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
  void operator()(TIFFOpenOptions* options) const { TIFFOpenOptionsFree(options); }
};
using File = std::unique_ptr<TIFF, Close>;

File open(Source& source) {
  const std::unique_ptr<TIFFOpenOptions, Close> options(TIFFOpenOptionsAlloc());
  if (options == nullptr) return nullptr;
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), on_error, &source);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), on_warning, &source);
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), tmsize_t{4} * kMaxPixels);
  return File(TIFFClientOpenExt("picture", "rm", &source, read_bytes, write_bytes, seek, close,
                                size_of_file, nullptr, nullptr, options.get()));
}

// The colours as they stand in the file: not multiplied by their transparency, not turned.
void ignore_alpha_and_orientation(TIFF* tiff) {
  std::uint16_t count = 0;
  std::uint16_t* kinds = nullptr;
  if (TIFFGetField(tiff, TIFFTAG_EXTRASAMPLES, &count, &kinds) == 1 && count > 0) {
    const std::vector<std::uint16_t> unspecified(count, EXTRASAMPLE_UNSPECIFIED);
    TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, count, unspecified.data());
  }
  TIFFSetField(tiff, TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT);
}

tl::unexpected<Error> failure(const Source& source) {
  return damaged(source.problem[0] != '\0' ? source.problem : "the file is damaged");
}

bool recognizes(Bytes bytes) {
  using std::string_view_literals::operator""sv;
  return begins_with(bytes, "II*\0"sv) || begins_with(bytes, "MM\0*"sv) ||
         begins_with(bytes, "II+\0"sv) || begins_with(bytes, "MM\0+"sv);
}

Result<Tensor> decode_tiff(Bytes bytes) {
  Source source{bytes};
  const File tiff = open(source);
  if (tiff == nullptr) return failure(source);
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  if (TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &width) != 1 ||
      TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &height) != 1)
    return damaged("the size of the picture is missing");
  TESSERA_ASSIGN(Tensor picture, new_picture(height, width));
  ignore_alpha_and_orientation(tiff.get());
  std::vector<std::uint32_t> raster(std::size_t{height} * width);
  if (TIFFReadRGBAImageOriented(tiff.get(), width, height, raster.data(), ORIENTATION_TOPLEFT, 1) !=
      1)
    return failure(source);
  std::uint8_t* to = pixels_of(picture);
  for (const std::uint32_t pixel : raster) {
    *to++ = static_cast<std::uint8_t>(TIFFGetR(pixel));
    *to++ = static_cast<std::uint8_t>(TIFFGetG(pixel));
    *to++ = static_cast<std::uint8_t>(TIFFGetB(pixel));
  }
  return picture;
}

}  // namespace

const Format kTiff = {"TIFF", recognizes, decode_tiff};

}  // namespace tessera::ops::image
