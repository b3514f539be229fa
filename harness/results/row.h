// Rows of results: one for each run of a grid or a sweep, with its labels and what is known of it. Tables, figures and
// lists are made of them. A row is identified by its labels, so rows of grids with different axes can stand side by
// side.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/score/sentence_stats.h"
#include "harness/runs/run.h"
#include "harness/runs/run_result.h"
#include "harness/statistics/seed_value.h"
#include "harness/store/store.h"

namespace tearless::harness {

struct Row {
  Run run = {};                             // with id, labels (`coordinates`), seed and settings
  std::string derivation = {};              // that makes it of a trained run; "" for a trained run
  std::string trained = {};                 // the id of that trained run, its own for a trained run; "": not known
  std::shared_ptr<const Sweep> sweep = {};  // without its runs; null: a row of a grid file, or of a run without a sweep
  int64_t place = 0;                        // in the sweep, from 1; 0 without a sweep
  std::string refusal = {};                 // why the training program refuses the settings; "" if it does not
  RunResult result = {};
  std::string known_since = {};       // first submitted or started, UTC; "": not read (read_beginnings())
  std::set<std::string> sweeps = {};  // that have it; likewise
  // By score: the statistics of its sentences, where a table compares them (results/sentences.h).
  std::map<std::string, std::shared_ptr<const SentenceStats>> sentences = {};

  bool is_trained() const { return derivation.empty(); }
  std::string sweep_id() const { return sweep ? sweep->id : ""; }

  /// Whether the run's scores count in a mean: those of a run that is done do, and with `count_diverged` those that a
  /// diverged run has of its best checkpoint.
  bool counts(bool count_diverged) const;
  /// What is called so: a score, or what the run has measured (runs/measured.h).
  std::optional<double> number(const std::string& score) const;
};

/// The name of the derivation that made a run; "" for a trained run.
std::string derivation_of(const Run& run);

/// A trained run, and the runs of the same grid or sweep that derive from it. Borrows the rows.
struct Replicate {
  const Row* trained;
  std::vector<const Row*> derived = {};

  /// The row whose score this is: of the derivation by whose name it begins ("beam8.test.bleu"), else the trained run.
  const Row& row_of(const std::string& score) const;
};

/// The values of a score that count, in the order of the replicates.
std::vector<SeedValue> values_of(const std::vector<Replicate>& replicates, const std::string& score,
                                 bool count_diverged);

using RowKey = std::vector<std::string>;

/// The rows with one key. Borrows them.
struct Group {
  RowKey key;
  std::vector<const Row*> rows;

  std::vector<Replicate> replicates() const;
};

/// The groups in the order of their first rows.
std::vector<Group> group(const std::vector<Row>& rows, const std::function<RowKey(const Row&)>& key_of);
/// Rows with the same labels on these axes.
std::vector<Group> group(const std::vector<Row>& rows, const std::vector<std::string>& axes);

}  // namespace tearless::harness
