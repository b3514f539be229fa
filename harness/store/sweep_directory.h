// sweeps/<id>/: the frozen grid (grid.toml), what it asked for (runs.jsonl, one run a line) and what happened
// (events.jsonl): with the run folders, all that a lost database needs.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "harness/runs/workspace.h"
#include "harness/store/store.h"

namespace tearless::harness {

/// The id of a submission: the grid's name and a hash of its text and its runs.
std::string sweep_id(const Sweep& sweep, std::string_view grid_text);

/// Writes what is not there yet.
void freeze_sweep(const Workspace& workspace, const Sweep& sweep, std::string_view grid_text);

/// What freeze_sweep wrote. UserError where it cannot be understood.
Sweep read_sweep(const Workspace& workspace, const std::string& id);

/// Appends `{"at": now, "event": what, …details}`.
void log_event(const Workspace& workspace, const std::string& sweep, std::string_view what,
               nlohmann::json details = nlohmann::json::object());

}  // namespace tearless::harness
