#include "harness/archive/copy.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/omitted.h"
#include "harness/archive/archive.h"
#include "harness/archive/published.h"
#include "harness/folders/program_copies.h"
#include "harness/folders/rebuild.h"
#include "harness/folders/sweep_directory.h"
#include "harness/runs/attempt_files.h"
#include "harness/runs/launcher.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

void require_room_for(const Workspace& workspace, const fs::path& target) {
  std::error_code unreachable;
  if (has_archive_name(target)) {
    if (fs::exists(target, unreachable)) fail("{} exists already; remove it, or name another file", target.string());
  } else if (fs::exists(target, unreachable) && !(fs::is_directory(target) && fs::is_empty(target))) {
    fail("{} exists already; name a folder that does not, or an empty one", target.string());
  }
  const fs::path root = fs::weakly_canonical(workspace.root()), place = fs::weakly_canonical(fs::absolute(target));
  if (std::mismatch(root.begin(), root.end(), place.begin(), place.end()).first == root.end()) {
    fail("{} lies in the workspace {}; name a folder outside of it", target.string(), workspace.root().string());
  }
}

void write_copy_of(const fs::path& from, const fs::path& to) {
  const bool is_program = (fs::status(from).permissions() & fs::perms::owner_exec) != fs::perms::none;
  is_program ? write_program_unsynced(to, read_file(from)) : replace_unsynced(to, read_file(from));
}

// All but locks, which are a process's and not a copy's. Symbolic links are followed, but not below attempts/: there
// they lead from a work folder back to folders above it.
void copy_folder(const fs::path& from, const fs::path& to, bool follow_links = true) {
  if (!fs::exists(from)) return;
  make_folders_unsynced(to);
  for (const fs::directory_entry& entry : fs::directory_iterator(from)) {  // throws where it may not read
    const fs::path name = entry.path().filename();
    if (entry.is_symlink() && !follow_links) continue;
    if (entry.is_directory()) {
      copy_folder(entry.path(), to / name, follow_links && name != "attempts");
    } else if (name == "sweep.json" || name == "start.json" || name == "grant.json") {
      replace_unsynced(to / name, without_secrets(entry.path()));
    } else if (name == kDiffFile) {
      if (::access(entry.path().c_str(), R_OK) == 0) replace_unsynced(to / name, read_file(entry.path()), kDiffMode);
    } else if (entry.is_regular_file() && name != "lock") {
      write_copy_of(entry.path(), to / name);
    }
  }
}

// Whether a copy of results alone has this file of a run. `name`: relative to the run's folder.
bool is_of_results(const fs::path& name, bool has_result, StatisticsFiles statistics) {
  const std::string file = name.filename().string();
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, file) != names.end();
  };
  const std::string folder = name.begin()->string();
  if (folder == "attempts") {
    return is_one_of({"start.json", "exit.json", "measured.json", "arithmetic", kEndedFile}) ||
           (file == "log.txt" && !has_result);
  }
  if (folder == "outputs") return name.extension() == ".stats" && statistics.sentences;
  if (name != file) return false;
  return is_one_of({"run.toml", "metrics.jsonl", "scores.json", "DONE", "resume.json"}) ||
         (file == "gradient_norms.f32" && statistics.gradient_norms);
}

void copy_results(const RunDirectory& run, const fs::path& to, StatisticsFiles statistics) {
  make_folders_unsynced(to);
  const bool has_result = fs::exists(run.done());
  Omitted omitted = read_omitted(run);
  for (fs::recursive_directory_iterator at(run.root()), end; at != end; ++at) {
    const fs::directory_entry& entry = *at;
    const fs::path name = entry.path().lexically_relative(run.root());
    if (*name.begin() == "attempts" && at.depth() == 2) at.disable_recursion_pending();  // work folders
    if (!entry.is_regular_file() || name == "lock" || entry.path() == run.omitted()) continue;
    if (is_of_results(name, has_result, statistics)) {
      make_folders_unsynced((to / name).parent_path());
      replace_unsynced(to / name, published_file(run, name));
    } else if (*name.begin() != "attempts" || name.filename() == "log.txt") {  // others may be called as a machine is
      omitted[name.string()] = {.sha256 = sha256_of_file(entry.path()),
                                .bytes = static_cast<int64_t>(entry.file_size())};
    }
  }
  if (const RunDirectory work = folder_of(run, run.newest_begun_attempt()); work.root() != run.root()) {
    for (const fs::path& file : {work.metrics(), work.gradient_norms()}) {
      const bool is_wanted = is_of_results(file.filename(), has_result, statistics);
      if (is_wanted && fs::exists(file)) write_copy_of(file, to / file.filename());
    }
  }
  write_omitted(run, omitted, to);
}

