// `tearless table [GRID | SWEEP]`: prints the tables of a grid as it is now, or of a sweep as it was submitted, from
// the results that exist so far.
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/nearest.h"
#include "harness/commands/commands.h"
#include "harness/commands/printed_views.h"
#include "harness/commands/table_options.h"
#include "harness/table/one_cell.h"

namespace tearless::harness {
namespace {

struct PrintOptions : TableOptions {
  std::vector<std::string> captions;  // of the tables that are printed, or parts of them; empty: all
  std::vector<std::string> cell;      // words of the one cell that is printed; empty: whole tables
  bool resume_note = false;
  bool is_final = false;
};

/// A text means the caption that it is, or else the one that it is a part of.
std::vector<Table> with_captions(std::vector<Table> tables, const std::vector<std::string>& texts) {
  if (texts.empty()) return tables;
  std::vector<std::string> captions;
  for (const Table& table : tables) captions.push_back(table.title.text);
  std::set<size_t> chosen;
  for (const std::string& text : texts) {
    std::vector<size_t> meant;
    for (size_t i = 0; i < captions.size(); ++i) {
      if (captions[i] == text) meant = {i};
      if (captions[i] == text) break;
      if (captions[i].find(text) != std::string::npos) meant.push_back(i);
    }
    if (meant.size() != 1) {
      fail("--only \"{}\": {} tables have this in their captions{}; they are: \"{}\"", text,
           meant.empty() ? "no" : "several", did_you_mean(text, captions), fmt::join(captions, "\", \""));
    }
    chosen.insert(meant.front());
  }
  std::vector<Table> these;
  for (const size_t i : chosen) these.push_back(std::move(tables[i]));
  return these;
}

ViewOutput print_table(const PrintOptions& options, const Globals& globals) {
  const TableFormat format = options.chosen_format(globals);
  const ResumeNote note = options.resume_note ? ResumeNote::kAlways : ResumeNote::kIfDifferent;
  const bool is_final = options.is_final || archive_of(globals.workspace);  // in which nothing is trained
  std::vector<Table> tables;
  for (GridState& state : options.states(globals)) {
    read_for_views(state);
    std::ranges::move(tables_of(state, options_again(globals), is_final ? Notes::kFinal : Notes::kAll, note),
                      std::back_inserter(tables));
  }
  tables = with_captions(std::move(tables), options.captions);
  const OneCell cell = options.cell.empty() ? OneCell() : one_cell(tables, options.cell, format, "--cell");
  if (options.cell.empty() && format == TableFormat::kLatex) {
    for (const Table& table : tables) notice_what_is_too_wide({sheet_of(table)});
  }
  ViewOutput output = options.output(options.cell.empty() ? render(tables, format, options.formulas, options.width())
                                                          : cell.text + "\n");
  output.lacks_value = !cell.has_value;
  output.tables = std::move(tables);
  return output;
}

}  // namespace

ViewMaker define_table(CLI::App& app) {
  const auto options = std::make_shared<PrintOptions>();
  options->add_to(app);
  app.add_flag("--final", options->is_final,
               "leave out what remains to be done: notes of runs without a result, and commands to type next");
  app.add_flag(
      "--resume-note", options->resume_note,
      "add a note: of how many runs `tearless verify-resume` has shown that stops do not change their results");
  app.add_option("--only", options->captions,
                 "print the table with this caption alone; a part of it serves that no other caption has")
      ->type_name("CAPTION");
  app.add_option("--cell", options->cell,
                 "print one cell alone: AXIS=LABEL for each axis that has several, then the score if there are "
                 "several, by their names in the grid or in print; and what of it, as the key `show` has it "
                 "({mean:.2f}), or {published} or {difference} (measured minus published)")
      ->type_name("WORD");
  return [options](const Globals& globals) { return print_table(*options, globals); };
}

Action command_table(CLI::App& app, const Globals& globals) { return printing(define_table(app), globals); }

}  // namespace tearless::harness
