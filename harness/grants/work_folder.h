// The folder in which a worker makes one attempt: attempts/<n>/work.<worker>/<id>, a run directory in itself, so that
// an attempt which was replaced can go on writing and harms nobody (fencing by the attempt's number and the worker's
// name: even where a run was deleted and its numbers begin again, no two processes have one path).
//
//   work.<worker>/<id>/           in runs/<id>/attempts/3/
//     run.toml local.toml         from the grant
//     lock        → a file on a disk of the machine that trains: flock means nothing across machines
//     attempts/3  → ../../..      runs/<id>/attempts/3: log, start.json and exit.json lie where all readers look
//     checkpoints/ metrics.jsonl  a copy of the run's newest state
//   work.<worker>/<of>  → ../../../../<of>   each run from which it derives, where its program looks
//
// Trap: attempts/3 leads back to a folder above it. Whoever visits all that is in a run folder must not follow links.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/run_directory.h"
#include "harness/grants/grant.h"
#include "harness/runs/workspace.h"

namespace tearless::harness {

/// Makes the folder, complete or not at all: it is made as making.<who> and renamed. `who`: the worker that has claimed
/// the grant. `lock`: the file
/// to lock. UserError, one sentence, if that fails.
RunDirectory make_work_folder(const Workspace& workspace, const Grant& grant, std::string_view who,
                              const std::filesystem::path& lock);

/// Copies what a run needs to go on: everything but settings, lock, attempts, DONE, symbolic links and temporary files.
/// It does not choose a checkpoint nor cut a file: the program does that whenever it begins, so a copy that is torn
/// (its writer may be alive, its sizes stale) costs updates and no result. In `to`, what is there is replaced, entry
/// by entry. Checkpoints come first: metrics.jsonl is then as long as they need. Those with a sealed manifest are
/// linked: nobody changes them.
void copy_state(const RunDirectory& from, const RunDirectory& to);

/// The text of local.toml with absolute paths in place of those that start from `folder` and name something there.
std::string absolute_paths_in(const std::string& local, const std::filesystem::path& folder);

/// True for an entry of a run directory itself that is an attempt's own, and part of neither state nor result.
bool stays_behind(const std::filesystem::path& entry);
/// Has the bytes of `from` in `to`, which is replaced: by a hard link, or where `link` is false or links are not
/// possible by a copy. A missing `from` is no error: it was removed meanwhile. REQUIRES: nobody else writes to `to`.
void put_file(const std::filesystem::path& from, const std::filesystem::path& to, bool link);

}  // namespace tearless::harness
