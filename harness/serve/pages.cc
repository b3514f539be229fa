#include "harness/serve/pages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/time.h"
#include "base/utf8.h"
#include "base/words.h"
#include "harness/commands/printed_views.h"
#include "harness/commands/texts.h"
#include "harness/console/columns.h"
#include "harness/folders/sweep_directory.h"
#include "harness/plan/grid_state.h"
#include "harness/report/page_files.h"
#include "harness/report/page_parts.h"
#include "harness/report/thin_curve.h"
#include "harness/results/result_set.h"
#include "harness/serve/frame.h"
#include "harness/serve/live_css.h"
#include "harness/serve/live_js.h"
#include "harness/service/start.h"
#include "harness/store/writer.h"
#include "harness/table/html.h"

namespace tearless::harness {
namespace {

using nlohmann::json;

constexpr size_t kRunsOnPage = 200;
constexpr size_t kCurvesAtOnce = 8;  // as many as there are colours
constexpr size_t kLogBytes = 256'000;
constexpr size_t kRunsExplained = 50;
constexpr double kPatience = 60;  // seconds after which a service that did not answer is asked again

constexpr const char* kIcon =
    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 16 16\"><path d=\"M2 2v12h12M4 4c2 6 4 7 10 7\" "
    "fill=\"none\" stroke=\"#0b6bcb\" stroke-width=\"2\"/></svg>\n";

/// What the workspace has not.
class Missing : public UserError {
 public:
  using UserError::UserError;
};

/// What a page is made from.
struct Opened {
  const Globals& globals;
  const Store& store;
  const std::optional<ServiceFacts>& facts;  // unset: no service answers
  std::string silence = {};                  // why not, if one should

