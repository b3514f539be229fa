#include "harness/grants/publication.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/sealed_json.h"
#include "base/sys.h"
#include "harness/grants/work_folder.h"
#include "harness/runs/attempt_files.h"
#include "harness/runs/verdict.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

// The program has synced what it wrote; a copy has not been.
void sync_file(const fs::path& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail_errno("read", file);
  const int result = sys::fsync(fd);
  ::close(fd);
  if (result != 0) fail_errno("write", file);
}

// In `to`, folders and files of `from`, durably.
void publish_tree(const fs::path& from, const fs::path& to) {
  if (fs::is_symlink(from)) return;
  if (!fs::is_directory(from)) {
    put_file(from, to, /*link=*/true);
    return sync_file(to);
  }
  make_folders(to);
  for (const auto& entry : fs::directory_iterator(from)) {
    if (!is_temporary(entry.path().filename())) publish_tree(entry.path(), to / entry.path().filename());
  }
  sync_folder(to);
}

}  // namespace

bool publish(const RunDirectory& run, int64_t attempt) {
  const RunDirectory work = work_of(run, attempt);
  if (attempt != run.newest_attempt() || !fs::exists(work.root())) return false;
  const std::optional<Verdict> verdict = verdict_of_done(work);
  if (!verdict || !has_result(verdict->state)) return false;
  for (const auto& entry : fs::directory_iterator(work.root())) {
    const fs::path name = entry.path().filename();
    if (stays_behind(entry.path()) || entry.path() == work.checkpoints()) continue;
    publish_tree(entry.path(), run.root() / name);
  }
  // As the program left them: none that an earlier attempt had here, no unfinished one.
  for (const int64_t step : run.checkpoint_steps()) {
    if (!fs::exists(work.checkpoint(step))) remove_recursively(run.checkpoint(step));
  }
  for (const int64_t step : work.checkpoint_steps()) publish_tree(work.checkpoint(step), run.checkpoint(step));
  if (fs::exists(run.checkpoints())) sync_folder(run.checkpoints());
  sync_folder(run.root());
  publish_tree(work.done(), run.done());
  sync_folder(run.root());
  return true;
}

void end_grant(const RunDirectory& run, int64_t attempt, FailureClass failure, const std::string& reason) {
  write_atomically(run.attempt(attempt) / kEndedFile, sealed({{"class", name_of(failure)}, {"reason", reason}}));
}

void clear_old_work(const RunDirectory& run, int64_t from) {
  const bool has_result = fs::exists(run.done());
  for (int64_t attempt = 1, newest = run.newest_attempt(); attempt <= newest; ++attempt) {
    const fs::path folder = run.attempt(attempt);
    if (!fs::exists(folder / kEndedFile) || (!has_result && attempt >= from)) continue;
    std::vector<fs::path> folders;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.is_directory()) folders.push_back(entry.path());
    }
    for (const fs::path& work : folders) {
      // Renamed first: who looks for the state must not find half of it.
      const fs::path old = folder / ("old." + work.filename().string());
      rename_file(work, old);
      remove_recursively(old);
    }
  }
}

}  // namespace tearless::harness
