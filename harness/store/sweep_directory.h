// The folder of a sweep, sweeps/<id>/. With the run folders, it holds everything that recreates a lost database.
//
//   grid.toml     a copy of the grid file as submitted
//   sweep.json    title, grid file, time of submission; sealed
//   runs.jsonl    the requested runs, one a line
//   events.jsonl  log of what the scheduler did
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "harness/runs/workspace.h"
#include "harness/store/store.h"

namespace tearless::harness {

/// The id of a submission: the grid file's stem and a hash of its text and its runs, "norm-89abcdef".
std::string sweep_id(const Sweep& sweep, std::string_view grid_text);

/// Writes the sweep's folder. Does nothing if it is there already. REQUIRES: sweep.id is set.
void freeze_sweep(const Workspace& workspace, const Sweep& sweep, std::string_view grid_text);

/// Reads what freeze_sweep() wrote. UserError if it is damaged or was changed.
Sweep read_sweep(const Workspace& workspace, const std::string& id);

/// Appends `{"at": now, "event": what, …details}` to events.jsonl.
void log_event(const Workspace& workspace, const std::string& sweep, std::string_view what,
               nlohmann::json details = nlohmann::json::object());

}  // namespace tearless::harness
