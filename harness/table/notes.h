// The notes below a table. Internal to harness/table.
#pragma once

#include <string>
#include <vector>

#include "harness/cells/cells.h"
#include "harness/table/compare.h"
#include "harness/table/table.h"

namespace tearless::harness {

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
  const std::vector<std::string>& other_settings;  // for which the table lacks its published numbers
  bool is_without_tests;                           // looks decided how many seeds the cells have
};

/// Appends the notes of a table whose rows and columns are complete.
void add_notes(const NoteContext& context, Table& table);

}  // namespace tearless::harness
