// `tearless table [GRID | SWEEP]`: prints the tables of a grid as it is now, or of a sweep as it was submitted, from
// the results that exist so far.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <memory>

#include "harness/commands/commands.h"
#include "harness/commands/printed_views.h"
#include "harness/commands/table_options.h"

namespace tearless::harness {
namespace {

struct PrintOptions : TableOptions {
  bool resume_note = false;
  bool is_final = false;
};

int print_table(const PrintOptions& options, const Globals& globals) {
  const TableFormat format = options.chosen_format(globals);
  const ResumeNote note = options.resume_note ? ResumeNote::kAlways : ResumeNote::kIfDifferent;
  const bool is_final = options.is_final || archive_of(globals.workspace);  // in which nothing is trained
  std::vector<Table> tables;
  for (GridState& state : options.states(globals)) {
    read_for_views(state);
    std::ranges::move(tables_of(state, options_again(globals), is_final ? Notes::kFinal : Notes::kAll, note),
                      std::back_inserter(tables));
  }
  options.write(render(tables, format, options.formulas, options.width()));
  return kOk;
}

}  // namespace

Action command_table(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<PrintOptions>();
  options->add_to(app);
  app.add_flag("--final", options->is_final,
               "leave out what remains to be done: notes of runs without a result, and commands to type next");
  app.add_flag(
      "--resume-note", options->resume_note,
      "add a note: of how many runs `tearless verify-resume` has shown that stops do not change their results");
  return [options, &globals] { return print_table(*options, globals); };
}

}  // namespace tearless::harness
