// PNG, through libpng. Its errors are long jumps: the functions that they leave hold no object with
// a destructor, and what they need stands in a Reading outside of them.

#include <png.h>

#include <csetjmp>
#include <cstring>
#include <memory>
#include <vector>

#include "ops/image/image.h"

namespace tessera::ops::image {
namespace {

constexpr png_alloc_size_t kMaxChunkBytes = 8U << 20;  // of what is no pixel: text, profiles
constexpr png_uint_32 kMaxChunks = 1000;

struct Reading {
  png_structp png = nullptr;
  png_infop info = nullptr;
  Bytes bytes;
  std::size_t at = 0;
  char problem[200] = "";
  png_uint_32 height = 0, width = 0;

  explicit Reading(Bytes data) : bytes(data) {}
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  ~Reading() { png_destroy_read_struct(&png, &info, nullptr); }
};

void on_error(png_structp png, png_const_charp message) {
  auto& reading = *static_cast<Reading*>(png_get_error_ptr(png));
  if (reading.problem[0] == '\0')
    std::strncpy(reading.problem, message, sizeof reading.problem - 1);
  png_longjmp(png, 1);
}

void on_warning(png_structp /*png*/, png_const_charp /*message*/) {}

void read_bytes(png_structp png, png_bytep to, std::size_t count) {
  auto& reading = *static_cast<Reading*>(png_get_io_ptr(png));
  if (count > reading.bytes.size() - reading.at)
    png_error(png, "the data end before the picture does");
  std::memcpy(to, reading.bytes.data() + reading.at, count);
  reading.at += count;
}

bool open(Reading& reading) {
  reading.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reading, on_error, on_warning);
  if (reading.png == nullptr) return false;
  reading.info = png_create_info_struct(reading.png);
  if (reading.info == nullptr) return false;
  png_set_read_fn(reading.png, &reading, read_bytes);
  return true;
}

// The header, and what turns every kind of pixel into red, green and blue of 8 bits.
bool read_header(Reading& reading) {
  const png_structp png = reading.png;
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // check_size() has the limit
  png_set_chunk_malloc_max(png, kMaxChunkBytes);
  png_set_chunk_cache_max(png, kMaxChunks);
  png_read_info(png, reading.info);
  reading.width = png_get_image_width(png, reading.info);
  reading.height = png_get_image_height(png, reading.info);
  png_set_expand(png);
  png_set_scale_16(png);
  png_set_strip_alpha(png);
  png_set_gray_to_rgb(png);
  png_set_interlace_handling(png);
  return true;
}

bool read_rows(Reading& reading, png_bytepp rows) {
  const png_structp png = reading.png;
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_read_update_info(png, reading.info);
  if (png_get_rowbytes(png, reading.info) != std::size_t{3} * reading.width)
    png_error(png, "the rows are not of three bytes a pixel");
  png_read_image(png, rows);
  png_read_end(png, nullptr);
  return true;
}

bool recognizes(Bytes bytes) {
  return begins_with(bytes, "\x89PNG\r\n\x1A\n");
}

Result<Tensor> decode_png(Bytes bytes) {
  Reading reading(bytes);
  if (!open(reading)) return fail(ErrorCode::kResourceExhausted, "out of memory");
  if (!read_header(reading)) return damaged(reading.problem);
  TESSERA_ASSIGN(Tensor picture, new_picture(reading.height, reading.width));
  std::vector<png_bytep> rows(reading.height);
  for (std::size_t y = 0; y < rows.size(); ++y)
    rows[y] = pixels_of(picture) + y * 3 * reading.width;
  if (!read_rows(reading, rows.data())) return damaged(reading.problem);
  return picture;
}

}  // namespace

const Format kPng = {"PNG", recognizes, decode_png};

}  // namespace tessera::ops::image
