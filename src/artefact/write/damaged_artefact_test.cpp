// Files that are not what the writer wrote: each is refused by a message, or means what it meant.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "artefact/read/file_format.h"
#include "artefact/read/reader.h"
#include "artefact/write/rich_program_test.h"
#include "artefact/write/writer.h"
#include "testing/random.h"
#include "testing/temp_dir.h"

namespace tessera::artefact {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::ProgramBuilder;
using testing::TempDir;

const std::string& sound_bytes() {
  static const std::string bytes = *serialize_program(rich_program().image);
  return bytes;
}

FileHeader header_of(const std::string& bytes) {
  FileHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  return header;
}

std::string with_header(std::string bytes, const FileHeader& header) {
  std::memcpy(bytes.data(), &header, sizeof(header));
  return bytes;
}

// With the hash and the size that the bytes now have: damage that the header does not notice.
std::string resealed(const std::string& bytes) {
  FileHeader header = header_of(bytes);
  const ContentHash hash = hash_bytes(bytes.data() + header.metadata_offset, header.metadata_size);
  header.metadata_hash_high = hash.high;
  header.metadata_hash_low = hash.low;
  header.file_size = bytes.size();
  return with_header(bytes, header);
}

// What reading says, without the path; "" where the file is read.
std::string error_of(const std::string& bytes, const ReadOptions& options = {}) {
  static const TempDir folder;
  const auto path = folder.write("m.tsr", bytes);
  const auto program = read_program(path, options);
  if (program) return "";
  const std::string text = program.error().to_string();
  const std::string prefix = path.string() + ": ";
  EXPECT_TRUE(text.starts_with(prefix)) << text;
  return text.substr(std::min(prefix.size(), text.size()));
}

constexpr const char* kForeign =
    "not a tessera artefact: expected a file that starts with 'TESSERA'";

TEST(DamagedArtefact, NotAnArtefact) {
  EXPECT_EQ(error_of(sound_bytes()), "");
  EXPECT_EQ(error_of(""), kForeign);
  EXPECT_EQ(error_of("TESSERA\n"), kForeign);
  EXPECT_EQ(error_of(std::string(500, 'x')), kForeign);
  EXPECT_EQ(read_program("/no/such/file.tsr").error().to_string(),
            "cannot open '/no/such/file.tsr': No such file or directory");
}

TEST(DamagedArtefact, AnotherFormatVersion) {
  FileHeader header = header_of(sound_bytes());
  header.format_version = 7;
  EXPECT_EQ(error_of(with_header(sound_bytes(), header)),
            "artefact format version 7; this build reads version 1: compile the model again");
}

TEST(DamagedArtefact, TruncatedAnywhere) {
  const std::string& bytes = sound_bytes();
  std::vector<std::size_t> sizes = {1, 55, 56, bytes.size() - 1};
  for (std::size_t size = 0; size < bytes.size(); size += 64) sizes.push_back(size);
  for (const std::size_t size : sizes) {
    const std::string expected =
        size < sizeof(FileHeader) ? kForeign
                                  : "damaged artefact: expected " + std::to_string(bytes.size()) +
                                        " bytes, found " + std::to_string(size);
    ASSERT_EQ(error_of(bytes.substr(0, size)), expected);
  }
  EXPECT_EQ(error_of(bytes + "x"), "damaged artefact: expected " + std::to_string(bytes.size()) +
                                       " bytes, found " + std::to_string(bytes.size() + 1));
}

// The reserved field and the padding carry no meaning; every other bit in front of the segments is
// noticed.
TEST(DamagedArtefact, EveryFlippedBitOfTheFrontIsNoticed) {
  const FileHeader header = header_of(sound_bytes());
  const std::size_t metadata_end = header.metadata_offset + header.metadata_size;
  testing::Random random(1);
  for (std::size_t byte = 0; byte < metadata_end;
       byte += byte < 64 ? 1 : static_cast<std::size_t>(random.integer(1, 60))) {
    const bool meaningless =
        (byte >= offsetof(FileHeader, reserved) && byte < offsetof(FileHeader, file_size)) ||
        (byte >= sizeof(FileHeader) && byte < header.metadata_offset);
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = sound_bytes();
      bytes[byte] = static_cast<char>(bytes[byte] ^ (1 << bit));
      const std::string error = error_of(bytes);
      if (meaningless) {
        ASSERT_EQ(error, "") << byte;
      } else {
        ASSERT_THAT(error, HasSubstr("artefact")) << byte << " " << bit;
      }
      if (byte >= header.metadata_offset) {
        ASSERT_EQ(error, "damaged artefact: the metadata does not match its hash");
        break;
      }
    }
  }
}

