#include "harness/service/stop_mark.h"

#include <fstream>
#include <string>

#include "base/files.h"
#include "base/lock_file.h"
#include "harness/store/store.h"

namespace tearless::harness {
namespace {
constexpr const char* kStopped = "stopped";
}

void note_stop(const Workspace& workspace) { replace_unsynced(workspace.writer(), std::string(kStopped) + "\n"); }

bool was_stopped(const Workspace& workspace) {
  std::string word;
  std::ifstream(workspace.writer()) >> word;
  return word == kStopped;
}

bool is_held_by_service(const Workspace& workspace) {
  int64_t pid = 0;
  std::string role;
  std::ifstream(workspace.writer()) >> pid >> role;
  return role == kServiceRole && LockFile::is_held(workspace.lock());
}

}  // namespace tearless::harness
