// An SQLite VFS that reports writes to base/fault.h, so that tests can make any of them fail, kill a process between
// any two, and simulate power cuts. It is not installed without a fault plan.
#pragma once

namespace tearless::harness {

/// Makes the reporting VFS SQLite's default if a fault plan is active. Call it before opening a database.
void install_fault_vfs();

}  // namespace tearless::harness
