// The process that writes a workspace's database. It holds the workspace's lock, a file that other users cannot open,
// and says in a file beside it, which they can read, who it is and where it takes requests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/lock_file.h"
#include "base/process_name.h"
#include "harness/runs/workspace.h"

namespace tearless::harness {

/// What the file Workspace::writer() says. It stays when the process has ended, until the next one takes the lock.
struct Writer {
  ProcessName process = {};
  bool is_service = false;
  bool was_stopped = false;           // on request: those who wait for its work start no other one
  std::filesystem::path socket = {};  // of a service that takes requests; "": none
  uint64_t lock = 0;                  // inode of the file that it has locked
};

/// Nullopt without such a file, and where it is of another folder: a copy of a workspace has no writer.
std::optional<Writer> last_writer(const Workspace& workspace);

// REQUIRES: this process holds the lock.
void note_socket(const Workspace& workspace, const std::filesystem::path& socket);
void note_stop(const Workspace& workspace);

/// The last writer was a service that was stopped on request.
bool was_stopped(const Workspace& workspace);

/// True while a process holds the lock, also one whose lock file was removed.
bool has_writer(const Workspace& workspace);

/// UserError: an archive is only read.
[[noreturn]] void refuse_archive(const std::filesystem::path& archive);

/// Takes the lock. UserError, for a workspace that an archive was unpacked into, and, naming the holder's pid, if
/// another process holds it.
LockFile lock_for_writing(const Workspace& workspace, bool is_service = false);

/// UserError if the workspace is another user's, whose lock this one cannot take.
void require_own(const Workspace& workspace);

}  // namespace tearless::harness
