#include "base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/sys.h"

namespace tearless {
namespace fs = std::filesystem;
namespace {

class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags, const char* verb) : Descriptor(path, flags, verb, path) {}
  /// Error messages name `meant` instead of `path`.
  Descriptor(const fs::path& path, int flags, const char* verb, const fs::path& meant, mode_t mode = 0644)
      : fd_((flags & O_ACCMODE) == O_RDONLY ? ::open(path.c_str(), flags | O_CLOEXEC)
                                            : sys::open_for_writing(path.c_str(), flags, mode)) {
    if (fd_ < 0) fail_errno(verb, meant);
  }
  ~Descriptor() { ::close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

void write_all(int fd, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t n = sys::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_errno("write", path);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

// Appends the next bytes of a file; false at its end.
bool read_more(const Descriptor& file, std::string& bytes, const fs::path& path) {
  char buffer[1 << 16];
  ssize_t n = 0;
  do {
    n = ::read(file.get(), buffer, sizeof buffer);
  } while (n < 0 && errno == EINTR);
  if (n < 0) fail_errno("read", path);
  bytes.append(buffer, static_cast<size_t>(n));
  return n > 0;
}

constexpr std::string_view kTemporary = ".tmp";  // and the writer's pid

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : "."; }

// Sorted.
std::vector<fs::directory_entry> list(const fs::path& folder, std::error_code& error) {
  std::vector<fs::directory_entry> entries;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) entries.push_back(*at);
  std::sort(entries.begin(), entries.end());
  return entries;
}

// Writes a temporary file and renames it to `path`. Leaves nothing behind if that fails.
void replace_file(const fs::path& path, std::string_view bytes, bool sync, mode_t mode) {
  // The process id keeps concurrent writers of one path from sharing a temporary file. The last rename wins.
  const fs::path temporary = path.string() + fmt::format("{}{}", kTemporary, ::getpid());
  try {
    const Descriptor file(temporary, O_WRONLY | O_CREAT | O_TRUNC, "write", path, mode);
    write_all(file.get(), bytes, path);
    if (sync && sys::fsync(file.get()) != 0) fail_errno("write", path);
  } catch (const UserError&) {
    sys::unlink(temporary.c_str());
    throw;
  }
  if (sys::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    sys::unlink(temporary.c_str());
    fail_errno("write", path, error);
  }
}

/// Opens a file for reading. UserError unless it is a regular one. O_NONBLOCK: opening a pipe does not wait for a
/// writer.
class RegularFile : public Descriptor {
 public:
  explicit RegularFile(const fs::path& path) : Descriptor(path, O_RDONLY | O_NONBLOCK, "read") {
    struct stat info {};
    if (::fstat(get(), &info) != 0) fail_errno("read", path);
    if (S_ISREG(info.st_mode)) return;
    fail("cannot read {}: it is {}; name a regular file", path.string(),
         S_ISDIR(info.st_mode) ? "a folder" : "a pipe or a device");
  }
};

}  // namespace

std::string read_file(const fs::path& path) {
  const Descriptor file(path, O_RDONLY, "read");
  std::string bytes;
  struct stat info {};
  if (::fstat(file.get(), &info) == 0 && info.st_size > 0) bytes.reserve(static_cast<size_t>(info.st_size));
  while (read_more(file, bytes, path)) {
  }
  return bytes;
}

std::optional<std::string> read_if_there(const fs::path& path) {
  if (!fs::exists(path)) return std::nullopt;
  return read_file(path);
}

std::string read_regular_file(const fs::path& path, uint64_t max_bytes) {
  const RegularFile file(path);
  std::string bytes;
  while (bytes.size() <= max_bytes) {
    if (!read_more(file, bytes, path)) return bytes;
  }
  fail("cannot read {}: it is larger than {} bytes, the limit for such a file; check that it is the right one",
       path.string(), max_bytes);
}

void write_atomically(const fs::path& path, std::string_view bytes, mode_t mode) {
  replace_file(path, bytes, /*sync=*/true, mode);
  sync_folder(folder_of(path));
}

bool is_temporary(std::string_view name) {
  const size_t mark = name.rfind(kTemporary), number = mark + kTemporary.size();
  return mark != std::string::npos && mark > 0 && number < name.size() &&
         name.find_first_not_of("0123456789", number) == std::string::npos;
}

void replace_unsynced(const fs::path& path, std::string_view bytes, mode_t mode) {
  replace_file(path, bytes, /*sync=*/false, mode);
}

void write_program_unsynced(const fs::path& path, std::string_view bytes) {
  const Descriptor file(path, O_WRONLY | O_CREAT | O_EXCL, "write", path, 0755);
  write_all(file.get(), bytes, path);
}

