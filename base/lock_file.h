// An exclusive kernel lock on a file (flock). The kernel releases it when the last process that has the descriptor open
// ends, however it ends, so a lock never outlives its owners.
//
// Whoever can open a file can lock it, even for reading. So the files have mode 0600: other users cannot lock them.
//
//   if (std::optional<LockFile> lock = LockFile::try_acquire(path)) { … }  // held until `lock` is destroyed
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace tearless {

/// A held lock.
class LockFile {
 public:
  /// Takes the lock, creating the file if needed; nullopt if another process holds it. UserError if the file cannot be
  /// created or opened.
  static std::optional<LockFile> try_acquire(const std::filesystem::path& path);

  /// As try_acquire(), but waits for the lock.
  static LockFile acquire(const std::filesystem::path& path);

  /// Takes over a lock that the parent process acquired and passed on with share_with_children(). Nullopt if
  /// `descriptor` is not open, refers to another file than `path`, or does not hold the lock.
  static std::optional<LockFile> inherited(int descriptor, const std::filesystem::path& path);

  /// True while some process holds the lock, of another user too. Creates no file. REQUIRES: `path` is not a folder.
  static bool is_held(const std::filesystem::path& path);

  LockFile(LockFile&& other) noexcept;
  LockFile& operator=(LockFile&& other) noexcept;
  ~LockFile();

  /// Lets child processes inherit the descriptor. The lock is then held until the last of them has ended.
  void share_with_children();

  int descriptor() const { return fd_; }
  /// Of the locked file.
  uint64_t inode() const;

  /// True if `path` still names the locked file. False after the file was removed or replaced: the lock then protects
  /// nothing.
  bool is_of(const std::filesystem::path& path) const;

 private:
  explicit LockFile(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace tearless
