// The outcome of `tearless verify-resume` for one run: it was trained once more, stopped and resumed on the way, and
// its result files were compared with those of an undisturbed training. Stored as resume.json in the run directory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/run_directory.h"

namespace tearless::harness {

/// A stop on the way of a training.
struct TrainingStop {
  int64_t update = 0;        // the training is stopped when its metrics reach this update
  bool kill = false;         // by SIGKILL; else by SIGTERM, which asks for a checkpoint
  int64_t resumed_from = 0;  // the step of the checkpoint that the next attempt found; 0: none, it began again
};

/// "SIGTERM" or "SIGKILL".
const char* signal_name(const TrainingStop& stop);

/// Where a result file differs between two trainings of one run.
struct FileDifference {
  std::string file;                       // relative to the run directory
  int64_t line = 0;                       // the first line that differs, from 1; 0: one of the two has no such file
  std::string expected = {}, found = {};  // that line of the undisturbed training and of the resumed one; not stored
};

/// Compares what both runs left byte for byte: DONE's outcome, metrics.jsonl, scores.json, and the files that DONE
/// names. Empty if nothing differs. REQUIRES: both have a DONE. UserError if a file cannot be read.
std::vector<FileDifference> differences_between(const RunDirectory& undisturbed, const RunDirectory& resumed);

struct ResumeCheck {
  std::string verified_at;                  // UTC
  std::string program, version;             // the training program, relative to the workspace if it is a copy there
  int64_t seed = 1;                         // that the updates of the stops were drawn from
  int64_t stops_requested = 0;              // `stops` has fewer if the run ended before
  std::vector<TrainingStop> stops;          // at least one
  std::vector<std::string> settings;        // KEY=VALUE; not empty: settings that the run itself does not have
  bool trained_twice = false;               // compared with another training, not with the run's own result
  std::vector<FileDifference> differences;  // empty: equal

  bool is_equal() const { return differences.empty(); }
};

nlohmann::json to_json(const ResumeCheck& check);
/// nlohmann::json::exception for anything but the above.
ResumeCheck resume_check_from(const nlohmann::json& record);

/// Nullopt if the run has no resume.json. UserError if it is damaged.
std::optional<ResumeCheck> read_resume_check(const RunDirectory& run);

/// Replaces an older outcome, durably. REQUIRES: the run directory exists.
void write_resume_check(const RunDirectory& run, const ResumeCheck& check);

/// "equal" or "different", with the settings that the run itself does not have: "equal (train.max_updates=200)".
std::string outcome_of(const ResumeCheck& check);

/// One sentence: "equal after 2 stops (SIGTERM at update 3, SIGKILL at 7; seed 1)".
std::string sentence_of(const ResumeCheck& check);

}  // namespace tearless::harness
