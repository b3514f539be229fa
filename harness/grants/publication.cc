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
#include "base/time.h"
#include "harness/grants/work_folder.h"
#include "harness/runs/attempt_files.h"
#include "harness/runs/resume_check.h"
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
  for (const fs::path& entry : entries_of(from)) {
    if (!is_temporary(entry.filename().string())) publish_tree(entry, to / entry.filename());
  }
  sync_folder(to);
}

// With the result of each older attempt, whose machine was given up and trained on; the newest outcome becomes the
// run's resume.json. Not where results may differ: those of another build or another kind of device, if they do.
void compare_copies(const RunDirectory& run, int64_t attempt) {
  for (int64_t older = 1; older < attempt; ++older) {
    const RunDirectory copy = work_of(run, older);
    const std::optional<Verdict> verdict = verdict_of_done(copy);
    if (!verdict || !has_result(verdict->state)) continue;
    const std::vector<std::string> differences = differences_between(copy, run);
    const bool is_like = origin_of(read_attempt(run, older)) == origin_of(read_attempt(run, attempt));
    if (!is_like && !differences.empty()) continue;
    const ResumeCheck check{.outcome = differences.empty() ? "equal" : "different",
                            .verified_at = utc_now(),
                            .seed = 0,
                            .stops = {},
                            .differences = differences,
                            .attempt = older};
    write_atomically(run.resume_check(), sealed(check));
  }
}

}  // namespace

bool publish(const RunDirectory& run, int64_t attempt) {
  const RunDirectory work = work_of(run, attempt);
  if (attempt != run.newest_attempt() || !fs::exists(work.root())) return false;
  const std::optional<Verdict> verdict = verdict_of_done(work);
  if (!verdict || !has_result(verdict->state)) return false;
  for (const fs::path& entry : entries_of(work.root())) {
    if (stays_behind(entry) || entry == work.checkpoints()) continue;
    publish_tree(entry, run.root() / entry.filename());
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
  compare_copies(run, attempt);
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
    for (const fs::directory_entry& work : entries_of(folder)) {
      if (!work.is_directory()) continue;
      // Renamed first: who looks for the state must not find half of it.
      const fs::path old = folder / ("old." + work.path().filename().string());
      rename_file(work, old);
      remove_recursively(old);
    }
  }
}

}  // namespace tearless::harness
