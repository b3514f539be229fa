#include "harness/store/writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/file_stamp.h"
#include "base/files.h"
#include "base/sealed_json.h"
#include "base/words.h"
#include "harness/store/workspace_format.h"

namespace tearless::harness {
namespace fs = std::filesystem;
using nlohmann::json;
namespace {

void note_writer(const Workspace& workspace, const Writer& writer) {
  replace_unsynced(workspace.writer(), sealed({{"pid", writer.process.pid},
                                               {"start_ticks", writer.process.start_ticks},
                                               {"boot_id", writer.process.boot_id},
                                               {"is_service", writer.is_service},
                                               {"was_stopped", writer.was_stopped},
                                               {"socket", writer.socket.string()},
                                               {"lock", writer.lock},
                                               {"folder", identity_of_file(workspace.index())}}));
}

// True if the last writer lives, and has locked another file than the one with inode `lock`: its lock file was removed
// or replaced.
bool holds_another(const Workspace& workspace, uint64_t lock) {
  const std::optional<Writer> writer = last_writer(workspace);
  return writer && writer->lock != lock && writer->process.is_alive();
}

}  // namespace

std::optional<Writer> last_writer(const Workspace& workspace) {
  const std::optional<json> record = read_sealed(workspace.writer());
  try {
    if (!record || record->at("folder") != json(identity_of_file(workspace.index()))) return std::nullopt;
    return Writer{.process = {record->at("pid"), record->at("start_ticks"), record->at("boot_id")},
                  .is_service = record->at("is_service"),
                  .was_stopped = record->at("was_stopped"),
                  .socket = record->at("socket").get<std::string>(),
                  .lock = record->at("lock")};
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

void note_socket(const Workspace& workspace, const fs::path& socket) {
  Writer writer = last_writer(workspace).value_or(Writer{.process = ProcessName::own(), .is_service = true});
  if (writer.socket == socket) return;
  writer.socket = socket;
  note_writer(workspace, writer);
}

void note_stop(const Workspace& workspace) {
  Writer writer = last_writer(workspace).value_or(Writer{.process = ProcessName::own(), .is_service = true});
  writer.was_stopped = true;
  note_writer(workspace, writer);
}

bool was_stopped(const Workspace& workspace) {
  const std::optional<Writer> writer = last_writer(workspace);
  return writer && writer->was_stopped;
}

bool has_writer(const Workspace& workspace) {
  return LockFile::is_held(workspace.lock()) || holds_another(workspace, identity_of_file(workspace.lock()).second);
}

void refuse_archive(const std::filesystem::path& archive) {
  const std::string word = shell_word(archive.string());
  fail(
      "{} is an archive, which commands only read; to work in a folder of the same results: tearless copy FOLDER "
      "--workspace {}",
      archive.string(), word);
}

LockFile lock_for_writing(const Workspace& workspace, bool is_service) {
  if (const auto archive = archive_of(workspace.root())) refuse_archive(*archive);
  make_folders(workspace.index());
  std::optional<LockFile> lock = LockFile::try_acquire(workspace.lock());
  if (!lock || holds_another(workspace, lock->inode())) {
    const std::optional<Writer> writer = last_writer(workspace);
    fail(
        "another tearless{} is writing to {}; wait for it, stop it, or choose another --workspace (commands that only "
        "read, such as tearless status, work meanwhile)",
        writer ? fmt::format(" (process {})", writer->process.pid) : "", workspace.root().string());
  }
  claim_index(workspace);
  note_writer(workspace, {.process = ProcessName::own(), .is_service = is_service, .lock = lock->inode()});
  return std::move(*lock);
}

void require_own(const Workspace& workspace) {
  if (::faccessat(AT_FDCWD, workspace.lock().c_str(), W_OK, AT_EACCESS) == 0 || errno != EACCES) return;
  fail("{} is another user's, who alone can change it; commands that only read work, or choose another --workspace",
       workspace.root().string());
}

}  // namespace tearless::harness
