#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <vector>

#include "testing/temp_dir.h"

namespace tessera {
namespace {

std::size_t files_in(const testing::TempDir& dir) {
  const std::filesystem::directory_iterator files(dir.path());
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST(FileTest, ReadAndMap) {
  const testing::TempDir dir;
  const auto path = dir.write("a.bin", std::string("x\0y", 3));
  EXPECT_EQ(read_file(path), std::string("x\0y", 3));
  auto mapped = MappedFile::open(path);
  ASSERT_TRUE(mapped.has_value());
  std::filesystem::remove(path);
  EXPECT_EQ(text_of(**mapped), std::string("x\0y", 3));
  const auto empty = dir.write("empty", "");
  EXPECT_EQ(read_file(empty), "");
  EXPECT_TRUE((*MappedFile::open(empty))->bytes().empty());
}

TEST(FileTest, ReadErrorsNameThePathAndTheReason) {
  const testing::TempDir dir;
  const auto missing = dir / "missing";
  EXPECT_EQ(read_file(missing).error().to_string(),
            "cannot open '" + missing.string() + "': No such file or directory");
  EXPECT_EQ(MappedFile::open(missing).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(read_file(dir.path()).error().to_string(),
            "cannot read '" + dir.path().string() + "': Is a directory");
  EXPECT_EQ(MappedFile::open(dir.path()).error().to_string(),
            "cannot read '" + dir.path().string() + "': Is a directory");
  EXPECT_EQ(MappedFile::open("/dev/null").error().to_string(),
            "cannot map '/dev/null': expected a regular file");
}

TEST(AtomicFileTest, ReadersSeeTheOldFileUntilCommit) {
  const testing::TempDir dir;
  const auto path = dir.write("out", "old");
  auto file = AtomicFile::create(path);
  ASSERT_TRUE(file.has_value());
  ASSERT_TRUE((*file)->write("new ", 4).has_value());
  ASSERT_TRUE((*file)->write("text", 4).has_value());
  EXPECT_EQ(read_file(path), "old");
  ASSERT_TRUE((*file)->commit().has_value());
  EXPECT_EQ(read_file(path), "new text");
  file->reset();
  EXPECT_EQ(read_file(path), "new text");
  EXPECT_EQ(files_in(dir), 1U);
}

TEST(AtomicFileTest, WithoutCommitNothingIsLeft) {
  const testing::TempDir dir;
  const auto path = dir / "out";
  {
    auto file = AtomicFile::create(path);
    ASSERT_TRUE(file.has_value());
    ASSERT_TRUE((*file)->write("x", 1).has_value());
    EXPECT_EQ(files_in(dir), 1U);
  }
  EXPECT_EQ(files_in(dir), 0U);
}

TEST(AtomicFileTest, CreationErrors) {
  const testing::TempDir dir;
  const auto path = dir / "no/such/folder";
  EXPECT_EQ(write_file_atomically(path, "x").error().to_string(),
            "cannot write '" + path.string() + "': No such file or directory");
  EXPECT_EQ(write_file_atomically("/dev/null", "x").error().to_string(),
            "cannot write '/dev/null': expected a regular file or a new name");
  EXPECT_EQ(write_file_atomically(dir.path(), "x").error().to_string(),
            "cannot write '" + dir.path().string() + "': expected a regular file or a new name");
}

TEST(AtomicFileTest, TheTableOfUnfinishedFilesIsBounded) {
  const testing::TempDir dir;
  std::vector<std::unique_ptr<AtomicFile>> files;
  for (int i = 0; i < 64; ++i) {
    auto file = AtomicFile::create(dir / std::to_string(i));
    ASSERT_TRUE(file.has_value());
    files.push_back(*std::move(file));
  }
  const auto path = dir / "one more";
  EXPECT_EQ(AtomicFile::create(path).error().to_string(),
            "cannot write '" + path.string() +
                "': expected at most 64 unfinished files and paths below 4096 bytes");
  files.pop_back();
  EXPECT_TRUE(write_file_atomically(path, "x").has_value());
}

// A limit on the size of files stands for a full disk. In a child process, since it holds for the
// process.
int write_below_limit(const std::filesystem::path& path) {
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{4096, 4096};
  if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
  const auto status = write_file_atomically(path, std::string(10000, 'x'));
  if (status.has_value()) return 3;
  if (status.error().code != ErrorCode::kResourceExhausted) return 4;
  const std::string expected = "cannot write '" + path.string() + "': File too large";
  return status.error().to_string() == expected ? 0 : 5;
}

TEST(AtomicFileTest, AFullDiskIsAnErrorAndLeavesTheOldFile) {
  const testing::TempDir dir;
  const auto path = dir.write("out", "old");
  const pid_t child = ::fork();
  if (child == 0) ::_exit(write_below_limit(path));
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(files_in(dir), 1U);
}

// As Ctrl-C: the handler removes the temporary file of a writer that never gets to its destructor.
int die_while_writing(const std::filesystem::path& path) {
  std::signal(SIGINT, [](int) {
    remove_unfinished_files();
    ::_exit(0);
  });
  const auto file = AtomicFile::create(path);
  if (!file || !(*file)->write("x", 1)) return 2;
  std::raise(SIGINT);
  return 3;
}

TEST(AtomicFileTest, ASignalHandlerClearsUnfinishedFiles) {
  const testing::TempDir dir;
  const auto path = dir.write("out", "old");
  const pid_t child = ::fork();
  if (child == 0) ::_exit(die_while_writing(path));
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(files_in(dir), 1U);
}

}  // namespace
}  // namespace tessera
