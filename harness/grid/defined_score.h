// Scores that the grid file defines, each a number of a curve of the run, or the mean of several of its scores: the
// sections [score.NAME].
//
//   [score.to_20_bleu]
//   of    = "dev.bleu"            # a metric, gradient_norms, or scores of layers: "g.decoder.*.ffn"
//   take  = "first_at_least"      # statistics/curve.h
//   value = 20
//
//   [score.news]
//   of   = ["test.bleu", "wmt15.newstest2015.bleu"]
//   take = "mean"
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/pattern.h"
#include "harness/statistics/curve.h"

namespace tearless::harness {

/// A score that the grid file names.
struct NamedScore {
  std::string name;  // or a pattern
  std::string key;   // "select.by"
  std::string location;
  // Of `scores.AXIS` of a table: the axis and the point whose runs have it.
  std::optional<std::pair<size_t, size_t>> of_point = {};
};

/// What is called like a metric, but is the norm of every update (runs/gradient_norms.h).
inline constexpr const char* kGradientNorms = "gradient_norms";

struct DefinedScore {
  std::string name;
  std::vector<std::string> mean_of = {};  // scores of the run and of what derives from it; empty: of a curve
  std::string of = {};                    // the curve
  const CurveMeasure* measure = nullptr;  // of the curve
  CurveLimits limits = {};
  std::string location = {};

  bool is_of_curve() const { return mean_of.empty(); }
  /// Whether the curve is over the layers of the model, of scores whose names have the layer for `*`. Others are over
  /// updates.
  bool is_over_layers() const { return is_of_curve() && is_pattern(of); }
  bool is_over_updates() const { return is_of_curve() && !is_pattern(of); }
};

/// The scores of runs of which `score` is made: those of a mean, else itself.
std::vector<std::string> parts_of(const std::vector<DefinedScore>& defined, const std::string& score);

}  // namespace tearless::harness
