#include "harness/commands/table_options.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/print.h"
#include "base/words.h"
#include "harness/commands/submission_options.h"
#include "harness/console/csv_option.h"
#include "harness/console/screen.h"
#include "harness/grid/paper.h"

namespace tearless::harness {

void ViewOptions::add_selection_to(CLI::App& app) {
  app.add_option("what", words,
                 "a grid file or a file that lists grids, as it is now, or a sweep (id, name, last) as it was "
                 "submitted, without the training "
                 "program; default: last");
  add_part_option(app, parts);
  app.add_option("--layout", layout,
                 "lay the views of this grid file, as it is now, over the runs of the sweep, without the training "
                 "program or data; it has the sweep's axes and labels")
      ->type_name("GRID");
}

void ViewOptions::add_to(CLI::App& app, const std::string& formats) {
  add_selection_to(app);
  app.add_option("--format", format, formats);
  app.add_option("--out", out, "write to this file instead of standard output");
  add_formulas_option(app, formulas);
}

void TableOptions::add_to(CLI::App& app) {
  ViewOptions::add_to(app,
                      "text, markdown, latex, html, csv or json (default: by the ending of the file that --out names: "
                      ".txt, .md, .tex, .html, .csv, .json; else text)");
}

TableFormat TableOptions::chosen_format(const Globals& globals) const {
  TableFormat chosen;
  if (format.empty()) {
    chosen = globals.json ? TableFormat::kJson : table_format_of(out);
  } else {
    chosen = table_format(format);
    if (globals.json && chosen != TableFormat::kJson)
      fail("--json and --format {} contradict each other; omit one of them", format);
  }
  require_csv(formulas, chosen == TableFormat::kCsv, "--format csv");
  return chosen;
}

void notice_what_is_too_wide(const std::vector<Sheet>& sheets) {
  for (const Sheet& sheet : sheets) {
    if (const std::string sentence = too_wide_in_latex(sheet); !sentence.empty()) notice(sentence);
  }
}

namespace {

// In an archive nothing is trained: a grid of which it lacks runs is meant as another layout of what it has.
void say_what_an_archive_has(const std::filesystem::path& file, const std::vector<GridState>& states,
                             const Globals& globals) {
  if (!archive_of(globals.workspace)) return;
  const auto lacks_runs = [](const GridState& state) {
    return std::ranges::any_of(state.results.rows, [](const Row& row) { return !row.result.state; });
  };
  const std::unique_ptr<const Store> store = require_store(globals);
  const std::vector<Sweep> sweeps = store->sweeps();
  if (std::ranges::none_of(states, lacks_runs) || sweeps.empty()) return;
  std::vector<std::string> names;
  for (const Sweep& sweep : sweeps) names.push_back(sweep.id);
  notice(
      fmt::format("the archive lacks runs of {}; it has {}. To print that as the file lays it out: tearless table {} "
                  "--layout {}{}",
                  file.string(), fmt::join(names, ", "), shell_word(sweeps.front().id), shell_word(file.string()),
                  options_again(globals)));
}

// Runs that a look has not asked for are missing from no table.
void leave_out_later_seeds(GridState& state) {
  const std::vector<size_t>& looks = state.grid.claims.looks;
  if (looks.empty()) return;
  const auto first = state.grid.seeds.begin();
  const std::set<int64_t> wanted(first, first + static_cast<ptrdiff_t>(looks.front()));
  std::erase_if(state.results.rows,
                [&](const Row& row) { return !row.result.state && !wanted.contains(row.run.seed); });
}

}  // namespace

std::vector<GridState> ViewOptions::states(const Globals& globals) const {
  const std::optional<std::filesystem::path> file =
      words.size() == 1 && layout.empty() ? grid_as_it_is_now(words) : std::nullopt;
  std::vector<GridState> states;
  if (file) {
    states = look_up_all(grids_in(*file, parts), {}, globals, WithoutProgram::kUseSweep);
    say_what_an_archive_has(*file, states, globals);
    for (GridState& state : states) leave_out_later_seeds(state);
  } else {
    if (!parts.empty()) fail("--part {}: name the file that lists the grids, too", parts.front());
    states.push_back(look_up_sweep(words, globals, layout));
  }
  for (const GridState& state : states) {
    if (!state.errors.empty()) throw UserError(state.errors.front());
  }
  return states;
}

size_t ViewOptions::width() const { return out.empty() && ::isatty(STDOUT_FILENO) ? terminal_size(stdout).columns : 0; }

ViewOutput ViewOptions::output(std::string text) const {
  if (out.empty()) return {.text = std::move(text)};
  return {.files = {{.path = out, .bytes = std::move(text)}}};
}

}  // namespace tearless::harness
