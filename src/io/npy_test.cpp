#include "io/npy.h"

#include <gtest/gtest.h>

#include <array>
#include <complex>
#include <cstring>

#include "base/file.h"
#include "base/float_convert.h"
#include "io/npy_header.h"
#include "io/utf.h"
#include "testing/random.h"
#include "testing/temp_dir.h"

namespace tessera::io {
namespace {

using std::string_literals::operator""s;

// A version 1.0 file with that header text and those elements.
std::string npy_file(const std::string& dict, const std::string& elements) {
  std::string header = dict + "\n";
  std::string file = "\x93NUMPY\x01"s + "\0"s;
  file += static_cast<char>(header.size() & 0xFF);
  file += static_cast<char>(header.size() >> 8);
  return file + header + elements;
}

std::string dict_of(const std::string& descr, const std::string& shape, bool fortran = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") +
         ", 'shape': " + shape + ", }";
}

Result<Tensor> parse(const std::string& file) {
  auto owner = std::make_shared<const std::string>(file);
  const std::span<const char> bytes(*owner);
  return parse_npy(std::as_bytes(bytes), owner);
}

std::string error_of(const std::string& file) {
  const auto tensor = parse(file);
  return tensor ? "no error" : tensor.error().to_string();
}

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <typename T>
Tensor tensor_of(DType dtype, Dims dims, const std::vector<T>& values) {
  return Tensor::of<T>(dtype, std::move(dims), values);
}

TEST(NpyTest, ReadsEveryElementType) {
  const auto expect = [](const std::string& descr, DType dtype, const std::string& bytes) {
    const auto tensor = parse(npy_file(dict_of(descr, "(2,)"), bytes));
    ASSERT_TRUE(tensor.has_value()) << descr << ": " << tensor.error().to_string();
    EXPECT_EQ(tensor->dtype(), dtype);
    EXPECT_EQ(tensor->dims(), Dims{2});
    EXPECT_EQ(std::memcmp(tensor->data(), bytes.data(), bytes.size()), 0) << descr;
  };
  expect("|b1", DType::kBool, "\1\0"s);
  expect("|i1", DType::kInt8, "\1\xFF"s);
  expect("|u1", DType::kUInt8, "\1\xFF"s);
  expect("<i2", DType::kInt16, bytes_of<std::int16_t>({1, -2}));
  expect("<u2", DType::kUInt16, bytes_of<std::uint16_t>({1, 2}));
  expect("<i4", DType::kInt32, bytes_of<std::int32_t>({1, -2}));
  expect("<u4", DType::kUInt32, bytes_of<std::uint32_t>({1, 2}));
  expect("<i8", DType::kInt64, bytes_of<std::int64_t>({1, -2}));
  expect("<u8", DType::kUInt64, bytes_of<std::uint64_t>({1, 2}));
  expect("<f2", DType::kFp16, bytes_of<std::uint16_t>({0x3C00, 0x7BFF}));
  expect("<f4", DType::kFp32, bytes_of<float>({1, -2}));
  expect("<f8", DType::kFp64, bytes_of<double>({1, -2}));
  expect("<c8", DType::kComplex64, bytes_of<float>({1, -2, 3, 4}));
  expect("<c16", DType::kComplex128, bytes_of<double>({1, -2, 3, 4}));
}

TEST(NpyTest, BigEndianElementsAreSwapped) {
  const auto integers = parse(npy_file(dict_of(">i4", "(2,)"), "\0\0\0\1\xFF\xFF\xFF\xFE"s));
  ASSERT_TRUE(integers.has_value());
  EXPECT_TRUE(integers->equals(tensor_of<std::int32_t>(DType::kInt32, {2}, {1, -2})));
  const auto complex = parse(npy_file(dict_of(">c8", "(1,)"), "\x3F\x80\0\0\x40\0\0\0"s));
  ASSERT_TRUE(complex.has_value());
  EXPECT_TRUE(complex->equals(tensor_of<std::complex<float>>(DType::kComplex64, {1}, {{1, 2}})));
}

// What numpy.save writes for numpy.asfortranarray(numpy.arange(6, dtype=">i2").reshape(2, 3)).
TEST(NpyTest, FortranOrderBecomesRowMajor) {
  const auto tensor = parse(npy_file(dict_of(">i2", "(2, 3)", true), "\0\0\0\3\0\1\0\4\0\2\0\5"s));
  ASSERT_TRUE(tensor.has_value());
  EXPECT_TRUE(tensor->equals(tensor_of<std::int16_t>(DType::kInt16, {2, 3}, {0, 1, 2, 3, 4, 5})));
}

TEST(NpyTest, StringsBecomeUtf8) {
  const std::u32string codes = {U'a', U'b', U'é', 0x1F600};
  const auto file = npy_file(dict_of("<U2", "(2,)"),
                             {reinterpret_cast<const char*>(codes.data()), codes.size() * 4});
  const auto tensor = parse(file);
  ASSERT_TRUE(tensor.has_value()) << tensor.error().to_string();
  EXPECT_EQ(tensor->span<std::string>()[0], "ab");
  EXPECT_EQ(tensor->span<std::string>()[1], "\xC3\xA9\xF0\x9F\x98\x80");
  const auto bytes = parse(npy_file(dict_of("|S3", "(2,)"), "a\0\0bcd"s));
  ASSERT_TRUE(bytes.has_value());
  EXPECT_EQ(bytes->span<std::string>()[0], "a");
  EXPECT_EQ(bytes->span<std::string>()[1], "bcd");
  EXPECT_EQ(error_of(npy_file(dict_of("<U1", "(1,)"), "\0\xD8\0\0"s)),
            "element 0 holds a code that is no character");
}

TEST(NpyTest, SharesTheBytesOfItsOwner) {
  const auto text = *to_npy(tensor_of<float>(DType::kFp32, {2}, {1, 2}));
  auto owner = std::make_shared<const std::string>(text.header + bytes_of<float>({1, 2}));
  const std::span<const char> bytes(*owner);
  const auto tensor = parse_npy(std::as_bytes(bytes), owner);
  ASSERT_TRUE(tensor.has_value());
  EXPECT_EQ(tensor->data(), owner->data() + text.header.size());
}

TEST(NpyTest, AnyByteOfABoolIsTrue) {
  const auto tensor = parse(npy_file(dict_of("|b1", "(3,)"), "\0\2\1"s));
  ASSERT_TRUE(tensor.has_value());
  EXPECT_TRUE(tensor->equals(tensor_of<std::uint8_t>(DType::kBool, {3}, {0, 1, 1})));
}

TEST(NpyTest, HeaderSpellings) {
  const char* headers[] = {
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
      "{\"shape\":(2L,),\"fortran_order\":False,\"descr\":\"<f4\"}",
      "  { 'fortran_order' : False , 'descr' : '<f4' , 'shape' : ( 2 , ) , }   "};
  for (const char* header : headers) {
    const auto tensor = parse(npy_file(header, bytes_of<float>({1, 2})));
    ASSERT_TRUE(tensor.has_value()) << header << ": " << tensor.error().to_string();
    EXPECT_EQ(tensor->dims(), Dims{2});
  }
  EXPECT_EQ(parse(npy_file(dict_of("<f4", "()"), bytes_of<float>({1})))->dims(), Dims{});
  EXPECT_EQ(parse(npy_file(dict_of("<f4", "(0, 3)"), ""))->dims(), (Dims{0, 3}));
  for (const char version : {'\2', '\3'}) {
    const std::string dict = dict_of("<f4", "()") + "\n";
    std::string file = "\x93NUMPY"s + version + "\0"s + static_cast<char>(dict.size()) + "\0\0\0"s;
    EXPECT_TRUE(parse(file + dict + bytes_of<float>({1})).has_value());
  }
}

TEST(NpyTest, Errors) {
  EXPECT_EQ(error_of("PK\3\4"), "expected an npy file, which starts with \\x93NUMPY");
  EXPECT_EQ(error_of("\x93NUMPY"), "the npy header is cut off");
  EXPECT_EQ(error_of("\x93NUMPY\1\0\x40"s), "the npy header is cut off");
  EXPECT_EQ(error_of("\x93NUMPY\1\0\x40\0{"s), "the npy header is cut off");
  EXPECT_EQ(error_of("\x93NUMPY\4\0\0\0"s), "expected npy version 1.0, 2.0 or 3.0, found 4.0");
  EXPECT_EQ(error_of("\x93NUMPY\2\0\xFF\xFF\xFF\xFF"s),
            "expected an npy header of at most 1048576 bytes, found 4294967295");
  EXPECT_EQ(error_of(npy_file(dict_of("|O", "(1,)"), "x")), "pickled object arrays are not read");
  EXPECT_EQ(
      error_of(npy_file("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", "")),
      "structured arrays are not read");
  for (const char* descr : {"<f16", "<M8", "|V2", "<f", "", "<U0", "<i-4", "<f4x", "<q8"}) {
    EXPECT_EQ(error_of(npy_file(dict_of(descr, "(1,)"), "x")),
              "expected an element type such as '<f4', '|u1' or '<U8', found '" +
                  std::string(descr) + "'");
  }
  EXPECT_EQ(error_of(npy_file(dict_of("<f4", "(2, 3)"), "abc")),
            "expected 24 bytes for '<f4' of shape 2x3, found 3");
  EXPECT_EQ(error_of(npy_file(dict_of("<f4", "(1,)"), "abcdefgh")),
            "expected 4 bytes for '<f4' of shape 1, found 8");
  EXPECT_EQ(error_of(npy_file(dict_of("<f8", "(9223372036854775807,)"), "")),
            "expected more than 2^63 bytes for '<f8' of shape 9223372036854775807, found 0");
  EXPECT_EQ(error_of(npy_file(dict_of("<f8", "(4294967296, 4294967296)"), "")),
            "the number of elements of [4294967296, 4294967296] overflows 63 bits");
  EXPECT_EQ(error_of(npy_file(dict_of("<f8", "(-1,)"), "")),
            "expected a size in the npy header, found '-1,), }'");
  EXPECT_EQ(error_of(npy_file(dict_of("<f8", "(99999999999999999999,)"), "")),
            "expected a size in the npy header, found '99999999999999999999,), }'");
  EXPECT_EQ(error_of(npy_file("[]", "")), "expected '{' in the npy header, found '[]'");
  EXPECT_EQ(error_of(npy_file("{'descr': '<f4'", "")),
            "expected ',' or '}' in the npy header, found its end");
  EXPECT_EQ(error_of(npy_file("{'descr': '<f4}", "")),
            "expected a closing quote in the npy header, found ''<f4}'");
  EXPECT_EQ(error_of(npy_file("{'descr': '<f4'}", "")),
            "expected the keys 'descr', 'fortran_order' and 'shape' in the npy header");
  EXPECT_EQ(error_of(npy_file("{'x': 1}", "")), "unexpected or repeated key 'x' in the npy header");
  EXPECT_EQ(error_of(npy_file("{'descr': '<f4', 'descr': '<f4'}", "")),
            "unexpected or repeated key 'descr' in the npy header");
  EXPECT_EQ(error_of(npy_file("{'fortran_order': 1}", "")),
            "expected True or False in the npy header, found '1}'");
}

TEST(NpyTest, FileErrorsNameThePath) {
  const testing::TempDir dir;
  const auto path = dir.write("a.npy", "text");
  EXPECT_EQ(read_npy(path).error().to_string(),
            path.string() + ": expected an npy file, which starts with \\x93NUMPY");
  EXPECT_EQ(read_npy(dir / "b.npy").error().to_string(),
            "cannot open '" + (dir / "b.npy").string() + "': No such file or directory");
}

// Byte for byte what numpy.save(numpy.array([[1], [2]], "<f4")) writes.
TEST(NpyTest, WritesAsNumpyDoes) {
  const testing::TempDir dir;
  const auto path = dir / "a.npy";
  ASSERT_TRUE(write_npy(path, tensor_of<float>(DType::kFp32, {2, 1}, {1, 2})).has_value());
  const std::string expected =
      "\x93NUMPY\x01\0\x76\0{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }"s +
      std::string(58, ' ') + "\n\0\0\x80\x3F\0\0\0\x40"s;
  EXPECT_EQ(*read_file(path), expected);
  EXPECT_EQ(to_npy(tensor_of<float>(DType::kFp32, {}, {1}))->header.size() % 64, 0U);
  EXPECT_NE(print_npy_header("<f4", {3}).find("'shape': (3,), }"), std::string::npos);
  EXPECT_NE(print_npy_header("<f4", {}).find("'shape': (), }"), std::string::npos);
  const std::string wide = print_npy_header("<f4", Dims(40000, 1));
  EXPECT_EQ(wide[6], '\2');
  EXPECT_EQ(wide.size() % 64, 0U);
}

TEST(NpyTest, RoundTripsThroughAFile) {
  const testing::TempDir dir;
  const auto path = dir / "a.npy";
  testing::Random random(1);
  for (int code = 1; code < kDTypeCount; ++code) {
    const auto dtype = static_cast<DType>(code);
    if (dtype == DType::kString || dtype == DType::kBf16 || bits_of(dtype) < 8 ||
        (is_float(dtype) && bits_of(dtype) == 8)) {
      continue;
    }
    Tensor tensor = *Tensor::zeros(dtype, {3, 5});
    auto* bytes = static_cast<std::uint8_t*>(tensor.mutable_data());
    for (std::int64_t i = 0; i < tensor.nbytes(); ++i) {
      bytes[i] = static_cast<std::uint8_t>(random.integer(0, dtype == DType::kBool ? 1 : 255));
    }
    ASSERT_TRUE(write_npy(path, tensor).has_value());
    const auto back = read_npy(path);
    ASSERT_TRUE(back.has_value()) << back.error().to_string();
    EXPECT_TRUE(back->equals(tensor)) << to_string(dtype);
  }
  const auto strings =
      tensor_of<std::string>(DType::kString, {3}, {"", "h\xC3\xB6he", std::string("a\0b", 3)});
  ASSERT_TRUE(write_npy(path, strings).has_value());
  EXPECT_TRUE(read_npy(path)->equals(strings));
}

TEST(NpyTest, TypesThatNumpyLacksAreWrittenAsBits) {
  const testing::TempDir dir;
  const auto path = dir / "a.npy";
  ASSERT_TRUE(
      write_npy(path, tensor_of<std::uint16_t>(DType::kBf16, {2}, {0x3F80, 1})).has_value());
  EXPECT_TRUE(read_npy(path)->equals(tensor_of<std::uint16_t>(DType::kUInt16, {2}, {0x3F80, 1})));
  ASSERT_TRUE(write_npy(path, tensor_of<std::uint8_t>(DType::kFp8E5M2, {1}, {0x3C})).has_value());
  EXPECT_TRUE(read_npy(path)->equals(tensor_of<std::uint8_t>(DType::kUInt8, {1}, {0x3C})));
  ASSERT_TRUE(
      write_npy(path, tensor_of<std::uint8_t>(DType::kInt4, {3}, {0xF1, 0x02})).has_value());
  EXPECT_TRUE(read_npy(path)->equals(tensor_of<std::uint8_t>(DType::kUInt8, {3}, {1, 15, 2})));
}

TEST(NpyTest, StringsThatCannotBeWritten) {
  const testing::TempDir dir;
  const auto path = dir / "a.npy";
  const auto error = [&](const std::string& text) {
    return write_npy(path, tensor_of<std::string>(DType::kString, {1}, {text})).error().to_string();
  };
  EXPECT_EQ(error("\xFF"), path.string() + ": string 0 is not UTF-8");
  EXPECT_EQ(error("a\0"s), path.string() + ": string 0 ends in NUL, which an npy file cannot hold");
  EXPECT_FALSE(std::filesystem::exists(path));
}

// Damaged files: no crash and no endless loop; whatever still parses has the bytes it says.
TEST(NpyPropertyTest, DamagedFilesAreRefusedOrSound) {
  const std::string good =
      npy_file(dict_of("<f4", "(2, 3)", true), bytes_of<float>({1, 2, 3, 4, 5, 6}));
  ASSERT_TRUE(parse(good).has_value());
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(parse(good.substr(0, length)).has_value()) << length;
  }
  for (const std::uint64_t seed : testing::seeds(3000)) {
    SCOPED_TRACE(testing::seed_text(seed));
    testing::Random random(seed);
    std::string bad = good;
    for (std::int64_t i = random.integer(1, 4); i > 0; --i) {
      bad[random.index(bad.size())] = static_cast<char>(random.integer(0, 255));
    }
    const auto tensor = parse(bad);
    if (!tensor || tensor->dtype() == DType::kString) continue;
    ASSERT_LE(tensor->nbytes(), 24);
  }
}

TEST(UtfTest, RoundTripsAndRefusesInvalidText) {
  for (const char32_t code :
       {U'\1', U'\x7F', U'\x80', U'\x7FF', U'\x800', U'\xFFFD', U'\x10000', U'\x10FFFF'}) {
    const auto bytes = utf32_to_utf8({&code, 1});
    ASSERT_TRUE(bytes.has_value());
    EXPECT_EQ(utf8_to_utf32(*bytes), std::u32string(1, code));
  }
  for (const char* text : {"\x80", "\xC3", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80",
                           "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80", "\xC3\x28"}) {
    EXPECT_FALSE(utf8_to_utf32(text).has_value()) << text;
  }
  for (const char32_t code : {char32_t{0xD800}, char32_t{0xDFFF}, char32_t{0x110000}}) {
    EXPECT_FALSE(utf32_to_utf8({&code, 1}).has_value());
  }
}

}  // namespace
}  // namespace tessera::io
