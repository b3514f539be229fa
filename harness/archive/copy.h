// `tearless copy`: a copy of a workspace that may be in work, for another machine or as a backup.
//
//   1. The folders of sweeps, training programs and runs are copied to TARGET.partial. A run that is being trained is
//      left out: its files change, and the copy would take its attempt for alive. Its sweep still asks for it.
//   2. TARGET.partial is renamed to TARGET.
//   3. The database of the copy is made from its folders, as `tearless rebuild` does: a copied database would be of
//      another moment than the folders.
//
// A copy of results alone has no training programs, and of each run what tables, figures and `explain` are made of:
// settings, metrics, gradient norms, scores, DONE, outputs/*.stats, the records of attempts, and where there is no
// result the last line of the logs, which says why; of the harness's own files not who trained where (published.h).
// What it lacks stands in omitted.json (base/omitted.h). If TARGET ends in .tar.gz, it is packed into one file
// (archive.h).
//
// A copy that was killed leaves TARGET.partial, which the next one replaces, or a TARGET without a database, which
// `tearless rebuild` makes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/runs/workspace.h"

namespace tearless::harness {

struct CopyReport {
  int64_t runs = 0, sweeps = 0;
  std::vector<std::string> in_work;          // ids of the runs that were left out
  std::vector<std::string> with_paths = {};  // files of a copy of results alone in which an absolute path stays
};

/// Which of the files that only some views need a copy of results has of a run.
struct StatisticsFiles {
  bool gradient_norms = false;  // gradient_norms.f32
  bool sentences = false;       // outputs/*.stats
};
using NeededStatistics = std::map<std::string, StatisticsFiles>;  // by the id of a run; none of others

struct CopyOptions {
  bool results_only = false;  // must be true for an archive
  // Of results only: which of these files a sweep needs; those that no sweep of the copy needs are left out. Unset: all
  // are copied.
  std::function<NeededStatistics(const std::string& sweep)> needs = {};
  bool with_diff = false;                // of results only: with the grid.diff of each sweep (sweep_directory.h), too
  std::vector<std::string> sweeps = {};  // ids of those that are copied, with their runs; empty: all, and every run
  // Of an archive: writes what it has besides the results into the folder that is then packed, a workspace of its own.
  std::function<void(const Workspace&)> complete = {};
};

/// UserError if `target` exists and is not an empty folder, or lies in the workspace; and if something cannot be read
/// or written: then nothing is left of the copy.
CopyReport copy_workspace(const Workspace& workspace, const std::filesystem::path& target,
                          const CopyOptions& options = {});

}  // namespace tearless::harness
