// External data: where it may lie, and what its bytes must be.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "import/import.h"
#include "testing/import_model.h"
#include "testing/temp_dir.h"

namespace tessera::importer {
namespace {

namespace fs = std::filesystem;
using tessera::testing::bytes_of;
using tessera::testing::find_value;
using tessera::testing::kFloat;
using tessera::testing::OnnxModel;
using tessera::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Entries = std::vector<std::pair<std::string, std::string>>;

// y = x * w, where the four floats of w are external.
std::string model_bytes(const Entries& entries, std::int64_t size = 4) {
  OnnxModel model;
  model.input("x", kFloat, {size});
  auto& weight = *model.graph().add_initializer();
  weight.set_name("w");
  weight.set_data_type(kFloat);
  weight.add_dims(size);
  weight.set_data_location(onnx::TensorProto::EXTERNAL);
  for (const auto& [key, value] : entries) {
    auto& entry = *weight.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  }
  model.node("Mul", {"x", "w"}, {"y"});
  model.output("y");
  return model.serialize();
}

std::string floats(std::initializer_list<float> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(float)};
}

class ExternalDataTest : public ::testing::Test {
 protected:
  // The error of a model with those entries beside a file weights.bin of 32 bytes, without the path
  // of the model.
  std::string error_of(const Entries& entries, std::int64_t size = 4) {
    folder_.write("m/weights.bin", floats({1, 2, 3, 4, 5, 6, 7, 8}));
    const fs::path path = folder_.write("m/model.onnx", model_bytes(entries, size));
    const auto module = import_file(path);
    if (module) return "no error";
    const std::string text = module.error().to_string();
    const std::string prefix = path.string() + ": tensor 'w': external data: ";
    return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
  }

  TempDir folder_;
};

TEST_F(ExternalDataTest, ReadsAtOffset) {
  folder_.write("weights.bin", floats({1, 2, 3, 4, 5, 6, 7, 8}));
  const auto module = import_file(folder_.write(
      "model.onnx", model_bytes({{"location", "weights.bin"}, {"offset", "8"}, {"length", "16"}})));
  ASSERT_TRUE(module.has_value()) << module.error().to_string();
  EXPECT_THAT(find_value(module->methods[0].graph, "w")->constant.span<float>(),
              ElementsAre(3, 4, 5, 6));
}

TEST_F(ExternalDataTest, UnknownKeysMeanNothing) {
  EXPECT_EQ(error_of({{"location", "weights.bin"}, {"checksum", "abc"}, {"colour", "red"}}),
            "no error");
}

TEST_F(ExternalDataTest, FilesInSubfoldersAreInside) {
  folder_.write("m/sub/more.bin", floats({1, 2, 3, 4}));
  EXPECT_EQ(error_of({{"location", "sub/more.bin"}}), "no error");
  EXPECT_EQ(error_of({{"location", "./weights.bin"}}), "no error");
}

TEST_F(ExternalDataTest, PathsThatLeadOutside) {
  folder_.write("secret.bin", floats({1, 2, 3, 4}));
  EXPECT_EQ(error_of({{"location", "../secret.bin"}}),
            "location '../secret.bin' is not allowed: a parent folder ('..') can lead outside of "
            "the model's folder");
  EXPECT_EQ(error_of({{"location", "sub/../../secret.bin"}}),
            "location 'sub/../../secret.bin' is not allowed: a parent folder ('..') can lead "
            "outside of the model's folder");
  EXPECT_EQ(error_of({{"location", "/etc/passwd"}}),
            "location '/etc/passwd' is not allowed: an absolute path leads outside of the model's "
            "folder");
  EXPECT_EQ(error_of({{"location", std::string("weights.bin\0x", 13)}}),
            "location 'weights.bin\\x00x' is not allowed: it holds a null byte");
}

TEST_F(ExternalDataTest, LinksThatLeadOutside) {
  folder_.write("outside/secret.bin", floats({1, 2, 3, 4}));
  fs::create_directories(folder_ / "m");
  fs::create_symlink("../outside/secret.bin", folder_ / "m/link.bin");
  EXPECT_EQ(
      error_of({{"location", "link.bin"}}),
      "location 'link.bin' is not allowed: its symbolic link leads outside of the model's folder");
  fs::create_directory_symlink("../outside", folder_ / "m/dir");
  EXPECT_EQ(error_of({{"location", "dir/secret.bin"}}),
            "location 'dir/secret.bin' is not allowed: its symbolic link leads outside of the "
            "model's folder");
}

// A folder whose name begins like the model's is not inside of it.
TEST_F(ExternalDataTest, LinkIntoAFolderOfSimilarName) {
  folder_.write("m2/secret.bin", floats({1, 2, 3, 4}));
  fs::create_directories(folder_ / "m");
  fs::create_symlink("../m2/secret.bin", folder_ / "m/link.bin");
  EXPECT_THAT(error_of({{"location", "link.bin"}}), HasSubstr("leads outside"));
}

TEST_F(ExternalDataTest, ModelAndDataMayBeLinksIntoOneFolderOfBlobs) {
  folder_.write("blobs/aa", model_bytes({{"location", "weights.bin"}}));
  folder_.write("blobs/bb", floats({1, 2, 3, 4}));
  folder_.write("elsewhere/cc", floats({1, 2, 3, 4}));
  fs::create_directories(folder_ / "snapshots/1");
  fs::create_symlink("../../blobs/aa", folder_ / "snapshots/1/model.onnx");
  fs::create_symlink("../../blobs/bb", folder_ / "snapshots/1/weights.bin");
  const auto module = import_file(folder_ / "snapshots/1/model.onnx");
  EXPECT_TRUE(module.has_value()) << module.error().to_string();
  fs::remove(folder_ / "snapshots/1/weights.bin");
  fs::create_symlink("../../elsewhere/cc", folder_ / "snapshots/1/weights.bin");
  const auto refused = import_file(folder_ / "snapshots/1/model.onnx");
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().to_string(), HasSubstr("leads outside"));
}

