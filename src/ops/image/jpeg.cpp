// JPEG, through libjpeg-turbo with its defaults: exact integer transform, smooth upsampling. Its
// errors are long jumps: the functions that they leave hold no object with a destructor, and what
// they need stands in a Reading outside of them.

#include <csetjmp>
#include <cstdio>  // before jpeglib.h, which does not include it
#include <vector>

#include <jpeglib.h>

#include <jerror.h>  // behind jpeglib.h, whose settings number its codes

#include "ops/image/image.h"

namespace tessera::ops::image {
namespace {

constexpr int kMaxScans = 500;  // of a progressive file: each goes over the whole picture

struct Reading {
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf escape{};
  char problem[JMSG_LENGTH_MAX] = "";
  bool is_made = false;

  Reading() = default;
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  ~Reading() {
    if (is_made) jpeg_destroy_decompress(&jpeg);
  }
};

[[noreturn]] void on_error(j_common_ptr jpeg) {
  auto& reading = *static_cast<Reading*>(jpeg->client_data);
  jpeg->err->format_message(jpeg, reading.problem);
  std::longjmp(reading.escape, 1);
}

// The library goes on after warnings, with pixels of its own making: some of them say that data are
// missing or damaged.
void on_message(j_common_ptr jpeg, int level) {
  if (level >= 0) return;
  switch (jpeg->err->msg_code) {
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_MUST_RESYNC:
    case JWRN_NOT_SEQUENTIAL: on_error(jpeg);
    default: return;
  }
}

void print_nothing(j_common_ptr /*jpeg*/) {}

void on_progress(j_common_ptr jpeg) {
  if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number <= kMaxScans) return;
  auto& reading = *static_cast<Reading*>(jpeg->client_data);
  std::snprintf(reading.problem, sizeof reading.problem, "expected at most %d scans, found more",
                kMaxScans);
  std::longjmp(reading.escape, 1);
}

bool read_header(Reading& reading, const std::uint8_t* data, std::size_t size) {
  jpeg_decompress_struct& jpeg = reading.jpeg;
  jpeg.err = jpeg_std_error(&reading.errors);
  jpeg.err->error_exit = on_error;
  jpeg.err->emit_message = on_message;
  jpeg.err->output_message = print_nothing;
  jpeg.client_data = &reading;
  if (setjmp(reading.escape) != 0) return false;
  jpeg_create_decompress(&jpeg);
  reading.is_made = true;
  reading.progress.progress_monitor = on_progress;
  jpeg.progress = &reading.progress;
  jpeg_mem_src(&jpeg, data, size);
  jpeg_read_header(&jpeg, TRUE);
  const bool is_cmyk = jpeg.jpeg_color_space == JCS_CMYK || jpeg.jpeg_color_space == JCS_YCCK;
  jpeg.out_color_space = is_cmyk ? JCS_CMYK : JCS_RGB;
  return true;
}

// Rows of 3 samples a pixel, or 4 where the file has four colours.
bool read_rows(Reading& reading, std::uint8_t* to) {
  jpeg_decompress_struct& jpeg = reading.jpeg;
  if (setjmp(reading.escape) != 0) return false;
  jpeg_start_decompress(&jpeg);
  const std::size_t row_bytes =
      std::size_t{jpeg.output_width} * static_cast<std::size_t>(jpeg.output_components);
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = to + jpeg.output_scanline * row_bytes;
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  return true;
}

// Cyan, magenta, yellow and black; files with Adobe's marker hold them inverted.
void to_rgb(const std::vector<std::uint8_t>& inks, bool is_inverted, std::uint8_t* to) {
  for (std::size_t i = 0; i < inks.size(); i += 4, to += 3) {
    const auto light = [&](std::size_t c) -> int {
      return is_inverted ? inks[i + c] : 255 - inks[i + c];
    };
    for (std::size_t c = 0; c < 3; ++c)
      to[c] = static_cast<std::uint8_t>((light(c) * light(3) + 127) / 255);
  }
}

bool recognizes(Bytes bytes) {
  return begins_with(bytes, "\xFF\xD8\xFF");
}

Result<Tensor> decode_jpeg(Bytes bytes) {
  Reading reading;
  if (!read_header(reading, bytes.data(), bytes.size())) return damaged(reading.problem);
  const jpeg_decompress_struct& jpeg = reading.jpeg;
  TESSERA_ASSIGN(Tensor picture, new_picture(jpeg.image_height, jpeg.image_width));
  if (jpeg.out_color_space == JCS_RGB) {
    if (!read_rows(reading, pixels_of(picture))) return damaged(reading.problem);
    return picture;
  }
  std::vector<std::uint8_t> inks(std::size_t{4} * jpeg.image_height * jpeg.image_width);
  if (!read_rows(reading, inks.data())) return damaged(reading.problem);
  to_rgb(inks, jpeg.saw_Adobe_marker != FALSE, pixels_of(picture));
  return picture;
}

}  // namespace

const Format kJpeg = {"JPEG", recognizes, decode_jpeg};

}  // namespace tessera::ops::image
