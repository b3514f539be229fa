// SQLite's file access, with its writes reported to base/fault.h: so that tests can fail each of them, kill between any
// two, and know what a power cut leaves of the database. Without a fault plan it is not installed.
#pragma once

namespace tearless::harness {

/// Makes the reporting VFS SQLite's default where a fault plan is active. Called before a database is opened.
void install_fault_vfs();

}  // namespace tearless::harness
