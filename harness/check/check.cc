#include "harness/check/check.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/pattern.h"
#include "base/words.h"
#include "harness/cells/cells.h"
#include "harness/check/claim_cells.h"
#include "harness/results/curves.h"
#include "harness/runs/measured.h"
#include "harness/statistics/rounding.h"
#include "harness/statistics/stats.h"
#include "harness/table/latex.h"

namespace tearless::harness {
namespace {

/// Of a claim about curves, those of the cell's runs, by seed.
std::map<int64_t, Curve> curves_of(const Cell& cell, const ClaimSpec& claim, const ResultSet& results) {
  std::set<std::string> trained;  // of a derived score the cell has derived runs
  for (const Row& row : results.rows) {
    if (std::ranges::find(cell.runs, row.run.id) != cell.runs.end()) trained.insert(row.trained);
  }
  std::map<int64_t, Curve> curves;
  for (const Row& row : results.rows) {
    if (!row.is_trained() || !trained.contains(row.run.id) || !row.counts(/*count_diverged=*/false)) continue;
    Curve curve = curve_of(results, row, claim.curve);
    if (curve.empty()) continue;
    const size_t first = part_of(curve, {.from = claim.limits.from}, extent_of(results, row, claim.curve)).first;
    curve.erase(curve.begin(), curve.begin() + static_cast<ptrdiff_t>(first));
    curves.try_emplace(row.run.seed, std::move(curve));
  }
  return curves;
}

CellSample sample_of(const ClaimCell& found, const ClaimSpec& claim, const Table& table, const ResultSet& results) {
  CellSample sample;
  std::vector<std::string> axes, labels;
  for (const auto* own : {&table.row_axes, &table.column_axes}) {
    for (const std::string& axis : *own) {
      const auto label = found.labels.find(axis);
      if (label == found.labels.end()) continue;
      axes.push_back(axis);
      labels.push_back(label->second);
    }
  }
  sample.name = labels_in_print(table.names, axes, labels).text;
  if (!claim.scores.empty() && found.column) {
    const std::string& score = found.column->score;
    const Name in_print = name_of(table.names, score);
    sample.name += (sample.name.empty() ? "" : ", ") + (in_print.text.empty() ? score : in_print.text);
  }
  if (!claim.over.empty()) sample.at = number_of_label(found.labels.at(claim.over)).value_or(0);
  if (!found.cell) return sample;
  const Cell& cell = *found.cell;
  sample.values = cell.values;
  sample.runs = static_cast<size_t>(cell.expected);
  sample.failed = static_cast<size_t>(cell.failures());
  sample.missing = static_cast<size_t>(cell.undecided());
  if (claim.curve.empty()) return sample;
  sample.curves = curves_of(cell, claim, results);
  sample.values.clear();
  sample.failed = static_cast<size_t>(cell.diverged());
  sample.missing = sample.runs - std::min(sample.runs, sample.failed + sample.curves.size());
  return sample;
}

/// Whether the highest is best, of all of the cells.
bool is_highest_best(const std::vector<ClaimCell>& cells, const ClaimSpec& claim, const std::string& text) {
  if (!claim.curve.empty()) return !claim.lowest_is_best;
  const auto first = std::ranges::find_if(cells, &ClaimCell::has_runs);
  const bool is_order = claim.kind->form == ClaimKind::Form::kDifference && claim.kind->name != "equivalent";
  for (const ClaimCell& one : cells) {
    if (!is_order || !one.column || one.column->highest_is_best == first->column->highest_is_best) continue;
    fail(
        "the claim \"{}\" compares {}, of which the highest is best of one and the lowest of another; set the table's "
        "best for both",
        text, fmt::join(claim.scores, " and "));
  }
  return first->column->highest_is_best;
}

/// All that is compared, and no curve.
bool are_known_before_training(const std::vector<ClaimCell>& cells, const ClaimSpec& claim) {
  return claim.curve.empty() && std::ranges::all_of(cells, [](const ClaimCell& one) {
           return !one.column || is_known_before_training(one.column->score);
         });
}

// --- caveats ---------------------------------------------------------------------------------------------------------

/// What a table says of such cells in its marks and notes.
std::vector<Caveat> caveats_of(const std::vector<const Cell*>& cells, const Grid& grid, const TableSpec& spec,
                               const std::string& score) {
  std::vector<Caveat> caveats;
  Origins origins;
  std::string peeking;
  bool is_unequal = false;
  for (const Cell* cell : cells) {
    origins.add(cell->origins);
    if (peeking.empty() && grid.claims.looks.empty())
      peeking = peeking_text(cell->added_seeds, static_cast<size_t>(cell->expected));
    is_unequal |= cell->averaged != cells.front()->averaged;
  }
  if (origins.stale > 0) caveats.push_back({"stale", fmt::format("{}", fmt::join(origins.stale_because, "; "))});
  if (origins.mixed() > 0) caveats.push_back({"mixed", kMixed});
  if (is_unequal) {
    caveats.push_back(
        {"unequal averages", fmt::format("the means are not over the same values of {}",
                                         fmt::join(names_of_axes(grid, spec.arrangement.average), ", "))});
  }
  if (!peeking.empty()) caveats.push_back({"added seeds", peeking});
  if (spec.arrangement.select && is_chosen_by_what_is_reported(spec, score))
    caveats.push_back(
        {"chosen by a reported score", fmt::format("select takes the best {}", spec.arrangement.select->by)});
  return caveats;
}

// --- numbers ---------------------------------------------------------------------------------------------------------

/// Those of the column, or two significant ones of the interval's width where that is narrower; and more where a ratio,
/// or an end of an interval, that is not 0 would be printed as 0.
Digits digits_of(const Finding& finding, ClaimKind::Form form, const Table::Column& column) {
  using Form = ClaimKind::Form;
  Digits digits{.decimals = form == Form::kShare ? 2 : 3};
  const bool is_of_score = form == Form::kDifference || form == Form::kValue;
  if (is_of_score) digits = column.digits;
  const auto is_lost = [&](double number) {
    return number != 0 && number_text(number, 1, digits).find_first_of("123456789") == std::string::npos;
  };
  constexpr int kMore = 3;
  if (form == Form::kRatio) {
    for (int i = 0; i < kMore && finding.estimate && is_lost(*finding.estimate); ++i) ++digits.decimals;
  }
  if (!finding.interval || (!is_of_score && form != Form::kSlope)) return digits;
  const auto [low, high] = *finding.interval;
  const double centre = (low + high) / 2, half = (high - low) / 2;
  const Digits own = Digits::of({&centre, 1}, {&half, 1});
  if (form == Form::kSlope) digits = own;
  if (half > 0 && !digits.is_given) digits.decimals = std::max(digits.decimals, own.decimals);
  for (int i = 0; i < kMore && (is_lost(low) || is_lost(high)); ++i) ++digits.decimals;
  return digits;
}

std::string numbers_text(const Finding& finding, ClaimKind::Form form, const Table::Column& column) {
  if (!finding.estimate) return "";
  const Digits digits = digits_of(finding, form, column);
  const auto [low, high] = finding.interval.value_or(Interval{*finding.estimate, *finding.estimate});
  const double scale = std::max({std::abs(low), std::abs(high), std::abs(*finding.estimate)});
  const bool has_sign = form == ClaimKind::Form::kDifference || form == ClaimKind::Form::kSlope;
  const auto text = [&](double value) {
    return with_minus(has_sign ? signed_text(value, scale, digits) : number_text(value, scale, digits));
  };
  const std::string estimate = text(*finding.estimate);
  return finding.interval ? fmt::format("{} ({} … {})", estimate, text(low), text(high)) : estimate;
}

/// That of a score of a data set; "": other names do not end in a unit ("beta.encoder.*.ffn").
std::string unit_of(const ClaimKind& kind, const std::string& score) {
  const auto is_of = [&](const char* set) {
    return matches_pattern(fmt::format("{}.*", set), score) || matches_pattern(fmt::format("*.{}.*", set), score);
  };
  const bool is_of_set = is_of("test") || is_of("dev") || is_of("train") || score.find('.') == std::string::npos;
  return kind.has_scale && is_of_set && score.find(", ") == std::string::npos ? last_word(score) : "";
}

/// "within 0.3 bleu"; "" for kinds without a limit.
std::string limit_text(const ClaimSpec& claim, const std::string& score) {
  const Limits& limits = claim.limits;
  const unsigned keys = claim.kind->keys;
  if (keys & ClaimKind::kWithin) {
    return limits.is_percent ? fmt::format("within {} %", limits.within)
                             : fmt::format("within {} {}", limits.within, last_word(score));
  }
  if (keys & ClaimKind::kBetween) return fmt::format("between {} and {}", limits.between.first, limits.between.second);
  if (keys & ClaimKind::kThan) return fmt::format("{} {}", claim.kind->name, limits.than);
  if (keys & ClaimKind::kCurve) return fmt::format("{} from update {} on", claim.curve, limits.from);
  if (keys & ClaimKind::kR2) return fmt::format("R² ≥ {}", limits.r2);
  return "";
}

// --- claims and cells ------------------------------------------------------------------------------------------------

std::string percent(double share) { return fmt::format("{:.3g} %", 100 * share); }

/// With its intervals and levels, and with what is a failure in the table, where the claim is about these.
std::string meaning_of(const ClaimKind& kind, const TableSpec& table, const ClaimTests& tests) {
  std::string meaning(kind.meaning);
  const auto put = [&](const std::string& word, const std::string& text) {
    if (const size_t at = meaning.find(word); at != std::string::npos) meaning.replace(at, word.size(), text);
  };
  const bool has_looks = !tests.looks.empty();
  put("{95}", has_looks ? "repeated confidence interval" : percent(1 - tests.level) + " interval");
  put("{90}", has_looks ? "repeated confidence interval" : percent(1 - 2 * tests.level) + " interval");
  put("{share}", has_looks ? ", at the level of the look" : " at " + percent(tests.level));
  if (kind.form != ClaimKind::Form::kShare) return meaning;
  meaning += table.rules.count_diverged ? "; failed: diverged without a score" : "; failed: diverged";
  if (table.rules.fail_below) meaning += fmt::format(" or below {}", *table.rules.fail_below);
  return meaning;
}

void check_claim(const Grid& grid, const std::vector<View>& views, size_t index, const Table& table,
                 const ResultSet& results, const Look& look, std::vector<Check>& checks) {
  const View& view = views[index];
  const auto& claim = std::get<ClaimSpec>(view.spec);
  const ClaimCells cells_of(claim, table);
  std::string score = claim.scores.empty() ? claim.score : fmt::format("{}", fmt::join(claim.scores, ", "));
  if (score.empty() && !table.columns.empty()) score = table.columns.front().score;
  Check blank{.grid = grid.title,
              .name = claim.name,
              .text = view.title,
              .source = claim.source,
              .score = score,
              .claim = index,
              .kind = std::string(claim.kind->name),
              .form = claim.kind->form,
              .finding = {.verdict = ClaimVerdict::kNotTested, .reason = "the grid has no run there"},
              .hash = claim.hash,
              .meaning = meaning_of(*claim.kind, views[claim.table].table(), grid.claims)};
  if (!look.of.empty()) blank.look = AtLook{look.index + 1, look.of.size(), look.of[look.index]};
  std::vector<Check> tested, untested;
  for (const Place& place : cells_of.places()) {
    ++blank.rank;
    const CellLabels labels(place.begin(), place.end());
    if (!claim.where.has(labels)) continue;
    const std::vector<ClaimCell> cells = cells_of.at(place);
    const auto first = std::ranges::find_if(cells, &ClaimCell::has_runs);
    const bool has_runs = first != cells.end();
    const bool is_place = has_runs && std::ranges::all_of(cells, &ClaimCell::has_runs);
    Check& check = (is_place ? tested : untested).emplace_back(blank);
    check.place = place;
    check.is_paired = claim.paired.has(labels) || share_runs(cells);
    if (has_runs) {
      std::vector<CellSample> samples;
      for (const ClaimCell& one : cells) samples.push_back(sample_of(one, claim, table, results));
      if (claim.scores.empty()) check.score = claim.curve.empty() ? first->column->score : claim.curve;
      check.finding = check_claim(*claim.kind, samples,
                                  {.limits = claim.limits,
                                   .level = grid.claims.level,
                                   .look = look,
                                   .is_paired = check.is_paired,
                                   .highest_is_best = is_highest_best(cells, claim, view.title.text),
                                   .is_exact = are_known_before_training(cells, claim)});
      for (const ClaimCell& one : cells) {
        if (one.cell && !one.cell->chosen.reason.empty()) check.finding.reason = one.cell->chosen.reason;
      }
      check.shown = numbers_text(check.finding, claim.kind->form, *first->column);
      check.unit = unit_of(*claim.kind, check.score);
      std::vector<const Cell*> own;
      for (const ClaimCell& one : cells) {
        if (!one.has_runs()) continue;
        own.push_back(one.cell);
        check.runs.insert(check.runs.end(), one.cell->runs.begin(), one.cell->runs.end());
      }
      check.caveats = caveats_of(own, grid, views[claim.table].table(), first->column->score);
    }
    if (claim.not_claimed.has(labels)) check.finding.verdict = ClaimVerdict::kNotClaimed;
  }
  // What the grid leaves out is no place of a claim, but no claim is without a verdict.
  if (tested.empty()) tested = untested.empty() ? std::vector{blank} : std::move(untested);
  for (Check& check : tested) {
    check.limit = limit_text(claim, check.score);
    checks.push_back(std::move(check));
  }
}

/// How far a published number may be from the mean on either side; nullopt: the seeds do not say it, as one alone or
/// equal ones.
std::optional<double> reach_of(const Cell& cell, const Tolerance& tolerance, const std::string& score) {
  if (!tolerance.runs) return tolerance.at_most;
  const std::optional<double> half = half_prediction_interval(numbers_of(cell.values), *tolerance.runs);
  return half == 0 && !is_known_before_training(score) ? std::nullopt : half;
}

/// A mean over other seeds than the source's says nothing where some runs failed; where all did, there is none.
Finding finding_of(const Cell& cell, const PublishedNumber& published, const std::string& score) {
  const std::optional<double> mean = cell.mean();
  const std::optional<double> half = reach_of(cell, *published.tolerance, score);
  Finding finding{.verdict = ClaimVerdict::kNotTested, .n = {cell.values.size()}};
  if (half) finding.interval = Interval{-*half, *half};
  if (mean) finding.estimate = *mean - published.value.get<double>();
  const int failures = cell.failures();
  if (cell.expected == 0) {
    finding.reason = "the grid has no run there";
  } else if (!cell.chosen.reason.empty()) {
    finding.reason = cell.chosen.reason;
  } else if (cell.undecided() > 0) {
    finding.reason = fmt::format("{}/{} missing", cell.undecided(), cell.expected);
  } else if (failures > 0) {
    finding.verdict = failures < cell.expected ? ClaimVerdict::kCannotTell : ClaimVerdict::kContradicted;
    finding.reason = fmt::format("{}/{} failed", failures, cell.expected);
  } else if (half && is_less(*half, std::abs(*finding.estimate), std::abs(*mean))) {
    finding.verdict = ClaimVerdict::kContradicted;
  } else if (half && !is_less(published.tolerance->at_most, *half, std::abs(*mean))) {
    finding.verdict = ClaimVerdict::kHeld;
  } else {
    finding.verdict = ClaimVerdict::kCannotTell;
    finding.reason = !half && cell.n() > 1 ? "the seeds have the same value" : "too few seeds";
  }
  return finding;
}

/// "prediction of the mean of 3 runs, at most 0.5"; "" of a distance.
std::string limit_text(const Tolerance& tolerance) {
  if (!tolerance.runs) return "";
  return fmt::format("prediction of {}{}, at most {}", *tolerance.runs == 1 ? "" : "the mean of ",
                     counted(static_cast<int64_t>(*tolerance.runs), "run"), tolerance.at_most);
}

/// "0.5", as the grid file has it, or "±0.31", with the digits of the table; "": the seeds have no interval.
std::string shown_text(const Tolerance& tolerance, const Finding& finding, const Table::Column& column) {
  if (!tolerance.runs) return fmt::format("{}", tolerance.at_most);
  if (!finding.interval) return "";
  const double half = finding.interval->second;
  return "±" + number_text(half, half, digits_of(finding, ClaimKind::Form::kDifference, column));
}

void check_cell(const Table& table, const Table::Row& row, size_t index, const Check& blank,
                std::vector<Check>& checks) {
  const Table::Column& column = table.columns[index];
  TableCell cell = row.cells[index];
  for (PublishedNumber one : std::exchange(cell.published, {})) {
    if (!one.tolerance || !one.value.is_number()) continue;
    Check& check = checks.emplace_back(blank);
    check.source = std::exchange(one.source, {});
    check.finding = finding_of(cell.cell, one, column.score);
    check.limit = limit_text(*one.tolerance);
    check.shown = shown_text(*one.tolerance, check.finding, column);
    cell.published = {one};  // alone, with the difference from it
    check.measured = measured_text(table, column, cell);
    check.published = published_text(table, column, cell);
  }
}

void check_cells(const Grid& grid, const TableSpec& spec, const Table& table, std::vector<Check>& checks) {
  for (const Table::Row& row : table.rows) {
    for (size_t i = 0; i < row.cells.size(); ++i) {
      const auto has_tolerance = [](const PublishedNumber& one) { return one.tolerance.has_value(); };
      if (std::ranges::none_of(row.cells[i].published, has_tolerance)) continue;
      const Table::Column& column = table.columns[i];
      Check blank{.grid = grid.title, .score = column.score, .kind = "tolerance"};
      for (size_t axis = 0; axis < row.labels.size(); ++axis)
        blank.place.emplace_back(table.row_axes[axis], row.labels[axis]);
      for (size_t axis = 0; axis < column.labels.size(); ++axis)
        blank.place.emplace_back(table.column_axes[axis], column.labels[axis]);
      std::vector<std::string> labels;
      for (const auto& [axis, label] : blank.place) labels.push_back(name_of(table.names, axis, label).text);
      blank.text = joined({table.title, {fmt::format("{}", fmt::join(labels, ", "))}}, ": ");
      blank.caveats = caveats_of({&row.cells[i].cell}, grid, spec, column.score);
      check_cell(table, row, i, blank, checks);
    }
  }
}

std::vector<Check> check_claims(const Grid& grid, const std::vector<View>& views, const std::vector<Table>& tables,
                                const ResultSet& results, const Look& look) {
  std::vector<Check> checks;
  for (size_t i = 0; i < views.size(); ++i) {
    if (const auto* claim = std::get_if<ClaimSpec>(&views[i].spec))
      check_claim(grid, views, i, tables[claim->table], results, look, checks);
  }
  return checks;
}

// --- looks -----------------------------------------------------------------------------------------------------------

/// Puts in place of what the runs say now what they said when the look was taken.
void restore(const RecordedLook& recorded, Check& check) {
  const LookTaken& taken = recorded.taken;
  check.finding = {.verdict = verdict_called(taken.verdict),
                   .estimate = taken.estimate,
                   .level = taken.level,
                   .n = taken.n,
                   .reason = taken.reason};
  if (taken.low && taken.high) check.finding.interval = {*taken.low, *taken.high};
  check.shown = taken.shown;
  if (recorded.changed.empty()) return;
  check.caveats.push_back({"changed since", fmt::format("run {} was deleted or trained again after a look had seen it: "
                                                        "the verdict is that of the look",
                                                        recorded.changed)});
}

}  // namespace

bool is_of(const LookTaken& taken, const Check& check) {
  return taken.claim == check.text.text && taken.hash == check.hash && taken.place == check.place &&
         taken.look == check.look->number && taken.seeds == check.look->seeds;
}

std::vector<ClaimLooks> looks_at_claims(const Grid& grid, const std::vector<View>& views, const ResultSet& results,
                                        const std::vector<RecordedLook>& recorded) {
  std::vector<ClaimLooks> all;
  Look look{.seeds = grid.seeds, .of = grid.claims.looks};
  for (bool is_open = true; is_open && look.index < look.of.size(); ++look.index) {
    Grid part = grid;
    part.seeds.resize(look.of[look.index]);
    part.claims.looks.clear();  // each cell needs all of these seeds
    ResultSet of_part{.windows = results.windows};
    const std::set<int64_t> seeds(part.seeds.begin(), part.seeds.end());
    std::ranges::copy_if(results.rows, std::back_inserter(of_part.rows),
                         [&](const Row& row) { return seeds.contains(row.run.seed); });
    std::vector<Check> checks = check_claims(grid, views, tables_of(part, views, of_part.rows), results, look);
    all.resize(checks.size());
    is_open = false;
    for (size_t i = 0; i < checks.size(); ++i) {
      Check& check = checks[i];
      const auto found = std::ranges::find_if(recorded, [&](const auto& one) { return is_of(one.taken, check); });
      if (found != recorded.end()) restore(*found, check);
      if (!all[i].empty() && all[i].back().finding.verdict != ClaimVerdict::kCannotTell) continue;
      is_open |= check.finding.verdict == ClaimVerdict::kCannotTell;
      all[i].push_back(std::move(check));
    }
  }
  return all;
}

std::vector<Table> tables_of(const Grid& grid, const std::vector<View>& views, const std::vector<Row>& rows) {
  std::vector<Table> tables;
  for (const View& view : views) {
    const auto* spec = std::get_if<TableSpec>(&view.spec);
    tables.push_back(spec ? fill(grid, view.title, *spec, rows) : Table());
  }
  return tables;
}

namespace {

/// Whether the look lacks runs that are in no sweep: no limit let the look before it ask for them.
bool nobody_asked_for(const Check& check, const ResultSet& results) {
  const std::set<std::string> own(check.runs.begin(), check.runs.end());
  return check.finding.verdict == ClaimVerdict::kNotTested && std::ranges::all_of(results.rows, [&](const Row& row) {
           return !own.contains(row.run.id) || (row.result.state && has_result(*row.result.state));
         });
}

}  // namespace

GridChecks check_grid(const Grid& grid, const std::vector<View>& views, const std::vector<Table>& tables,
                      const ResultSet& results, const std::vector<RecordedLook>& recorded) {
  GridChecks checks{.title = grid.title, .names = grid.names, .tests = grid.claims, .claims = {}, .cells = {}};
  if (grid.claims.looks.empty()) {
    checks.claims = check_claims(grid, views, tables, results, {});
  } else {
    for (ClaimLooks& looks : looks_at_claims(grid, views, results, recorded)) {
      if (looks.size() > 1 && nobody_asked_for(looks.back(), results)) looks.pop_back();
      checks.claims.push_back(std::move(looks.back()));
    }
  }
  for (size_t i = 0; i < views.size(); ++i) {
    if (const auto* table = std::get_if<TableSpec>(&views[i].spec)) check_cells(grid, *table, tables[i], checks.cells);
  }
  return checks;
}

size_t CheckCounts::of(ClaimVerdict verdict) const {
  const auto index = static_cast<size_t>(verdict);
  return claims[index] + cells[index];
}

CheckCounts counts_of(const std::vector<GridChecks>& all) {
  CheckCounts counts;
  for (const GridChecks& grid : all) {
    for (const Check& check : grid.claims) ++counts.claims[static_cast<size_t>(check.finding.verdict)];
    for (const Check& check : grid.cells) ++counts.cells[static_cast<size_t>(check.finding.verdict)];
  }
  return counts;
}

}  // namespace tearless::harness
