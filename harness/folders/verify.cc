#include "harness/folders/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/lock_file.h"
#include "base/omitted.h"
#include "base/sealed_json.h"
#include "base/words.h"
#include "harness/folders/program_copies.h"
#include "harness/folders/rebuild.h"
#include "harness/folders/sweep_directory.h"
#include "harness/runs/attempt_files.h"
#include "harness/runs/launcher.h"
#include "harness/runs/verdict.h"
#include "harness/store/store.h"
#include "harness/store/workspace_format.h"
#include "harness/store/writer.h"

namespace tearless::harness {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

// --- a folder against its own checksums -----------------------------------------------------------------------------

// What is wrong with a checkpoint of a run; "" if nothing is. Checkpoints of other programs may name no run.
std::string damage_of(const fs::path& checkpoint, const std::string& run) {
  const fs::path manifest = checkpoint / "manifest.json";
  if (!fs::exists(manifest)) return fs::exists(checkpoint / "state.bin") ? "manifest.json is missing" : "";
  const std::optional<json> record = read_sealed(manifest);
  if (!record) return "manifest.json is damaged";
  if (const json writer = record->value("run", json(run)); writer != run) return "it is of the run " + writer.dump();
  const json files = record->value("files", json::object());
  for (const auto& [name, checksum] : files.items()) {
    if (!fs::exists(checkpoint / name) || checksum != sha256_of_file(checkpoint / name)) {
      return name + " is not what was written";
    }
  }
  return "";
}

// How `file` differs from what the checkpoint recorded of its beginning under `name`; "" if it does not. Checkpoints of
// other programs, and of older ones, may record nothing.
std::string damage_of_beginning(const fs::path& file, const fs::path& checkpoint, const std::string& name) {
  const std::optional<json> record = read_sealed(checkpoint / "manifest.json");
  const json state = record ? record->value("state", json::object()) : json::object();
  const json bytes = state.is_object() ? state.value(name + "_bytes", json()) : json();
  if (!bytes.is_number_unsigned()) return "";
  const std::string text = read_if_there(file).value_or("");
  const auto length = bytes.get<size_t>();
  if (text.size() < length) return file.filename().string() + " is shorter than it was";
  const json checksum = state.value(name + "_sha256", json());
  const bool changed = checksum.is_string() && checksum != sha256(std::string_view(text).substr(0, length));
  return changed ? fmt::format("the beginning of {} is not what was written", file.filename().string()) : "";
}

std::string damage_of_beginnings(const RunDirectory& run, const fs::path& checkpoint) {
  const std::string damage = damage_of_beginning(run.metrics(), checkpoint, "metrics");
  return damage.empty() ? damage_of_beginning(run.gradient_norms(), checkpoint, "gradient_norms") : damage;
}

// What is wrong with a model.safetensors; "" if nothing is. tearless-engine writes a checksum of the tensors into the
// header. A file without one, of whatever form, is another program's.
std::string damage_of_model(const fs::path& file) {
  constexpr uint64_t kMaxHeader = 100 << 20;  // by the format
  std::ifstream in(file, std::ios::binary);
  uint64_t length = 0;
  std::string header;
  if (in.read(reinterpret_cast<char*>(&length), sizeof length) && length <= kMaxHeader) {
    header.resize(length);
    in.read(header.data(), static_cast<std::streamsize>(length));
  }
  const json read = in ? json::parse(header, nullptr, /*allow_exceptions=*/false) : json();
  const json checksum = read.is_object() ? read.value(json::json_pointer("/__metadata__/sha256"), json()) : json();
  if (!checksum.is_string()) return "";
  Sha256 tensors;
  for (std::string bytes(1 << 20, '\0'); in;) {
    in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    tensors.update(std::string_view(bytes).substr(0, static_cast<size_t>(in.gcount())));
  }
  return checksum == tensors.hex() ? "" : "its tensors are not what was written";
}

std::string error_of_omitted(const RunDirectory& run) {
  try {
    read_omitted(run);
    return "";
  } catch (const UserError& error) {
    return error.what();
  }
}

class Verification {
 public:
  /// `alone`: this process holds the writer's lock. Else a service may be active, or begin to be, during the check.
  Verification(const Workspace& workspace, bool alone)
      : workspace_(workspace), place_(" --workspace " + workspace.root().string()), alone_(alone) {}

