// What a claim says of cells of a table, and whether their runs show it. A new kind of claim is a function and a row of
// kKinds in claim.cc.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/statistics/curve.h"
#include "harness/statistics/interval.h"
#include "harness/statistics/seed_value.h"

namespace tearless::harness {

enum class ClaimVerdict {
  kHeld,
  kContradicted,
  kCannotTell,  // the runs are all there, and their spread is too wide
  kNotTested,   // runs are missing
  kNotClaimed   // the numbers are shown, and the source makes no claim there
};
constexpr int kVerdicts = 5;
const char* name_of(ClaimVerdict verdict);           ///< "cannot tell"
ClaimVerdict verdict_called(std::string_view name);  ///< the inverse; kCannotTell for any other name

/// The runs of one cell, which differ in their seed.
struct CellSample {
  std::string name;                    // for reasons
  std::vector<SeedValue> values = {};  // of the score
  size_t runs = 0;                     // that the cell should have
  size_t failed = 0;                   // diverged, or below the table's fail_below
  size_t missing = 0;  // without a number for another reason: not trained yet, crashed, without this score
  double at = 0;       // its place on the axis of a slope
  std::map<int64_t, Curve> curves = {};  // of a claim about curves: by seed, in place of values
};

/// What a claim says beside its cells.
struct Limits {
  double within = 0;  // δ, in the unit of the score
  bool is_percent = false;
  Interval between = {};  // of a ratio
  double r2 = 0;
  double than = 0;     // what a value is above or below
  double from = 0;     // the update from which on curves are compared
  bool falls = false;  // a slope, downwards
};

/// Which look at a sweep it is, of those that its grid has.
struct Look {
  std::vector<int64_t> seeds = {};  // all of the grid, in its order
  std::vector<size_t> of = {};      // how many of these each look takes, ascending; empty: there is one, of all
  size_t index = 0;                 // among `of`

  bool is_last() const { return of.empty() || index + 1 == of.size(); }
};

/// How the samples are compared.
struct Comparison {
  Limits limits = {};
  double level = 0.05;    // two-sided, of all looks together
  Look look = {};         // at which the samples were taken
  bool is_paired = true;  // by seed
  bool highest_is_best = true;
  bool is_exact = false;  // the values are known before a run is trained: that all seeds agree is no chance
};

struct Finding {
  ClaimVerdict verdict = ClaimVerdict::kCannotTell;
  std::optional<double> estimate = {};
  std::optional<Interval> interval = {};
  std::optional<double> level = {};  // of the test, two-sided or of each end; unset: there was none, or of counts
  std::vector<size_t> n = {};        // values: pairs, or those of each side
  std::string reason = {};           // for a verdict that the numbers alone do not explain
};

struct ClaimKind {
  /// What the estimate is, which decides how it is printed.
  enum class Form { kDifference, kShare, kRatio, kSlope, kFit, kValue };
  /// The keys that it needs or may have beside its cells.
  enum Key : unsigned {
    kWithin = 1,
    kBetween = 2,
    kR2 = 4,
    kDirection = 8,
    kOver = 16,
    kOf = 32,
    kThan = 64,
    kCurve = 128
  };

  std::string_view name;  // the key of a claim
  size_t min_cells;
  size_t max_cells;
  size_t needed;   // cells with runs, of a line points: it says nothing of fewer at a place
  unsigned keys;   // needed, but for kOf
  bool has_scale;  // its estimate is in the unit of the score
  Form form;
  std::string_view
      meaning;  // of its number and verdict, for a note; see meaning_of() in check.cc for "{95}", "{90}", "{share}"
  Finding (*find)(std::span<const CellSample> samples, const Comparison& comparison);
};

std::span<const ClaimKind> claim_kinds();

/// Whether the samples are as the claim says. With missing runs kNotTested, with the numbers of those that are there.
Finding check_claim(const ClaimKind& kind, std::span<const CellSample> samples, const Comparison& comparison);

}  // namespace tearless::harness
