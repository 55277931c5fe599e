#include "io/npz.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "io/npy.h"
#include "testing/random.h"
#include "testing/temp_dir.h"

namespace tessera::io {
namespace {

using std::string_literals::operator""s;
using tessera::testing::TempDir;

std::string from_hex(std::string_view hex) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1]));
  }
  return bytes;
}

// numpy.savez_compressed(x=numpy.arange(6, dtype="<f4").reshape(2, 3), **{"naïve/名":
// numpy.array([True, False])})
constexpr std::string_view kCompressed =
    "504b03042d0000000800000021004fe9002affffffffffffffff05001400782e6e707901001000980000000000"
    "000055000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9366a2aea3a09e965f54529498"
    "179f5f94920a12774bcc294e058a17672416a402f91a463a0ac69a3a0ab50a64032e063068b007120e4004c40d"
    "40bcc00100504b03042d000008080000002100ee19bb5dffffffffffffffff0e0014006e61c3af76652fe5908d"
    "2e6e707901001000820000000000000046000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a0"
    "5e9364a8aea3a09e965f54529498179f5f94920a12774bcc294e058a17672416a402f91a463a9a3a0ab50a1400"
    "2e460600504b01022d032d0000000800000021004fe9002a550000009800000005000000000000000000000080"
    "0100000000782e6e7079504b01022d032d000008080000002100ee19bb5d46000000820000000e000000000000"
    "000000000080018c0000006e61c3af76652fe5908d2e6e7079504b050600000000020002006f00000012010000"
    "0000";

// numpy.savez(a=numpy.array([1, 2], dtype="<i8"))
constexpr std::string_view kStored =
    "504b03042d0000000000000021000cfc1ce9ffffffffffffffff05001400612e6e707901001000900000000000"
    "00009000000000000000934e554d5059010076007b276465736372273a20273c6938272c2027666f727472616e"
    "5f6f72646572273a2046616c73652c20277368617065273a2028322c292c207d20202020202020202020202020"
    "202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020"
    "20200a01000000000000000200000000000000504b01022d032d0000000000000021000cfc1ce9900000009000"
    "0000050000000000000000000000800100000000612e6e7079504b0506000000000100010033000000c7000000"
    "0000";

template <typename T>
Tensor tensor_of(DType dtype, Dims dims, const std::vector<T>& values) {
  return Tensor::of<T>(dtype, std::move(dims), values);
}

// The error of reading `bytes`, without the path of the file.
std::string error_of(const TempDir& dir, const std::string& bytes) {
  const auto path = dir.write("bad.npz", bytes);
  const auto tensors = read_npz(path);
  if (tensors) return "no error";
  const std::string text = tensors.error().to_string();
  const std::string place = path.string() + ": ";
  return text.starts_with(place) ? text.substr(place.size()) : "no path in: " + text;
}

TEST(NpzTest, ReadsWhatNumpyWrites) {
  const TempDir dir;
  const auto compressed = read_npz(dir.write("a.npz", from_hex(kCompressed)));
  ASSERT_TRUE(compressed.has_value()) << compressed.error().to_string();
  ASSERT_EQ(compressed->size(), 2U);
  EXPECT_EQ((*compressed)[0].first, "x");
  EXPECT_TRUE(
      (*compressed)[0].second.equals(tensor_of<float>(DType::kFp32, {2, 3}, {0, 1, 2, 3, 4, 5})));
  EXPECT_EQ((*compressed)[1].first, "na\xC3\xAFve/\xE5\x90\x8D");
  EXPECT_TRUE((*compressed)[1].second.equals(tensor_of<std::uint8_t>(DType::kBool, {2}, {1, 0})));
  const auto stored = read_npz(dir.write("b.npz", from_hex(kStored)));
  ASSERT_TRUE(stored.has_value()) << stored.error().to_string();
  ASSERT_EQ(stored->size(), 1U);
  EXPECT_TRUE((*stored)[0].second.equals(tensor_of<std::int64_t>(DType::kInt64, {2}, {1, 2})));
}

NamedTensors some_tensors() {
  std::vector<float> ramp(70000);
  for (std::size_t i = 0; i < ramp.size(); ++i) ramp[i] = static_cast<float>(i % 100);
  return {
      {"b/weights:0", tensor_of<float>(DType::kFp32, {70000}, ramp)},
      {"a", tensor_of<std::int64_t>(DType::kInt64, {}, {7})},
      {"", tensor_of<std::uint8_t>(DType::kUInt8, {0, 3}, {})},
      {"h\xC3\xB6he \"'\\\n", tensor_of<std::string>(DType::kString, {2}, {"x", "\xE5\x90\x8D"})}};
}

