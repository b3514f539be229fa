// The text of a cell: what `show` composes, its marks, and how runs ended that are not in it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/runs/measured.h"
#include "harness/table/table.h"

namespace tearless::harness {
namespace {

/// How all runs of a cell without a value ended, if they ended alike. "" for other cells.
std::string common_end(const TableCell& one) {
  const Cell& cell = one.cell;
  if (cell.n() > 0) return "";
  if (cell.expected == 0) return cell.is_excluded ? "left out" : "–";
  if (cell.count(Cell::End::kNotChosen) > 0 && !one.is_sum) return "not chosen";
  if (cell.count(Cell::End::kScoreless) == cell.expected || (one.is_sum && cell.missing() == 0)) return "–";
  const auto is_of_all = [&](int runs) { return runs == cell.expected; };
  const auto all = [&](const char* what) { return fmt::format("{} ({}/{})", what, cell.expected, cell.expected); };
  if (is_of_all(cell.diverged())) return all("div.");
  if (is_of_all(cell.count(Cell::End::kBelow))) return all("fail");
  if (is_of_all(cell.count(Cell::End::kFailed))) return all("failed");
  return "";
}

/// What decides whether the mean and its difference are written with an exponent: a mean that is nearly 0 beside its
/// spread is 0.00.
double scale_of(const Cell& cell) { return std::max(std::abs(cell.mean().value_or(0)), cell.spread().value_or(0)); }

/// The number of seeds: "3", or "2/3" where some are missing.
std::string count_of(const Cell& cell) {
  return cell.n() == cell.expected ? std::to_string(cell.n()) : fmt::format("{}/{}", cell.n(), cell.expected);
}

/// nullopt: there are too few values.
std::optional<double> value_of(const Table& table, const ShownPart& part, const Table::Column& column,
                               const TableCell& one) {
  return part.statistic->of({.values = one.cell.values,
                             .baseline = one.comparison.baseline,
                             .is_baseline = one.comparison.is_baseline,
                             .is_paired = table.is_paired,
                             .highest_is_best = column.highest_is_best,
                             .is_exact = is_known_before_training(column.score),
                             .p = one.comparison.corrected_p,
                             .sources = one.comparison.sources});
}

bool has_own_digits(const Statistic& statistic) {
  using Kind = Statistic::Kind;
  return statistic.kind == Kind::kShare || statistic.kind == Kind::kRatio || statistic.kind == Kind::kP;
}

/// A share, a correlation, a ratio or a p, of which what is below the last digit is "<0.001".
std::string share_text(double value, const ShownPart& part) {
  const int decimals = part.statistic->kind == Statistic::Kind::kRatio ? 2 : 3;
  const Digits digits = {.decimals = part.decimals.value_or(decimals), .is_given = true};
  const double least = std::pow(10.0, -digits.decimals);
  if (part.statistic->kind == Statistic::Kind::kP && value > 0 && value < least)
    return fmt::format("<{:.{}f}", least, digits.decimals);
  return with_minus(part.has_sign ? signed_text(value, value, digits) : number_text(value, digits));
}

/// One statistic; nullopt: it has no value.
std::optional<std::string> statistic_text(const Table& table, const ShownPart& part, const Table::Column& column,
                                          const TableCell& one) {
  if (part.statistic->kind == Statistic::Kind::kCount) return count_of(one.cell);
  const std::optional<double> value = value_of(table, part, column, one);
  if (!value) return std::nullopt;
  if (has_own_digits(*part.statistic)) return share_text(*value, part);
  const Digits digits = part.decimals ? Digits{.decimals = *part.decimals, .is_given = true} : column.digits;
  const bool is_difference = part.statistic->kind == Statistic::Kind::kDifference ||
                             (one.is_difference && part.statistic->kind == Statistic::Kind::kValue);
  const double scale = part.statistic->kind == Statistic::Kind::kSpread ? *value : scale_of(one.cell);
  return with_minus(part.has_sign || is_difference ? signed_text(*value, scale, digits)
                                                   : number_text(*value, scale, digits));
}

bool is_balanced(const std::string& text) {
  return std::ranges::count(text, '(') == std::ranges::count(text, ')') &&
         std::ranges::count(text, '[') == std::ranges::count(text, ']');
}

bool has_bad_runs(const Cell& cell) { return !cell.ends.empty() || cell.diverged_scored > 0; }

bool shows_count(const Show& show) {
  return std::ranges::any_of(show.parts, [](const ShownPart& part) { return part.statistic->name == "n"; });
}

/// " (2/3)"; "" of all seeds, which a note names, and where `show` or the counts of the bad runs say it.
std::string count_text(const Table::Column& column, const TableCell& one) {
  if (!common_end(one).empty() || one.cell.n() == one.cell.expected) return "";
  const bool is_told = one.cell.n() > 0 && shows_count(column.show);
  return is_told || (one.cell.missing() == 0 && has_bad_runs(one.cell)) ? "" : fmt::format(" ({})", count_of(one.cell));
}

std::string ends_text(const TableCell& one) {
  if (!common_end(one).empty()) return "";
  std::string text;
  const auto add = [&](int runs, const char* what) {
    if (runs > 0) text += fmt::format(", {}/{} {}", runs, one.cell.expected, what);
  };
  add(one.cell.diverged(), "div.");
  add(one.cell.count(Cell::End::kBelow), "fail");
  add(one.cell.count(Cell::End::kFailed), "failed");
  add(one.cell.count(Cell::End::kScoreless), "no score");
  return text;
}

std::string chosen_text(const Table& table, const Chosen& chosen) {
  if (chosen.labels.empty() || !table.chosen.empty()) return "";
  return fmt::format(" @{}{}", chosen.in_print, chosen.is_tied ? " (tied)" : "");
}

// As in the source: TOML drops the zeros at its end.
std::string published_number(const PublishedNumber& one, int decimals, bool has_sign) {
  if (!one.value.is_number()) return one.text;
  if (!one.text.empty()) return with_minus(one.text);
  const std::string shortest = value_text(one.value);
  if (shortest.find('e') != std::string::npos) return shortest;
  const auto value = one.value.get<double>();
  const Digits digits = {.decimals = decimals, .is_given = true};
  return with_minus(has_sign ? signed_text(value, value, digits) : number_text(value, digits));
}

}  // namespace

std::string shown_text(const Table& table, const Table::Column& column, const TableCell& one) {
  if (const std::string end = common_end(one); !end.empty()) return end;
  if (one.cell.n() == 0) return "–";
  // Parts between which a bracket is open are shown, or left out, together.
  std::string text, group, brackets;
  bool has_value = false;
  for (const ShownPart& part : column.show.parts) {
    const auto statistic = statistic_text(table, part, column, one);
    group += part.before + statistic.value_or("–") + part.after;
    brackets += part.before + part.after;
    has_value |= statistic.has_value();
    if (!is_balanced(brackets)) continue;
    if (has_value) text += group;
    group.clear();
    brackets.clear();
    has_value = false;
  }
  if (has_value) text += group;
  return text.empty() ? "–" : text.substr(std::min(text.find_first_not_of(' '), text.size()));
}

std::string measured_text(const Table& table, const Table::Column& column, const TableCell& one) {
  if (one.cell.expected == 0 && !one.cell.is_excluded && !one.is_sum) return "";  // the grid has nothing here
  constexpr const char* kLevels[] = {"", "†", "‡"};
  return shown_text(table, column, one) + kLevels[one.comparison.level] + (one.comparison.is_equivalent ? "≈" : "") +
         (one.cell.origins.stale > 0 ? "*" : "") + (one.cell.origins.mixed() > 0 ? "°" : "") + count_text(column, one) +
         (one.repeats ? " ≡" : "") + ends_text(one) + chosen_text(table, one.cell.chosen);
}

// Of what the cell shows first of its values.
std::string difference_text(const Table& table, const Table::Column& column, const TableCell& one) {
  const nlohmann::json theirs = one.published_value();
  const auto part = std::ranges::find_if(
      column.show.parts, [](const ShownPart& one) { return one.statistic->kind == Statistic::Kind::kValue; });
  if (!theirs.is_number() || part == column.show.parts.end()) return "";
  const std::optional<double> ours = value_of(table, *part, column, one);
  if (!ours) return "";
  const Digits digits = part->decimals ? Digits{.decimals = *part->decimals, .is_given = true} : column.digits;
  return with_minus(signed_text(*ours - theirs.get<double>(), scale_of(one.cell), digits));
}

std::string published_number_text(const Table::Column& column, const TableCell& one) {
  return one.published.empty() ? ""
                               : published_number(one.published.front(), column.published_decimals, one.is_difference);
}

std::string published_text(const Table& table, const Table::Column& column, const TableCell& one) {
  std::string text;
  for (const PublishedNumber& published : one.published) {
    std::string number = published_number(published, column.published_decimals, one.is_difference);
    if (number.empty()) continue;
    if (!published.source.text.empty()) {
      const auto source = std::ranges::find(table.sources, published.source) - table.sources.begin();
      number += fmt::format(" ({})", static_cast<char>('a' + source));
    }
    const std::string difference = &published == one.published.data() ? difference_text(table, column, one) : "";
    if (!text.empty()) text += ' ';
    text += difference.empty() ? fmt::format("[{}]", number) : fmt::format("[{}, {}]", number, difference);
  }
  return text;
}

std::string cell_text(const Table& table, const Table::Column& column, const TableCell& one) {
  return beside(measured_text(table, column, one), published_text(table, column, one));
}

std::string beside(const std::string& measured, const std::string& published) {
  return measured + (measured.empty() || published.empty() ? "" : " ") + published;
}

}  // namespace tearless::harness
