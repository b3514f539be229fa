// Curves of runs: what a run reported over its updates, the norm of every update, scores over the layers of its model;
// and the scores that a grid defines, most of which are taken from these.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/grid/grid.h"
#include "harness/results/result_set.h"
#include "harness/statistics/curve.h"

namespace tearless::harness {

/// By x, each once: of an x that comes twice the later y.
void put_in_order(Curve& curve);

/// Collects a curve of any length in bounded memory: where there are more than kMaxPoints, each two neighbours become
/// one, with the mean of their x and of those y that are finite, and so again. The first and the last point stay.
class CurveCollector {
 public:
  static constexpr size_t kMaxPoints = 4096;

  void add(double x, double y);
  /// In order (put_in_order()). Not to be added to afterwards.
  Curve take();
  /// Of how many points each is the mean, but for the last.
  int64_t each() const { return each_; }

 private:
  struct Sum {
    int64_t points = 0, finite = 0;
    double x = 0, y = 0;
  };

  void halve();

  int64_t each_ = 1;
  std::vector<Sum> sums_;
  CurvePoint first_, last_;
};

/// Calls read(i, update, value) for what the run has reported of each of these metrics, in the order of its file;
/// `gradient_norms` is the norm of every update. Nothing for a metric that it lacks. UserError if the metrics are not
/// what was recorded.
void read_curves(const ResultSet& results, const Row& row, const std::vector<std::string>& metrics,
                 const std::function<void(size_t, int64_t, double)>& read);

/// What a run has in place of a score of a metric that it lacks() (RunResult::no_numbers).
inline constexpr const char* kNotInCopy = "not in this copy of results alone";
/// Whether the metric was left out of a copy of results alone.
bool lacks(const ResultSet& results, const Row& row, const std::string& metric);

/// What the curve of this metric is over.
CurveExtent extent_of(const ResultSet& results, const Row& row, const std::string& metric);

/// Whole, in order, of one metric.
Curve curve_of(const ResultSet& results, const Row& row, const std::string& metric);

/// The scores of a run whose name is `pattern` with a whole number for its *, over that number.
Curve layers_of(const Row& row, const std::string& pattern);

/// Adds the scores that the grid defines, numbers of curves and means of scores, to those of the trained runs that have
/// scores; they may be of the scores of what derives from these. UserError if runs have a score of that name
/// themselves.
void add_defined_scores(const Grid& grid, ResultSet& results);

}  // namespace tearless::harness
