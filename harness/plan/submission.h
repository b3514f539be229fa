// From a grid file to a sweep that can be run without it: the plan, checked by the training program, and the sweep's
// folder.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/plan/program.h"
#include "harness/runs/workspace.h"
#include "harness/store/store.h"
#include "harness/views/views.h"

namespace tearless::harness {

struct Submission {
  Grid grid;
  std::vector<View> views = {};  // of the grid
  std::string grid_text;         // of the file, and a line for each setting of --set
  Probe program;                 // its devices, too
  Sweep sweep;
  ProgramNow now = {};                   // the same program, as results are compared with it
  std::optional<int64_t> priority = {};  // as in SubmissionOptions
};

/// What is asked for besides the grid.
struct SubmissionOptions {
  std::vector<std::string> only = {};  // axis=label: these runs only
  std::vector<std::string> set = {};   // key=value: settings that win over those of the grid
  std::vector<std::string> tags = {};  // besides those of the grid
  std::string note = {};               // in place of the grid's; "": the grid's
  std::string name = {};               // of the sweep; "": the one it had, else the grid's title
  bool smoke = false;                  // the first seed of each cell, cut down to a few updates
  // If set, `smoke` keeps one run of each resource class that is not in this set, instead of one seed of each cell.
  std::optional<std::set<std::string>> calibrated = {};
  bool until_decided = false;  // UntilDecided
  std::optional<double> max_hours = {};
  // Of the policy; unset: what the grid says, else the default of SweepPolicy.
  std::optional<double> stall_minutes = {};
  std::optional<int> grace_seconds = {};
  std::optional<int64_t> memory_bytes = {};
  std::string executor = {};  // of the policy
  nlohmann::json executor_section = {};
  std::string engine = {};               // --engine, absolute; "": none was typed
  std::optional<int64_t> priority = {};  // of a sweep that is new, for which none was typed
};

/// What a user types with `submit` and says nothing of the runs holds for the grid file's next sweeps, too: where
/// `options` has no executor, or `engine` is empty, those of its newest sweep are taken, and its priority. Returns what
/// was taken, as options: "--executor a100 --priority 3"; "" if nothing was.
std::string take_typed_before(const Workspace& workspace, const std::filesystem::path& grid_file,
                              SubmissionOptions& options, std::filesystem::path& engine);

/// The word for this machine where an executor is named.
inline constexpr const char* kNoExecutor = "none";

/// Plans the grid's runs with the training program that Program::find() finds for `engine`. Writes nothing. UserError,
/// with a line for each mistake, if the program refuses a run.
Submission prepare_submission(const std::filesystem::path& grid_file, const std::filesystem::path& engine,
                              const SubmissionOptions& options);

/// A submission from a shell without the secrets that the sweep had does not train without them: it needs them still.
void keep_secrets_before(const Workspace& workspace, Sweep& sweep);

/// UserError if a view names a score that none of the grid's runs has, as far as those that are done show, and for a
/// name that another sweep has or a run's id begins with.
/// Takes the name that the sweep had if it is to have no other. Copies the training program to the
/// workspace (frozen_program.h), has the sweep use the copy, and writes the sweep's folder, from which a service reads
/// it. Does not touch the database.
void write_submission(const Workspace& workspace, Submission& submission);

}  // namespace tearless::harness
