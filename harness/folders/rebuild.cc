#include "harness/folders/rebuild.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/files.h"
#include "base/lock_file.h"
#include "base/print.h"
#include "base/sealed_json.h"
#include "base/words.h"
#include "harness/folders/sweep_directory.h"
#include "harness/runs/launcher.h"
#include "harness/runs/policy.h"
#include "harness/store/record.h"
#include "harness/store/store.h"
#include "harness/store/workspace_format.h"
#include "harness/store/writer.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

// SQLite finds its side files by the database's name. It would replay a log into a database that the log does not
// belong to, and a database without its log may lack transactions. A kill between any two renames must cause neither.
constexpr const char* kSideFiles[] = {"-wal", "-shm", "-journal"};

void move_if_there(const fs::path& from, const fs::path& to) {
  if (fs::exists(from)) rename_file(from, to);
}

void move_side_files(const fs::path& from, const fs::path& to) {
  for (const char* side : kSideFiles) move_if_there(from.string() + side, to.string() + side);
}

// Reports an attempt's damaged files. The rest of the run is restored without them.
void note_damaged_records(const RunDirectory& run, int64_t attempt, std::vector<std::string>& passed_over) {
  const size_t before = passed_over.size();
  for (const char* name : {"start.json", "exit.json", "measured.json"}) {
    const fs::path file = run.attempt(attempt) / name;
    if (fs::exists(file) && !read_sealed(file)) passed_over.push_back(fmt::format("{} is damaged", file.string()));
  }
  if (passed_over.size() > before) return;
  if (const std::string changed = changed_attempt_file(run, attempt); !changed.empty()) {
    passed_over.push_back(fmt::format("{} is not what was written", (run.root() / changed).string()));
  }
}

void restore_run(Store& store, const Workspace& workspace, const std::string& id,
                 std::vector<std::string>& passed_over) {
  const RunDirectory run = workspace.run(id);
  const std::string settings = read_file(run.settings());
  if (run_id(settings) != id) {
    fail("{} was changed by hand: its text no longer has the id {}", run.settings().string(), id);
  }
  store.put_run({.id = id, .settings = settings});

  for (int64_t attempt = 1, last = run.newest_attempt(); attempt <= last; ++attempt) {
    note_damaged_records(run, attempt, passed_over);
  }
  const int64_t newest = run.newest_begun_attempt();
  // The newest attempt was granted, and nobody has begun it: the service adopts it.
  const bool awaits_worker = is_granted(run) && run.newest_attempt() > newest;
  for (int64_t attempt = 1; attempt <= newest; ++attempt) {
    if (!run.has_begun(attempt)) continue;
    if (attempt < newest || awaits_worker) record_end(store, workspace, id, attempt, verdict_of_exit(run, attempt));
  }
  if (awaits_worker || (newest == 0 && !fs::exists(run.done()))) return;
  store.move(id, RunState::kQueued, RunState::kRunning);
  if (is_alive(run)) return record_start(store, workspace, id, newest);

  const Verdict verdict = verdict_of(run, newest);
  record_end(store, workspace, id, newest, verdict);
  if (verdict.state == RunState::kFailed && fs::exists(run.done())) passed_over.push_back(verdict.reason);
  const bool finished = verdict.state != RunState::kFailed || verdict.failure == FailureClass::kSettings;
  store.move(id, RunState::kRunning, finished ? verdict.state : RunState::kQueued, verdict.failure, verdict.reason,
             verdict.step);
}

void fail_derived(Store& store, const std::string& id) {
  for (const std::string& derived : store.derived_from(id)) {
    if (store.known_run(derived).state != RunState::kQueued) continue;
    store.move(derived, RunState::kQueued, RunState::kFailed, FailureClass::kNone, origin_reason(RunState::kFailed));
    fail_derived(store, derived);
  }
}

// A run that has had its tries stays failed, as the scheduler left it, and with it those that derive from it.
void restore_failed(Store& store) {
  for (const std::string& id : store.ids_in(RunState::kQueued)) {
    const RunRecord run = store.known_run(id);
    if (run.failure == FailureClass::kNone) continue;
    std::vector<Sweep> sweeps;
    for (const std::string& sweep : store.sweeps_of(id)) sweeps.push_back(*store.sweep(sweep));
    const int tries = tries_of(sweeps, run.failure);
    if (tries == kNotCounted || store.failures_of(id, run.failure) < tries) continue;
    store.move(id, RunState::kQueued, RunState::kFailed, run.failure, run.reason, run.step);
  }
  for (const std::string& id : store.ids_in(RunState::kFailed)) fail_derived(store, id);
}

