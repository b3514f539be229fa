#include "harness/commands/text_report.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/nearest.h"
#include "base/print.h"
#include "base/words.h"
#include "harness/archive/open_archive.h"
#include "harness/check/named_claims.h"
#include "harness/commands/printed_views.h"
#include "harness/commands/view_output.h"
#include "harness/console/command_line.h"
#include "harness/folders/rebuild.h"
#include "harness/report/text_page.h"
#include "harness/runs/workspace.h"
#include "harness/selection/selectors.h"
#include "harness/table/one_cell.h"

namespace tearless::harness {
namespace fs = std::filesystem;
namespace {

/// While it is there, paths are from a folder.
class InFolder {
 public:
  explicit InFolder(const fs::path& folder) : before_(fs::current_path()) { fs::current_path(folder); }
  ~InFolder() {
    std::error_code gone;
    fs::current_path(before_, gone);
  }
  InFolder(const InFolder&) = delete;
  InFolder& operator=(const InFolder&) = delete;

 private:
  fs::path before_;
};

std::string text_of(const fs::path& page) {
  constexpr uint64_t kMaxBytes = 64 << 20;
  return read_regular_file(page, kMaxBytes);
}

bool has_places(const fs::path& page) {
  return std::ranges::any_of(TextPage(text_of(page), page.string()).places(), &TextPage::Place::has_text);
}

/// What is to be typed where a page lacks one, beside kEndOfPlace.
constexpr const char* kAPlace = "<!-- tearless table SWEEP -->";

fs::path folder_of(const fs::path& page) { return page.has_parent_path() ? page.parent_path() : "."; }

std::string markdown(const std::string& text) { return text_in(TableFormat::kMarkdown, text, ""); }

// --- places ----------------------------------------------------------------------------------------------------------

struct PlaceCommand {
  const char* name;
  ViewMaker (*define)(CLI::App&);
  const char* format = nullptr;  // where its words name none; null: it has no formats
  bool draws = false;            // the place has pictures in place of a text
};
constexpr PlaceCommand kCommands[] = {{"table", define_table, "markdown"},
                                      {"check-table", define_check_table, "markdown"},
                                      {"cost", define_cost},
                                      {"figure", define_figure, "svg", true}};
/// What is made of the tables and claims of other places.
constexpr const char *kCell = "cell", *kClaim = "claim", *kClaims = "claims";
bool is_of_other_places(const std::string& word) { return word == kCell || word == kClaim || word == kClaims; }

struct Filled {
  std::string text = {};
  bool is_in_sentence = false;  // not on lines of its own
  ViewOutput output = {};
};

std::string images_of(const std::vector<ViewOutput::File>& files) {
  std::string lines;
  for (const ViewOutput::File& file : files) {
    if (file.caption.text.empty()) continue;
    const std::string path = file.path.generic_string();
    const bool is_plain = path.find_first_of(" ()<>") == std::string::npos;
    lines += fmt::format("![{}]({})\n", markdown(file.caption.text), is_plain ? path : "<" + path + ">");
  }
  if (lines.empty()) fail("there is no picture for the page: add --format svg, or a list with svg in it, and --out");
  return lines;
}

/// UserError for a table of dashes alone, which says nothing and would replace what the place has.
void require_result(const ViewOutput& output, const fs::path& workspace) {
  const auto has_result = [](const TableCell& one) { return one.cell.n() > 0 || !one.cell.ends.empty(); };
  const auto row_has_one = [&](const Table::Row& row) { return std::ranges::any_of(row.cells, has_result); };
  const auto table_has_one = [&](const Table& table) { return std::ranges::any_of(table.rows, row_has_one); };
  if (output.tables.empty() || std::ranges::any_of(output.tables, table_has_one)) return;
  fail("no run of the table \"{}\" has a result here, in {}; train its runs first, or add --workspace FOLDER",
       output.tables.front().title.text, archive_of(workspace).value_or(workspace).string());
}

/// UserError for files that a place may not write: elsewhere than beside the page, or made by another program, which
/// can fail when others are written.
void require_files_of_page(const ViewOutput& output) {
  for (const ViewOutput::File& file : output.files) {
    if (file.made_of_svg) fail("a page has figures as svg, csv or pgfplots; for PDF and PNG: tearless figure");
    if (file.path.is_absolute() || *file.path.lexically_normal().begin() == "..")
      fail("--out {}: a page has its figures in its own folder, or below it; name a folder there", file.path.string());
  }
}

/// `globals`: of the place; `--workspace` alone changes its workspace. Without one it is empty. `folder`: of the page,
/// for messages.
Filled carry_out(const std::vector<std::string>& words, Globals& globals, const fs::path& folder) {
  const auto command = std::ranges::find(kCommands, words.front(), &PlaceCommand::name);
  if (command == std::end(kCommands) && !words.front().starts_with('-')) {
    std::vector<std::string> names = {kCell, kClaim, kClaims};
    for (const PlaceCommand& one : kCommands) names.emplace_back(one.name);
    fail("no place is filled by \"{}\"{}; the commands are: {}", words.front(), did_you_mean(words.front(), names),
         fmt::join(names, ", "));
  }
  CLI::App app("", "tearless");
  app.set_help_flag();
  fs::path workspace;
  app.add_option("--workspace", workspace);
  ViewMaker make;
  const CLI::Option *format = nullptr, *out = nullptr;
  if (command != std::end(kCommands)) {
    CLI::App& own = *app.add_subcommand(command->name);
    own.fallthrough();
    own.set_help_flag();
    make = command->define(own);
    if (command->format) {
      format = own.get_option("--format")->default_val(command->format);
      out = own.get_option("--out");
    }
  }
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& error) {
    fail("{}", sentence_of(error, app));
  }
  Globals there = globals;
  if (!workspace.empty()) {
    there.workspace = open_workspace(workspace);
    rebuild_if_earlier(Workspace(there.workspace));
  }
  if (!make) {
    globals = there;
    return {};
  }
  if (there.workspace.empty()) fail("there is no workspace at or above {}; add --workspace FOLDER", folder.string());
  if (command->draws) {
    if (out->count() == 0) fail("figure: add --out FOLDER/");
  } else if (format && format->count() > 0 && format->as<std::string>() != command->format) {
    fail("a page has tables as Markdown; omit --format {}", format->as<std::string>());
  }
  Filled filled{.output = make(there)};
  require_result(filled.output, there.workspace);
  require_files_of_page(filled.output);
  if (command->draws) {
    filled.text = images_of(filled.output.files);
  } else {
    if (!filled.output.files.empty()) fail("what is printed stands in the page; omit --out");
    filled.text = filled.output.text;
    filled.is_in_sentence = std::ranges::count(filled.text, '\n') == 1;
    if (filled.is_in_sentence) filled.text.pop_back();
  }
  return filled;
}

/// UserError for a word of a cell that is no AXIS=LABEL, shows nothing, and is no score: a sweep may be meant.
void require_scores(const std::vector<Table>& tables, const std::vector<std::string>& words) {
  std::set<std::string> scores, in_print;
  for (const Table& table : tables) {
    for (const Table::Column& column : table.columns) {
      scores.insert(column.score);
      in_print.insert(name_of(table.names, column.score).text);
    }
  }
  for (const std::string& word : words) {
    if (word.find_first_of("={") != std::string::npos || scores.contains(word) || in_print.contains(word)) continue;
    fail("{}: no table of the page is of \"{}\", and none has such a score{}; they have: {}", kCell, word,
         did_you_mean(word, std::vector<std::string>(scores.begin(), scores.end())), fmt::join(scores, ", "));
  }
}

/// Of the places with tables (`has_views`) those that all such `words` mean that places have, such as a sweep; these
/// words are taken out.
std::vector<size_t> places_meant(std::vector<std::string>& words, const std::vector<TextPage::Place>& places,
                                 const std::function<bool(size_t)>& has_views) {
  std::vector<size_t> meant;
  for (size_t i = 0; i < places.size(); ++i) {
    if (has_views(i)) meant.push_back(i);
  }
  std::vector<std::string> others;
  for (const std::string& word : words) {
    const auto is_of = [&](size_t place) {
      return std::ranges::find(places[place].words, word) != places[place].words.end();
    };
    if (std::ranges::none_of(meant, is_of)) {
      others.push_back(word);
    } else {
      std::erase_if(meant, std::not_fn(is_of));
    }
  }
  words = std::move(others);
  return meant;
}

/// `words`: behind `cell`. `filled`: the places before and after it.
OneCell cell_of_page(std::vector<std::string> words, const std::vector<TextPage::Place>& places,
                     const std::vector<Filled>& filled) {
  const std::vector<size_t> with_tables = places_meant(
      words, places, [&](size_t i) { return !filled[i].is_in_sentence && !filled[i].output.tables.empty(); });
  if (with_tables.empty())
    fail("a cell is one of the tables of the page, and it has none; add {} to the page", kAPlace);
  std::vector<Table> tables;
  for (const size_t i : with_tables) std::ranges::copy(filled[i].output.tables, std::back_inserter(tables));
  require_scores(tables, words);
  return one_cell(tables, words, TableFormat::kMarkdown, kCell);
}

/// `words`: `claim` or `claims`, and what is behind it.
std::string claims_of_page(std::vector<std::string> words, const std::vector<TextPage::Place>& places,
                           const std::vector<Filled>& filled) {
  const std::string kind = words.front();
  words.erase(words.begin());
  std::vector<GridChecks> checks;
  for (const size_t i : places_meant(words, places, [&](size_t place) { return !filled[place].output.checks.empty(); }))
    std::ranges::copy(filled[i].output.checks, std::back_inserter(checks));
  return markdown(kind == kClaim ? text_of_claim(checks, words, kind) : counts_of_claims(checks, words, kind));
}

/// Markdown reads a line that a comment begins as HTML, to its end.
void require_line(const TextPage::Place& place, bool is_in_sentence) {
  if (place.begins_line && is_in_sentence)
    fail("the comment begins its line, and Markdown would show the rest of that as it is; put a word before it");
  if (!place.begins_line && !is_in_sentence)
    fail("what is more than a line stands on lines of its own; begin one with the comment");
}

/// All places, in the folder of the page. `name`: of the page, for messages.
std::vector<Filled> fill_places(const std::vector<TextPage::Place>& places, const std::string& name, Globals globals) {
  std::vector<Filled> filled(places.size());
  std::map<fs::path, std::pair<size_t, std::string>> files;  // line of the place, bytes
  const auto fill = [&](size_t i, const auto& act) {
    const TextPage::Place& place = places[i];
    try {
      act(filled[i]);
      if (place.has_text) require_line(place, filled[i].is_in_sentence);
      if (filled[i].output.lacks_value)
        notice(
            fmt::format("{}:{}: the cell has no value, and is \"{}\" in the page", name, place.line, filled[i].text));
      for (const ViewOutput::File& file : filled[i].output.files) {
        const auto [other, is_new] = files.emplace(file.path.lexically_normal(), std::pair(place.line, file.bytes));
        if (!is_new && other->second.second != file.bytes)
          fail("the place of line {} writes {}, too; give one of them another --out", other->second.first,
               file.path.string());
      }
    } catch (const UserError& error) {
      fail("{}:{}: {}", name, place.line, error.what());
    }
  };
  for (size_t i = 0; i < places.size(); ++i) {
    if (is_of_other_places(places[i].words.front())) continue;
    fill(i, [&](Filled& one) { one = carry_out(places[i].words, globals, folder_of(name)); });
  }
  for (size_t i = 0; i < places.size(); ++i) {
    const std::vector<std::string>& words = places[i].words;
    if (!is_of_other_places(words.front())) continue;
    fill(i, [&](Filled& one) {
      if (words.front() != kCell) {
        one = {.text = claims_of_page(words, places, filled), .is_in_sentence = true};
        return;
      }
      OneCell cell = cell_of_page({words.begin() + 1, words.end()}, places, filled);
      one = {.text = std::move(cell.text), .is_in_sentence = true, .output = {.lacks_value = !cell.has_value}};
    });
  }
  return filled;
}

/// Makes a path of the environment one that is the same in every folder.
void make_absolute(const char* name) {
  const char* const path = std::getenv(name);
  if (path && *path) ::setenv(name, fs::absolute(path).c_str(), /*overwrite=*/1);
}

/// The same program and workspace, for commands in the folder of a page. A workspace that nobody named is the one that
/// is found from there upwards; none: it is empty.
Globals seen_from(const fs::path& folder, Globals globals) {
  if (!globals.engine.empty()) globals.engine = fs::absolute(globals.engine);
  globals.json = false;  // which is of the command's answer; a page has Markdown
  if (globals.is_workspace_named) {
    globals.workspace = fs::relative(fs::absolute(globals.workspace), folder);
    return globals;
  }
  const InFolder there(folder);
  globals.workspace = default_workspace();
  if (!is_workspace(globals.workspace)) globals.workspace.clear();
  if (!globals.workspace.empty()) rebuild_if_earlier(Workspace(globals.workspace));
  return globals;
}

// --- a first page ----------------------------------------------------------------------------------------------------

bool has_claims(const GridState& state) {
  return std::ranges::any_of(state.views, [](const View& view) {
    const auto* table = std::get_if<TableSpec>(&view.spec);
    return std::holds_alternative<ClaimSpec>(view.spec) ||
           (table &&
            std::ranges::any_of(table->published, [](const Published& one) { return !one.tolerances.empty(); }));
  });
}

std::string empty_place(const std::vector<std::string>& words) {
  return fmt::format("{}\n{}\n\n", comment_of(words), kEndOfPlace);
}

/// The words by which the places of a page name what was asked for.
std::vector<std::string> words_of(const GridState& state, const ViewOptions& options, const Globals& globals,
                                  const fs::path& folder) {
  const auto from_page = [&](const fs::path& file) { return fs::relative(file, folder).generic_string(); };
  if (options.layout.empty() && grid_as_it_is_now(options.words)) return {from_page(state.grid.file)};
  const std::vector<std::string> fixed = fixed_words();
  const bool is_name = options.words.size() == 1 && !is_grid_word(options.words.front()) &&
                       std::ranges::find(fixed, options.words.front()) == fixed.end();
  std::vector<std::string> words = {is_name ? options.words.front()
                                            : one_sweep(*require_store(globals), options.words)};
  if (!options.layout.empty()) words.insert(words.end(), {"--layout", from_page(options.layout)});
  return words;
}

/// An empty place for each table and figure, and for the claims. `figures`: the folder.
std::string places_for(const GridState& state, const std::vector<std::string>& words, const std::string& figures) {
  const auto place = [&](std::string command, const std::vector<std::string>& more) {
    std::vector<std::string> all = {std::move(command)};
    all.insert(all.end(), words.begin(), words.end());
    all.insert(all.end(), more.begin(), more.end());
    return empty_place(all);
  };
  std::vector<std::string> captions;
  for (const View& view : state.views) {
    if (std::holds_alternative<TableSpec>(view.spec)) captions.push_back(view.title.text);
  }
  std::string text;
  for (const std::string& caption : captions) {
    std::vector<std::string> more = {"--final"};
    if (captions.size() > 1) more.insert(more.end(), {"--only", caption});
    text += place("table", more);
  }
  for (const std::string& name : names_of_figures(state)) text += place("figure", {"--only", name, "--out", figures});
  return text + (has_claims(state) ? "## Claims\n\n" + place("check-table", {}) : "");
}

/// Its path from the folder of a page; "" if commands find it there by themselves.
std::string workspace_to_name(const fs::path& folder, const fs::path& workspace) {
  const fs::path named = fs::absolute(archive_of(workspace).value_or(workspace)), root = fs::absolute(workspace);
  const InFolder there(folder);
  return workspace_option(root).empty() ? "" : fs::relative(named).generic_string();
}

std::string first_page(const fs::path& page, const ViewOptions& options, const Globals& globals) {
  const fs::path folder = folder_of(page);
  std::string text;
  const std::vector<GridState> states = options.states(globals);
  for (const GridState& state : states) {
    text += fmt::format("# {}\n\n", markdown(state.grid.title));
    if (text.find('\n') == text.size() - 2) {
      text += fmt::format(
          "`tearless report --text {}` makes the tables, claims and figures of this page again, and leaves all other "
          "text.\n\n",
          shell_word(page.filename().string()));
      if (const std::string workspace = workspace_to_name(folder, globals.workspace); !workspace.empty())
        text += comment_of({"--workspace", workspace}) + "\n\n";
    }
    const fs::path figures = states.size() > 1 ? page.stem() / state.grid.file.stem() : page.stem();
    text += places_for(state, words_of(state, options, globals, folder), figures.string() + "/");
  }
  text.pop_back();
  return text;
}

}  // namespace