  Workspace workspace() const { return Workspace(globals.workspace); }
  const SweepFacts* facts_of(const std::string& sweep) const { return facts ? facts->sweep(sweep) : nullptr; }
};

std::string place_of(const Globals& globals) {
  return archive_of(globals.workspace)
      .value_or(std::filesystem::absolute(globals.workspace).lexically_normal())
      .string();
}

RunRecord run_named(const Store& store, const std::string& id) {
  const std::optional<RunRecord> run = id.size() == 16 ? store.run(id) : std::nullopt;
  if (!run) throw Missing(fmt::format("there is no run \"{}\" here; its id has 16 hex digits", printable(id)));
  return *run;
}

Sweep sweep_named(const Store& store, const std::string& id) {
  const std::optional<Sweep> sweep = store.sweep(id);
  if (!sweep) throw Missing(fmt::format("there is no sweep \"{}\" here", printable(id)));
  return *sweep;
}

/// How far it is, as a bar and words.
std::string progress_of(const Opened& opened, const std::string& sweep, const StateCounts& counts) {
  int64_t all = 0, ended = 0;
  for (const auto& [state, runs] : counts) {
    all += runs;
    if (is_inactive(state) && state != RunState::kHeld) ended += runs;
  }
  const SweepFacts* const facts = opened.facts_of(sweep);
  const std::string words =
      facts && facts->ended() < facts->total ? summary_of(*facts) : fmt::format("{} of {} ended", ended, all);
  return fmt::format("<progress value=\"{}\" max=\"{}\"></progress> {}", ended, std::max<int64_t>(all, 1),
                     escape_html(words));
}

std::string words_of(const Opened& opened, const std::string& sweep) {
  const auto [tags, note] = read_words(opened.workspace(), sweep);
  return fmt::format("{}{}{}", fmt::join(tags, ", "), tags.empty() || note.empty() ? "" : ": ", note);
}

/// Those of a sweep, or "": of all.
std::vector<Progress> running_in(const Opened& opened, const std::string& sweep) {
  std::vector<Progress> running;
  for (const SweepFacts& facts : opened.facts ? opened.facts->sweeps : std::vector<SweepFacts>()) {
    if (!sweep.empty() && facts.id != sweep) continue;
    for (const Progress& run : facts.attempts) {
      if (std::ranges::find(running, run.id, &Progress::id) == running.end()) running.push_back(run);
    }
  }
  return running;
}

std::string section_of_running(const Opened& opened, const std::string& sweep) {
  const std::vector<Progress> running = running_in(opened, sweep);
  if (running.empty()) return "";
  std::vector<CurveOfRun> curves;
  for (const Progress& run : running) {
    if (curves.size() < kCurvesAtOnce) curves.push_back({run.id, run.label.empty() ? run.id : run.label});
  }
  const std::vector<std::string> metrics = in_order_of_interest(opened.store.metric_names_of(curves.front().run));
  return section("running", "Under way", table_of_progress(running) + place_of_curves(curves, metrics));
}

std::string who_works(const Opened& opened) {
  if (!opened.silence.empty()) return text_in("p", opened.silence) + "\n";
  if (!opened.facts) return "";
  std::string html = text_in(
      "p", fmt::format("A tearless {} works here (process {}, since {}).", opened.facts->stays ? "daemon" : "service",
                       opened.facts->pid, local_time(opened.facts->started_at)));
  for (const DeviceFacts& device : opened.facts->devices) html += text_in("p", summary_of(device));
  for (const std::string& note : opened.facts->notes) html += text_in("p", note);
  return html + "\n";
}

/// Two sweeps, or two runs, to compare.
std::string form_of_diff(const std::string& left, const std::string& what) {
  return fmt::format(
      "<form class=\"controls\" action=\"/diff\"><label>{0} <input name=\"a\" value=\"{1}\" required></label>"
      "<label>with <input name=\"b\" required></label><button>Compare</button></form>\n",
      escape_html(what), escape_html(left));
}

std::string start_page(const Opened& opened) {
  HtmlTable table{.header = {"Sweep", "Progress", "States", "Note", "Submitted", "Id"}};
  for (const Sweep& sweep : opened.store.sweeps()) {
    const StateCounts counts = opened.store.counts_of(sweep.id);
    const std::string paused =
        sweep.state == SweepState::kActive
            ? ""
            : fmt::format("; {}{}{}", name_of(sweep.state), sweep.reason.empty() ? "" : ": ", sweep.reason);
    table.rows.push_back({link_to(address_of_sweep(sweep.id), sweep.name), progress_of(opened, sweep.id, counts),
                          escape_html(text_of(counts) + paused), escape_html(words_of(opened, sweep.id)),
                          escape_html(local_time(sweep.submitted_at)), text_in("code", sweep.id)});
  }
  std::string html = section_of_running(opened, "");
  html += section("sweeps", "Sweeps", table.rows.empty() ? "<p>There is no sweep.</p>\n" : table.html());
  html += section("compare", "Compare", form_of_diff("", "Two sweeps or two runs, by their ids:"));
  return framed(place_of(opened.globals), "Sweeps", who_works(opened) + html);
}

/// A cell leads to its only run, or to what is said of all of them.
std::string cell_link(const std::vector<std::string>& runs, const std::string&, const std::string& html) {
  if (runs.empty() || html.empty()) return html;
  std::string address = "/runs";
  for (const std::string& run : runs) address += (address.size() == 5 ? "?id=" : "&amp;id=") + encoded(run);
  return fmt::format("<a class=\"cell\" href=\"{}\">{}</a>", runs.size() == 1 ? address_of_run(runs.front()) : address,
                     html);
}

/// The sections of a sweep's tables, which are put into `tables`, claims and figures, or why they cannot be made.
std::string views_of(GridState& state, const Opened& opened, std::vector<Table>& tables) {
  if (!state.errors.empty()) return section("tables", "Tables", text_in("p", state.errors.front()));
  read_for_views(state);
  tables = tables_of(state, options_again(opened.globals));
  const auto made = [](const char* id, const char* title, const std::string& html) {
    return html.empty() ? "" : section(id, title, html);
  };
  return made("tables", "Tables", html_of_tables(tables, cell_link)) +
         made("claims", "Claims", html_of_claims(checks_of(state), cell_link)) +
         made("figures", "Figures",
              html_of_figures(figures_of(state, names_of_figures(state), /*has_scores=*/true,
                                         [](const std::string&) { return true; })));
}

/// The first scores of a sweep's tables, or where it has none, of its runs.
std::vector<std::string> columns_of(const std::vector<Table>& tables, const std::vector<Row>& rows) {
  constexpr size_t kMost = 6;
  std::vector<std::string> scores;
  const auto add = [&](const std::string& score) {
    if (scores.size() < kMost && std::ranges::find(scores, score) == scores.end()) scores.push_back(score);
  };
  for (const Table& table : tables) {
    for (const Table::Column& column : table.columns) add(column.score);
  }
  if (!scores.empty()) return scores;
  for (const Row& row : rows) {
    for (const auto& [score, value] : row.result.scores) add(score);
    if (scores.size() == kMost) break;
  }
  return scores;
}

std::string table_of_rows(const Opened& opened, const Target& target, const Sweep& sweep, const std::vector<Row>& all,
                          const std::vector<Table>& tables) {
  const std::string wanted = target.value("state");
  std::vector<const Row*> rows;
  for (const Row& row : all) {
    if (wanted.empty() || name_of(row.result.state) == wanted) rows.push_back(&row);
  }
  const std::string page_text = target.value("page");
  const bool is_number = !page_text.empty() && page_text.size() < 9 &&
                         std::ranges::all_of(page_text, [](char c) { return c >= '0' && c <= '9'; });
  const size_t pages = std::max<size_t>(1, (rows.size() + kRunsOnPage - 1) / kRunsOnPage);
  const size_t page = std::clamp<size_t>(is_number ? std::stoul(page_text) : 1, 1, pages);

  std::map<std::string, std::string> developing;  // run → the newest development score
  for (const Progress& run : running_in(opened, sweep.id)) {
    if (run.dev_score) developing[run.id] = fmt::format("{} {:.4g}", run.dev_name, *run.dev_score);
  }
  const std::vector<std::string> scores = columns_of(tables, all);
  HtmlTable table{.id = "run-table", .header = {"Run", "State", "Why", "Development score"}};
  table.header.insert(table.header.end(), scores.begin(), scores.end());
  table.header.emplace_back("Id");
  for (size_t i = (page - 1) * kRunsOnPage; i < std::min(rows.size(), page * kRunsOnPage); ++i) {
    const Row& row = *rows[i];
    std::vector<std::string>& cells = table.rows.emplace_back();
    cells = {link_to(address_of_run(row.run.id), fmt::format("{}. {}", row.place, label_of(row.run))),
             escape_html(std::string(name_of(row.result.state))), escape_html(row.result.reason),
             escape_html(developing.contains(row.run.id) ? developing[row.run.id] : "")};
    for (const std::string& score : scores) {
      const std::optional<double> value = row.number(score);
      cells.push_back(value ? value_text(*value, 6) : "");
    }
    cells.push_back(text_in("code", row.run.id));
  }
  std::string html =
      table.rows.empty() ? "<p>No run is in this state.</p>\n" : "<div class=\"runs\">" + table.html() + "</div>\n";
  const std::string here = address_of_sweep(sweep.id) + "?";
  std::vector<std::string> links = {link_to(here + "#runs", fmt::format("all {}", all.size()))};
  for (const auto& [state, runs] : opened.store.counts_of(sweep.id)) {
    const std::string name(name_of(state));
    links.push_back(link_to(fmt::format("{}state={}#runs", here, name), fmt::format("{} {}", runs, name)));
  }
  const std::string narrowed = here + (wanted.empty() ? "" : "state=" + encoded(wanted) + "&");
  if (page > 1) links.push_back(link_to(fmt::format("{}page={}#runs", narrowed, page - 1), "the page before"));
  if (page < pages)
    links.push_back(
        link_to(fmt::format("{}page={}#runs", narrowed, page + 1), fmt::format("page {} of {}", page + 1, pages)));
  return section("runs", "Runs", fmt::format("<p>{}</p>\n", fmt::join(links, " · ")) + html);
}

std::string sweep_page(const Opened& opened, const Target& target, const std::string& id) {
  const Sweep sweep = sweep_named(opened.store, id);
  const StateCounts counts = opened.store.counts_of(id);
  HtmlTable facts;
  facts.rows = {{"States", escape_html(text_of(counts))},
                {"Progress", progress_of(opened, id, counts)},
                {"Submitted", escape_html(local_time(sweep.submitted_at))},
                {"Grid file", escape_html(sweep.grid_file)},
                {"Id", text_in("code", sweep.id)}};
  if (sweep.state != SweepState::kActive)
    facts.rows.push_back({"Paused", escape_html(fmt::format("{}: {}", name_of(sweep.state), sweep.reason))});
  if (const std::string words = words_of(opened, id); !words.empty())
    facts.rows.push_back({"Note", escape_html(words)});
  std::string html = facts.html() + section_of_running(opened, id);
  std::vector<Row> rows;
  std::vector<Table> tables;
  try {
    GridState state = look_up_sweep({id}, opened.globals);
    html += views_of(state, opened, tables);
    rows = std::move(state.results.rows);
  } catch (const UserError& error) {  // its runs can be listed all the same
    html += section("tables", "Tables", text_in("p", std::string("Not shown: ") + error.what()));
    rows = rows_of(opened.store, sweep);
  }
  html += table_of_rows(opened, target, sweep, rows, tables);
  const std::optional<std::string> grid = read_if_there(opened.workspace().sweep(id) / "grid.toml");
  if (grid) html += details("The grid file", preformatted(*grid));
  html += form_of_diff(id, "Compare");
  return framed(place_of(opened.globals), sweep.name, html);
}

std::string run_page(const Opened& opened, const std::string& id) {
  const RunRecord run = run_named(opened.store, id);
  const std::vector<std::string> sweeps = opened.store.sweeps_of(id);
  const std::string title =
      sweeps.empty() ? id : fmt::format("{} {}", label_of(opened.store.run_of(sweeps.back(), id)), id.substr(0, 8));
  std::string html = preformatted(explanation_of({id}, opened.globals));
  std::vector<std::string> links;
  const RunDirectory folder = opened.workspace().run(id);
  if (std::filesystem::exists(folder.attempt(folder.newest_attempt()) / "log.txt"))
    links.push_back(link_to("/log?run=" + encoded(id), "what it printed"));
  for (const std::string& sweep : sweeps) links.push_back(link_to(address_of_sweep(sweep), "sweep " + sweep));
  for (const std::string& derived : opened.store.derived_from(id)) {
    links.push_back(link_to(address_of_run(derived), "derived run " + derived));
  }
  html += fmt::format("<p>{}</p>\n", fmt::join(links, " · "));
  const std::vector<std::string> metrics = in_order_of_interest(opened.store.metric_names_of(id));
  if (!metrics.empty()) html += section("curves", "Curves", place_of_curves({{id, title}}, metrics));
  html += section("settings", "Settings", preformatted(run.settings + run.local) + form_of_diff(id, "Compare"));
  return framed(place_of(opened.globals), title, html);
}

std::string page_of_runs(const Opened& opened, std::vector<std::string> ids) {
  if (ids.empty()) throw Missing("which runs? Name them: /runs?id=…");
  ids.resize(std::min(ids.size(), kRunsExplained));
  std::string html;
  std::vector<CurveOfRun> curves;
  for (const std::string& id : ids) {
    run_named(opened.store, id);
    if (curves.size() < kCurvesAtOnce) curves.push_back({id, id});
    html += fmt::format("<p>{}</p>\n", link_to(address_of_run(id), id)) +
            preformatted(explanation_of({id}, opened.globals));
  }
  html += section("curves", "Curves",
                  place_of_curves(curves, in_order_of_interest(opened.store.metric_names_of(ids.front()))));
  return framed(place_of(opened.globals), counted(std::ssize(ids), "run"), html);
}

std::string log_page(const Opened& opened, const std::string& id) {
  run_named(opened.store, id);
  std::string html = fmt::format("<p>{}</p>\n", link_to(address_of_run(id), "run " + id));
  try {
    html += preformatted(end_of_log(opened.workspace().run(id), 0, kLogBytes));
  } catch (const UserError& error) {
    throw Missing(error.what());
  }
  return framed(place_of(opened.globals), "What run " + id.substr(0, 8) + " printed", html);
}

std::string diff_page(const Opened& opened, const std::string& left, const std::string& right) {
  for (const std::string& id : {left, right}) {
    if (!opened.store.sweep(id)) run_named(opened.store, id);
  }
  std::string text;
  try {
    text = differences_of(left, right, {}, opened.globals);
  } catch (const UserError& error) {  // a run and a sweep, or two that cannot be compared
    throw Missing(error.what());
  }
  return framed(place_of(opened.globals), "Differences", preformatted(text) + form_of_diff(left, "Compare"));
}

Reply curve_of_run(const Store& store, const std::string& id, const std::string& metric) {
  run_named(store, id);
  ThinCurve thin(kCurvePoints);
  store.read_metrics(id, [&](const MetricLine& line) {
    if (line.name == metric) thin.add(static_cast<double>(line.step), line.value);
  });
  json x = json::array(), y = json::array();
  for (const CurvePoint& point : thin.curve()) {
    x.push_back(point.x);
    y.push_back(std::isfinite(point.y) ? json(point.y) : json());
  }
  return {.type = "application/json", .body = json{{"x", x}, {"y", y}}.dump()};
}

}  // namespace

Reply Pages::answer(const Target& target) {
  const auto page = [&](int status, const std::string& title, const std::string& sentence) {
    return Reply{.status = status, .body = framed(place_of(globals_), title, text_in("p", sentence) + "\n")};
  };
  try {
    if (target.path == "/page.css") return {.type = "text/css; charset=utf-8", .body = page_style() + kLiveStyle};
    if (target.path == "/icon.svg") return {.type = "image/svg+xml", .body = kIcon};
    if (target.path == "/live.js")
      return {.type = "text/javascript; charset=utf-8", .body = std::string(chart_script()) + "\n" + kLiveScript};
    return shown(target);
  } catch (const Missing& error) {
    return page(404, "Not here", error.what());
  } catch (const UserError& error) {
    return page(503, "Cannot be shown now", error.what());
  } catch (const std::exception& error) {
    return page(500, "Cannot be shown",
                fmt::format("{} (this is a bug in tearless, not a mistake in your input)", error.what()));
  }
}

const Store& Pages::store() {
  if (!of_store_) of_store_.emplace(workspace_);
  if (!of_store_->has_changed() && store_) return *store_;
  store_.reset();
  store_ = Store::open_reader(workspace_);
  if (!store_) fail("nothing has been run in {} yet, or it was deleted", place_of(globals_));
  return *store_;
}

bool Pages::has_changed() {
  if (!of_all_) of_all_.emplace(workspace_);
  return of_all_->has_changed();
}

void Pages::rest() {
  store_.reset();
  of_store_.reset();
  of_all_.reset();
}

Reply Pages::shown(const Target& target) {
  if (target.path == "/curve") return curve_of_run(store(), target.value("run"), target.value("metric"));
  Opened opened{.globals = globals_, .store = store(), .facts = facts_, .silence = ask()};
  const auto is = [&](const char* path) { return target.path == path; };
  std::string html;
  if (is("/"))
    html = start_page(opened);
  else if (const auto sweep = target.after("/sweep/"))
    html = sweep_page(opened, target, *sweep);
  else if (const auto run = target.after("/run/"))
    html = run_page(opened, *run);
  else if (is("/runs"))
    html = page_of_runs(opened, target.values("id"));
  else if (is("/log"))
    html = log_page(opened, target.value("run"));
  else if (is("/diff"))
    html = diff_page(opened, target.value("a"), target.value("b"));
  else
    throw Missing("there is no such page; begin at /");
  return {.body = std::move(html)};
}

std::string Pages::ask() {
  if (!silence_.empty() && steady_seconds() - silent_since_ < kPatience) return silence_;
  silence_.clear();
  facts_.reset();
  try {
    if (has_writer(workspace_)) facts_ = facts_of_service(workspace_);
  } catch (const UserError& error) {  // what is recorded is shown all the same
    silence_ = error.what();
    silent_since_ = steady_seconds();
  }
  return silence_;
}

}  // namespace tearless::harness
