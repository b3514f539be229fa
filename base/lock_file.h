// An exclusive kernel lock on a file: it ends with the last process that holds the descriptor, however that process
// ends.
#pragma once

#include <filesystem>
#include <optional>

namespace tearless {

class LockFile {
 public:
  /// The lock, or nothing where another process holds it. UserError where the file cannot be made.
  static std::optional<LockFile> try_acquire(const std::filesystem::path& path);
  /// Waits for the lock.
  static LockFile acquire(const std::filesystem::path& path);
  /// True while some process holds the lock. Changes nothing, makes no file.
  static bool is_held(const std::filesystem::path& path);

  LockFile(LockFile&& other) noexcept;
  LockFile& operator=(LockFile&&) = delete;
  ~LockFile();

  /// Lets child processes inherit the descriptor: the lock is then held until the last of them is gone.
  void share_with_children();

 private:
  explicit LockFile(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace tearless
