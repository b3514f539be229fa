// Notices that another process has written a workspace's database, without reading a row of it.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "harness/runs/workspace.h"

namespace SQLite {
class Database;
}

namespace tearless::harness {

class ChangeWatch {
 public:
  explicit ChangeWatch(const Workspace& workspace);
  ~ChangeWatch();

  /// Whether something was written since the last call, or the database was deleted, made, or replaced by another one.
  /// True for the first call if there is a database. Waits for nothing and throws nothing: while the file cannot be
  /// read, nothing changes.
  bool has_changed();

 private:
  using FileName = std::pair<uint64_t, uint64_t>;  // device and inode; zeros: there is no file

  std::filesystem::path file_;
  FileName opened_ = {};
  std::unique_ptr<SQLite::Database> database_;  // of `opened_`
  int64_t version_ = 0;
};

}  // namespace tearless::harness