  VerifyReport report() {
    open_store();
    for (const std::string& id : folders_in(workspace_.runs())) check_run(id);
    look_for_lost_folders();
    for (const std::string& id : folders_in(workspace_.sweeps())) check_sweep(id);
    report_.sweeps = static_cast<int64_t>(sweeps_.size());
    if (store_) look_for_lost_sweeps();
    keep_what_is_at_stake();
    return std::move(report_);
  }

 private:
  void add(Difference difference) { report_.differences.push_back(std::move(difference)); }
  void blame_database(const std::string& subject, const std::string& what) {
    add({.subject = subject, .what = what, .todo = "tearless verify --repair" + place_, .remedy = Remedy::kRebuild});
  }

  void open_store() {
    if (!fs::exists(workspace_.database())) {
      if (!folders_in(workspace_.runs()).empty())
        blame_database("database", "it is missing, but there are run folders");
      return;
    }
    try {
      Examined found = examine_database(workspace_.database());
      if (!found.damage.empty()) return blame_database("database", found.damage.front());
      for (const std::string& table : found.changed) blame_database("database", table + " are not what was recorded");
      with_result_ = std::move(found.with_result);
      store_ = std::move(found.store);
    } catch (const UserError& error) {  // another program's file: the message says what to do
      add({.subject = "database", .what = error.what(), .todo = "tearless rebuild" + place_});
    }
  }

  bool is_served() const { return !alone_ && has_writer(workspace_); }

  // --- runs ----------------------------------------------------------------------------------------------------------

  std::string rerun(const std::string& id) const {
    const fs::path folder = workspace_.run(id).root();
    return fmt::format("restore {} from a copy, or train the run again: {}; {}", folder.string(),
                       remove_command(folder), run_command());
  }
  // A service could be about to use what is removed.
  std::string remove_command(const fs::path& folder) const {
    return (is_served() ? "tearless stop" + place_ + "; " : "") + "rm -r " + folder.string();
  }
  std::string run_command() const { return "tearless run GRID" + place_; }

  // A service writes into the folder of a run that it starts before the run's supervisor takes the lock.
  bool is_in_use(const RunDirectory& run) const {
    if (is_alive(run)) return true;
    const std::optional<RunRecord> known = store_ ? store_->run(run.id()) : std::nullopt;
    return known && known->state == RunState::kRunning && is_served();
  }

  void check_run(const std::string& id) {
    const RunDirectory run = workspace_.run(id);
    if (is_in_use(run)) return;
    const int64_t newest = run.newest_attempt();
    const auto before = std::ssize(report_.differences);
    const size_t notes = report_.notes.size();
    try {
      check_unused(run);
    } catch (const UserError&) {
      if (fs::exists(run.root())) throw;
    }
    // What an attempt that began meanwhile, or `delete`, does to the folder is no damage.
    if (is_in_use(run) || run.newest_attempt() != newest || !fs::exists(run.root())) {
      report_.differences.erase(report_.differences.begin() + before, report_.differences.end());
      report_.notes.resize(notes);
    } else {
      ++report_.runs;
    }
  }

  void check_unused(const RunDirectory& run) {
    const std::string subject = "run " + run.id();
    const std::optional<RunRecord> known = store_ ? store_->run(run.id()) : std::nullopt;
    const size_t before = report_.differences.size();
    check_folder(run, subject, known);
    const bool sound = report_.differences.size() == before;
    check_checkpoints(run, subject);
    check_model(run, subject);
    check_resume(run, subject);
    if (!store_) return;
    if (!known) {
      if (sound && !is_served()) blame_database(subject, "it is not in the database");
      return;
    }
    if (known->state == RunState::kRunning || (!is_inactive(known->state) && is_served())) return;
    compare(run, subject, *known, sound);
  }

  // As it is now: a run that was deleted or queued again since the check began has none.
  bool has_result_recorded(const std::string& run) const {
    return store_ ? store_->recorded_result(run).has_value() : with_result_.contains(run);
  }

