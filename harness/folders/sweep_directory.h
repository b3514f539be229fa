// The folder of a sweep, sweeps/<id>/. With the run folders, it holds everything that recreates a lost database.
//
//   grid.toml     a copy of the grid file as submitted
//   merged.toml   the grid with its base files, of which tables are printed without them and the training program
//   runs.jsonl    its runs, one a line (runs/run.h)
//   sweep.json    title, name, grid file, program, policy, time of submission; sealed. Written last
//   grid.diff     what differed from the commit that sweep.json names, for its user alone; only if something did
//   looks.jsonl   the looks that were taken, of a sweep that is trained until its claims are decided (looks.h)
//   events.jsonl  log of what users asked for and of what the scheduler did
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "harness/grid/grid.h"
#include "harness/runs/workspace.h"
#include "harness/store/store.h"

namespace tearless::harness {

/// The id of a submission: the grid file's stem and a hash of its text and of its runs' ids, updates, coordinates,
/// seeds and missing data, "norm-89abcdef".
std::string sweep_id(const Sweep& sweep, std::string_view grid_text);

/// Writes the sweep's folder; replaces what a new submission of the same sweep may change. REQUIRES: sweep.id is set.
void freeze_sweep(const Workspace& workspace, const Sweep& sweep, std::string_view grid_text,
                  std::string_view diff = {});

inline constexpr const char* kDiffFile = "grid.diff";
inline constexpr mode_t kDiffMode = 0600;  // it may hold what its user has not published

/// grid.diff; nullopt if the sweep has none, or it cannot be read or is not the one that `commit` of the sweep names.
std::optional<std::string> diff_of(const Workspace& workspace, const std::string& sweep, const nlohmann::json& commit);

/// Writes merged.toml; replaces that of an earlier submission of the same sweep.
void freeze_grid(const Workspace& workspace, const std::string& sweep, const Grid& grid);

/// What was recorded of the commit that its grid file comes from; null if nothing was, or its folder is damaged.
nlohmann::json commit_of(const Workspace& workspace, const std::string& sweep);

/// The secrets that its runs need (runs/environment.h); none if its folder is damaged.
std::set<std::string> secrets_of(const Workspace& workspace, const std::string& sweep);

/// The training program that was typed as --engine with the sweep; "" if none was, or its folder is damaged.
std::string typed_engine_of(const Workspace& workspace, const std::string& sweep);

/// Sweep::declared; empty if its folder is damaged.
std::map<std::string, std::string> declarations_of(const Workspace& workspace, const std::string& sweep);

/// The user's own words about a sweep.
struct SweepWords {
  std::vector<std::string> tags;
  std::string note;
};
/// Empty if the sweep's folder is damaged: `verify` says what is wrong with it.
SweepWords read_words(const Workspace& workspace, const std::string& sweep);

/// Reads what freeze_grid() wrote. UserError if it is missing or damaged, was changed, or is another sweep's.
Grid frozen_grid(const Workspace& workspace, const std::string& sweep);

enum class SweepRuns {
  kWanted,  // of a sweep that is trained until its claims are decided those that it has asked for, else all
  kAll
};
/// Reads what freeze_sweep() wrote. Its state, reason, priority and numbers are what events.jsonl says of them.
/// UserError if it is damaged, was changed, or is of another format.
Sweep read_sweep(const Workspace& workspace, const std::string& id, SweepRuns runs = SweepRuns::kWanted);

/// As read_sweep(), from sweep.json alone: without the runs, the state and what belongs to it.
Sweep read_sweep_head(const Workspace& workspace, const std::string& id);

/// A new submission of a sweep whose folder is written: makes it active, in its events.jsonl first and then in the
/// store, with the same numbers. Returns it as it is in the store.
Sweep submit_sweep(Store& store, const Workspace& workspace, const std::string& id);

/// Appends `{"at": now, "event": what, …details}` to events.jsonl.
void log_event(const Workspace& workspace, const std::string& sweep, std::string_view what,
               nlohmann::json details = nlohmann::json::object());

}  // namespace tearless::harness
