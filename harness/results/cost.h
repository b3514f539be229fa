// What it took to train runs.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/results/row.h"
#include "harness/results/states_text.h"

namespace tearless::harness {

struct TrainingCost {
  int64_t attempts = 0, of_unknown_length = 0;  // the latter are not in the hours
  double core_hours = 0;           // of attempts on the CPU: from start to end, times the threads of the run
  double gpu_hours = 0;            // of attempts on a GPU
  std::string from = {}, to = {};  // UTC: the first start, and the last end

  void add(const Row& row);
};

/// "3.20 core-hours and 1.50 GPU-hours"
std::string hours_text(double core_hours, double gpu_hours);

/// What the runs of grids took, those that several have once, and what all seeds of the grids would take.
class CostOfGrids {
 public:
  /// `seeds`: how many the grid has; the rows of a sweep that was trained until its claims were decided have fewer.
  void add(const std::vector<Row>& rows, size_t seeds);

  /// With every seed of every cell.
  struct Whole {
    int64_t runs = 0;
    double core_hours = 0, gpu_hours = 0;  // as many per seed as the seeds of the cell took that were trained
    int64_t not_begun = 0;                 // runs of cells of which none was trained, which are not in the hours

    std::string text() const;  ///< "about 19.20 core-hours"
  };

  const TrainingCost& took() const { return took_; }
  int64_t runs() const { return static_cast<int64_t>(runs_.size()); }
  Whole whole() const;
  /// Whether it has more runs than there are.
  bool lacks_seeds() const { return whole().runs > runs(); }
  /// "12 runs (12 done) took 14 attempts and 3.20 core-hours; with all seeds they are 72 runs and about 19.20
  /// core-hours".
  std::string text() const;

 private:
  struct Cell {
    std::set<int64_t> seeds = {}, begun = {};  // its rows have; of these an attempt was made
    int64_t runs = 0;
    double core_hours = 0, gpu_hours = 0;
    size_t all_seeds = 0;
  };

  TrainingCost took_;
  RunCounts states_;
  std::map<std::string, size_t> runs_;  // id → its cell
  std::vector<Cell> cells_;
};

}  // namespace tearless::harness
