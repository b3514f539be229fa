// Options that several commands share: what is submitted, and how a service works.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/launch/local_options.h"
#include "harness/plan/globals.h"
#include "harness/plan/submission.h"
#include "harness/service/facts.h"
#include "harness/service/start.h"

namespace tearless::harness {

/// Of `run` and `submit`.
struct SubmissionFlags {
  std::vector<std::string> parts, only, set, tags;
  std::string note;
  std::string name;  // of the sweep; "": not given
  bool smoke = false;
  std::optional<int64_t> priority;  // unset: the previous one, 0 for a new sweep
  std::optional<double> stall_minutes;
  std::optional<int> grace_seconds;
  std::string memory;              // "8GiB", "" if not given
  std::vector<std::string> again;  // axis=label of runs whose results are taken away; "all"
  bool retrain_stale = false;      // likewise, of the stale ones

  void add_to(CLI::App& app);
  SubmissionOptions options() const;
  /// " --part table2 --set train.max_epochs=10": those that say which runs are meant, for a command to type next.
  std::string words() const;
};

/// --part of commands about a file that lists grids.
void add_part_option(CLI::App& app, std::vector<std::string>& parts);
/// --set of `plan`, `run` and `submit`.
void add_set_option(CLI::App& app, std::vector<std::string>& set);

/// UserError for a name for several sweeps.
void require_unnamed_parts(size_t sweeps, const SubmissionFlags& flags);

/// Takes away the results of those of the submission's runs that `flags` ask to train again. Tells how many. UserError
/// if one of them is running.
void discard_results(const Workspace& workspace, const Submission& submission, const SubmissionFlags& flags,
                     const ServiceStart& start);

/// Of `run`, `submit` and `daemon`: they take effect if the command starts the service.
struct ServiceFlags {
  LocalLimits limits;
  std::string on_end;

  void add_to(CLI::App& app);
  /// The command line that gives these flags.
  std::vector<std::string> arguments() const;
};

/// Prints a sentence if flags are given and a service that was started with others does the work.
void notice_if_without_effect(const ServiceFlags& flags, const ServiceFacts& service, const Globals& globals);

/// Prints a sentence if the service was started with other values of variables that runs have from it.
void notice_other_environment(const SweepPolicy& policy, const ServiceFacts& service);

}  // namespace tearless::harness
