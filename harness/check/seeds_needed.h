// How many seeds the claims of a grid need, before these are trained. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "harness/check/check.h"
#include "harness/statistics/power.h"

namespace tearless::harness {

/// What a claim needs at the place where it needs most.
struct SeedsNeeded {
  size_t claim = 0;  // index among the grid's views
  std::string score = {};
  Place place = {};
  bool is_paired = true;
  std::optional<double> difference = {};  // that matters, or is the limit, in the unit of the score; else one deviation
  std::optional<double> deviation = {};   // of the differences within seeds, or pooled over both cells; else not known
  size_t seeds = 0;                       // that the deviation is from, of the cell with fewer
  /// For the lower and the upper end of the deviation's 80 % interval; without a deviation or a difference, both as if
  /// the two were equal. nullopt: more than kMaxSeeds.
  std::optional<size_t> least = {}, most = {};
  std::optional<std::pair<PowerAtLooks, PowerAtLooks>> at_looks = {};  // likewise, of the level of each look
};

/// Of each claim about differences of scores or about a mean that has a place in the tables, in their order: with the
/// probability 0.8 it is held, if the difference is there (of `equivalent` and `not_worse`: if there is none). Of
/// several comparisons the one that needs most counts alone. `tables`: those of `views`. `known`: tables with the runs
/// whose spread is known, the same or those of another sweep with the same axes.
std::vector<SeedsNeeded> seeds_needed(const std::vector<View>& views, const std::vector<Table>& tables,
                                      const std::vector<Table>& known, const ClaimTests& tests = {});

}  // namespace tearless::harness
