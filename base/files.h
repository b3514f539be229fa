// Reading files, and writing them so that a crash or a full disk leaves either the old bytes or the new, never a half.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace tearless {

// All of these throw UserError that names the path and the reason, and its kind MachineError where it is the machine
// that failed (a full disk, an I/O error).

/// The bytes of a file. UserError (naming the path and the reason) where it cannot be read.
std::string read_file(const std::filesystem::path& path);

/// The same for what a person wrote: an ordinary file of at most `max_bytes`. UserError for a folder, a pipe or a
/// device (which may have no end, or never begin), and for a larger file.
std::string read_regular_file(const std::filesystem::path& path, uint64_t max_bytes);

/// Writes temp, fsync, rename, fsync the folder. UserError on a full disk, a read-only folder …: the old file is then
/// untouched.
void write_atomically(const std::filesystem::path& path, std::string_view bytes);

/// The same without any fsync: other processes see the old bytes or the new, but a power failure may leave neither.
void replace_unsynced(const std::filesystem::path& path, std::string_view bytes);

/// Makes a folder and its parents, durably; UserError where that is not possible.
void make_folders(const std::filesystem::path& folder);

/// Renames a file or a folder; what stood at `to` is replaced. Durable after sync_folder.
void rename_file(const std::filesystem::path& from, const std::filesystem::path& to);
/// Removes a file; one that is not there is no error.
void remove_file(const std::filesystem::path& path);
/// Removes a file, or a folder with all that is in it; one that is not there is no error.
void remove_recursively(const std::filesystem::path& path);

/// Makes renames and creations inside `folder` durable.
void sync_folder(const std::filesystem::path& folder);

/// Publishes a finished folder under its final name: syncs it and all files in it, renames, syncs the parent.
/// `final_name` must not exist.
void publish_folder(const std::filesystem::path& temporary, const std::filesystem::path& final_name);

/// A file that only grows. Lines reach the kernel at once (another process may follow them) and the disk at sync().
class AppendFile {
 public:
  /// Opens or makes `path`, cut back to its first `keep_bytes` bytes (the file must have at least that many).
  AppendFile(std::filesystem::path path, uint64_t keep_bytes);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  void append(std::string_view bytes);
  void sync();
  uint64_t size() const { return size_; }

 private:
  void cut(uint64_t keep_bytes);

  std::filesystem::path path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

}  // namespace tearless