  void check_folder(const RunDirectory& run, const std::string& subject, const std::optional<RunRecord>& known) {
    const bool at_stake = has_result_recorded(run.id());
    const auto blame_folder = [&](const std::string& what) {
      add({.subject = subject, .what = what, .todo = rerun(run.id()), .result_at_stake = at_stake});
    };
    if (const std::string edited = error_of_omitted(run); !edited.empty()) return blame_folder(edited);
    if (!fs::exists(run.settings())) {
      // A kill before the first attempt leaves an empty folder.
      const bool has_begun = run.newest_attempt() > 0 || fs::exists(run.done());
      if (has_begun || !known || at_stake) blame_folder("its folder has no run.toml");
      return;
    }
    const std::optional<Verdict> done = verdict_of_done(run);
    if (done && done->state == RunState::kFailed) {
      blame_folder(done->reason);
    } else if (run_id(read_file(run.settings())) != run.id()) {
      blame_folder("run.toml is not what was written: its text has another id");
    } else if (const auto recorded = store_ ? store_->recorded_result(run.id()) : std::nullopt) {
      const std::string changed = changed_file(*recorded, run);
      if (!changed.empty()) blame_folder(changed + " is not what the run had written");
    }
    for (int64_t attempt = 1, newest = run.newest_attempt(); attempt <= newest; ++attempt) {
      bool is_damaged = false;
      for (const char* name : {"start.json", "exit.json", "measured.json"}) {
        const fs::path file = run.attempt(attempt) / name;
        if (!fs::exists(file) || read_sealed(file)) continue;
        is_damaged = true;
        add({.subject = subject,
             .what = fmt::format("attempts/{}/{} is damaged", attempt, name),
             .todo = fmt::format("restore {} from a copy; the run's numbers do not depend on it", file.string()),
             .result_at_stake = at_stake});
      }
      if (const std::string changed = changed_attempt_file(run, attempt); !changed.empty() && !is_damaged) {
        add({.subject = subject,
             .what = fmt::format("{} is not what was written", changed),
             .todo =
                 fmt::format("restore {} from a copy; the scores do not depend on it", (run.root() / changed).string()),
             .result_at_stake = at_stake});
      }
      if (const std::string missing = missing_attempt_record(run, attempt); !missing.empty()) {
        report_.notes.push_back(fmt::format(
            "{}: {} is gone, or its supervisor was killed: machine, program and what was measured of that attempt are "
            "not known, or not checked",
            subject, missing));
      }
    }
  }

  void check_checkpoints(const RunDirectory& run, const std::string& subject) {
    bool older_is_sound = false;
    for (const int64_t step : run.checkpoint_steps()) {
      const fs::path folder = run.checkpoint(step);
      std::string damage = damage_of(folder, run.id());
      if (damage.empty() && !fs::exists(run.done())) damage = damage_of_beginnings(run, folder);
      if (damage.empty()) {
        older_is_sound = true;
        continue;
      }
      const std::string what = fmt::format("checkpoints/{}: {}", folder.filename().string(), damage);
      if (older_is_sound) {
        add({.subject = subject,
             .what = what,
             .todo = "tearless verify --repair" + place_,
             .remedy = Remedy::kMoveToDamaged,
             .checkpoint = folder.string()});
      } else {
        add({.subject = subject,
             .what = what + ", and there is no older one",
             .todo = fmt::format("restore it from a copy, or train the run from the start: {}; {}",
                                 remove_command(folder), run_command())});
      }
    }
  }

  // DONE does not name the model, so that it may be deleted. It has a checksum of its own (docs/statistics_files.md).
  void check_model(const RunDirectory& run, const std::string& subject) {
    if (!fs::exists(run.model())) return;
    const std::string damage = damage_of_model(run.model());
    if (damage.empty()) return;
    add({.subject = subject,
         .what = "model.safetensors: " + damage,
         .todo = fmt::format("restore {} from a copy, or train the run again: tearless delete {}{}; {}",
                             run.model().string(), run.id(), place_, run_command())});
  }

  void check_resume(const RunDirectory& run, const std::string& subject) {
    try {
      read_resume_check(run);
    } catch (const UserError&) {
      add({.subject = subject,
           .what = "resume.json is damaged",
           .todo = fmt::format("rm {}; tearless verify-resume {}{}; the run's numbers do not depend on it",
                               run.resume_check().string(), run.id(), place_)});
    }
  }