TEST(NpzTest, RoundTripsStoredAndDeflated) {
  const TempDir dir;
  const NamedTensors tensors = some_tensors();
  for (const ZipMethod method : {ZipMethod::kStored, ZipMethod::kDeflated}) {
    const auto path = dir / "a.npz";
    ASSERT_TRUE(write_npz(path, tensors, method).has_value());
    const auto back = read_npz(path);
    ASSERT_TRUE(back.has_value()) << back.error().to_string();
    ASSERT_EQ(back->size(), tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      EXPECT_EQ((*back)[i].first, tensors[i].first);
      EXPECT_TRUE((*back)[i].second.equals(tensors[i].second)) << tensors[i].first;
    }
    EXPECT_LT(std::filesystem::file_size(path), method == ZipMethod::kDeflated ? 20000U : 300000U);
  }
  ASSERT_TRUE(write_npz(dir / "empty.npz", {}).has_value());
  EXPECT_TRUE(read_npz(dir / "empty.npz")->empty());
}

TEST(NpzTest, EqualTensorsGiveEqualBytes) {
  const TempDir dir;
  for (const ZipMethod method : {ZipMethod::kStored, ZipMethod::kDeflated}) {
    ASSERT_TRUE(write_npz(dir / "a.npz", some_tensors(), method).has_value());
    ASSERT_TRUE(write_npz(dir / "b.npz", some_tensors(), method).has_value());
    EXPECT_EQ(testing::read_bytes(dir / "a.npz"), testing::read_bytes(dir / "b.npz"));
  }
}

TEST(NpzTest, MoreThan65535MembersUseZip64) {
  const TempDir dir;
  NamedTensors tensors;
  const Tensor one = tensor_of<std::uint8_t>(DType::kUInt8, {1}, {1});
  for (int i = 0; i < 65536; ++i) tensors.emplace_back(std::to_string(i), one);
  ASSERT_TRUE(write_npz(dir / "a.npz", tensors).has_value());
  const auto back = read_npz(dir / "a.npz");
  ASSERT_TRUE(back.has_value()) << back.error().to_string();
  EXPECT_EQ(back->size(), 65536U);
  EXPECT_EQ(back->back().first, "65535");
}

