// Who serves a workspace whose folders are on a network disk: the one index that ROOT/index.json names, on one machine.
// Its service looks at that file before it does anything, and ends when the file names another index.
//
// It also raises a number in ROOT/index.beat. By that another machine sees that it lives: hosts have no pid, boot id or
// clock in common. The file is overwritten in place, for the reason that board.h gives.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "harness/runs/workspace.h"

namespace tearless::harness {

class Ownership {
 public:
  /// REQUIRES: the writer's lock is held.
  explicit Ownership(const Workspace& workspace);

  /// False once the workspace is another index's: nothing may be written to it any more. Raises the number if it is
  /// time to. `now`: seconds of a steady clock. Always true where the index is beside the folders.
  bool holds(double now);

 private:
  Workspace workspace_;
  int64_t beats_ = 0;
  double beat_at_ = 0;
};

/// Makes the workspace of another machine, whose service does not run any more, this machine's: the next writer claims
/// it, and rebuilds the index from the folders. Waits for 15 s to see whether the number is raised, after `before` was
/// called with a line that says so. UserError if it is, or if the workspace is on a local disk. Does nothing if the
/// workspace is this machine's already.
void take_over(const Workspace& workspace, const std::function<void(const std::string&)>& before);

}  // namespace tearless::harness
