#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace tessera {
namespace {

// Writers that may be unfinished at once, and the longest path of each. Fixed, since a signal
// handler reads the table.
constexpr std::size_t kMaxUnfinished = 64;
constexpr std::size_t kMaxPathBytes = 4096;

enum class SlotState : int { kFree, kFilling, kLive };

struct UnfinishedSlot {
  std::atomic<SlotState> state{SlotState::kFree};
  std::array<char, kMaxPathBytes> path{};
};
static_assert(std::atomic<SlotState>::is_always_lock_free);

std::array<UnfinishedSlot, kMaxUnfinished> unfinished_slots;
std::atomic<std::uint64_t> next_temporary{0};

// Index of the slot that now holds `path`, or -1 where all are taken or the path is too long.
int claim_slot(const std::string& path) {
  if (path.size() >= kMaxPathBytes) return -1;
  for (std::size_t i = 0; i < unfinished_slots.size(); ++i) {
    UnfinishedSlot& slot = unfinished_slots[i];
    SlotState expected = SlotState::kFree;
    if (!slot.state.compare_exchange_strong(expected, SlotState::kFilling)) continue;
    std::memcpy(slot.path.data(), path.c_str(), path.size() + 1);
    slot.state.store(SlotState::kLive);
    return static_cast<int>(i);
  }
  return -1;
}

void release_slot(int index) {
  unfinished_slots[static_cast<std::size_t>(index)].state.store(SlotState::kFree);
}

ErrorCode code_of(int error_number) {
  switch (error_number) {
    case ENOENT: return ErrorCode::kNotFound;
    case ENOSPC:
    case EFBIG:
    case EDQUOT:
    case ENOMEM:
    case EMFILE:
    case ENFILE: return ErrorCode::kResourceExhausted;
    default: return ErrorCode::kFailedPrecondition;
  }
}

// "cannot open 'a/b': No such file or directory".
tl::unexpected<Error> system_failure(std::string_view verb, const std::filesystem::path& path,
                                     int error_number) {
  return fail(code_of(error_number), "cannot " + std::string(verb) + " '" + path.string() +
                                         "': " + std::generic_category().message(error_number));
}

// Closes when it leaves scope.
struct Descriptor {
  int value = -1;
  explicit Descriptor(int descriptor) : value(descriptor) {}
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
};

int open_for_reading(const std::filesystem::path& path) {
  return ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
}

// Makes a rename in this folder last through a loss of power. A file system that cannot is no
// error.
void flush_folder_of(const std::filesystem::path& path) {
  const auto parent = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  const Descriptor folder(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.value >= 0) ::fsync(folder.value);
}

}  // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::filesystem::path& path) {
  const Descriptor file(open_for_reading(path));
  if (file.value < 0) return system_failure("open", path, errno);
  struct stat info {};
  if (::fstat(file.value, &info) != 0) return system_failure("read", path, errno);
  if (S_ISDIR(info.st_mode)) return system_failure("read", path, EISDIR);
  if (!S_ISREG(info.st_mode)) {
    return fail(ErrorCode::kInvalidArgument,
                "cannot map '" + path.string() + "': expected a regular file");
  }
  const auto size_bytes = static_cast<std::size_t>(info.st_size);
  const std::byte* data = nullptr;
  if (size_bytes != 0) {
    void* address = ::mmap(nullptr, size_bytes, PROT_READ, MAP_PRIVATE, file.value, 0);
    if (address == MAP_FAILED) return system_failure("map", path, errno);
    data = static_cast<const std::byte*>(address);
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(data, size_bytes));
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_bytes_);
}

Result<std::string> read_file(const std::filesystem::path& path) {
  const Descriptor file(open_for_reading(path));
  if (file.value < 0) return system_failure("open", path, errno);
  std::string text;
  std::array<char, 1 << 16> buffer;
  while (true) {
    const ssize_t count = ::read(file.value, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_failure("read", path, errno);
    if (count == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

Result<std::unique_ptr<AtomicFile>> AtomicFile::create(const std::filesystem::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return fail(ErrorCode::kInvalidArgument,
                "cannot write '" + path.string() + "': expected a regular file or a new name");
  }
  std::unique_ptr<AtomicFile> file(new AtomicFile());
  file->path_ = path;
  while (true) {
    file->temporary_ = path.string() + ".tmp." + std::to_string(::getpid()) + "." +
                       std::to_string(next_temporary.fetch_add(1));
    file->slot_ = claim_slot(file->temporary_);
    if (file->slot_ < 0) {
      return fail(ErrorCode::kResourceExhausted,
                  "cannot write '" + path.string() + "': expected at most " +
                      std::to_string(kMaxUnfinished) + " unfinished files and paths below " +
                      std::to_string(kMaxPathBytes) + " bytes");
    }
    file->descriptor_ =
        ::open(file->temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file->descriptor_ >= 0) return file;
    const int error_number = errno;
    release_slot(std::exchange(file->slot_, -1));
    if (error_number != EEXIST) return system_failure("write", path, error_number);
  }
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (slot_ >= 0) {
    ::unlink(temporary_.c_str());
    release_slot(slot_);
  }
}

Status AtomicFile::write(const void* data, std::size_t size_bytes) {
  TESSERA_CHECK(descriptor_ >= 0);
  const auto* next = static_cast<const std::byte*>(data);
  while (size_bytes != 0) {
    const ssize_t count = ::write(descriptor_, next, size_bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_failure("write", path_, errno);
    next += count;
    size_bytes -= static_cast<std::size_t>(count);
  }
  return {};
}

Status AtomicFile::commit() {
  TESSERA_CHECK(descriptor_ >= 0);
  if (::fsync(descriptor_) != 0) return system_failure("write", path_, errno);
  if (::close(std::exchange(descriptor_, -1)) != 0) return system_failure("write", path_, errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0)
    return system_failure("write", path_, errno);
  release_slot(std::exchange(slot_, -1));
  flush_folder_of(path_);
  return {};
}

Status write_file_atomically(const std::filesystem::path& path, std::string_view bytes) {
  TESSERA_ASSIGN(const auto file, AtomicFile::create(path));
  TESSERA_TRY(file->write(bytes.data(), bytes.size()));
  return file->commit();
}

void remove_unfinished_files() {
  for (UnfinishedSlot& slot : unfinished_slots) {
    if (slot.state.load() == SlotState::kLive) ::unlink(slot.path.data());
  }
}

}  // namespace tessera
