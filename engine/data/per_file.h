// A cache of what was computed from the content of files, for the life of the process: `check` answers for 100,000 runs
// that share a few files.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "base/file_stamp.h"

namespace tearless::engine {

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
