#include "harness/runs/launcher.h"

#include "base/lock_file.h"

namespace tearless::harness {

bool is_alive(const RunDirectory& run) { return LockFile::is_held(run.lock()) || is_supervised(run); }

}  // namespace tearless::harness