int text_report(const fs::path& page, const ViewOptions& options, const Globals& globals) {
  for (const char* name : {"TEARLESS_ENGINE", "TEARLESS_WORKSPACE"}) make_absolute(name);
  const std::string named = !options.words.empty()    ? options.words.front()
                            : !options.layout.empty() ? "--layout"
                            : !options.parts.empty()  ? "--part"
                                                      : "";
  const bool is_there = fs::exists(page), is_named = !named.empty();
  if (is_there && !has_places(page)) {
    fail("{} has no places; put {} and {} where a table is to stand", page.string(), kAPlace, kEndOfPlace);
  }
  if (is_there && is_named) {
    fail("{} is there, and its places say what it shows; omit \"{}\", or name a page that is not there", page.string(),
         named);
  }
  if (!is_there && !options.out.empty())
    fail("-o {}: there is no page {} to fill; a first one is written by --text alone", options.out, page.string());
  if (!is_there && !is_named) {
    fail("there is no page {}; to write a first one, name a grid or a sweep, too: tearless report last --text {}",
         page.string(), shell_word(page.string()));
  }
  if (!fs::is_directory(folder_of(page))) fail("there is no folder {} for the page", folder_of(page).string());
  const fs::path target = options.out.empty() ? page : fs::path(options.out);
  if (fs::exists(target) && !has_places(target))
    fail("-o {}: it is there and has no places; delete it, or name another file", target.string());
  const std::string before = is_there ? text_of(page) : first_page(page, options, globals);
  const TextPage text(before, page.string());
  const Globals globals_there = seen_from(folder_of(page), globals);
  std::vector<Filled> filled;
  {
    const InFolder there(folder_of(page));
    filled = fill_places(text.places(), page.string(), globals_there);
  }
  std::vector<std::string> texts;
  for (const Filled& one : filled) texts.push_back(one.text);
  const std::string after = text.with(texts);
  const bool is_changed = read_if_there(target) != after;
  std::vector<ViewOutput> written;
  for (Filled& one : filled) written.push_back(std::move(one.output));
  if (is_changed) written.push_back({.files = {{.path = target.filename(), .bytes = after}}});
  write_files(written, folder_of(target));
  const auto places = std::ranges::count_if(text.places(), &TextPage::Place::has_text);
  if (globals.json) {
    print_json({{"file", target.string()}, {"places", places}, {"changed", is_changed}});
  } else {
    print("{}: {}, {}\n", target.string(), counted(places, "place"), is_changed ? "written" : "unchanged");
  }
  return kOk;
}

}  // namespace tearless::harness