TEST_F(ExternalDataTest, WhatIsNoFile) {
  EXPECT_THAT(error_of({{"location", "not_there.bin"}}),
              HasSubstr("expected a file 'not_there.bin' in the folder"));
  EXPECT_EQ(error_of({{"location", "."}}),
            "location '.': expected a regular file, found a directory");
  EXPECT_EQ(error_of({}), "expected a location, found none");
  EXPECT_THAT(error_of({{"location", "*/_ORT_MEM_ADDR_/*"}, {"offset", "4096"}, {"length", "16"}}),
              HasSubstr("expected a file '*/_ORT_MEM_ADDR_/*' in the folder"));
}

TEST_F(ExternalDataTest, KeysThatStandTwice) {
  EXPECT_EQ(error_of({{"location", "weights.bin"}, {"location", "../secret.bin"}}),
            "duplicate key 'location'");
}

TEST_F(ExternalDataTest, SizesThatDisagree) {
  EXPECT_EQ(error_of({{"location", "weights.bin"}, {"length", "8"}}),
            "length: expected 16 bytes for fp32[4], found 8");
  EXPECT_EQ(error_of({{"location", "weights.bin"}, {"offset", "24"}}),
            "file 'weights.bin' has a size of 32 bytes; expected 16 at offset 24");
  EXPECT_EQ(error_of({{"location", "weights.bin"}}, 1 << 20),
            "file 'weights.bin' has a size of 32 bytes; expected 4194304 at offset 0");
  EXPECT_EQ(error_of({{"location", "weights.bin"}, {"offset", "9223372036854775807"}}),
            "file 'weights.bin' has a size of 32 bytes; expected 16 at offset 9223372036854775807");
  EXPECT_EQ(
      error_of({{"location", "weights.bin"}, {"offset", "18446744073709551600"}, {"length", "32"}}),
      "offset: expected a number from 0 to 2^63-1, found '18446744073709551600'");
  EXPECT_EQ(error_of({{"location", "weights.bin"}, {"offset", "-1"}}),
            "offset: expected a number from 0 to 2^63-1, found '-1'");
  EXPECT_EQ(error_of({{"location", "weights.bin"}, {"length", "16 "}}),
            "length: expected a number from 0 to 2^63-1, found '16 '");
}

TEST_F(ExternalDataTest, FromMemory) {
  folder_.write("weights.bin", floats({1, 2, 3, 4}));
  const std::string bytes = model_bytes({{"location", "weights.bin"}});
  const fs::path folder = folder_.path();
  EXPECT_TRUE(import_bytes(bytes_of(bytes), &folder).has_value());
  const auto module = import_bytes(bytes_of(bytes), nullptr);
  ASSERT_FALSE(module.has_value());
  EXPECT_EQ(module.error().to_string(),
            "tensor 'w': external data: location 'weights.bin' is not allowed: the model was "
            "loaded from memory without a folder");
}

TEST_F(ExternalDataTest, DataInTheMessageAsWell) {
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(model_bytes({{"location", "weights.bin"}})));
  folder_.write("m/weights.bin", floats({1, 2, 3, 4}));
  auto& weight = *model.mutable_graph()->mutable_initializer(0);
  weight.set_raw_data(floats({5, 6, 7, 8}));
  EXPECT_THAT(
      import_file(folder_.write("m/model.onnx", model.SerializeAsString())).error().to_string(),
      HasSubstr("tensor 'w': expected external data alone, found raw_data as well"));
  weight.clear_raw_data();
  weight.add_float_data(1);
  EXPECT_THAT(
      import_file(folder_.write("m/model.onnx", model.SerializeAsString())).error().to_string(),
      HasSubstr("tensor 'w': expected external data alone, found float_data as well"));
}

}  // namespace
}  // namespace tessera::importer
