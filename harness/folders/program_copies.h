// The copies of training programs in a workspace, programs/<hash of their bytes>/. A copy is needed as long as the
// folder of a sweep names it, so that an old run can be repeated; `tearless delete` deletes the others.
//
// A submission first makes its copy and then writes the sweep's folder. Until then nothing shows that the copy is
// needed. So a submission holds lock_programs() from before it looks for the copy until the folder is written, and the
// service while it looks for what is not needed and renames it.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/lock_file.h"
#include "harness/runs/input_files.h"
#include "harness/runs/workspace.h"

namespace tearless::harness {

/// Waits while another process holds the lock.
LockFile lock_programs(const Workspace& workspace);
/// Nullopt while another process holds the lock.
std::optional<LockFile> try_lock_programs(const Workspace& workspace);

/// The name of a copy's folder: a hash of the names of its files and of their SHA-256.
std::string program_hash(const std::map<std::string, std::string>& sums);

/// One sentence if the training program must not be started: it is gone, or it is a copy in the workspace of which a
/// byte was changed. "" otherwise. Reads all bytes of a copy.
std::string fault_of_program(const Workspace& workspace, const std::filesystem::path& program);

/// Asks fault_of_program() again and again; a copy is read only if one of its files has changed since.
class ProgramCheck {
 public:
  std::string fault_of(const Workspace& workspace, const std::filesystem::path& program);

 private:
  std::map<std::filesystem::path, FileStamps> sound_;  // copy → the stamps with which it was found unchanged
};

}  // namespace tearless::harness
