// `tearless table [GRID | SWEEP]`: prints the tables of a grid as it is now, or of a sweep as it was submitted, from
// the results that exist so far.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "harness/commands/commands.h"
#include "harness/commands/csv_option.h"
#include "harness/commands/submission_options.h"
#include "harness/grid/paper.h"
#include "harness/plan/grid_state.h"
#include "harness/results/sentences.h"
#include "harness/screen/screen.h"
#include "harness/table/table.h"

namespace tearless::harness {
namespace {

struct TableOptions {
  std::vector<std::string> words, parts;
  std::filesystem::path layout;  // a grid file; empty: the sweep's own tables
  std::string format;            // "": by the ending of `out`
  std::string out;
  bool resume_note = false;
  bool is_final = false;
  Formulas formulas = Formulas::kAsTheyAre;
};

TableFormat chosen_format(const TableOptions& options, const Globals& globals) {
  if (options.format.empty()) return globals.json ? TableFormat::kJson : table_format_of(options.out);
  const TableFormat format = table_format(options.format);
  if (globals.json && format != TableFormat::kJson) {
    fail("--json and --format {} contradict each other; omit one of them", options.format);
  }
  return format;
}

std::vector<GridState> states_of(const TableOptions& options, const Globals& globals) {
  const std::optional<std::filesystem::path> file =
      options.words.size() == 1 && options.layout.empty() ? grid_as_it_is_now(options.words) : std::nullopt;
  if (!file) {
    if (!options.parts.empty()) fail("--part {}: name the file that lists the grids, too", options.parts.front());
    std::vector<GridState> states;
    states.push_back(look_up_sweep(options.words, globals, options.layout));
    return states;
  }
  return look_up_all(grids_in(*file, options.parts), {}, globals, WithoutProgram::kUseSweep);
}

/// The scores that the grid's tables compare over sentences.
std::vector<std::string> scores_compared(const Grid& grid) {
  std::vector<std::string> scores;
  for (const View& view : grid.views) {
    const TableSpec& table = view.table();
    if (!table.test || !table.test->is_over_sentences()) continue;
    const std::vector<std::string> shown = table.scores.empty() ? std::vector<std::string>{"test.*"} : table.scores;
    scores.insert(scores.end(), shown.begin(), shown.end());
  }
  return scores;
}

int print_table(const TableOptions& options, const Globals& globals) {
  const TableFormat format = chosen_format(options, globals);
  require_csv(options.formulas, format == TableFormat::kCsv, "--format csv");
  const ResumeNote note = options.resume_note ? ResumeNote::kAlways : ResumeNote::kIfDifferent;
  std::vector<Table> tables;
  for (GridState& state : states_of(options, globals)) {
    if (!state.errors.empty()) throw UserError(state.errors.front());
    read_sentences(state.results, scores_compared(state.grid));
    for (const View& view : state.grid.views) {
      const auto show = [&](const auto& spec) {
        tables.push_back(fill(state.grid, view.title, spec, state.results.rows, options_again(globals), note,
                              options.is_final ? Notes::kFinal : Notes::kAll));
      };
      std::visit(show, view.spec);
    }
  }
  const size_t width = options.out.empty() && ::isatty(STDOUT_FILENO) ? terminal_size(stdout).columns : 0;
  const std::string text = render(tables, format, options.formulas, width);
  if (options.out.empty()) {
    std::cout << text;
  } else {
    write_atomically(options.out, text);
  }
  return kOk;
}

}  // namespace

Action command_table(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<TableOptions>();
  app.add_option("what", options->words,
                 "a grid file or a file that lists grids, as it is now, or a sweep (id, name, last) as it was "
                 "submitted, without the training "
                 "program; default: last");
  add_part_option(app, options->parts);
  app.add_option("--layout", options->layout,
                 "lay the tables of this grid file, as it is now, over the runs of the sweep, without the training "
                 "program or data; it has the sweep's axes and labels")
      ->type_name("GRID");
  app.add_option("--format", options->format,
                 "text, markdown, latex, html, csv or json (default: by the ending of the file that --out names: .md, "
                 ".tex, .html, .csv, .json; else text)");
  app.add_option("--out", options->out, "write to this file instead of standard output");
  add_formulas_option(app, options->formulas);
  app.add_flag("--final", options->is_final,
               "leave out what remains to be done: notes of runs without a result, and commands to type next");
  app.add_flag(
      "--resume-note", options->resume_note,
      "add a note: of how many runs `tearless verify-resume` has shown that stops do not change their results");
  return [options, &globals] { return print_table(*options, globals); };
}

}  // namespace tearless::harness