namespace {

void make_folders(const fs::path& folder, bool durably) {
  if (folder.empty() || fs::is_directory(folder)) return;
  const fs::path parent = folder_of(folder.has_filename() ? folder : folder.parent_path());
  make_folders(parent, durably);
  if (sys::mkdir(folder.c_str()) == 0) {
    if (durably) sync_folder(parent);
    return;
  }
  if (const int error = errno; error != EEXIST || !fs::is_directory(folder)) {
    fail_errno("create the folder", folder, error);
  }
}

}  // namespace

void make_folders(const fs::path& folder) { make_folders(folder, /*durably=*/true); }

void overwrite_in_place(const fs::path& path, std::string_view bytes) {
  const Descriptor file(path, O_WRONLY | O_CREAT, "write");
  write_all(file.get(), bytes, path);
}

void make_folders_unsynced(const fs::path& folder) { make_folders(folder, /*durably=*/false); }

void rename_file(const fs::path& from, const fs::path& to) {
  if (sys::rename(from.c_str(), to.c_str()) != 0) fail_errno("rename a file to", to);
}

std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::directory_entry> entries = list(folder, error);
  const bool is_none = error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory ||
                       error == std::errc::permission_denied;
  if (error && !is_none) fail_errno("list", folder, error.value());
  return entries;
}

void remove_file(const fs::path& path) {
  if (sys::unlink(path.c_str()) != 0 && errno != ENOENT) fail_errno("remove", path);
}

void remove_recursively(const fs::path& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return;
    fail_errno("remove", path);
  }
  if (!S_ISDIR(info.st_mode)) return remove_file(path);
  // Listed before anything is removed: readdir may skip names in a changing folder.
  std::error_code error;
  const std::vector<fs::directory_entry> entries = list(path, error);
  if (error) fail_errno("remove", path, error.value());
  for (const fs::path& entry : entries) remove_recursively(entry);
  if (sys::rmdir(path.c_str()) != 0 && errno != ENOENT) fail_errno("remove", path);
}

void remove_what_is_left_of(const fs::path& path) noexcept {
  try {
    remove_recursively(path);
  } catch (const std::exception&) {
  }
}

int64_t bytes_in(const fs::path& path) {
  const auto bytes_of_file = [](const fs::path& file) -> int64_t {
    struct stat info {};
    return ::lstat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) ? info.st_size : 0;
  };
  int64_t bytes = bytes_of_file(path);
  std::error_code error;
  for (fs::recursive_directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    bytes += bytes_of_file(entry->path());
  }
  return bytes;
}

void sync_folder(const fs::path& folder) {
  const Descriptor handle(folder, O_RDONLY | O_DIRECTORY, "open the folder");
  // EINVAL: some network file systems cannot fsync a folder. Renames are then only as durable as they make them.
  if (sys::fsync(handle.get()) != 0 && errno != EINVAL) fail_errno("write to the folder", folder);
}

void publish_folder(const fs::path& temporary, const fs::path& final_name) {
  for (const auto& entry : fs::recursive_directory_iterator(temporary)) {
    if (entry.is_directory()) {
      sync_folder(entry.path());
    } else {
      const Descriptor file(entry.path(), O_RDONLY, "read");
      if (sys::fsync(file.get()) != 0) fail_errno("write", entry.path());
    }
  }
  sync_folder(temporary);
  if (sys::rename(temporary.c_str(), final_name.c_str()) != 0) fail_errno("rename a folder to", final_name);
  sync_folder(folder_of(final_name));
}

AppendFile::AppendFile(fs::path path, uint64_t keep_bytes) : path_(std::move(path)), size_(keep_bytes) {
  const bool is_new = !fs::exists(path_);
  fd_ = sys::open_for_writing(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND);
  if (fd_ < 0) fail_errno("write", path_);
  try {
    cut(keep_bytes);
    if (is_new) sync_folder(folder_of(path_));
  } catch (const UserError&) {
    ::close(fd_);
    throw;
  }
}

void AppendFile::cut(uint64_t keep_bytes) {
  struct stat info {};
  if (::fstat(fd_, &info) != 0) fail_errno("read", path_);
  if (static_cast<uint64_t>(info.st_size) < keep_bytes) {
    fail(
        "{} has {} bytes where its checkpoint recorded {}: it was changed by hand; restore it or delete the run's "
        "folder",
        path_.string(), info.st_size, keep_bytes);
  }
  if (sys::ftruncate(fd_, static_cast<off_t>(keep_bytes)) != 0) fail_errno("cut", path_);
}

AppendFile::~AppendFile() { ::close(fd_); }

void AppendFile::append(std::string_view bytes) {
  write_all(fd_, bytes, path_);
  size_ += bytes.size();
}

void AppendFile::sync() {
  if (sys::fsync(fd_) != 0) fail_errno("write", path_);
}

}  // namespace tearless
