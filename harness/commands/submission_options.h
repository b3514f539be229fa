// Options that several commands share: what is submitted, and how a service works.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/console/globals.h"
#include "harness/launch/local_options.h"
#include "harness/plan/submission.h"
#include "harness/service/facts.h"
#include "harness/service/start.h"
#include "harness/slurm/executor.h"

namespace tearless::harness {

/// Which executor, of those that a file has.
struct ExecutorFlags {
  std::string name;  // "" if not given
  std::string file;  // likewise

  /// `meaning`: of --executor, for its help.
  void add_to(CLI::App& app, const char* meaning);
  /// Unset if none is named, or kNoExecutor. UserError if there is no such executor.
  std::optional<Executor> executor() const;
  /// " --executor a100 --executor-file f": those that were given, for a command to type next.
  std::string words() const;
};

/// Of `run` and `submit`.
struct SubmissionFlags {
  std::vector<std::string> parts, only, set, tags;
  std::string note;
  std::string name;  // of the sweep; "": not given
  bool smoke = false;
  std::optional<int64_t> priority;  // unset: the previous one, 0 for a new sweep
  std::optional<double> stall_minutes;
  std::optional<int> grace_seconds;
  std::string memory;  // "8GiB", "" if not given
  ExecutorFlags executor;
  std::optional<double> max_gpu_hours;
  std::vector<std::string> again;  // axis=label of runs whose results are taken away; "all"
  bool retry = false;              // failed runs
  bool replace = false;            // of `submit`: cancel the other sweeps of the same grid file
  bool retrain_stale = false;      // likewise, of the stale ones
  bool until_decided = false;
  std::optional<double> max_hours;  // with until_decided

  void add_to(CLI::App& app);
  SubmissionOptions options() const;
  /// Where the runs are: a workspace of their own with --smoke.
  Workspace workspace(const Globals& globals) const;
  /// " --part table2 --set train.max_epochs=10 --executor a100": those that say which runs are meant and where they are
  /// trained, for a command to type next.
  std::string words() const;
};

/// --part of commands about a file that lists grids.
void add_part_option(CLI::App& app, std::vector<std::string>& parts);
/// --set of `plan`, `run` and `submit`.
void add_set_option(CLI::App& app, std::vector<std::string>& set);

/// Plans the grids of these files, with those that they list. All of them before any is written: a mistake in one
/// submits none. `wanted`: flags.options(), or these and more.
std::vector<Submission> prepare_submissions(const std::vector<std::string>& files, const SubmissionFlags& flags,
                                            const SubmissionOptions& wanted, const Globals& globals);

/// Of `run`, `submit`, `resume`, `wait` and `daemon`: they take effect if the command starts the service.
struct ServiceFlags {
  LocalLimits limits;
  std::string on_end;

  void add_to(CLI::App& app);
  /// --jobs, --runs-per-gpu and --pin alone.
  void add_limits_to(CLI::App& app);
  /// The command line that gives these flags.
  std::vector<std::string> arguments() const;
  /// Keeps --jobs, --runs-per-gpu and --pin for the workspace's next services if one of them was typed; else takes what
  /// is kept.
  void keep_in(const Workspace& workspace);
  /// One of the flags was given.
  bool are_typed() const { return is_typed_ || !on_end.empty(); }

 private:
  bool is_typed_ = false;
};

/// Prints a sentence if flags are given and a service that was started with others does the work.
void notice_if_without_effect(const ServiceFlags& flags, const ServiceFacts& service, const Globals& globals);

/// Has the workspace's service train what was written of the submissions, in their order, and takes away the results
/// that `flags` ask to train again. Prints a sentence if `service` has no effect on a service that works already, or if
/// that has other values of variables that runs have from it. Returns a SubmissionFacts for each. UserError if a run
/// whose result is to be taken away is running.
nlohmann::json hand_over(const Workspace& workspace, const std::vector<Submission>& submissions,
                         const SubmissionFlags& flags, const ServiceFlags& service, const Globals& globals);

}  // namespace tearless::harness