TEST(NpzTest, WritingErrors) {
  const TempDir dir;
  const Tensor one = tensor_of<float>(DType::kFp32, {1}, {1});
  const auto error = [&](const NamedTensors& tensors) {
    return write_npz(dir / "a.npz", tensors).error().to_string();
  };
  EXPECT_EQ(error({{"a", one}, {"a", one}}), "array 'a': member 'a.npy' stands twice");
  EXPECT_EQ(error({{"a\0b"s, one}}),
            "array 'a\\x00b': expected a member name of UTF-8 without NUL, found 'a\\x00b.npy'");
  EXPECT_EQ(error({{"\xFF", one}}),
            "array '\\xff': expected a member name of UTF-8 without NUL, found '\\xff.npy'");
  const std::string name(70000, 'x');
  EXPECT_THAT(
      error({{name, one}}),
      ::testing::EndsWith("xxx': expected a member name of at most 65535 bytes, found 70004"));
  EXPECT_EQ(error({{"s", tensor_of<std::string>(DType::kString, {1}, {"\xFF"})}}),
            "array 's': string 0 is not UTF-8");
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

// `bytes` with the little endian number of `width` bytes at `offset` replaced.
std::string with_number(std::string bytes, std::size_t offset, std::uint64_t number,
                        std::size_t width) {
  for (std::size_t i = 0; i < width; ++i) {
    bytes[offset + i] = static_cast<char>((number >> (8 * i)) & 0xFF);
  }
  return bytes;
}

TEST(NpzTest, DamagedArchives) {
  const TempDir dir;
  const std::string good = from_hex(kStored);
  const std::size_t entry = good.find("PK\1\2");
  const std::size_t end = good.find("PK\5\6");
  EXPECT_EQ(error_of(dir, ""), "expected a zip archive, found no directory at its end");
  EXPECT_EQ(error_of(dir, good.substr(0, good.size() - 1)),
            "expected a zip archive, found no directory at its end");
  EXPECT_EQ(error_of(dir, with_number(good, good.find("\1\0\0\0\0\0\0\0\2"s), 9, 1)),
            "array 'a': damaged zip archive: the CRC-32 of member 'a.npy' differs");
  EXPECT_EQ(error_of(dir, with_number(good, entry + 8, 1, 2)), "member 'a.npy' is encrypted");
  EXPECT_EQ(error_of(dir, with_number(good, entry + 10, 12, 2)),
            "member 'a.npy' is packed by method 12; expected 0 (stored) or 8 (deflated)");
  EXPECT_EQ(error_of(dir, with_number(good, entry + 24, 145, 4)),
            "damaged zip archive: member 'a.npy' claims 145 bytes from 144");
  EXPECT_EQ(error_of(dir, with_number(good, entry + 24, 0xFFFFFFFF, 4)),
            "damaged zip archive: a member lacks its zip64 sizes");
  EXPECT_EQ(error_of(dir, with_number(good, entry + 42, 7, 4)),
            "damaged zip archive: member 'a.npy' has no local header");
  EXPECT_EQ(error_of(dir, with_number(good, 26, 60000, 2)),
            "damaged zip archive: member 'a.npy' reaches past the end of the file");
  EXPECT_EQ(error_of(dir, with_number(good, end + 16, 4000, 4)),
            "damaged zip archive: the directory lies outside of the file");
  EXPECT_EQ(error_of(dir, with_number(good, end + 10, 2, 2)),
            "damaged zip archive: the directory is too short for 2 members");
  EXPECT_EQ(error_of(dir, with_number(good, entry, 0, 4)),
            "damaged zip archive: an entry of the directory is cut off");
  EXPECT_EQ(error_of(dir, with_number(good, entry + 28, 6, 2)),
            "damaged zip archive: an entry of the directory is cut off");
  EXPECT_EQ(error_of(dir, with_number(good, end + 4, 3, 2)),
            "zip archives of several volumes are not read");
  EXPECT_EQ(error_of(dir, with_number(good, end + 10, 0xFFFF, 2)),
            "damaged zip archive: the zip64 locator is missing");
  std::string other_name = good;
  other_name.replace(entry + 46, 5, "a.txt");
  EXPECT_EQ(error_of(dir, other_name), "expected members named *.npy, found 'a.txt'");
}

TEST(NpzTest, DamagedDeflatedData) {
  const TempDir dir;
  const std::string good = from_hex(kCompressed);
  const std::size_t entry = good.find("PK\1\2");
  EXPECT_EQ(error_of(dir, with_number(good, 55, 0xFFFFFF, 3)),
            "array 'x': damaged zip archive: the deflated data of member 'x.npy' is invalid");
  EXPECT_EQ(error_of(dir, with_number(good, entry + 24, 151, 4)),
            "array 'x': expected 24 bytes for '<f4' of shape 2x3, found 23");
  EXPECT_EQ(error_of(dir, with_number(good, entry + 24, 1U << 31, 4)),
            "damaged zip archive: member 'x.npy' claims 2147483648 bytes from 85");
}

TEST(NpzTest, MembersThatOverlapAreRefused) {
  const TempDir dir;
  // A second entry for the data of the first, under another name.
  std::string bytes = from_hex(kStored);
  const std::size_t entry = bytes.find("PK\1\2");
  std::string second = bytes.substr(entry, 51);
  second.replace(46, 1, "b");
  bytes.insert(entry + 51, second);
  const std::size_t end = bytes.find("PK\5\6");
  bytes =
      with_number(with_number(with_number(bytes, end + 8, 2, 2), end + 10, 2, 2), end + 12, 102, 4);
  EXPECT_EQ(error_of(dir, bytes), "damaged zip archive: members 'a.npy' and 'b.npy' overlap");
  bytes.replace(entry + 51 + 46, 1, "a");
  EXPECT_EQ(error_of(dir, bytes), "damaged zip archive: member 'a.npy' stands twice");
}

// An archive whose zip sizes agree, while the array's header asks for far more.
TEST(NpzTest, SizesAreTrustedOnlyWhereTheHeaderAgrees) {
  const TempDir dir;
  auto archive = ZipWriter::create(dir / "bad.npz");
  const std::string header = to_npy(tensor_of<float>(DType::kFp32, {1}, {1}))->header;
  const std::string zeros(100000, '\0');
  const std::span<const char> parts[] = {header, zeros};
  ASSERT_TRUE(
      archive
          ->add("a.npy", {std::as_bytes(parts[0]), std::as_bytes(parts[1])}, ZipMethod::kDeflated)
          .has_value());
  ASSERT_TRUE(archive->finish().has_value());
  EXPECT_EQ(error_of(dir, testing::read_bytes(dir / "bad.npz")),
            "array 'a': expected 4 bytes for '<f4' of shape 1, found 100000");
}

TEST(NpzPropertyTest, DamagedFilesNeverReadAsOtherTensors) {
  const TempDir dir;
  const NamedTensors good_tensors = *read_npz(dir.write("good.npz", from_hex(kCompressed)));
  for (const std::uint64_t seed : testing::seeds(500)) {
    SCOPED_TRACE(testing::seed_text(seed));
    testing::Random random(seed);
    std::string bytes = from_hex(random.chance(0.5) ? kCompressed : kStored);
    if (random.chance(0.2)) bytes.resize(random.index(bytes.size()));
    for (std::int64_t i = random.integer(1, 3); i > 0 && !bytes.empty(); --i) {
      bytes[random.index(bytes.size())] = static_cast<char>(random.integer(0, 255));
    }
    const auto tensors = read_npz(dir.write("bad.npz", bytes));
    if (!tensors) continue;
    // The CRC covers every array, so what is read is whole.
    for (const auto& [name, tensor] : *tensors) {
      const bool known = tensor.dtype() == DType::kInt64 || tensor.equals(good_tensors[0].second) ||
                         tensor.equals(good_tensors[1].second);
      ASSERT_TRUE(known) << name;
    }
  }
}

}  // namespace
}  // namespace tessera::io
