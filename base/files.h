// Reading and writing files. After a crash or on a full disk, a file that is replaced here holds either the old bytes
// or the new ones, never a mixture.
//
// Every function that fails throws a UserError that names the path and the reason, or its subclass MachineError for a
// full disk, an I/O error and the like. "Durable" means: survives a power failure.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tearless {

/// The content of a file.
std::string read_file(const std::filesystem::path& path);
/// The content of a file; nullopt if there is no such file.
std::optional<std::string> read_if_there(const std::filesystem::path& path);

/// As read_file(), for input that a person names: fails for anything but a regular file (a pipe or device may block or
/// never end) and for a file of more than `max_bytes`.
std::string read_regular_file(const std::filesystem::path& path, uint64_t max_bytes);

/// Replaces a file durably: writes a temporary file, fsyncs and renames it, and fsyncs the folder. If it throws, the
/// old file is untouched.
void write_atomically(const std::filesystem::path& path, std::string_view bytes, mode_t mode = 0644);

/// True for the name of a file that it had not finished: "scores.json.tmp4711".
bool is_temporary(std::string_view name);

/// As write_atomically() but without fsync: other processes see the old bytes or the new, but a power failure may lose
/// both.
void replace_unsynced(const std::filesystem::path& path, std::string_view bytes, mode_t mode = 0644);

/// Writes over the first bytes of a file, which is made if it is not there, and leaves the others. For files that other
/// machines look at again and again: a name that is replaced may stay unseen on a network disk. A reader may see some
/// of the old bytes and some of the new ones.
void overwrite_in_place(const std::filesystem::path& path, std::string_view bytes);

/// Writes a new file that may be executed, without fsync. UserError if `path` exists.
void write_program_unsynced(const std::filesystem::path& path, std::string_view bytes);

/// Makes a folder and its missing parents, durably.
void make_folders(const std::filesystem::path& folder);
/// As make_folders() but without fsync.
void make_folders_unsynced(const std::filesystem::path& folder);

/// Renames a file or a folder, replacing a file at `to`. Durable after sync_folder().
void rename_file(const std::filesystem::path& from, const std::filesystem::path& to);

/// What is in a folder, sorted; empty if there is no such folder, or it may not be read. Throws if it cannot be listed
/// to its end: on a network file system another machine may be changing it.
std::vector<std::filesystem::directory_entry> entries_of(const std::filesystem::path& folder);

/// Removes a file. Does nothing if `path` does not exist.
void remove_file(const std::filesystem::path& path);

/// Removes a file, or a folder with its contents; does not follow symbolic links. Does nothing if `path` does
/// not exist.
void remove_recursively(const std::filesystem::path& path);

/// The same after an error, which is the one to tell: what cannot be removed stays.
void remove_what_is_left_of(const std::filesystem::path& path) noexcept;

/// Bytes of a file, or of all files in a folder and in those below it; symbolic links are not followed. 0 if there is
/// no such file or folder.
int64_t bytes_in(const std::filesystem::path& path);

/// Makes renames, creations and removals inside `folder` durable.
void sync_folder(const std::filesystem::path& folder);

/// Publishes a finished folder under its final name, durably: fsyncs it and all files in it, renames it, and fsyncs the
/// parent. REQUIRES: `final_name` does not exist.
void publish_folder(const std::filesystem::path& temporary, const std::filesystem::path& final_name);

/// A file that is only appended to. append() passes bytes to the kernel immediately, so that other processes can follow
/// the file; sync() makes them durable.
class AppendFile {
 public:
  /// Opens or creates `path` and truncates it to `keep_bytes` bytes. UserError if the file is shorter than that.
  AppendFile(std::filesystem::path path, uint64_t keep_bytes);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  void append(std::string_view bytes);
  void sync();
  uint64_t size() const { return size_; }  ///< bytes

 private:
  void cut(uint64_t keep_bytes);

  std::filesystem::path path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

}  // namespace tearless
