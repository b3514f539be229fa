#include "harness/runs/launcher.h"

#include <filesystem>

#include "base/lock_file.h"
#include "harness/runs/attempt_files.h"

namespace tearless::harness {
namespace fs = std::filesystem;

bool has_process(const RunDirectory& run) { return LockFile::is_held(run.lock()) || is_supervised(run); }

bool is_granted(const RunDirectory& run) {
  const fs::path attempt = run.attempt(run.newest_attempt());
  std::error_code unreadable;
  return fs::exists(attempt / kGrantFile, unreadable) && !fs::exists(attempt / kEndedFile, unreadable);
}

}  // namespace tearless::harness
