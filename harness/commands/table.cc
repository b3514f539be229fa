// `tearless table [GRID | SWEEP]`: prints the tables of a grid as it is now, or of a sweep as it was submitted, from
// the results that exist so far.
#include <CLI/CLI.hpp>
#include <memory>
#include <variant>

#include "harness/commands/commands.h"
#include "harness/commands/table_options.h"
#include "harness/results/curves.h"
#include "harness/results/sentences.h"

namespace tearless::harness {
namespace {

struct PrintOptions : TableOptions {
  bool resume_note = false;
  bool is_final = false;
};

/// The scores that tables compare over sentences.
std::vector<std::string> scores_compared(const std::vector<View>& views) {
  std::vector<std::string> scores;
  for (const View& view : views) {
    const auto* table = std::get_if<TableSpec>(&view.spec);
    if (!table || !table->test || !table->test->is_over_sentences()) continue;
    const std::vector<std::string> shown = table->scores.empty() ? std::vector<std::string>{"test.*"} : table->scores;
    scores.insert(scores.end(), shown.begin(), shown.end());
  }
  return scores;
}

int print_table(const PrintOptions& options, const Globals& globals) {
  const TableFormat format = options.chosen_format(globals);
  const ResumeNote note = options.resume_note ? ResumeNote::kAlways : ResumeNote::kIfDifferent;
  const bool is_final = options.is_final || archive_of(globals.workspace);  // in which nothing is trained
  std::vector<Table> tables;
  for (GridState& state : options.states(globals)) {
    add_defined_scores(state.grid, state.results);
    read_sentences(state.results, scores_compared(state.views));
    read_beginnings(state.results);
    for (const View& view : state.views) {
      const auto* spec = std::get_if<TableSpec>(&view.spec);
      if (!spec) continue;
      tables.push_back(fill(state.grid, view.title, *spec, state.results.rows, options_again(globals), note,
                            is_final ? Notes::kFinal : Notes::kAll));
    }
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
