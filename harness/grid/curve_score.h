// Scores that the grid file defines, each a number of a curve of the run: the sections [score.NAME].
//
//   [score.to_20_bleu]
//   of    = "dev.bleu"            # a metric, gradient_norms, or scores of layers: "g.decoder.*.ffn"
//   take  = "first_at_least"      # statistics/curve.h
//   value = 20
#pragma once

#include <string>
#include <vector>

#include "base/pattern.h"
#include "harness/grid/table_spec.h"
#include "harness/statistics/curve.h"

namespace tearless::harness {

/// What is called like a metric, but is the norm of every update (runs/gradient_norms.h).
inline constexpr const char* kGradientNorms = "gradient_norms";

struct CurveScore {
  std::string name;
  std::string of;
  const CurveMeasure* measure = nullptr;
  CurveLimits limits;
  std::string location;

  /// Whether the curve is over the layers of the model, of scores whose names have the layer for `*`. Others are over
  /// updates.
  bool is_over_layers() const { return is_pattern(of); }
};

/// The sections of [score]; `table` may be null. UserError with file and line for every mistake.
std::vector<CurveScore> read_curve_scores(const toml::table* table, const std::string& file);

}  // namespace tearless::harness
