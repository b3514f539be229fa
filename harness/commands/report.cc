// `tearless report [GRID | SWEEP] -o report.html`: all that is known of a grid and its runs, as one page that opens
// anywhere (harness/report/report.h); with `--text PAGE.md` a page of Markdown (text_report.h).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/print.h"
#include "base/words.h"
#include "harness/archive/published.h"
#include "harness/commands/commands.h"
#include "harness/commands/printed_views.h"
#include "harness/commands/table_options.h"
#include "harness/commands/text_report.h"
#include "harness/commands/view_output.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

struct ReportOptions : ViewOptions {
  std::string title;  // "": that of the grid
  fs::path text;
  bool all_curves = false;
};

/// UserError for what is there and is no report: it would be lost.
void require_report_or_nothing(const fs::path& file) {
  if (fs::is_directory(file))
    fail("-o {}: it is a folder; name a file in it: {}", file.string(), (file / "report.html").string());
  if (const std::string ending = lowered(file.extension()); ending != ".html" && ending != ".htm")
    fail("-o {}: a report is HTML; name it {}", file.string(), fs::path(file).replace_extension(".html").string());
  if (!fs::exists(file)) return;
  std::string head(4096, ' ');
  if (fs::is_regular_file(file)) std::ifstream(file).read(head.data(), std::ssize(head));
  if (head.find(kGenerator) == std::string::npos) {
    fail("-o {}: it is there and is no report; delete it, or name another file", file.string());
  }
}

/// Of an archive without words all sweeps, in the order in which they were submitted.
std::vector<GridState> states_of(const ReportOptions& options, const Globals& globals) {
  const bool is_chosen = !options.words.empty() || !options.layout.empty() || !options.parts.empty();
  const std::vector<Sweep> sweeps =
      is_chosen || !archive_of(globals.workspace) ? std::vector<Sweep>() : require_store(globals)->sweeps();
  if (sweeps.empty()) return options.states(globals);
  std::vector<GridState> states;
  for (const Sweep& sweep : sweeps) {
    states.insert(states.begin(), look_up_sweep({sweep.id}, globals));
    if (!states.front().errors.empty()) throw UserError(states.front().errors.front());
  }
  return states;
}

/// The command line, without folders.
std::string command_of(const ReportOptions& options, const fs::path& out, const Globals& globals) {
  std::string command = "tearless report";
  for (const std::string& word : options.words) command += " " + shell_word(without_folders(word));
  command += option_words("--part", options.parts);
  if (!options.layout.empty()) command += " --layout " + shell_word(options.layout.filename().string());
  if (!options.title.empty()) command += " --title " + shell_word(options.title);
  if (options.all_curves) command += " --all-curves";
  return command + without_folders(options_again(globals)) + " -o " + shell_word(out.filename().string());
}

int make_report(const ReportOptions& options, const Globals& globals) {
  if (!options.text.empty()) return text_report(options.text, options, globals);
  if (options.out.empty()) fail("where to? Add -o report.html");
  const fs::path out = options.out;
  require_report_or_nothing(out);
  std::vector<GridState> states = states_of(options, globals);
  for (GridState& state : states) read_for_views(state);
  Report report = report_of(states, globals, options.all_curves);
  const bool has_result = std::ranges::any_of(report.runs, [](const ReportRun& run) {
    return run.row.result.state && harness::has_result(*run.row.result.state);
  });
  if (!has_result) fail("no run of {} has a result yet: there is nothing to report", report.grids.front().title);
  if (!options.title.empty()) report.title = options.title;
  if (!options.layout.empty()) report.grids.front().layout = read_file(options.layout);
  report.command = command_of(options, out, globals);
  const std::string page = page_of(report);
  write_files({{.files = {{.path = out, .bytes = page}}}});
  if (globals.json) {
    print_json({{"file", options.out}, {"runs", report.runs.size()}, {"bytes", page.size()}});
  } else {
    print("{}: {}, {}\n", options.out, counted(std::ssize(report.runs), "run"), bytes_text(std::ssize(page)));
  }
  return kOk;
}

}  // namespace

Action command_report(CLI::App& app, const Globals& globals) {
  const auto options = std::make_shared<ReportOptions>();
  options->add_selection_to(app);
  app.add_option("-o,--out", options->out,
                 "the page to write; a report that is there is replaced. With --text: write the page there, its "
                 "figures beside it, and leave PAGE.md")
      ->type_name("FILE");
  CLI::Option* const text =
      app.add_option("--text", options->text,
                     "a page of Markdown, in which <!-- tearless table SWEEP --> and <!-- end --> enclose a table; a "
                     "page that is not there is written first")
          ->type_name("PAGE.md");
  app.add_option("--title", options->title, "of the page (default: that of the grid)")->excludes(text);
  app.add_flag("--all-curves", options->all_curves,
               "curves of all metrics, not only of those that the grid's views use, train.loss and dev.*")
      ->excludes(text);
  return [options, &globals] { return make_report(*options, globals); };
}

}  // namespace tearless::harness