  // --- the database against a folder ---------------------------------------------------------------------------------

  void compare(const RunDirectory& run, const std::string& subject, const RunRecord& known, bool sound) {
    // If the folder is damaged too, the check cannot tell which of the two is right.
    const auto blame = [&](const std::string& what) {
      if (sound) return blame_database(subject, what);
      add({.subject = subject, .what = what, .todo = "first repair its folder, as said above"});
    };
    const std::optional<Verdict> done = verdict_of_done(run);
    if (done && has_result(done->state) && !has_result(known.state)) {
      blame(fmt::format("the database says {}, its folder {}", name_of(known.state), name_of(done->state)));
    }
    if (store_->is_outdated(known)) {
      add({.subject = subject,
           .what = "it is stale: the run from which it derives was trained again, with another result",
           .todo = run_command()});
    }
    if (attempts_in(run) != attempts_recorded(known.id)) {
      blame("the database and attempts/ differ");  // then the metrics differ for the same reason
    } else if (!has_metrics_of(run)) {
      blame("the database holds other metrics than metrics.jsonl");
    }
  }

  static std::set<int64_t> attempts_in(const RunDirectory& run) {
    std::set<int64_t> numbers;
    for (int64_t attempt = 1, newest = run.newest_begun_attempt(); attempt <= newest; ++attempt) {
      if (run.has_begun(attempt)) numbers.insert(attempt);
    }
    return numbers;
  }

  std::set<int64_t> attempts_recorded(const std::string& id) const {
    std::set<int64_t> numbers;
    for (const AttemptRecord& attempt : store_->attempts_of(id)) numbers.insert(attempt.number);
    return numbers;
  }

  bool has_metrics_of(const RunDirectory& run) const {
    const auto equal = [](const MetricLine& a, const MetricLine& b) {
      const bool is_one_value = a.value == b.value || (std::isnan(a.value) && std::isnan(b.value));
      return is_one_value && std::tie(a.position, a.step, a.name) == std::tie(b.position, b.step, b.name);
    };
    try {
      const RunDirectory folder = folder_of(run, run.newest_begun_attempt());
      return std::ranges::equal(read_metrics(folder, 0).lines, store_->metrics_of(run.id()), equal);
    } catch (const UserError&) {  // they are not what was recorded
      return false;
    }
  }

  // A folder that is missing because `tearless delete` was interrupted is not lost.
  bool is_being_deleted(const std::string& run) const {
    const std::vector<std::string> sweeps = folders_in(workspace_.deleted());
    return std::any_of(sweeps.begin(), sweeps.end(),
                       [&](const std::string& sweep) { return fs::exists(workspace_.deleted() / sweep / run); });
  }

  void look_for_lost_folders() {
    for (const std::string& id : with_result_) {
      if (fs::exists(workspace_.run(id).root()) || is_being_deleted(id) || !has_result_recorded(id)) continue;
      add({.subject = "run " + id,
           .what = "the database has its result, but its folder is missing",
           .todo = fmt::format("restore {} from a copy, or train it again: {}", workspace_.run(id).root().string(),
                               run_command()),
           .result_at_stake = true});
    }
  }

  // --- sweeps --------------------------------------------------------------------------------------------------------

  void check_sweep(const std::string& id) {
    const std::string subject = "sweep " + id;
    sweeps_.insert(id);
    try {
      const Sweep frozen = read_sweep(workspace_, id);
      frozen_grid(workspace_, id);
      check_program(frozen, subject);
      if (store_ && !store_->sweep(id) && !is_served()) blame_database(subject, "it is not in the database");
    } catch (const UserError& error) {
      if (is_being_written(id) || !fs::exists(workspace_.sweep(id))) return;
      add({.subject = subject,
           .what = error.what(),
           .todo = fmt::format("{}; {}", remove_command(workspace_.sweep(id)), run_command())});
    }
  }

  // A submission writes the folder under this lock. It may have ended since the folder was read.
  bool is_being_written(const std::string& sweep) const {
    if (store_ && store_->sweep(sweep)) return false;
    if (LockFile::is_held(workspace_.programs_lock())) return true;
    try {
      read_sweep(workspace_, sweep);
      frozen_grid(workspace_, sweep);
      return true;
    } catch (const UserError&) {
      return false;
    }
  }