RebuildReport restore_all(Store& store, const Workspace& workspace) {
  RebuildReport report;
  const auto try_to = [&report](const auto& step) {
    try {
      step();
    } catch (const UserError& error) {
      report.passed_over.emplace_back(error.what());
    }
  };
  for (const std::string& id : folders_in(workspace.runs())) {
    try_to([&] {
      store.in_savepoint([&] { restore_run(store, workspace, id, report.passed_over); });
      ++report.runs;
    });
  }
  std::vector<Sweep> sweeps;
  for (const std::string& id : folders_in(workspace.sweeps())) {
    try_to([&] { sweeps.push_back(read_sweep(workspace, id)); });
  }
  // In the order of submission, because submit() cancels waiting runs that a newer sweep of the grid replaced. Runs
  // without a folder become queued. Last those that no service had submitted when it was killed.
  const auto order = [](const Sweep& sweep) {
    const int64_t number = sweep.submission.newest;
    return std::tuple(number == 0, number, sweep.submitted_at);
  };
  std::stable_sort(sweeps.begin(), sweeps.end(), [&](const Sweep& a, const Sweep& b) { return order(a) < order(b); });
  for (const Sweep& sweep : sweeps) store.submit(sweep);
  restore_failed(store);
  report.sweeps = static_cast<int64_t>(sweeps.size());
  return report;
}

void say(const RebuildReport& report, const Workspace& workspace, const char* why) {
  notice(fmt::format("{} {}: rebuilt from {}", workspace.database().string(), why, counted(report.runs, "run folder")));
  for (const std::string& sentence : report.passed_over) notice(fmt::format("skipped: {}", sentence));
}

void require_same_results(const Workspace& workspace, const fs::path& fresh) {
  constexpr size_t kMaxNamed = 3;
  const std::vector<std::string> lost = lost_between(workspace.database(), fresh);
  if (lost.empty()) return;
  fail(
      "{} is of an earlier build, and the folders do not give what it has of {}; restore them, or make it from them as "
      "they are, which keeps the old file: {}",
      workspace.database().string(), some_of(lost, kMaxNamed, ", "), rebuild_command(workspace.root()));
}

/// REQUIRES: the lock is held.
RebuildReport rebuild_locked(const Workspace& workspace, bool keeps_results) {
  const fs::path fresh = workspace.database().string() + ".new";
  remove_file(fresh);
  for (const char* side : kSideFiles) remove_file(fresh.string() + side);
  RebuildReport report;
  Store::make(fresh, [&](Store& store) { report = restore(store, workspace); });
  if (keeps_results) require_same_results(workspace, fresh);
  // The name for the old database and its side files. The side files may exist although the database is gone.
  const std::string before = workspace.database().string() + ".before-rebuild";
  std::string kept = before;
  for (int copy = 2; fs::exists(kept); ++copy) kept = fmt::format("{}-{}", before, copy);
  if (fs::exists(workspace.database())) report.kept = kept;
  // Until the last rename there is no database. After a crash here the next `run` or `rebuild` reads the folders again,
  // and SQLite discards a log without a database.
  move_if_there(workspace.database(), kept);
  move_side_files(workspace.database(), kept);
  move_side_files(fresh, workspace.database());
  rename_file(fresh, workspace.database());
  sync_folder(workspace.index());
  return report;
}

}  // namespace

RebuildReport restore(Store& store, const Workspace& workspace) {
  RebuildReport report;
  store.in_transaction([&] { report = restore_all(store, workspace); });  // in one: each waits for the disk
  return report;
}

RebuildReport rebuild(const Workspace& workspace) {
  if (!fs::is_directory(workspace.root())) {
    fail("there is no workspace {} to rebuild; name one with --workspace", workspace.root().string());
  }
  require_usable(workspace);
  const LockFile lock = lock_for_writing(workspace);
  return rebuild_locked(workspace, /*keeps_results=*/false);
}

void rebuild_if_lost(const Workspace& workspace) {
  if (fs::exists(workspace.database()) || entries_of(workspace.runs()).empty()) return;
  say(rebuild(workspace), workspace, "was missing");
}

void rebuild_if_earlier(const Workspace& workspace) {
  constexpr int kBetweenLooks = 100;  // ms
  constexpr int kTries = 10;          // where another takes the lock first, or has no database
  if (workspace.is_apart() && !is_own_index(workspace)) return;
  for (int tries = 1;; ::poll(nullptr, 0, kBetweenLooks)) {
    const bool is_earlier = has_earlier_database(workspace), is_written = has_writer(workspace);
    // A rebuild that is under way has none for a moment; another writer may never have one.
    if (!is_earlier && (!is_written || fs::exists(workspace.database()) || tries++ == kTries)) return;
    const std::optional<Writer> writer = last_writer(workspace);
    const bool is_service = is_written && writer && writer->is_service;
    if (is_service && !is_earlier) return;
    if (is_service) {
      fail("a service of an earlier build works in {}; to change to this one: tearless stop{}, then the command again",
           workspace.root().string(), workspace_option(workspace.root()));
    }
    if (is_written) continue;
    std::optional<LockFile> lock;
    try {
      lock.emplace(lock_for_writing(workspace));
    } catch (const UserError&) {
      if (tries++ == kTries) throw;
      continue;
    }
    if (has_earlier_database(workspace))
      say(rebuild_locked(workspace, /*keeps_results=*/true), workspace, "is of an earlier build");
    return;
  }
}

}  // namespace tearless::harness
