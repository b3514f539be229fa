// The notes below a table. Internal to harness/table.
#pragma once

#include <string>
#include <vector>

#include "harness/table/compare.h"
#include "harness/table/table.h"

namespace tearless::harness {

/// What a run that is done has in place of a score that its scores.json lacks (Cell::without_score).
inline constexpr const char* kNotInScores = "not in scores.json";
/// The same of a number that runs measure of themselves.
inline constexpr const char* kNotMeasured = "not measured";

/// Over which values of an axis the means over it are.
enum class Averages {
  kOfOne,      // each cell has one value alone, as of an axis that exists only where a condition holds: no mean
  kOfTheSame,  // in every cell
  kOfOthers    // in some cells
};

/// What notes are about beside the cells.
struct NoteContext {
  const Grid& grid;
  const TableSpec& spec;
  const std::vector<Replicate>& runs;  // of the table, each once
  const std::string& options;          // of the commands to type next
  ResumeNote resume;
  Notes which;
  Averages averages;
  const Compared& compared;
};

/// Appends the notes of a table whose rows and columns are complete.
void add_notes(const NoteContext& context, Table& table);

}  // namespace tearless::harness
