#include "harness/service/stop_mark.h"

#include <fstream>
#include <string>

#include "base/files.h"

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

}  // namespace tearless::harness