TEST(DamagedArtefact, PartsOutsideOfTheFile) {
  const std::string& bytes = sound_bytes();
  FileHeader header = header_of(bytes);
  const std::size_t metadata_end = header.metadata_offset + header.metadata_size;
  header.metadata_size = UINT64_MAX - 8;
  EXPECT_EQ(error_of(with_header(bytes, header)),
            "damaged artefact: the metadata lies outside of the file");
  header = header_of(bytes);
  header.metadata_offset = bytes.size() + 1;
  EXPECT_EQ(error_of(with_header(bytes, header)),
            "damaged artefact: the metadata lies outside of the file");
  const std::size_t last = rich_program().image.segments.size() - 1;
  EXPECT_EQ(error_of(resealed(bytes.substr(0, bytes.size() - 64))),
            "damaged artefact: segment " + std::to_string(last) + " lies outside of the file");
  const std::size_t front = (metadata_end + 63) / 64 * 64;
  EXPECT_EQ(error_of(resealed(bytes.substr(0, front))),
            "damaged artefact: segment 0 lies outside of the file");
  if (metadata_end < front) {
    EXPECT_EQ(error_of(resealed(bytes.substr(0, metadata_end))),
              "damaged artefact: the segments lie outside of the file");
  }
}

TEST(DamagedArtefact, MetadataThatIsNoProgram) {
  std::string bytes = sound_bytes();
  const FileHeader header = header_of(bytes);
  std::memset(bytes.data() + header.metadata_offset, 0xff, 64);
  EXPECT_EQ(error_of(resealed(bytes)), "damaged artefact: the metadata is not a program");
}

TEST(DamagedArtefact, DamagedSegments) {
  std::string bytes = sound_bytes();
  const FileHeader header = header_of(bytes);
  const std::size_t front = (header.metadata_offset + header.metadata_size + 63) / 64 * 64;
  bytes[front] = static_cast<char>(bytes[front] ^ 1);
  EXPECT_EQ(error_of(bytes), "") << "segments are hashed on request only";
  EXPECT_EQ(error_of(bytes, {.verify_segments = true}),
            "damaged artefact: segment 0: its bytes do not match their hash " +
                rich_program().image.segments[0].hash.to_string());
}

// Numbers that the writer passes on and no reader knows.
TEST(DamagedArtefact, UnknownNumbers) {
  const auto error_after = [](auto change) {
    ProgramBuilder program = rich_program();
    change(program);
    const auto bytes = serialize_program(program.image);
    return bytes ? error_of(*bytes) : bytes.error().to_string();
  };
  EXPECT_EQ(error_after([](auto& p) {
              p.buffer(p.temporary("t", {1})).tensor.dtype = static_cast<DType>(200);
            }),
            "damaged artefact: dtype 200: expected below 29");
  EXPECT_EQ(error_after(
                [](auto& p) { p.buffer(p.temporary("t", {1})).kind = static_cast<BufferKind>(9); }),
            "damaged artefact: buffer kind 9");
  EXPECT_EQ(error_after([](auto& p) { p.add(static_cast<Opcode>(77), {}, {}); }),
            "damaged artefact: opcode 77");
}

// Replaces the one occurrence of `from` in the metadata.
std::string patched(std::string bytes, std::string_view from, std::string_view to) {
  const auto at = bytes.find(from);
  EXPECT_NE(at, std::string::npos);
  EXPECT_EQ(bytes.find(from, at + 1), std::string::npos);
  return resealed(bytes.replace(at, from.size(), to));
}

std::string_view bytes_of_number(const std::int64_t& number) {
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

TEST(DamagedArtefact, TensorsOfAnotherSize) {
  const std::int64_t size = 12345;
  const std::int64_t other = 12346;
  EXPECT_EQ(error_of(patched(sound_bytes(), bytes_of_number(size), bytes_of_number(other))),
            "damaged artefact: a tensor 12346: expected 12346 bytes, found 12345");
  const std::int64_t negative = -1;
  EXPECT_EQ(error_of(patched(sound_bytes(), bytes_of_number(size), bytes_of_number(negative))),
            "dim 0 of [-1] is negative; expected at least 0");
}

TEST(DamagedArtefact, TextsThatDoNotParse) {
  EXPECT_EQ(error_of(patched(sound_bytes(), "16*n + 64", "16*n + +4")).find("damaged"),
            std::string::npos);
  EXPECT_NE(error_of(patched(sound_bytes(), "16*n + 64", "16*n + +4")), "");
  EXPECT_NE(error_of(patched(sound_bytes(), "seq(fp16", "seq(fp17")), "");
}

TEST(DamagedArtefact, RandomDamageNeverCrashes) {
  const std::string& bytes = sound_bytes();
  const FileHeader header = header_of(bytes);
  int refused = 0;
  for (const std::uint64_t seed : testing::seeds(2000)) {
    SCOPED_TRACE(testing::seed_text(seed));
    testing::Random random(seed);
    std::string damaged = bytes;
    const auto changes = random.integer(1, 4);
    for (std::int64_t i = 0; i < changes; ++i) {
      // The long attribute tensor is most of the metadata: half of the changes fall on the tables
      // behind or in front of it.
      const auto at =
          header.metadata_offset +
          random.index(random.chance(0.5) ? header.metadata_size
                                          : std::min<std::size_t>(header.metadata_size, 4000));
      if (random.chance(0.5))
        damaged[at] = static_cast<char>(random.bits());
      else
        damaged[at] = random.chance(0.5) ? '\0' : '\xff';
    }
    refused += error_of(resealed(damaged)).empty() ? 0 : 1;
  }
  if (testing::seeds(2).size() == 2) {
    EXPECT_GT(refused, 200);
  }
}

}  // namespace
}  // namespace tessera::artefact
