// A cache of what was computed from the content of files, for the life of the process: `check` answers for 100,000 runs
// that share a few files.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace tearless::engine {

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

/// One value a file. Thread-safe.
template <class Value>
class PerFile {
 public:
  /// The value of `file`, which has the stamp `stamp` now: `compute()` if that is not known, or of another stamp.
  template <class Compute>
  Value get(const std::string& file, const FileStamp& stamp, Compute&& compute) {
    const std::lock_guard lock(mutex_);
    if (const auto it = known_.find(file); it != known_.end() && it->second.first == stamp) return it->second.second;
    Value value = compute();
    known_.insert_or_assign(file, std::pair(stamp, value));
    return value;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::pair<FileStamp, Value>> known_;
};

}  // namespace tearless::engine
