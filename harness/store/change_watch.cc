#include "harness/store/change_watch.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <sys/stat.h>

namespace tearless::harness {

ChangeWatch::ChangeWatch(const Workspace& workspace) : file_(workspace.database()) {}
ChangeWatch::~ChangeWatch() = default;

bool ChangeWatch::has_changed() {
  struct stat now {};
  const bool is_there = ::stat(file_.c_str(), &now) == 0;
  const FileName name = is_there ? FileName{now.st_dev, now.st_ino} : FileName{};
  try {
    const bool is_other = name != opened_;
    if (is_other) {
      database_.reset();
      opened_ = {};
      if (is_there) database_ = std::make_unique<SQLite::Database>(file_.string(), SQLite::OPEN_READONLY);
      opened_ = name;
    }
    // SQLite changes this number of a connection when another connection has written.
    const int64_t version = database_ ? database_->execAndGet("PRAGMA data_version").getInt64() : 0;
    return std::exchange(version_, version) != version || is_other;
  } catch (const SQLite::Exception&) {  // pages say what is wrong with it
    return false;
  }
}

}  // namespace tearless::harness
