// The text of a cell: what `show` composes, its marks, and how runs ended that are not in it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/table/table.h"

namespace tearless::harness {
namespace {

/// How all runs of a cell without a value ended, if they ended alike. "" for other cells.
std::string common_end(const Cell& cell) {
  if (cell.n() > 0) return "";
  if (cell.expected == 0) return cell.excluded ? "left out" : "–";
  if (cell.scoreless == cell.expected || (cell.is_sum && cell.missing() == 0)) return "–";
  const auto all = [&](int runs, const char* what) { return fmt::format("{} ({}/{})", what, runs, cell.expected); };
  if (cell.diverged == cell.expected) return all(cell.diverged, "div.");
  if (cell.below == cell.expected) return all(cell.below, "fail");
  if (cell.failed == cell.expected) return all(cell.failed, "failed");
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
                               const Cell& cell) {
  return part.statistic->of({.values = cell.values,
                             .baseline = cell.baseline,
                             .is_baseline = cell.is_baseline,
                             .is_paired = table.is_paired,
                             .highest_is_best = column.highest_is_best,
                             .p = cell.corrected_p,
                             .sources = cell.sources});
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
                                          const Cell& cell) {
  if (part.statistic->kind == Statistic::Kind::kCount) return count_of(cell);
  const std::optional<double> value = value_of(table, part, column, cell);
  if (!value) return std::nullopt;
  if (has_own_digits(*part.statistic)) return share_text(*value, part);
  const Digits digits = part.decimals ? Digits{.decimals = *part.decimals, .is_given = true} : column.digits;
  const bool is_difference = part.statistic->kind == Statistic::Kind::kDifference ||
                             (cell.is_difference && part.statistic->kind == Statistic::Kind::kValue);
  const double scale = part.statistic->kind == Statistic::Kind::kSpread ? *value : scale_of(cell);
  return with_minus(part.has_sign || is_difference ? signed_text(*value, scale, digits)
                                                   : number_text(*value, scale, digits));
}

bool is_balanced(const std::string& text) {
  return std::ranges::count(text, '(') == std::ranges::count(text, ')') &&
         std::ranges::count(text, '[') == std::ranges::count(text, ']');
}

std::string shown_text(const Table& table, const Table::Column& column, const Cell& cell) {
  if (const std::string end = common_end(cell); !end.empty()) return end;
  if (cell.n() == 0) return "–";
  // Parts between which a bracket is open are shown, or left out, together.
  std::string text, group, brackets;
  bool has_value = false;
  for (const ShownPart& part : column.show.parts) {
    const auto statistic = statistic_text(table, part, column, cell);
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

bool has_bad_runs(const Cell& cell) { return cell.diverged + cell.below + cell.failed + cell.scoreless > 0; }

bool shows_count(const Show& show) {
  return std::ranges::any_of(show.parts, [](const ShownPart& part) { return part.statistic->name == "n"; });
}

/// In the shortest form that is complete: " (n=3)", " (2/3)", or nothing where `show` or the counts of the bad runs say
/// it.
std::string count_text(const Table& table, const Table::Column& column, const Cell& cell) {
  if (!common_end(cell).empty()) return "";
  if (cell.n() == cell.expected)
    return table.shows_counts && !column.show.counts_itself ? fmt::format(" (n={})", cell.n()) : "";
  const bool is_told = cell.n() > 0 && shows_count(column.show);
  return is_told || (cell.missing() == 0 && has_bad_runs(cell)) ? "" : fmt::format(" ({})", count_of(cell));
}

std::string ends_text(const Cell& cell) {
  if (!common_end(cell).empty()) return "";
  std::string text;
  const auto add = [&](int runs, const char* what) {
    if (runs > 0) text += fmt::format(", {}/{} {}", runs, cell.expected, what);
  };
  add(cell.diverged, "div.");
  add(cell.below, "fail");
  add(cell.failed, "failed");
  add(cell.scoreless, "no score");
  return text;
}

std::string chosen_text(const Table& table, const Cell& cell) {
  if (cell.chosen.empty()) return "";
  return table.chosen.empty() ? fmt::format(" @{}{}", cell.chosen_in_print, cell.tied ? " (tied)" : "") : "";
}

/// "+0.41": of what the cell shows first of its values, minus the published number; "" if there is no such difference.
std::string difference_text(const Table& table, const Table::Column& column, const Cell& cell) {
  const nlohmann::json theirs = cell.published_value();
  const auto part = std::ranges::find_if(
      column.show.parts, [](const ShownPart& one) { return one.statistic->kind == Statistic::Kind::kValue; });
  if (!theirs.is_number() || part == column.show.parts.end()) return "";
  const std::optional<double> ours = value_of(table, *part, column, cell);
  if (!ours) return "";
  const Digits digits = part->decimals ? Digits{.decimals = *part->decimals, .is_given = true} : column.digits;
  return with_minus(signed_text(*ours - theirs.get<double>(), scale_of(cell), digits));
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

std::string measured_text(const Table& table, const Table::Column& column, const Cell& cell) {
  if (cell.expected == 0 && !cell.excluded && !cell.is_sum) return "";  // the grid has nothing here
  constexpr const char* kLevels[] = {"", "†", "‡"};
  return shown_text(table, column, cell) + kLevels[cell.level] + (cell.stale > 0 ? "*" : "") +
         (cell.mixed() > 0 ? "°" : "") + count_text(table, column, cell) + (cell.repeats ? " ≡" : "") +
         ends_text(cell) + chosen_text(table, cell);
}

std::string published_text(const Table& table, const Table::Column& column, const Cell& cell) {
  std::string text;
  for (const PublishedNumber& one : cell.published) {
    std::string number = published_number(one, column.published_decimals, cell.is_difference);
    if (number.empty()) continue;
    if (!one.source.empty()) {
      const auto source = std::ranges::find(table.sources, one.source) - table.sources.begin();
      number += fmt::format(" ({})", static_cast<char>('a' + source));
    }
    const std::string difference = &one == cell.published.data() ? difference_text(table, column, cell) : "";
    if (!text.empty()) text += ' ';
    text += difference.empty() ? fmt::format("[{}]", number) : fmt::format("[{}, {}]", number, difference);
  }
  return text;
}

std::string cell_text(const Table& table, const Table::Column& column, const Cell& cell) {
  return beside(measured_text(table, column, cell), published_text(table, column, cell));
}

std::string beside(const std::string& measured, const std::string& published) {
  return measured + (measured.empty() || published.empty() ? "" : " ") + published;
}

}  // namespace tearless::harness
