// When a file was last changed, without reading its bytes.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace tearless {

/// Changes when a file is replaced or written to. With the time of the inode's last change: programs that copy files
/// may set the modification time back.
struct FileStamp {
  dev_t device = 0;
  ino_t inode = 0;
  off_t size = 0;
  int64_t modified_s = 0, modified_ns = 0, changed_s = 0, changed_ns = 0;

  explicit FileStamp(const struct stat& info)
      : device(info.st_dev),
        inode(info.st_ino),
        size(info.st_size),
        modified_s(info.st_mtim.tv_sec),
        modified_ns(info.st_mtim.tv_nsec),
        changed_s(info.st_ctim.tv_sec),
        changed_ns(info.st_ctim.tv_nsec) {}
  bool operator==(const FileStamp&) const = default;
};

/// Nullopt if there is no such file.
inline std::optional<FileStamp> stamp_of(const std::string& file) {
  struct stat info {};
  return ::stat(file.c_str(), &info) == 0 ? std::optional(FileStamp(info)) : std::nullopt;
}

/// Device and inode; zeros if there is no such file.
inline std::pair<uint64_t, uint64_t> identity_of_file(const std::string& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return {};
  return {info.st_dev, info.st_ino};
}

}  // namespace tearless
