// An exclusive kernel lock on a file: it ends with the last process that holds the descriptor, however that process
// ends.
#pragma once

#include <filesystem>
#include <optional>

namespace tearless {

class LockFile {
 public:
  // `path` may be a folder: a lock that nobody can remove without what it guards.

  /// The lock, or nothing where another process holds it. UserError where the file cannot be made.
  static std::optional<LockFile> try_acquire(const std::filesystem::path& path);
  /// Waits for the lock.
  static LockFile acquire(const std::filesystem::path& path);
  /// The lock that a parent process took and handed on with share_with_children(); nothing where `descriptor` is not
  /// open, is another file than `path`, or does not hold the lock.
  static std::optional<LockFile> inherited(int descriptor, const std::filesystem::path& path);
  /// True while some process holds the lock. Changes nothing, makes no file.
  static bool is_held(const std::filesystem::path& path);

  LockFile(LockFile&& other) noexcept;
  LockFile& operator=(LockFile&& other) noexcept;
  ~LockFile();

  /// Lets child processes inherit the descriptor: the lock is then held until the last of them is gone.
  void share_with_children();
  int descriptor() const { return fd_; }
  /// True while `path` still names the file that is locked: a lock whose file was removed guards nothing.
  bool is_of(const std::filesystem::path& path) const;

 private:
  explicit LockFile(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace tearless
