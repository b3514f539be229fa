// The page: its markup, its data, and the rule that it loads nothing. What it looks like is in page.css, what it does
// on a click in page.js; without a script all but curves and single runs can be read.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/build_stamp.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "base/words.h"
#include "harness/console/columns.h"
#include "harness/report/page_files.h"
#include "harness/report/page_js.h"
#include "harness/report/page_parts.h"
#include "harness/report/report.h"
#include "harness/results/states_text.h"
#include "harness/table/html.h"

namespace tearless::harness {
namespace {

using nlohmann::json;

/// The page of one report.
class Page {
 public:
  explicit Page(const Report& report) : report_(report), derived_(report.runs.size()) {
    for (size_t i = 0; i < report.runs.size(); ++i) {
      places_.emplace(report.runs[i].row.run.id, i);
      if (const auto& trained = report.runs[i].trained) derived_[*trained].push_back(i);
    }
  }

  std::string html() const;

 private:
  /// `html` as a button that opens the runs, if it has any that are here.
  std::string cell_button(const std::vector<std::string>& ids, const std::string& score, const std::string& html) const;
  CellLink cell_link() const;
  std::string run_button(size_t run) const;
  std::string heading(const ReportGrid& grid) const;

  std::string lead() const;
  std::string asked() const;
  std::string tables() const;
  std::string claims() const;
  std::string figures() const;
  std::string curves(size_t points) const;
  /// A score of a run, or of what derives from it.
  std::optional<double> number(size_t run, const std::string& score) const;
  /// A score by its name in print.
  std::string in_print(const std::string& score) const;
  std::string table_of_runs(const char* id, const std::vector<size_t>& runs) const;
  std::string runs() const;
  std::string settings() const;
  std::string provenance() const;
  std::string failures() const;
  std::string cost() const;
  std::string commands() const;

  /// Of the trained runs.
  std::map<std::string, std::string> common_settings() const;
  json data() const;

