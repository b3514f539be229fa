#include "base/lock_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/sys.h"

namespace tearless {
namespace {

// flock, not fcntl locks: an fcntl lock is lost when any descriptor of the file is closed, and is not inherited.
int open_lock(const std::filesystem::path& path) {
  const int fd = sys::open_for_writing(path.c_str(), O_RDWR | O_CREAT, 0600);
  if (fd < 0) fail_errno("open the lock", path);
  ::fchmod(fd, 0600);  // `chmod -R` may have let others in
  return fd;
}

int lock(int fd, int operation) {
  int result = 0;
  do result = sys::flock(fd, operation);
  while (result != 0 && errno == EINTR);
  return result;
}

// By the kernel's list of locks. Inodes alone are compared: some file systems have other device numbers there than
// stat() says.
bool is_held_by_another_user(const std::filesystem::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return false;
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    // "1: FLOCK  ADVISORY  WRITE 18534 fe:00:10952765 0 EOF"
    std::string number, kind, enforcement, access, pid, place;
    std::istringstream(line) >> number >> kind >> enforcement >> access >> pid >> place;
    if (kind == "FLOCK" && access == "WRITE" && place.ends_with(fmt::format(":{}", info.st_ino))) return true;
  }
  return false;
}

}  // namespace

std::optional<LockFile> LockFile::try_acquire(const std::filesystem::path& path) {
  LockFile file(open_lock(path));
  for (int attempt = 0; attempt < 10; ++attempt) {
    if (lock(file.fd_, LOCK_EX | LOCK_NB) == 0) {
      if (file.is_of(path)) return file;
      file = LockFile(open_lock(path));  // the file was removed or replaced after it was opened
      continue;
    }
    if (errno != EWOULDBLOCK) fail_errno("lock", path);
    // is_held() takes the lock for an instant, which must not make this call fail. Hence the retries.
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return std::nullopt;
}

std::optional<LockFile> LockFile::inherited(int descriptor, const std::filesystem::path& path) {
  if (descriptor < 0 || ::fcntl(descriptor, F_GETFD) < 0) return std::nullopt;
  LockFile file(descriptor);
  // flock succeeds on an open file description that holds the lock already, and fails if another one holds it.
  if (file.is_of(path) && lock(descriptor, LOCK_EX | LOCK_NB) == 0) return file;
  file.fd_ = -1;  // the descriptor belongs to someone else: do not close it
  return std::nullopt;
}

bool LockFile::is_of(const std::filesystem::path& path) const {
  struct stat opened {
  }, named{};
  return ::fstat(fd_, &opened) == 0 && ::stat(path.c_str(), &named) == 0 && opened.st_dev == named.st_dev &&
         opened.st_ino == named.st_ino;
}

uint64_t LockFile::inode() const {
  struct stat info {};
  ::fstat(fd_, &info);
  return info.st_ino;
}

LockFile LockFile::acquire(const std::filesystem::path& path) {
  while (true) {
    LockFile file(open_lock(path));
    if (lock(file.fd_, LOCK_EX) != 0) fail_errno("lock", path);
    if (file.is_of(path)) return file;  // else it was removed or replaced meanwhile
  }
}

bool LockFile::is_held(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno == EACCES && is_held_by_another_user(path);
  const LockFile file(fd);
  if (std::filesystem::is_directory(path)) throw std::logic_error(path.string() + " is a folder, not a lock");
  // A shared lock, so that two concurrent calls do not take each other for the holder.
  return lock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

LockFile::LockFile(LockFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

LockFile& LockFile::operator=(LockFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

LockFile::~LockFile() {
  if (fd_ >= 0) ::close(fd_);
}

void LockFile::share_with_children() { ::fcntl(fd_, F_SETFD, ::fcntl(fd_, F_GETFD) & ~FD_CLOEXEC); }

}  // namespace tearless
