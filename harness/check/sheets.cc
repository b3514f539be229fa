// Checks for people: matrices of claims and places, the cells outside of their tolerance, and the counts.
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/check/check.h"
#include "harness/table/latex.h"

namespace tearless::harness {
namespace {

using HeaderCells = std::vector<HeaderCell>;

std::vector<std::string> axes_of(const Place& place) {
  std::vector<std::string> axes;
  for (const auto& [axis, label] : place) axes.push_back(axis);
  return axes;
}

/// "3, 5, 8 and 12"
std::string listed(const std::vector<size_t>& numbers) {
  const std::vector<size_t> first(numbers.begin(), numbers.end() - 1);
  return first.empty() ? std::to_string(numbers.back())
                       : fmt::format("{} and {}", fmt::join(first, ", "), numbers.back());
}

std::string title_of(const GridChecks& grid, const std::vector<std::string>& axes) {
  std::vector<std::string> names;
  for (const std::string& axis : axes) {
    const std::string name = name_of(grid.names, axis).text;
    names.push_back(name.empty() ? axis : name);
  }
  return fmt::format("Claims: {}{}", grid.title, axes.empty() ? "" : fmt::format(", by {}", fmt::join(names, ", ")));
}

/// The unit that the numbers of a claim have at all places; "": its limit says it, or they have several.
std::string common_unit(const std::vector<const Check*>& places) {
  const auto same = [&](const Check* one) { return one->unit == places.front()->unit; };
  return places.front()->limit.empty() && std::ranges::all_of(places, same) ? places.front()->unit : "";
}

/// With its limit or unit, and where it claims several places with how many hold.
Name claim_text(const Check& check, const std::vector<const Check*>& places) {
  const auto claimed =
      std::ranges::count_if(places, [](const Check* one) { return one->finding.verdict != ClaimVerdict::kNotClaimed; });
  const auto held =
      std::ranges::count_if(places, [](const Check* one) { return one->finding.verdict == ClaimVerdict::kHeld; });
  const std::string detail = check.limit.empty() ? common_unit(places) : check.limit;
  return joined({{check.name.empty() ? "" : check.name + " "},
                 check.text,
                 {detail.empty() ? "" : fmt::format(" ({})", detail)},
                 {claimed > 1 ? fmt::format(": held at {} of {}", held, claimed) : ""}},
                "");
}

std::string place_text(const GridChecks& grid, const Place& place) {
  std::vector<std::string> axes, labels;
  for (const auto& [axis, label] : place) {
    axes.push_back(axis);
    labels.push_back(label);
  }
  return labels_in_print(grid.names, axes, labels).text;
}

/// " at look 2 of 4, 5 seeds"; "" for a grid without looks.
std::string look_text(const Check& check) {
  if (!check.look || check.finding.verdict == ClaimVerdict::kNotClaimed) return "";
  return fmt::format(" at look {} of {}, {} seeds", check.look->number, check.look->of, check.look->seeds);
}

/// Whether the look says how many values there are.
bool is_count_of_look(const Check& check) {
  return check.look && std::ranges::all_of(check.finding.n, [&](size_t n) { return n == check.look->seeds; });
}

bool is_decided(const Check& check) {
  return check.finding.verdict == ClaimVerdict::kHeld || check.finding.verdict == ClaimVerdict::kContradicted;
}

/// Adds a line of equal words once: "A1: Xu et al. 2019, 3.1".
void add_sources(const std::vector<const Check*>& checks, std::vector<Name>& notes) {
  std::vector<Name> sources;
  for (const Check* check : checks) {
    if (check->source.text.empty()) continue;
    const Name source = check->name.empty() ? check->source : joined({{check->name}, check->source}, ": ");
    if (std::ranges::find(sources, source) == sources.end()) sources.push_back(source);
  }
  if (!sources.empty()) notes.push_back(joined({{"Sources: "}, joined(sources, "; ")}, ""));
}

/// How values were compared, where two are: by seed, or as independent ones; at which places, if it depends on these.
void add_pairing(const GridChecks& grid, const std::vector<const Check*>& checks, std::vector<Name>& notes) {
  std::map<bool, std::vector<std::string>> places;  // paired?
  std::set<std::pair<bool, std::string>> seen;
  for (const Check* check : checks) {
    using Form = ClaimKind::Form;
    if (check->form != Form::kDifference && check->form != Form::kRatio) continue;
    const std::string place = place_text(grid, check->place);
    if (seen.emplace(check->is_paired, place).second) places[check->is_paired].push_back(place);
  }
  constexpr const char* kPaired = "of the differences within seeds";
  constexpr const char* kWelch = "Welch's, of independent means";
  if (places.empty()) return;
  if (places.size() == 1) {
    notes.push_back({fmt::format("Intervals are {}", places.begin()->first ? kPaired : kWelch)});
    return;
  }
  const std::vector<std::string>& welch = places[false];
  const bool are_both = std::ranges::any_of(welch, [&](const std::string& place) {
    return seen.contains({true, place});
  });
  notes.push_back({fmt::format("Intervals are {}; on {} they are {}{}", kPaired, fmt::join(welch, ", "), kWelch,
                               are_both ? ", where the cells have no runs in common" : "")});
}

void add_meanings(const std::vector<const Check*>& checks, std::vector<Name>& notes) {
  std::vector<std::pair<std::string, std::string>> kinds;  // meaning, kinds
  for (const Check* check : checks) {
    const auto found = std::ranges::find(kinds, check->meaning, &std::pair<std::string, std::string>::first);
    if (found == kinds.end()) {
      kinds.emplace_back(check->meaning, check->kind);
    } else if (found->second.find(check->kind) == std::string::npos) {
      found->second += ", " + check->kind;
    }
  }
  for (const auto& [meaning, kind] : kinds) notes.push_back({fmt::format("{}: {}", kind, meaning)});
}

bool is_tested(const Check& check) { return is_decided(check) || check.finding.verdict == ClaimVerdict::kCannotTell; }

/// What the level of a verdict is, and what it says of all of them.
void add_levels(const GridChecks& grid, const std::vector<const Check*>& checks, std::vector<Name>& notes) {
  const auto& [level, looks, location] = grid.tests;
  if (!looks.empty()) {
    std::set<double> levels;  // of kinds, which differ a little
    for (const Check* check : checks) {
      if (check->finding.level) levels.insert(100 * *check->finding.level);
    }
    const auto text = [](double percent) { return fmt::format("{:.3g}", percent); };
    const std::string least = levels.empty() ? "" : text(*levels.begin()),
                      most = levels.empty() ? "" : text(*levels.rbegin());
    const std::string range = least == most ? least : least + " to " + most;
    notes.push_back(
        {fmt::format("Tested at {} seeds at a constant level{}, with which all looks together are wrong in {:.3g} % of "
                     "cases without a difference; intervals are at this level, and an estimate that ended early is too "
                     "large on average",
                     listed(looks), range.empty() ? "" : fmt::format(" of {} %", range), 100 * level)});
  }
  const auto tested = std::ranges::count_if(checks, [](const Check* check) { return is_tested(*check); });
  if (tested > 1) {
    notes.push_back({fmt::format("Of {} verdicts at {:.3g} % each, about {:.2g} would be wrong if all cells were equal",
                                 tested, 100 * level, level * static_cast<double>(tested))});
  }
}

/// When claims were declared: of looks, which need it, and where it was after results.
void add_declarations(const GridChecks& grid, const std::vector<const Check*>& checks, std::vector<Name>& notes) {
  std::set<std::string> seen, days;
  for (const Check* check : checks) days.insert(check->declared.empty() ? check->declared_on : "");
  if (!grid.tests.looks.empty() && !days.contains("")) {
    notes.push_back({fmt::format("Declared on {}, before a result of their cells existed", fmt::join(days, " and "))});
  }
  for (const Check* check : checks) {
    if (check->declared.empty()) continue;
    const std::string text =
        fmt::format("{}: {}", check->name.empty() ? check->text.text : check->name, check->declared);
    if (seen.insert(text).second) notes.push_back({text});
  }
}

void add_caveats(const std::vector<const Check*>& checks, std::vector<Name>& notes) {
  std::vector<Name> all;
  for (const Check* check : checks) {
    for (const Caveat& caveat : check->caveats) {
      const Name text = {fmt::format("{}: {}", caveat.word, caveat.why)};
      if (std::ranges::find(all, text) == all.end()) all.push_back(text);
    }
  }
  notes.insert(notes.end(), all.begin(), all.end());
}

/// The claims whose places are on the same axes.
Sheet matrix_of(const GridChecks& grid, const std::vector<std::string>& axes, const std::vector<const Check*>& checks) {
  Sheet sheet{.title = {title_of(grid, axes)}, .label_columns = 1, .wraps = true};
  using Line = std::pair<size_t, std::string>;  // a claim and its limit, in whose unit columns differ
  std::vector<std::pair<size_t, Place>> places;
  std::set<Place> seen_places;
  std::map<std::pair<Line, Place>, const Check*> at;
  std::vector<const Check*> lines;  // the first of each
  std::set<std::string> counts;     // of seeds; where they differ each cell has its own
  std::map<Line, std::vector<const Check*>> of_line;
  for (const Check* check : checks) {
    const Line line(check->claim, check->limit);
    if (seen_places.insert(check->place).second) places.emplace_back(check->rank, check->place);
    at.emplace(std::pair(line, check->place), check);
    std::vector<const Check*>& same = of_line[line];
    if (same.empty()) lines.push_back(check);
    if (const std::string count = count_text(check->finding); !count.empty()) counts.insert(count);
    same.push_back(check);
  }
  std::ranges::stable_sort(places, {}, &std::pair<size_t, Place>::first);
  for (size_t axis = 0; axis < std::max<size_t>(axes.size(), 1); ++axis) {
    const bool is_last = axis + 1 >= axes.size();
    HeaderCells line = {{Name{is_last ? "Claim" : ""}}};
    for (const auto& [rank, place] : places) {
      line.push_back({axes.empty() ? Name{"Verdict"} : name_of(grid.names, place[axis].first, place[axis].second)});
    }
    sheet.header.push_back({HeaderLine::Kind::kLabels, line});
  }
  for (const Check* line : lines) {
    Sheet::Row& row = sheet.rows.emplace_back();
    const Line own(line->claim, line->limit);
    row.labels = {claim_text(*line, of_line.at(own))};
    for (const auto& [rank, place] : places) {
      const auto found = at.find({own, place});
      const Check* check = found == at.end() ? nullptr : found->second;
      const bool has_unit =
          check && check->limit.empty() && !check->unit.empty() && common_unit(of_line.at(own)).empty();
      row.cells.push_back(check ? cell_text(*check, has_unit, counts.size() > 1) : "");
      row.bold.push_back(check && is_decided(*check) ? std::string(name_of(check->finding.verdict)).size() : 0);
    }
    row.measured = row.cells;
    row.published.resize(row.cells.size());
    row.runs.resize(row.cells.size());
  }
  add_meanings(checks, sheet.notes);
  add_pairing(grid, checks, sheet.notes);
  if (counts.size() == 1) sheet.notes.push_back({fmt::format("n = {}: the seeds of each verdict", *counts.begin())});
  add_levels(grid, checks, sheet.notes);
  add_declarations(grid, checks, sheet.notes);
  add_caveats(checks, sheet.notes);
  add_sources(checks, sheet.notes);
  end_sentences(sheet.notes);
  return sheet;
}

/// A sheet of plain texts.
Sheet sheet_of(std::string title, const std::vector<std::string>& header) {
  Sheet sheet{.title = {std::move(title)}, .label_columns = 1, .wraps = true};
  HeaderCells line;
  for (const std::string& text : header) line.push_back({Name{text}});
  sheet.header.push_back({HeaderLine::Kind::kLabels, line});
  return sheet;
}

void add_row(const Name& label, std::vector<std::string> cells, Sheet& sheet) {
  Sheet::Row& row = sheet.rows.emplace_back();
  row.labels = {label};
  row.measured = row.cells = std::move(cells);
  row.published.resize(row.cells.size());
  row.runs.resize(row.cells.size());
}

/// "0.5", or "±0.31 (prediction of 1 run, at most 0.5)".
std::string tolerance_text(const Check& check) {
  if (check.limit.empty() || check.shown.empty()) return check.shown + check.limit;
  return fmt::format("{} ({})", check.shown, check.limit);
}

/// The cells with one verdict on their published numbers, with the reason where they are undecided. nullopt: none has
/// it.
std::optional<Sheet> cells_with(ClaimVerdict verdict, const char* title, const GridChecks& grid) {
  const bool has_reason = verdict == ClaimVerdict::kCannotTell;
  std::vector<std::string> header = {"Cell", "measured [published]", "tolerance"};
  if (has_reason) header.emplace_back("because");
  Sheet sheet = sheet_of(fmt::format("{}: {}", title, grid.title), header);
  bool has_prediction = false;
  for (const Check& check : grid.cells) {
    if (check.finding.verdict != verdict) continue;
    std::vector<std::string> texts = {beside(check.measured, check.published), tolerance_text(check)};
    if (has_reason) texts.push_back(check.finding.reason);
    add_row(check.source.text.empty() ? check.text : joined({check.text, {" ("}, check.source, {")"}}, ""),
            std::move(texts), sheet);
    has_prediction |= !check.limit.empty();
  }
  if (has_prediction)
    sheet.notes.push_back({"prediction: Student's 95 % interval of the mean of so many further runs."});
  return sheet.rows.empty() ? std::nullopt : std::optional(sheet);
}

Sheet counts_sheet(const std::vector<GridChecks>& all) {
  std::vector<std::string> header = {""};
  for (int i = 0; i < kVerdicts; ++i) header.emplace_back(name_of(static_cast<ClaimVerdict>(i)));
  Sheet sheet = sheet_of("Verdicts", header);
  const auto add = [&](const char* label, const VerdictCounts& counts) {
    if (counts == VerdictCounts{}) return;
    std::vector<std::string> cells;
    for (const size_t count : counts) cells.push_back(std::to_string(count));
    add_row({label}, std::move(cells), sheet);
  };
  const CheckCounts counts = counts_of(all);
  add("claims", counts.claims);
  add("cells with a tolerance", counts.cells);
  return sheet;
}

}  // namespace

std::string count_text(const Finding& finding) {
  const std::set<size_t> counts(finding.n.begin(), finding.n.end());
  return fmt::format("{}",
                     fmt::join(counts.size() > 1 ? finding.n : std::vector(counts.begin(), counts.end()), " and "));
}

std::string cell_text(const Check& check, bool has_unit, bool has_count) {
  std::vector<std::string> parts;
  if (!check.shown.empty()) {
    parts.push_back(check.shown + (has_unit ? " " + check.unit : "") +
                    (has_count && !is_count_of_look(check) ? ", n = " + count_text(check.finding) : ""));
  }
  if (!check.finding.reason.empty()) parts.push_back(check.finding.reason);
  for (const Caveat& caveat : check.caveats) parts.push_back(caveat.word);
  return std::string(name_of(check.finding.verdict)) + look_text(check) +
         (parts.empty() ? "" : fmt::format(": {}", fmt::join(parts, "; ")));
}

std::vector<Sheet> sheets_of(const std::vector<GridChecks>& all) {
  std::vector<Sheet> sheets;
  for (const GridChecks& grid : all) {
    std::vector<std::pair<std::vector<std::string>, std::vector<const Check*>>> matrices;
    for (const Check& check : grid.claims) {
      const std::vector<std::string> axes = axes_of(check.place);
      auto matrix = std::ranges::find_if(matrices, [&](const auto& one) { return one.first == axes; });
      if (matrix == matrices.end()) matrix = matrices.insert(matrices.end(), {axes, {}});
      matrix->second.push_back(&check);
    }
    for (const auto& [axes, checks] : matrices) sheets.push_back(matrix_of(grid, axes, checks));
    for (const auto& [verdict, title] : {std::pair(ClaimVerdict::kContradicted, "Outside of their tolerance"),
                                         std::pair(ClaimVerdict::kCannotTell, "Undecided by their tolerance")}) {
      if (const auto sheet = cells_with(verdict, title, grid)) sheets.push_back(*sheet);
    }
  }
  sheets.push_back(counts_sheet(all));
  return sheets;
}

}  // namespace tearless::harness
