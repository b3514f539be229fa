#include "harness/check/seeds_needed.h"

#include <algorithm>
#include <cmath>

#include "harness/check/claim_cells.h"
#include "harness/runs/measured.h"
#include "harness/statistics/stats.h"

namespace tearless::harness {
namespace {

using Form = ClaimKind::Form;

bool has_limit(const ClaimSpec& claim) { return claim.kind->keys & ClaimKind::kWithin; }

/// Pairs of places in the list of cells that the claim compares; of a claim about means each with itself.
std::vector<std::pair<size_t, size_t>> comparisons_of(const ClaimKind& kind, size_t cells) {
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t i = 0; i < cells; ++i) {
    if (kind.form == Form::kValue) pairs.emplace_back(i, i);
    for (size_t j = i + 1; kind.form == Form::kDifference && j < cells; ++j) {
      const bool is_compared = kind.name == "equivalent" || (kind.keys & ClaimKind::kOf ? i == 0 : j == i + 1);
      if (is_compared) pairs.emplace_back(i, j);
    }
  }
  return pairs;
}

struct Spread {
  double deviation = 0, degrees = 0;
  size_t seeds = 0;
};

/// nullopt for fewer than two seeds, and for those that agree: what their deviation is, nobody can say.
std::optional<Spread> spread_of(const Cell& a, const Cell& b, bool is_paired) {
  Spread spread;
  if (is_paired || &a == &b) {
    const std::vector<double> values = &a == &b ? numbers_of(a.values) : pairs_of(a.values, b.values).differences();
    spread = {sample_deviation(values).value_or(0), static_cast<double>(values.size()) - 1, values.size()};
  } else {
    const std::vector<std::vector<double>> cells = {numbers_of(a.values), numbers_of(b.values)};
    const size_t fewest = std::min(cells[0].size(), cells[1].size());
    if (fewest >= 2)
      spread = {*pooled_deviation(cells), static_cast<double>(cells[0].size() + cells[1].size() - 2), fewest};
  }
  return spread.deviation > 0 ? std::optional(spread) : std::nullopt;
}

/// What matters to the claim; nullopt: it does not say, or in per cent of a mean that is not known.
std::optional<double> difference_of(const ClaimSpec& claim, const Cell* second) {
  std::optional<Within> size = claim.matters;
  if (has_limit(claim)) size = {.limit = claim.limits.within, .unit = claim.limits.is_percent ? "%" : ""};
  const double known = size ? size->beside(second ? second->mean().value_or(0) : 0) : 0;
  return known > 0 ? std::optional(known) : std::nullopt;
}

/// A comparison with what is known of it.
struct Candidate {
  SeedsNeeded needed;
  double degrees = 0;

  /// The difference in deviations, as far as they are known.
  double effect() const { return needed.deviation && needed.difference ? *needed.difference / *needed.deviation : 1; }
};

std::optional<Candidate> neediest(const ClaimSpec& claim, const Table& table, const Table& known) {
  const ClaimCells cells_of(claim, table), known_of(claim, known);
  std::optional<Candidate> found;
  for (const Place& place : cells_of.places()) {
    const CellLabels labels(place.begin(), place.end());
    const std::vector<ClaimCell> cells = cells_of.at(place), others = known_of.at(place);
    const bool is_open = claim.where.has(labels) && !claim.not_claimed.has(labels) && cells.size() == others.size() &&
                         std::ranges::all_of(cells, [](const ClaimCell& one) {
                           return one.has_runs() && !is_known_before_training(one.column->score);
                         });
    if (!is_open) continue;
    for (const auto& [i, j] : comparisons_of(*claim.kind, cells.size())) {
      Candidate one = {.needed = {.score = cells[i].column->score,
                                  .place = place,
                                  .is_paired = claim.paired.has(labels) || i == j || share_runs(cells),
                                  .difference = difference_of(claim, others[j].cell)}};
      if (others[i].cell && others[j].cell) {
        if (const auto spread = spread_of(*others[i].cell, *others[j].cell, one.needed.is_paired)) {
          one.needed.deviation = spread->deviation;
          one.needed.seeds = spread->seeds;
          one.degrees = spread->degrees;
        }
      }
      // what is measured comes before what is guessed
      const auto rank = [](const Candidate& of) { return std::pair(!of.needed.deviation, of.effect()); };
      if (!found || rank(one) < rank(*found)) found = std::move(one);
    }
  }
  return found;
}

void add_seeds(const ClaimSpec& claim, double degrees, double effect, const ClaimTests& tests, SeedsNeeded& needed) {
  Interval effects = {effect, effect};  // of the least and of the greatest deviation
  if (needed.deviation && needed.difference) {
    const auto [low, high] = deviation_interval(1, degrees);
    effects = {effect / low, effect / high};
  }
  const Design design = needed.is_paired ? Design::kPaired : Design::kWelch;
  const auto test_of = [&](double size, double level) {
    PlannedTest test = {.design = design, .level = level, .to_lower = size};
    if (claim.kind->name == "equivalent") test.to_upper = size;
    return test;
  };
  const double sides = has_limit(claim) ? 1 : 2;
  needed.least = least_seeds(test_of(effects.first, tests.level / sides));
  needed.most = least_seeds(test_of(effects.second, tests.level / sides));
  if (tests.looks.empty()) return;
  const double level = constant_level(tests.looks, tests.level, sides == 1 ? Sides::kOne : Sides::kTwo, design) / sides;
  needed.at_looks = {power_at_looks(test_of(effects.first, level), tests.looks),
                     power_at_looks(test_of(effects.second, level), tests.looks)};
}

}  // namespace

std::vector<SeedsNeeded> seeds_needed(const std::vector<View>& views, const std::vector<Table>& tables,
                                      const std::vector<Table>& known, const ClaimTests& tests) {
  std::vector<SeedsNeeded> all;
  for (size_t i = 0; i < views.size(); ++i) {
    const auto* claim = std::get_if<ClaimSpec>(&views[i].spec);
    if (!claim || (claim->kind->form != Form::kDifference && claim->kind->form != Form::kValue)) continue;
    std::optional<Candidate> found = neediest(*claim, tables[claim->table], known[claim->table]);
    if (!found) continue;
    found->needed.claim = i;
    add_seeds(*claim, found->degrees, found->effect(), tests, found->needed);
    all.push_back(std::move(found->needed));
  }
  return all;
}

}  // namespace tearless::harness