// False if the run is, or has meanwhile begun to be, trained.
bool copy_run(const RunDirectory& run, const fs::path& to, bool results_only, StatisticsFiles statistics) {
  if (is_alive(run)) return false;
  const int64_t newest = run.newest_attempt();
  try {
    results_only ? copy_results(run, to, statistics) : copy_folder(run.root(), to);
  } catch (const std::exception&) {  // such as a checkpoint that a new attempt has removed
    if (!is_alive(run) && run.newest_attempt() == newest) throw;
  }
  const bool is_still = !is_alive(run) && run.newest_attempt() == newest;
  if (!is_still) remove_recursively(to);
  return is_still;
}

CopyReport copy_folders(const Workspace& workspace, const fs::path& to, const CopyOptions& options) {
  CopyReport report;
  std::set<std::string> wanted;  // runs of the sweeps
  NeededStatistics needed;
  {
    const LockFile no_submission = lock_programs(workspace);
    if (!options.results_only) copy_folder(workspace.programs(), to / "programs");
    for (const std::string& sweep : options.sweeps.empty() ? folders_in(workspace.sweeps()) : options.sweeps) {
      if (options.results_only) {
        std::ranges::move(publish_sweep(workspace, sweep, Workspace(to), options.with_diff),
                          std::back_inserter(report.with_paths));
      } else {
        copy_folder(workspace.sweep(sweep), to / "sweeps" / sweep);
      }
      if (options.needs) {
        for (const auto& [run, files] : options.needs(sweep)) {
          needed[run].gradient_norms |= files.gradient_norms;
          needed[run].sentences |= files.sentences;
        }
      }
      if (options.sweeps.empty()) continue;
      for (const Run& run : read_sweep(workspace, sweep).runs) wanted.insert(run.id);
    }
  }
  for (const std::string& id : folders_in(workspace.runs())) {
    if (!options.sweeps.empty() && !wanted.contains(id)) continue;
    const RunDirectory run = workspace.run(id);
    // What a run that is about to begin has, or a kill before its first attempt leaves.
    if (!fs::exists(run.settings()) && run.newest_attempt() == 0 && !fs::exists(run.done())) continue;
    const StatisticsFiles statistics = options.needs ? needed[id] : StatisticsFiles{true, true};
    const RunDirectory copy(to / "runs" / id);
    if (!copy_run(run, copy.root(), options.results_only, statistics)) {
      report.in_work.push_back(id);
      continue;
    }
    ++report.runs;
    const std::string settings = options.results_only ? read_if_there(copy.settings()).value_or("") : "";
    if (without_folders(settings) != settings) report.with_paths.push_back(fmt::format("runs/{}/run.toml", id));
  }
  return report;
}

// A folder of results → the archive of it. What the archive's readers would refuse is refused here.
void make_archive(const fs::path& folder, const fs::path& target, const CopyOptions& options, CopyReport& report) {
  const RebuildReport restored = rebuild(Workspace(folder));
  if (!restored.passed_over.empty()) fail("{}", restored.passed_over.front());
  report.sweeps = restored.sweeps;
  if (options.complete) options.complete(Workspace(folder));
  write_atomically(target, pack(folder));
  remove_recursively(folder);
}

}  // namespace

CopyReport copy_workspace(const Workspace& workspace, const fs::path& target, const CopyOptions& options) {
  require_room_for(workspace, target);
  const fs::path partial = fs::absolute(target).lexically_normal().string() + ".partial";
  CopyReport report;
  try {
    remove_recursively(partial);
    make_folders(partial);
    report = copy_folders(workspace, partial, options);
    if (has_archive_name(target)) {
      make_archive(partial, target, options, report);
      return report;
    }
    ::sync();
    rename_file(partial, target);  // in the place of an empty folder, too
  } catch (const std::exception& error) {
    remove_what_is_left_of(partial);
    fail("cannot copy {} to {}: {}", workspace.root().string(), target.string(), error.what());
  }
  report.sweeps = rebuild(Workspace(target)).sweeps;
  return report;
}

}  // namespace tearless::harness
