// `tearless`: from a grid file to a paper's table. This file has the table of commands and the parsing of the command
// line; the commands are in commands/.
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/system/system_error.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/build_stamp.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/nearest.h"
#include "base/output.h"
#include "base/print.h"
#include "base/utf8.h"
#include "base/words.h"
#include "harness/archive/archive.h"
#include "harness/archive/open_archive.h"
#include "harness/commands/commands.h"
#include "harness/console/command_line.h"
#include "harness/folders/rebuild.h"
#include "harness/grid/packaged.h"
#include "harness/plan/grid_state.h"
#include "harness/runs/workspace.h"
#include "harness/selection/selectors.h"
#include "harness/serve/serve.h"
#include "harness/service/protocol.h"
#include "harness/store/writer.h"

namespace {

using namespace tearless;
using namespace tearless::harness;

/// What --workspace may name. Only a folder can be changed. kArchiveAsItIs: the command reads an archive itself.
enum WorkspaceKind { kFolder, kFolderOrArchive, kArchiveAsItIs };

struct Command {
  std::string group;  // of --help; "": not listed
  std::string name, help;
  std::string page;  // of docs/, that --help names
  Action (*define)(CLI::App&, const Globals&);
  WorkspaceKind workspace = kFolder;
  bool has_json = true;  // false: --json is refused
};

constexpr const char* kSupervise = "supervise";

// In the order of --help.
constexpr const char *kTrain = "Train a grid", *kService = "Direct what trains", *kLook = "Look at sweeps and runs",
                     *kResults = "Results", *kKeep = "Keep a workspace";

const std::vector<Command> kCommands = [] {
  std::vector<Command> commands = {
      {kTrain, "plan", "show what a grid asks for: its runs, what is done, what is missing", "grid_file.md",
       command_plan, kFolderOrArchive},
      {kTrain, "run", "train the runs that a grid still lacks; Ctrl-C stops with checkpoints, another `run` resumes",
       "first_grid.md", command_run, kFolder,
       /*has_json=*/false},
      {kTrain, "submit", "have grids trained in the background", "daemon.md", command_submit},
      {kTrain, "watch", "show what becomes of a sweep until it ends; Ctrl-C ends the watching alone", "daemon.md",
       command_watch, kFolder,
       /*has_json=*/false},
      {kTrain, "wait", "return when sweeps or runs have ended", "daemon.md", command_wait},
      {kTrain, "wrap", "make a training program of a script as it is: flags in, its last line of JSON out", "wrap.md",
       command_wrap, kFolder, /*has_json=*/false},
      {kService, "daemon", "keep the service of a workspace until it is told to stop; runs outlive it", "daemon.md",
       command_daemon, kFolder,
       /*has_json=*/false},
      {kService, "worker", "train runs of a workspace on this machine, for a service elsewhere", "slurm.md",
       command_worker, kFolder,
       /*has_json=*/false},
      {kService, "stop", "end the service; its runs continue, unless --now", "daemon.md", command_stop},
      {kLook, "status", "show the state of a workspace's sweeps", "daemon.md", command_status, kFolderOrArchive},
      {kLook, "runs", "list runs with their coordinates, states and scores: text, CSV, JSON", "daemon.md", command_runs,
       kFolderOrArchive},
      {kLook, "explain", "show the runs and attempts of a run or a cell, and why it is missing, stale or failed",
       "daemon.md", command_explain, kFolderOrArchive},
      {kLook, "log", "print the output of a run's newest attempt", "daemon.md", command_log, kFolderOrArchive},
      {kLook, "serve", "show a workspace in a browser on this machine: progress, curves, tables, logs (read-only)",
       "serve.md", command_serve, kFolderOrArchive, /*has_json=*/false},
      {kLook, "sql", "query the database in SQL (read-only)", "sql.md", command_sql, kFolderOrArchive},
      {kResults, "table", "print a grid's table: text, markdown, latex, html, csv, json", "tables.md", command_table,
       kFolderOrArchive},
      {kResults, "check-table", "print the verdicts of a grid's claims; exit with 1 if one is contradicted",
       "claims.md", command_check_table, kFolderOrArchive},
      {kResults, "cost", "print what the runs of sweeps took, and what all seeds of their grids would take",
       "claims.md", command_cost, kFolderOrArchive},
      {kResults, "figure", "draw a grid's figures: text, csv, json, pgfplots, svg, pdf, png", "figures.md",
       command_figure, kFolderOrArchive},
      {kResults, "report", "write a grid's results as one page of HTML, or fill a page of Markdown with them",
       "report.md", command_report, kFolderOrArchive},
      {kResults, "plot",
       "draw curves of metrics over updates on the terminal: cells with the range of their seeds, or runs",
       "figures.md", command_plot, kFolderOrArchive},
      {kResults, "diff", "show the settings and scores in which two runs, or two sweeps, differ", "how_to.md",
       command_diff, kFolderOrArchive},
      {kKeep, "copy", "copy a workspace, also while a service works in it", "how_to.md", command_copy,
       kFolderOrArchive},
      {kKeep, "artifact",
       "make one file to hand to a reviewer: results, and the tables, claims and figures that are made of them",
       "how_to.md", command_artifact, kFolderOrArchive},
      {kKeep, "export", "write runs for other programs: TensorBoard event files, CSV", "export.md", command_export,
       kFolderOrArchive},
      {kKeep, "verify",
       "compare database, run folders and checksums, and show the differences and how to repair them; or verify an "
       "artefact",
       "kill_it.md", command_verify, kArchiveAsItIs},
      {kKeep, "verify-resume", "train finished runs again with stops on the way, and compare the results byte for byte",
       "kill_it.md", command_verify_resume},
      {kKeep, "clean", "delete checkpoints of finished runs, and programs that no sweep needs", "devices.md",
       command_clean},
      {kKeep, "delete", "delete sweeps with their results, or the results of single runs", "daemon.md", command_delete},
      {kKeep, "rebuild", "rebuild a lost database from the run folders", "kill_it.md", command_rebuild},
      {"", "completion", "", "", command_completion, kFolderOrArchive, /*has_json=*/false},
      {"", "manual", "", "", command_manual, kFolderOrArchive, /*has_json=*/false},
      {"", kSupervise, "", "", command_supervise, kFolder, /*has_json=*/false},
  };
  for (const RequestKind& kind : request_kinds()) {
    if (!kind.help.empty())
      commands.push_back({kService, std::string(kind.name), std::string(kind.help), "daemon.md", command_request});
  }
  return commands;
}();

// The others do without, ask a service, or make the database themselves.
bool opens_database(const Command& command) {
  return !command.group.empty() && command.group != kService && command.name != "rebuild";
}

std::string commands_with_json() {
  std::vector<std::string> names;
  for (const Command& command : kCommands) {
    if (command.has_json) names.emplace_back(command.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// Words of other tools → what serves here.
constexpr std::pair<std::string_view, std::string_view> kWordsOfOthers[] = {
    {"help", "--help"}, {"ls", "runs"},   {"list", "runs"}, {"show", "explain"},
    {"ps", "status"},   {"train", "run"}, {"rm", "delete"}};

std::string suggestion(const std::string& word, const std::vector<std::string>& commands) {
  const auto known = std::ranges::find(kWordsOfOthers, word, &std::pair<std::string_view, std::string_view>::first);
  return known == std::end(kWordsOfOthers) ? did_you_mean(word, commands)
                                           : fmt::format(" (did you mean \"{}\"?)", known->second);
}

// Reports a mistyped command with what to type; CLI11 would only report an unexpected argument.
void refuse_unknown_command(const std::vector<std::string>& words) {
  std::vector<std::string> names, hidden;
  for (const Command& command : kCommands) (command.group.empty() ? hidden : names).emplace_back(command.name);
  const auto has = [](const std::vector<std::string>& list, const std::string& word) {
    return std::find(list.begin(), list.end(), word) != list.end();
  };
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--workspace" || words[i] == "--engine")
      ++i;  // skip the option's value
    else if (words[i].starts_with("-"))
      continue;
    else if (has(names, words[i]) || has(hidden, words[i]))
      return;
    else
      fail("there is no command \"{}\"{}; tearless --help lists them", words[i], suggestion(words[i], names));
  }
}

constexpr char kNoOption = '\x01';  // before a word that stands behind "--"

// As CLI11 parses them, the last one first. It would forget the "--" behind a first word of the command.
std::vector<std::string> reversed_words(int argc, char** argv, bool supervises) {
  std::vector<std::string> words;
  bool is_option = true;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (is_option && !supervises && word == "--")
      is_option = false;
    else
      words.insert(words.begin(), is_option || !word.starts_with('-') ? word : kNoOption + word);
  }
  return words;
}

// The packaged grid that `word` is the name of, unless a file or something in the workspace is called so. `is_grid`:
// the command takes grids alone.
std::optional<std::filesystem::path> packaged_instead(const std::string& word, bool is_grid, const Globals& globals) {
  if (is_grid_word(word)) return std::nullopt;
  const std::optional<std::filesystem::path> file = packaged_grid(word);
  const auto store = file || is_grid ? Store::open_reader(Workspace(globals.workspace)) : nullptr;
  if (is_grid) {
    for (const Sweep& sweep : store ? store->sweeps() : std::vector<Sweep>{}) {
      if (sweep.name != word) continue;
      fail("\"{}\" is the name of sweep {}; to train its grid: tearless run {}{}", word, sweep.id,
           shell_word(sweep.grid_file), options_again(globals));
    }
    std::error_code unreachable;
    if (!file && !std::filesystem::exists(word, unreachable)) {
      fail("cannot read {}: No such file or directory{}", word, packaged_advice(word));
    }
  }
  return file && (is_grid || !store || !names_sweep_or_run(*store, word)) ? file : std::nullopt;
}

// Puts the files of packaged grids in the place of their names.
void take_packaged_grids(CLI::App& command, const Globals& globals) {
  for (CLI::Option* option : command.get_options([](const CLI::Option* one) { return one->get_positional(); })) {
    const std::string name = option->get_name();
    if (name != "grid" && name != "what") continue;
    std::vector<std::string> words = option->results();
    bool is_changed = false;
    for (std::string& word : words) {
      const auto file = packaged_instead(word, name == "grid", globals);
      if (!file) continue;
      notice(fmt::format("{} is the packaged grid {}", word, file->string()));
      word = file->string();
      is_changed = true;
    }
    if (!is_changed) continue;
    option->clear();
    option->add_result(words);
    option->run_callback();
  }
}

int run(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "wrap") become_wrap(argv + 2);  // it parses its words itself
  be_on_path();
  CLI::App app("Ablation grids of Transformers: one TOML file in, a paper's table out.", "tearless");
  Globals globals;
  const CLI::Option* const workspace =
      app.add_option("--workspace", globals.workspace,
                     "the folder of database, runs and sweeps, or an archive of `tearless copy` (default: "
                     "$TEARLESS_WORKSPACE, else the nearest results/ "
                     "from here upwards, else ./results)");
  const CLI::Option* const engine = app.add_option(
      "--engine", globals.engine,
      "the training program (default: the grid's `program`, else $TEARLESS_ENGINE, else tearless-engine beside "
      "this program)");
  const CLI::Option* const json =
      app.add_flag("--json", globals.json, "print JSON; a command that has none refuses it");
  app.set_version_flag("--version", fmt::format("tearless {}", build_stamp()));
  app.footer("A first try: tearless run demo (docs/first_grid.md). All commands on one page: docs/commands.md.");
  app.require_subcommand(1);

  struct Defined {
    const Command* command;
    Action act;
  };
  std::map<const CLI::App*, Defined> commands;
  const bool supervises = argc > 1 && std::string_view(argv[1]) == kSupervise;
  for (const Command& command : kCommands) {
    // One is started for each attempt, and to define all commands takes longer than what it does first.
    if (supervises && command.name != kSupervise) continue;
    CLI::App* subcommand = app.add_subcommand(command.name, command.help);
    subcommand->group(command.group);
    subcommand->fallthrough();  // global options may follow the command
    std::vector<const CLI::Option*> of_all = {workspace, engine};
    if (command.has_json) of_all.push_back(json);
    std::string footer =
        CLI::Formatter().make_group("Options of every command", /*is_positional=*/false, of_all).substr(1);
    if (!command.page.empty()) footer += "\nMore: docs/" + command.page;
    subcommand->footer(footer);
    commands[subcommand] = {&command, command.define(*subcommand, globals)};
    for (CLI::Option* option : subcommand->get_options([](const CLI::Option* one) { return one->get_positional(); }))
      option->transform([](const std::string& word) { return word.starts_with(kNoOption) ? word.substr(1) : word; });
  }
  refuse_unknown_command(std::vector<std::string>(argv + 1, argv + argc));
  try {
    app.parse(reversed_words(argc, argv, supervises));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    fail("{}", sentence_of(error, app));
  }
  if (workspace->count() > 0 && globals.workspace.empty()) fail("--workspace is empty; name a folder, or leave it out");
  const char* const in_environment = std::getenv("TEARLESS_WORKSPACE");
  globals.is_workspace_named = workspace->count() > 0 || (in_environment && *in_environment);
  if (globals.workspace.empty()) globals.workspace = default_workspace();
  if (workspace->count() == 0 && globals.workspace.string().starts_with("-")) {
    fail("TEARLESS_WORKSPACE={} looks like an option; name a folder, such as ./{}", globals.workspace.string(),
         globals.workspace.string());
  }
  const Defined& chosen = commands.at(app.get_subcommands().front());
  const bool names_archive = is_archive(globals.workspace);
  if (names_archive && chosen.command->workspace == kFolder) refuse_archive(globals.workspace);
  if (!names_archive || chosen.command->workspace == kFolderOrArchive) {
    globals.workspace = open_workspace(globals.workspace);
  }
  if (globals.json && !chosen.command->has_json) {
    fail("tearless {} prints no JSON; omit --json, or use it with one of: {}", chosen.command->name,
         commands_with_json());
  }
  if (opens_database(*chosen.command)) {
    rebuild_if_earlier(Workspace(globals.workspace));
    rebuild_if_earlier(Workspace(globals.workspace).smoke());
  }
  take_packaged_grids(*app.get_subcommands().front(), globals);
  return chosen.act();
}

// Of a system call that failed where no file is to be named.
std::string machine_sentence(int error, const std::string& what) {
  const char* const limit = error == EMFILE ? " (ulimit -n)" : error == EAGAIN ? " (ulimit -u)" : "";
  return fmt::format("tearless: this machine allows no more: {}{}; try again where it does", what, limit);
}

}  // namespace

int main(int argc, char** argv) {
  tearless::fault::begin(tearless::fault::kHarness);
  try {
    return with_output_written([&] { return run(argc, argv); });
  } catch (const tearless::UserError& error) {
    print_error("tearless: " + printable_lines(error.what()));
    return kUsage;
  } catch (const std::filesystem::filesystem_error& error) {
    print_error(fmt::format("tearless: cannot use {}: {}; check that path", printable(error.path1().string()),
                            error.code().message()));
    return kUsage;
  } catch (const boost::system::system_error& error) {
    print_error(machine_sentence(error.code().value(), error.code().message()));
    return kUsage;
  } catch (const std::system_error& error) {
    print_error(machine_sentence(error.code().value(), error.code().message()));
    return kUsage;
  } catch (const std::bad_alloc&) {
    print_error("tearless: out of memory; ask for fewer runs or rows at a time, or use a larger machine");
    return kUsage;
  } catch (const std::exception& error) {
    print_error(fmt::format("tearless: {} (this is a bug in tearless, not a mistake in your input)",
                            printable_lines(error.what())));
    return kSomethingFailed;
  }
}
