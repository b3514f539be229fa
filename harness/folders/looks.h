// looks.jsonl of a sweep that is trained until its claims are decided: the looks that were taken, one a line.
// Append-only and synced: a look is in it before the runs that it asks for are in the database.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/runs/run.h"
#include "harness/runs/workspace.h"

namespace tearless::harness {

inline constexpr const char* kLooksFile = "looks.jsonl";

/// One look at a claim at one of its places.
struct LookTaken {
  std::string claim;  // its text: no other claim of the grid has it
  std::string hash;   // of what it says
  Labels place = {};  // axis → label
  size_t look = 0;    // from 1
  size_t seeds = 0;   // that it took, the first of the grid
  std::string verdict = {};
  std::optional<double> level = {}, estimate = {}, low = {}, high = {};
  std::vector<size_t> n = {};
  std::string reason = {};
  std::string shown = {};                       // the numbers as they were printed
  std::map<std::string, std::string> saw = {};  // run → SHA-256 of its scores.json; "": it has none
  std::vector<std::string> asks = {};           // runs that the next look needs
  std::string at = {};                          // UTC
};

/// Appends them, and syncs the file.
void append_looks(const Workspace& workspace, const std::string& sweep, const std::vector<LookTaken>& looks);

/// In the order in which they were taken; none if the sweep has no such file. A last line that a power cut tore is
/// skipped: nothing followed from it. UserError if another line is damaged, or is of another sweep.
std::vector<LookTaken> read_looks(const Workspace& workspace, const std::string& sweep);

}  // namespace tearless::harness