  bool is_unfinished(const std::string& sweep) const {
    const std::vector<RunState> unfinished = {RunState::kQueued, RunState::kRunning, RunState::kHeld,
                                              RunState::kWaitingData};
    return store_ && !store_->runs_of(sweep, unfinished).empty();
  }

  // Results that were moved or published may lack the program. `delete` may work meanwhile: hence the second question.
  void check_program(const Sweep& sweep, const std::string& subject) {
    if (!is_unfinished(sweep.id)) return;
    const std::string fault = fault_of_program(workspace_, fs::absolute(workspace_.root() / sweep.program));
    if (fault.empty() || !is_unfinished(sweep.id)) return;
    add({.subject = subject,
         .what = fault,
         .todo = fmt::format("tearless submit {}{}", shell_word(sweep.grid_file), place_)});
  }

  void look_for_lost_sweeps() {
    for (const Sweep& sweep : store_->sweeps()) {
      if (sweeps_.contains(sweep.id) || fs::exists(workspace_.deleted() / sweep.id)) continue;
      add({.subject = "sweep " + sweep.id,
           .what = "its folder is missing",
           .todo = fmt::format("tearless run {}{}", shell_word(sweep.grid_file), place_)});
    }
  }

  // A recreated database holds only what the folders hold: do not recreate it while a folder has lost its result.
  void keep_what_is_at_stake() {
    std::vector<Difference>& all = report_.differences;
    if (std::none_of(all.begin(), all.end(), [](const Difference& one) { return one.result_at_stake; })) return;
    for (Difference& difference : all) {
      if (difference.remedy != Remedy::kRebuild) continue;
      difference.remedy = Remedy::kPerson;
      difference.todo = fmt::format("first repair the folders named here, then: {}", difference.todo);
    }
  }

  const Workspace& workspace_;
  std::string place_;
  bool alone_;
  std::unique_ptr<const Store> store_;  // null if the database cannot be trusted
  std::set<std::string> with_result_;   // the runs of which it had a result when it was opened
  std::set<std::string> sweeps_;
  VerifyReport report_;
};

void move_to_damaged(const fs::path& checkpoint) {
  const fs::path folder = checkpoint.parent_path().parent_path() / "damaged";
  make_folders(folder);
  fs::path to = folder / checkpoint.filename();
  for (int copy = 2; fs::exists(to); ++copy) to = folder / fmt::format("{}-{}", checkpoint.filename().string(), copy);
  rename_file(checkpoint, to);
  sync_folder(folder);
  sync_folder(checkpoint.parent_path());
}

void require(const Workspace& workspace) {
  if (!fs::is_directory(workspace.root())) {
    fail("there is no workspace {} to verify; name one with --workspace", workspace.root().string());
  }
  require_usable(workspace);
}

}  // namespace

VerifyReport verify(const Workspace& workspace) {
  require(workspace);
  return Verification(workspace, /*alone=*/false).report();
}

VerifyReport repair(const Workspace& workspace) {
  require(workspace);
  std::vector<std::string> repaired;
  bool database_at_fault = false;
  {
    const LockFile lock = lock_for_writing(workspace);
    for (const Difference& difference : Verification(workspace, /*alone=*/true).report().differences) {
      database_at_fault |= difference.remedy == Remedy::kRebuild;
      if (difference.remedy != Remedy::kMoveToDamaged) continue;
      move_to_damaged(difference.checkpoint);
      repaired.push_back(fmt::format("{}: {}; moved to damaged/", difference.subject, difference.what));
    }
  }
  if (database_at_fault) {
    const RebuildReport rebuilt = rebuild(workspace);
    repaired.push_back(fmt::format("database: rebuilt from {} and {}{}", counted(rebuilt.runs, "run"),
                                   counted(rebuilt.sweeps, "sweep"),
                                   rebuilt.kept.empty() ? "" : "; the old one was moved to " + rebuilt.kept));
  }
  VerifyReport left = verify(workspace);
  left.repaired = std::move(repaired);
  return left;
}

}  // namespace tearless::harness
