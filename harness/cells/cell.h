// A cell: one score of the runs that differ in their seed only, or a number that is made of such cells.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/score/sentence_stats.h"
#include "harness/statistics/seed_value.h"

namespace tearless::harness {

/// By what the runs with a value were made, as far as it bears on whether their numbers may stand together.
struct Origins {
  int stale = 0;                                                 // runs: RunResult::stale
  std::set<std::string> stale_because;                           // why
  std::set<std::string> trained_by, trained_on;                  // RunResult
  std::set<std::string> measured_on;                             // of a measured number
  std::map<std::string, std::set<std::string>> derived_on = {};  // of each derivation by itself: some need no matmuls

  void add(const Origins& others);
  /// By how many machines or versions of a program the values were made, if by more than one; else 0.
  int mixed() const;
};

/// What `select` took.
struct Chosen {
  std::string labels = {};    // of the chosen point on the axes select.over; "": none
  std::string in_print = {};  // the same, by their names in print
  bool is_tied = false;       // others have the same mean of select.by
  std::string reason = {};    // where none can be: "not chosen: no run has dev.bleu"
  bool is_of_all = true;      // all that were compared have select.by of every seed
};

/// What a run that is done has in place of a score that its scores.json lacks (Cell::without_score).
inline constexpr const char* kNotInScores = "not in scores.json";
/// The same of a number that runs measure of themselves.
inline constexpr const char* kNotMeasured = "not measured";

struct Cell {
  /// Why a seed has no value, the gravest first: a sum has that of the gravest of its cells.
  enum class End {
    kDiverged,   // the loss or a gradient was not finite
    kFailed,     // without a result: crashed, refused …
    kBelow,      // done, but below fail_below
    kScoreless,  // done, but without this score: it was null, or the run has none of its name
    kNotChosen,  // done, but no run of the place has the score that `select` chooses by
  };

  int expected = 0;                    // runs; 0 if the grid has none there
  bool is_excluded = false;            // all runs that the grid would have here are left out
  std::vector<SeedValue> values = {};  // of the runs that are done and have the score; statistics are over these
  std::map<int64_t, End> ends = {};    // of the seeds whose runs have ended without a value
  int diverged_scored = 0;             // diverged runs among `values`: with count_diverged
  std::vector<std::string> runs = {};  // ids, as far as they are known
  std::map<std::string, std::string> without_score = {};  // of the scoreless runs: id → what is there: "null", "NaN" …
  std::map<int64_t, std::shared_ptr<const SentenceStats>> sentences = {};  // by seed, of the score
  Origins origins = {};
  Chosen chosen = {};
  std::set<std::vector<uint32_t>> averaged = {};    // the points of Arrangement::average that the mean is over
  std::map<int64_t, std::string> added_seeds = {};  // seeds_added_later(), of its runs

  int n() const { return static_cast<int>(values.size()); }
  int count(End end) const;
  int diverged() const { return count(End::kDiverged) + diverged_scored; }
  /// Runs without a value because the method failed: they diverged or are below fail_below. A crash is no such failure.
  int failures() const { return count(End::kDiverged) + count(End::kBelow); }
  /// Runs without a result yet.
  int missing() const { return expected - n() - static_cast<int>(ends.size()); }
  /// Runs of which nobody can say whether the method would have failed, and with which score it would not.
  int undecided() const { return expected - n() - failures(); }

  std::optional<double> mean() const;
  std::optional<double> spread() const;  ///< sample standard deviation; nullopt for n < 2
};

}  // namespace tearless::harness
