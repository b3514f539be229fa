#include "harness/commands/artifact_files.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/utf8.h"
#include "base/words.h"
#include "harness/commands/printed_views.h"
#include "harness/figure/format.h"
#include "harness/plan/grid_state.h"
#include "harness/results/cost.h"

namespace tearless::harness {
namespace {

std::string markdown(const std::string& text) { return text_in(TableFormat::kMarkdown, printable(text), ""); }

/// Collects the files, each of which has a name of its own.
class Files {
 public:
  void add(const std::string& name, std::string bytes) {
    if (!names_.insert(name).second)
      fail("two figures would be the file artifact/{}; give each a name = \"…\" of its own", name);
    files_.push_back({"artifact/" + name, std::move(bytes)});
  }
  std::vector<ArtifactFile> take() { return std::move(files_); }

 private:
  std::vector<ArtifactFile> files_;
  std::set<std::string> names_;
};

// --- tables, claims, figures -----------------------------------------------------------------------------------------

size_t add_tables(const GridState& state, const std::string& grid, Files& files) {
  const std::vector<Table> tables = tables_of(state, /*options=*/"", Notes::kFinal);
  for (size_t i = 0; i < tables.size(); ++i) {
    for (const char* format : {"markdown", "csv", "json", "latex"}) {
      const std::string ending = format == std::string_view("markdown") ? "md"
                                 : format == std::string_view("latex")  ? "tex"
                                                                        : format;
      files.add(fmt::format("tables/{}-{}.{}", grid, i + 1, ending), render(tables[i], table_format(format)));
    }
  }
  return tables.size();
}

size_t add_claims(const GridState& state, const std::string& grid, Files& files) {
  const std::vector<GridChecks> checks = {checks_of(state)};
  if (checks[0].claims.empty() && checks[0].cells.empty()) return 0;
  const std::string name = "claims/" + grid;
  files.add(name + ".md", render(sheets_of(checks), TableFormat::kMarkdown, /*width=*/0));
  files.add(name + ".csv", render_csv(checks, Formulas::kAsTheyAre));
  files.add(name + ".json", json_text(json_of(checks)));
  return checks[0].claims.size();
}

void add_figures(const std::vector<Figure>& figures, const std::vector<std::string>& names, Files& files) {
  for (size_t i = 0; i < figures.size(); ++i) {
    for (const char* format : {"svg", "csv", "pgfplots"}) {
      const FigureFormat& form = figure_format(format);
      files.add("figures/" + names[i] + form.ending, form.text({figures[i]}, PrintStyle()));
    }
  }
}

// --- README ----------------------------------------------------------------------------------------------------------

/// "tearless-engine 0.1.0 on cpu, AMD EPYC": what trained the runs.
std::set<std::string> trained_by(const std::vector<GridState>& states) {
  std::set<std::string> lines;
  for (const GridState& state : states) {
    for (const Row& row : state.results.rows) {
      for (const AttemptRecord& attempt : row.result.attempts) {
        const std::string program = row.sweep->stamp.value("program", "");
        lines.insert(fmt::format("{} {} on {}", program, attempt.version, machine_of(attempt)));
      }
    }
  }
  return lines;
}

/// "tearless-engine (`pip install tearless-engine`)", "trainer.py, which is named with `--engine`".
std::set<std::string> programs_of(const std::vector<GridState>& states) {
  std::set<std::string> programs;
  for (const GridState& state : states) {
    for (const Row& row : state.results.rows) {
      const std::string program = row.sweep ? row.sweep->stamp.value("program", "") : "";
      if (program == "tearless-engine") {
        programs.insert("tearless-engine (`pip install tearless-engine`)");
      } else if (!program.empty()) {
        programs.insert(markdown(program) + ", which is named with `--engine`");
      }
    }
  }
  return programs;
}

std::string readme(const std::vector<GridState>& states, const std::vector<std::string>& sweeps,
                   const std::string& file, const ArtifactCounts& counts, const std::vector<ArtifactFile>& files,
                   const std::vector<std::string>& licences) {
  const std::string archive = shell_word(file);
  std::vector<std::string> titles;
  for (const GridState& state : states) titles.push_back(markdown(state.grid.title));
  std::string text = fmt::format(
      "# {}\n\nResults of training: {}, in one file, `{}`. The folder `artifact/` has what `tearless` prints of them; "
      "`runs/` has the settings, metrics and scores of every run, `sweeps/` the grid files.\n\n## Look at it\n\n",
      fmt::join(titles, "; "), text_of(counts), printable(file));
  std::string file_before;
  for (const ArtifactFile& one : files) {  // those that differ in their endings on one line
    const size_t point = one.name.rfind('.'), begin = one.name.find('/') + 1;
    const std::string own = one.name.substr(begin, point - begin);
    text += own == file_before ? ", " : fmt::format("{}- `{}`: ", file_before.empty() ? "" : "\n", printable(own));
    text += one.name.substr(point + 1);
    file_before = own;
  }

  text += fmt::format(
      "\n\nWith `tearless` (`pip install tearless`) it is read as it is:\n\n```sh\ntar xzf {0} artifact\n"
      "tearless status --workspace {0}\n",
      archive);
  for (const std::string& sweep : sweeps)
    text += fmt::format("tearless table {} --workspace {}\n", shell_word(sweep), archive);
  text += fmt::format(
      "```\n\n## Verify it\n\n```sh\ntearless verify {} --again    # checksums; then all tables, claims and figures "
      "again, from the runs\n```\n\n## Train it again\n\nType it in the folder from which the paths of "
      "data in these files lead to them, or name others with `--set`; `tearless plan` says what is missing. Data with "
      "other bytes make other runs. Needs: {}.\n\n```sh\n"
      "tar xzf {} sweeps\n",
      archive, fmt::join(programs_of(states), "; "), archive);
  for (const std::string& sweep : sweeps)
    text += fmt::format("tearless run {}\n", shell_word("sweeps/" + sweep + "/merged.toml"));
  text += fmt::format(
      "```\n\nTo compare with these results, train in a folder of the same ones; a run is trained again in "
      "`again/verifying`, and what it leaves is compared:\n\n```sh\ntearless copy again --workspace {}\n",
      archive);
  for (const std::string& sweep : sweeps)
    text += fmt::format("tearless verify-resume {} --today --workspace again\n", shell_word(sweep));
  text += "```\n\n";
  for (size_t i = 0; i < sweeps.size(); ++i) {
    CostOfGrids cost;
    cost.add(states[i].results.rows, states[i].grid.seeds.size());
    text += fmt::format("- {}: {}\n", markdown(sweeps[i]), cost.text());
  }

  text += "\nTrained by\n\n";
  for (const std::string& line : trained_by(states)) text += fmt::format("- {}\n", markdown(line));
  text += "\n## Licences\n\nOf others' work the file has numbers alone: no text, no image, no model.\n\n";
  for (const std::string& licence : licences) text += fmt::format("- `licences/{}`\n", printable(licence));
  if (licences.empty()) text += "No licence file was given.\n";
  return text;
}

}  // namespace

std::string text_of(const ArtifactCounts& counts) {
  const std::string runs = counted(static_cast<int64_t>(counts.runs), "run");
  return fmt::format("{}, {}, {}, {}",
                     counts.results == counts.runs ? runs : fmt::format("{} of {} have a result", counts.results, runs),
                     counted(static_cast<int64_t>(counts.tables), "table"),
                     counted(static_cast<int64_t>(counts.figures), "figure"),
                     counted(static_cast<int64_t>(counts.claims), "claim"));
}

PrintedResults print_results(const Workspace& archive, const std::vector<std::string>& sweeps, const std::string& file,
                             const std::vector<std::string>& licences) {
  Globals globals;
  globals.workspace = archive.root();
  std::vector<GridState> states;
  std::map<std::string, size_t> uses_of_grid;  // how many have this name
  std::set<std::string> runs, results;         // ids
  for (const std::string& sweep : sweeps) {
    GridState& state = states.emplace_back(look_up_sweep({sweep}, globals));
    if (!state.errors.empty()) throw UserError(state.errors.front());
    read_for_views(state);
    ++uses_of_grid[state.grid.file.stem()];
    for (const Row& row : state.results.rows) {
      runs.insert(row.run.id);
      if (row.result.state && has_result(*row.result.state)) results.insert(row.run.id);
    }
  }
  Files files;
  ArtifactCounts counts{.runs = runs.size(), .results = results.size()};
  for (size_t i = 0; i < sweeps.size(); ++i) {
    GridState& state = states[i];
    const std::string stem = state.grid.file.stem(), grid = uses_of_grid[stem] > 1 ? sweeps[i] : stem;
    counts.tables += add_tables(state, grid, files);
    counts.claims += add_claims(state, grid, files);
    std::vector<std::string> names = names_of_figures(state);
    const std::vector<Figure> figures = figures_of(state, names, /*has_scores=*/true, [](const auto&) { return true; });
    counts.figures += figures.size();
    if (sweeps.size() > 1)
      std::ranges::transform(names, names.begin(), [&](const auto& name) { return grid + "/" + name; });
    add_figures(figures, names, files);
  }
  Report report = report_of(states, globals, /*all_curves=*/false);
  report.command = fmt::format("tearless report --workspace {} -o report.html", shell_word(file));
  files.add("report.html", page_of(report));
  PrintedResults printed{.files = files.take(), .counts = counts};
  printed.files.insert(printed.files.begin(),
                       {"artifact/README.md", readme(states, sweeps, file, counts, printed.files, licences)});
  return printed;
}

}  // namespace tearless::harness