  const Report& report_;
  std::vector<std::vector<size_t>> derived_;  // of each run: what derives from it
  std::map<std::string, size_t> places_;      // id → index into Report::runs
};

std::string label_with_seed(const ReportRun& run) {
  return fmt::format("{}{}seed {}", run.label, run.label.empty() ? "" : ", ", run.row.run.seed);
}

std::string Page::cell_button(const std::vector<std::string>& ids, const std::string& score,
                              const std::string& html) const {
  std::vector<size_t> runs;
  for (const std::string& id : ids) {
    if (const auto found = places_.find(id); found != places_.end()) runs.push_back(found->second);
  }
  if (runs.empty()) return html;
  return fmt::format("<button type=\"button\" class=\"cell\" data-runs=\"{}\" data-score=\"{}\">{}</button>",
                     fmt::join(runs, " "), escape_html(score), html);
}

std::string Page::run_button(size_t run) const {
  return fmt::format("<button type=\"button\" class=\"run\" data-run=\"{}\">{}</button>", run,
                     escape_html(label_with_seed(report_.runs[run])));
}

/// Of several grids each has its title above what is of it.
std::string Page::heading(const ReportGrid& grid) const {
  return report_.grids.size() > 1 ? text_in("h3", grid.title) + "\n" : "";
}

std::string Page::lead() const {
  RunCounts states;
  for (const ReportRun& run : report_.runs) ++states[run.row.result.state];
  std::string text = fmt::format("{}: {}.", counted(std::ssize(report_.runs), "run"), text_of(states));
  std::vector<GridChecks> all;
  for (const ReportGrid& grid : report_.grids) all.push_back(grid.checks);
  const VerdictCounts counts = counts_of(all).claims;
  std::vector<std::string> parts;
  int64_t claims = 0;
  for (int i = 0; i < kVerdicts; ++i) {
    if (counts[i] == 0) continue;
    claims += static_cast<int64_t>(counts[i]);
    parts.push_back(fmt::format("{} {}", counts[i], name_of(static_cast<ClaimVerdict>(i))));
  }
  if (claims > 0) text += fmt::format(" {}: {}.", counted(claims, "verdict"), fmt::join(parts, ", "));
  return text;
}

std::string Page::asked() const {
  std::string html;
  for (const ReportGrid& grid : report_.grids) {
    html += heading(grid) + facts_table(grid.asked);
    if (!grid.text.empty()) html += details("The grid file", preformatted(grid.text));
    if (!grid.layout.empty()) html += details("The grid file of its tables and claims", preformatted(grid.layout));
  }
  return section("asked", "What was asked", html);
}

CellLink Page::cell_link() const {
  return [this](const std::vector<std::string>& ids, const std::string& score, const std::string& html) {
    return cell_button(ids, score, html);
  };
}

std::string Page::tables() const {
  std::string html;
  for (const ReportGrid& grid : report_.grids) {
    if (!grid.tables.empty()) html += heading(grid) + html_of_tables(grid.tables, cell_link());
  }
  return html.empty() ? "" : section("tables", "Tables", html);
}

std::string Page::claims() const {
  std::string html;
  for (const ReportGrid& grid : report_.grids) {
    const std::string own = html_of_claims(grid.checks, cell_link());
    if (!own.empty()) html += heading(grid) + own;
  }
  return html.empty() ? "" : section("claims", "Claims", html);
}

std::string Page::figures() const {
  std::string html;
  for (const ReportGrid& grid : report_.grids) {
    if (!grid.figures.empty()) html += heading(grid) + html_of_figures(grid.figures);
  }
  return html.empty() ? "" : section("figures", "Figures", html);
}

std::string Page::curves(size_t points) const {
  if (std::ranges::all_of(report_.runs, [](const ReportRun& run) { return run.curves.empty(); })) return "";
  std::string html =
      "<div id=\"curve-view\"></div>\n<noscript><p>Curves are drawn by a script.</p></noscript>\n<ul "
      "class=\"notes\">\n";
  if (!report_.has_all_curves)
    html +=
        "<li>Of the metrics that figures, scores and claims use, train.loss and dev.*; with --all-curves of "
        "all.</li>\n";
  if (report_.has_thin_curves || points < kCurvePoints)
    html += fmt::format(
        "<li>Of a curve with more than {} points the least and the greatest value of each stretch.</li>\n", points);
  return section("curves", "Curves", html + "</ul>\n");
}

/// The scores of tables, and where there are none the first of the runs.
std::vector<std::string> scores_of(const Report& report) {
  constexpr size_t kMaxScores = 8;
  std::vector<std::string> scores;
  const auto add = [&](const std::string& score) {
    if (scores.size() < kMaxScores && std::ranges::find(scores, score) == scores.end()) scores.push_back(score);
  };
  for (const ReportGrid& grid : report.grids) {
    for (const Table& table : grid.tables) {
      for (const Table::Column& column : table.columns) add(column.score);
    }
  }
  if (!scores.empty()) return scores;
  for (const ReportRun& run : report.runs) {
    for (const auto& [score, value] : run.row.result.scores) add(score);
  }
  return scores;
}

std::optional<double> Page::number(size_t run, const std::string& score) const {
  std::optional<double> value = report_.runs[run].row.number(score);
  for (const size_t derived : derived_[run]) {
    if (!value) value = report_.runs[derived].row.number(score);
  }
  return value;
}

std::string Page::in_print(const std::string& score) const {
  for (const ReportGrid& grid : report_.grids) {
    if (const auto found = grid.names.find(score); found != grid.names.end()) return found->second.text;
  }
  return score;
}

std::string Page::table_of_runs(const char* id, const std::vector<size_t>& runs) const {
  std::vector<std::string> scores = scores_of(report_);
  std::erase_if(scores, [&](const std::string& score) {
    return std::ranges::none_of(runs, [&](size_t run) { return number(run, score).has_value(); });
  });
  const bool has_grids = report_.grids.size() > 1;
  HtmlTable table{.id = id, .header = {"Run", "State", "Attempts"}};
  if (has_grids) table.header.emplace_back("Grid");
  for (const std::string& score : scores) table.header.push_back(in_print(score));
  table.header.emplace_back("Id");
  for (const size_t run : runs) {
    const RunResult& result = report_.runs[run].row.result;
    std::vector<std::string>& cells = table.rows.emplace_back();
    cells = {run_button(run), escape_html(std::string(name_of(result.state))), std::to_string(result.attempts.size())};
    if (has_grids) cells.push_back(escape_html(report_.grids[report_.runs[run].grid].title));
    for (const std::string& score : scores) {
      const std::optional<double> value = number(run, score);
      cells.push_back(value ? value_text(*value, 6) : "");
    }
    cells.push_back(element("code", escape_html(report_.runs[run].row.run.id)));
  }
  return table.html();
}

std::string Page::runs() const {
  std::vector<size_t> trained, derived;
  for (size_t i = 0; i < report_.runs.size(); ++i) {
    (report_.runs[i].row.is_trained() ? trained : derived).push_back(i);
  }
  std::string html = table_of_runs("run-table", trained);
  if (!derived.empty())
    html += details(counted(std::ssize(derived), "derived run"), table_of_runs("derived-table", derived));
  return section("runs", "Runs", html);
}

std::map<std::string, std::string> Page::common_settings() const {
  std::optional<std::map<std::string, std::string>> common;
  for (const ReportRun& run : report_.runs) {
    if (!run.row.is_trained()) continue;
    if (!common) common = run.settings;
    std::erase_if(*common, [&](const auto& entry) {
      const auto found = run.settings.find(entry.first);
      return found == run.settings.end() || found->second != entry.second;
    });
  }
  return common.value_or(std::map<std::string, std::string>());
}

std::string Page::settings() const {
  constexpr size_t kMaxValues = 12;
  const std::map<std::string, std::string> common = common_settings();
  std::map<std::string, std::map<std::string, int64_t>> values;  // key → value → trained runs
  int64_t trained = 0;
  for (const ReportRun& run : report_.runs) {
    if (!run.row.is_trained()) continue;
    ++trained;
    for (const auto& [key, value] : run.settings) {
      if (!common.contains(key)) ++values[key][value];
    }
  }
  HtmlTable varying{.header = {"Setting", "Values, each with its runs"}};
  for (const auto& [key, of_key] : values) {
    std::vector<std::string> texts;
    int64_t runs = 0;
    for (const auto& [value, count] : of_key) {
      texts.push_back(fmt::format("{} ({})", value, count));
      runs += count;
    }
    if (runs < trained) texts.push_back(fmt::format("none ({})", trained - runs));
    varying.rows.push_back({escape_html(key), escape_html(some_of(texts, kMaxValues))});
  }
  std::string html = varying.rows.empty() ? "<p>All trained runs have the same settings.</p>\n" : varying.html();
  html += details(fmt::format("{} that all trained runs have", counted(std::ssize(common), "setting")),
                  facts_table(Facts(common.begin(), common.end())));
  return section("settings", "Settings", html);
}

/// Of a text as a settings file has it.
std::string unquoted(const std::string& text) {
  const bool is_quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return is_quoted ? text.substr(1, text.size() - 2) : text;
}

std::string Page::provenance() const {
  std::string html;
  for (const ReportSweep& sweep : report_.sweeps) html += facts_table(sweep.facts);
  std::map<std::string, int64_t> machines, programs;
  std::set<std::pair<std::string, std::string>> data;
  for (const ReportRun& run : report_.runs) {
    for (const AttemptRecord& attempt : run.row.result.attempts) {
      ++machines[machine_of(attempt)];
      if (!attempt.version.empty()) ++programs["version " + attempt.version];
    }
    constexpr std::string_view kChecksum = "_sha256";
    for (const auto& [key, value] : run.settings) {
      if (key.ends_with(kChecksum)) data.emplace(key.substr(0, key.size() - kChecksum.size()), unquoted(value));
    }
  }
  Facts facts;
  for (const auto& [machine, attempts] : machines)
    facts.emplace_back("trained on", fmt::format("{}: {}", machine, counted(attempts, "attempt")));
  for (const auto& [program, attempts] : programs)
    facts.emplace_back("trained by", fmt::format("{}: {}", program, counted(attempts, "attempt")));
  for (const auto& [name, checksum] : data) facts.emplace_back(name, "SHA-256 " + checksum);
  return section("provenance", "Provenance", html + facts_table(facts));
}

bool is_failure(const AttemptRecord& attempt) {
  return !attempt.outcome.empty() && attempt.outcome != "done" && attempt.outcome != "diverged";
}

std::string Page::failures() const {
  HtmlTable without{.header = {"Run", "State", "Why"}}, failed{.header = {"Run", "Attempt", "Ended as", "Why", "Lost"}};
  for (size_t i = 0; i < report_.runs.size(); ++i) {
    const RunResult& result = report_.runs[i].row.result;
    if (result.state != RunState::kDone)
      without.rows.push_back(
          {run_button(i), escape_html(std::string(name_of(result.state))), escape_html(result.reason)});
    for (const AttemptRecord& attempt : result.attempts) {
      if (!is_failure(attempt)) continue;
      failed.rows.push_back({run_button(i), std::to_string(attempt.number), escape_html(attempt.outcome),
                             escape_html(attempt.reason), attempt.lost ? escape_html(text_of(*attempt.lost)) : ""});
    }
  }
  std::string html =
      without.rows.empty() ? "<p>Each run has a result.</p>\n" : "<p>Runs that are not done:</p>\n" + without.html();
  html += failed.rows.empty() ? "<p>No attempt failed.</p>\n" : "<p>Attempts without a result:</p>\n" + failed.html();
  return section("failures", "Failures and retries", html);
}

std::string Page::cost() const {
  const TrainingCost& cost = report_.cost.took();
  if (cost.attempts == 0) return section("cost", "Cost", "<p>Not known: no attempts are recorded here.</p>\n");
  Facts facts;
  if (cost.core_hours > 0 || cost.gpu_hours == 0)
    facts.emplace_back("core-hours", fmt::format("{:.2f}", cost.core_hours));
  if (cost.gpu_hours > 0) facts.emplace_back("GPU-hours", fmt::format("{:.2f}", cost.gpu_hours));
  facts.emplace_back("attempts", fmt::format("{} at {}", cost.attempts, counted(std::ssize(report_.runs), "run")));
  if (cost.of_unknown_length > 0)
    facts.emplace_back("of unknown length",
                       fmt::format("{}, which are not in these hours", counted(cost.of_unknown_length, "attempt")));
  if (report_.cost.lacks_seeds()) {
    const CostOfGrids::Whole whole = report_.cost.whole();
    facts.emplace_back("with all seeds", fmt::format("{}, {}", counted(whole.runs, "run"), whole.text()));
  }
  if (!cost.from.empty()) facts.emplace_back("from, to", fmt::format("{}, {}", cost.from, cost.to));
  return section("cost", "Cost", facts_table(facts));
}

std::string Page::commands() const {
  std::string text;
  for (const ReportSweep& sweep : report_.sweeps) text += sweep.command + "\n";
  return section("commands", "Commands", preformatted(text + report_.command + "\n"));
}

json Page::data() const {
  const std::map<std::string, std::string> common = common_settings();
  json runs = json::array();
  json names = json::object();
  for (const std::string& score : scores_of(report_)) names[score] = in_print(score);
  for (const ReportRun& run : report_.runs) {
    const RunResult& result = run.row.result;
    json own = json::object(), attempts = json::array();
    for (const auto& [key, value] : run.settings) {
      if (!run.row.is_trained() || !common.contains(key)) own[key] = value;
    }
    for (const AttemptRecord& a : result.attempts) {
      attempts.push_back({{"attempt", a.number},
                          {"outcome", a.outcome},
                          {"reason", a.reason},
                          {"started_at", a.started_at},
                          {"ended_at", a.ended_at},
                          {"device", a.device},
                          {"processor", a.processor},
                          {"version", a.version}});
    }
    json& added = runs.emplace_back(json{{"id", run.row.run.id},
                                         {"label", run.label},
                                         {"seed", run.row.run.seed},
                                         {"grid", report_.grids[run.grid].title},
                                         {"state", name_of(result.state)},
                                         {"reason", result.reason},
                                         {"settings", std::move(own)},
                                         {"scores", result.scores},
                                         {"measured", result.measured},
                                         {"attempts", std::move(attempts)}});
    if (result.resume) added["resume"] = sentence_of(*result.resume);
    if (!run.row.is_trained()) added["derived"] = true;  // it has none of the settings that trained runs share
    if (run.trained) added["derived_from"] = *run.trained;
  }
  return {{"settings", common}, {"runs", std::move(runs)}, {"metrics", report_.metrics}, {"names", std::move(names)}};
}

/// JSON inside <script>: no text of a user can end the element.
std::string json_element(const char* id, const json& value) {
  std::string text;
  for (const char c : value.dump(-1, ' ', false, json::error_handler_t::replace)) {
    text += c == '<' ? "\\u003c" : std::string(1, c);
  }
  return fmt::format("<script type=\"application/json\" id=\"{}\">{}</script>\n", id, text);
}

std::string curve_data(const Report& report, size_t points) {
  json all = json::object();
  for (size_t i = 0; i < report.runs.size(); ++i) {
    json& own = all[std::to_string(i)] = json::object();
    for (const auto& [metric, curve] : report.runs[i].curves) {
      ThinCurve thin(points);
      for (const CurvePoint& point : curve) thin.add(point.x, point.y);
      own[metric] = base64_of(thin.curve());
    }
    if (own.empty()) all.erase(std::to_string(i));
  }
  return json_element("curve-data", all);
}

/// 'sha256-…' of an element's text, as a Content-Security-Policy has it.
std::string source_of(const std::string& text) {
  std::string bytes;
  const std::string hex = sha256(text);
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return fmt::format("'sha256-{}'", base64(bytes));
}

std::string Page::html() const {
  constexpr size_t kSmall = 5'000'000, kLarge = 15'000'000, kOfRun = 15'000, kFewest = 16;
  const size_t limit = std::clamp(kOfRun * report_.runs.size(), kSmall, kLarge);
  const std::string style = page_style(), script = dygraphs_script() + "\n" + chart_script() + "\n" + kPageScript;

  const std::string before = asked() + tables() + claims() + figures();
  const std::string after = runs() + settings() + provenance() + failures() + cost() + commands();
  size_t points = kCurvePoints;
  const std::string all_data = json_element("data", data());
  std::string of_curves = curve_data(report_, points);
  const size_t rest = style.size() + script.size() + before.size() + after.size() + all_data.size();
  while (rest + of_curves.size() > limit && points > kFewest) {
    points /= 2;
    of_curves = curve_data(report_, points);
  }

  const std::string main = before + curves(points) + after;
  std::string navigation;
  constexpr std::array<std::pair<const char*, const char*>, 11> kSections = {{{"asked", "Asked"},
                                                                              {"tables", "Tables"},
                                                                              {"claims", "Claims"},
                                                                              {"figures", "Figures"},
                                                                              {"curves", "Curves"},
                                                                              {"runs", "Runs"},
                                                                              {"settings", "Settings"},
                                                                              {"provenance", "Provenance"},
                                                                              {"failures", "Failures"},
                                                                              {"cost", "Cost"},
                                                                              {"commands", "Commands"}}};
  for (const auto& [id, title] : kSections) {
    if (main.find(fmt::format("<section id=\"{}\">", id)) != std::string::npos)
      navigation += fmt::format("<li><a href=\"#{}\">{}</a></li>", id, title);
  }
  std::string notes;
  for (const ReportSweep& sweep : report_.sweeps) {
    const std::string note = text_in("p", sweep.note) + "\n";
    if (!sweep.note.empty() && notes.find(note) == std::string::npos) notes += note;
  }
  return fmt::format(
             "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src {}; style-src {}; "
             "base-uri 'none'; form-action 'none'\">\n"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
             "{}{}\">\n"
             "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n",
             source_of(script), source_of(style), kGenerator, escape_html(std::string(build_stamp())),
             escape_html(report_.title), style) +
         fmt::format(
             "<a class=\"skip\" href=\"#main\">Skip to the results</a>\n<header>\n<h1>{}</h1>\n<p "
             "class=\"lead\">{}</p>\n{}"
             "<nav aria-label=\"Sections\"><ul>{}</ul></nav>\n</header>\n<main id=\"main\">\n",
             escape_html(report_.title), escape_html(lead()), notes, navigation) +
         main + "</main>\n" +
         fmt::format("<footer><p>Made by tearless {}.</p></footer>\n", escape_html(std::string(build_stamp()))) +
         "<dialog id=\"detail\" aria-labelledby=\"detail-title\"></dialog>\n" + all_data + of_curves +
         fmt::format("<script>{}</script>\n</body>\n</html>\n", script);
}

}  // namespace

std::string page_of(const Report& report) { return Page(report).html(); }

}  // namespace tearless::harness
